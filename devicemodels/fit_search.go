package devicemodels

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/optimize"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// search minimises the log error over the number of servers (scanned, an integer) and, for each, over the logarithms of
//
//	θ[0] LTFB (s), θ[1] seconds per byte of one server, θ[2] seconds per byte of the link,
//	θ[3+i] host seconds per request of the i-th engine whose cost is not known.
//
// Logarithms keep every parameter positive and give all of them the same scale.
type search struct {
	points  []point
	engines []hostCost // in order of name
	free    int        // engines with a fitted cost
	start   []float64  // θ before any search
	most    int        // deepest loop measured
	opt     FitOptions
}

// point is a clean cell in the units of the closed form.
type point struct {
	engine         int
	chunk, depth   float64
	logRequestRate float64
}

type hostCost struct {
	name   string
	cores  float64
	serial bool
	known  float64 // s; used when param < 0
	param  int     // index in θ
}

// candidate is the best θ found for a number of servers.
type candidate struct {
	servers int
	theta   []float64
	loss    float64
}

// Weights of the two priors, against a mean squared log error that is 1e-4 for 1 % noise. The first keeps a parameter
// that no cell depends on where it started; the second prefers to blame the device, not the host, for latency that
// the cells cannot assign.
const (
	priorStart = 1e-6
	priorHost  = 1e-4
)

func newSearch(clean []Cell, cores int, opt FitOptions) *search {
	s := &search{opt: opt}
	serial := opt.Serial
	if serial == nil {
		serial = []string{"uring"}
	}
	index := map[string]int{}
	for _, c := range clean {
		index[c.Engine] = 0
		s.most = max(s.most, c.Depth)
	}
	for i, name := range slices.Sorted(maps.Keys(index)) {
		index[name] = i
		h := hostCost{name: name, param: -1, serial: slices.Contains(serial, name)}
		h.cores = hostServers(h.serial, cores)
		if cost, ok := opt.HostCost[name]; ok {
			h.known = cost.Seconds()
		} else {
			h.param = 3 + s.free
			s.free++
		}
		s.engines = append(s.engines, h)
	}
	for _, c := range clean {
		s.points = append(s.points, point{
			engine: index[c.Engine], chunk: float64(c.Chunk), depth: float64(c.Depth),
			logRequestRate: math.Log(float64(c.Rate) / float64(c.Chunk)),
		})
	}
	s.start = s.guess()
	return s
}

// guess reads a first θ off the cells: the shallowest loops show a lone request, the fastest cell shows the link.
func (s *search) guess() []float64 {
	small, large := s.points[0], s.points[0]
	fastest := 0.0
	for _, p := range s.points {
		fastest = max(fastest, math.Exp(p.logRequestRate)*p.chunk)
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
	theta := []float64{math.Log(ltfb), math.Log(max(perByte, 0.1/fastest)), math.Log(1 / fastest)}
	for range s.free {
		theta = append(theta, math.Log(0.02*ltfb))
	}
	return theta
}

// model returns the closed form at θ, without the host.
func model(servers int, theta []float64) closedForm {
	return closedForm{
		servers: float64(servers), ltfb: math.Exp(theta[0]),
		perByte: math.Exp(theta[1]), linkByte: math.Exp(theta[2]),
	}
}

func (h *hostCost) seconds(theta []float64) float64 {
	if h.param < 0 {
		return h.known
	}
	return math.Exp(theta[h.param])
}

// loss is the mean squared log error plus the priors.
func (s *search) loss(servers int, theta []float64) float64 {
	m := model(servers, theta)
	var sum float64
	for _, p := range s.points {
		h := &s.engines[p.engine]
		m.hostCores = h.cores
		off := math.Log(m.rate(h.seconds(theta), p.chunk, p.depth)) - p.logRequestRate
		sum += off * off
	}
	sum /= float64(len(s.points))
	for i, v := range theta {
		away := v - s.start[i]
		sum += priorStart * away * away
	}
	for i := 3; i < len(theta); i++ {
		sum += priorHost * math.Exp(theta[i]-theta[0])
	}
	return sum
}

// run scans the number of servers coarsely, then every number near the three best, and returns the best of all. Ties go
// to fewer servers: more of them than the deepest loop cannot be seen, and must not be promised.
func (s *search) run() candidate {
	coarse := serverGrid(2 * s.most)
	found := make([]candidate, len(coarse))
	for i, servers := range coarse {
		found[i] = s.descend(servers, s.start)
	}
	ranked := slices.Clone(found)
	slices.SortStableFunc(ranked, func(a, b candidate) int { return cmp.Compare(a.loss, b.loss) })
	random := rng.Stream(s.opt.Seed, "devicemodels/fit")
	for _, near := range ranked[:min(3, len(ranked))] {
		i, _ := slices.BinarySearch(coarse, near.servers)
		low, high := coarse[max(i-1, 0)], coarse[min(i+1, len(coarse)-1)]
		for servers := low; servers <= high; servers += 1 + (high-low)/16 {
			found = append(found, s.descend(servers, near.theta), s.descend(servers, shaken(near.theta, random)))
		}
	}
	return fewest(found)
}

// shaken returns theta with every parameter moved by a factor of about 1.6 up or down, to leave a local minimum.
func shaken(theta []float64, random *rand.Rand) []float64 {
	moved := slices.Clone(theta)
	for i := range moved {
		moved[i] += 0.5 * random.NormFloat64()
	}
	return moved
}

// fewest returns the candidate with the fewest servers among those whose loss is the least but for search noise.
func fewest(found []candidate) candidate {
	least := math.Inf(1)
	for _, c := range found {
		least = min(least, c.loss)
	}
	var best candidate
	for _, c := range found {
		if c.loss > least*(1+1e-3)+1e-9 {
			continue
		}
		if best.theta == nil || c.servers < best.servers || c.servers == best.servers && c.loss < best.loss {
			best = c
		}
	}
	return best
}

// descend minimises from start, and again from where it stopped: a simplex that has collapsed on an edge of the
// objective gets going with a fresh one.
func (s *search) descend(servers int, start []float64) candidate {
	best := s.minimise(servers, start)
	for range 5 {
		next := s.minimise(servers, best.theta)
		if next.loss > best.loss*0.99-1e-12 {
			break
		}
		best = next
	}
	return best
}

// serverGrid returns 1..8, then steps of about a fifth, up to most or a little more.
func serverGrid(most int) []int {
	var grid []int
	for n := 1; ; n += max(1, n/5) {
		grid = append(grid, n)
		if n >= most {
			return grid
		}
	}
}

// minimise runs the downhill simplex of Nelder and Mead, which needs no derivative: the closed form has corners
// wherever the bottleneck moves.
func (s *search) minimise(servers int, start []float64) candidate {
	problem := optimize.Problem{Func: func(theta []float64) float64 { return s.loss(servers, theta) }}
	settings := &optimize.Settings{
		FuncEvaluations: 300 * len(start),
		Converger:       &optimize.FunctionConverge{Absolute: 1e-10, Relative: 1e-6, Iterations: 40},
	}
	result, err := optimize.Minimize(problem, start, settings, &optimize.NelderMead{SimplexSize: 0.2})
	// Running out of evaluations is reported as a status, not an error; a result with an error is no candidate.
	if err != nil || result == nil || math.IsNaN(result.F) {
		return candidate{servers: servers, theta: start, loss: s.loss(servers, start)}
	}
	return candidate{servers: servers, theta: result.X, loss: result.F}
}

// flash writes a candidate as a Flash.
func (s *search) flash(c candidate, opt FitOptions) Flash {
	m := model(c.servers, c.theta)
	f := Flash{
		Servers: c.servers, LTFB: toNanos(m.ltfb), Align: opt.Align,
		ServerRate: toRate(1 / m.perByte), LinkRate: toRate(1 / m.linkByte),
		Engines: make(map[string]EngineCost, len(s.engines)),
	}
	if f.Align == 0 {
		f.Align = 4096
	}
	for i := range s.engines {
		h := &s.engines[i]
		cost := toNanos(h.seconds(c.theta))
		f.Engines[h.name] = EngineCost{Submit: cost / 2, Complete: cost - cost/2, Serial: h.serial}
	}
	return f
}

// toRate rounds a fitted rate; beyond a petabyte per second it is no limit.
func toRate(r float64) units.Rate {
	if r > 1e15 {
		return 0
	}
	return units.Rate(max(1, digits4(r)))
}

func toNanos(seconds float64) units.Nanos {
	return units.Nanos(digits4(seconds * 1e9))
}

// digits4 keeps four significant digits, more than any measurement has, so that a device file can be read by people.
func digits4(v float64) float64 {
	if v < 1 {
		return math.Round(v)
	}
	scale := math.Pow(10, math.Floor(math.Log10(v))-3)
	return math.Round(math.Round(v/scale) * scale)
}
