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

// ErrFit is wrapped when cells cannot be turned into a device: too few of them, or measured while
// the device drifted.
var ErrFit = errors.New("cannot fit a device")

// ErrDrift is the ErrFit of cells that were measured while the device drifted: the same measurement
// made again may do.
var ErrDrift = fmt.Errorf("%w", ErrFit)

// minCells is the least number of clean cells: fewer leave nothing to check a fit with.
const minCells = 3

// Limits on the drift of a reference cell. Above warnDriftPct the fit carries a warning. Above
// defaultMaxDriftPct one device was not measured but two: a cold one and a throttled one, say.
const (
	warnDriftPct       = 10
	warnResidualPct    = 15
	defaultMaxDriftPct = 50
)

// FitOptions are what the cells do not say. The zero value is usable.
type FitOptions struct {
	When  string      // copied to Fit.When
	Mode  string      // copied to Fit.Mode
	Align units.Bytes // smallest direct read; 0 = 4096 B

	// HostCost gives the CPU time of one request where it was measured, by engine. It is then taken
	// as known; otherwise it is fitted, and separates from LTFB only where the host is the
	// bottleneck of some cell.
	HostCost map[string]units.Nanos
	Serial   []string // engines that spend the request cost on one core; nil = uring

	// Known is what was measured or published otherwise: all of it that the fit does not find is
	// copied (LTFBShape, Limit, Page, ...), and the fields named in Fixed ("flash.link_rate",
	// "flash.engines.pread") keep their values.
	Known *flash.Spec
	Fixed []string

	DriftPct    float64 // spread of a cell measured repeatedly, copied to Fit.DriftPct
	MaxDriftPct float64 // refuse a larger drift; 0 = 50
	Seed        uint64  // of the search's starting points
}

// FitFlash finds the device whose closed form is nearest to the cells, in the sense of least
// squares of the logarithm of the throughput, so that a slow cell counts as much as a fast one, and
// a cell less the wider its own confidence interval is. Every placement is tried, with and without
// a request limit where there are cells enough; a part that explains no more than noise is left
// out. The same arguments give the same result.
//
// Tainted cells are kept in Fit.Cells but not used. At least three clean cells are needed, of two
// chunk sizes unless the server's rate is fixed, and of two depths unless the number of servers or
// the LTFB is. Every clean cell is also predicted by a fit without it; those errors are
// Fit.LeaveOneOutPct and, with Student's factor for the few cells there are, Fit.IntervalPct. Where
// the times of single reads (Cell.Times) show the stop and go of a token bucket, the device has a
// Limit, and what it does between the stalls is what the rest is fitted to. The times of single
// reads at depth 1 give the shape of the LTFB's distribution. The request cost of an engine is
// split evenly between Submit and Complete: a rate does not tell them apart. Engines' Batch costs
// stay 0: a cell is a closed loop and has no batches. Errors wrap ErrFit, or its ErrDrift, and say
// what is missing.
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

// fixedEngine returns the known cost of an engine that Fixed names.
func (o *FitOptions) fixedEngine(name string) (flash.EngineCost, bool) {
	if !slices.Contains(o.Fixed, enginePrefix+name) {
		return flash.EngineCost{}, false
	}
	cost, ok := o.Known.Engines[name]
	return cost, ok
}

// given names everything that the fit did not find, so that a device file says how to repeat it.
func (o *FitOptions) given() []string {
	list := slices.Clone(o.Fixed)
	for _, name := range slices.Sorted(maps.Keys(o.HostCost)) {
		if !slices.Contains(list, enginePrefix+name) {
			list = append(list, enginePrefix+name)
		}
	}
	return list
}

// usable returns the clean cells, or an error that says what they lack.
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
		add = add[:1] // the others follow from it
	}
	return nil, fmt.Errorf("devicemodels: fit: have only %s%s; add %s: %w", strings.Join(missing,
		" and "), why, strings.Join(add, ", and "), ErrFit)
}

// otherChunk names a measurement that tells the time per read from the time per byte.
func otherChunk(have map[units.Bytes]bool) string {
	for c := range have {
		if c < 32*units.KiB {
			return "one with reads of 128 KiB"
		}
	}
	return "one with reads of 4 KiB"
}

// otherDepth names a measurement that tells the latency of a read from the number of them at once.
func otherDepth(have map[int]bool) string {
	for d := range have {
		if d > 1 {
			return "one at depth 1"
		}
	}
	return "one at depth 32"
}

// describe fills in the model's answer for every cell, and how far it is off for the clean ones.
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

// round3 keeps three decimals, so that a file does not end in rounding noise.
func round3(v float64) float64 { return math.Round(v*1000) / 1000 }
