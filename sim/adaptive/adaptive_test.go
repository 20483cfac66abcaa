package adaptive

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

func synthetic(t *testing.T, tokens, sequences int) *traces.Memory {
	t.Helper()
	m, err := synth.Collect(t.Context(), synth.Options{Like: "opt-6.7b", Layers: 2, Units: 1024,
		Tokens:    tokens,
		Sequences: sequences, Seed: 42, Predicted: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func config(t *testing.T, m *traces.Memory, b policy.Bounds) Config {
	t.Helper()
	d, err := devicemodels.Preset("m1-max")
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Sim: sim.Config{Engine: "pread", Parallel: 32, Device: d, Layout: layout.Options{
			Coalesce: true}, Predicted: true},
		Model: answers.ModelOf(&m.Head), Bounds: b, Fraction: 0.8, Budget: &Schedule{
			Changes: []Change{{0, 1 << 40}}},
	}
}

func run(t *testing.T, m *traces.Memory, cfg Config) *Result {
	t.Helper()
	r, err := Run(context.Background(), m, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// memoryOf is the memory of a fixed window in the longest context.
func memoryOf(t *testing.T, m *traces.Memory, b policy.Bounds, k int) units.Bytes {
	t.Helper()
	cfg := config(t, m, policy.Bounds{Min: k, Max: max(b.Max, k), Calm: 1})
	s, err := newStudy(context.Background(), m, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s.floor[len(s.floor)-1]
}

// With room for everything, all strategies are the window of the upper bound, and the simulator's:
// same loads, same times.
func TestConstantBudgetIsSim(t *testing.T) {
	m := synthetic(t, 24, 2)
	for _, k := range []int{0, 1, 5} {
		cfg := config(t, m, policy.Bounds{Min: 0, Max: k, Calm: 4})
		plain := cfg.Sim
		plain.Policy = policy.SlidingWindow(k)
		want, err := sim.Run(t.Context(), m, plain)
		if err != nil {
			t.Fatal(err)
		}
		total := want.Meta.Totals
		for _, o := range run(t, m, cfg).Outcomes {
			sum := units.Nanos(0)
			for _, s := range o.Steps {
				sum += s.Latency
			}
			if o.Loads != total.Misses || sum != total.Wall || o.Changes != 0 ||
				o.Window != float64(k) || o.EvictedEarly != 0 || o.OverStatic != 1 {
				t.Errorf("window %d: %+v takes %v; sim loads %d in %v", k, o, sum, total.Misses,
					total.Wall)
			}
			if math.Abs(o.TokensPerS/total.TokensPerS-1) > 1e-9 {
				t.Errorf("window %d: %g tokens/s, sim says %g", k, o.TokensPerS, total.TokensPerS)
			}
		}
	}
}

// A budget with room for one window, and no other, is that window.
func TestFixedBoundsAreTheStaticWindow(t *testing.T) {
	m := synthetic(t, 30, 1)
	cfg := config(t, m, policy.Bounds{Min: 3, Max: 3, Calm: 1})
	cfg.Budget.Changes[0].Budget = memoryOf(t, m, cfg.Bounds, 3)
	for _, o := range run(t, m, cfg).Outcomes {
		if o.OverStatic != 1 || o.Above != 0 || o.Window != 3 || o.Changes != 0 {
			t.Errorf("%+v", o)
		}
	}
}

// randomBudget changes at random tokens between two sizes.
func randomBudget(seed uint64, tokens int, low, high units.Bytes) *Schedule {
	r := rng.Stream(seed, "adaptive/test")
	s := &Schedule{}
	for i := 0; i < tokens; i += 1 + r.IntN(8) {
		s.Changes = append(s.Changes, Change{int64(i),
			low + units.Bytes(r.Int64N(int64(high-low)+1))})
	}
	return s
}

// No strategy is ever above its budget, whatever it does; budgets by time are kept to as well.
func TestNeverAboveTheBudget(t *testing.T) {
	m := synthetic(t, 40, 2)
	for seed := range uint64(6) {
		b := policy.Bounds{Min: int(seed % 2), Max: 8, Calm: 1 + int(seed)}
		cfg := config(t, m, b)
		cfg.Budget = randomBudget(seed, 80, memoryOf(t, m, b, b.Min), memoryOf(t, m, b, 9))
		if seed%3 == 2 {
			cfg.Budget.ByTime = true
			for i := range cfg.Budget.Changes {
				cfg.Budget.Changes[i].From *= int64(20 * units.Millisecond)
			}
		}
		changed := 0
		for _, o := range run(t, m, cfg).Outcomes {
			if o.Above != 0 || len(o.Steps) != 80 {
				t.Errorf("seed %d, %s: %d of %d tokens above the budget", seed, o.Name, o.Above,
					len(o.Steps))
			}
			for _, s := range o.Steps {
				if s.Memory > s.Budget || s.Window < b.Min || s.Window > s.Chosen ||
					s.Chosen > b.Max {
					t.Errorf("seed %d, %s: %+v", seed, o.Name, s)
				}
				if o.Name == Oracle && s.Window != s.Chosen && !cfg.Budget.ByTime {
					t.Errorf("seed %d: the oracle had to shrink: %+v", seed, s)
				}
			}
			changed += o.Changes
		}
		if changed == 0 {
			t.Errorf("seed %d: nothing changed: the budgets do not test anything", seed)
		}
	}
}

// A budget that is never smaller loads no more, and the adaptive window loads no more than the
// static one of the smallest budget.
func TestLargerBudgetNeverLoadsMore(t *testing.T) {
	m := synthetic(t, 50, 1)
	b := policy.Bounds{Max: 8, Calm: 3}
	low, high := memoryOf(t, m, b, 0), memoryOf(t, m, b, 9)
	before := int64(math.MaxInt64)
	for step := range units.Bytes(6) {
		cfg := config(t, m, b)
		cfg.Budget = randomBudget(7, 50, low, high)
		for i := range cfg.Budget.Changes {
			cfg.Budget.Changes[i].Budget += step * (high - low) / 8
		}
		r := run(t, m, cfg)
		if r.Outcomes[0].Loads > before || r.Outcomes[0].OverStatic > 1 {
			t.Errorf("%v more: %+v after %d loads", step*(high-low)/8, r.Outcomes[0], before)
		}
		before = r.Outcomes[0].Loads
	}
}

// Longer hysteresis changes the window less often, and loads no less.
func TestHysteresis(t *testing.T) {
	m := synthetic(t, 80, 1)
	b := policy.Bounds{Max: 8}
	budget := randomBudget(3, 80, memoryOf(t, m, b, 1), memoryOf(t, m, b, 6))
	changes, loads := math.MaxInt, int64(0)
	for _, calm := range []int{1, 4, 16} {
		cfg := config(t, m, policy.Bounds{Max: 8, Calm: calm})
		cfg.Budget = budget
		o := run(t, m, cfg).Outcomes[0]
		grown := 0
		for i := 1; i < len(o.Steps); i++ {
			grown += max(o.Steps[i].Window-o.Steps[i-1].Window, 0)
		}
		if grown > 80/calm || o.Changes > changes || o.Loads < loads {
			t.Errorf("hysteresis of %d: %d changes after %d, grown by %d, %d loads after %d", calm,
				o.Changes, changes, grown, o.Loads, loads)
		}
		changes, loads = o.Changes, o.Loads
	}
}

// The floor is exact: at it all runs, one byte below the run is refused with its parts named.
func TestFloor(t *testing.T) {
	m := synthetic(t, 20, 1)
	b := policy.Bounds{Max: 8, Calm: 2}
	cfg := config(t, m, b)
	floor := memoryOf(t, m, b, 0)
	cfg.Budget.Changes[0].Budget = floor
	r := run(t, m, cfg)
	if r.Floor.Total != floor || r.Outcomes[0].Memory > floor {
		t.Errorf("floor %v, said to be %v; %v used", floor, r.Floor.Total, r.Outcomes[0].Memory)
	}
	cfg.Budget.Changes[0].Budget = floor - 1
	if r := run(t, m, cfg); r.Below == nil || r.Below.Floor.Total != floor ||
		r.Below.Floor.Of(memory.PartRowCache) == 0 || r.No() == "" || len(r.Outcomes) > 0 {
		t.Errorf("one byte below %v: %+v", floor, r)
	}
	cfg.Bounds.Min = 2
	if r := run(t, m, cfg); r.Below == nil || r.Below.Floor.Window != 2 {
		t.Errorf("windows of 2 tokens at least: %+v", r)
	}
	cfg.Bounds.Min = 0
	// A KV cache that is reserved whole is in the floor of the first token already.
	cfg.Budget = &Schedule{Changes: []Change{{0, floor - 1}, {10, floor}}}
	cfg.Positions = 20
	if r := run(t, m, cfg); r.Below == nil {
		t.Error("20 positions do not fit into the first budget")
	}
	cfg.Positions = 0
	run(t, m, cfg)
}

func TestParse(t *testing.T) {
	const whole = 1000 * units.MiB
	for text, want := range map[string]string{
		"6GiB":                        "{false [{0 6GiB}]}",
		"50%":                         "{false [{0 500MiB}]}",
		"0:6GiB,40:3GiB, 120:60%":     "{false [{0 6GiB} {40 3GiB} {120 600MiB}]}",
		"0s:2GiB,500ms:1GiB,2.5s:30%": "{true [{0 2GiB} {500000000 1GiB} {2500000000 300MiB}]}",
	} {
		s, err := Parse(text, whole)
		if err != nil || fmt.Sprint(*s) != want {
			t.Errorf("%s: %v, %v; want %s", text, s, err, want)
			continue
		}
		file := "from,budget\n# a comment\n\n" + strings.NewReplacer(":", ",", ",",
			"\n").Replace(text)
		if len(s.Changes) == 1 {
			file = "0," + text
		}
		if f, err := ParseCSV(strings.NewReader(file), whole); err != nil ||
			fmt.Sprint(*f) != want {
			t.Errorf("%q: %v, %v; want %s", file, f, err, want)
		}
	}
	for text, says := range map[string]string{
		"":                "neither a size",
		"x":               "neither a size",
		"0:6":             "neither a size",
		"0:-1GiB":         "neither a size",
		"0:0%":            "neither a size",
		"5:6GiB":          "the first budget must begin at 0",
		"0:6GiB,0:3GiB":   "does not come after",
		"0:6GiB,9:1,3":    "neither a size",
		"0:6GiB,3":        "is not FROM:SIZE",
		"0:6GiB,2.5s:1%":  "mixed",
		"0s:6GiB,40:3GiB": "mixed",
		"-1:6GiB":         "the first budget",
		"soon:6GiB":       "neither the number of a token nor a time",
	} {
		if _, err := Parse(text, whole); !errors.Is(err, ErrSchedule) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	for _, file := range []string{"", "from,budget\n", "0 6GiB", "0,6GiB\n0,3GiB",
		strings.Repeat("x", 1<<13)} {
		if _, err := ParseCSV(strings.NewReader(file), whole); !errors.Is(err, ErrSchedule) {
			t.Errorf("%.20q: %v", file, err)
		}
	}
}

func TestPhase(t *testing.T) {
	s := &Schedule{Changes: []Change{{0, 1}, {40, 2}, {120, 3}}}
	for at, want := range map[int]int{0: 0, 1: 0, 39: 0, 40: 1, 119: 1, 120: 2, 9999: 2} {
		if got := s.phase(at, 7); got != want {
			t.Errorf("token %d: budget %d, want %d", at, got, want)
		}
		byTime := &Schedule{ByTime: true, Changes: s.Changes}
		if got := byTime.phase(7, units.Nanos(at)); got != want {
			t.Errorf("%d ns: budget %d, want %d", at, got, want)
		}
	}
}

// Whatever the text, there is an error of the kind or a schedule that ascends from 0 with sizes
// above 0.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"6GiB", "0:6GiB,40:3GiB", "0s:50%,2.5s:1GiB", "0,6GiB\n40,3GiB\n",
		"from,budget\n0s,1B", "0:1e9GiB", "::", "0:%"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		flag, err := Parse(text, units.GiB)
		file, fileErr := ParseCSV(strings.NewReader(text), units.GiB)
		for _, c := range []struct {
			s   *Schedule
			err error
		}{{flag, err}, {file, fileErr}} {
			if c.err != nil {
				if !errors.Is(c.err, ErrSchedule) {
					t.Errorf("%q: %v", text, c.err)
				}
				continue
			}
			last := int64(-1)
			for i, change := range c.s.Changes {
				if change.From <= last || change.Budget < 0 || i == 0 && change.From != 0 {
					t.Errorf("%q: %+v", text, c.s)
				}
				last = change.From
			}
			if last < 0 {
				t.Errorf("%q: an empty schedule", text)
			}
		}
	})
}

// What is exported is what the outcomes say, in both forms.
func TestExport(t *testing.T) {
	m := synthetic(t, 20, 1)
	b := policy.Bounds{Max: 6, Calm: 2}
	cfg := config(t, m, b)
	cfg.Budget = randomBudget(1, 20, memoryOf(t, m, b, 0), memoryOf(t, m, b, 5))
	r := run(t, m, cfg)
	var lines, table bytes.Buffer
	if err := errors.Join(r.WriteJSONLines(&lines), r.WriteCSV(&table)); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(records) != 1+4*20 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for i, line := range strings.Split(strings.TrimSpace(lines.String()), "\n") {
		var got row
		var fields map[string]any
		if err := errors.Join(json.Unmarshal([]byte(line), &got), json.Unmarshal([]byte(line),
			&fields)); err != nil {
			t.Fatal(err)
		}
		if o := r.Outcomes[i/20]; got.Strategy != o.Name || got.Step != o.Steps[i%20] {
			t.Errorf("line %d: %s", i, line)
		}
		for c, name := range records[0] {
			if text := strings.Trim(string(must(t, fields[name])), `"`); records[i+1][c] != text {
				t.Errorf("line %d: %s is %s in the table, %s in the line", i, name, records[i+1][c],
					text)
			}
		}
		if len(fields) != len(records[0]) {
			t.Errorf("%d columns, %d fields", len(records[0]), len(fields))
		}
	}
}

func must(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if f, ok := v.(float64); ok { // without an exponent
		text = fmt.Appendf(nil, "%.0f", f)
	}
	return text
}

func TestDeterministicAndRefusals(t *testing.T) {
	m := synthetic(t, 20, 1)
	b := policy.Bounds{Max: 6, Calm: 2}
	var before string
	for range 2 {
		cfg := config(t, m, b)
		cfg.Budget = randomBudget(1, 20, memoryOf(t, m, b, 0), memoryOf(t, m, b, 5))
		text := string(must(t, run(t, m, cfg)))
		if before != "" && text != before {
			t.Errorf("%s\nthen\n%s", before, text)
		}
		before = text
	}
	for says, change := range map[string]func(*Config){
		"no budget":                  func(c *Config) { c.Budget = nil },
		"256 are possible":           func(c *Config) { c.Bounds.Max = 257 },
		"bounds ascend":              func(c *Config) { c.Bounds.Min = 7 },
		"at least 1 is needed":       func(c *Config) { c.Bounds.Calm = 0 },
		"fraction of 0":              func(c *Config) { c.Fraction = 0 },
		"-1 tokens":                  func(c *Config) { c.Skip = -1 },
		"longer than the 20":         func(c *Config) { c.Skip = 20 },
		"the strategies choose":      func(c *Config) { c.Sim.Policy = policy.SlidingWindow(3) },
		`no costs for I/O engine "a`: func(c *Config) { c.Sim.Engine = "abacus" },
	} {
		cfg := config(t, m, b)
		change(&cfg)
		if _, err := Run(context.Background(), m, cfg); err == nil || !strings.Contains(err.Error(),
			says) || !errors.Is(err, ErrConfig) && !errors.Is(err, sim.ErrConfig) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func TestStatisticsByHand(t *testing.T) {
	s := &study{cfg: &Config{Skip: 1}}
	var steps []Step
	for i, ms := range []int64{90, 10, 20, 10, 50, 30, 30} { // two sequences, of four and of three
		steps = append(steps, Step{Token: i, Seq: uint32(i / 4), Latency: units.Nanos(ms) *
			units.Millisecond, Needed: 10, Loads: i, Window: i / 2, Budget: 5,
			Memory: units.Bytes(i)})
	}
	o, err := s.outcome("x", steps)
	if err != nil {
		t.Fatal(err)
	}
	// 10 20 10 and 30 30 are left; their differences are 10, −10 and 0.
	if o.TokensPerS != 5/0.1 || o.P50 != 20*units.Millisecond || o.Deviation != 8164966 ||
		o.Above != 1 || o.Loads != 21 || o.Misses != 0.3 || o.Changes != 2 {
		t.Errorf("%+v", o)
	}
}
