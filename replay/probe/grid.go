package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// A reference cell near the middle of the grid is repeated before the first cell, after every referenceEvery cells, and
// after the last.
const (
	referenceChunk = 16 * units.KiB
	referenceDepth = 16
	referenceEvery = 4
)

// loop is one thing to measure.
type loop struct {
	chunk     units.Bytes
	depth     int
	reference bool
}

// grid is what measureGrid found.
type grid struct {
	mode      flashio.Mode
	cells     []devicemodels.Cell // in order of chunk, then depth
	reference []units.Rate        // of the reference cell, in order of time
	batch     units.Nanos         // cost of a batch besides its reads
	cpu       []units.Nanos       // processor time per read of the smallest chunks, where it is known
	unproven  bool                // nobody counts the bytes that storage served
	skipped   int                 // cells left out because the budget was used up
	note      string              // target.note
}

// measureGrid measures every loop of cfg on t until end. A cell that does not get its turn before end is left out.
func measureGrid(ctx context.Context, cfg Config, m *machine, t *target, end units.Nanos) (*grid, error) {
	g := &grid{note: t.note}
	mode, err := inspect(cfg, m, t)
	if err != nil {
		return nil, err
	}
	g.mode = mode
	p := newProber(cfg, m, t, mode)
	if p.slab == nil {
		return nil, fmt.Errorf("probe: no memory for a buffer of %v: %w", slabSize, flashio.ErrEnvironment)
	}
	defer func() { _ = flashio.FreeBuffer(p.slab) }() // fails only for memory that is not a whole buffer

	loops := schedule(cfg)
	step := progress(cfg, "flash")
	for i, l := range loops {
		now := m.now()
		if now >= end {
			g.skipped += len(loops) - i
			break
		}
		// What one loop does not use is for the others.
		share := (end - now) / units.Nanos(len(loops)-i+1) // one share for the cost of a batch
		r, err := p.measure(ctx, l, min(now+share, end))
		if err != nil {
			return nil, err
		}
		if err := g.add(cfg, l, r); err != nil {
			return nil, err
		}
		step(i+1, len(loops))
	}
	if m.now() < end {
		if g.batch, err = p.batchCost(ctx, slices.Min(cfg.Chunks), slices.Max(cfg.Depths), end); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(g.cells, byChunkThenDepth)
	return g, nil
}

// add files a result.
func (g *grid) add(cfg Config, l loop, r result) error {
	g.unproven = g.unproven || !r.counted
	if l.reference {
		// Nothing after it can be trusted more, so the first reference cell decides for the whole probe.
		if r.tainted != "" && len(g.reference) == 0 {
			return fmt.Errorf("probe: %s: %w: %s; %s", cfg.Path, flashio.ErrEnvironment, r.tainted, cacheRemedy)
		}
		g.reference = append(g.reference, r.rate)
		return nil
	}
	if l.chunk == slices.Min(cfg.Chunks) && r.cpuPerRead > 0 {
		g.cpu = append(g.cpu, r.cpuPerRead)
	}
	g.cells = append(g.cells, devicemodels.Cell{
		Engine: string(g.mode.Engine), Chunk: l.chunk, Depth: l.depth, Reads: r.reads, Rate: r.rate,
		P50: r.p50, P99: r.p99, Tainted: r.tainted,
	})
	return nil
}

const cacheRemedy = "give a file on a local drive (ext4 or xfs), not one that is cached, compressed or on a network"

// inspect opens the file once and refuses what is no flash, and sizes that do not fit.
func inspect(cfg Config, m *machine, t *target) (flashio.Mode, error) {
	r, err := m.open(t.path, flashio.Options{Engine: cfg.Engine, Direct: flashio.DirectAuto, Parallel: 1})
	if err != nil {
		return flashio.Mode{}, fmt.Errorf("probe: %w", err)
	}
	mode := r.Mode()
	if err := r.Close(); err != nil {
		return mode, fmt.Errorf("probe: %w", err)
	}
	switch {
	case mode.MemoryBacked:
		return mode, fmt.Errorf("probe: %s: %w: %s is memory and not flash; give a path on the drive to measure",
			cfg.Path, flashio.ErrEnvironment, mode.FileSystem)
	case !mode.Direct:
		return mode, fmt.Errorf("probe: %s: %w: asked for direct reads with engine %s, got buffered ones with %s on %s, which measure "+
			"the page cache (%s); %s", cfg.Path, flashio.ErrEnvironment, mode.Requested, mode.Engine, mode.FileSystem, sentences(mode.Notes), cacheRemedy)
	}
	for _, chunk := range cfg.Chunks {
		if chunk%mode.Align != 0 {
			return mode, fmt.Errorf("probe: chunks: %v is not a multiple of %v, the smallest direct read of this device", chunk, mode.Align)
		}
		if chunk > t.size {
			return mode, fmt.Errorf("probe: chunks: %v is larger than the file of %v", chunk, t.size)
		}
	}
	return mode, nil
}

func sentences(notes []string) string {
	if len(notes) == 0 {
		return "no reason given"
	}
	text := notes[0]
	for _, n := range notes[1:] {
		text += " " + n
	}
	return text
}

// schedule returns the loops in the order of measuring: the grid in a random order, so that a drift does not look like an
// effect of size or depth, with the reference cell between.
func schedule(cfg Config) []loop {
	var cells []loop
	for _, chunk := range cfg.Chunks {
		for _, depth := range cfg.Depths {
			cells = append(cells, loop{chunk: chunk, depth: depth})
		}
	}
	rng.Stream(cfg.Seed, "probe/order").Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
	reference := loop{chunk: nearest(cfg.Chunks, referenceChunk), depth: nearest(cfg.Depths, referenceDepth), reference: true}
	order := []loop{reference}
	for i, c := range cells {
		order = append(order, c)
		if (i+1)%referenceEvery == 0 && i+1 < len(cells) {
			order = append(order, reference)
		}
	}
	return append(order, reference)
}

// nearest returns wish if it is in sorted, else the first larger value, else the last.
func nearest[T units.Bytes | int](sorted []T, wish T) T {
	for _, v := range sorted {
		if v >= wish {
			return v
		}
	}
	return sorted[len(sorted)-1]
}

func byChunkThenDepth(a, b devicemodels.Cell) int {
	if a.Chunk != b.Chunk {
		return int(a.Chunk - b.Chunk)
	}
	return a.Depth - b.Depth
}

// driftPct is the spread of the reference cell, as a percentage of its median.
func (g *grid) driftPct() float64 {
	if len(g.reference) < 2 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(g.reference))
	return 100 * float64(sorted[len(sorted)-1]-sorted[0]) / float64(sorted[len(sorted)/2])
}

// hostCost is the processor time of one read: the least over the cells of the smallest chunks, because time that other parts
// of the process used counts as well. For a serial engine it cannot be more than the time per read of the fastest cell.
func (g *grid) hostCost(cores int) (units.Nanos, bool) {
	if len(g.cpu) == 0 {
		return 0, false
	}
	cost := slices.Min(g.cpu)
	for _, c := range g.cells {
		if c.Tainted == "" && c.Rate > 0 {
			perRead := c.Rate.Time(c.Chunk)
			if g.mode.Engine != flashio.EngineUring {
				perRead *= units.Nanos(max(cores, 1))
			}
			cost = min(cost, perRead)
		}
	}
	return cost, true
}

func (g *grid) reads() (n int) {
	for _, c := range g.cells {
		n += c.Reads
	}
	return n
}

// blame adds to an error of the fit what the probe knows about its cause.
func (g *grid) blame(err error) error {
	if !errors.Is(err, devicemodels.ErrFit) {
		return err
	}
	tainted := 0
	for _, c := range g.cells {
		if c.Tainted != "" {
			tainted++
		}
	}
	switch {
	case tainted > 0 && len(g.cells)-tainted < tainted:
		return fmt.Errorf("%w: %w; %s", flashio.ErrEnvironment, err, cacheRemedy)
	case g.skipped > 0:
		return fmt.Errorf("%w; the time was up before %d measurements: give a larger budget", err, g.skipped)
	}
	return err
}

// warnings are what the reader of the device should know about its measurement.
func (g *grid) warnings() []string {
	w := slices.Clone(g.mode.Notes)
	if g.note != "" {
		w = append(w, g.note)
	}
	if g.unproven {
		w = append(w, "This system does not count bytes read from storage, so nothing proves that no cache served these reads.")
	}
	if g.skipped > 0 {
		w = append(w, fmt.Sprintf("The time was up before %d measurements; a larger budget measures more.", g.skipped))
	}
	if len(g.reference) < 2 {
		w = append(w, "The reference cell was measured only once, so the drift is not known.")
	}
	return w
}
