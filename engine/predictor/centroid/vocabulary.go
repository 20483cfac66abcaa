package centroid

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/internal/mask"
)

// Distance is a measure between a mask and a centroid.
type Distance uint8

const (
	// Hamming is MissCost for each unit that the mask alone has, plus ExtraCost for each that the
	// centroid alone has.
	Hamming Distance = iota
	// Jaccard is that sum divided by itself plus the number of common units, in units of 2^-32; 0
	// between empty masks. (With costs of 1 it is the Jaccard distance, otherwise Tversky's.) It
	// weighs a unit more where few are active.
	Jaccard
)

// String returns "hamming" or "jaccard".
func (d Distance) String() string {
	switch d {
	case Hamming:
		return "hamming"
	case Jaccard:
		return "jaccard"
	}
	return fmt.Sprintf("distance %d", uint8(d))
}

// ParseDistance reads the form of String.
func ParseDistance(s string) (Distance, error) {
	for _, d := range []Distance{Hamming, Jaccard} {
		if s == d.String() {
			return d, nil
		}
	}
	return 0, fmt.Errorf("centroid: %w: distance %q: it must be hamming or jaccard", ErrOptions, s)
}

// metric is a distance with its costs. Distances are integers, so that their sums do not depend on
// an order.
type metric struct {
	kind        Distance
	miss, extra int
}

const (
	maxCost   = 1000
	jaccardAt = 32 // fraction bits; maxUnits·maxCost·2 is below 2^31, so that the shifted sum fits
)

func (m metric) check() error {
	if m.kind > Jaccard {
		return fmt.Errorf("centroid: %w: %v", ErrOptions, m.kind)
	}
	if m.miss < 1 || m.miss > maxCost || m.extra < 1 || m.extra > maxCost {
		return fmt.Errorf("centroid: %w: miss_cost %d and extra_cost %d: they must be 1 to %d",
			ErrOptions, m.miss, m.extra, maxCost)
	}
	return nil
}

// distance returns the distance of a mask of a units from a centroid of b units, with both units in
// common.
func (m metric) distance(a, b, both int) uint64 {
	d := uint64(m.miss)*uint64(a-both) + uint64(m.extra)*uint64(b-both)
	if m.kind == Hamming || d == 0 {
		return d
	}
	return d << jaccardAt / (d + uint64(both))
}

// between returns the distance of a mask from a centroid, whose numbers of units are known.
func (m metric) between(sample, centroid mask.Mask, a, b int32) uint64 {
	return m.distance(int(a), int(b), sample.CountAnd(centroid))
}

// nearest finds the centroid that is nearest to a mask of a units; of several, the first.
func (m metric) nearest(sample mask.Mask, a int32, centroids mask.Mask, weights []int32) (best int,
	dist uint64) {
	n := len(sample)
	best, dist = -1, ^uint64(0)
	for k, b := range weights {
		if m.distance(int(a), int(b), int(min(a, b))) >= dist {
			continue // even if one contained the other
		}
		if d := m.between(sample, centroids[k*n:(k+1)*n], a, b); d < dist {
			best, dist = k, d
		}
	}
	return best, dist
}

// share is a fraction of the members of a cluster; a unit with more votes than that is in the
// centroid.
type share struct{ part, of int }

// shares lists the votes to try. For Hamming there is one best: a unit belongs to the centroid when
// leaving it out costs more, miss·votes > extra·(members − votes). For Jaccard no vote is best for
// all clusters, so several are tried.
func (m metric) shares() []share {
	if m.kind == Hamming {
		return []share{{m.extra, m.miss + m.extra}}
	}
	const steps = 8
	all := make([]share, steps)
	for i := range all {
		all[i] = share{i, steps}
	}
	return all
}

// Vocabulary holds the centroid masks of one layer and projection. It is immutable.
type Vocabulary struct {
	units   int
	metric  metric
	masks   mask.Mask // (centroid, words)
	weights []int32   // units in each
}

// newVocabulary takes masks over.
func newVocabulary(units int, m metric, masks mask.Mask) *Vocabulary {
	v := &Vocabulary{units: units, metric: m, masks: masks}
	for n := mask.Words(units); len(masks) > 0; masks = masks[n:] {
		v.weights = append(v.weights, int32(masks[:n].Count()))
	}
	return v
}

// Count is the number of centroids.
func (v *Vocabulary) Count() int { return len(v.weights) }

// Units is the number of units of a mask.
func (v *Vocabulary) Units() int { return v.units }

// Mask returns centroid id, which must not be changed.
func (v *Vocabulary) Mask(id int) mask.Mask {
	n := mask.Words(v.units)
	return v.masks[id*n : (id+1)*n : (id+1)*n]
}

// Nearest returns the centroid nearest to a mask of as many units (the lowest among equals), and
// the distance.
func (v *Vocabulary) Nearest(sample mask.Mask) (id int, distance uint64) {
	return v.metric.nearest(sample, int32(sample.Count()), v.masks, v.weights)
}

// vocabulary returns the centroids with members, each once, the one with the most members first.
func (c *clustering) vocabulary() *Vocabulary {
	order := make([]int, 0, c.count())
	for k := range c.count() {
		if len(c.membersOf(k)) > 0 {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(len(c.membersOf(b)),
			len(c.membersOf(a)))
	})
	masks := make(mask.Mask, 0, len(order)*c.words)
	for i, k := range order {
		same := func(other int) bool { return slices.Equal(c.centroid(other), c.centroid(k)) }
		if !slices.ContainsFunc(order[:i], same) {
			masks = append(masks, c.centroid(k)...)
		}
	}
	return newVocabulary(c.units, c.metric, masks)
}
