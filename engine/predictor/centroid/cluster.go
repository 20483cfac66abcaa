package centroid

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// Masks are the bitsets to cluster, in any order. Mask is called from one goroutine.
type Masks interface {
	Len() int
	Units() int
	Mask(i int, dst mask.Mask) error
}

// ClusterOptions configure a clustering. Zero values mean the defaults.
type ClusterOptions struct {
	Count      int      // centroids at most; 0 = 256
	Iterations int      // at most; 0 = 25
	Distance   Distance // 0 = Hamming
	// MissCost and ExtraCost weigh a unit that the mask has and the centroid does not, and the
	// opposite; 0 = 1, at most 1000.
	MissCost, ExtraCost int
	// Size, if not 0, is the number of units of every centroid: those with the most votes of its
	// members. Without a gate, centroids of K_max units are active sets that need neither padding
	// nor truncation.
	Size int
	// Memory bounds the masks that are kept, 0 = 256 MiB: of more masks a random sample is
	// clustered. Distances and assignments need 24 bytes more for each mask, and Count masks are
	// the result.
	Memory  units.Bytes
	Seed    uint64
	Workers int // 0 and 1 = the caller's thread only
	// Progress, if not nil, is called after each iteration, from one goroutine.
	Progress func(ClusterStep)
}

// ClusterStep is where a clustering stands.
type ClusterStep struct {
	Iteration, Iterations int
	// sum of the distances of all masks to their centroids, in the units of Distance; it never
	// rises
	Cost  uint64
	Moved int // masks with a new centroid
}

func (o ClusterOptions) withDefaults() (ClusterOptions, error) {
	setDefault(&o.Count, 256)
	setDefault(&o.Iterations, 25)
	setDefault(&o.MissCost, 1)
	setDefault(&o.ExtraCost, 1)
	setDefault(&o.Memory, 256*units.MiB)
	switch {
	case o.Count < 1 || o.Count > maxCount:
		return o, fmt.Errorf("centroid: %w: a vocabulary of %d centroids: it must be 1 to %d",
			ErrOptions, o.Count, maxCount)
	case o.Iterations < 0:
		return o, fmt.Errorf("centroid: %w: %d iterations", ErrOptions, o.Iterations)
	case o.Size < 0:
		return o, fmt.Errorf("centroid: %w: centroids of %d units: it must be 0 (as many as "+
			"cost least) or more", ErrOptions, o.Size)
	case o.Memory < 0:
		return o, fmt.Errorf("centroid: %w: %v of memory for masks", ErrOptions, o.Memory)
	case o.Workers < 0 || o.Workers > maxWorkers:
		return o, fmt.Errorf("centroid: %w: %d workers: it must be 0 to %d", ErrOptions, o.Workers,
			maxWorkers)
	}
	return o, o.metric().check()
}

func (o ClusterOptions) metric() metric { return metric{o.Distance, o.MissCost, o.ExtraCost} }

func setDefault[T int | units.Bytes | float64](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}

const (
	maxCount   = 1 << 14
	maxWorkers = 1 << 10
)

// Cluster makes a vocabulary by k-means over bitsets: k-means++ seeding, then in turn assignment to
// the nearest centroid (the lowest id among equals) and new centroids, until no mask moves. An
// empty centroid is replaced by the mask that is farthest from its own centroid. The result has
// fewer than Count centroids when there are fewer distinct masks. Centroids are in order of their
// number of members, the largest first.
func Cluster(ctx context.Context, masks Masks, opt ClusterOptions) (*Vocabulary, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	if opt.Size > masks.Units() {
		return nil, fmt.Errorf("centroid: %w: centroids of %d units, but masks have %d", ErrOptions,
			opt.Size, masks.Units())
	}
	if n := masks.Units(); n < 1 || n > maxUnits || masks.Len() < 1 {
		return nil, fmt.Errorf("centroid: %w: %d masks of %d units: there must be at least one "+
			"mask, of 1 to %d units", ErrSamples, masks.Len(), n, maxUnits)
	}
	pool := cpu.NewPool(opt.Workers)
	defer pool.Close()
	c := &clustering{
		ctx: ctx, pool: pool, metric: opt.metric(), units: masks.Units(),
		words: mask.Words(masks.Units()), size: opt.Size,
		rng: rng.Stream(opt.Seed, "centroid/cluster"),
	}
	if err := c.load(masks, int(max(1, int64(opt.Memory)/int64(8*c.words)))); err != nil {
		return nil, err
	}
	if err := c.seed(opt.Count); err != nil {
		return nil, err
	}
	for i := range opt.Iterations {
		moved, cost, err := c.assignAll()
		if err != nil {
			return nil, err
		}
		if opt.Progress != nil {
			opt.Progress(ClusterStep{Iteration: i + 1, Iterations: opt.Iterations, Cost: cost,
				Moved: moved})
		}
		if moved == 0 {
			break
		}
		c.reseed()
		if err := c.update(); err != nil {
			return nil, err
		}
	}
	return c.vocabulary(), nil
}

// clustering is the state of Cluster. The number of centroids is len(centroids)/words.
type clustering struct {
	ctx    context.Context
	pool   *cpu.Pool
	metric metric
	units  int
	words  int
	size   int      // units of every centroid; 0 = free
	order  []uint32 // units by their number of votes, when size is not 0
	rng    *rand.Rand

	data    mask.Mask // (mask, words)
	weight  []int32   // units in each mask
	nearest []int32   // centroid of each mask; −1 at first
	dist    []uint64  // distance to the nearest centroid

	centroids mask.Mask // (centroid, words)
	cweight   []int32
	members   []int32 // masks ordered by centroid, then index
	begin     []int   // start of each centroid's members; one more than centroids
}

func (c *clustering) mask(i int) mask.Mask     { return c.data[i*c.words : (i+1)*c.words] }
func (c *clustering) centroid(k int) mask.Mask { return c.centroids[k*c.words : (k+1)*c.words] }
func (c *clustering) count() int               { return len(c.cweight) }

// load reads the masks, or a sample of room masks drawn without replacement.
func (c *clustering) load(masks Masks, room int) error {
	n := masks.Len()
	left := min(n, room)
	c.data = make(mask.Mask, left*c.words)
	c.weight, c.nearest, c.dist = make([]int32, left), make([]int32, left), make([]uint64, left)
	at := 0
	return inBlocks(c.ctx, n, func(lo, hi int) error {
		for i := lo; i < hi; i++ {
			// each of the n−i remaining masks has the same chance
			if left < n-i && c.rng.IntN(n-i) >= left {
				continue
			}
			m := c.mask(at)
			if err := masks.Mask(i, m); err != nil {
				return err
			}
			if !m.Padded(c.units) {
				return fmt.Errorf("centroid: %w: mask %d: a bit beyond unit %d is set", ErrSamples,
					i, c.units-1)
			}
			c.weight[at], c.nearest[at] = int32(m.Count()), -1
			at++
			left--
		}
		return nil
	})
}

// seed draws the first centroids from the masks, each with a probability proportional to its
// distance from those drawn before (k-means++, Arthur and Vassilvitskii 2007; between bitsets the
// Hamming distance is the squared Euclidean one).
func (c *clustering) seed(limit int) error {
	limit = min(limit, len(c.weight))
	if c.size > 0 {
		votes := make([]uint32, c.units)
		for i := range c.weight {
			for u := range c.mask(i).Each {
				votes[u]++
			}
		}
		c.order = byVotes(votes)
	}
	c.add(c.rng.IntN(len(c.weight)))
	for i := range c.dist {
		c.dist[i] = ^uint64(0)
	}
	for {
		last := c.count() - 1
		err := c.eachMask(func(i int) {
			c.dist[i] = min(c.dist[i], c.metric.between(c.mask(i), c.centroid(last), c.weight[i],
				c.cweight[last]))
		})
		if err != nil {
			return err
		}
		total := uint64(0)
		for _, d := range c.dist {
			total += d
		}
		if total == 0 || c.count() == limit {
			return nil
		}
		at := c.rng.Uint64N(total)
		pick := 0
		for ; at >= c.dist[pick]; pick++ {
			at -= c.dist[pick]
		}
		c.add(pick)
	}
}

// add makes mask i a centroid.
func (c *clustering) add(i int) {
	c.centroids = append(c.centroids, make(mask.Mask, c.words)...)
	c.cweight = append(c.cweight, 0)
	c.become(c.count()-1, i)
}

// become makes mask i the centroid k, and sets its distance to it. With a given size, the mask is
// padded or truncated to it as active sets are.
func (c *clustering) become(k, i int) {
	copy(c.centroid(k), c.mask(i))
	if c.size > 0 {
		fill(c.mask(i), c.mask(i), c.order, c.size, c.centroid(k))
	}
	c.cweight[k] = int32(c.centroid(k).Count())
	c.dist[i] = c.metric.between(c.mask(i), c.centroid(k), c.weight[i], c.cweight[k])
}

// eachMask calls f for every mask, concurrently.
func (c *clustering) eachMask(f func(i int)) error {
	return inBlocks(c.ctx, len(c.weight), func(first, end int) error {
		c.pool.Run(end-first, 16, func(lo, hi int) {
			for i := first + lo; i < first+hi; i++ {
				f(i)
			}
		})
		return nil
	})
}

// assignAll finds the nearest centroid of every mask and groups the masks by it.
func (c *clustering) assignAll() (moved int, cost uint64, err error) {
	before := slices.Clone(c.nearest)
	err = c.eachMask(func(i int) {
		k, d := c.metric.nearest(c.mask(i), c.weight[i], c.centroids, c.cweight)
		c.nearest[i], c.dist[i] = int32(k), d
	})
	if err != nil {
		return 0, 0, err
	}
	for i, k := range c.nearest {
		cost += c.dist[i]
		if k != before[i] {
			moved++
		}
	}
	c.group()
	return moved, cost, nil
}

// group orders the masks by their centroid.
func (c *clustering) group() {
	c.begin = make([]int, c.count()+1)
	for _, k := range c.nearest {
		c.begin[k+1]++
	}
	for k := range c.count() {
		c.begin[k+1] += c.begin[k]
	}
	c.members = make([]int32, len(c.nearest))
	at := slices.Clone(c.begin)
	for i, k := range c.nearest {
		c.members[at[k]] = int32(i)
		at[k]++
	}
}

func (c *clustering) membersOf(k int) []int32 { return c.members[c.begin[k]:c.begin[k+1]] }

// reseed gives every empty centroid the mask that is farthest from its own centroid (the first
// among equals), unless that would empty another one.
func (c *clustering) reseed() {
	left := make([]int, c.count()) // members
	for k := range left {
		left[k] = len(c.membersOf(k))
	}
	for k := range left {
		if left[k] > 0 {
			continue
		}
		far := -1
		for i, d := range c.dist {
			if d > 0 && left[c.nearest[i]] > 1 && (far < 0 || d > c.dist[far]) {
				far = i
			}
		}
		if far < 0 {
			break
		}
		left[c.nearest[far]]--
		left[k]++
		c.nearest[far] = int32(k)
		c.become(k, far)
	}
	c.group()
}

// update improves the centroids.
func (c *clustering) update() error {
	if err := c.ctx.Err(); err != nil {
		return fmt.Errorf("centroid: %w", err)
	}
	c.pool.Run(c.count(), 1, func(lo, hi int) {
		votes, try := make([]uint32, c.units), mask.New(c.units)
		for k := lo; k < hi; k++ {
			c.vote(k, votes, try)
		}
	})
	return nil
}

// vote replaces centroid k by the best candidate of the metric, unless the present one costs its
// members less.
func (c *clustering) vote(k int, votes []uint32, try mask.Mask) {
	members := c.membersOf(k)
	if len(members) == 0 {
		return
	}
	clear(votes)
	cost := uint64(0)
	for _, i := range members {
		for u := range c.mask(int(i)).Each {
			votes[u]++
		}
		cost += c.metric.between(c.mask(int(i)), c.centroid(k), c.weight[i], c.cweight[k])
	}
	for candidate := range c.candidates(votes, len(members), try) {
		sum := uint64(0)
		for _, i := range members {
			sum += c.metric.between(c.mask(int(i)), try, c.weight[i], candidate)
		}
		if sum <= cost {
			cost = sum
			copy(c.centroid(k), try)
			c.cweight[k] = candidate
		}
	}
}

// candidates writes one centroid after the other into try, as the votes of n members suggest, and
// yields its number of units.
func (c *clustering) candidates(votes []uint32, n int, try mask.Mask) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		if c.size > 0 {
			clear(try)
			try.SetList(byVotes(votes)[:c.size])
			yield(int32(c.size))
			return
		}
		for _, share := range c.metric.shares() {
			clear(try)
			weight := int32(0)
			for u, v := range votes {
				if int64(v)*int64(share.of) > int64(n)*int64(share.part) {
					try.Set(uint32(u))
					weight++
				}
			}
			if !yield(weight) {
				return
			}
		}
	}
}

// byVotes orders units by their votes, most first, the lowest first among equals.
func byVotes(votes []uint32) []uint32 {
	order := make([]uint32, len(votes))
	for u := range order {
		order[u] = uint32(u)
	}
	slices.SortStableFunc(order, func(x, y uint32) int { return cmp.Compare(votes[y], votes[x]) })
	return order
}
