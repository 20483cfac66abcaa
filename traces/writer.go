package traces

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces/internal/arrowfile"
)

// WriteOptions are the options of Create. The zero value is the default.
type WriteOptions struct {
	// Compress is "none" (or ""), which readers map without copying, or "zstd".
	Compress string
	// BatchBytes is the size of a batch before compression, 2 MiB if 0. A batch holds whole tokens,
	// at least one. Magnitudes, whose number differs from token to token, may double the size.
	BatchBytes int
	// Incomplete makes Close mark the trace as incomplete: its source was.
	Incomplete bool
}

const (
	defaultBatchBytes = 2 << 20
	maxBatchBytes     = 1 << 29
)

// Writer writes a trace token by token. It holds one batch in memory. It is not safe for concurrent
// use. Close, Interrupt or Abort ends it. Abort after one of them does nothing, so that it can be
// deferred.
type Writer struct {
	path     string
	head     Header
	compress string
	whole    bool // the "complete" that Close writes to the manifest
	file     *hashedFile
	arrow    *arrowfile.Writer
	cols     []arrowfile.Column
	bufs     [numBuffers][]byte // one batch
	rows     int                // rows in bufs
	maxRows  int
	maxCodes int // bytes of magnitudes after which a batch ends
	tokens   int
	seqs     Sequences
	lastSeq  uint32
	lastPos  uint32
	done     bool
	err      error // the first error of the disk; it ends writing
}

// Create starts a trace at path, which must end in ".trace.arrow". An existing trace stays until
// Close replaces it. An empty h.SchemaVersion is set to SchemaVersion.
func Create(path string, h Header, opt WriteOptions) (*Writer, error) {
	if !strings.HasSuffix(path, traceExt) || filepath.Base(path) == traceExt {
		return nil, fmt.Errorf("traces: %s: a trace is named NAME%s", path, traceExt)
	}
	if h.SchemaVersion == "" {
		h.SchemaVersion = SchemaVersion
	}
	if err := errors.Join(checkHeader(&h), checkVersion(h.SchemaVersion)); err != nil {
		return nil, fmt.Errorf("traces: %s: %w", path, err)
	}
	w := &Writer{path: path, head: h, compress: opt.Compress, whole: !opt.Incomplete,
		cols: traceColumns(&h)}
	codec := arrowfile.None
	switch opt.Compress {
	case "":
		w.compress = "none"
	case "none":
	case "zstd":
		codec = arrowfile.Zstd
	default:
		return nil, fmt.Errorf("traces: %s: compression %q, need none or zstd", path, opt.Compress)
	}
	if err := w.sizeBatches(opt.BatchBytes); err != nil {
		return nil, fmt.Errorf("traces: %s: %w", path, err)
	}
	meta, err := headerMeta(&h)
	if err != nil {
		return nil, fmt.Errorf("traces: %s: %w", path, err)
	}
	if w.file, err = newHashed(path); err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	if w.arrow, err = arrowfile.NewWriter(w.file, w.cols, meta, codec); err != nil {
		w.file.out.Abort()
		return nil, fmt.Errorf("traces: %w", err)
	}
	return w, nil
}

// sizeBatches allocates the buffers of one batch.
func (w *Writer) sizeBatches(target int) error {
	if target == 0 {
		target = defaultBatchBytes
	}
	if target < 0 || target > maxBatchBytes {
		return fmt.Errorf("batches of %d bytes, need 1..%d", target, maxBatchBytes)
	}
	codes := 0
	if w.head.HasMagnitude {
		codes = w.head.Units
	}
	tokenBytes := w.head.TokenBytes()
	if most := tokenBytes + int64(codes)*int64(w.head.Layers); most > maxBatchBytes {
		return fmt.Errorf("one token takes up to %d bytes, more than %d", most, maxBatchBytes)
	}
	w.maxRows = max(1, target/int(tokenBytes)) * w.head.Layers
	w.maxCodes = target
	buffers := traceBuffers(&w.head)
	for _, c := range w.cols {
		if c.Type != arrowfile.Binary {
			w.bufs[buffers[0]] = make([]byte, 0, w.maxRows*c.Width())
		}
		buffers = buffers[c.Buffers():]
	}
	return nil
}

// Append adds a token with all its layers and copies the masks. It refuses a token that breaks an
// invariant and then changes nothing. After an error of the disk every later call returns that
// error.
func (w *Writer) Append(t *Token) error {
	if w.done {
		return fmt.Errorf("traces: %s: append after the end", w.path)
	}
	if w.err != nil {
		return w.err
	}
	if err := w.check(t); err != nil {
		return fmt.Errorf("traces: %s: token %d (sequence %d, position %d): %w", w.path, w.tokens,
			t.Seq, t.Pos, err)
	}
	for l := range t.Active {
		w.appendRow(t, l)
	}
	w.seqs.Begins(t.Seq)
	w.tokens++
	w.lastSeq, w.lastPos = t.Seq, t.Pos
	if w.rows >= w.maxRows || len(w.bufs[colMagCodes]) >= w.maxCodes {
		return w.flush()
	}
	return nil
}

func (w *Writer) appendRow(t *Token, l int) {
	b := &w.bufs
	b[colSeq] = binary.LittleEndian.AppendUint32(b[colSeq], t.Seq)
	b[colPos] = binary.LittleEndian.AppendUint32(b[colPos], t.Pos)
	b[colPhase] = append(b[colPhase], uint8(t.Phase))
	b[colToken] = binary.LittleEndian.AppendUint32(b[colToken], t.ID)
	b[colLayer] = binary.LittleEndian.AppendUint16(b[colLayer], uint16(l))
	b[colActive] = appendMask(b[colActive], t.Active[l])
	if w.head.HasPredicted {
		b[colPredicted] = appendMask(b[colPredicted], t.Predicted[l])
	}
	if w.head.HasMagnitude {
		if w.rows == 0 {
			b[colMagOffsets] = append(b[colMagOffsets], 0, 0, 0, 0)
		}
		b[colMagCodes] = append(b[colMagCodes], t.Magnitude[l]...)
		b[colMagOffsets] = binary.LittleEndian.AppendUint32(b[colMagOffsets],
			uint32(len(b[colMagCodes])))
	}
	if w.head.FeatureKind != "" {
		b[colFeature] = append(b[colFeature], t.Feature[l]...)
	}
	w.rows++
}

func appendMask(b []byte, m mask.Mask) []byte {
	for _, word := range m {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// check checks a token against invariants 1 and 2 of the package.
func (w *Writer) check(t *Token) error {
	if t.Phase > Decode {
		return fmt.Errorf("phase %d, need 0 or 1", t.Phase)
	}
	if w.tokens > 0 && !after(w.lastSeq, w.lastPos, t.Seq, t.Pos) {
		return fmt.Errorf("comes after sequence %d, position %d: tokens must ascend", w.lastSeq,
			w.lastPos)
	}
	if err := w.head.CheckMasks("active", t.Active); err != nil {
		return err
	}
	if err := errors.Join(w.checkMagnitudes(t), w.checkFeatures(t)); err != nil {
		return err
	}
	if !w.head.HasPredicted {
		if t.Predicted != nil {
			return errors.New("has predicted masks, but the header says has_predicted false")
		}
		return nil
	}
	return w.head.CheckMasks("predicted", t.Predicted)
}

// after reports whether (seq, pos) comes after (seq0, pos0).
func after(seq0, pos0, seq, pos uint32) bool {
	return seq > seq0 || seq == seq0 && pos > pos0
}

// checkMagnitudes checks the magnitudes of a token against invariant 4 of the package.
func (w *Writer) checkMagnitudes(t *Token) error {
	if !w.head.HasMagnitude {
		if t.Magnitude != nil {
			return errors.New("has magnitudes, but the header says has_magnitude false")
		}
		return nil
	}
	if len(t.Magnitude) != w.head.Layers {
		return fmt.Errorf("magnitudes of %d layers for %d", len(t.Magnitude), w.head.Layers)
	}
	for l, codes := range t.Magnitude {
		if n := t.Active[l].Count(); len(codes) != n {
			return fmt.Errorf("layer %d: %d magnitudes for %d active units", l, len(codes), n)
		}
	}
	return nil
}

// checkFeatures checks the features of a token against invariant 6 of the package.
func (w *Writer) checkFeatures(t *Token) error {
	if w.head.FeatureKind == "" {
		if t.Feature != nil {
			return errors.New("has features, but the header names no feature_kind")
		}
		return nil
	}
	if len(t.Feature) != w.head.Layers {
		return fmt.Errorf("features of %d layers for %d", len(t.Feature), w.head.Layers)
	}
	for l, f := range t.Feature {
		if len(f) != w.head.featureBytes() {
			return fmt.Errorf("layer %d: a feature of %d bytes, need %d for %d numbers", l, len(f),
				w.head.featureBytes(), w.head.FeatureWidth)
		}
	}
	return nil
}

// flush writes the batch.
func (w *Writer) flush() error {
	if w.rows == 0 || w.err != nil {
		return w.err
	}
	if err := w.arrow.Write(w.rows, w.used()); err != nil {
		w.err = fmt.Errorf("traces: %s: write: %w", w.path, err)
		return w.err
	}
	w.rows = 0
	for i := range w.bufs {
		w.bufs[i] = w.bufs[i][:0]
	}
	return nil
}

// used returns the buffers of this trace's columns, in order.
func (w *Writer) used() [][]byte {
	out := make([][]byte, 0, numBuffers)
	for _, at := range traceBuffers(&w.head) {
		out = append(out, w.bufs[at])
	}
	return out
}

// Close completes the trace: footer, sync, manifest, and at last the final name. After an error
// there is no new file under the final name. A trace without tokens is such an error.
func (w *Writer) Close() error { return w.finish(w.path, w.whole) }

// Interrupt completes the tokens so far as a readable trace under another name,
// NAME.partial.trace.arrow, with a manifest that says complete: false. It returns the path. What an
// earlier interruption left stays: the next name is NAME.2.partial.trace.arrow. Without tokens it
// removes the unfinished file and returns an empty path.
func (w *Writer) Interrupt() (string, error) {
	if w.tokens == 0 && !w.done {
		return "", w.Abort()
	}
	path := partialName(w.path, traceExt)
	return path, w.finish(path, false)
}

// PartialRun is the name for what there is of an interrupted Run, NAME.partial.run.arrow, or
// NAME.2.partial.run.arrow if that is taken.
func PartialRun(path string) string { return partialName(path, runExt) }

// partialName is the first free name for the part of a file.
func partialName(path, ext string) string {
	base := strings.TrimSuffix(path, ext)
	name := base + ".partial" + ext
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s.%d.partial%s", base, n, ext)
	}
}

// Abort removes the unfinished file. It does nothing after Close or Interrupt.
func (w *Writer) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	w.file.out.Abort()
	return nil
}

func (w *Writer) finish(path string, complete bool) error {
	if w.done {
		return fmt.Errorf("traces: %s: already ended", w.path)
	}
	if w.tokens == 0 {
		return errors.Join(fmt.Errorf("traces: %s: there are no tokens to write", w.path),
			w.Abort())
	}
	err := w.flush()
	if err == nil {
		err = w.arrow.Close()
	}
	if err != nil {
		return fmt.Errorf("traces: %s: %w", path, errors.Join(err, w.Abort()))
	}
	w.done = true
	if err := w.file.commit(path, ManifestPath(path), w.manifest(path, complete)); err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	return nil
}

func (w *Writer) manifest(path string, complete bool) *Manifest {
	return &Manifest{
		SchemaVersion: w.head.SchemaVersion, Tool: w.head.Tool, File: filepath.Base(path),
		Bytes:  w.file.size,
		SHA256: w.file.sum(), Complete: complete, Tokens: w.tokens, Sequences: w.seqs.Count(),
		Layers: w.head.Layers,
		Units:  w.head.Units, Compress: w.compress, Model: w.head.Model,
		HasMagnitude: w.head.HasMagnitude,
		FeatureKind:  w.head.FeatureKind, FeatureWidth: w.head.FeatureWidth,
		DerivedFrom: w.head.DerivedFrom, DerivedBy: w.head.DerivedBy,
	}
}
