package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// testRun has two tokens of two layers whose sums can be checked by hand.
func testRun() *Run {
	var rows []RunRow
	for tok := range uint32(2) {
		base := units.Nanos(tok) * 1000
		head := RunRow{Token: tok, Seq: 3, Pos: 8 + tok, Phase: Phase(tok)}
		for l := range uint16(2) {
			at := base + units.Nanos(l)*400
			row := func(p Part, start, dur units.Nanos, edit func(*RunRow)) {
				r := head
				r.Layer, r.Part, r.Start, r.Dur = l, p, at+start, dur
				edit(&r)
				rows = append(rows, r)
			}
			row(PartAttention, 0, 100, func(*RunRow) {})
			row(PartIO, 100, 200, func(r *RunRow) {
				r.Bytes, r.Requests, r.Hits, r.Misses, r.Depth = 4096, 2, 6, 2, float32(2+4*l)
			})
			row(PartMemory, 300, 50, func(r *RunRow) { r.Bytes, r.Evictions = 512, 1 })
			row(PartFFN, 350, 50, func(*RunRow) {})
		}
		last := head
		last.Layer, last.Part, last.Start, last.Dur = NoLayer, PartOther, base+800, 100
		rows = append(rows, last)
	}
	return &Run{Meta: RunMeta{
		SchemaVersion: SchemaVersion, Tool: "windrow test", Simulated: true, Trace: "x",
		TraceSHA256: "ab", Device: "d", Model: "tiny",
		Seed: math.MaxUint64, Warnings: []string{"w"}, Config: json.RawMessage(`{"window":5}`),
	}, Rows: rows}
}

func TestComputeTotals(t *testing.T) {
	want := Totals{
		Tokens: 2, Wall: 1900, TokensPerS: 2 / 1900e-9, Bytes: 4 * 4096, Requests: 8, Hits: 24,
		Misses: 8, Evictions: 4,
		MeanDepth: 4, HitRatio: 0.75,
		PartNanos: [Parts]units.Nanos{PartAttention: 400, PartIO: 800, PartMemory: 200,
			PartFFN: 200, PartOther: 200},
	}
	equal(t, "totals", want, ComputeTotals(testRun().Rows))
	equal(t, "totals of nothing", Totals{}, ComputeTotals(nil))
}

func TestRunRoundTrip(t *testing.T) {
	run := testRun()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.run.arrow")
	if err := WriteRun(path, run); err != nil {
		t.Fatal(err)
	}
	if run.Meta.Totals != (Totals{}) {
		t.Error("WriteRun changed its argument")
	}
	equal(t, "files", []string{"a.run.arrow", "a.run.json"}, names(t, dir))
	got, err := ReadRun(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	want := *run
	want.Meta.Totals = ComputeTotals(run.Rows)
	equal(t, "run", want, *got)

	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteRun(path, got); err != nil { // totals are set now
		t.Fatal(err)
	}
	second, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("a Run that was read and written again differs")
	}
	if err := os.Remove(RunMetaPath(path)); err != nil {
		t.Fatal(err)
	}
	got, err = ReadRun(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.Meta.Warnings); n != 2 || !strings.HasPrefix(got.Meta.Warnings[1],
		"unverified") {
		t.Errorf("warnings %q", got.Meta.Warnings)
	}
}

func TestRunOfManyBatches(t *testing.T) {
	run := &Run{Rows: make([]RunRow, 70_000)} // three batches
	for i := range run.Rows {
		run.Rows[i] = RunRow{Token: uint32(i), Part: PartFFN, Start: units.Nanos(i) * 10, Dur: 10}
	}
	path := filepath.Join(t.TempDir(), "a.run.arrow")
	if err := WriteRun(path, run); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRun(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != len(run.Rows) || got.Rows[69_999] != run.Rows[69_999] ||
		got.Meta.Config != nil {
		t.Errorf("%d rows, last %+v, config %s", len(got.Rows), got.Rows[len(got.Rows)-1],
			got.Meta.Config)
	}
}

func TestWriteRunRefuses(t *testing.T) {
	cases := map[string]func(*Run){
		"not ordered":  func(r *Run) { r.Rows[0], r.Rows[1] = r.Rows[1], r.Rows[0] },
		"part 6":       func(r *Run) { r.Rows[0].Part = 6 },
		"phase 2":      func(r *Run) { r.Rows[0].Phase = 2 },
		"dur_ns -1":    func(r *Run) { r.Rows[0].Dur = -1 },
		"depth NaN":    func(r *Run) { r.Rows[1].Depth = float32(math.NaN()) },
		"without rows": func(r *Run) { r.Rows = nil },
		"misses is 9, the": func(r *Run) {
			r.Meta.Totals = ComputeTotals(r.Rows)
			r.Meta.Totals.Misses++
		},
		"part_ns of ffn": func(r *Run) {
			r.Meta.Totals = ComputeTotals(r.Rows)
			r.Meta.Totals.PartNanos[PartFFN]++
		},
		"hit_ratio is 0.7500": func(r *Run) {
			r.Meta.Totals = ComputeTotals(r.Rows)
			r.Meta.Totals.HitRatio += 1e-6
		},
		"flash_bytes_written": func(r *Run) {
			r.Meta.Totals = ComputeTotals(r.Rows)
			r.Meta.Totals.BytesWritten = 1
		},
	}
	dir := t.TempDir()
	for want, edit := range cases {
		r := testRun()
		edit(r)
		err := WriteRun(filepath.Join(dir, "a.run.arrow"), r)
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("want ErrFormat with %q, got %v", want, err)
		}
	}
	if err := WriteRun(filepath.Join(dir, "a.arrow"), testRun()); err == nil {
		t.Error("a name without .run.arrow: no error")
	}
	if left := names(t, dir); len(left) != 0 {
		t.Errorf("refused Runs left %q", left)
	}
}

func TestReadRunRefuses(t *testing.T) {
	write := func() string {
		path := filepath.Join(t.TempDir(), "a.run.arrow")
		if err := WriteRun(path, testRun()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	edit := func(path, old, new string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(b, []byte(old)) {
			t.Fatalf("%s: no %q", path, old)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(b, []byte(old), []byte(new)),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := write()
	edit(RunMetaPath(path), `"hits": 24`, `"hits": 25`)
	if _, err := ReadRun(t.Context(), path); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(),
			"totals.hits: 25 is not what") {
		t.Errorf("edited totals: %v", err)
	}
	path = write()
	edit(path, `"hits":24`, `"hits":23`)
	if _, err := ReadRun(t.Context(), path); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(),
			"sha256") {
		t.Errorf("edited file: %v", err)
	}
	if err := os.Remove(RunMetaPath(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRun(t.Context(), path); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(),
			"hits is 23, the rows 24") {
		t.Errorf("edited file without JSON: %v", err)
	}
	if _, err := ReadRun(t.Context(), save(t, testTrace(2, false), WriteOptions{})); !errors.Is(err,
		ErrFormat) {
		t.Errorf("a trace is not a Run: %v", err)
	}
	if _, err := Open(t.Context(), write()); !errors.Is(err, ErrFormat) {
		t.Errorf("a Run is not a trace: %v", err)
	}
	if _, err := ReadRun(t.Context(), t.TempDir()); !errors.Is(err, ErrFormat) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := ReadRun(t.Context(), filepath.Join(t.TempDir(), "none.run.arrow")); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestWriteRunText(t *testing.T) {
	r := testRun()
	r.Rows = r.Rows[len(r.Rows)-8:]
	r.Rows = []RunRow{r.Rows[0], r.Rows[7]}
	r.Rows[0].Depth = 1.5
	var b bytes.Buffer
	if err := WriteRunCSV(&b, r); err != nil {
		t.Fatal(err)
	}
	equal(t, "csv",
		`token,seq,pos,phase,layer,part,start_ns,dur_ns,bytes,requests,hits,misses,evictions,depth
1,3,9,decode,0,io,1100,200,4096,2,6,2,0,1.5
1,3,9,decode,,other,1800,100,0,0,0,0,0,0
`, b.String())
	b.Reset()
	if err := WriteRunJSONL(&b, r); err != nil {
		t.Fatal(err)
	}
	equal(t, "jsonl",
		`{"token":1,"seq":3,"pos":9,"phase":"decode","layer":0,"part":"io","start_ns":1100,"dur_ns":200,"bytes":4096,"requests":2,"hits":6,"misses":2,"evictions":0,"depth":1.5}
{"token":1,"seq":3,"pos":9,"phase":"decode","layer":null,"part":"other","start_ns":1800,"dur_ns":100,"bytes":0,"requests":0,"hits":0,"misses":0,"evictions":0,"depth":0}
`, b.String())
}

// phasedRun is a run of one token and layer on a GPU.
func phasedRun() *Run {
	r := &Run{Meta: testRun().Meta}
	row := func(layer uint16, part Part, start, dur, device, wait units.Nanos) {
		r.Rows = append(r.Rows, RunRow{Layer: layer, Part: part, Start: start, Dur: dur,
			Device: device, Wait: wait})
	}
	row(0, PartAttention, 0, 100, 70, 60)
	row(0, PartPredict, 100, 10, 0, 0)
	row(0, PartIO, 110, 500, 0, 0)
	row(0, PartMemory, 610, 90, 45, 50)
	row(0, PartFFN, 700, 60, 55, 20)
	row(NoLayer, PartOther, 760, 40, 30, 0)
	r.Meta.Phases = ComputePhases(r.Rows, ClockEvents)
	return r
}

// TestPhasesByHand: they add up to the wall time without the decisions.
func TestPhasesByHand(t *testing.T) {
	r := phasedRun()
	want := &Phases{Clock: ClockEvents, Read: 500, Stage: 90 - 50, Scatter: 45, Compute: 70 + 55 +
		30, Sync: (100 - 70) + (60 - 55) + (40 - 30) + (50 - 45)}
	equal(t, "phases", want, r.Meta.Phases)
	var sum units.Nanos
	for _, took := range want.All() {
		sum += took
	}
	if wall := ComputeTotals(r.Rows).Wall; sum != wall-10 {
		t.Errorf("phases are %v, the wall time is %v with 10 ns of decisions", sum, wall)
	}
}

// TestPhasesAreKept: with them come two columns and a newer version, without them nothing changes.
func TestPhasesAreKept(t *testing.T) {
	t.Chdir(t.TempDir())
	r := phasedRun()
	if err := WriteRun("a.run.arrow", r); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRun(t.Context(), "a.run.arrow")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "rows", r.Rows, got.Rows)
	equal(t, "phases", r.Meta.Phases, got.Meta.Phases)
	if got.Meta.SchemaVersion != "1.2" {
		t.Errorf("version %s", got.Meta.SchemaVersion)
	}
	var csv, lines bytes.Buffer
	if err := WriteRunCSV(&csv, r); err != nil {
		t.Fatal(err)
	}
	if err := WriteRunJSONL(&lines, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(csv.String(), "depth,device_ns,wait_ns\n") ||
		!strings.Contains(csv.String(), ",0,70,60\n") || !strings.Contains(lines.String(),
		`"device_ns":70,"wait_ns":60`) {
		t.Errorf("%s\n%s", csv.String(), lines.String())
	}

	plain := phasedRun()
	plain.Meta.Phases = nil
	if err := WriteRun("b.run.arrow", plain); err != nil {
		t.Fatal(err)
	}
	if got, err = ReadRun(t.Context(), "b.run.arrow"); err != nil {
		t.Fatal(err)
	}
	if got.Meta.Phases != nil || got.Meta.SchemaVersion != SchemaVersion ||
		got.Rows[0].Device != 0 || got.Rows[0].Wait != 0 {
		t.Errorf("a run without a clock: %+v", got.Rows[0])
	}
	data, err := os.ReadFile("b.run.json")
	if err != nil || strings.Contains(string(data), "phases") {
		t.Errorf("%v\n%s", err, data)
	}

	wrong := phasedRun()
	wrong.Meta.Phases.Sync++
	if err := WriteRun("c.run.arrow", wrong); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(), "sync_ns is 51, the rows 50") {
		t.Errorf("phases that are not those of the rows: %v", err)
	}
	wrong = phasedRun()
	wrong.Meta.Phases.Clock = "sundial"
	if err := WriteRun("c.run.arrow", wrong); !errors.Is(err, ErrFormat) {
		t.Errorf("an unknown clock: %v", err)
	}
}

// The interval of some tokens is that of the whole run in proportion; that of a time holds the same
// rates; a bound has none, and says on which side the truth lies.
func TestPredictionAsItIsPrinted(t *testing.T) {
	low, high, percent := 8.0, 12.5, 25.0
	p := Prediction{Basis: Interpolated, IOPercent: &percent, HostPercent: &percent,
		TokensPerSLow: &low, TokensPerSHigh: &high}
	if e := p.Estimate(20, 10); e.Text("tokens/s") !=
		"20.0 tokens/s, 16.0 to 25.0 (simulated; basis: interpolated)" {
		t.Error(e.Text("tokens/s"))
	}
	if e := p.Time(100*units.Millisecond, 40*units.Millisecond); e.Text("ms") !=
		"100 ms, 80.0 to 125 (simulated; basis: interpolated)" {
		t.Error(e.Text("ms"))
	}
	none := 0.0
	p.HostPercent = &none
	// Reads hidden beside compute come out when they are longer, and only then.
	if short, long := p.Ends(100, 20, 80); short != 80 || long != 125 {
		t.Errorf("%g to %g", short, long)
	}
	if p = (Prediction{Basis: Measured}); p.Time(100, 40).Interval() != "not known" {
		t.Error("an interval of nothing that is known")
	}
	p = Prediction{Basis: Bound, IOPercent: &percent, TokensPerSHigh: &high}
	if e := p.Estimate(6.25, 12.5); e.Text("tokens/s") != "at most 6.25 tokens/s (bound)" ||
		*e.High != 6.25 {
		t.Errorf("%+v", e)
	}
	if e := p.Time(100*units.Millisecond, 0); e.Text("ms") != "at least 100 ms (bound)" {
		t.Error(e.Text("ms"))
	}
}
