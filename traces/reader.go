package traces

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces/internal/arrowfile"
)

// OpenOptions say which checks Open makes. The zero value makes all of them.
type OpenOptions struct {
	// SkipHash skips the SHA-256, which reads the whole file once. The trace then counts as not
	// verified.
	SkipHash bool
}

// Reader reads a trace file. It copies the masks, magnitudes and features that Token returns out of
// the mapped file: a file that another program truncates is an error of Token, not the end of the
// process. Several goroutines may call Token at once, each with its own Token; none may run during
// Close.
type Reader struct {
	ctx      context.Context // ends the reading
	path     string
	head     Header
	mapping  *arrowfile.Mapping
	file     *arrowfile.File
	batches  []loaded // by batch; only the current one for a compressed file
	starts   []int    // first row of each batch
	current  atomic.Pointer[loaded]
	rows     int
	tokens   int
	manifest *manifestFile
	sha      string
	verified bool
	warnings []string
	closed   bool
}

// loaded is one batch with its columns in memory.
type loaded struct {
	index int
	rows  int
	cols  [numBuffers][]byte
}

// Open opens a trace and checks its SHA-256 against the manifest. When the context ends, so does
// the Reader: Token fails with the context's error, and with it every pass over the trace.
func Open(ctx context.Context, path string) (*Reader, error) {
	return OpenWith(ctx, path, OpenOptions{})
}

// OpenWith opens a trace as Open does. A missing manifest is a warning; all other defects are
// errors.
func OpenWith(ctx context.Context, path string, opt OpenOptions) (*Reader, error) {
	r := &Reader{ctx: ctx, path: path}
	m, err := readManifest(ctx, path)
	if err != nil {
		return nil, err
	}
	r.manifest = m
	if err := r.mapFile(opt); err != nil {
		return nil, err
	}
	if err := r.parse(); err != nil {
		return nil, fmt.Errorf("traces: %s: %w", path, errors.Join(err, r.Close()))
	}
	if m != nil {
		if err := m.check(r); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	r.warn(opt)
	return r, nil
}

// mapFile checks size and hash of the file, then maps it.
func (r *Reader) mapFile(opt OpenOptions) error {
	f, err := openFile(r.ctx, r.path)
	if err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	if err := r.checkFile(f, opt); err != nil {
		return errors.Join(err, f.Close())
	}
	if r.mapping, err = arrowfile.Map(f.Take()); err != nil {
		return fmt.Errorf("traces: %s: %w", r.path, err)
	}
	return nil
}

// checkFile checks size and hash of the file.
func (r *Reader) checkFile(f *input.File, opt OpenOptions) (err error) {
	if r.manifest != nil && r.manifest.Bytes != f.Size() {
		return r.manifest.refuse(r.path, "bytes", "is not the size of %s: %d", r.path, f.Size())
	}
	if !opt.SkipHash {
		if r.sha, err = hashOf(f); err != nil {
			return fmt.Errorf("traces: %s: %w", r.path, err)
		}
		if r.manifest != nil {
			return r.compare()
		}
	}
	return nil
}

// openFile opens a regular file, and refuses one that the first bytes show to be of another kind.
func openFile(ctx context.Context, path string) (*input.File, error) {
	f, err := input.Open(ctx, path)
	if err == nil {
		if err = foreignKind(f); err != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if errors.Is(err, input.ErrKind) {
		err = fmt.Errorf("%w: %w", err, ErrFormat)
	}
	return f, err
}

// foreignKind names the kind of a file that is no Arrow file.
func foreignKind(f *input.File) error {
	head := make([]byte, input.HeadBytes)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if head = head[:n]; bytes.HasPrefix(head, []byte("ARROW1")) {
		return nil
	}
	if err := input.ForeignText(f.Name(), head, input.Arrow); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// hashOf reads a file from its start and returns its SHA-256.
func hashOf(f io.ReaderAt) (string, error) {
	h := sha256.New()
	const block = 64 << 10 // a larger block is no faster
	if _, err := io.CopyBuffer(h, io.NewSectionReader(f, 0, 1<<62),
		make([]byte, block)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// compare compares the computed hash with the manifest's.
func (r *Reader) compare() error {
	if r.sha != r.manifest.SHA256 {
		return r.manifest.refuse(r.path, "sha256", "is not that of %s: %s", r.path, r.sha)
	}
	r.verified = true
	return nil
}

// parse reads the footer, the header and the list of batches.
func (r *Reader) parse() (err error) {
	defer r.mapping.End(r.mapping.Begin(), &err)
	if r.file, err = arrowfile.Parse(r.mapping.Data()); err != nil {
		return err
	}
	if r.head, err = readHeader(r.file); err != nil {
		return err
	}
	if err := r.file.Bind(traceColumns(&r.head)); err != nil {
		return fmt.Errorf("%w (schema %s)", err, r.head.SchemaVersion)
	}
	mapped := r.file.Codec() == arrowfile.None
	for i := range r.file.Batches() {
		b := &r.file.Batches()[i]
		r.starts = append(r.starts, r.rows)
		r.rows += b.Rows
		if mapped {
			l := loaded{index: i, rows: b.Rows}
			if err := r.load(&l); err != nil {
				return err
			}
			r.batches = append(r.batches, l)
		}
	}
	if r.rows == 0 {
		return fmt.Errorf("the trace has no rows: %w", ErrFormat)
	}
	if r.rows%r.head.Layers != 0 {
		return fmt.Errorf("%d rows are not a multiple of %d layers: %w", r.rows, r.head.Layers,
			ErrFormat)
	}
	r.tokens = r.rows / r.head.Layers
	return nil
}

// load fills l.cols.
func (r *Reader) load(l *loaded) error {
	var found [numBuffers][]byte // one after the other, whichever columns there are
	if err := r.file.Load(&r.file.Batches()[l.index], found[:]); err != nil {
		return fmt.Errorf("batch %d: %w", l.index, err)
	}
	for i, at := range traceBuffers(&r.head) {
		l.cols[at] = found[i]
	}
	return nil
}

func (r *Reader) warn(opt OpenOptions) {
	switch {
	case r.manifest == nil:
		r.warnings = append(r.warnings, fmt.Sprintf("unverified: %s has no manifest (%s)", r.path,
			ManifestPath(r.path)))
	case opt.SkipHash:
		r.warnings = append(r.warnings, fmt.Sprintf("unverified: the SHA-256 of %s was not checked",
			r.path))
	}
	if !r.Complete() {
		r.warnings = append(r.warnings,
			fmt.Sprintf("incomplete: the recording of %s was interrupted after %d tokens",
				r.path, r.tokens))
	}
}

// Header implements Source.
func (r *Reader) Header() *Header { return &r.head }

// Tokens implements Source.
func (r *Reader) Tokens() int { return r.tokens }

// Batches is the number of batches.
func (r *Reader) Batches() int { return len(r.starts) }

// Compress returns the compression of the file: "none" or "zstd".
func (r *Reader) Compress() string { return r.file.Codec().String() }

// Verified reports whether the file has the SHA-256 of its manifest.
func (r *Reader) Verified() bool { return r.verified }

// Warnings returns the warnings about this trace. A report prints them above the numbers that they
// taint.
func (r *Reader) Warnings() []string { return slices.Clone(r.warnings) }

// SHA256 returns the hash of the file in hexadecimal. If Open skipped the hash, it is the
// manifest's, or "" without a manifest.
func (r *Reader) SHA256() string {
	if r.sha == "" && r.manifest != nil {
		return r.manifest.SHA256
	}
	return r.sha
}

// Complete reports whether the recording ran to its end: from the manifest, or from the file's name
// if there is none.
func (r *Reader) Complete() bool {
	if r.manifest != nil {
		return r.manifest.Complete
	}
	return !strings.HasSuffix(r.path, partialTraceExt)
}

// Verify computes the SHA-256 of the file and compares it with the manifest's.
func (r *Reader) Verify() (err error) {
	if r.closed {
		return fmt.Errorf("traces: %s: %w", r.path, os.ErrClosed)
	}
	if r.manifest == nil {
		return fmt.Errorf("traces: %s: no manifest to verify against: %w", r.path, os.ErrNotExist)
	}
	defer r.mapping.End(r.mapping.Begin(), &err)
	sum := sha256.Sum256(r.mapping.Data())
	r.sha = hex.EncodeToString(sum[:])
	return r.compare()
}

// Close unmaps the file. Masks of this Reader must not be used afterwards.
func (r *Reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.file != nil {
		r.file.Close()
	}
	r.batches = nil
	r.current.Store(nil)
	return r.mapping.Close()
}

// Token implements Source. It checks the rows that it reads; an error names the first bad row.
func (r *Reader) Token(i int, t *Token) error {
	if i < 0 || i >= r.tokens || r.closed {
		return fmt.Errorf("traces: token %d: %s has %d tokens (closed: %t)", i, r.path, r.tokens,
			r.closed)
	}
	if err := r.ctx.Err(); err != nil {
		return fmt.Errorf("traces: %s: %w", r.path, err)
	}
	err := r.read(i, t)
	if err == arrowfile.ErrChanged || err == arrowfile.ErrFault {
		return fmt.Errorf("traces: %s: token %d: %w", r.path, i, err)
	}
	return err
}

// read fills t with token i, out of the mapping.
func (r *Reader) read(i int, t *Token) (err error) {
	defer r.mapping.End(r.mapping.Begin(), &err)
	layers := r.head.Layers
	t.Active = grow(t.Active, layers)
	if r.head.HasPredicted {
		t.Predicted = grow(t.Predicted, layers)
	} else {
		t.Predicted = nil
	}
	if r.head.HasMagnitude {
		t.Magnitude = grow(t.Magnitude, layers)
	} else {
		t.Magnitude = nil
	}
	if r.head.FeatureKind != "" {
		t.Feature = grow(t.Feature, layers)
	} else {
		t.Feature = nil
	}
	row := i * layers
	if i > 0 {
		// The row before, to check that the first row comes after it.
		b, k, err := r.find(row - 1)
		if err != nil {
			return err
		}
		t.Seq, t.Pos = b.u32(colSeq, k), b.u32(colPos, k)
	}
	b, k, err := r.find(row)
	if err != nil {
		return err
	}
	for l := range layers {
		for k == b.rows {
			if b, err = r.batch(b.index + 1); err != nil {
				return err
			}
			k = 0
		}
		if what := r.readRow(b, k, l, i > 0, t); what != "" {
			return formatError(r.path, "row %d (token %d, layer %d): %s", row+l, i, l, what)
		}
		k++
	}
	if r.batches != nil {
		t.copyOut(r.head.Words())
	}
	return nil
}

// copyOut copies masks, magnitudes and features of a token out of the mapping. All masks have the
// same number of words.
func (t *Token) copyOut(words int) {
	n := (len(t.Active) + len(t.Predicted)) * words
	size := 0
	for l := range t.Magnitude {
		size += len(t.Magnitude[l])
	}
	for l := range t.Feature {
		size += len(t.Feature[l])
	}
	to := t.Reuse
	if to == nil {
		to = &Buffer{}
	}
	if cap(to.masks) < n {
		to.masks = make([]uint64, n)
	}
	if cap(to.codes) < size {
		to.codes = make([]byte, size)
	}
	masks, codes := to.masks[:n], to.codes[:size]
	for _, list := range [][]mask.Mask{t.Active, t.Predicted} {
		for l, from := range list {
			list[l] = masks[:copy(masks, from):words]
			masks = masks[words:]
		}
	}
	for _, list := range [][][]byte{t.Magnitude, t.Feature} {
		for l, from := range list {
			n := copy(codes, from)
			list[l] = codes[:n:n]
			codes = codes[n:]
		}
	}
}

// readRow puts row k of b into layer l of t. It returns a description of what is wrong with the
// row, or "". Before layer 0, t holds seq and pos of the previous token, if there is one.
func (r *Reader) readRow(b *loaded, k, l int, hasPrev bool, t *Token) string {
	seq, pos, id := b.u32(colSeq, k), b.u32(colPos, k), b.u32(colToken, k)
	phase := Phase(b.cols[colPhase][k])
	if l == 0 {
		if hasPrev && !after(t.Seq, t.Pos, seq, pos) {
			return "sequence and position do not ascend"
		}
		if phase > Decode {
			return "phase is neither 0 nor 1"
		}
		t.Seq, t.Pos, t.Phase, t.ID = seq, pos, phase, id
	} else if seq != t.Seq || pos != t.Pos || phase != t.Phase || id != t.ID {
		return "seq, pos, phase or token differ from layer 0"
	}
	if got := binary.LittleEndian.Uint16(b.cols[colLayer][2*k:]); int(got) != l {
		return "layers are not 0..layers-1 in order"
	}
	if t.Active[l] = r.mask(b.cols[colActive], k); !t.Active[l].Padded(r.head.Units) {
		return "active has bits beyond the last unit"
	}
	if r.head.HasPredicted {
		if t.Predicted[l] = r.mask(b.cols[colPredicted], k); !t.Predicted[l].Padded(r.head.Units) {
			return "predicted has bits beyond the last unit"
		}
	}
	if r.head.HasMagnitude {
		codes, ok := arrowfile.Value(b.cols[colMagOffsets], b.cols[colMagCodes], k)
		if !ok {
			return "magnitude has offsets outside its values"
		}
		if len(codes) != t.Active[l].Count() {
			return "magnitude does not have one byte per active unit"
		}
		t.Magnitude[l] = codes
	}
	if r.head.FeatureKind != "" {
		size := r.head.featureBytes()
		t.Feature[l] = b.cols[colFeature][size*k : size*(k+1) : size*(k+1)]
	}
	return ""
}

// find returns the batch of a row and the row's index in that batch.
func (r *Reader) find(row int) (*loaded, int, error) {
	i, ok := slices.BinarySearch(r.starts, row)
	if !ok {
		i--
	}
	b, err := r.batch(i)
	if err != nil {
		return nil, 0, err
	}
	// An empty batch starts where the next batch does.
	for row-r.starts[b.index] >= b.rows {
		if b, err = r.batch(b.index + 1); err != nil {
			return nil, 0, err
		}
	}
	return b, row - r.starts[b.index], nil
}

// batch returns batch i: a view of the file, or the decompressed batch. The last decompressed batch
// is kept.
func (r *Reader) batch(i int) (*loaded, error) {
	if r.batches != nil {
		return &r.batches[i], nil
	}
	if c := r.current.Load(); c != nil && c.index == i {
		return c, nil
	}
	l := &loaded{index: i, rows: r.file.Batches()[i].Rows}
	if err := r.load(l); err != nil {
		return nil, fmt.Errorf("traces: %s: %w", r.path, err)
	}
	r.current.Store(l)
	return l, nil
}

func (b *loaded) u32(col, k int) uint32 { return binary.LittleEndian.Uint32(b.cols[col][4*k:]) }

// mask returns row k of a column of masks without copying. The column is 8-aligned (invariant 3 of
// arrowfile) and the host is little-endian (Parse), so that the bytes are the words of the mask.
func (r *Reader) mask(col []byte, k int) mask.Mask {
	words := r.head.Words()
	row := col[8*words*k : 8*words*(k+1)]
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(row))), words)
}

// grow returns a slice of n elements. It reuses s if s has room.
func grow[S ~[]E, E any](s []S, n int) []S {
	if cap(s) < n {
		return make([]S, n)
	}
	return s[:n]
}
