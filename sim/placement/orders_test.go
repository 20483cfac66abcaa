package placement

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/traces"
)

// random sets, and their uses.
func randomSets(random *rand.Rand, perLayer, count int) *sets {
	s := &sets{units: perLayer, uses: make([]uint32, perLayer), every: 1}
	shares := make([]float64, perLayer)
	for u := range shares {
		shares[u] = random.Float64() * random.Float64()
	}
	for range count {
		var list []uint32
		for u := range uint32(perLayer) {
			if random.Float64() < shares[u] {
				list = append(list, u)
			}
		}
		s.lists = append(s.lists, list)
		s.add(list)
	}
	return s
}

// together counts the sets with both units.
func (s *sets) together(a, b uint32) (n uint32) {
	for _, list := range s.lists {
		if slices.Contains(list, a) && slices.Contains(list, b) {
			n++
		}
	}
	return n
}

func TestClosestIsTheSortedMatrix(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		s := randomSets(random, 1+random.IntN(60), random.IntN(12))
		k := 1 + random.IntN(5)
		var among []bool
		if random.IntN(2) == 0 {
			for range s.units {
				among = append(among, random.IntN(3) > 0)
			}
		}
		got := s.closest(k, among)
		for u := range uint32(s.units) {
			var want []friend
			for v := range uint32(s.units) {
				if n := s.together(u, v); v != u && n > 0 && (among == nil || among[u] &&
					among[v]) {
					want = append(want, friend{v, n})
				}
			}
			sort.Slice(want, func(i, j int) bool { return want[i].closer(want[j]) })
			want = append(want, make([]friend, k)...)[:k]
			if mine := got[int(u)*k : int(u+1)*k]; !slices.Equal(mine, want) {
				t.Fatalf("friends of %d are %v, by the matrix %v", u, mine, want)
			}
		}
	}
}

// reads plans the sets in an order, joined without a gap.
func reads(t *testing.T, s *sets, order []uint32) (n int) {
	t.Helper()
	geo := layout.Uniform(1, s.units, recordBytes)
	var err error
	if geo.Order, err = layout.NewOrder("test", [][]uint32{order}); err != nil {
		t.Fatal(err)
	}
	p, err := layout.NewPlanner(geo, layout.Options{Coalesce: true})
	if err != nil {
		t.Fatal(err)
	}
	var plan layout.Plan
	for _, list := range s.lists {
		p.Plan(0, list, &plan)
		n += len(plan.Requests)
	}
	return n
}

// Every pair of neighbours saves one read in each set that has both; what an order is worth is the
// sum over its neighbours. (NewOrder refuses what is not a permutation.)
func TestReadsAreUnitsWithoutLinkedNeighbours(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		s := randomSets(random, 2+random.IntN(60), 1+random.IntN(20))
		natural := make([]uint32, s.units)
		for u := range natural {
			natural[u] = uint32(u)
		}
		for name, order := range map[string][]uint32{"natural": natural, hotName: hotFirst(s),
			linearName: linear(s)} {
			want := 0
			for _, list := range s.lists {
				want += len(list)
			}
			for i := range order[1:] {
				want -= int(s.together(order[i], order[i+1]))
			}
			if got := reads(t, s, order); got != want {
				t.Errorf("%s: %d reads, want %d", name, got, want)
			}
		}
	}
}

func TestHotFirst(t *testing.T) {
	s := &sets{units: 5, uses: []uint32{1, 7, 0, 7, 3}}
	if got := hotFirst(s); !slices.Equal(got, []uint32{1, 3, 4, 0, 2}) {
		t.Errorf("%v", got)
	}
}

// By hand: 0–3 are together most often and are linked first, then 3–1; 0–1 would close a ring; 2
// was never with anyone, and 4 never used.
func TestLinearByHand(t *testing.T) {
	s := &sets{units: 5, uses: make([]uint32, 5), lists: [][]uint32{{0, 3}, {0, 3}, {0, 1, 3},
		{1, 3}, {2}}}
	for _, list := range s.lists {
		s.add(list)
	}
	if got := linear(s); !slices.Equal(got, []uint32{0, 3, 1, 2, 4}) {
		t.Errorf("%v", got)
	}
}

// Cliques larger than the partners that one round looks at become one chain each in later rounds;
// their order among each other is free.
func TestLinearFindsPlantedCliques(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, size := range []int{2, 3, 8, 40, 100} {
		m, of := cliques(random, 12, size, 60, 4)
		cfg := on(t, "m1-max", 0, 0)
		r := compare(t, m, cfg)
		natural, placed := row(t, r, bundledName, true), row(t, r, linearName, true)
		// Four cliques are four reads, fewer where two of them happen to lie side by side. With
		// cliques of two, four reads of 32 KiB keep fewer servers busy than eight of 16 KiB and may
		// take longer.
		if placed.Reads > 4 || placed.Reads < 1 || natural.Reads <= 4 || size > 2 &&
			placed.IO >= natural.IO {
			t.Errorf("cliques of %d: %g reads in natural order, %g in chains (%v, %v)", size,
				natural.Reads, placed.Reads, natural.IO, placed.IO)
		}
		known, err := learnerOf(t, m, cfg).layer(0)
		if err != nil {
			t.Fatal(err)
		}
		borders := 0
		order := linear(&known.read)
		for i := range order[1:] {
			if of[order[i]] != of[order[i+1]] {
				borders++
			}
		}
		if borders != 11 {
			t.Errorf("cliques of %d: %d borders between 12 of them", size, borders)
		}
	}
}

func learnerOf(t *testing.T, src *traces.Memory, cfg Config) *learner {
	t.Helper()
	if err := check(src, &cfg); err != nil {
		t.Fatal(err)
	}
	train, _, _, err := halves(src, src.Tokens())
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLearner(train, &cfg.Sim)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Where too much would be kept or counted, evenly spaced tokens are; uses are counted of all.
func TestLearnerIsBounded(t *testing.T) {
	m := popular(rand.New(rand.NewPCG(7, 8)), 200, 10, 80)
	cfg := on(t, "m1-max", 0, 0)
	all, err := learnerOf(t, m, cfg).layer(0)
	if err != nil || all.read.every != 1 || len(all.read.lists) != 40 {
		t.Fatalf("one in %d, %d kept, %v", all.read.every, len(all.read.lists), err)
	}
	few := learnerOf(t, m, cfg)
	few.pairs = 4000 // of about 40 · 19²
	some, err := few.layer(0)
	if err != nil {
		t.Fatal(err)
	}
	pairs := 0
	for i, list := range some.read.lists {
		pairs += len(list) * len(list)
		if !slices.Equal(list, all.read.lists[i*some.read.every]) {
			t.Errorf("set %d is %v", i, list)
		}
	}
	if some.read.every < 2 || pairs > 2*4000 || !slices.Equal(some.read.uses, all.read.uses) {
		t.Errorf("one in %d: %d pairs", some.read.every, pairs)
	}
}
