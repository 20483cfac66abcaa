package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// A token bucket in front of the device shows as stop and go: reads pass as fast as the device is
// until the credit is used up, and wait for the next. The search for it reads after a pause, small
// chunks and then larger ones, and looks at when reads complete.
//
// A gap between two completions is a stall when it is at least half as long as the third longest (a
// single hiccup can be longer than any stall) and leastStall. The evidence is clear when there are
// leastStalls of them, when three quarters of the distances between their ends are within
// limitSpread of the median distance, the bytes between them likewise, and when the stalls are a
// quarter of the time at least. Less may be the device's own habit.
const (
	leastStall  = 3 * units.Millisecond
	leastStalls = 5
	limitSpread = 0.15
	stalledPart = 0.25
	// limitMost bounds the pause and each of the two looks; they get limitShare of the flash's time
	// each.
	limitMost  = units.Second
	limitShare = 1.0 / 16
	// limitDepth reads are in a batch, all at once, so that a batch's start and a read's time say
	// when it completed.
	limitDepth = 16
	largeLook  = 64 * units.KiB
)

// limitFound is what the search found, as it is written with the samples.
type limitFound struct {
	Limit *flash.Limit `json:"limit"` // nil = none
}

// stopAndGo is the pattern that a limit makes.
type stopAndGo struct {
	interval units.Nanos // between the ends of stalls
	reads    float64     // per second, over whole intervals
	first    int         // reads before the first stall
	firstAt  units.Nanos // and how long they took
}

// findLimit looks for a limit. A limit that lets more pass than limitDepth reads of largeLook can
// ask for is not seen, nor is one with a burst that the looks do not use up.
func (p *prober) findLimit(ctx context.Context, engine flashio.Engine, chunk, large units.Bytes,
	share units.Nanos) (*flash.Limit, error) {
	if found, ok := p.samples.limit(); ok {
		return found, nil
	}
	if err := p.m.sleep(ctx, share); err != nil {
		return nil, err
	}
	small, smallRate, err := p.look(ctx, loop{Engine: engine, Chunk: chunk, Depth: limitDepth},
		share)
	if err != nil {
		return nil, err
	}
	big, bigRate, err := p.look(ctx, loop{Engine: engine, Chunk: large, Depth: limitDepth}, share)
	if err != nil {
		return nil, err
	}
	found := decide(small, big, chunk, large, smallRate, bigRate)
	return found, p.samples.found(limitFound{found})
}

// decide tells a limit on bytes from one on requests by how the two looks differ. The rates are
// reads per second.
func decide(small, big *stopAndGo, chunk, large units.Bytes, smallRate,
	bigRate float64) *flash.Limit {
	bytes := false
	seen := small
	switch {
	case small == nil && big == nil:
		return nil
	case small == nil: // more bytes, fewer requests
		bytes, seen, chunk = true, big, large
	case big == nil:
		bytes = false // fewer requests, more bytes
	default:
		// Both are held: by bytes when the rates in bytes are the nearer ones.
		inBytes := math.Abs(math.Log(bigRate * float64(large) / smallRate / float64(chunk)))
		bytes = inBytes < math.Abs(math.Log(bigRate/smallRate))
	}
	limit := &flash.Limit{Interval: digits4(seen.interval)}
	if !bytes {
		limit.IOPS = int64(math.Round(seen.reads))
		return limit
	}
	rate := seen.reads * float64(chunk)
	limit.Rate = digits4(units.Rate(rate))
	// What passed before the first stall, less the credit that came meanwhile, is the bucket; that
	// of one interval is the least.
	whole := float64(seen.firstAt / seen.interval)
	credit := rate * seen.interval.Seconds()
	if burst := float64(seen.first)*float64(chunk) - whole*credit; seen == small &&
		burst > 1.5*credit {
		limit.Burst = units.Bytes(digits4(units.Rate(burst)))
	}
	return limit
}

// look reads batches of the loop's depth for a while and returns the pattern, nil when there is
// none, and the reads per second.
func (p *prober) look(ctx context.Context, l loop, window units.Nanos) (found *stopAndGo,
	rate float64, err error) {
	r, err := p.open(l.Engine, l.Depth)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	n := min(l.Depth, p.most(l.Chunk))
	times := p.timesOf(n)
	timed := flashio.TimeReads(r, times)
	begin := p.m.now()
	var ends []units.Nanos
	for p.m.now()-begin < window {
		if err := ctx.Err(); err != nil {
			return nil, 0, fmt.Errorf("probe: %w", err)
		}
		start := p.m.now() - begin
		took, err := p.batch(r, l, n)
		if err != nil {
			return nil, 0, err
		}
		for i := range n {
			end := start + took
			if timed {
				end = start + min(times[i], took)
			}
			ends = append(ends, end)
		}
	}
	if len(ends) == 0 {
		return nil, 0, nil
	}
	slices.Sort(ends)
	found = pattern(ends)
	rate = float64(len(ends)) / max(ends[len(ends)-1], 1).Seconds()
	if found != nil {
		rate = found.reads
	}
	return found, rate, nil
}

// pattern looks for stop and go in sorted times of completion, from the start of reading. It is nil
// when the evidence is not clear.
func pattern(ends []units.Nanos) *stopAndGo {
	if len(ends) <= leastStalls {
		return nil
	}
	gaps := make([]units.Nanos, len(ends)-1)
	for i := range gaps {
		gaps[i] = ends[i+1] - ends[i]
	}
	longest := slices.Sorted(slices.Values(gaps))
	least := max(longest[len(longest)-3]/2, leastStall)
	var stalls []int // indices of the first completion after a stall
	var stalled units.Nanos
	for i, g := range gaps {
		if g >= least {
			stalls = append(stalls, i+1)
			stalled += g
		}
	}
	if len(stalls) < leastStalls {
		return nil
	}
	distances, counts := make([]float64, len(stalls)-1), make([]float64, len(stalls)-1)
	for i := range distances {
		distances[i] = float64(ends[stalls[i+1]] - ends[stalls[i]])
		counts[i] = float64(stalls[i+1] - stalls[i])
	}
	first, last := stalls[0], stalls[len(stalls)-1]
	span := ends[last] - ends[first]
	if !alike(distances) || !alike(counts) || float64(stalled) < stalledPart*float64(ends[last]) {
		return nil
	}
	return &stopAndGo{
		interval: units.Nanos(middle(distances)), reads: float64(last-first) / span.Seconds(),
		first: first, firstAt: ends[first-1],
	}
}

// alike reports whether three quarters of the values are within limitSpread of their median, or
// within one of it: what a limit lets through is cut to whole reads.
func alike(values []float64) bool {
	m := middle(values)
	near := 0
	for _, v := range values {
		if math.Abs(v-m) <= max(limitSpread*m, 1) {
			near++
		}
	}
	return 4*near >= 3*len(values)
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// credit returns how many reads of a chunk the limit lets pass in a number of intervals.
func (p *prober) credit(chunk units.Bytes, intervals units.Nanos) int {
	t := (intervals * p.limit.Interval).Seconds()
	reads := math.Inf(1)
	if p.limit.Rate > 0 {
		reads = float64(p.limit.Rate) * t / float64(chunk)
	}
	if p.limit.IOPS > 0 {
		reads = min(reads, float64(p.limit.IOPS)*t)
	}
	return int(math.Round(reads))
}

// held reports whether a loop's rate is the limit's and not its own.
func (p *prober) held(r *result) bool {
	if p.limit == nil {
		return false
	}
	const nearly = 0.7
	rate := float64(r.Rate)
	return p.limit.Rate > 0 && rate > nearly*float64(p.limit.Rate) || p.limit.IOPS > 0 &&
		rate/float64(r.Chunk) > nearly*float64(p.limit.IOPS)
}

// holds reports whether a limit makes a loop too slow to measure in its time: warming up and one
// batch.
func (p *prober) holds(l loop, share units.Nanos) bool {
	if p.limit == nil {
		return false
	}
	per := max(p.limit.Rate.Time(l.Chunk), 0)
	if p.limit.IOPS > 0 {
		per = max(per, units.Second/units.Nanos(p.limit.IOPS))
	}
	return per*units.Nanos((warmRounds+1)*l.Depth) > share
}
