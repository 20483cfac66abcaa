package batch_test

import (
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
	"github.com/windrow-sim/windrow/traces/stats"
)

// random makes a trace of sequences of the given lengths, each with one prompt token before them,
// whose masks are random.
func random(seed uint64, layers, units int, lengths ...int) *traces.Memory {
	r := rng.Stream(seed, "batch/test")
	m := &traces.Memory{Head: traces.Header{Layers: layers, Units: units, HasPredicted: true}}
	mask := func(share float64) []uint64 {
		mask := make([]uint64, m.Head.Words())
		for u := range units {
			if r.Float64() < share {
				mask[u/64] |= 1 << (u % 64)
			}
		}
		return mask
	}
	for seq, n := range lengths {
		for pos := range n + 1 {
			t := traces.Token{Seq: uint32(seq), Pos: uint32(pos), Phase: traces.PhaseOf(pos == 0),
				ID: 7}
			for range layers {
				t.Active, t.Predicted = append(t.Active, mask(0.1)), append(t.Predicted, mask(0.3))
			}
			m.List = append(m.List, t)
		}
	}
	return m
}

func stream(t *testing.T, src traces.Source) *batch.Stream {
	t.Helper()
	s, err := batch.NewStream(src)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func union(t *testing.T, s *batch.Stream, size, atLeast int) *batch.Source {
	t.Helper()
	u, err := s.Union(size, atLeast)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestOrderIsEvenlySpaced(t *testing.T) {
	s := stream(t, random(1, 1, 8, 200))
	for count := 1; count <= 70; count++ {
		lanes, err := s.Lanes(count)
		if err != nil {
			t.Fatal(err)
		}
		order := lanes.Order()
		if sorted := slices.Sorted(slices.Values(order)); len(sorted) != count || sorted[0] != 0 ||
			sorted[count-1] != count-1 || len(slices.Compact(sorted)) != count {
			t.Fatalf("%d lanes: the order %v is no permutation", count, order)
		}
		if count&(count-1) != 0 {
			continue
		}
		for n := 1; n <= count; n *= 2 {
			for i, lane := range slices.Sorted(slices.Values(order[:n])) {
				if lane != i*count/n {
					t.Errorf("%d of %d lanes: %v are not evenly spaced", n, count, order[:n])
				}
			}
		}
	}
}

func TestLanes(t *testing.T) {
	for _, c := range []struct {
		lengths              []int
		count, steps, unused int
		formed               string
	}{
		{[]int{5, 5, 5}, 3, 5, 0, "3 sequences of 5 generated tokens"},
		{[]int{5, 5, 5}, 2, 7, 1, "2 lanes of 7 generated tokens, one sequence after the other " +
			"(3 sequences)"},
		{[]int{4, 6, 5}, 3, 5, 0, "3 lanes of 5 generated tokens, one sequence after the other " +
			"(3 sequences)"},
		{[]int{10}, 4, 2, 2, "4 evenly spaced places of 1 sequences, 2 generated tokens from each"},
		{[]int{10}, 10, 1, 0, "10 evenly spaced places of 1 sequences, 1 generated tokens from " +
			"each"},
	} {
		m := random(2, 1, 8, c.lengths...)
		s := stream(t, m)
		l, err := s.Lanes(c.count)
		if err != nil {
			t.Fatal(err)
		}
		if l.Steps != c.steps || s.Tokens()-l.Used() != c.unused || l.Formed != c.formed ||
			s.Sequences() != len(c.lengths) || s.Phase() != "decode" {
			t.Errorf("%v in %d lanes: %+v, %d tokens of %d sequences, phase %s", c.lengths, c.count,
				l, s.Tokens(), s.Sequences(), s.Phase())
		}
		// Lane after lane and step after step give back the generated tokens of the trace.
		generated := slices.DeleteFunc(slices.Clone(m.List), func(t traces.Token) bool {
			return t.Phase == traces.Prefill
		})
		for lane := range l.Count {
			for step := range l.Steps {
				var got traces.Token
				if err := l.Read(lane, step, &got); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(generated[lane*l.Steps+step], got); d != "" {
					t.Fatalf("lane %d step %d (-want +got):\n%s", lane, step, d)
				}
			}
		}
	}
	s := stream(t, random(2, 1, 8, 4, 4))
	if l, _ := s.Lanes(2); l.Positions(0) != 2+2 || l.Positions(3) != 5+5 {
		t.Errorf("positions of the first and the last step: %d and %d", l.Positions(0),
			l.Positions(3))
	}
	prompts := random(2, 1, 8, 0, 0)
	if s := stream(t, prompts); s.Phase() != "all" || s.Tokens() != 2 {
		t.Errorf("a trace of prompts alone: phase %s, %d tokens", s.Phase(), s.Tokens())
	}
}

// A batch of one is the trace itself, but for what is not a mask.
func TestBatchOfOne(t *testing.T) {
	m := random(3, 2, 70, 6, 3)
	u := union(t, stream(t, m), 1, 1)
	var want, got traces.Token
	at := 0
	for i := range m.List {
		if m.List[i].Phase == traces.Prefill {
			continue
		}
		if err := m.Token(i, &want); err != nil {
			t.Fatal(err)
		}
		if err := u.Token(at, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want.Active, got.Active) + cmp.Diff(want.Predicted,
			got.Predicted); d != "" || got.Pos != uint32(at) || got.Seq != 0 {
			t.Errorf("token %d (-want +got):\n%s%+v", i, d, got)
		}
		at++
	}
	if at != u.Tokens() {
		t.Errorf("%d generated tokens became %d steps", at, u.Tokens())
	}
}

// The masks are those of a plain count over units, and the source is a trace that other packages
// take.
func TestUnionAgainstPlain(t *testing.T) {
	m := random(4, 2, 130, 9, 14, 2)
	s := stream(t, m)
	for size := 1; size <= s.Tokens(); size++ {
		var smaller [][]mask.Mask
		for atLeast := 1; atLeast <= batch.MaxAtLeast; atLeast++ {
			u := union(t, s, size, atLeast)
			lanes := u.Lanes()
			var masks [][]mask.Mask
			for step := range u.Tokens() {
				var got traces.Token
				if err := u.Token(step, &got); err != nil {
					t.Fatal(err)
				}
				for l := range m.Head.Layers {
					if want := plain(t, lanes, step, l, atLeast, false); !slices.Equal(want,
						got.Active[l]) {
						t.Fatalf("size %d, at least %d, step %d, layer %d: %x, want %x", size,
							atLeast, step, l, got.Active[l], want)
					}
					if want := plain(t, lanes, step, l, atLeast, true); !slices.Equal(want,
						got.Predicted[l]) {
						t.Fatalf("predicted, size %d, at least %d, step %d, layer %d: %x, want %x",
							size, atLeast, step, l, got.Predicted[l], want)
					}
				}
				masks = append(masks, got.Active)
				if smaller != nil && !contains(smaller[step], got.Active) {
					t.Errorf("size %d, step %d: at least %d needs what at least %d does not", size,
						step, atLeast, atLeast-1)
				}
			}
			smaller = masks
			if _, err := stats.Compute(u, stats.Options{}); err != nil {
				t.Errorf("the steps are no trace: %v", err)
			}
		}
	}
}

func plain(t *testing.T, lanes batch.Lanes, step, layer, atLeast int, predicted bool) []uint64 {
	t.Helper()
	var token traces.Token
	var counts []int
	for lane := range lanes.Count {
		if err := lanes.Read(lane, step, &token); err != nil {
			t.Fatal(err)
		}
		mask := token.Active[layer]
		if predicted {
			mask = token.Predicted[layer]
		}
		if counts == nil {
			counts = make([]int, 64*len(mask))
		}
		for u := range counts {
			counts[u] += int(mask[u/64] >> (u % 64) & 1)
		}
	}
	out := make([]uint64, len(counts)/64)
	for u, n := range counts {
		if n >= atLeast {
			out[u/64] |= 1 << (u % 64)
		}
	}
	return out
}

func contains(large, small []mask.Mask) bool {
	for l := range small {
		for w := range small[l] {
			if small[l][w]&^large[l][w] != 0 {
				return false
			}
		}
	}
	return true
}

// FuzzCounts compares the bit-sliced counts with plain ones, a mask per byte.
func FuzzCounts(f *testing.F) {
	f.Add([]byte{1, 1, 1, 1, 1})
	f.Add([]byte{0xff, 0x0f, 0x03, 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := batch.NewCounts(1)
		c.Add([]uint64{^uint64(0)})
		c.Reset()
		var counts [8]int
		for _, b := range data {
			c.Add([]uint64{uint64(b)})
			for u := range counts {
				counts[u] += int(b >> u & 1)
			}
		}
		sizes := c.Sizes()
		for m := 1; m <= batch.MaxAtLeast; m++ {
			mask := c.AtLeast(m)[0]
			for u, n := range counts {
				if got := mask>>u&1 == 1; got != (n >= m) {
					t.Errorf("unit %d is in %d masks; at least %d: %v", u, n, m, got)
				}
			}
			if int64(bits.OnesCount64(mask)) != sizes[m-1] {
				t.Errorf("at least %d: size %d of %b", m, sizes[m-1], mask)
			}
		}
	})
}

func TestErrors(t *testing.T) {
	m := random(5, 2, 70, 5)
	s := stream(t, m)
	for _, c := range []struct{ size, atLeast int }{{0, 1}, {-1, 1}, {6, 1}, {2, 0}, {2, 5}} {
		if _, err := s.Union(c.size, c.atLeast); err == nil || !strings.HasPrefix(err.Error(),
			"batch: ") {
			t.Errorf("%+v: error %v", c, err)
		}
	}
	var token traces.Token
	u := union(t, s, 2, 1)
	for _, i := range []int{-1, u.Tokens()} {
		if err := u.Token(i, &token); err == nil {
			t.Errorf("step %d of %d: no error", i, u.Tokens())
		}
	}
	for want, spoil := range map[string]func(*traces.Token){
		"active masks of 1 layers": func(t *traces.Token) { t.Active = t.Active[:1] },
		"active mask of layer 1: 1 words": func(t *traces.Token) {
			t.Active[1] = t.Active[1][:1]
		},
		"predicted masks of 0 layers": func(t *traces.Token) { t.Predicted = nil },
		"layer 0: a bit beyond unit 69 is set": func(t *traces.Token) {
			t.Predicted[0][1] |= 1 << 6
		},
	} {
		m := random(5, 2, 70, 5)
		spoil(&m.List[3])
		if _, err := batch.NewStream(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := stream(t, &traces.Memory{Head: m.Head}).Lanes(1); err == nil {
		t.Error("a lane of an empty trace: no error")
	}
}

// A step of several sequences has several magnitudes and features, so that the union of a trace
// which holds them promises neither.
func TestUnionLeavesOutWhatIsOfOneSequence(t *testing.T) {
	m := random(5, 1, 70, 4, 4)
	m.Head.HasMagnitude, m.Head.FeatureKind, m.Head.FeatureWidth = true, traces.FFNInput, 1
	for i := range m.List {
		k := &m.List[i]
		n := 0
		for _, word := range k.Active[0] {
			n += bits.OnesCount64(word)
		}
		k.Magnitude, k.Feature = [][]byte{make([]byte, n)}, [][]byte{{1, 2}}
	}
	u := union(t, stream(t, m), 2, 1)
	if h := u.Header(); h.HasMagnitude || h.FeatureKind != "" || h.FeatureWidth != 0 {
		t.Errorf("the header promises %+v", h)
	}
	got := m.List[0] // of another source
	if err := u.Token(0, &got); err != nil || got.Magnitude != nil || got.Feature != nil {
		t.Errorf("a step has magnitudes %v and features %v: %v", got.Magnitude, got.Feature, err)
	}
	if m.Head.FeatureWidth != 1 || !m.Head.HasMagnitude {
		t.Error("the trace itself was changed")
	}
}
