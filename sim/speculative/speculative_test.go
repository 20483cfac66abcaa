package speculative

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

func TestSpeculation(t *testing.T) {
	s := Speculation{Draft: 2, Acceptance: 0.5, Window: 1}
	if got := s.Tokens(); got != 1.75 {
		t.Errorf("1 + 1/2 + 1/4 = %g", got)
	}
	if got := (Speculation{Draft: 4, Acceptance: 1}).Tokens(); got != 5 {
		t.Errorf("all accepted: %g tokens of 5", got)
	}
	for acceptance, want := range map[float64]int{0: 1, 0.5: 2, 1: 3} { // 0, 1.5 and 3 of 3
		if got := (Speculation{Draft: 2, Acceptance: acceptance}).Last(); got != want {
			t.Errorf("α = %g: the window ends with token %d, want %d", acceptance, got, want)
		}
	}
	// Six tokens a verification, of which half are accepted, are two a token.
	if got := AcceptanceFor(2, 6/1.75, func(int) float64 { return 6 }); math.Abs(got-0.5) > 1e-6 {
		t.Errorf("α = %g, want 0.5", got)
	}
}

func synthetic(t *testing.T, opt synth.Options) *traces.Memory {
	t.Helper()
	opt.Like, opt.Layers, opt.Units, opt.Seed, opt.Predicted = "opt-6.7b", 2, 1024, 42, true
	m, err := synth.Collect(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func config(t *testing.T, window int) Config {
	t.Helper()
	d, err := devicemodels.Preset("m1-max")
	if err != nil {
		t.Fatal(err)
	}
	return Config{Sim: sim.Config{Policy: policy.SlidingWindow(window), Engine: "pread",
		Parallel: 32, Device: d,
		Layout: layout.Options{Coalesce: true}}, Acceptance: 0.7, Seed: 42}
}

func run(t *testing.T, src traces.Source, cfg Config) *Result {
	t.Helper()
	r, err := Run(context.Background(), src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Without drafted tokens, a run is that of the simulator: same loads, bytes and times.
func TestNoDraftIsSim(t *testing.T) {
	m := synthetic(t, synth.Options{Tokens: 20, Sequences: 2})
	for _, window := range []int{0, 1, 4, 30} {
		for _, isPredicted := range []bool{false, true} {
			cfg := config(t, window)
			cfg.Sim.Predicted = isPredicted
			got := run(t, m, cfg).Asked
			plain, err := sim.Run(t.Context(), m, cfg.Sim)
			if err != nil {
				t.Fatal(err)
			}
			want := plain.Meta.Totals
			n := float64(want.Tokens)
			if got.Verifications != want.Tokens || got.Loads != float64(want.Misses)/n ||
				got.Bytes != float64(want.Bytes)/n {
				t.Errorf("window %d: %+v, sim loads %g and %g B for a token", window, got,
					float64(want.Misses)/n, float64(want.Bytes)/n)
			}
			if math.Abs(float64(got.Total)-float64(want.Wall)/n) > 3 ||
				math.Abs(float64(got.IO)-float64(want.PartNanos[traces.PartIO])/n) > 1 ||
				got.Speedup != 1 {
				t.Errorf("window %d: %+v, sim takes %g ns for a token, %v for I/O", window, got,
					float64(want.Wall)/n, want.PartNanos[traces.PartIO])
			}
		}
	}
}

// With α = 1 all is accepted: λ+1 tokens, drawn or not, and the window ends with the batch. With α
// = 0 a verification is one token, which costs more than alone. Between the two, more acceptance is
// never slower by more than the end of the window matters.
func TestLimitsOfAcceptance(t *testing.T) {
	m := synthetic(t, synth.Options{Tokens: 60})
	cfg := config(t, 3)
	cfg.Most = 5
	cfg.Acceptance = 1
	all := run(t, m, cfg)
	cfg.Drawn = true
	drawn := run(t, m, cfg)
	cfg.Drawn, cfg.Acceptance = false, 0
	none := run(t, m, cfg)
	cfg.Drawn = true
	never := run(t, m, cfg)
	for i, row := range all.Rows {
		if row.Tokens != float64(row.Draft+1) || row.Last != row.Draft+1 || row.Speedup <= 1 {
			t.Errorf("all accepted: %+v", row)
		}
		if d := drawn.Rows[i]; d.Total != row.Total || d.Loads != row.Loads ||
			d.Tokens != row.Tokens {
			t.Errorf("all accepted by draws: %+v, without %+v", d, row)
		}
		for _, n := range []Row{none.Rows[i], never.Rows[i]} {
			if n.Tokens != 1 || n.Last != 1 || n.Speedup >= 1 || n.Loads < all.Plain.Loads {
				t.Errorf("none accepted: %+v", n)
			}
		}
		// Every verification begins one token further on, so that each of its batches is the one
		// before and one token.
		if v := never.Rows[i]; v.Verifications != 60-row.Draft {
			t.Errorf("none accepted by draws: %d verifications of 60 tokens with %d drafted",
				v.Verifications, row.Draft)
		}
	}
	if none.Best != 0 || all.Best == 0 {
		t.Errorf("best with α = 0: %d, with α = 1: %d", none.Best, all.Best)
	}
}

// At the break-even acceptance, speculation takes as long as none; a slower draft model moves it up
// until there is none.
func TestBreakEven(t *testing.T) {
	m := synthetic(t, synth.Options{Tokens: 60})
	cfg := config(t, 3)
	cfg.Draft = 3
	plain := run(t, m, cfg).Plain.Total
	before := 0.0
	for _, share := range []float64{0, 0.1, 0.2} {
		cfg.DraftTime = units.Nanos(share * float64(plain))
		cfg.Acceptance = 0.5
		r := run(t, m, cfg)
		if r.Asked.BreakEven == nil || *r.Asked.BreakEven < before || *r.Asked.BreakEven >= 1 {
			t.Fatalf("a draft of %v: break-even %v after %g", cfg.DraftTime, r.Asked.BreakEven,
				before)
		}
		before = *r.Asked.BreakEven
		for _, side := range []float64{-1, 1} {
			cfg.Acceptance = before + side*1e-3
			if s := run(t, m, cfg).Asked.Speedup; (s-1)*side <= 0 {
				t.Errorf("a draft of %v, α %g from break-even: speed-up %g", cfg.DraftTime,
					side*1e-3, s)
			}
		}
	}
	cfg.DraftTime = 2 * plain
	if r := run(t, m, cfg); r.Asked.BreakEven != nil {
		t.Errorf("a draft model slower than the large one breaks even at %g", *r.Asked.BreakEven)
	}
}

// The parts of a token add up, a ratio is a time, and a union is no smaller than the share of a
// token.
func TestTable(t *testing.T) {
	m := synthetic(t, synth.Options{Tokens: 60, Prompt: 4})
	cfg := config(t, 2)
	cfg.Most, cfg.Draft, cfg.DraftRatio, cfg.Skip = 8, 10, 0.1, 4
	r := run(t, m, cfg)
	if len(r.Rows) != 8 || r.Asked.Draft != 10 ||
		math.Abs(float64(r.DraftTime)-0.1*float64(r.Plain.Compute)) > 1 {
		t.Fatalf("%+v", r)
	}
	before := r.Plain
	for _, row := range r.Rows {
		if row.Total != row.IO+row.Memory+row.Compute+row.Drafting || row.Union < before.Union {
			t.Errorf("%+v after %+v", row, before)
		}
		if want := (Speculation{Draft: row.Draft, Acceptance: 0.7}).Tokens(); row.Tokens != want {
			t.Errorf("%d drafted: %g tokens, want %g", row.Draft, row.Tokens, want)
		}
		before = row
	}
	// Draws come near the mean.
	cfg.Drawn = true
	for _, row := range run(t, m, cfg).Rows {
		if mean := (Speculation{Draft: row.Draft, Acceptance: 0.7}).Tokens(); math.Abs(
			row.Tokens/mean-1) > 0.35 {
			t.Errorf("%d drafted: %g tokens by draws, %g on average", row.Draft, row.Tokens, mean)
		}
	}
}

// What is drawn has the mean of the formula.
func TestDraws(t *testing.T) {
	r := rng.Stream(1, "test")
	for _, c := range []Speculation{{Draft: 4, Acceptance: 0.7}, {Draft: 8, Acceptance: 0.9},
		{Draft: 1, Acceptance: 0.2}} {
		const n = 40000
		sum := 0
		for range n {
			sum += accepted(r, c.Draft, c.Acceptance) + 1
		}
		if got := float64(sum) / n; math.Abs(got/c.Tokens()-1) > 0.02 {
			t.Errorf("%+v: %g tokens on average, the formula says %g", c, got, c.Tokens())
		}
	}
}

// Rows that left memory do not come back by being of the window: those of tokens behind the end of
// the window before.
func TestLostRowsStayLost(t *testing.T) {
	m := &traces.Memory{Head: traces.Header{Layers: 1, Units: 64, UnitBytes: 4096,
		Shape: traces.Shape{KVHeads: 1, HeadDim: 1}}}
	for i, unit := range []int{0, 1, 1, 2, 2, 2, 1, 3, 3} {
		m.List = append(m.List, traces.Token{Pos: uint32(i), Phase: traces.Decode,
			Active: []mask.Mask{{1 << unit}}})
	}
	// Batches of three need {0,1}, {2} and {1,3}. The window of three tokens ends with the first of
	// each batch: the first one leaves unit 0, and the second one's would hold 1 and 2, but 1 is
	// gone by then.
	cfg := config(t, 3)
	cfg.Draft, cfg.Acceptance = 2, 0
	if got := run(t, m, cfg).Asked; got.Loads != 5.0/3 {
		t.Errorf("%g loads for a verification, want 5 in 3: %+v", got.Loads, got)
	}
}

// Every token of a verification reads its own keys and values: 1000 bytes, a microsecond, for every
// position up to its own.
func TestKeysAndValuesOfAllTokens(t *testing.T) {
	m := &traces.Memory{Head: traces.Header{Layers: 1, Units: 64, UnitBytes: 4096,
		Shape: traces.Shape{KVHeads: 1, HeadDim: 125}}}
	for i := range 12 {
		m.List = append(m.List, traces.Token{Pos: uint32(i), Phase: traces.Decode,
			Active: []mask.Mask{{1}}})
	}
	cfg := config(t, 0)
	cfg.Sim.Device = &devicemodels.Device{
		Name: "plain",
		Flash: flash.Spec{Servers: 1, LTFB: units.Microsecond, Align: 4096,
			Engines: map[string]flash.EngineCost{"pread": {}}},
		Host: devicemodels.Host{Cores: 1, KVRate: 1_000_000_000},
	}
	cfg.Acceptance = 1
	for _, draft := range []int{0, 1, 2, 3} {
		cfg.Draft = draft
		if got := run(t, m, cfg).Asked.Compute; got != 6500 { // mean of 1 … 12 µs
			t.Errorf("%d drafted: keys and values take %v for a token, want 6.5 us", draft, got)
		}
	}
}

func TestDeterministic(t *testing.T) {
	m := synthetic(t, synth.Options{Tokens: 30})
	cfg := config(t, 2)
	cfg.Most, cfg.Drawn = 3, true
	var texts []string
	for _, seed := range []uint64{42, 42, 43} {
		cfg.Seed = seed
		text, err := json.Marshal(run(t, m, cfg))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	if texts[0] != texts[1] || strings.ReplaceAll(texts[2], `"seed":43`, `"seed":42`) == texts[0] {
		t.Errorf("%s\n%s\n%s", texts[0], texts[1], texts[2])
	}
}

func TestErrors(t *testing.T) {
	m := synthetic(t, synth.Options{Tokens: 8})
	for says, change := range map[string]func(*Config){
		"65 drafted tokens":      func(c *Config) { c.Draft = 65 },
		"acceptance 1.5":         func(c *Config) { c.Acceptance = 1.5 },
		"acceptance NaN":         func(c *Config) { c.Acceptance = math.NaN() },
		"-1 tokens to leave out": func(c *Config) { c.Skip = -1 },
		"give one of them":       func(c *Config) { c.DraftTime, c.DraftRatio = 1, 1 },
		"0 or more are possible": func(c *Config) { c.DraftTime = -1 },
		"rule is about windows": func(c *Config) {
			c.Sim.Policy = policy.Spec{Kind: policy.KindLRU, Capacity: 3}
		},
		"no sequence has 9":          func(c *Config) { c.Draft = 8 },
		"no sequence has 1":          func(c *Config) { c.Skip = 8 },
		"window:-1":                  func(c *Config) { c.Sim.Policy.Window = -1 },
		`no costs for I/O engine "a`: func(c *Config) { c.Sim.Engine = "abacus" },
	} {
		cfg := config(t, 1)
		change(&cfg)
		_, err := Run(context.Background(), m, cfg)
		if err == nil || !strings.Contains(err.Error(), says) || !errors.Is(err, ErrConfig) &&
			!errors.Is(err, sim.ErrConfig) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, m, config(t, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
