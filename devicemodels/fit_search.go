package devicemodels

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/rng"
)

// search minimises the log error over the logarithms of the free parameters. Logarithms keep every
// parameter positive and give all of them the same scale. The number of servers is a real number
// until the end.
type search struct {
	points  []point
	engines []hostCost // in order of name
	params  []param    // the five of the device, then the unknown costs of engines
	most    int        // deepest loop measured
	base    flash.Loop // the fixed part of the closed form
	extra   float64    // s; added to the LTFB of reads over the whole device, from Known.Spans
	spread  bool       // Known.Spans gives the request limit of such reads
	opt     FitOptions
}

// The parameters of the device, in order of search.params.
const (
	paramLTFB     = iota // s
	paramPerByte         // s/B of one server
	paramLinkByte        // s/B of the link
	paramServers
	paramPerIO // s per request at the request limit
	deviceParams
)

// param is one parameter: its start, and whether it is fixed.
type param struct {
	start float64 // logarithm
	fixed bool
}

// point is a clean cell in the units of the closed form.
type point struct {
	engine         int
	chunk, depth   float64
	logRequestRate float64 // of the device, between the stalls of a limit
	logLimited     float64 // as measured, with the limit
	weight         float64
}

type hostCost struct {
	name   string
	cores  float64
	serial bool
	known  float64 // s; used when param < 0
	param  int     // index in params
	fixed  bool    // the whole cost is from Known
}

// shape is one structure of a device.
type shape struct {
	placement flash.Placement
	ceiling   bool
}

// candidate is the best θ found for a shape.
type candidate struct {
	shape
	theta []float64 // of all params
	loss  float64
}

// Weights of the priors, against a mean squared log error of 1e-4 for 1 % noise. The first keeps a
// parameter at its start when no cell depends on it. The second assigns latency to the device
// rather than to the host where the cells cannot tell. The third prefers fewer servers: a fit must
// not promise parallelism that no cell shows.
const (
	priorStart   = 1e-6
	priorHost    = 1e-4
	priorServers = 1e-6
)

// noiseFloor is the least mean squared log error of repeated measurements of one cell (0.5 %). A
// smaller gain does not make a shape better.
const noiseFloor = 2.5e-5

// unsteadyWeight is the weight of an unsteady cell relative to a steady one.
const unsteadyWeight = 0.05

// weightNoise is the relative error, from a cell's confidence interval, that halves its weight.
const weightNoise = 0.02

func newSearch(clean []Cell, cores int, opt FitOptions) (*search, error) {
	s := &search{opt: opt, base: opt.Known.Loop(1, true)}
	// A limited cell takes part with the device's rate between the stalls; judge applies the limit
	// again.
	s.base.LimitByte, s.base.LimitIO = 0, 0
	for _, span := range opt.Known.Spans {
		if span.Within == 0 {
			s.extra, s.spread = span.ExtraLTFB.Seconds(), span.MaxIOPS > 0
		}
	}
	index := map[string]int{}
	for _, c := range clean {
		index[c.Engine] = 0
		s.most = max(s.most, c.Depth)
	}
	costs := 0
	for i, name := range slices.Sorted(maps.Keys(index)) {
		index[name] = i
		h, known := opt.hostCost(name, cores)
		if !known {
			h.param = deviceParams + costs
			costs++
		}
		s.engines = append(s.engines, h)
	}
	for _, c := range clean {
		relative := 0.0
		if c.RateLow > 0 && c.RateHigh > c.RateLow {
			relative = float64(c.RateHigh-c.RateLow) / float64(c.Rate) / (2 * 1.96)
		}
		p := point{
			engine: index[c.Engine], chunk: float64(c.Chunk), depth: float64(c.Depth),
			logRequestRate: math.Log(float64(c.Rate) / float64(c.Chunk)),
			weight: weightNoise * weightNoise / (weightNoise*weightNoise +
				relative*relative),
		}
		if c.Quality == Unsteady {
			p.weight *= unsteadyWeight
		}
		p.logLimited = p.logRequestRate
		if stalled, ok := stallsOf(&c); ok && opt.Known.Limit != nil {
			p.logRequestRate = math.Log(stalled.burst(&c) / float64(c.Chunk))
		}
		s.points = append(s.points, p)
	}
	s.guess(costs)
	return s, s.fix()
}

// hostCost returns the cost of an engine by the options, and whether it is known.
func (o *FitOptions) hostCost(name string, cores int) (h hostCost, known bool) {
	serial := o.Serial
	if serial == nil {
		serial = ioengine.SerialNames()
	}
	h = hostCost{name: name, param: -1, serial: slices.Contains(serial, name), cores: 1}
	cost, known := o.HostCost[name]
	h.known = cost.Seconds()
	if fixed, given := o.fixedEngine(name); given {
		h.fixed, known = true, true
		h.serial, h.known = fixed.Serial, (fixed.Submit + fixed.Complete).Seconds()
	}
	if !h.serial {
		h.cores = float64(max(cores, 1))
	}
	return h, known
}

// guess estimates the starts from the cells: the shallowest loops show a lone request, the fastest
// cell shows the link, and the highest request rate shows the request limit.
func (s *search) guess(costs int) {
	small, large := s.points[0], s.points[0]
	fastest, most := 0.0, 0.0
	for _, p := range s.points {
		fastest = max(fastest, math.Exp(p.logRequestRate)*p.chunk)
		most = max(most, math.Exp(p.logRequestRate))
		if p.depth < small.depth || p.depth == small.depth && p.chunk < small.chunk {
			small = p
		}
		if p.depth < large.depth || p.depth == large.depth && p.chunk > large.chunk {
			large = p
		}
	}
	lone := small.depth / math.Exp(small.logRequestRate)
	perByte := 0.0
	if large.chunk > small.chunk {
		perByte = (large.depth/math.Exp(large.logRequestRate) - lone) / (large.chunk - small.chunk)
	}
	ltfb := max(lone-small.chunk*max(perByte, 0), lone/10)
	for _, v := range []float64{ltfb, max(perByte, 0.1/fastest), 1 / fastest, 1, 1 / most} {
		s.params = append(s.params, param{start: math.Log(v)})
	}
	for range costs {
		s.params = append(s.params, param{start: math.Log(0.02 * ltfb)})
	}
}

// fix sets the parameters in opt.Fixed to their known values.
func (s *search) fix() error {
	known := s.opt.Known
	values := map[string]struct {
		param int
		value float64
	}{
		"flash.ltfb":        {paramLTFB, known.LTFB.Seconds()},
		"flash.server_rate": {paramPerByte, 1 / float64(known.ServerRate)},
		"flash.link_rate":   {paramLinkByte, 1 / float64(known.LinkRate)},
		"flash.servers":     {paramServers, float64(known.Servers)},
		"flash.max_iops":    {paramPerIO, 1 / float64(known.MaxIOPS)},
	}
	for _, name := range s.opt.Fixed {
		if name == "flash.placement" {
			continue // see shapes
		}
		if engine, ok := strings.CutPrefix(name, enginePrefix); ok {
			if _, known := s.opt.Known.Engines[engine]; !known {
				return fmt.Errorf("devicemodels: fit: %q is fixed, but no cost of it is known: %w",
					name, ErrFit)
			}
			continue // see newSearch
		}
		v, ok := values[name]
		if !ok {
			return fmt.Errorf("devicemodels: fit: %q cannot be fixed; flash.placement, %sNAME, "+
				"%v can: %w", name, enginePrefix, slices.Sorted(maps.Keys(values)), ErrFit)
		}
		if !(v.value > 0) {
			return fmt.Errorf("devicemodels: fit: %q is fixed at no value: %w", name, ErrFit)
		}
		// No limit is written as a rate of 0, whose inverse is infinite: use a negligible time
		// instead.
		s.params[v.param] = param{start: math.Log(v.value), fixed: true}
		if math.IsInf(v.value, 1) {
			s.params[v.param].start = math.Log(1e-18)
		}
	}
	return nil
}

// shapes are the structures to try, as many as the cells can distinguish.
func (s *search) shapes() []shape {
	placements := []flash.Placement{flash.PlaceAny, flash.PlaceByAddress, flash.PlaceInRounds}
	if slices.Contains(s.opt.Fixed, "flash.placement") {
		placements = []flash.Placement{s.opt.Known.Placement}
	} else if s.params[paramServers].fixed || s.params[paramPerByte].fixed {
		placements = placements[:2] // rounds have no servers
	}
	var list []shape
	for _, p := range placements {
		const enough = 8 // cells, for six parameters
		switch {
		case s.params[paramPerIO].fixed || s.spread:
			list = append(list, shape{p, !s.spread})
		case p == flash.PlaceInRounds:
			list = append(list, shape{p, true}) // its service time is the request limit
		default:
			list = append(list, shape{p, false})
			if len(s.points) >= enough {
				list = append(list, shape{p, true})
			}
		}
	}
	return list
}

// free returns the indices of the parameters that are fitted for a shape.
func (s *search) free(sh shape) []int {
	var list []int
	for i, p := range s.params {
		inRounds := sh.placement == flash.PlaceInRounds && (i == paramServers || i == paramPerByte)
		if !p.fixed && !inRounds && (i != paramPerIO || sh.ceiling) {
			list = append(list, i)
		}
	}
	return list
}

// loop returns the closed form at θ, without the host.
func (s *search) loop(sh shape, theta []float64) flash.Loop {
	l := s.base
	l.Placement = sh.placement
	l.LTFB, l.PerByte, l.LinkByte = s.extra+math.Exp(theta[paramLTFB]),
		math.Exp(theta[paramPerByte]), math.Exp(theta[paramLinkByte])
	l.Servers = math.Exp(theta[paramServers])
	switch {
	case sh.ceiling:
		l.PerIO = math.Exp(theta[paramPerIO])
	case !s.spread:
		l.PerIO = 0
	}
	if sh.placement == flash.PlaceInRounds {
		l.Servers, l.PerByte = 1, 0
	}
	return l
}

func (h *hostCost) seconds(theta []float64) float64 {
	if h.param < 0 {
		return h.known
	}
	return math.Exp(theta[h.param])
}

// off is the log error of the model at a point.
func (s *search) off(l flash.Loop, theta []float64, p *point) float64 {
	return s.logRate(l, theta, p) - p.logRequestRate
}

func (s *search) logRate(l flash.Loop, theta []float64, p *point) float64 {
	h := &s.engines[p.engine]
	l.HostCores = h.cores
	return math.Log(l.Rate(h.seconds(theta), p.chunk, p.depth))
}

// loss is the weighted mean squared log error plus the priors.
func (s *search) loss(sh shape, theta []float64) float64 {
	sum := s.meanSquare(candidate{shape: sh, theta: theta})
	for i, v := range theta {
		away := v - s.params[i].start
		sum += priorStart * away * away
	}
	for i := deviceParams; i < len(theta); i++ {
		sum += priorHost * math.Exp(theta[i]-theta[paramLTFB])
	}
	if servers := theta[paramServers]; servers < 0 { // less than one server
		sum += servers * servers
	} else {
		sum += priorServers * servers
	}
	return sum
}

// run tries every shape from several numbers of servers. It returns the best, with a whole number
// of servers.
func (s *search) run() candidate {
	random := rng.Stream(s.opt.Seed, "devicemodels/fit")
	var best candidate
	bestScore := math.Inf(1)
	for _, sh := range s.shapes() {
		c := s.whole(s.explore(sh, random))
		n := float64(len(s.points))
		// The Bayesian information criterion penalises each further parameter.
		score := n*math.Log(s.meanSquare(c)+noiseFloor) + s.complexity(sh)*math.Log(n)
		if score < bestScore-1e-9 {
			best, bestScore = c, score
		}
	}
	return best
}

// complexity is the number of parameters in a shape's penalty. Rounds also count the number of
// servers that they do not have: a single server without rounds has the same rate at every depth
// and is the simpler device.
func (s *search) complexity(sh shape) float64 {
	n := len(s.free(sh))
	if sh.placement == flash.PlaceInRounds {
		n++
	}
	return float64(n)
}

// meanSquare is the weighted mean squared log error alone.
func (s *search) meanSquare(c candidate) float64 {
	l := s.loop(c.shape, c.theta)
	var sum, weights float64
	for i := range s.points {
		off := s.off(l, c.theta, &s.points[i])
		sum += s.points[i].weight * off * off
		weights += s.points[i].weight
	}
	return sum / weights
}

// explore searches one shape from numbers of servers a factor of three apart, and then from
// perturbed results, to leave local minima.
func (s *search) explore(sh shape, random *rand.Rand) candidate {
	best := candidate{loss: math.Inf(1)}
	keep := func(c candidate) {
		if c.loss < best.loss {
			best = c
		}
	}
	start := make([]float64, len(s.params))
	for i, p := range s.params {
		start[i] = p.start
	}
	if s.params[paramServers].fixed {
		keep(s.descend(sh, start))
	} else {
		for servers := 1.0; servers <= 2*float64(s.most); servers *= 3 {
			from := slices.Clone(start)
			from[paramServers] = math.Log(servers)
			keep(s.descend(sh, from))
		}
	}
	for range 2 {
		keep(s.descend(sh, s.shaken(sh, best.theta, random)))
	}
	return best
}

// shaken returns theta with every free parameter perturbed by a factor of about 1.6.
func (s *search) shaken(sh shape, theta []float64, random *rand.Rand) []float64 {
	moved := slices.Clone(theta)
	for _, i := range s.free(sh) {
		moved[i] += 0.5 * random.NormFloat64()
	}
	return moved
}

// whole rounds the number of servers to the better of the two nearest whole numbers.
func (s *search) whole(c candidate) candidate {
	if s.params[paramServers].fixed {
		return c
	}
	servers := math.Exp(c.theta[paramServers])
	best := candidate{loss: math.Inf(1)}
	held := *s
	held.params = slices.Clone(s.params)
	held.params[paramServers].fixed = true
	for _, n := range []float64{math.Floor(servers), math.Ceil(servers)} {
		from := slices.Clone(c.theta)
		from[paramServers] = math.Log(max(n, 1))
		if near := held.descend(c.shape, from); near.loss < best.loss {
			best = near
		}
	}
	return best
}

// descend minimises from start, and again from each result: a fresh simplex continues where one has
// collapsed on an edge of the objective.
func (s *search) descend(sh shape, start []float64) candidate {
	best := s.minimise(sh, start)
	for range 4 {
		next := s.minimise(sh, best.theta)
		if next.loss > best.loss*0.99-1e-12 {
			break
		}
		best = next
	}
	return best
}

// minimise runs the downhill simplex of Nelder and Mead, which needs no derivative: the closed form
// has a corner wherever the bottleneck changes.
func (s *search) minimise(sh shape, start []float64) candidate {
	free := s.free(sh)
	theta := slices.Clone(start)
	full := func(x []float64) []float64 {
		for i, at := range free {
			theta[at] = x[i]
		}
		return theta
	}
	stay := candidate{shape: sh, theta: slices.Clone(start), loss: s.loss(sh, start)}
	if len(free) == 0 {
		return stay
	}
	x := make([]float64, len(free))
	for i, at := range free {
		x[i] = start[at]
	}
	problem := optimize.Problem{Func: func(x []float64) float64 { return s.loss(sh, full(x)) }}
	settings := &optimize.Settings{
		FuncEvaluations: 200 * len(free),
		Converger: &optimize.FunctionConverge{Absolute: 1e-10, Relative: 1e-6,
			Iterations: 40},
	}
	result, err := optimize.Minimize(problem, x, settings, &optimize.NelderMead{SimplexSize: 0.2})
	// The end of the evaluations is a status, not an error. A result with an error is not used.
	if err != nil || result == nil || math.IsNaN(result.F) {
		return stay
	}
	return candidate{shape: sh, theta: slices.Clone(full(result.X)), loss: result.F}
}

// judge predicts every cell by a fit without it. The errors are those of unseen cells. Their
// spread, with Student's factor for the remaining degrees of freedom, is therefore the interval of
// a prediction. Cells have the same weights as in the fit.
func (s *search) judge(c candidate, fit *Fit) {
	n := len(s.points)
	if n < 3 {
		return
	}
	var sum, squares, weights float64
	limited := s.opt.Known.Loop(1, true)
	for i := range s.points {
		p := &s.points[i]
		best := s.without(i, c)
		l := s.loop(c.shape, best.theta)
		l.LimitByte, l.LimitIO = limited.LimitByte, limited.LimitIO
		off := s.logRate(l, best.theta, p) - p.logLimited
		sum += p.weight * math.Abs(math.Exp(off)-1)
		squares += p.weight * off * off
		weights += p.weight
	}
	loo := round3(100 * sum / weights)
	fit.LeaveOneOutPct = &loo
	left := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(max(n-len(s.free(c.shape)), 1))}
	interval := round3(100 * math.Expm1(left.Quantile(0.95)*math.Sqrt(squares/weights)))
	fit.IntervalPct = &interval
	if interval > uselessPct {
		fit.Warnings = append(fit.Warnings, "The cells contradict each other: predictions of "+
			"this model say nothing. Measure again on a machine that does nothing else.")
	}
}

// without fits the shape of c to all points but one. Starts and priors come from the other points
// alone, so that a parameter that only the missing point shows stays unknown.
func (s *search) without(missing int, c candidate) candidate {
	rest := *s
	rest.points = slices.Delete(slices.Clone(s.points), missing, missing+1)
	rest.params = nil
	rest.guess(len(s.params) - deviceParams)
	start := make([]float64, len(rest.params))
	for i, p := range s.params {
		if p.fixed {
			rest.params[i] = p
		}
		start[i] = rest.params[i].start
	}
	start[paramServers] = c.theta[paramServers]
	fresh, near := rest.descend(c.shape, start), rest.descend(c.shape, c.theta)
	if near.loss < fresh.loss {
		return near
	}
	return fresh
}
