package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// makeRun is a run whose reads overlap the mat-vec of the layer before, as a prefetch does. The
// decisions depend on seed only, the times on noise too, so that two runs of one seed can be
// compared.
func makeRun(seed, noise uint64, tokens, layers int, simulated bool) *traces.Run {
	decide, time := rng.Stream(seed, "decisions"), rng.Stream(noise, "times")
	r := &traces.Run{Meta: traces.RunMeta{
		SchemaVersion: traces.SchemaVersion, Tool: "windrow 0.1.0", Simulated: simulated,
		Trace: "story.trace.arrow", Device: "test drive", Model: "opt-6.7b", Seed: seed,
		Config: json.RawMessage(`{"window":5}`),
	}}
	if !simulated {
		drift := 2.5
		r.Meta.DriftPercent = &drift
	} else {
		low, high := 90.0, 200.0
		r.Meta.Prediction = &traces.Prediction{Basis: traces.Interpolated, TokensPerSLow: &low,
			TokensPerSHigh: &high}
	}
	var now units.Nanos
	for t := range tokens {
		base := traces.RunRow{Token: uint32(t), Pos: uint32(t), Phase: traces.Decode}
		if t < tokens/8 {
			base.Phase = traces.Prefill
		}
		add := func(layer uint16, part traces.Part, start, dur units.Nanos) *traces.RunRow {
			row := base
			row.Layer, row.Part, row.Start, row.Dur = layer, part, start, dur
			r.Rows = append(r.Rows, row)
			return &r.Rows[len(r.Rows)-1]
		}
		for l := range layers {
			jitter := units.Nanos(time.IntN(20_000))
			layer := uint16(l)
			misses := uint32(20 + decide.IntN(30))
			add(layer, traces.PartAttention, now, 80_000+jitter)
			add(layer, traces.PartPredict, now+80_000+jitter, 5_000)
			read := add(layer, traces.PartIO, now+40_000, 60_000+units.Nanos(misses)*4_000+jitter)
			read.Misses, read.Hits, read.Requests = misses, 300, misses
			read.Bytes, read.Depth = units.Bytes(misses)*16*units.KiB, 12.5
			done := read.Start + read.Dur
			mem := add(layer, traces.PartMemory, done, 8_000)
			mem.Evictions, mem.Bytes = misses, units.Bytes(misses)*16*units.KiB
			add(layer, traces.PartFFN, done+8_000, 120_000+jitter)
			now = done + 100_000 // the next layer starts while this one still multiplies
		}
		add(traces.NoLayer, traces.PartOther, now+30_000, 50_000)
		now += 80_000
	}
	return r
}

func makeData(t testing.TB, tokens int) *Data {
	t.Helper()
	sim, measured := makeRun(1, 10, tokens, 4, true), makeRun(1, 11, tokens, 4, false)
	c, err := compare.Compare(sim, measured, compare.Options{SkipTokens: 2})
	if err != nil {
		t.Fatal(err)
	}
	measured.Meta.Warnings = []string{"the file system may serve direct reads from its cache"}
	custom := document.Table{Columns: []document.Column{{Name: "policy"}, document.Number("DRAM",
		"MiB")}}
	custom.Add("window", "512")
	custom.Add("delta", "256")
	s := []float64{0, 300}
	for k := 2; k <= 16; k++ {
		s = append(s, s[k-1]+300/float64(k))
	}
	return &Data{
		Name: "report", Title: "OPT-6.7B on a test drive", Generated: "2025-01-01 on host a",
		Facts: []document.Fact{{Key: "device", Value: "test drive"},
			{Key: "mode", Value: "direct, cold"}, {Key: "file system", Value: "ext4"},
			{Key: "seed", Value: "42"}},
		Warnings: []string{"memory limit not enforced"},
		Runs:     []LabeledRun{{"window 5", sim}, {"window 5", measured}}, Comparison: c,
		Trace: &TraceStats{Units: 16384, ActiveShare: []float64{0.01, 0.02, 0.03, 0.04},
			SAgg: s},
		FlashRate: 6_100_000_000,
		Tables: []document.Section{{Title: "Policies", Note: "What was tried.",
			Table: custom}},
	}
}

func render(t testing.TB, write func(io.Writer, *Data) error, d *Data) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The writers of a format, as functions of the Runs.
var (
	writeTextOf     = in("text")
	writeMarkdownOf = in("md")
	writeCSVOf      = in("csv")
	writeJSONOf     = in("json")
	writeHTMLOf     = in("html")
)

func in(format string) func(io.Writer, *Data) error {
	return func(w io.Writer, d *Data) error {
		return d.Write(w, Options{Format: format, Width: 200, Origin: Origin{Tool: "windrow 0.1.0",
			Command: "windrow report a.run.arrow", Inputs: map[string]string{"a.run.arrow": "00"}}})
	}
}

func writers() map[string]func(io.Writer, *Data) error {
	return map[string]func(io.Writer, *Data) error{
		"html": writeHTMLOf, "markdown": writeMarkdownOf, "json": writeJSONOf, "csv": writeCSVOf,
		"text":     writeTextOf,
		"perfetto": func(w io.Writer, d *Data) error { return WritePerfetto(w, d.Runs...) },
		"gobench": func(w io.Writer, d *Data) error {
			return WriteGoBench(w, d.Runs[0].Run,
				document.Fact{Key: "win", Value: "5"})
		},
	}
}

func TestSameDataSameBytes(t *testing.T) {
	for name, write := range writers() {
		if a, b := render(t, write, makeData(t, 20)), render(t, write, makeData(t, 20)); a != b {
			t.Errorf("%s: two reports of the same data differ", name)
		}
	}
}

// The result does not depend on what the writer changed: Data is only read.
func TestDataIsOnlyRead(t *testing.T) {
	d := makeData(t, 12)
	for range 2 {
		for _, write := range writers() {
			render(t, write, d)
		}
	}
	if diff := cmp.Diff(makeData(t, 12), d); diff != "" {
		t.Error(diff)
	}
}

// Every format for people says what is simulated and what is measured, and puts warnings and facts
// between the answer and the tables.
func TestWordsAndOrder(t *testing.T) {
	d := makeData(t, 20)
	for _, name := range []string{"html", "markdown", "text"} {
		out := render(t, writers()[name], d)
		for _, word := range []string{"simulated", "measured", "memory limit not enforced",
			"may serve direct reads from its cache", "ext4", "pass"} {
			if !strings.Contains(out, word) {
				t.Errorf("%s: %q is missing", name, word)
			}
		}
		numbers := strings.Index(out, "Parts of a token")
		for _, early := range []string{"memory limit not enforced", "may serve direct",
			"direct, cold"} {
			if at := strings.Index(out, early); at > numbers {
				t.Errorf("%s: %q comes after the first numbers", name, early)
			}
		}
	}
}

func TestEmulatedIsSaid(t *testing.T) {
	d := makeData(t, 10)
	d.Runs[1].Run.Meta.Emulated = true
	for _, name := range []string{"html", "markdown", "text", "json", "csv"} {
		if out := render(t, writers()[name], d); !strings.Contains(out,
			"measured, emulated device") {
			t.Errorf("%s does not say that the device is emulated", name)
		}
	}
	if out := render(t, writeTextOf, d); !strings.Contains(out,
		"warning: window 5 (measured, emulated device): the reads went to an emulated device") {
		t.Errorf("no warning in\n%s", out)
	}
}

// A cold drive cannot be faster than itself: 44.67 GB/s over a 3.94 GB/s link was the page cache.
func TestField_O7_FasterThanTheDevice(t *testing.T) {
	d := makeData(t, 10)
	d.Comparison, d.Trace = nil, nil
	d.FlashRate = 1_000_000
	out := render(t, writeTextOf, d)
	if n := strings.Count(out, "which is more than the 1.00 MB/s of the device: was the page "+
		"cache cold"); n != 2 {
		t.Errorf("%d warnings for two runs in\n%s", n, out)
	}
	d.FlashRate = 6_100_000_000
	if out := render(t, writeTextOf, d); strings.Contains(out, "page cache") {
		t.Errorf("a warning for a drive that is fast enough in\n%s", out)
	}
}

func TestSanityLine(t *testing.T) {
	s := Sanity{Run: "simulated", BytesPerToken: 0.5e9, Rate: 2 * units.GBps, NanosPerToken: 250e6,
		IONanos: 300e6, TokensPerS: 3}
	want := "simulated: 0.500 GB/token / 2.00 GB/s = 250 ms of reading per token by hand, 300 " +
		"ms in the run; at most 4.00 tokens/s by hand, 3.00 in the run."
	if got := s.line(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReportsWithoutComparison(t *testing.T) {
	one := &Data{Title: "one run", Runs: []LabeledRun{{"", makeRun(3, 3, 8, 2, true)}}}
	for name, write := range writers() {
		out := render(t, write, one)
		if !strings.Contains(out, "simulated") {
			t.Errorf("%s does not say that the run is simulated", name)
		}
		if strings.Contains(out, "Verdict:") {
			t.Errorf("%s has a verdict about one run", name)
		}
	}
	tablesOnly := &Data{Title: "tables only", Tables: []document.Section{
		{Title: "T", Table: document.Table{Columns: []document.Column{{Name: "a"}},
			Rows: [][]string{{"1"}}}}}}
	for _, name := range []string{"html", "markdown", "json", "text"} {
		render(t, writers()[name], tablesOnly)
	}
}

func TestErrors(t *testing.T) {
	bad := func(f func(d *Data)) *Data {
		d := makeData(t, 6)
		f(d)
		return d
	}
	for _, tc := range []struct {
		d    *Data
		want string
	}{
		{bad(func(d *Data) { d.Runs = d.Runs[:1] }), "a comparison with 1 runs"},
		{bad(func(d *Data) { d.Runs[1].Run = makeRun(1, 1, 7, 2, false) }),
			"the comparison is of 6 tokens"},
		{bad(func(d *Data) { d.Runs[0].Run = nil }), "the run has no rows"},
		{bad(func(d *Data) { d.Tables[0].Table.Add("x") }),
			`table "Policies": row 2 has 1 cells for 2 columns`},
		{bad(func(d *Data) { d.Trace.Units = 0 }), "with 0 units per layer"},
		{bad(func(d *Data) { d.Trace.SAgg[0] = 3 }), "s_agg(0) is 3"},
		{bad(func(d *Data) { d.Trace.SAgg[3] = 1e9 }), "s_agg(3) is"},
		{bad(func(d *Data) { d.Trace.ActiveShare[1] = 1.5 }), "layer 1 has an active share of 1.5"},
	} {
		for name, write := range writers() {
			if name == "perfetto" || name == "gobench" {
				continue
			}
			if err := write(io.Discard, tc.d); err == nil || !strings.Contains(err.Error(),
				tc.want) {
				t.Errorf("%s: error %v, want %q", name, err, tc.want)
			}
		}
	}
	if err := WritePerfetto(io.Discard); err != errNoRuns {
		t.Errorf("timeline of nothing: %v", err)
	}
}

// failing fails after n bytes.
type failing struct{ n int }

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func TestWriteErrorsAreReported(t *testing.T) {
	for name, write := range writers() {
		if err := write(&failing{100}, makeData(t, 10)); err == nil {
			t.Errorf("%s: a full disk is not reported", name)
		}
	}
}

func TestCSVReadsBack(t *testing.T) {
	d := makeData(t, 20)
	d.Runs[0].Label = "a,\"b\"\nc"
	rec, err := csv.NewReader(strings.NewReader(render(t, writeCSVOf, d))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rec) != 1+2*20 {
		t.Fatalf("%d lines", len(rec))
	}
	doc := exactOf(t, render(t, writeJSONOf, d))
	for i, r := range rec[1:] {
		run := doc.Runs[i/20]
		c, k := run.Tokens, i%20
		want := []string{run.Label, run.Kind, count(int64(c.Token[k])), count(int64(c.Seq[k])),
			count(int64(c.Pos[k])), phaseName(traces.Phase(c.Phase[k])), count(int64(c.Latency[k]))}
		for p := range traces.Part(traces.Parts) {
			want = append(want, count(int64(c.Parts[p.String()][k])))
		}
		want = append(want, count(c.Bytes[k]), count(c.Requests[k]), count(c.Hits[k]),
			count(c.Misses[k]), count(c.Evictions[k]), "12.5")
		if i < 20 {
			want = append(want, "interpolated", "90.0 to 200")
		} else {
			want = append(want, "measured", "")
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Fatalf("line %d:\n%s", i+1, diff)
		}
	}
	if strings.Join(rec[0][:8], " ") != "run kind token seq pos phase latency_ns attention_ns" {
		t.Errorf("head %q", rec[0])
	}
}

func TestJSONReadsBack(t *testing.T) {
	d := makeData(t, 20)
	got := exactOf(t, render(t, writeJSONOf, d))
	if got.Comparison.ErrorPercent != d.Comparison.ErrorPercent ||
		got.Comparison.Verdict != compare.Pass {
		t.Errorf("%+v", got.Comparison)
	}
	if !got.Runs[0].Meta.Simulated || got.Runs[1].Meta.Simulated ||
		got.Runs[0].Kind != "simulated" || got.Runs[1].Kind != "measured" {
		t.Error("the kinds of the runs are lost")
	}
	if len(got.Trace.Delta) != len(got.Trace.SAgg)-1 {
		t.Errorf("%d deltas of %d windows", len(got.Trace.Delta), len(got.Trace.SAgg))
	}
	var wall, latency units.Nanos
	for _, r := range d.Runs[0].Run.Rows {
		wall = max(wall, r.Start+r.Dur)
	}
	for _, l := range got.Runs[0].Tokens.Latency {
		latency += units.Nanos(l)
	}
	if wall != latency {
		t.Errorf("latencies add up to %d, the run takes %d", latency, wall)
	}
}

// Whatever a notebook or the script of the page computes with is a number, not text with a unit.
func TestJSONTokensAreNumbers(t *testing.T) {
	var doc struct {
		Result struct {
			Runs []struct {
				Tokens map[string]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(render(t, writeJSONOf, makeData(t, 5))), &doc); err != nil {
		t.Fatal(err)
	}
	for name, column := range doc.Result.Runs[0].Tokens {
		var flat []float64
		var nested map[string][]float64
		if json.Unmarshal(column, &flat) != nil && json.Unmarshal(column, &nested) != nil {
			t.Errorf("%s is %s", name, column)
		}
	}
}

// s_agg of the definition: what a window loads is what the next larger window keeps beyond it.
func TestDelta(t *testing.T) {
	s := TraceStats{Units: 10, SAgg: []float64{0, 3, 5, 6}}
	if diff := cmp.Diff([]float64{3, 2, 1}, s.Delta()); diff != "" {
		t.Error(diff)
	}
	if (&TraceStats{SAgg: []float64{0}}).Delta() != nil {
		t.Error("a delta of no window")
	}
}
