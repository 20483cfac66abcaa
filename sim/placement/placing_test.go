package placement

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

func TestHalves(t *testing.T) {
	needs := make([][]uint32, 40)
	for name, c := range map[string]struct {
		sequence, tokens, train int
		apart                   bool
	}{
		"one sequence is split in the middle":   {40, 40, 20, false},
		"split at the start of a sequence":      {18, 40, 18, true},
		"of two, the nearer to the middle":      {12, 40, 24, true},
		"too far from the middle":               {35, 40, 20, false},
		"the first tokens alone":                {18, 10, 5, false},
		"two tokens of two sequences":           {1, 2, 1, true},
		"a middle that is the start of another": {20, 40, 20, true},
	} {
		train, test, apart, err := halves(traceOf(64, c.sequence, needs), c.tokens)
		if err != nil || train.count != c.train || test.first != c.train ||
			test.count != c.tokens-c.train || apart != c.apart {
			t.Errorf("%s: %+v and %+v, apart %t, %v", name, train, test, apart, err)
			continue
		}
		var a, b traces.Token
		if err := errors.Join(test.Token(0, &a), train.Source.Token(c.train, &b)); err != nil ||
			a.Seq != b.Seq || a.Pos != b.Pos {
			t.Errorf("%s: the test split begins with %+v, %v", name, a, err)
		}
		if test.Token(test.count, &a) == nil || train.Token(-1, &a) == nil {
			t.Errorf("%s: a token outside a split", name)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	src := synthetic(t, 1, 8)
	for name, change := range map[string]func(*Config){
		"no gaps":          func(c *Config) { c.Gaps = nil },
		"gaps without 0":   func(c *Config) { c.Gaps = []int{1, 2} },
		"gaps that fall":   func(c *Config) { c.Gaps = []int{0, 3, 2} },
		"a gap too wide":   func(c *Config) { c.Gaps = []int{0, MaxGap + 1} },
		"too many friends": func(c *Config) { c.Friends = MaxFriends + 1 },
		"too few friends":  func(c *Config) { c.Friends = -1 },
		"one token":        func(c *Config) { c.Sim.MaxTokens = 1 },
		"a geometry": func(c *Config) {
			c.Sim.Geometry = layout.Uniform(2, 2048,
				recordBytes)
		},
		"no device":          func(c *Config) { c.Sim.Device = nil },
		"an unknown engine":  func(c *Config) { c.Sim.Engine = "carrier pigeon" },
		"a schedule":         func(c *Config) { c.Sim.Schedule.Dense = 1 },
		"a misaligned chunk": func(c *Config) { c.Sim.Layout.MaxRequest = 5000 },
	} {
		cfg := on(t, "m1-max", 4, 0)
		change(&cfg)
		if _, err := Run(t.Context(), src, cfg); !errors.Is(err, ErrConfig) && !errors.Is(err,
			sim.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What every row must add up to, on several devices, windows and kinds of traces.
func TestBytesAreNeededAndWasted(t *testing.T) {
	for _, preset := range []string{"m1-max", "ufs40-8gen3", "emmc-64gb-sige5"} {
		for _, window := range []int{0, 3} {
			cfg := on(t, preset, window, 0, 1, 5)
			cfg.Sim.Predicted = true
			cfg.Friends = 1 + window
			r := compare(t, synthetic(t, 4, 8), cfg)
			if r.Train != 16 || r.Test != 16 || !r.Apart || r.Mask != "predicted" ||
				r.Loads <= 0 {
				t.Fatalf("%+v", r)
			}
			for _, row := range r.Rows {
				if !about(row.Bytes-row.Wasted, r.Loads*recordBytes) || row.Wasted < 0 ||
					row.Reads <= 0 || !about(row.Run*row.Reads, r.Loads) ||
					!about(row.Read*row.Reads, row.Bytes) {
					t.Errorf("%s: %+v do not add up to %g loads", preset, row, r.Loads)
				}
				c := row.Copies
				if c == nil {
					if row.Wasted > 0 && row.Gap == 0 {
						t.Errorf("%s: %s wastes %g bytes without a gap", preset, row.Layout,
							row.Wasted)
					}
					continue
				}
				// A record is whole blocks: all that is read is records.
				if !about(c.Fetched, c.Needed+c.Repeated+c.Unneeded) || !about(c.Needed, r.Loads) ||
					!about(row.Bytes, c.Fetched*recordBytes) ||
					row.Flash != units.Bytes(2+window)*r.Rows[0].Flash {
					t.Errorf("%s: %+v, %+v", preset, row, c)
				}
				if row.Layout == friendsName && !about(c.Fetched, c.Needed*float64(2+window)) {
					t.Errorf("every read brings %d records: %+v", 2+window, c)
				}
			}
			split, bundled := row(t, r, splitName, false), row(t, r, bundledName, false)
			if split.Reads != 2*bundled.Reads || split.Bytes != bundled.Bytes ||
				split.IO <= bundled.IO || bundled.IOGain != 1 || bundled.Gain != 1 {
				t.Errorf("%s: %+v against %+v", preset, split, bundled)
			}
		}
	}
}

// The gap that pays is that of a search by hand through simulations of their own; wider ones never
// make more reads.
func TestGapIsThatOfBruteForce(t *testing.T) {
	for _, preset := range []string{"m1-max", "ufs40-8gen3"} {
		src := synthetic(t, 2, 6)
		gaps := []int{0, 1, 2, 3, 4, 6, 8, 12}
		cfg := on(t, preset, 2, gaps...)
		r := compare(t, src, cfg)
		natural := r.Sweeps[0]
		best, least := 0, units.Nanos(0)
		for i, gap := range gaps {
			one := cfg.Sim
			one.Layout = layout.Options{Coalesce: true, Gap: gap}
			run, err := sim.Run(t.Context(), &part{src, 6, 6}, one)
			if err != nil {
				t.Fatal(err)
			}
			io := run.Meta.Totals.PartNanos[traces.PartIO]
			if got := natural.Rows[i]; got.IO != mean(io, 6) ||
				!about(got.Reads*6, float64(run.Meta.Totals.Requests)) {
				t.Errorf("%s, gap %d: %+v, by itself %v and %d reads", preset, gap, got, io,
					run.Meta.Totals.Requests)
			}
			if i == 0 || io < least {
				best, least = gap, io
			}
		}
		if natural.Best != best {
			t.Errorf("%s: a gap of %d pays, by hand %d", preset, natural.Best, best)
		}
		for _, s := range r.Sweeps {
			for i := range s.Rows[1:] {
				if s.Rows[i+1].Reads > s.Rows[i].Reads || s.Rows[i+1].Bytes < s.Rows[i].Bytes {
					t.Errorf("%s: %s: gap %d makes %g reads, gap %d %g", preset, s.Layout, gaps[i],
						s.Rows[i].Reads, gaps[i+1], s.Rows[i+1].Reads)
				}
			}
		}
	}
}

// Friends of nobody are bundles: the pass that reads them is sim.Run's.
func TestFriendsOfNobodyAreBundles(t *testing.T) {
	for _, preset := range []string{"m1-max", "ufs40-8gen3", "jetson-orin-990pro"} {
		cfg := on(t, preset, 2, 0)
		src := synthetic(t, 4, 4)
		if preset == "jetson-orin-990pro" {
			for name := range cfg.Sim.Device.Flash.Engines {
				cfg.Sim.Engine = name
			}
		}
		if err := check(src, &cfg); err != nil {
			t.Fatal(err)
		}
		cfg.Friends = 0
		train, test, _, err := halves(src, src.Tokens())
		if err != nil {
			t.Fatal(err)
		}
		c := &comparison{ctx: t.Context(), cfg: cfg, head: src.Header(), train: train, test: test}
		if err := c.trainAll(); err != nil {
			t.Fatal(err)
		}
		want, _, err := c.simulate(variant{name: friendsName, joined: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.evaluateFriends(false)
		if err != nil {
			t.Fatal(err)
		}
		got.Copies, got.prediction, want.prediction = nil, nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: friends of nobody %+v\nbundles %+v", preset, got, want)
		}
	}
}

// The negative result of LLM in a flash, appendix D: where some units are hot and all are
// independent, the hot ones are everybody's closest friends, are read over and over (or are in
// memory already), and the reads take longer than without copies.
func TestFriendsOfHotUnitsDoNotPay(t *testing.T) {
	src := popular(rand.New(rand.NewPCG(9, 10)), 2000, 20, 60)
	for _, window := range []int{0, 4} {
		r := compare(t, src, on(t, "m1-max", window, 0))
		friends, bundled := row(t, r, friendsName, true), row(t, r, bundledName, true)
		if friends.IO <= bundled.IO || friends.Copies.Hottest < 2*r.Hottest ||
			friends.Copies.Hottest < 2 {
			t.Errorf("window %d: %v with friends, %v without; a hot unit is fetched %g times a "+
				"token, and needed %g times", window, friends.IO, bundled.IO,
				friends.Copies.Hottest, r.Hottest)
		}
		wasted := &friends.Copies.Repeated
		if window > 0 { // hot units are in memory
			wasted = &friends.Copies.Unneeded
		}
		if *wasted < 0.9*r.Loads {
			t.Errorf("window %d: of %g friends %g are of use", window, r.Loads, r.Loads-*wasted)
		}
		// 20 of 2000 units are the friends of all.
		if f := r.Companion; f.Closest[0] < 0.9 || f.Distinct*float64(f.Units) > 25 ||
			!slices.IsSortedFunc(f.Closest, func(a, b float64) int { return -compareFloat(a, b) }) {
			t.Errorf("%+v", f)
		}
		if hot := row(t, r, hotName, true); window == 0 && hot.Reads >= bundled.Reads {
			t.Errorf("hot first makes %g reads, natural order %g", hot.Reads, bundled.Reads)
		}
	}
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Where units come in pairs, friends are the other half: read once, nothing is wasted, and half of
// the reads are left.
func TestFriendsOfPairsPay(t *testing.T) {
	m, of := cliques(rand.New(rand.NewPCG(11, 12)), 100, 2, 400, 10)
	r := compare(t, m, on(t, "m1-max", 0, 0))
	each, once, bundled := row(t, r, friendsName, true), row(t, r, friendsOnceName, true),
		row(t, r, bundledName, false)
	if c := once.Copies; c.Repeated != 0 || c.Unneeded != 0 || once.Wasted != 0 ||
		once.Reads > bundled.Reads/2 || once.IO >= bundled.IO {
		t.Errorf("each once: %+v, %+v", once, c)
	}
	if c := each.Copies; !about(c.Repeated, c.Needed) || c.Unneeded != 0 || each.IO <= once.IO {
		t.Errorf("each: %+v, %+v", each, c)
	}
	if r.Companion.Least != 1 || r.Companion.Units != len(of) {
		t.Errorf("%+v", r.Companion)
	}
	// Chains do it without copies.
	if linear := row(t, r, linearName, true); linear.Reads > once.Reads || linear.Wasted != 0 {
		t.Errorf("%+v", linear)
	}
}

// A device without time, a trace that reads nothing: no division by zero.
func TestNothingToRead(t *testing.T) {
	r := compare(t, traceOf(64, 4, make([][]uint32, 8)), on(t, "m1-max", 0, 0, 1))
	text, err := json.Marshal(r)
	if err != nil || r.Loads != 0 || row(t, r, linearName, true).IOGain != 1 {
		t.Errorf("%s, %v", text, err)
	}
}

func TestWorkersDoNotMatter(t *testing.T) {
	src := synthetic(t, 2, 6)
	var want []byte
	for _, workers := range []int{1, 2, 5} {
		cfg := on(t, "ufs40-8gen3", 2, 0, 2)
		cfg.Workers = workers
		steps, last := 0, 0
		cfg.Progress = func(done, total int) {
			if steps++; done != steps {
				t.Errorf("step %d is the %d. one", done, steps)
			}
			last = total
		}
		got, err := json.Marshal(compare(t, src, cfg))
		if err != nil {
			t.Fatal(err)
		}
		if steps != last {
			t.Errorf("%d of %d steps", steps, last)
		}
		if want == nil {
			want = got
		} else if string(want) != string(got) {
			t.Errorf("%d workers: %s\none: %s", workers, got, want)
		}
	}
}
