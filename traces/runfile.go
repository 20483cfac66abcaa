package traces

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces/internal/arrowfile"
)

// Name endings of Run files.
const (
	runExt     = ".run.arrow"
	runMetaExt = ".run.json"
)

// runManifest is NAME.run.json: the RunMeta, and the size and hash of the rows beside it.
type runManifest struct {
	RunMeta
	File   string `json:"file"`
	Rows   int    `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`

	text []byte // as it was read
}

// check compares the manifest with the rows and with what their file says of itself.
func (m *runManifest) check(run *Run, size int) error {
	if m.Rows != len(run.Rows) {
		return input.RefuseJSON(m.text, "rows", fmt.Sprintf("is not their number: %d",
			len(run.Rows)))
	}
	if m.Bytes != int64(size) {
		return input.RefuseJSON(m.text, "bytes",
			fmt.Sprintf("is not the size of the rows' file: %d",
				size))
	}
	if string(m.Config) == "null" {
		m.Config = nil
	}
	path, want, err := firstDifference(&m.RunMeta, &run.Meta)
	if err == nil && path != "" {
		err = input.RefuseJSON(m.text, path, "is not what the rows' file has: "+want)
	}
	return err
}

// firstDifference is the path of the first value in which two descriptions of a Run differ, and the
// value of the second.
func firstDifference(a, b *RunMeta) (path, value string, err error) {
	var of [2]any
	for i, m := range []*RunMeta{a, b} {
		text, err := json.Marshal(m)
		if err != nil {
			return "", "", err
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber() // every digit counts
		if err := dec.Decode(&of[i]); err != nil {
			return "", "", err
		}
	}
	path, value = differs(of[0], of[1], "")
	return strings.TrimPrefix(path, "."), value, nil
}

func differs(a, b any, at string) (path, value string) {
	if x, ok := a.(map[string]any); ok {
		if y, ok := b.(map[string]any); ok {
			keys := slices.AppendSeq(slices.Collect(maps.Keys(x)), maps.Keys(y))
			slices.Sort(keys)
			for _, key := range slices.Compact(keys) {
				if path, value = differs(x[key], y[key], at+"."+key); path != "" {
					return path, value
				}
			}
			return "", ""
		}
	}
	x, isList := a.([]any)
	if y, ok := b.([]any); ok && isList && len(x) == len(y) {
		for i := range x {
			if path, value = differs(x[i], y[i], fmt.Sprintf("%s[%d]", at, i)); path != "" {
				return path, value
			}
		}
		return "", ""
	}
	if reflect.DeepEqual(a, b) {
		return "", ""
	}
	text, err := json.Marshal(b)
	if err != nil || len(text) > 100 {
		text = []byte("something else")
	}
	return at, string(text)
}

// RunMetaPath returns the path of the JSON beside a Run.
func RunMetaPath(run string) string { return strings.TrimSuffix(run, runExt) + runMetaExt }

// phasesVersion is the schema version of Runs with phases. Programs for older versions read all
// other columns.
const phasesVersion = "1.2"

// runColumns returns the columns of a Run in the order of RunRow. The columns of a GPU come last,
// in runs with phases.
func runColumns(phases bool) []arrowfile.Column {
	u32, i64 := arrowfile.Uint32, arrowfile.Int64
	list := []arrowfile.Column{
		{Name: "token", Type: u32}, {Name: "seq", Type: u32}, {Name: "pos", Type: u32},
		{Name: "phase", Type: arrowfile.Uint8}, {Name: "layer", Type: arrowfile.Uint16},
		{Name: "part", Type: arrowfile.Uint8},
		{Name: "start_ns", Type: i64}, {Name: "dur_ns", Type: i64}, {Name: "bytes", Type: i64},
		{Name: "requests", Type: u32}, {Name: "hits", Type: u32}, {Name: "misses", Type: u32},
		{Name: "evictions", Type: u32},
		{Name: "depth", Type: arrowfile.Float32},
	}
	if phases {
		list = append(list, arrowfile.Column{Name: "device_ns", Type: i64}, arrowfile.Column{
			Name: "wait_ns", Type: i64})
	}
	return list
}

// WriteRun writes r to path, which must end in ".run.arrow", and its RunMeta to the ".run.json"
// beside it. Each file appears in one step, the rows last. An empty SchemaVersion and zero Totals
// are filled in in the files; r is not changed. Totals that differ from the rows are an error.
func WriteRun(path string, r *Run) error {
	if !strings.HasSuffix(path, runExt) || filepath.Base(path) == runExt {
		return fmt.Errorf("traces: %s: a Run is named NAME%s", path, runExt)
	}
	meta := r.Meta
	if meta.SchemaVersion == "" {
		meta.SchemaVersion = SchemaVersion
	}
	if err := checkRows(r.Rows); err != nil {
		return fmt.Errorf("traces: %s: %w", path, err)
	}
	if meta.Phases != nil {
		meta.SchemaVersion = phasesVersion
		if err := samePhases(meta.Phases, r.Rows); err != nil {
			return fmt.Errorf("traces: %s: %w", path, err)
		}
	}
	totals := ComputeTotals(r.Rows)
	if meta.Totals == (Totals{}) {
		meta.Totals = totals
	} else if err := sameTotals(meta.Totals, totals); err != nil {
		return fmt.Errorf("traces: %s: %w", path, err)
	}
	p, err := writeRows(path, &meta, r.Rows)
	if err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	m := runManifest{RunMeta: meta, File: filepath.Base(path), Rows: len(r.Rows), Bytes: p.size,
		SHA256: p.sum()}
	if err := p.commit("", RunMetaPath(path), &m); err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	return nil
}

// runPairs is the schema metadata of a Run.
func runPairs(m *RunMeta) ([]arrowfile.Pair, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("run metadata: %w", err)
	}
	return []arrowfile.Pair{
		{Key: metaKey, Value: string(text)},
		{Key: "schema_version", Value: m.SchemaVersion},
		{Key: "tool", Value: m.Tool},
		{Key: "simulated", Value: strconv.FormatBool(m.Simulated)},
		{Key: "emulated", Value: strconv.FormatBool(m.Emulated)},
		{Key: "trace_sha256", Value: m.TraceSHA256},
		{Key: "device", Value: m.Device},
		{Key: "model", Value: m.Model},
		{Key: "seed", Value: strconv.FormatUint(m.Seed, 10)},
	}, nil
}

// writeRows writes the rows to a file that has no name yet.
func writeRows(path string, m *RunMeta, rows []RunRow) (*hashedFile, error) {
	pairs, err := runPairs(m)
	if err != nil {
		return nil, err
	}
	p, err := newHashed(path)
	if err != nil {
		return nil, err
	}
	cols := runColumns(m.Phases != nil)
	w, err := arrowfile.NewWriter(p, cols, pairs, arrowfile.None)
	const batch = 1 << 15 // rows; about 2 MiB
	bufs := make([][]byte, len(cols))
	for len(rows) > 0 && err == nil {
		n := min(batch, len(rows))
		encodeRows(bufs, rows[:n])
		err = w.Write(n, bufs)
		rows = rows[n:]
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		p.out.Abort()
		return nil, err
	}
	return p, nil
}

// encodeRows fills the column buffers in the order of runColumns.
func encodeRows(b [][]byte, rows []RunRow) {
	le := binary.LittleEndian
	for i := range b {
		b[i] = b[i][:0]
	}
	for i := range rows {
		r := &rows[i]
		b[0] = le.AppendUint32(b[0], r.Token)
		b[1] = le.AppendUint32(b[1], r.Seq)
		b[2] = le.AppendUint32(b[2], r.Pos)
		b[3] = append(b[3], uint8(r.Phase))
		b[4] = le.AppendUint16(b[4], r.Layer)
		b[5] = append(b[5], uint8(r.Part))
		b[6] = le.AppendUint64(b[6], uint64(r.Start))
		b[7] = le.AppendUint64(b[7], uint64(r.Dur))
		b[8] = le.AppendUint64(b[8], uint64(r.Bytes))
		b[9] = le.AppendUint32(b[9], r.Requests)
		b[10] = le.AppendUint32(b[10], r.Hits)
		b[11] = le.AppendUint32(b[11], r.Misses)
		b[12] = le.AppendUint32(b[12], r.Evictions)
		b[13] = le.AppendUint32(b[13], math.Float32bits(r.Depth))
		if len(b) > 14 {
			b[14] = le.AppendUint64(b[14], uint64(r.Device))
			b[15] = le.AppendUint64(b[15], uint64(r.Wait))
		}
	}
}

// decodeRow reads row k of the column buffers.
func decodeRow(b [][]byte, k int) RunRow {
	le := binary.LittleEndian
	r := RunRow{
		Token: le.Uint32(b[0][4*k:]), Seq: le.Uint32(b[1][4*k:]), Pos: le.Uint32(b[2][4*k:]),
		Phase: Phase(b[3][k]), Layer: le.Uint16(b[4][2*k:]), Part: Part(b[5][k]),
		Start: units.Nanos(le.Uint64(b[6][8*k:])), Dur: units.Nanos(le.Uint64(b[7][8*k:])),
		Bytes:    units.Bytes(le.Uint64(b[8][8*k:])),
		Requests: le.Uint32(b[9][4*k:]), Hits: le.Uint32(b[10][4*k:]),
		Misses:    le.Uint32(b[11][4*k:]),
		Evictions: le.Uint32(b[12][4*k:]), Depth: math.Float32frombits(le.Uint32(b[13][4*k:])),
	}
	if len(b) > 14 {
		r.Device, r.Wait = units.Nanos(le.Uint64(b[14][8*k:])), units.Nanos(le.Uint64(b[15][8*k:]))
	}
	return r
}

// checkRows checks that rows are ordered by (token, layer, part) and hold no impossible values.
func checkRows(rows []RunRow) error {
	if len(rows) == 0 {
		return fmt.Errorf("a Run without rows: %w", ErrFormat)
	}
	const most = math.MaxInt64 / 4 // keeps every end and every sum representable
	var took, moved int64
	for i := range rows {
		r := &rows[i]
		if took, moved = took+int64(r.Dur), moved+int64(r.Bytes); r.Dur < 0 || r.Bytes < 0 ||
			r.Dur > most || r.Bytes > most || took > most || moved > most {
			return fmt.Errorf("row %d: dur_ns %d, bytes %d: negative, or with those before it "+
				"more than %d: %w", i, int64(r.Dur), int64(r.Bytes), int64(most), ErrFormat)
		}
		switch {
		case r.Phase > Decode:
			return fmt.Errorf("row %d: phase %d, need 0 or 1: %w", i, r.Phase, ErrFormat)
		case r.Part >= Parts:
			return fmt.Errorf("row %d: part %d, need 0..%d: %w", i, r.Part, Parts-1, ErrFormat)
		case r.Start < 0 || r.Start > most:
			return fmt.Errorf("row %d: start_ns %d is not from 0 to %d: %w", i, int64(r.Start),
				int64(most), ErrFormat)
		case r.Device < 0 || r.Device > most || r.Wait < 0 || r.Wait > most:
			return fmt.Errorf("row %d: device_ns %d, wait_ns %d: not from 0 to %d: %w", i,
				int64(r.Device), int64(r.Wait), int64(most), ErrFormat)
		case !(r.Depth >= 0 && r.Depth <= math.MaxFloat32):
			return fmt.Errorf("row %d: depth %g: %w", i, r.Depth, ErrFormat)
		case i > 0 && rowOrder(r) < rowOrder(&rows[i-1]):
			return fmt.Errorf("row %d: rows are not ordered by token, layer and part: %w", i,
				ErrFormat)
		}
	}
	return nil
}

// rowOrder packs (token, layer, part) so that numbers compare as the rows do.
func rowOrder(r *RunRow) uint64 {
	return uint64(r.Token)<<24 | uint64(r.Layer)<<8 | uint64(r.Part)
}

// ReadRun reads a Run. It refuses rows whose order, values or sums differ from the metadata, and a
// ".run.json" that does not match the rows. A missing ".run.json" is a warning in Meta.Warnings.
func ReadRun(ctx context.Context, path string) (*Run, error) {
	mapping, err := mapRegular(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	run, err := parseRun(ctx, path, mapping)
	if err = errors.Join(err, mapping.Close()); err != nil {
		return nil, fmt.Errorf("traces: %s: %w", path, err)
	}
	return run, nil
}

// parseRun reads a Run out of its mapped file.
func parseRun(ctx context.Context, path string, mapping *arrowfile.Mapping) (run *Run, err error) {
	defer mapping.End(mapping.Begin(), &err)
	data := mapping.Data()
	manifest, err := readRunManifest(ctx, path, data)
	if err != nil {
		return nil, err
	}
	file, err := arrowfile.Parse(data)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	run = &Run{}
	if err := readMeta(file, &run.Meta); err != nil {
		return nil, err
	}
	if string(run.Meta.Config) == "null" {
		run.Meta.Config = nil
	}
	if err := run.Meta.check(); err != nil {
		return nil, fmt.Errorf("schema metadata %q: %w: %w", metaKey, err, ErrFormat)
	}
	if err := checkVersion(run.Meta.SchemaVersion); err != nil {
		return nil, err
	}
	cols := runColumns(run.Meta.Phases != nil)
	if err := file.Bind(cols); err != nil {
		return nil, err
	}
	if run.Rows, err = readRows(ctx, file, len(cols)); err != nil {
		return nil, err
	}
	if err := checkRows(run.Rows); err != nil {
		return nil, err
	}
	if run.Meta.Phases != nil {
		if err := samePhases(run.Meta.Phases, run.Rows); err != nil {
			return nil, err
		}
	}
	totals := ComputeTotals(run.Rows)
	if err := sameTotals(run.Meta.Totals, totals); err != nil {
		return nil, err
	}
	if manifest == nil {
		run.Meta.Warnings = append(run.Meta.Warnings, fmt.Sprintf("unverified: no %s",
			RunMetaPath(path)))
	} else if err := manifest.check(run, len(data)); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", RunMetaPath(path), err, ErrFormat)
	}
	return run, nil
}

// mapRegular maps a regular file.
func mapRegular(ctx context.Context, path string) (*arrowfile.Mapping, error) {
	f, err := openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	m, err := arrowfile.Map(f.Take())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// readRunManifest reads the JSON beside a Run and compares it with the rows. It returns nil if
// there is none.
func readRunManifest(ctx context.Context, path string, data []byte) (*runManifest, error) {
	text, err := readSmall(ctx, RunMetaPath(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var m runManifest
	if err := input.DecodeJSON(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", RunMetaPath(path), err, ErrFormat)
	}
	sum, err := hashOf(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	m.text = text
	if sum != m.SHA256 {
		return nil, fmt.Errorf("%s: %w: %w", RunMetaPath(path), input.RefuseJSON(text, "sha256",
			"is not that of the rows: "+sum), ErrFormat)
	}
	return &m, nil
}

func readRows(ctx context.Context, file *arrowfile.File, columns int) ([]RunRow, error) {
	count := 0
	for i := range file.Batches() {
		if count += file.Batches()[i].Rows; count > MostRows {
			return nil, fmt.Errorf("more than %d rows, which take %v of memory; make a Run of "+
				"fewer "+
				"tokens: %w", MostRows, MostRows*units.Bytes(unsafe.Sizeof(RunRow{})),
				ErrUnsupported)
		}
	}
	var rows []RunRow // which grow with what is read: a file may say that it has more
	cols := make([][]byte, columns)
	for i := range file.Batches() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b := &file.Batches()[i]
		if err := file.Load(b, cols); err != nil {
			return nil, fmt.Errorf("batch %d: %w", i, err)
		}
		for k := range b.Rows {
			rows = append(rows, decodeRow(cols, k))
		}
	}
	return rows, nil
}
