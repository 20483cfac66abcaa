package probe

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// device fits the cells and puts the device together.
func (g *grid) device(cfg Config, m *machine, h measuredHost) (*devicemodels.Device, error) {
	when := m.wall().UTC().Format(time.RFC3339)
	spec, fit, err := g.fit(cfg, m.cores, when)
	if err != nil {
		return nil, fmt.Errorf("probe: %s: %w", cfg.Path, g.blame(err))
	}
	for engine, cost := range g.costs {
		if e, fitted := spec.Engines[string(engine)]; fitted {
			e.Batch = cost
			spec.Engines[string(engine)] = e
		}
	}
	fit.HostPct = h.interval
	fit.Warnings = append(fit.Warnings, g.warnings()...)

	d := &devicemodels.Device{
		Version: devicemodels.FormatVersion, Name: m.hostname,
		Source: "measured by windrow probe on " + when,
		Sources: map[string]string{
			"flash": fmt.Sprintf("fit of %d cells, %s, %d reads", len(g.cells), fit.Mode,
				g.reads()),
			"host": fmt.Sprintf("medians of timed kernels, %d cores; layer_fixed and "+
				"token_fixed are not measured by a probe", h.Cores),
		},
		Flash: spec, Host: h.Host, Fit: &fit,
	}
	g.addMapped(d)
	g.cite(d)
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("probe: measured an impossible device: %w", err)
	}
	return d, nil
}

// cite says where the optional parts come from.
func (g *grid) cite(d *devicemodels.Device) {
	if g.emulated {
		d.Source += fmt.Sprintf(" (%s reader)", g.modes[0].Engine)
	}
	if d.Flash.Engines[string(flashio.EnginePread)].Serial {
		d.Sources["flash.engines.pread"] = "fitted: on this host the threads read as if they " +
			"were one"
	}
	if !d.Flash.LTFBShape.IsZero() {
		d.Sources["flash.ltfb_shape"] = "times of single reads of the smallest chunk at depth " +
			"1, less the host's cost"
	}
	if d.Flash.Limit != nil {
		d.Sources["flash.limit"] = "stop and go of reads after a pause; the rest is fitted to " +
			"reads that did not wait for credit"
	}
	if len(d.Flash.Spans) > 0 {
		d.Sources["flash.spans"] = fmt.Sprintf("reads within %v against reads all over the file",
			narrowSpan)
	}
}

// A fit that predicts unseen cells to within goodFit percent needs no second try; a second one must
// be better by betterFit.
const (
	goodFit   = 4
	betterFit = 0.9
	// A fit that misses unseen cells by more than badFit percent with both engines is tried with
	// the ring alone.
	badFit = 10
)

// fit finds the flash. Where it fits badly, a second try takes the threads of pread for one: Go's
// runtime takes a processor back from a thread in a system call only after a while, so that on few
// cores the pool delivers a number of reads per second that neither the drive nor the processor
// time explains (see flashio's preadReader). The cost of a read is then fitted too. Where that is
// no good either, the pool's cells are left out, and the device has no costs for it.
func (g *grid) fit(cfg Config, cores int, when string) (flash.Spec, devicemodels.Fit, error) {
	known := g.known()
	known.LTFBShape = g.shape(cores)
	opt := g.fitOptions(cores, known)
	opt.When, opt.Seed, opt.DriftPct, opt.MaxDriftPct = when, cfg.Seed, g.driftPct(),
		cfg.MaxDriftPct
	cells := g.measured()
	spec, fit, err := devicemodels.FitFlash(cells, cores, opt)
	if err != nil || !g.uses(flashio.EnginePread) || fit.LeaveOneOutPct == nil ||
		*fit.LeaveOneOutPct <= goodFit {
		return spec, fit, err
	}
	better := func(cells []devicemodels.Cell) {
		second, secondFit, err := devicemodels.FitFlash(cells, cores, opt)
		if err == nil && secondFit.LeaveOneOutPct != nil &&
			*secondFit.LeaveOneOutPct < betterFit**fit.LeaveOneOutPct {
			spec, fit = second, secondFit
		}
	}
	delete(opt.HostCost, string(flashio.EnginePread))
	opt.Serial = []string{string(flashio.EnginePread), string(flashio.EngineUring)}
	better(cells)
	if *fit.LeaveOneOutPct > badFit && g.uses(flashio.EngineUring) {
		better(withoutPool(cells))
	}
	return spec, fit, nil
}

// withoutPool leaves out the cells of pread.
func withoutPool(cells []devicemodels.Cell) []devicemodels.Cell {
	rest := slices.Clone(cells)
	for i := range rest {
		if c := &rest[i]; c.Engine == string(flashio.EnginePread) && c.Tainted == "" {
			c.Tainted = "on this host the pool of threads is held back by something else than " +
				"the drive"
		}
	}
	return rest
}

func (g *grid) uses(engine flashio.Engine) bool {
	return slices.ContainsFunc(g.modes, func(m flashio.Mode) bool { return m.Engine == engine })
}

// known is what was found besides the cells.
func (g *grid) known() *flash.Spec { return &flash.Spec{Limit: g.limit, Spans: spans(g.extra)} }

// fitOptions are those that every fit of these cells shares.
func (g *grid) fitOptions(cores int, known *flash.Spec) devicemodels.FitOptions {
	opt := devicemodels.FitOptions{Mode: modeText(g.modes), Align: alignment(g.modes), Known: known,
		HostCost: map[string]units.Nanos{}}
	for _, m := range g.modes {
		if cost, ok := g.hostCost(m.Engine, cores); ok {
			opt.HostCost[string(m.Engine)] = cost
		}
	}
	return opt
}

// measured returns the cells as they are put into the device, in order of engine, chunk and depth.
func (g *grid) measured() []devicemodels.Cell {
	var list []devicemodels.Cell
	for i := range g.cells {
		c := g.cells[i].cell()
		if g.limit == nil {
			// The fit would look in them for the stalls of a limit. There is none: the probe looked
			// for it in a better way.
			c.Times = flash.Histogram{}
		}
		list = append(list, c)
	}
	slices.SortFunc(list, byEngineChunkDepth)
	return list
}

func (r *result) cell() devicemodels.Cell {
	c := devicemodels.Cell{
		Engine: string(r.Engine), Chunk: r.Chunk, Depth: r.Depth, Reads: r.Reads, Rate: r.Rate,
		RateLow: r.RateLow, RateHigh: r.RateHigh,
		P50: r.Times.Quantile(0.50), P99: r.Times.Quantile(0.99), Times: r.Times,
		Tainted: r.Tainted,
	}
	if r.Unsteady {
		c.Quality = devicemodels.Unsteady
	}
	return c
}

// shape is the distribution of a lone small read's latency: of the engine whose reads cost the host
// least, without that cost. The small part of its time that is the transfer stays in. Reads that a
// limit made wait are left out.
func (g *grid) shape(cores int) (shape flash.Histogram) {
	var best *result
	var least units.Nanos
	for i := range g.cells {
		r := &g.cells[i]
		if r.Depth != 1 || r.Times.IsZero() || r.Tainted != "" {
			continue
		}
		cost, _ := g.hostCost(r.Engine, cores)
		if best == nil || r.Chunk < best.Chunk || r.Chunk == best.Chunk && cost < least {
			best, least = r, cost
		}
	}
	if best == nil {
		return shape
	}
	for t, n := range best.Times.All() {
		if g.limit == nil || t < g.limit.Interval/4 {
			shape.Add(max(t-least, 0), n)
		}
	}
	return shape
}

// driftPct is the spread of the reference cell, as a percentage of its median.
func (g *grid) driftPct() float64 {
	if len(g.reference) < 2 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(g.reference))
	return 100 * float64(sorted[len(sorted)-1]-sorted[0]) / float64(sorted[len(sorted)/2])
}

// hostCost is the processor time of one read: the least over the cells of the smallest chunk,
// because time that other parts of the process used counts as well. For a serial engine it cannot
// be more than the time per read of the fastest cell.
func (g *grid) hostCost(engine flashio.Engine, cores int) (units.Nanos, bool) {
	var smallest units.Bytes
	for i := range g.cells {
		if r := &g.cells[i]; r.Engine == engine && r.CPUPerRead > 0 && (smallest == 0 ||
			r.Chunk < smallest) {
			smallest = r.Chunk
		}
	}
	cost := units.Forever
	for i := range g.cells {
		r := &g.cells[i]
		if r.Engine != engine {
			continue
		}
		if r.Chunk == smallest && r.CPUPerRead > 0 {
			cost = min(cost, r.CPUPerRead)
		}
		if r.Tainted == "" && r.Rate > 0 {
			perRead := r.Rate.Time(r.Chunk)
			if engine != flashio.EngineUring {
				perRead *= units.Nanos(max(cores, 1))
			}
			cost = min(cost, perRead)
		}
	}
	return cost, smallest > 0
}

func (g *grid) reads() (n int) {
	for i := range g.cells {
		n += g.cells[i].Reads
	}
	return n
}

// blame adds to an error of the fit what the probe knows about its cause. A machine that was too
// busy, too slow or too restless to be measured is flashio.ErrEnvironment; a grid that is too small
// for a fit is not.
func (g *grid) blame(err error) error {
	if !errors.Is(err, devicemodels.ErrFit) {
		return err
	}
	tainted := 0
	for i := range g.cells {
		if g.cells[i].Tainted != "" {
			tainted++
		}
	}
	switch {
	case tainted > 0 && len(g.cells)-tainted < tainted:
		return fmt.Errorf("%w: %w; %s", flashio.ErrEnvironment, err, cacheRemedy)
	case errors.Is(err, devicemodels.ErrDrift):
		return fmt.Errorf("%w: %w", flashio.ErrEnvironment, err)
	case g.skipped > 0:
		return fmt.Errorf("%w: %w; the time was up before %d measurements: give a larger budget",
			flashio.ErrEnvironment, err, g.skipped)
	case g.held > 0:
		return fmt.Errorf("%w: %w; a limit makes %d measurements too slow for the time: give a "+
			"larger budget", flashio.ErrEnvironment, err, g.held)
	}
	return err
}

// warnings are what the reader of the device should know about its measurement.
func (g *grid) warnings() []string {
	var w []string
	for _, m := range g.modes {
		for _, n := range m.Notes {
			if !slices.Contains(w, n) {
				w = append(w, n)
			}
		}
	}
	add := func(when bool, format string, args ...any) {
		if when {
			w = append(w, fmt.Sprintf(format, args...))
		}
	}
	unsteady := 0
	for i := range g.cells {
		if g.cells[i].Unsteady {
			unsteady++
		}
	}
	add(g.note != "", "%s", g.note)
	add(g.uncounted && !g.emulated, "This system does not count bytes read from storage, so "+
		"nothing proves that no cache served these reads.")
	add(g.skipped > 0, "The time was up before %d measurements; a larger budget measures more.",
		g.skipped)
	add(g.held > 0, "A limit makes %d loops too slow for this budget; they are not measured.",
		g.held)
	add(unsteady > 0, "%d of %d cells did not come to rest in their time; their intervals are "+
		"wide, or not known.", unsteady, len(g.cells))
	add(g.missing() != "", "The path of mapped files is not measured. %s", g.missing())
	add(len(g.reference) < 2, "The reference cell was measured only once, so the drift is not "+
		"known.")
	return w
}
