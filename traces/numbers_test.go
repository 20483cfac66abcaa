package traces

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/input/inputtest"
	"github.com/windrow-sim/windrow/traces/internal/arrowfile"
)

// withNumbers writes a file with an absurd number in the place of each of its numbers, and reads
// the trace or Run of it. A number is refused by file, line, field and value, or changes nothing.
// free are fields that may have any number.
func withNumbers(t *testing.T, path string, free []string, read func() error) {
	t.Helper()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, n := range inputtest.JSON(t, good) {
		for _, other := range inputtest.Absurd() {
			if other == n.Text || n.Quoted {
				continue
			}
			if err := os.WriteFile(path, n.Replaced(good, other), 0o600); err != nil {
				t.Fatal(err)
			}
			err := read()
			switch {
			case err == nil && !inputtest.In(free, n.Path):
				t.Errorf("%s: %s = %s is accepted", filepath.Base(path), n.Path, other)
			case err != nil:
				refused++
				if missing := n.Missing(err, path, other); missing != "" || !errors.Is(err,
					ErrFormat) {
					t.Errorf("%s: %s = %s: without %s: %v", filepath.Base(path), n.Path, other,
						missing, err)
				}
			}
		}
	}
	if refused < 50 {
		t.Errorf("%d numbers are refused", refused)
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
}

// fullRun has every field with a number.
func fullRun() *Run {
	run := testRun()
	percent, rate := 1.5, 2.5
	m := &run.Meta
	m.DriftPercent, m.ClockJump, m.Phases = &percent, 7, ComputePhases(run.Rows, ClockEvents)
	m.Prediction = &Prediction{Basis: Measured, IOPercent: &percent, HostPercent: &percent,
		TokensPerSLow: &rate, TokensPerSHigh: &rate, TokensPerSPrefetched: &rate}
	m.Prefetches = &Prefetches{Schedule: "token", Hidden: 1, Slowed: 2, Bytes: 3, Wasted: 4,
		Named: 5, Missed: 6, Submissions: 7}
	m.Headroom = &Headroom{Policy: "window:5", Kept: 1, Needed: 2, Loads: 3, Bytes: 4, Least: 5,
		LeastBytes: 6, Ratio: 7}
	m.Totals = ComputeTotals(run.Rows)
	return run
}

// withMeta writes a file with another text as the metadata of its schema.
func withMeta(t *testing.T, path string, cols []arrowfile.Column, text []byte, rows int,
	bufs [][]byte) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := arrowfile.NewWriter(f, cols, []arrowfile.Pair{{Key: metaKey, Value: string(text)}},
		arrowfile.None)
	if err == nil {
		err = w.Write(rows, bufs)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAbsurdNumbersOfRuns: the metadata in the file of a Run holds only numbers that a Run has. Any
// is fine where nothing is computed from it.
func TestAbsurdNumbersOfRuns(t *testing.T) {
	path, run := filepath.Join(t.TempDir(), "x.run.arrow"), fullRun()
	good, err := json.Marshal(&run.Meta)
	if err != nil {
		t.Fatal(err)
	}
	cols := runColumns(true)
	bufs := make([][]byte, len(cols))
	encodeRows(bufs, run.Rows)
	refused := 0
	for _, n := range inputtest.JSON(t, good) {
		if n.Quoted || n.Path == "schema_version" {
			continue
		}
		for _, other := range inputtest.Absurd() {
			withMeta(t, path, cols, n.Replaced(good, other), len(run.Rows), bufs)
			got, err := ReadRun(t.Context(), path)
			if err != nil {
				refused++
				n.Line = 0 // the metadata is one line of a binary file
				if missing := n.Missing(err, path, other); missing != "" || !errors.Is(err,
					ErrFormat) {
					t.Errorf("%s = %s: without %s: %v", n.Path, other, missing, err)
				}
				continue
			}
			if slices.Contains(inputtest.Impossible(), other) && n.Path != "config.window" &&
				n.Path != "seed" {
				t.Errorf("%s = %s is accepted: %+v", n.Path, other, got.Meta)
			}
		}
	}
	if refused < 200 {
		t.Errorf("%d numbers are refused", refused)
	}
}

// TestAbsurdNumbersOfHeaders: a header with an absurd number is refused by file and field, or opens
// as a trace of that many rows at most.
func TestAbsurdNumbersOfHeaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.trace.arrow")
	head := testHeader(false)
	head.Shape = Shape{DModel: 8, Layers: 3, DFFN: 150, Heads: 2, KVHeads: 2, HeadDim: 4, Vocab: 9,
		MaxPos: 10, Rows: 2, DTypeSize: 2}
	head.Resident = &Resident{Embeddings: 1, Attention: 2, Other: 3, EmbedWidth: 4}
	head.FeatureKind, head.FeatureWidth = FFNInput, 8
	good, err := json.Marshal(&head)
	if err != nil {
		t.Fatal(err)
	}
	cols := traceColumns(&head)
	bufs := make([][]byte, len(cols))
	for i, c := range cols {
		bufs[i] = make([]byte, head.Layers*c.Width())
	}
	for l := range head.Layers {
		bufs[colLayer][2*l] = byte(l)
	}
	refused := 0
	for _, n := range inputtest.JSON(t, good) {
		if n.Quoted {
			continue
		}
		for _, other := range inputtest.Absurd() {
			withMeta(t, path, cols, n.Replaced(good, other), head.Layers, bufs)
			r, err := Open(t.Context(), path)
			if err == nil {
				if slices.Contains(inputtest.Impossible(), other) && n.Path != "seed" &&
					n.Path != "threshold" {
					t.Errorf("%s = %s is accepted", n.Path, other)
				}
				r.Close()
				continue
			}
			refused++
			if !strings.Contains(err.Error(), path) || !errors.Is(err, ErrFormat) {
				t.Errorf("%s = %s: %v", n.Path, other, err)
			}
			n.Line = 0
			if missing := n.Missing(err, path, other); slices.Contains(inputtest.Impossible(),
				other) && missing != "" {
				t.Errorf("%s = %s: without %s: %v", n.Path, other, missing, err)
			}
		}
	}
	if refused < 150 {
		t.Errorf("%d numbers are refused", refused)
	}
}

// TestAbsurdNumbersOfRows: a row whose numbers no machine has is refused by its number and field,
// and so are rows whose sum is none.
func TestAbsurdNumbersOfRows(t *testing.T) {
	const most = math.MaxInt64 / 4
	for field, edit := range map[string]func(*RunRow){
		"start_ns":  func(r *RunRow) { r.Start = math.MaxInt64 },
		"dur_ns":    func(r *RunRow) { r.Dur = most / 2 },
		"bytes":     func(r *RunRow) { r.Bytes = most / 2 },
		"device_ns": func(r *RunRow) { r.Device = -1 },
		"wait_ns":   func(r *RunRow) { r.Wait = math.MaxInt64 },
		"depth":     func(r *RunRow) { r.Depth = float32(math.NaN()) },
		"phase":     func(r *RunRow) { r.Phase = 255 },
		"part":      func(r *RunRow) { r.Part = 255 },
	} {
		run := testRun()
		for i := range run.Rows {
			edit(&run.Rows[i])
		}
		if err := checkRows(run.Rows); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(),
			"row ") || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestAbsurdNumbersOfManifests: every number beside a trace and beside a Run is the file's own.
func TestAbsurdNumbersOfManifests(t *testing.T) {
	path := save(t, testTrace(6, true), WriteOptions{})
	withNumbers(t, ManifestPath(path), []string{"sequences"}, func() error {
		r, err := Open(t.Context(), path)
		if err == nil {
			err = r.Close()
		}
		return err
	})
	run := filepath.Join(t.TempDir(), "x.run.arrow")
	if err := WriteRun(run, fullRun()); err != nil {
		t.Fatal(err)
	}
	withNumbers(t, RunMetaPath(run), nil, func() error {
		_, err := ReadRun(t.Context(), run)
		return err
	})
}
