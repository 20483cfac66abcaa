package memory

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// randomTrace is sequences of tokens that keep most units of the token before.
func randomTrace(seed uint64, tokens, sequences, layers, perLayer int) Trace {
	r := rng.Stream(seed, "memory/trace")
	var list []Token
	for i := range tokens {
		length := tokens / sequences
		t := Token{Seq: uint32(i / length), Pos: uint32(i % length)}
		for l := range layers {
			need := mask.New(perLayer)
			for u := range uint32(perLayer) {
				again := t.Pos > 0 && list[i-1].Masks[l].Has(u)
				if r.Float64() < 0.05 || again && r.Float64() < 0.7 {
					need.Set(u)
				}
			}
			t.Masks = append(t.Masks, need)
		}
		list = append(list, t)
	}
	return Trace{Tokens: tokens, Layers: layers, Units: perLayer, Token: func(i int) (Token,
		error) {
		return list[i], nil
	}}
}

func small() (Model, Trace, Reads) {
	m := Model{DModel: 64, Layers: 3, Units: 200, Heads: 4, KVHeads: 2, HeadDim: 16, Vocab: 300,
		Record: 3000, Weights: Weights{Embeddings: 38_400, Attention: 73_728, Other: 5_000}}
	reads := Reads{Geometry: layout.Uniform(m.Layers, m.Units, m.Record),
		Layout: layout.Options{Align: 512, Coalesce: true}}
	return m, randomTrace(1, 60, 3, m.Layers, m.Units), reads
}

// One pass over a trace says of every window what its policy and the planner say step by step.
func TestWindowsAreWhatThePolicyNeeds(t *testing.T) {
	m, trace, reads := small()
	for _, dense := range []int{0, 1} {
		reads.Dense = dense
		w, err := WindowsOf(trace, reads, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []int{0, 1, 2, 5, 19, 20, LongestWindow} {
			want, err := NeedOf(trace, reads, policy.SlidingWindow(k))
			if err != nil {
				t.Fatal(err)
			}
			got, err := w.Need(k)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Rows, want.Rows) || got.Staging != want.Staging ||
				got.Positions != 20 || want.Positions != 20 {
				t.Errorf("window %d, %d dense: %+v, step by step %+v", k, dense, got, want)
			}
			most := units.Bytes(0)
			for l := dense; l < m.Layers; l++ {
				most = max(most, units.Bytes(w.Layers[l].Loads[k]))
			}
			if want.Staging < most*m.Record {
				t.Errorf("window %d: staging of %v for %d rows at once", k, want.Staging, most)
			}
		}
	}
}

// Largest finds what trying every window finds, for budgets from below the floor to beyond the
// longest window.
func TestLargestTriesEveryWindow(t *testing.T) {
	m, trace, reads := small()
	w, err := WindowsOf(trace, reads, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []Memory
	for k := range LongestWindow + 1 {
		a, err := w.Account(m, Config{}, k)
		if err != nil || a.Window != k {
			t.Fatalf("window %d: %+v, %v", k, a, err)
		}
		all = append(all, a)
	}
	floor, end := all[0].Total, all[LongestWindow].Total
	for budget := floor; budget <= end; budget += (end-floor)/50 + 1 {
		got, err := w.Largest(m, Config{}, budget)
		want := LongestWindow
		for all[want].Total > budget {
			want--
		}
		if err != nil || got.Window != want || got.Total != all[want].Total {
			t.Errorf("budget %v: window %d of %v, %v; want %d of %v", budget, got.Window, got.Total,
				err, want, all[want].Total)
		}
	}
	_, err = w.Largest(m, Config{}, floor-1)
	var below *BudgetError
	if !errors.Is(err, ErrBudget) || !errors.As(err, &below) || below.Floor.Total != floor ||
		!strings.Contains(err.Error(), PartAttention) ||
		!strings.Contains(err.Error(), floor.String()) {
		t.Errorf("one byte below the floor of %v: %v", floor, err)
	}
}

// Every part is what the rules of the package say, in the stated order, and they add up.
func TestParts(t *testing.T) {
	m, _, _ := small()
	c := Config{Sequences: 2, Batch: 5, Positions: 100, KVElement: 2, Features: 1, Predictor: 777,
		Dense: 1, Rows: []int{9, 40, 50}, Policy: policy.SlidingWindow(3), Staging: 5000,
		Prefetch: true}
	const set = 4 * 8 // of 200 units
	want := []Part{
		{PartEmbeddings, 38_400, 0}, {PartAttention, 73_728, 0}, {PartOther, 5_000, 0},
		{PartPredictor, 777, 0},
		{PartDense, 200 * (3000 + 40), 0},
		{PartRowCache, (40 + 50) * 3004, 0},
		{PartKV, 2 * 3 * 100 * 2 * 2 * 16 * 2, 2},
		{PartActivations, 4 * (5*(4*64+2*64+2*32+3*200+64+300) + 4*100), 0},
		{PartStaging, 5000, 0}, {PartPrefetch, 8192, 0},
		{PartBookkeeping, 5*(3*(set+48)+2*set) + 3*(set+48) + // masks
			2*(set+4*200+3*(set+24)+8*200) + 4*(40+50) + // policies, slots, what leaves
			50*(40+8+8+24+32), 0},
	}
	got := Account(m, c)
	total := units.Bytes(0)
	for _, p := range want {
		total += p.Bytes
	}
	if !slices.Equal(got.Parts, want) || got.Total != total || got.Window != 3 {
		t.Errorf("%+v\nwant %+v, together %d", got, want, total)
	}
	if text := got.String(); !strings.Contains(text, "KV cache (16-bit) 75KiB") {
		t.Errorf("%q does not name the precision of the KV cache", text)
	}
	c.KVElement, c.PrefetchLimit, m.Embed, m.Stride = 0, 1000, 32, 3072
	other := Account(m, c)
	for name, more := range map[string]units.Bytes{PartKV: got.Of(PartKV), PartPrefetch: 1000 -
		8192,
		PartActivations: -32 * 5 * 4, PartDense: 200 * 72} {
		if other.Of(name)-got.Of(name) != more {
			t.Errorf("%s: %v, was %v; want %d more", name, other.Of(name), got.Of(name), more)
		}
	}
}

// Zero values and absurd ones give an account.
func TestAccountOfAnything(t *testing.T) {
	if a := Account(Model{}, Config{}); a.Total != 0 || len(a.Parts) != 11 {
		t.Errorf("an empty model: %+v", a)
	}
	m, _, _ := small()
	m.Heads, m.KVHeads, m.Vocab = 1<<31, 1<<31, -5
	a := Account(m, Config{Positions: 1 << 40, Sequences: 1 << 30, Dense: -1, Rows: []int{-4, 1}})
	if a.Total <= 0 || a.Of(PartKV) != 1<<58 || a.Of(PartRowCache) != 3004 {
		t.Errorf("an absurd model: %v of %+v", a.Total, a.Parts)
	}
}

// RoomForRows is the most rows that fit, at most all, and two at least.
func TestRoomForRows(t *testing.T) {
	m, _, _ := small()
	c := Config{Positions: 10, Dense: 1, Policy: policy.SlidingWindow(2)}
	two, a, err := RoomForRows(m, c, 4096, 1<<40)
	if two != m.Units || err != nil {
		t.Fatalf("without end: %d rows, %v", two, err)
	}
	_, floor, err := RoomForRows(m, c, 4096, 0)
	if !errors.Is(err, ErrBudget) {
		t.Fatalf("no budget: %v", err)
	}
	last := 0
	for budget := floor.Total; budget <= a.Total; budget += 40_000 {
		n, used, err := RoomForRows(m, c, 4096, budget)
		if err != nil || n < max(last, 2) || used.Total > budget {
			t.Errorf("%v: %d rows of %v, %v; before it %d", budget, n, used.Total, err, last)
		}
		if next, _, _ := RoomForRows(m, c, 4096, used.Total); next != n {
			t.Errorf("%v: %d rows, which need %v, where %d fit", budget, n, used.Total, next)
		}
		last = n
	}
	if _, _, err := RoomForRows(m, c, 4096, floor.Total-1); !errors.Is(err, ErrBudget) {
		t.Errorf("a byte below the floor: %v", err)
	}
	c.Dense = m.Layers
	if n, a, err := RoomForRows(m, c, 4096, 1<<40); n != m.Units || err != nil ||
		a.Of(PartRowCache) != 0 {
		t.Errorf("all layers dense: %d, %v, %v", n, a, err)
	}
}

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]units.Bytes{"2GiB": 2 << 30, "1B": 1, "52%": 520,
		"0.26%": 3, "1000%": 10_000} {
		if got, err := ParseBudget(text, 1000); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "0B", "-1B", "-3%", "0%", "1001%", "NaN%", "12", "x"} {
		if got, err := ParseBudget(text, 1000); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// Errors of the trace, the policy and the layout come through.
func TestNeedRefuses(t *testing.T) {
	_, trace, reads := small()
	if _, err := NeedOf(trace, reads, policy.Spec{Kind: "hot", Pinned: 3}); !errors.Is(err,
		policy.ErrSpec) {
		t.Errorf("a policy without its ranking: %v", err)
	}
	broken := errors.New("broken")
	trace.Token = func(int) (Token, error) { return Token{}, broken }
	if _, err := NeedOf(trace, reads, policy.SlidingWindow(1)); !errors.Is(err, broken) {
		t.Errorf("a broken trace: %v", err)
	}
	if _, err := WindowsOf(trace, reads, nil); !errors.Is(err, broken) {
		t.Errorf("a broken trace, all windows: %v", err)
	}
	reads.Layout.Gap = -1
	if _, err := NeedOf(trace, reads, policy.SlidingWindow(1)); err == nil {
		t.Error("a gap of -1 gave no error")
	}
}
