package probe

import (
	"context"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

// The search for what to measure next. It begins with the corners and the middle of each engine's
// grid. Then it fits, and measures next the cell whose nearest measured neighbours the fit misses
// most: there the fit and what was measured disagree. Cells far from any measured one count a
// little more, so that no corner stays unseen.
const (
	neighbours = 3
	// farWeight is the disagreement that one octave of distance is worth.
	farWeight = 0.005
	// agreed ends the search: neither do neighbours disagree by more anywhere, nor was one of the
	// last provenCells new cells further from what was predicted before it was measured.
	agreed      = 0.03
	provenCells = 4
	// refitGrowth is by how much the cells grow between fits, which take a while: fitPerCell at
	// first, and then what was seen. They may take fitShare of the time that is left.
	refitGrowth = 1.5
	fitPerCell  = 60 * units.Millisecond
	fitShare    = 0.15
	// cellsHoped is how many cells share the time, within these bounds.
	cellsHoped          = 40
	leastTime, mostTime = 20 * units.Millisecond, units.Second
	leastCells          = 3
	// A loop with more than this part of an interval's credit in flight hardly has reads that do
	// not wait.
	creditInFlight = 4
)

// search is the state between two measurements.
type search struct {
	open     []loop // not measured yet
	first    []loop // to be measured before any fit
	spec     *flash.Spec
	cores    int
	fitted   int         // cells of the last fit
	fitTook  units.Nanos // and its time
	surprise []float64   // how far the last cells were from what was predicted, as logarithms
	seen     []seen
}

// seen is a measured cell as the search uses it.
type seen struct {
	devicemodels.Cell
	off float64 // logarithm of measured over modelled
}

func newSearch(pl *plan, p *prober) *search {
	s := &search{cores: p.m.cores}
	for _, l := range pl.cells() {
		if p.limit != nil && l.Depth*creditInFlight > p.credit(l.Chunk, 1) {
			continue // nothing but the limit shows there
		}
		s.open = append(s.open, l)
	}
	for _, engine := range pl.engines {
		var own []loop
		for _, l := range s.open {
			if l.Engine == engine {
				own = append(own, l)
			}
		}
		s.first = append(s.first, cross(own)...)
	}
	return s
}

// cross returns the corners and the middle of the cells: shallowest and deepest of the smallest and
// of the largest chunk.
func cross(cells []loop) []loop {
	if len(cells) == 0 {
		return nil
	}
	least, most := cells[0].Chunk, cells[len(cells)-1].Chunk
	var list []loop
	add := func(chunk units.Bytes, last bool) {
		var of []loop
		for _, l := range cells {
			if l.Chunk == chunk {
				of = append(of, l)
			}
		}
		l := of[0]
		if last {
			l = of[len(of)-1]
		}
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	add(least, false)
	add(least, true)
	add(most, false)
	add(most, true)
	if middle := cells[len(cells)/2]; !slices.Contains(list, middle) {
		list = append(list, middle)
	}
	return list
}

// adapt measures what tells most until end, or until there is nothing left to tell.
func (g *grid) adapt(ctx context.Context, p *prober, pl *plan, end, total units.Nanos,
	step func(done, total int)) error {
	s := newSearch(pl, p)
	every := min(max(total/cellsHoped, leastTime), mostTime)
	if p.limit != nil {
		every = max(every, intervalsPerCell*p.limit.Interval)
	}
	hoped := int(max((end-p.m.now())/every, 1))
	n := 0
	for p.m.now() < end {
		if n%referenceEvery == referenceEvery-1 {
			if err := g.refer(ctx, p, pl, min(p.m.now()+every, end)); err != nil {
				return err
			}
		}
		l, ok := s.next(g, p, end)
		if !ok {
			break
		}
		now := p.m.now()
		if p.holds(l, every) {
			g.held++
			continue
		}
		if err := g.cell(ctx, p, l, min(now+every, end)); err != nil {
			return err
		}
		s.learn(g)
		n++
		step(n, max(hoped, n))
	}
	g.skipped += len(s.first) // the least that a fit needs
	return g.refer(ctx, p, pl, p.m.now()+every)
}

// next returns the cell to measure next; false when nothing is worth it.
func (s *search) next(g *grid, p *prober, end units.Nanos) (loop, bool) {
	if len(s.first) > 0 {
		l := s.first[0]
		s.first = s.first[1:]
		s.close(l)
		return l, true
	}
	s.refit(g, p, end)
	best, bestScore, most := -1, math.Inf(-1), 0.0
	for i, l := range s.open {
		disagreement, far := s.judge(l)
		most = max(most, disagreement)
		if score := disagreement*far/(1+far) + farWeight*far; score > bestScore {
			best, bestScore = i, score
		}
	}
	if best < 0 || s.proven() && most < agreed {
		return loop{}, false
	}
	l := s.open[best]
	s.close(l)
	return l, true
}

func (s *search) close(l loop) {
	s.open = slices.DeleteFunc(s.open, func(o loop) bool { return o == l })
}

// proven reports whether the last cells were as predicted.
func (s *search) proven() bool {
	return len(s.surprise) >= provenCells &&
		slices.Max(s.surprise[len(s.surprise)-provenCells:]) < agreed
}

// judge returns how far the measured neighbours of a cell are from the fit, and how far away the
// nearest of them is, in octaves.
func (s *search) judge(l loop) (disagreement, far float64) {
	for i, n := range s.near(l) {
		if i == 0 {
			far = n.distance
		}
		disagreement = max(disagreement, math.Abs(n.off))
	}
	return disagreement, far
}

type neighbour struct {
	distance float64
	off      float64
}

// near returns the nearest measured cells; another engine is as far as an octave.
func (s *search) near(l loop) []neighbour {
	var list []neighbour
	for i := range s.seen {
		c := &s.seen[i]
		d := math.Abs(math.Log2(float64(c.Chunk)/float64(l.Chunk))) +
			math.Abs(math.Log2(float64(c.Depth)/float64(l.Depth)))
		if c.Engine != string(l.Engine) {
			d++
		}
		at, _ := slices.BinarySearchFunc(list, d, func(n neighbour, d float64) int {
			if n.distance <= d { // earlier ones first
				return -1
			}
			return 1
		})
		if at < neighbours {
			list = slices.Insert(list, at, neighbour{d, c.off})
			list = list[:min(len(list), neighbours)]
		}
	}
	return list
}

// learn takes in the last cell of g: how far it is from what the fit and its neighbours' errors
// said before.
func (s *search) learn(g *grid) {
	c := g.cells[len(g.cells)-1].cell()
	if c.Tainted != "" || c.Rate <= 0 {
		return
	}
	if s.spec == nil {
		s.seen = append(s.seen, seen{Cell: c})
		return
	}
	predicted, weights := 0.0, 0.0
	for _, n := range s.near(loop{Engine: g.cells[len(g.cells)-1].Engine, Chunk: c.Chunk,
		Depth: c.Depth}) {
		w := 1 / max(n.distance, 0.5)
		predicted, weights = predicted+w*n.off, weights+w
	}
	off := s.off(&c)
	s.surprise = append(s.surprise, math.Abs(off-predicted/max(weights, 1e-9)))
	s.seen = append(s.seen, seen{Cell: c, off: off})
}

func (s *search) off(c *devicemodels.Cell) float64 {
	model := float64(s.spec.Throughput(c.Engine, s.cores, c.Chunk, c.Depth))
	return math.Log(float64(c.Rate) / max(model, 1))
}

// refit fits again when the cells have grown enough and there is time for it.
func (s *search) refit(g *grid, p *prober, end units.Nanos) {
	now := p.m.now()
	n := len(s.seen)
	cost := fitPerCell * units.Nanos(n)
	if s.fitted > 0 {
		cost = s.fitTook * units.Nanos(n) / units.Nanos(s.fitted)
	}
	if n < leastCells || float64(n) < refitGrowth*float64(s.fitted) ||
		float64(cost) > fitShare*float64(end-now) {
		return
	}
	spec, _, err := devicemodels.FitFlash(g.measured(), s.cores, g.fitOptions(s.cores, g.known()))
	s.fitted, s.fitTook = n, max(p.m.now()-now, 1)
	if err != nil {
		return // too few clean cells yet: distance alone decides
	}
	s.spec = &spec
	for i := range s.seen {
		s.seen[i].off = s.off(&s.seen[i].Cell)
	}
}
