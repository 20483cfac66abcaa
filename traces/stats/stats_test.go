package stats_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/stats"
)

// random makes a trace of sequences of the given lengths whose units are sticky, so that gaps of
// all lengths occur.
func random(seed uint64, layers, units int, lengths ...int) *traces.Memory {
	r := rng.Stream(seed, "stats/test")
	m := &traces.Memory{Head: traces.Header{Layers: layers, Units: units, HasPredicted: true}}
	popularity := make([]float64, units)
	for u := range popularity {
		popularity[u] = math.Pow(r.Float64(), 4)
	}
	for seq, n := range lengths {
		for pos := range n {
			t := traces.Token{Seq: uint32(seq), Pos: uint32(pos), Phase: traces.Decode}
			if pos < 2 {
				t.Phase = traces.Prefill
			}
			for range layers {
				active, predicted := make([]uint64, m.Head.Words()), make([]uint64, m.Head.Words())
				for u, p := range popularity {
					if r.Float64() < p {
						active[u/64] |= 1 << (u % 64)
					}
					if r.Float64() < (p+0.1)/2 {
						predicted[u/64] |= 1 << (u % 64)
					}
				}
				t.Active, t.Predicted = append(t.Active, active), append(t.Predicted, predicted)
			}
			m.List = append(m.List, t)
		}
	}
	return m
}

func compute(t *testing.T, src traces.Source, opt stats.Options) *stats.Stats {
	t.Helper()
	s, err := stats.Compute(src, opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var approx = cmpopts.EquateApprox(1e-12, 0)

func TestComputeEqualsNaive(t *testing.T) {
	for _, lengths := range [][]int{{1}, {63}, {64}, {65}, {300}, {5, 1, 70, 64, 2, 130}} {
		m := random(1, 2, 97, lengths...)
		for _, predicted := range []bool{false, true} {
			s := compute(t, m, stats.Options{Predicted: predicted})
			for l := range 2 {
				windows, reuse := naive(m, l, predicted)
				if d := cmp.Diff(windows, s.PerLayer[l].Window, approx); d != "" {
					t.Fatalf("lengths %v, layer %d, predicted %v: windows (-naive +pass):\n%s",
						lengths, l, predicted, d)
				}
				if d := cmp.Diff(reuse, s.PerLayer[l].Reuse); d != "" {
					t.Fatalf("lengths %v, layer %d, predicted %v: reuse (-naive +pass):\n%s",
						lengths, l, predicted, d)
				}
			}
		}
	}
}

// The hits and misses must be those of the policy that the engine and the simulator use.
func TestWindowsEqualPolicy(t *testing.T) {
	m := random(2, 1, 130, 90, 3, 150)
	s := compute(t, m, stats.Options{})
	for k := 0; k <= stats.MaxWindow; k++ {
		w := policy.NewWindow(m.Head.Units, k)
		var d policy.Decision
		hits, misses := int64(0), int64(0)
		for i := range m.List {
			if i > 0 && m.List[i].Seq != m.List[i-1].Seq {
				w.Reset()
			}
			w.Step(m.List[i].Active[0], &d)
			hits, misses = hits+int64(d.Hits), misses+int64(len(d.Load))
		}
		if got := s.Total.Window; got.Hits[k] != hits || got.Misses[k] != misses {
			t.Errorf("window %d: %d hits and %d misses, the policy has %d and %d", k, got.Hits[k],
				got.Misses[k], hits, misses)
		}
	}
}

// Δ(k) = s_agg(k+1) − s_agg(k), with the last window of each sequence left out of s_agg(k):
// exactly.
func TestDeltaIsTheSlopeOfSAgg(t *testing.T) {
	whole := random(3, 1, 128, 200)
	short := &traces.Memory{Head: whole.Head, List: whole.List[:199]}
	all, butLast := compute(t, whole, stats.Options{}).Total.Window, compute(t, short,
		stats.Options{}).Total.Window
	for k := 0; k < stats.MaxWindow; k++ {
		if slope := all.SAgg[k+1] - butLast.SAgg[k]; math.Abs(slope-all.Delta[k]) > 1e-9 {
			t.Errorf("k = %d: s_agg(k+1) − s_agg'(k) = %.12g, Δ = %.12g", k, slope, all.Delta[k])
		}
		// Over all windows it holds up to one window of at most all units among the windows of the
		// sequence.
		if slope := all.SAgg[k+1] - all.SAgg[k]; math.Abs(slope-all.Delta[k]) > 128.0/float64(
			200-k) {
			t.Errorf("k = %d: s_agg(k+1) − s_agg(k) = %.6g is far from Δ = %.6g", k, slope,
				all.Delta[k])
		}
	}
}

// A trace small enough to count on paper: units 0…2, tokens {0,1} {1} {0} | {0}.
func TestHandCounted(t *testing.T) {
	m := &traces.Memory{Head: traces.Header{Layers: 1, Units: 3}}
	for i, word := range []uint64{0b011, 0b010, 0b001, 0b001} {
		m.List = append(m.List, traces.Token{Seq: uint32(i / 3), Pos: uint32(i % 3),
			Active: []mask.Mask{{word}}})
	}
	s := compute(t, m, stats.Options{})
	w := s.Total.Window
	got := []float64{w.SAgg[1], w.SAgg[2], w.SAgg[3], w.Delta[0], w.Delta[1], w.Delta[2],
		s.Total.NeverActive, s.Total.Active.Max}
	want := []float64{5.0 / 4, 2, 2, 5.0 / 4, 1.0 / 2, 0, 1.0 / 3, 2.0 / 3}
	if d := cmp.Diff(want, got, approx); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int64{5, 4, 3}, w.Misses[:3]); d != "" {
		t.Errorf("misses (-want +got):\n%s", d)
	}
	if s.Sequences != 2 || s.LongestSeq != 3 || s.ShortestSeq != 1 || s.Tokens != 4 ||
		s.Total.Reuse.FirstUse != 3 {
		t.Errorf("counts: %+v", s)
	}
}

func TestInvariants(t *testing.T) {
	s := compute(t, random(4, 3, 200, 80, 120), stats.Options{})
	for l, part := range append(s.PerLayer, s.Total) {
		w, gapsSum := part.Window, part.Reuse.FirstUse
		for _, n := range append(part.Reuse.Exact, part.Reuse.Above64...) {
			gapsSum += n
		}
		if gapsSum != part.Accesses || w.Misses[0] != part.Accesses {
			t.Errorf("layer %d: %d gaps and %d misses without a window for %d accesses", l, gapsSum,
				w.Misses[0], part.Accesses)
		}
		for k := 1; k <= stats.MaxWindow; k++ {
			if w.Misses[k] > w.Misses[k-1] || w.Hits[k]+w.Misses[k] != part.Accesses {
				t.Errorf("layer %d, window %d: %d misses after %d, %d hits", l, k, w.Misses[k],
					w.Misses[k-1], w.Hits[k])
			}
		}
	}
	if s.Prefill != 4 || s.Decode != 196 {
		t.Errorf("%d prefill and %d decode tokens", s.Prefill, s.Decode)
	}
}

func TestPredictor(t *testing.T) {
	m := &traces.Memory{Head: traces.Header{Layers: 1, Units: 8, HasPredicted: true},
		List: []traces.Token{
			{Active: []mask.Mask{{0b00001111}}, Predicted: []mask.Mask{{0b00110111}}},
		}}
	want := stats.Predictor{TrueShare: 0.5, PredictedShare: 0.625, Recall: 0.75, Precision: 0.6,
		FalsePositive: 0.5, Ratio: 1.25}
	s := compute(t, m, stats.Options{})
	if d := cmp.Diff(&want, s.Total.Predictor, approx); d != "" || s.Mask != "true" ||
		s.Accesses != 4 {
		t.Errorf("true masks: %s, %d accesses (-want +got):\n%s", s.Mask, s.Accesses, d)
	}
	s = compute(t, m, stats.Options{Predicted: true})
	if d := cmp.Diff(&want, s.Total.Predictor, approx); d != "" || s.Mask != "predicted" ||
		s.Accesses != 5 {
		t.Errorf("predicted masks: %s, %d accesses (-want +got):\n%s", s.Mask, s.Accesses, d)
	}
}

func TestWorkersDoNotChangeTheResult(t *testing.T) {
	m := random(5, 7, 100, 100, 30)
	want, err := json.Marshal(compute(t, m, stats.Options{Workers: 1}))
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{0, 2, 3, 50} {
		got, err := json.Marshal(compute(t, m, stats.Options{Workers: workers}))
		if err != nil || string(got) != string(want) {
			t.Errorf("%d workers give another result (%v)", workers, err)
		}
	}
}

func TestProgressReachesTheEnd(t *testing.T) {
	last := 0
	compute(t, random(6, 1, 10, 100), stats.Options{Progress: func(done, total int) {
		if done <= last || total != 100 {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
	}})
	if last != 100 {
		t.Errorf("progress ended at %d", last)
	}
}

// An empty trace has no means, but it is not an error and must survive JSON, which has no NaN.
func TestEmptyTrace(t *testing.T) {
	s := compute(t, &traces.Memory{Head: traces.Header{Layers: 2, Units: 5}}, stats.Options{})
	if s.Tokens != 0 || s.Sequences != 0 || s.Total.NeverActive != 1 {
		t.Errorf("%+v", s)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}

// loop is a trace of any length that takes no memory.
type loop struct {
	traces.Memory
	tokens int
}

func (l *loop) Tokens() int { return l.tokens }

func (l *loop) Token(i int, t *traces.Token) error {
	*t = l.List[i%len(l.List)]
	t.Pos = uint32(i)
	return nil
}

func TestMemoryIsIndependentOfTheLength(t *testing.T) {
	m := random(7, 2, 64, 40)
	allocations := func(tokens int) float64 {
		return testing.AllocsPerRun(3, func() {
			compute(t, &loop{*m, tokens}, stats.Options{
				Workers: 1})
		})
	}
	if short, long := allocations(100), allocations(10000); long != short {
		t.Errorf("100 tokens take %v allocations, 10,000 take %v", short, long)
	}
}

func TestErrors(t *testing.T) {
	good := func() *traces.Memory { return random(8, 2, 70, 3, 3) }
	for _, c := range []struct {
		name, want string
		spoil      func(m *traces.Memory)
		opt        stats.Options
	}{
		{"no layers", "nothing to measure", func(m *traces.Memory) { m.Head.Layers = 0 },
			stats.Options{}},
		{"no predicted masks", "the trace has none", func(m *traces.Memory) {
			m.Head.HasPredicted = false
		}, stats.Options{Predicted: true}},
		{"missing layer", "token 4: active masks of 1 layers", func(m *traces.Memory) {
			m.List[4].Active = m.List[4].Active[:1]
		}, stats.Options{}},
		{"missing predicted", "token 2: predicted masks of 0 layers", func(m *traces.Memory) {
			m.List[2].Predicted = nil
		}, stats.Options{}},
		{"short mask", "token 1: active mask of layer 1: 1 words", func(m *traces.Memory) {
			m.List[1].Active[1] = m.List[1].Active[1][:1]
		}, stats.Options{}},
		{"stray bit", "a bit beyond unit 69", func(m *traces.Memory) {
			m.List[1].Active[1][1] |= 1 << 6
		}, stats.Options{}},
		{"position repeats", "sort the trace", func(m *traces.Memory) { m.List[2].Pos = 1 },
			stats.Options{}},
		{"sequence goes back", "sort the trace", func(m *traces.Memory) { m.List[5].Seq = 0 },
			stats.Options{}},
	} {
		m := good()
		c.spoil(m)
		if _, err := stats.Compute(m, c.opt); err == nil || !strings.Contains(err.Error(),
			c.want) || !strings.HasPrefix(err.Error(), "stats: ") {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// FuzzCompute compares the pass with the plain version on traces of one byte per token: 7 units,
// and the top bit starts a new sequence.
func FuzzCompute(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0x81, 1, 0, 0, 1})
	f.Add([]byte(strings.Repeat("\x01\x00\x00", 70)))
	f.Add([]byte("\x7f" + strings.Repeat("\x00", 200) + "\x55"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 400 {
			return
		}
		m := &traces.Memory{Head: traces.Header{Layers: 1, Units: 7}}
		seq := uint32(0)
		for i, b := range data {
			seq += uint32(b >> 7)
			m.List = append(m.List, traces.Token{Seq: seq, Pos: uint32(i), Active: []mask.Mask{
				{uint64(b & 0x7f)}}})
		}
		s := compute(t, m, stats.Options{Workers: 1})
		windows, reuse := naive(m, 0, false)
		if d := cmp.Diff(windows, s.PerLayer[0].Window, approx); d != "" {
			t.Errorf("windows (-naive +pass):\n%s", d)
		}
		if d := cmp.Diff(reuse, s.PerLayer[0].Reuse); d != "" {
			t.Errorf("reuse (-naive +pass):\n%s", d)
		}
	})
}
