package traces

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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
	const most = math.MaxInt64 / 4 // keeps every end representable
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Phase > Decode:
			return fmt.Errorf("row %d: phase %d, need 0 or 1: %w", i, r.Phase, ErrFormat)
		case r.Part >= Parts:
			return fmt.Errorf("row %d: part %d, need 0..%d: %w", i, r.Part, Parts-1, ErrFormat)
		case r.Start < 0 || r.Start > most || r.Dur < 0 || r.Dur > most || r.Bytes < 0:
			return fmt.Errorf("row %d: start_ns %d, dur_ns %d, bytes %d: negative or too large: %w",
				i, int64(r.Start), int64(r.Dur), int64(r.Bytes), ErrFormat)
		case r.Device < 0 || r.Device > most || r.Wait < 0 || r.Wait > most:
			return fmt.Errorf("row %d: device_ns %d, wait_ns %d: negative or too large: %w", i,
				int64(r.Device), int64(r.Wait), ErrFormat)
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
	} else if err := sameTotals(manifest.Totals, totals); err != nil {
		return nil, fmt.Errorf("%s: %w", RunMetaPath(path), err)
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
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", RunMetaPath(path), err, ErrFormat)
	}
	sum, err := hashOf(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if sum != m.SHA256 {
		return nil, fmt.Errorf("SHA-256 is %s, but %s says %q: %w", sum, RunMetaPath(path),
			m.SHA256, ErrFormat)
	}
	return &m, nil
}

func readRows(ctx context.Context, file *arrowfile.File, columns int) ([]RunRow, error) {
	var rows []RunRow
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
