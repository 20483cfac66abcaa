package centroid

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// list is masks in memory.
type list struct {
	units int
	masks []mask.Mask
}

func (l list) Len() int   { return len(l.masks) }
func (l list) Units() int { return l.units }
func (l list) Mask(i int, dst mask.Mask) error {
	copy(dst, l.masks[i])
	return nil
}

// planted draws patterns and masks that are one of them with some bits flipped.
func planted(units, patterns, masks int, density, noise float64, seed uint64) (truth []mask.Mask,
	l list, from []int) {
	r := rng.Stream(seed, "test/planted")
	for range patterns {
		truth = append(truth, random(units, density, r))
	}
	l.units = units
	for range masks {
		k := r.IntN(patterns)
		m := slices.Clone(truth[k])
		for u := range units {
			if r.Float64() < noise {
				m[u/64] ^= 1 << (u % 64)
			}
		}
		l.masks, from = append(l.masks, m), append(from, k)
	}
	return truth, l, from
}

func random(units int, density float64, r *rand.Rand) mask.Mask {
	m := mask.New(units)
	for u := range units {
		if r.Float64() < density {
			m.Set(uint32(u))
		}
	}
	return m
}

func cluster(t *testing.T, m Masks, opt ClusterOptions) *Vocabulary {
	t.Helper()
	v, err := Cluster(context.Background(), m, opt)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func allMasks(v *Vocabulary) (all []mask.Mask) {
	for id := range v.Count() {
		all = append(all, v.Mask(id))
	}
	return all
}

// TestClusterFindsPlantedPatterns: with noise below a half, the majority of many noisy copies is
// the pattern, bit for bit.
func TestClusterFindsPlantedPatterns(t *testing.T) {
	for _, distance := range []Distance{Hamming, Jaccard} {
		truth, masks, _ := planted(200, 8, 1000, 0.3, 0.08, 1)
		v := cluster(t, masks, ClusterOptions{Count: 8, Distance: distance, Seed: 1})
		for k, want := range truth {
			if !slices.ContainsFunc(allMasks(v), func(m mask.Mask) bool {
				return slices.Equal(m, want)
			}) {
				id, d := v.Nearest(want)
				t.Errorf("%v: pattern %d is not found; centroid %d is nearest, at %d", distance, k,
					id, d)
			}
		}
	}
}

// TestCostNeverRises is invariant 1, on masks without structure, where clustering is hardest, and
// with centroids that lose all members.
func TestCostNeverRises(t *testing.T) {
	r := rng.Stream(3, "test/random")
	l := list{units: 90}
	for range 300 {
		l.masks = append(l.masks, random(90, 0.1+0.4*r.Float64(), r))
	}
	for _, opt := range []ClusterOptions{
		{Count: 40}, {Count: 40, MissCost: 7}, {Count: 40, MissCost: 2, ExtraCost: 5},
		{Count: 40, Distance: Jaccard}, {Count: 40, Distance: Jaccard, MissCost: 4},
		{Count: 40, Size: 20}, {Count: 40, Size: 70, MissCost: 3}, {Count: 40, Size: 30,
			Distance: Jaccard},
	} {
		var costs []uint64
		opt.Progress = func(s ClusterStep) { costs = append(costs, s.Cost) }
		v := cluster(t, l, opt)
		if len(costs) < 3 || costs[len(costs)-1] >= costs[0] {
			t.Errorf("%+v: costs %v do not fall", opt.metric(), costs)
		}
		for i := 1; i < len(costs); i++ {
			if costs[i] > costs[i-1] {
				t.Errorf("%+v: the cost rises from %d to %d", opt.metric(), costs[i-1], costs[i])
			}
		}
		for id := range v.Count() {
			if n := v.Mask(id).Count(); opt.Size > 0 && n != opt.Size {
				t.Errorf("%+v: centroid %d has %d units, want %d", opt.metric(), id, n, opt.Size)
			}
		}
		sum := uint64(0)
		for _, m := range l.masks {
			_, d := v.Nearest(m)
			sum += d
		}
		if sum > costs[len(costs)-1] {
			t.Errorf("%+v: the vocabulary costs %d, the last iteration %d", opt.metric(), sum,
				costs[len(costs)-1])
		}
	}
}

// TestWorkersChangeNothing: the same vocabulary for any number of workers, another one for another
// seed.
func TestWorkersChangeNothing(t *testing.T) {
	_, masks, _ := planted(130, 12, 2500, 0.2, 0.15, 5)
	opt := ClusterOptions{Count: 24, Seed: 9, MissCost: 3}
	want := cluster(t, masks, opt)
	for _, workers := range []int{2, 3, 8} {
		opt.Workers = workers
		if got := cluster(t, masks, opt); !slices.Equal(got.masks, want.masks) {
			t.Errorf("%d workers give another vocabulary", workers)
		}
	}
	opt.Seed = 10
	if got := cluster(t, masks, opt); slices.Equal(got.masks, want.masks) {
		t.Error("another seed gives the same vocabulary")
	}
}

// plainKMeans is Lloyd's algorithm over []bool from given centroids with Hamming costs, without any
// of the shortcuts.
func plainKMeans(masks, centroids [][]bool, miss, extra, iterations int) [][]bool {
	cost := func(m, c []bool) (d int) {
		for u := range m {
			switch {
			case m[u] && !c[u]:
				d += miss
			case c[u] && !m[u]:
				d += extra
			}
		}
		return d
	}
	nearest := make([]int, len(masks))
	for range iterations {
		for i, m := range masks {
			best := math.MaxInt
			for k, c := range centroids {
				if d := cost(m, c); d < best {
					best, nearest[i] = d, k
				}
			}
		}
		for k, c := range centroids {
			if !slices.Contains(nearest, k) {
				panic("the twin does not reseed: choose masks that need none")
			}
			for u := range c {
				without, with := 0, 0
				for i, m := range masks {
					if nearest[i] == k && m[u] {
						without += miss
					} else if nearest[i] == k {
						with += extra
					}
				}
				c[u] = with < without
			}
		}
	}
	return centroids
}

func bools(m mask.Mask, n int) []bool {
	b := make([]bool, n)
	for u := range b {
		b[u] = m.Has(uint32(u))
	}
	return b
}

// TestClusterIsPlainKMeans follows the plain twin from the same seeds.
func TestClusterIsPlainKMeans(t *testing.T) {
	const n = 70
	for seed := range uint64(6) {
		_, masks, _ := planted(n, 5, 120, 0.4, 0.2, seed)
		miss, extra := int(1+seed), int(1+seed%3)
		opt := ClusterOptions{Count: 4, Iterations: 4, MissCost: miss, ExtraCost: extra, Seed: seed}
		c := &clustering{ctx: context.Background(), pool: nil, metric: opt.metric(), units: n,
			words: mask.Words(n), rng: rng.Stream(seed, "centroid/cluster")}
		c.pool = newTestPool(t, 1)
		if err := errors.Join(c.load(masks, masks.Len()), c.seed(opt.Count)); err != nil {
			t.Fatal(err)
		}
		var plain, start [][]bool
		for _, m := range masks.masks {
			plain = append(plain, bools(m, n))
		}
		for k := range c.count() {
			start = append(start, bools(c.centroid(k), n))
		}
		want := plainKMeans(plain, start, miss, extra, opt.Iterations)
		v := cluster(t, masks, opt)
		if v.Count() != len(want) {
			t.Fatalf("seed %d: %d centroids, want %d", seed, v.Count(), len(want))
		}
		for _, m := range allMasks(v) {
			if !slices.ContainsFunc(want, func(w []bool) bool {
				return slices.Equal(w,
					bools(m, n))
			}) {
				t.Errorf("seed %d: the plain twin has no centroid %v", seed, m.AppendUnits(nil))
			}
		}
	}
}

// exactMedoids tries every choice of count masks as centroids.
func exactMedoids(m metric, masks []mask.Mask, count int) uint64 {
	best := ^uint64(0)
	var chosen []mask.Mask
	var try func(from int)
	try = func(from int) {
		if len(chosen) == count {
			sum := uint64(0)
			for _, mask := range masks {
				near := ^uint64(0)
				for _, c := range chosen {
					near = min(near, m.between(mask, c, int32(mask.Count()),
						int32(c.Count())))
				}
				sum += near
			}
			best = min(best, sum)
			return
		}
		for i := from; i < len(masks); i++ {
			chosen = append(chosen, masks[i])
			try(i + 1)
			chosen = chosen[:len(chosen)-1]
		}
	}
	try(0)
	return best
}

// TestClusterAgainstExactMedoids: a centroid may be any mask, a medoid only one that was seen. So
// the best clustering costs no more than the best medoids, and k-means, which finds a local
// optimum, gets there from one of a few seeds. By the triangle inequality the best medoids cost at
// most twice the best centroids when both costs are 1.
func TestClusterAgainstExactMedoids(t *testing.T) {
	for _, distance := range []Distance{Hamming, Jaccard} {
		_, masks, _ := planted(40, 3, 18, 0.4, 0.12, 4)
		opt := ClusterOptions{Count: 3, Distance: distance}
		exact := exactMedoids(metric{distance, 1, 1}, masks.masks, 3)
		lowest := ^uint64(0)
		for opt.Seed = range 8 {
			cluster(t, masks, withLast(opt, &lowest))
		}
		if lowest > exact {
			t.Errorf("%v: the best of 8 seeds costs %d, exact medoids %d", distance, lowest, exact)
		}
		if distance == Hamming && exact > 2*lowest {
			t.Errorf("exact medoids cost %d, more than twice %d: one of the two is wrong", exact,
				lowest)
		}
	}
}

// withLast notes the lowest cost in low.
func withLast(opt ClusterOptions, low *uint64) ClusterOptions {
	opt.Progress = func(s ClusterStep) { *low = min(*low, s.Cost) }
	return opt
}

// TestCostsMoveTheVote: with equal costs a unit needs more than half of the members, with a miss of
// 3 more than a quarter.
func TestCostsMoveTheVote(t *testing.T) {
	l := list{units: 4, masks: []mask.Mask{bitset(4, 0, 1), bitset(4, 0, 1), bitset(4, 0, 2),
		bitset(4, 0, 2), bitset(4, 0, 3)}}
	for _, c := range []struct {
		miss, extra int
		want        []uint32
	}{{1, 1, []uint32{0}}, {2, 1, []uint32{0, 1, 2}}, {3, 1, []uint32{0, 1, 2}},
		{5, 1, []uint32{0, 1, 2, 3}}, {1, 1000, []uint32{0}}} {
		v := cluster(t, l, ClusterOptions{Count: 1, MissCost: c.miss, ExtraCost: c.extra})
		if got := v.Mask(0).AppendUnits(nil); !slices.Equal(got, c.want) {
			t.Errorf("miss %d, extra %d: centroid %v, want %v", c.miss, c.extra, got, c.want)
		}
	}
}

// TestSizeKeepsTheMostVoted: three of four units, whatever the costs.
func TestSizeKeepsTheMostVoted(t *testing.T) {
	l := list{units: 5, masks: []mask.Mask{bitset(5, 4), bitset(5, 4), bitset(5, 1, 4),
		bitset(5, 3), bitset(5, 2, 3)}}
	v := cluster(t, l, ClusterOptions{Count: 1, Size: 3})
	if got := v.Mask(0).AppendUnits(nil); v.Count() != 1 || !slices.Equal(got, []uint32{1, 3, 4}) {
		t.Errorf("got %v, want 4 (three votes), 3 (two), and 1, the lower one of those with one "+
			"vote", got)
	}
}

func TestFewDistinctMasks(t *testing.T) {
	l := list{units: 10}
	for i := range 30 {
		l.masks = append(l.masks, bitset(10, uint32(i%3)))
	}
	v := cluster(t, l, ClusterOptions{Count: 8})
	if v.Count() != 3 {
		t.Errorf("%d centroids for 3 distinct masks", v.Count())
	}
	l.masks = []mask.Mask{bitset(10), bitset(10)}
	if v = cluster(t, l, ClusterOptions{Count: 8}); v.Count() != 1 || v.Mask(0).Count() != 0 {
		t.Errorf("empty masks give %v", allMasks(v))
	}
}

// TestReseed takes all members from a centroid by hand: it becomes the mask that is farthest from
// its own, unless that is the only member of another.
func TestReseed(t *testing.T) {
	masks := []mask.Mask{bitset(8, 0), bitset(8, 0, 1), bitset(8, 5, 6, 7),
		bitset(8, 1, 2, 3, 4, 5)}
	c := &clustering{
		metric: metric{Hamming, 1, 1}, units: 8, words: 1, data: slices.Concat(masks...),
		weight:  []int32{1, 2, 3, 5},
		nearest: []int32{0, 0, 0, 2}, dist: []uint64{0, 1, 4, 5}, centroids: []uint64{1, 1 << 4, 0},
		cweight: []int32{1, 1, 0},
	}
	c.group()
	c.reseed()
	if !slices.Equal(c.nearest, []int32{0, 0, 1, 2}) || c.dist[2] != 0 ||
		!slices.Equal(c.centroid(1), masks[2]) || c.cweight[1] != 3 {
		t.Errorf("nearest %v, distances %v, centroids %v", c.nearest, c.dist, c.centroids)
	}
	if !slices.Equal(c.membersOf(1), []int32{2}) {
		t.Errorf("members %v", c.membersOf(1))
	}
}

// TestMemoryBoundsTheSample: of more masks than fit, a sample is clustered, which still finds the
// patterns.
func TestMemoryBoundsTheSample(t *testing.T) {
	truth, masks, _ := planted(64, 4, 4000, 0.4, 0.05, 7)
	v := cluster(t, masks, ClusterOptions{Count: 4, Memory: 8 * 300, Seed: 2})
	for _, want := range truth {
		if _, d := v.Nearest(want); d != 0 {
			t.Errorf("a pattern is %d from the nearest centroid", d)
		}
	}
	c := &clustering{ctx: context.Background(), words: 1, units: 64, rng: rng.Stream(1, "x")}
	if err := c.load(masks, 300); err != nil || len(c.weight) != 300 || c.weight[299] == 0 {
		t.Errorf("the sample has %d masks, the last of %d units: %v", len(c.weight), c.weight[299],
			err)
	}
}

func TestClusterRefusals(t *testing.T) {
	good := list{units: 4, masks: []mask.Mask{{1}}}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context
		masks list
		opt   ClusterOptions
		want  error
	}{
		"count":      {context.Background(), good, ClusterOptions{Count: -1}, ErrOptions},
		"iterations": {context.Background(), good, ClusterOptions{Iterations: -1}, ErrOptions},
		"cost":       {context.Background(), good, ClusterOptions{MissCost: 1001}, ErrOptions},
		"distance":   {context.Background(), good, ClusterOptions{Distance: 2}, ErrOptions},
		"size":       {context.Background(), good, ClusterOptions{Size: -1}, ErrOptions},
		"large size": {context.Background(), good, ClusterOptions{Size: 5}, ErrOptions},
		"memory":     {context.Background(), good, ClusterOptions{Memory: -units.KiB}, ErrOptions},
		"workers":    {context.Background(), good, ClusterOptions{Workers: -1}, ErrOptions},
		"no masks":   {context.Background(), list{units: 4}, ClusterOptions{}, ErrSamples},
		"no units": {context.Background(), list{masks: []mask.Mask{{}}}, ClusterOptions{},
			ErrSamples},
		"stray bit": {context.Background(), list{units: 4, masks: []mask.Mask{{16}}},
			ClusterOptions{}, ErrSamples},
		"cancelled": {cancelled, good, ClusterOptions{}, context.Canceled},
	} {
		if _, err := Cluster(c.ctx, c.masks, c.opt); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestDistanceNames(t *testing.T) {
	for _, d := range []Distance{Hamming, Jaccard} {
		if got, err := ParseDistance(d.String()); err != nil || got != d {
			t.Errorf("%v: %v, %v", d, got, err)
		}
	}
	if _, err := ParseDistance("euclid"); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
}

// TestDistancesByHand: a mask of {0,1,2} and a centroid of {2,3} share one unit of four.
func TestDistancesByHand(t *testing.T) {
	mask, centroid := bitset(8, 0, 1, 2), bitset(8, 2, 3)
	for _, c := range []struct {
		m    metric
		want uint64
	}{
		{metric{Hamming, 1, 1}, 3}, {metric{Hamming, 10, 1}, 21}, {metric{Hamming, 1, 10}, 12},
		{metric{Jaccard, 1, 1}, 3 << 32 / 4}, {metric{Jaccard, 2, 1}, 5 << 32 / 6},
	} {
		if got := c.m.between(mask, centroid, 3, 2); got != c.want {
			t.Errorf("%+v: %d, want %d", c.m, got, c.want)
		}
	}
}

func ExampleCluster() {
	masks := list{units: 6, masks: []mask.Mask{bitset(6, 0, 1), bitset(6, 0, 1, 2), bitset(6, 0, 1),
		bitset(6, 4, 5), bitset(6, 4, 5)}}
	v, err := Cluster(context.Background(), masks, ClusterOptions{Count: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for id := range v.Count() {
		fmt.Println(v.Mask(id).AppendUnits(nil))
	}
	// Output:
	// [0 1]
	// [4 5]
}
