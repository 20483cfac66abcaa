package compare

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// tiny is a run of three tokens and one layer whose numbers are easy to add: reads take io[i] ns,
// the mat-vec 100 ns, and nothing overlaps.
func tiny(simulated bool, io ...units.Nanos) *traces.Run {
	r := &traces.Run{Meta: traces.RunMeta{Simulated: simulated, Model: "tiny"}}
	var now units.Nanos
	for i, d := range io {
		row := traces.RunRow{Token: uint32(i), Pos: uint32(i), Phase: traces.Decode, Start: now}
		read, ffn := row, row
		read.Part, read.Dur, read.Bytes, read.Requests, read.Hits, read.Misses,
			read.Depth = traces.PartIO, d, 4096, 2, 5, 3, 2
		ffn.Part, ffn.Start, ffn.Dur = traces.PartFFN, now+d, 100
		r.Rows = append(r.Rows, read, ffn)
		now += d + 100
	}
	return r
}

// random is a run with several layers, parts that overlap, gaps and token-level rows.
func random(seed uint64, tokens, layers int) *traces.Run {
	g := rng.Stream(seed, "run")
	r := &traces.Run{Meta: traces.RunMeta{Simulated: true, Model: "random"}}
	var now units.Nanos
	for t := range tokens {
		base := traces.RunRow{Token: uint32(t), Pos: uint32(t), Phase: traces.Decode}
		for l := range layers {
			for p := traces.PartAttention; p < traces.PartOther; p++ {
				row := base
				row.Layer, row.Part, row.Start = uint16(l), p, now
				row.Dur = units.Nanos(1 + g.IntN(1000))
				switch p {
				case traces.PartIO:
					row.Hits, row.Misses, row.Requests = uint32(g.IntN(9)), uint32(g.IntN(9)),
						uint32(g.IntN(9))
					row.Bytes, row.Depth = units.Bytes(row.Requests)*4096, float32(g.IntN(8))
				case traces.PartMemory:
					row.Evictions = uint32(g.IntN(9))
				}
				r.Rows = append(r.Rows, row)
				now += units.Nanos(g.IntN(1000)) // before the part ends, or after
			}
		}
		last := base
		last.Layer, last.Part, last.Start, last.Dur = traces.NoLayer, traces.PartOther, now, 500
		r.Rows = append(r.Rows, last)
		now += 500
	}
	return r
}

func clone(r *traces.Run) *traces.Run {
	c := *r
	c.Rows = slices.Clone(r.Rows)
	return &c
}

func must(t *testing.T, sim, measured *traces.Run, opt Options) *Comparison {
	t.Helper()
	c, err := Compare(sim, measured, opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestHandComputed(t *testing.T) {
	// Latencies: simulated 1000, 200, 500; measured 700, 300, 400. The first token is warm-up.
	c := must(t, tiny(true, 900, 100, 400), tiny(false, 600, 200, 300), Options{SkipTokens: 1})
	near(t, "simulated latency", c.Total.Simulated, 350)
	near(t, "measured latency", c.Total.Measured, 350)
	near(t, "bias", float64(c.Total.Bias), 0)
	near(t, "MAPE", float64(c.Total.MAPE), 100*(100.0/300+100.0/400)/2)
	io := c.Parts[traces.PartIO]
	near(t, "simulated io", io.Simulated, 250)
	near(t, "measured io", io.Measured, 250)
	near(t, "io MAPE", float64(io.MAPE), 100*(100.0/200+100.0/300)/2)
	near(t, "ffn MAPE", float64(c.Parts[traces.PartFFN].MAPE), 0)
	near(t, "P50", c.Percentiles[0].Simulated, 350)
	near(t, "P90 simulated", c.Percentiles[1].Simulated, 200+0.9*300)
	near(t, "P99 measured", c.Percentiles[2].Measured, 300+0.99*100)
	near(t, "P99 error", float64(c.Percentiles[2].Error), 100*(497.0-399)/399)
	near(t, "tokens/s", c.SimulatedTokensPerS, 2/700e-9)
	near(t, "error", c.ErrorPercent, 0)
	near(t, "r", float64(c.PearsonR), 1)
	if c.SkippedTokens != 1 || c.Tokens != 3 || !c.CountersEqual || !c.BytesEqual {
		t.Errorf("counts: %+v", c)
	}
	want := []string{"P99 latency per token is off by 24.6 % (limit 15 %)"}
	if c.Verdict != Outside || !slices.Equal(c.Reasons, want) {
		t.Errorf("verdict %q, reasons %q, want %q", c.Verdict, c.Reasons, want)
	}
}

func TestSignOfErrors(t *testing.T) {
	// Twice as slow: half the rate, +100 % latency.
	c := must(t, tiny(true, 900, 900), tiny(false, 400, 400), Options{})
	near(t, "tokens/s error", c.ErrorPercent, -50)
	near(t, "latency bias", float64(c.Total.Bias), 100)
	near(t, "P50 error", float64(c.Percentiles[0].Error), 100)
	if c.PearsonR.Defined() {
		t.Errorf("r of constant latencies is %v, want undefined", c.PearsonR)
	}
}

func TestIdenticalRunsPass(t *testing.T) {
	for seed := range uint64(20) {
		r := random(seed, 1+int(seed), 3)
		m := clone(r)
		m.Meta.Simulated = false
		c := must(t, r, m, Options{})
		if c.Verdict != Pass || len(c.Reasons) > 0 || len(c.Warnings) > 0 ||
			c.DifferencesTotal != 0 || c.ErrorPercent != 0 {
			t.Fatalf("seed %d: %+v", seed, c)
		}
		for _, p := range append(c.Parts, c.Total) {
			if p.Bias != 0 || p.MAPE != 0 || p.Simulated != p.Measured {
				t.Errorf("seed %d: %+v", seed, p)
			}
		}
		for _, p := range c.Percentiles {
			if p.Error != 0 {
				t.Errorf("seed %d: %+v", seed, p)
			}
		}
		if seed > 1 {
			near(t, "r", float64(c.PearsonR), 1)
		}
	}
}

func TestSwappedRunsMirror(t *testing.T) {
	for seed := range uint64(20) {
		a, b := random(seed, 30, 2), random(seed+100, 30, 2)
		x := must(t, a, b, Options{SkipTokens: 3, MaxDifferences: 1 << 20})
		y := must(t, b, a, Options{SkipTokens: 3, MaxDifferences: 1 << 20})
		mirrored := func(what string, p, q float64) {
			t.Helper()
			near(t, what, (1+p/100)*(1+q/100), 1)
		}
		mirrored("tokens/s error", x.ErrorPercent, y.ErrorPercent)
		mirrored("bias", float64(x.Total.Bias), float64(y.Total.Bias))
		for i := range x.Parts {
			mirrored(x.Parts[i].Part, float64(x.Parts[i].Bias), float64(y.Parts[i].Bias))
		}
		for i := range x.Percentiles {
			mirrored("percentile", float64(x.Percentiles[i].Error), float64(y.Percentiles[i].Error))
		}
		near(t, "r", float64(x.PearsonR), float64(y.PearsonR))
		if x.DifferencesTotal == 0 || x.DifferencesTotal != len(x.Differences) {
			t.Fatalf("%d differences, %d listed", x.DifferencesTotal, len(x.Differences))
		}
		for i := range y.Differences {
			d := &y.Differences[i]
			d.Simulated, d.Measured = d.Measured, d.Simulated
		}
		if diff := cmp.Diff(x.Differences, y.Differences); diff != "" {
			t.Errorf("differences are not mirrored:\n%s", diff)
		}
	}
}

func TestLatenciesAddUpToTheRun(t *testing.T) {
	for seed := range uint64(20) {
		r := random(seed, 12, 4)
		tokens, err := Tokens(r)
		if err != nil {
			t.Fatal(err)
		}
		var sum, busy, parts, end units.Nanos
		start := units.Forever
		for _, row := range r.Rows {
			start, end = min(start, row.Start), max(end, row.Start+row.Dur)
			busy += row.Dur
		}
		for _, tok := range tokens {
			if tok.Begin != start+sum {
				t.Errorf("seed %d: token %d begins at %d, want %d", seed, tok.Index, tok.Begin, sum)
			}
			sum += tok.Latency
			for _, p := range tok.Parts {
				parts += p
			}
		}
		if sum != end-start {
			t.Errorf("seed %d: latencies add up to %d, the run takes %d", seed, sum, end-start)
		}
		if parts != busy {
			t.Errorf("seed %d: parts add up to %d, rows to %d", seed, parts, busy)
		}
	}
}

func TestTokenDepthIsWeightedWithTime(t *testing.T) {
	r := tiny(false, 100)
	slow := r.Rows[0]
	slow.Dur, slow.Depth = 300, 6
	r.Rows = []traces.RunRow{r.Rows[0], slow}
	tokens, err := Tokens(r)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "depth", tokens[0].Depth, (100*2+300*6)/400.0)
	if tokens[0].Bytes != 8192 || tokens[0].Requests != 4 || tokens[0].Latency != 300 {
		t.Errorf("%+v", tokens[0])
	}
}

func TestDifferences(t *testing.T) {
	sim := random(1, 5, 3)
	m := clone(sim)
	var rows []int
	for i, r := range m.Rows {
		if r.Part == traces.PartIO {
			rows = append(rows, i)
		}
	}
	m.Rows[rows[4]].Hits++
	m.Rows[rows[4]].Misses += 2
	m.Rows[rows[7]].Bytes += 512
	last := len(m.Rows) - 1
	m.Rows[last].Requests = 9 // a token-level row
	c := must(t, sim, m, Options{MaxDifferences: 3})
	at := func(i int, counter string, s, d int64) Difference {
		return Difference{m.Rows[i].Token, int(m.Rows[i].Layer), counter, s, s + d}
	}
	want := []Difference{
		at(rows[4], "hits", int64(sim.Rows[rows[4]].Hits), 1),
		at(rows[4], "misses", int64(sim.Rows[rows[4]].Misses), 2),
		at(rows[7], "flash_bytes", int64(sim.Rows[rows[7]].Bytes), 512),
	}
	if diff := cmp.Diff(want, c.Differences); diff != "" {
		t.Error(diff)
	}
	if c.DifferencesTotal != 4 || c.CountersEqual || c.BytesEqual || c.Verdict != Outside {
		t.Errorf("%+v", c)
	}
	all := must(t, sim, m, Options{})
	if got := all.Differences[3]; got != (Difference{m.Rows[last].Token, TokenLevel, "requests", 0,
		9}) {
		t.Errorf("token-level difference: %+v", got)
	}
	if !strings.Contains(all.Reasons[0], "first hits of token 1 layer 1") {
		t.Errorf("reason %q does not name the place", all.Reasons[0])
	}
}

// Bytes only: counters may be equal while an alignment differs.
func TestBytesAloneDiffer(t *testing.T) {
	sim, m := tiny(true, 100, 100), tiny(false, 100, 100)
	m.Rows[2].Bytes = 8192
	m.Rows[3].Bytes = 77 // copied in memory, no decision
	c := must(t, sim, m, Options{})
	if !c.CountersEqual || c.BytesEqual || c.DifferencesTotal != 1 || c.Verdict != Outside {
		t.Errorf("%+v", c)
	}
}

// A counter that differs during warm-up still counts.
func TestWarmUpCountersCount(t *testing.T) {
	sim, m := tiny(true, 100, 100), tiny(false, 100, 100)
	m.Rows[0].Hits++
	if c := must(t, sim, m, Options{SkipTokens: 1}); c.CountersEqual || c.Verdict != Outside {
		t.Errorf("%+v", c)
	}
}

func TestVerdict(t *testing.T) {
	for _, tc := range []struct {
		name    string
		io      units.Nanos // simulated; 900 measured, so that 10 ns are 1 % of the latency
		drift   float64     // of the measured run; 0 = not measured
		opt     Options
		verdict Verdict
		reasons int
	}{
		{"equal", 900, 0, Options{}, Pass, 0},
		{"within", 940, 0, Options{}, Pass, 0},
		{"rate outside", 960, 0, Options{}, Outside, 1},
		{"rate and P50 outside", 1000, 0, Options{}, Outside, 2},
		{"all outside", 1100, 0, Options{}, Outside, 3},
		{"too fast", 700, 0, Options{}, Outside, 3},
		{"wide tolerance", 1100, 0, Options{Tolerance: Tolerance{30, 30, 30}}, Pass, 0},
		{"only one limit given", 910, 0, Options{Tolerance: Tolerance{TokensPerS: 5}}, Outside, 2},
		{"noisy and equal", 900, 10.1, Options{}, Noisy, 1},
		{"noisy downwards", 900, -10.1, Options{}, Noisy, 1},
		{"noisy and outside", 1100, 40, Options{}, Noisy, 4},
		{"drift at the limit", 900, 10, Options{}, Pass, 0},
		{"stricter drift", 900, 3, Options{MaxDrift: 2}, Noisy, 1},
		{"looser drift", 900, 30, Options{MaxDrift: 50}, Pass, 0},
	} {
		measured := tiny(false, 900, 900)
		if tc.drift != 0 {
			measured.Meta.DriftPercent = &tc.drift
		}
		c := must(t, tiny(true, tc.io, tc.io), measured, tc.opt)
		if c.DriftPercent.Defined() != (tc.drift != 0) {
			t.Errorf("%s: drift %v", tc.name, c.DriftPercent)
		}
		if c.Verdict != tc.verdict || len(c.Reasons) != tc.reasons {
			t.Errorf("%s: %q %q, want %q and %d reasons", tc.name, c.Verdict, c.Reasons, tc.verdict,
				tc.reasons)
		}
	}
}

// Runs whose requests are shaped differently differ for that reason, and the verdict says so.
func TestVerdictNamesTheShapeOfRequests(t *testing.T) {
	sim, measured := tiny(true, 900, 900), tiny(false, 900, 900)
	sim.Meta.Config = json.RawMessage(`{"layout":{"align":4096,"gap":0}}`)
	measured.Meta.Config = json.RawMessage(`{"layout":{"align":1,"gap":0}}`)
	measured.Rows[slices.IndexFunc(measured.Rows, func(r traces.RunRow) bool {
		return r.Part == traces.PartIO
	})].Requests++
	c := must(t, sim, measured, Options{})
	if c.Verdict != Outside || !strings.Contains(strings.Join(c.Reasons, "\n"),
		"align is 4096 in the simulated and 1 in the measured") {
		t.Errorf("%s: %q", c.Verdict, c.Reasons)
	}
}

func TestErrors(t *testing.T) {
	edit := func(f func(r *traces.Run)) *traces.Run {
		r := random(3, 4, 2)
		f(r)
		return r
	}
	row := func(token uint32, layer uint16) int {
		return slices.IndexFunc(random(3, 4, 2).Rows, func(r traces.RunRow) bool {
			return r.Token == token && r.Layer == layer
		})
	}
	base := edit(func(*traces.Run) {})
	for _, tc := range []struct {
		name string
		run  *traces.Run // measured
		opt  Options
		want string
	}{
		{"nil", nil, Options{}, "measured run: compare: the run has no rows"},
		{"missing layer", edit(func(r *traces.Run) {
			i := row(2, 1)
			r.Rows = slices.Delete(r.Rows,
				i, i+5)
		}), Options{},
			"token 2 layer 1 is missing from the measured run"},
		{"more layers", edit(func(r *traces.Run) { r.Rows[row(1, traces.NoLayer)].Layer = 7 }),
			Options{},
			"token 1 layer 7 is missing from the simulated run"},
		{"missing token", edit(func(r *traces.Run) { r.Rows = r.Rows[:row(3, 0)] }), Options{},
			"token 3 (sequence 0, position 3, decode) is missing from the measured run, which " +
				"has 3 tokens of 4"},
		{"other position", edit(func(r *traces.Run) {
			for i := row(2, 0); i < row(3, 0); i++ {
				r.Rows[i].Pos = 9
			}
		}), Options{}, "differ at entry 2: simulated token 2 (sequence 0, position 2, decode), " +
			"measured token 2 (sequence 0, position 9, decode)"},
		{"order", edit(func(r *traces.Run) { slices.Reverse(r.Rows) }), Options{},
			"rows must be ordered"},
		{"two positions", edit(func(r *traces.Run) { r.Rows[1].Pos = 5 }), Options{},
			"two sequences, positions or phases"},
		{"part", edit(func(r *traces.Run) { r.Rows[1].Part = 6 }), Options{}, "row 1: part 6"},
		{"phase", edit(func(r *traces.Run) { r.Rows[1].Phase = 2 }), Options{}, "row 1: phase 2"},
		{"duration", edit(func(r *traces.Run) { r.Rows[1].Dur = -1 }), Options{}, "row 1: start"},
		{"overflow", edit(func(r *traces.Run) { r.Rows[1].Start = units.Forever }), Options{},
			"row 1: start"},
		{"bytes", edit(func(r *traces.Run) { r.Rows[1].Bytes = -1 }), Options{}, "row 1: -1 bytes"},
		{"depth", edit(func(r *traces.Run) { r.Rows[1].Depth = float32(math.NaN()) }), Options{},
			"row 1: queue depth"},
		{"skip all", base, Options{SkipTokens: 4}, "4 warm-up tokens of 4: none is left"},
		{"skip negative", base, Options{SkipTokens: -1}, "a count is 0 or more"},
		{"tolerance", base, Options{Tolerance: Tolerance{P50: math.NaN()}}, "limit of NaN"},
		{"drift", edit(func(r *traces.Run) { d := math.Inf(1); r.Meta.DriftPercent = &d }),
			Options{}, "drifted by +Inf"},
		{"no time", edit(func(r *traces.Run) {
			for i := range r.Rows {
				r.Rows[i].Start, r.Rows[i].Dur = 0, 0
			}
		}), Options{}, "no time passes in the measured run"},
		{"other trace", edit(func(r *traces.Run) { r.Meta.TraceSHA256 = "beef" }), Options{},
			"different traces"},
	} {
		sim := clone(base)
		sim.Meta.TraceSHA256 = "cafe"
		_, err := Compare(sim, tc.run, tc.opt)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
}

// Rows of the whole token are optional: a simulation may leave the output head out.
func TestTokenLevelRowsAreOptional(t *testing.T) {
	sim := random(5, 4, 2)
	m := clone(sim)
	m.Rows = slices.DeleteFunc(m.Rows, func(r traces.RunRow) bool {
		return r.Layer == traces.NoLayer
	})
	for _, c := range []*Comparison{must(t, sim, m, Options{}), must(t, m, sim, Options{})} {
		if !c.CountersEqual || !c.BytesEqual {
			t.Errorf("%+v", c.Differences)
		}
	}
	if other := must(t, sim, m, Options{}).Parts[traces.PartOther]; other.Bias.Defined() ||
		other.MAPE.Defined() || other.MAPETokens != 0 {
		t.Errorf("error against nothing measured: %+v", other)
	}
}

func TestWarningsNameTheRoles(t *testing.T) {
	sim, m := tiny(false, 1), tiny(true, 1)
	m.Meta.Emulated, m.Meta.Model = true, "other"
	c := must(t, sim, m, Options{})
	for i, want := range []string{"two measurements", "validates nothing", "emulated device",
		`"tiny" and "other"`} {
		if i >= len(c.Warnings) || !strings.Contains(c.Warnings[i], want) {
			t.Errorf("warnings %q, want %q at %d", c.Warnings, want, i)
		}
	}
}

// The document has units in its names, writes undefined as null and reads back equal.
func TestJSON(t *testing.T) {
	sim := random(5, 4, 2)
	m := clone(sim)
	m.Rows = slices.DeleteFunc(m.Rows, func(r traces.RunRow) bool {
		return r.Layer == traces.NoLayer
	})
	c := must(t, sim, m, Options{})
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"bias_percent":null`, `"mape_tokens":4`,
		`"simulated_ns_per_token":`, `"tokens_per_s_error_percent":`,
		`"differences":[]`, `"verdict":"pass"`, `"max_drift_percent":10`, `"percentile":99`} {
		if !strings.Contains(string(b), key) {
			t.Errorf("%s is not in %s", key, b)
		}
	}
	var back Comparison
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, &back, equalStats()); diff != "" {
		t.Error(diff)
	}
}

// equalStats takes two undefined Stats for equal.
func equalStats() cmp.Option {
	return cmp.Comparer(func(a, b Stat) bool { return a == b || !a.Defined() && !b.Defined() })
}

// Compare only reads its arguments.
func TestPure(t *testing.T) {
	a, b := random(1, 6, 2), random(2, 6, 2)
	a2, b2 := clone(a), clone(b)
	x, y := must(t, a, b, Options{}), must(t, a, b, Options{})
	if diff := cmp.Diff(x, y, equalStats()); diff != "" {
		t.Error(diff)
	}
	if !cmp.Equal(a, a2) || !cmp.Equal(b, b2) {
		t.Error("a run was changed")
	}
}

// FuzzCompare feeds rows made from bytes: no input may panic, and what is accepted has a verdict, a
// finite rate and a JSON form.
func FuzzCompare(f *testing.F) {
	f.Add([]byte{0, 0, 2, 10, 20, 1, 1, 0, 2, 30, 20, 1}, []byte{0, 0, 2, 10, 25, 1, 1, 0, 2, 35,
		20, 2}, 0)
	f.Add([]byte{0, 255, 5, 0, 0, 0}, []byte{0, 255, 5, 0, 1, 0}, 1)
	rows := func(b []byte) *traces.Run {
		r := &traces.Run{}
		for ; len(b) >= 6; b = b[6:] {
			row := traces.RunRow{Token: uint32(b[0]), Layer: uint16(b[1]), Part: traces.Part(b[2])}
			if b[1] == 255 {
				row.Layer = traces.NoLayer
			}
			row.Start, row.Dur, row.Hits = units.Nanos(int8(b[3])), units.Nanos(b[4])<<(b[5]%56),
				uint32(b[5])
			r.Rows = append(r.Rows, row)
		}
		return r
	}
	f.Fuzz(func(t *testing.T, a, b []byte, skip int) {
		c, err := Compare(rows(a), rows(b), Options{SkipTokens: skip})
		if err != nil {
			return
		}
		if c.Verdict == "" || !(c.SimulatedTokensPerS > 0) || math.IsInf(c.SimulatedTokensPerS,
			0) || c.Total.Simulated < 0 {
			t.Errorf("%+v", c)
		}
		if (c.DifferencesTotal == 0) != (c.CountersEqual && c.BytesEqual) {
			t.Errorf("%d differences, but equal: %v %v", c.DifferencesTotal, c.CountersEqual,
				c.BytesEqual)
		}
		if _, err := json.Marshal(c); err != nil {
			t.Error(err)
		}
	})
}
