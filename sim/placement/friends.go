package placement

import (
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// oftenEnough is the least number of sets of a unit whose friends are more than chance.
const oftenEnough = 8

// Friends says which units are needed together, over the training split, as appendix D of LLM in a
// flash does.
type Friends struct {
	// Units is the number of units that 8 or more tokens need. All figures here are about them.
	Units int `json:"units_count"`
	// Closest[k] is the mean share of a unit's tokens that need its (k+1)-th closest friend too.
	Closest []float64 `json:"kth_closest_share"`
	Least   float64   `json:"closest_share_least"` // of the closest friend
	// Popular is the largest share of a layer's units with the same closest friend, as a mean over
	// layers.
	Popular float64 `json:"units_with_the_same_closest_share"`
	// Distinct is the share of units that are the closest friend of some unit.
	Distinct float64 `json:"distinct_closest_share"`
}

// friendSums are the sums of one layer.
type friendSums struct {
	units, distinct, popular int
	closest                  [kept]float64
	least                    float64
}

// shares measures the friends of one layer.
func (s *sets) shares(friends []friend) (f friendSums) {
	f.least = 1
	in := make([]int, s.units) // counted over the same sets as the friends
	for _, list := range s.lists {
		for _, u := range list {
			in[u]++
		}
	}
	chosen := make([]int, s.units)
	for u, n := range in {
		if n < oftenEnough {
			continue
		}
		f.units++
		for k := range f.closest {
			f.closest[k] += float64(friends[u*kept+k].count) / float64(n)
		}
		first := friends[u*kept]
		f.least = min(f.least, float64(first.count)/float64(n))
		if first.count > 0 {
			if chosen[first.unit]++; chosen[first.unit] == 1 {
				f.distinct++
			}
			f.popular = max(f.popular, chosen[first.unit])
		}
	}
	return f
}

// companion adds up the layers. Layers in which no unit is needed often enough do not count.
func (c *comparison) companion() Friends {
	f := Friends{Closest: make([]float64, kept)}
	distinct, layers := 0, 0
	for i := range c.shares {
		s := &c.shares[i]
		if s.units == 0 {
			continue
		}
		if layers == 0 || s.least < f.Least {
			f.Least = s.least
		}
		layers++
		f.Units += s.units
		distinct += s.distinct
		f.Popular += float64(s.popular) / float64(s.units)
		for k, sum := range s.closest {
			f.Closest[k] += sum
		}
	}
	if layers > 0 {
		f.Popular /= float64(layers)
		f.Distinct = float64(distinct) / float64(f.Units)
		for k := range f.Closest {
			f.Closest[k] /= float64(f.Units)
		}
	}
	return f
}

// bundles places the records of every unit's closest friends after its own, and counts the records
// that reads fetch.
type bundles struct {
	with    [][]uint32 // by layer: the friends of unit u are u·n … u·n+n−1
	n       int
	stamp   []int32 // of every unit: 2·read if read number read needs it, 2·read+1 when fetched
	read    int32
	chosen  []uint32
	hottest []mask.Mask
	sum     copies
}

// copies counts records.
type copies struct{ fetched, needed, repeated, unneeded, hottest, hottestLoads int64 }

// newBundles takes n friends of each unit. A unit that no token needs has no friends: it gets the
// hottest units, which are friends of all.
func newBundles(friends [][]friend, hottest []mask.Mask, units, n int) *bundles {
	b := &bundles{with: make([][]uint32, len(friends)), n: n, stamp: make([]int32, units),
		hottest: hottest}
	for l, list := range friends {
		hot := hottest[l].AppendUnits(nil)
		for u := range units {
			for k := range n {
				f := list[u*kept+k]
				if f.count == 0 {
					f.unit = hot[k%len(hot)]
				}
				b.with[l] = append(b.with[l], f.unit)
			}
		}
	}
	return b
}

// choose returns the bundles to read for the units of load, ascending: all of them or, with once,
// those whose record no earlier bundle fetches.
func (b *bundles) choose(layer int, load []uint32, once bool) []uint32 {
	b.read++
	needed, fetched := 2*b.read, 2*b.read+1
	for _, u := range load {
		b.stamp[u] = needed
	}
	b.sum.needed += int64(len(load))
	b.chosen = b.chosen[:0]
	fetch := func(u uint32) {
		b.sum.fetched++
		b.sum.hottest += b.hot(layer, u)
		switch b.stamp[u] {
		case needed:
			b.stamp[u] = fetched
		case fetched:
			b.sum.repeated++
		default:
			b.sum.unneeded++
		}
	}
	for _, u := range load {
		b.sum.hottestLoads += b.hot(layer, u)
		if once && b.stamp[u] == fetched {
			continue
		}
		b.chosen = append(b.chosen, u)
		fetch(u)
		for _, f := range b.with[layer][int(u)*b.n:][:b.n] {
			fetch(f)
		}
	}
	return b.chosen
}

// hot is 1 for a unit of the hottest 1 % of its layer, else 0.
func (b *bundles) hot(layer int, u uint32) int64 {
	if b.hottest[layer].Has(u) {
		return 1
	}
	return 0
}

// evaluateFriends simulates friends in the order of sim.Run. Reads differ. Decisions and compute
// are the same.
func (c *comparison) evaluateFriends(once bool) (Row, error) {
	row := Row{Layout: friendsName, Joined: true}
	if once {
		row.Layout = friendsOnceName
	}
	b := newBundles(c.friends, c.hottest, c.head.Units, c.cfg.Friends)
	p, err := c.newPass(b, once)
	if err != nil {
		return row, err
	}
	var t traces.Token
	var sequences traces.Sequences
	for i := range c.test.count {
		if err := c.test.Token(i, &t); err != nil {
			return row, err
		}
		if sequences.Changes(t.Seq) {
			p.Reset()
		}
		if err := p.step(&t); err != nil {
			return row, err
		}
	}
	row.Flash = flashBytes(&p.cfg.Geometry)
	row.set(c.test.count, b.sum.needed, p.sum.Requests, p.sum.Bytes, c.head.UnitBytes)
	row.IO, row.Token = mean(p.sum.Parts[traces.PartIO], c.test.count), mean(p.Now(),
		c.test.count)
	prediction, _ := p.cfg.Predict(p.cfg.NewHost(c.head), p.sum.Summary(c.test.count))
	row.predict(prediction)
	n := float64(c.test.count)
	hot := 0
	for _, m := range c.hottest {
		hot += m.Count()
	}
	row.Copies = &Copies{
		Fetched: float64(b.sum.fetched) / n, Needed: float64(b.sum.needed) / n,
		Repeated: float64(b.sum.repeated) / n, Unneeded: float64(b.sum.unneeded) / n,
		Hottest:      float64(b.sum.hottest) / n / float64(hot),
		HottestLoads: float64(b.sum.hottestLoads) / n / float64(hot),
	}
	return row, nil
}

// pass is the state of a run like sim.Run's, with the reads of bundles.
type pass struct {
	*sim.Machine
	cfg     sim.Config
	bundles *bundles
	once    bool
	sum     sim.Tally
}

func (c *comparison) newPass(b *bundles, once bool) (*pass, error) {
	p := &pass{cfg: c.cfg.Sim, bundles: b, once: once}
	p.cfg.Geometry = layout.Uniform(c.head.Layers, c.head.Units,
		c.head.UnitBytes*units.Bytes(1+b.n))
	p.cfg.Layout.Coalesce, p.cfg.Layout.Gap = true, 0
	var err error
	p.Machine, err = sim.NewMachine(&p.cfg, c.head, sim.MachineOptions{Policies: c.test,
		Seed: c.head.Seed})
	return p, err
}

// step simulates one token.
func (p *pass) step(t *traces.Token) error {
	for l, need := range t.Masks(p.cfg.Predicted) {
		work, load := p.Decide(l, need)
		times := p.Charge(int(t.Pos), &work)
		step, err := p.Execute(l, &work, p.bundles.choose(l, load, p.once), &times)
		if err != nil {
			return err
		}
		p.sum.Step(&step)
	}
	last := p.ChargeToken()
	p.sum.Token(&last, p.EndToken(&last).Took)
	return nil
}
