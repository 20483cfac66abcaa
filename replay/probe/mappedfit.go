package probe

import (
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// medianFetched is what a request brought in, by those that brought in something.
func medianFetched(rounds [][]coldRead) units.Bytes {
	var fetched []units.Bytes
	for _, round := range rounds {
		for _, r := range round {
			if r.fetched > 0 {
				fetched = append(fetched, r.fetched)
			}
		}
	}
	if len(fetched) == 0 {
		return 0
	}
	slices.Sort(fetched)
	return fetched[len(fetched)/2]
}

// served reports whether storage served the requests that no earlier one of their round can have
// brought in: those further from it than two windows, as the system may read on after the first.
func served(rounds [][]coldRead, chunk units.Bytes) bool {
	far, fetched := 0, 0
	for _, round := range rounds {
		var most units.Bytes
		for _, r := range round {
			most = max(most, r.fetched)
		}
		for i, r := range round {
			near := slices.ContainsFunc(round[:i], func(e coldRead) bool {
				return max(e.at-r.at,
					r.at-e.at) < 2*most+chunk
			})
			if !near {
				far++
				if r.fetched > 0 {
					fetched++
				}
			}
		}
	}
	return far > 0 && judge(units.Bytes(fetched), units.Bytes(far)) == ""
}

// summary is of the requests that fetched something and that no limit held; where all should fetch
// as much, of those that did.
func summary(rounds [][]coldRead, chunk, want units.Bytes, alike bool,
	limit *flash.Limit) coldResult {
	const near = 0.1
	res := coldResult{Chunk: chunk}
	var took []units.Nanos
	for _, round := range rounds {
		for _, r := range round {
			off := float64(r.fetched)/float64(want) - 1
			if r.fetched == 0 || limit != nil && r.took >= limit.Interval/4 || alike &&
				(off > near || off < -near) {
				continue
			}
			res.Requests++
			res.Fetched += r.fetched
			took = append(took, r.took)
		}
	}
	if n := units.Bytes(res.Requests); n > 0 {
		res.Fetched, res.Took = res.Fetched/n, median(took)
	}
	return res
}

// oneWindow reports whether the half of a window that lies behind a fault holds a request, or the
// request is but a page.
func oneWindow(chunk, ahead units.Bytes) bool { return chunk <= ahead/2 || chunk == touched }

// slope is the cost of a request and the rate of its bytes, from the times of a small and a large
// one.
func slope(small, large units.Nanos) (fixed units.Nanos, rate units.Rate) {
	if large <= small {
		return 0, digits4(largeHit.Over(max(large, 1)))
	}
	rate = digits4((largeHit - smallHit).Over(large - small))
	return max(small-rate.Time(smallHit), 0), rate
}

// addMapped puts what was found into a fitted device. What a cold request takes longer than the
// device needs, as the model has it, and than the copying, is the fault's; how much of it goes with
// the bytes shows in gaps, of which less is fetched.
func (g *grid) addMapped(d *devicemodels.Device) {
	f := g.mapped
	if f == nil || f.Missing != "" {
		return
	}
	free := d.Flash
	free.Limit = nil // requests that waited for credit are left out
	loop := free.Loop(1, true)
	beyond := func(c coldResult) units.Nanos {
		return c.Took - units.FromSeconds(1/loop.Rate(0, float64(c.Fetched), 1)) - f.HitFixed -
			f.HitRate.Time(c.Chunk)
	}
	var sizes []units.Nanos
	for _, c := range f.Cold {
		if c.Requests > 0 && oneWindow(c.Chunk, f.ReadAhead) {
			sizes = append(sizes, beyond(c))
		}
	}
	if len(sizes) == 0 {
		return // samples that no probe wrote
	}
	whole := max(median(sizes), 0) // not the mean: the drive may have been disturbed during one
	cache := &flash.PageCache{Capacity: f.Capacity, ReadAhead: f.ReadAhead, HitRate: f.HitRate}
	gap := whole
	if f.Gap.Requests > 0 {
		gap = beyond(f.Gap)
	}
	cache.Fault, cache.FillRate = shares(whole, gap, f.ReadAhead, f.ReadAhead-f.Gap.Fetched)
	d.Flash.PageCache = cache
	d.Flash.Engines[string(flashio.EngineMmap)] = flash.EngineCost{Complete: f.HitFixed,
		Cached: true}
	d.Sources["flash.engines.mmap"] = fmt.Sprintf("copies from memory of %v and %v", smallHit,
		largeHit)
	d.Sources["flash.page_cache"] = f.source(&d.Flash)
	if page, model := f.Cold[0], coldTime(&d.Flash,
		f.Cold[0].Chunk); float64(model) > modelledWell*float64(page.Took) {
		d.Fit.Warnings = append(d.Fit.Warnings,
			fmt.Sprintf("A cold page of a mapped file took %v, which the model says is %v: its "+
				"device is slower than "+
				"the one that served it. Predictions of mapped files are too slow by as much; "+
				"probe "+
				"again when the machine is at rest.", page.Took, model))
	}
}

// modelledWell is how much longer than measured a cold page may take in the model without a
// warning.
const modelledWell = 1.25

// coldTime is the time of a request of which nothing is in memory, as the model has it.
func coldTime(spec *flash.Spec, chunk units.Bytes) units.Nanos {
	return spec.Throughput(string(flashio.EngineMmap), 1, chunk, 1).Time(chunk)
}

// shares divides the time of a fault for a whole window into what it costs and what its bytes do,
// by the time of one that fetches less bytes. Together they are never more than whole: a device
// that is modelled too slow leaves nothing for the host.
func shares(whole, part units.Nanos, window, less units.Bytes) (fault units.Nanos,
	rate units.Rate) {
	if part < whole && less > 0 {
		bytes := min(units.Nanos(float64(whole-part)*float64(window)/float64(less)), whole)
		return digits4(whole - bytes), digits4(window.Over(bytes))
	}
	return digits4(whole), 0
}

// source says where the numbers come from, and how well they tell the times that they are from.
func (f *mappedFound) source(spec *flash.Spec) string {
	text := "cold requests at random places, one at a time; read_ahead: median that a touch of " +
		"a page fetched; fault and fill_rate: their time " +
		"beyond what the fitted device needs"
	for _, c := range f.Cold {
		text += fmt.Sprintf("; %v: %d fetched %v in %v (model %v)", c.Chunk, c.Requests, c.Fetched,
			c.Took, coldTime(spec, c.Chunk))
	}
	if f.Gap.Requests > 0 {
		text += fmt.Sprintf("; gaps: %d fetched %v in %v", f.Gap.Requests, f.Gap.Fetched,
			f.Gap.Took)
	}
	if f.Capacity > 0 {
		text += "; capacity: memory that was available, of which the engine's own is not taken off"
	}
	return text
}
