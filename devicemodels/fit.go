package devicemodels

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

// ErrFit is wrapped when cells do not give a device: there are too few, or the device drifted
// during the measurement.
var ErrFit = errors.New("cannot fit a device")

// ErrDrift is an ErrFit: the device drifted during the measurement. Another measurement may
// succeed.
var ErrDrift = fmt.Errorf("%w", ErrFit)

// minCells is the least number of clean cells: fewer leave no cell to check a fit with.
const minCells = 3

// Limits. Above warnDriftPct the drift of the reference cell gives a warning, above
// defaultMaxDriftPct the cells describe two devices, such as a cold one and a throttled one. An
// error above warnResidualPct gives a warning too, and so does an interval above uselessPct.
const (
	warnDriftPct       = 10
	warnResidualPct    = 15
	uselessPct         = 1000
	defaultMaxDriftPct = 50
)

// FitOptions are facts that the cells do not show. The zero value is usable.
type FitOptions struct {
	When  string      // copied to Fit.When
	Mode  string      // copied to Fit.Mode
	Align units.Bytes // smallest direct read; 0 = 4096 B

	// HostCost gives the measured CPU time of one request, by engine. The cost of any other engine
	// is fitted. It separates from the LTFB only where the host is the bottleneck of some cell.
	HostCost map[string]units.Nanos
	Serial   []string // engines that spend the request cost on one core; nil = uring

	// Known holds numbers from other measurements or publications. The fit copies the fields that
	// it does not find itself (LTFBShape, Limit, Page, ...). The fields named in Fixed
	// ("flash.link_rate", "flash.engines.pread") keep their values.
	Known *flash.Spec
	Fixed []string

	DriftPct    float64 // spread of a cell measured repeatedly, copied to Fit.DriftPct
	MaxDriftPct float64 // refuse a larger drift; 0 = 50
	Seed        uint64  // of the search's starting points
}

// FitFlash finds the device whose closed form is nearest to the cells, by least squares of the
// logarithm of the throughput. A slow cell therefore counts as much as a fast one. The weight of a
// cell falls with the width of its confidence interval. The fit tries every placement, with and
// without a request limit where there are enough cells. It leaves out a part that explains no more
// than noise. The same arguments give the same result.
//
// Tainted cells stay in Fit.Cells but are not used. A fit needs at least three clean cells: of two
// chunk sizes unless the server's rate is fixed, and of two depths unless the number of servers or
// the LTFB is fixed. Every clean cell is also predicted by a fit without it. These errors give
// Fit.LeaveOneOutPct and, with Student's factor for so few cells, Fit.IntervalPct.
//
// The times of single reads (Cell.Times) may show the stalls of a token bucket. The device then has
// a Limit, and the other parts are fitted to the rate between the stalls. The times of single reads
// at depth 1 give the shape of the LTFB's distribution. The request cost of an engine is split
// evenly between Submit and Complete, because a rate does not separate them. The Batch cost of
// engines stays 0: a cell is a closed loop and has no batches. Errors wrap ErrFit or ErrDrift and
// name the missing cells.
func FitFlash(cells []Cell, cores int, opt FitOptions) (flash.Spec, Fit, error) {
	clean, err := usable(cells, opt.Fixed)
	if err != nil {
		return flash.Spec{}, Fit{}, err
	}
	limit := opt.MaxDriftPct
	if limit == 0 {
		limit = defaultMaxDriftPct
	}
	// Negated so that NaN is refused too.
	if !(opt.DriftPct >= 0 && opt.DriftPct <= limit) {
		return flash.Spec{}, Fit{}, fmt.Errorf("devicemodels: fit: the reference cell drifted "+
			"by %.3g %%, more than %.3g %%; "+
			"let the device cool down and other readers finish, then measure again: %w",
			opt.DriftPct, limit, ErrDrift)
	}
	if opt.Known == nil {
		opt.Known = &flash.Spec{}
	}
	known := *opt.Known
	if known.Limit == nil {
		known.Limit = findLimit(clean)
	}
	if known.LTFBShape.IsZero() {
		known.LTFBShape = spreadOf(clean)
	}
	opt.Known = &known
	s, err := newSearch(clean, cores, opt)
	if err != nil {
		return flash.Spec{}, Fit{}, err
	}
	best := s.run()
	spec := s.spec(best)
	fit := describe(&spec, cells, cores, opt)
	fit.Fixed = opt.given()
	s.judge(best, &fit)
	return spec, fit, nil
}

// enginePrefix stands before the name of an engine whose cost is given to a fit.
const enginePrefix = "flash.engines."

// fixedEngine returns the known cost of an engine in Fixed.
func (o *FitOptions) fixedEngine(name string) (flash.EngineCost, bool) {
	if !slices.Contains(o.Fixed, enginePrefix+name) {
		return flash.EngineCost{}, false
	}
	cost, ok := o.Known.Engines[name]
	return cost, ok
}

// given lists the fields that the fit did not find, so that a device file allows the fit to be
// repeated.
func (o *FitOptions) given() []string {
	list := slices.Clone(o.Fixed)
	for _, name := range slices.Sorted(maps.Keys(o.HostCost)) {
		if !slices.Contains(list, enginePrefix+name) {
			list = append(list, enginePrefix+name)
		}
	}
	return list
}

// usable returns the clean cells, or an error that names the missing measurements.
func usable(cells []Cell, fixed []string) ([]Cell, error) {
	var clean []Cell
	taints := map[string]int{}
	chunks, depths := map[units.Bytes]bool{}, map[int]bool{}
	for i, c := range cells {
		if c.Tainted != "" {
			taints[c.Tainted]++
			continue
		}
		if c.Rate <= 0 || c.Chunk <= 0 || c.Depth <= 0 {
			return nil, fmt.Errorf("devicemodels: fit: cell %d (%s, %v, depth %d) has rate %v: "+
				"all three must be positive: %w", i, c.Engine, c.Chunk, c.Depth, c.Rate, ErrFit)
		}
		clean = append(clean, c)
		chunks[c.Chunk], depths[c.Depth] = true, true
	}
	var missing, add []string
	if len(clean) < minCells {
		missing = append(missing, fmt.Sprintf("%d of %d usable cells", len(clean), minCells))
		add = append(add, "measurements of 4 KiB and 64 KiB reads at depths 1 and 32")
	}
	if len(chunks) < 2 && !slices.Contains(fixed, "flash.server_rate") {
		missing = append(missing, fmt.Sprintf("%d of 2 chunk sizes", len(chunks)))
		add = append(add, otherChunk(chunks))
	}
	if len(depths) < 2 && !slices.Contains(fixed, "flash.servers") &&
		!slices.Contains(fixed, "flash.ltfb") {
		missing = append(missing, fmt.Sprintf("%d of 2 depths", len(depths)))
		add = append(add, otherDepth(depths))
	}
	if missing == nil {
		return clean, nil
	}
	why := ""
	for _, taint := range slices.Sorted(maps.Keys(taints)) {
		why += fmt.Sprintf("; left out %d: %s", taints[taint], taint)
	}
	if len(clean) < minCells {
		add = add[:1] // it includes the other two
	}
	return nil, fmt.Errorf("devicemodels: fit: have only %s%s; add %s: %w", strings.Join(missing,
		" and "), why, strings.Join(add, ", and "), ErrFit)
}

// otherChunk names a measurement that separates the time per read from the time per byte.
func otherChunk(have map[units.Bytes]bool) string {
	for c := range have {
		if c < 32*units.KiB {
			return "one with reads of 128 KiB"
		}
	}
	return "one with reads of 4 KiB"
}

// otherDepth names a measurement that separates the latency of a read from the number of servers.
func otherDepth(have map[int]bool) string {
	for d := range have {
		if d > 1 {
			return "one at depth 1"
		}
	}
	return "one at depth 32"
}

// describe fills in the model's rate of every cell and its errors over the clean cells.
func describe(f *flash.Spec, cells []Cell, cores int, opt FitOptions) Fit {
	fit := Fit{When: opt.When, Mode: opt.Mode, DriftPct: round3(opt.DriftPct),
		Cells: slices.Clone(cells)}
	var worst Cell
	var sum float64
	used := 0
	for i := range fit.Cells {
		c := &fit.Cells[i]
		c.Model = f.Throughput(c.Engine, cores, c.Chunk, c.Depth)
		if c.Tainted != "" {
			continue
		}
		off := 100 * math.Abs(float64(c.Model)/float64(c.Rate)-1)
		sum += off
		if off > fit.WorstAbsPct || used == 0 {
			fit.WorstAbsPct, worst = off, *c
		}
		if used == 0 {
			fit.ChunkMin, fit.ChunkMax, fit.DepthMin, fit.DepthMax = c.Chunk, c.Chunk, c.Depth,
				c.Depth
		}
		fit.ChunkMin, fit.ChunkMax = min(fit.ChunkMin, c.Chunk), max(fit.ChunkMax, c.Chunk)
		fit.DepthMin, fit.DepthMax = min(fit.DepthMin, c.Depth), max(fit.DepthMax, c.Depth)
		used++
	}
	fit.MeanAbsPct = round3(sum / float64(used))
	fit.WorstAbsPct = round3(fit.WorstAbsPct)
	if n := len(cells) - used; n > 0 {
		fit.Warnings = append(fit.Warnings,
			fmt.Sprintf("%d of %d cells are tainted and were left out.", n, len(cells)))
	}
	if fit.DriftPct > warnDriftPct {
		fit.Warnings = append(fit.Warnings, fmt.Sprintf(
			"The reference cell drifted by %.3g %% during the measurement: other load, or a "+
				"device that heats up.", fit.DriftPct))
	}
	if fit.WorstAbsPct > warnResidualPct {
		fit.Warnings = append(fit.Warnings,
			fmt.Sprintf("The model is %.3g %% off at %v, depth %d (%s): %v measured, %v modelled.",
				fit.WorstAbsPct, worst.Chunk, worst.Depth, worst.Engine, worst.Rate, worst.Model))
	}
	return fit
}

// round3 keeps three decimals of a percentage: more would be rounding noise in a file. It stays
// within the largest percentage that a file may hold, however much measurements contradict each
// other.
func round3(v float64) float64 {
	if !(v < percentRange.Most) {
		return percentRange.Most
	}
	return math.Round(v*1000) / 1000
}
