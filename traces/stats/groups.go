package stats

import (
	"math"
	"slices"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// Group is the gain from choosing the sequences of a batch. In every step but the first, all lanes
// are split into batches of one size, in three ways. Remaining lanes are left out of all three.
// Shares are means of the union's share of the units.
type Group struct {
	Size    int     `json:"batch_count"`
	Batches int     `json:"batches_per_step_count"`
	InOrder float64 `json:"in_order_share"` // by the lanes' Order: distant lanes together
	// Known chooses anew in every step by the masks of that step, which are not known before it. No
	// choice by this rule gains more.
	Known float64 `json:"grouped_by_this_step_share"`
	// Before chooses anew in every step by the masks of the previous step, as a server could.
	Before float64 `json:"grouped_by_last_step_share"`
}

// grouping measures Groups step by step. The rule is greedy. A batch starts with the first free
// lane, and then takes the lane that makes its union over all layers grow least, the first of
// equals.
type grouping struct {
	head   *traces.Header
	sizes  []int
	order  []int
	before [][]mask.Mask // masks of the step before, (lane, layer)
	sums   [][3]int64    // by size: units in order, known, before
	steps  int64
	acc    []mask.Mask // by layer: the union of a batch
}

// newGrouping returns a grouping for the sizes that leave a choice.
func newGrouping(h *traces.Header, order, sizes []int) *grouping {
	g := &grouping{head: h, order: order, acc: mask.NewLayers(h.Layers, h.Units)}
	for _, b := range sizes {
		if b > 1 && 2*b <= len(order) {
			g.sizes = append(g.sizes, b)
		}
	}
	g.sums = make([][3]int64, len(g.sizes))
	return g
}

func (g *grouping) step(masks [][]mask.Mask) {
	if g.before != nil {
		g.steps++
		for i, b := range g.sizes {
			pool := g.order[:len(g.order)/b*b]
			for way, lanes := range [3][]int{pool, g.choose(masks, pool, b), g.choose(g.before,
				pool, b)} {
				g.sums[i][way] += g.measure(masks, lanes, b)
			}
		}
	}
	// The slices of masks are reused by the next step; the masks are not.
	g.before = make([][]mask.Mask, len(masks))
	for lane := range masks {
		g.before[lane] = slices.Clone(masks[lane])
	}
}

// choose orders the lanes of the pool: each run of size lanes is a batch.
func (g *grouping) choose(masks [][]mask.Mask, pool []int, size int) []int {
	left, chosen := slices.Clone(pool), make([]int, 0, len(pool))
	for len(left) > 0 {
		g.clear()
		at := 0
		for range size {
			g.add(masks[left[at]])
			chosen, left = append(chosen, left[at]), slices.Delete(left, at, at+1)
			at = g.closest(masks, left)
		}
	}
	return chosen
}

// closest returns the index of the lane that makes the union grow least, or 0 if none is left.
func (g *grouping) closest(masks [][]mask.Mask, left []int) (at int) {
	best := math.MaxInt
	for i, lane := range left {
		if n := g.growth(masks[lane], best); n < best {
			at, best = i, n
		}
	}
	return at
}

// growth returns the number of units that a lane adds to the union. It may stop at limit.
func (g *grouping) growth(masks []mask.Mask, limit int) (n int) {
	for l, m := range masks {
		n += m.CountAndNot(g.acc[l])
		if n >= limit {
			return n
		}
	}
	return n
}

func (g *grouping) clear() {
	for l := range g.acc {
		clear(g.acc[l])
	}
}

func (g *grouping) add(masks []mask.Mask) {
	for l, m := range masks {
		g.acc[l].Or(m)
	}
}

// measure returns the number of units of the unions of all batches.
func (g *grouping) measure(masks [][]mask.Mask, lanes []int, size int) (sum int64) {
	for batch := range slices.Chunk(lanes, size) {
		g.clear()
		for _, lane := range batch {
			g.add(masks[lane])
		}
		for _, m := range g.acc {
			sum += int64(m.Count())
		}
	}
	return sum
}

func (g *grouping) result() []Group {
	list := []Group{}
	for i, b := range g.sizes {
		n := len(g.order) / b
		all := g.steps * int64(n) * int64(g.head.Layers) * int64(g.head.Units)
		list = append(list, Group{Size: b, Batches: n, InOrder: ratio(g.sums[i][0], all),
			Known: ratio(g.sums[i][1], all), Before: ratio(g.sums[i][2], all)})
	}
	return list
}
