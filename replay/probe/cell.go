package probe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/clock"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

const (
	maxChunk = 4 * units.MiB
	slabSize = 128 * units.MiB // all buffers of the largest batch
	// maxRounds bounds the reads of a batch by this many for each thread: enough that starting and
	// draining the loop do not count.
	maxRounds = 64
	minRounds = 16
	// warmRounds are read before a cell is measured.
	warmRounds = 2
	// batchesPerCell is how many batches a cell's time is cut into where reads are fast enough.
	batchesPerCell = 6
	// servedShare is the least part of a cell's bytes that storage must have served.
	servedShare = 0.95
	// freeReads is how many reads of a loop that a limit holds must have found credit, so that they
	// show the device behind it.
	freeReads = 30
	// intervalsPerBatch and intervalsPerCell are how long a limited loop is read, in intervals of
	// the limit.
	intervalsPerBatch, intervalsPerCell = 2, 12
)

// kind says what a loop is measured for.
type kind string

const (
	kindCell      kind = "cell"
	kindReference kind = "reference"
	kindNarrow    kind = "narrow" // reads within one stretch, for the effect of the span
	kindWide      kind = "wide"   // the same all over the file
)

// loop is one thing to measure.
type loop struct {
	Kind   kind           `json:"kind"`
	Engine flashio.Engine `json:"engine"`
	Chunk  units.Bytes    `json:"chunk"`
	Depth  int            `json:"depth"`
}

// result is one measured loop, as it is written with the samples.
type result struct {
	loop
	Reads int        `json:"reads"`
	Rate  units.Rate `json:"rate"`
	// 95 % confidence interval of the mean; 0 = not known
	RateLow    units.Rate  `json:"rate_low"`
	RateHigh   units.Rate  `json:"rate_high"`
	Unsteady   bool        `json:"unsteady"`
	CPUPerRead units.Nanos `json:"cpu_per_read"` // 0 when not known
	Counted    bool        `json:"counted"`      // the system counts bytes served by storage
	Tainted    string      `json:"tainted"`
	// of all reads, one by one; empty when the engine cannot tell
	Times flash.Histogram `json:"times"`
}

// prober measures loops on one file.
type prober struct {
	m       *machine
	t       *target
	random  *rand.Rand
	span    units.Bytes       // reads of a batch lie in a stretch of this size; 0 = anywhere
	slab    []byte            // memory that reads go to
	reqs    []flashio.Request // reused by all batches
	times   []units.Nanos     // of the reads of a batch
	order   map[units.Bytes]*positions
	limit   *flash.Limit // what holds the reads back; nil = nothing
	samples *samples
	// the file is not of the system's storage
	emulated bool
}

func newProber(cfg Config, m *machine, t *target, align units.Bytes, s *samples) *prober {
	return &prober{
		m: m, t: t, span: cfg.Span, samples: s, emulated: cfg.Open != nil,
		random: rng.Stream(cfg.Seed, "probe/offsets"),
		slab:   flashio.AlignedBuffer(int(slabSize), int(align)),
		order:  make(map[units.Bytes]*positions),
	}
}

func (p *prober) open(engine flashio.Engine, depth int) (flashio.Reader, error) {
	r, err := p.m.open(p.t.path, flashio.Options{Engine: engine, Direct: flashio.DirectAuto,
		Parallel: depth})
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	return r, nil
}

// measure runs the loop l until it is settled or the time is end: a first batch that is not
// counted, to start the threads and to learn how long a batch may be, then one at least. A loop
// that the samples hold already is not run.
func (p *prober) measure(ctx context.Context, l loop, end units.Nanos) (res result, err error) {
	if res, ok := p.samples.take(l); ok {
		return res, nil
	}
	r, err := p.open(l.Engine, l.Depth)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()

	begin := p.m.now()
	warm, err := p.batch(r, l, warmRounds*l.Depth)
	if err != nil {
		return res, err
	}
	run := &running{result: result{loop: l}, p: p, watch: clock.NewWatch(p.m.clocks),
		n: p.batchSize(l, warm, end-p.m.now())}
	if p.limit != nil {
		end = max(end, begin+intervalsPerCell*p.limit.Interval)
	}
	run.timed = flashio.TimeReads(r, p.timesOf(run.n))
	for {
		if err := ctx.Err(); err != nil {
			return res, fmt.Errorf("probe: %w", err)
		}
		took, err := run.batch(r)
		if err != nil {
			return res, err
		}
		if p.m.now()+took > end || p.limit == nil && settled(run.took) {
			break
		}
	}
	return run.finish(), p.samples.cell(&run.result)
}

// timesOf returns room for the times of n reads.
func (p *prober) timesOf(n int) []units.Nanos {
	if len(p.times) < n {
		p.times = make([]units.Nanos, n)
	}
	return p.times[:n]
}

// running is a loop while it is measured.
type running struct {
	result
	p     *prober
	watch *clock.Watch
	n     int // reads of a batch
	timed bool
	took  []units.Nanos // by batch, as if it had neither beginning nor end (fullLoop)

	served     int64
	notCounted bool
	cpu        units.Nanos
	cpuUnknown bool
	free       int // reads that no limit held
}

// batch reads one batch and notes all there is to know of it.
func (r *running) batch(reader flashio.Reader) (units.Nanos, error) {
	p := r.p
	served, counted := p.m.readBytes()
	cpu, cpuKnown := p.m.cpuTime()
	start := p.m.now()
	took, err := p.batch(reader, r.loop, r.n)
	if err != nil {
		return 0, err
	}
	r.watch.Look()
	cpuAfter, _ := p.m.cpuTime()
	servedAfter, _ := p.m.readBytes()
	full := took
	if r.timed && p.limit == nil { // a limit stops all threads at once
		full = fullLoop(p.times[:r.n], r.Depth, took)
	}
	r.took = append(r.took, full)
	r.served += servedAfter - served
	r.cpu += cpuAfter - cpu
	r.notCounted, r.cpuUnknown = r.notCounted || !counted, r.cpuUnknown || !cpuKnown
	if r.timed {
		for _, t := range p.times[:r.n] {
			r.Times.Add(t, 1)
			if p.limit != nil && t < p.limit.Interval/4 {
				r.free++
			}
		}
	}
	return took, p.samples.batch(sampleBatch{loop: r.loop, Start: start, Took: took, Reads: r.n,
		Served: servedAfter - served, CPU: cpuAfter - cpu})
}

// finish works out the result. A steady end of the batches is what counts; without one, all of
// them, and the cell says so.
func (r *running) finish() result {
	from, ok := steadyFrom(r.took)
	r.Unsteady = !ok
	mean, half := interval(r.took[from:])
	bytes := float64(r.n) * float64(r.Chunk)
	rate := func(nanos float64) units.Rate { return units.Rate(bytes / nanos * 1e9) }
	if mean > 0 {
		r.Rate = rate(mean)
		if half < mean/2 {
			r.RateLow, r.RateHigh = rate(mean+half), rate(mean-half)
		}
	}
	r.Reads = r.n * len(r.took)
	if !r.cpuUnknown {
		r.CPUPerRead = r.cpu / units.Nanos(r.Reads)
	}
	if !r.notCounted {
		r.Counted = true
		r.Tainted = judge(units.Bytes(r.served), units.Bytes(r.Reads)*r.Chunk)
	}
	if r.Tainted == "" && r.free < freeReads && r.p.held(&r.result) {
		r.Tainted = "every read waited for the limit, so that the loop says nothing about the " +
			"device behind it"
	}
	if r.p.emulated { // storage has no part in it
		r.Tainted, r.Counted = "", true
	}
	if why := clock.Why(r.watch.Jump()); why != "" {
		r.Tainted = why
	}
	return r.result
}

// judge says why a cell cannot be a measurement of the device; empty when it can.
func judge(served, asked units.Bytes) string {
	share := float64(served) / float64(asked)
	if share >= servedShare {
		return ""
	}
	return fmt.Sprintf("storage served %.0f %% of the bytes, the rest came from a cache in memory",
		100*share)
}

// batchSize returns how many reads make a batch: a part of the time that is left, of a few rounds
// at least, because a batch of one round measures the slowest of its reads and not the rate of a
// loop; behind a limit, the credit of a few whole intervals. The result is a multiple of the depth
// where memory and file are large enough.
func (p *prober) batchSize(l loop, warm, left units.Nanos) int {
	most := p.most(l.Chunk)
	if p.limit != nil {
		return min(max(p.credit(l.Chunk, intervalsPerBatch), min(l.Depth, most)), most)
	}
	rounds := maxRounds
	if perRound := warm / warmRounds; perRound > 0 {
		fit := int(left / perRound)
		rounds = min(maxRounds, max(fit/batchesPerCell, min(fit, minRounds), 1))
	}
	n := min(rounds*l.Depth, most)
	return max(n-n%l.Depth, min(l.Depth, most))
}

// most returns the largest batch that memory and file allow.
func (p *prober) most(chunk units.Bytes) int {
	return int(min(units.Bytes(len(p.slab)), p.t.size) / chunk)
}

// batch reads n chunks in ascending order, as the engine does, and returns how long the reads took.
func (p *prober) batch(r flashio.Reader, l loop, n int) (units.Nanos, error) {
	n = min(n, p.most(l.Chunk))
	p.reqs = p.reqs[:0]
	for i, at := range p.places(l, n) {
		lo := i * int(l.Chunk)
		p.reqs = append(p.reqs, flashio.Request{Offset: at * int64(l.Chunk),
			Buf: p.slab[lo : lo+int(l.Chunk) : lo+int(l.Chunk)]})
	}
	start := p.m.now()
	if err := r.ReadBatch(p.reqs); err != nil {
		return 0, fmt.Errorf("probe: %w", err)
	}
	return p.m.now() - start, nil
}

// batchCost estimates what a batch costs besides its reads: a batch of one read on all threads,
// less a lone read of a loop of one. It is the difference of two medians and never negative.
func (p *prober) batchCost(ctx context.Context, engine flashio.Engine, chunk units.Bytes, depth int,
	end units.Nanos) (units.Nanos, error) {
	now := p.m.now()
	single, err := p.medianBatch(ctx, loop{Engine: engine, Chunk: chunk, Depth: depth}, 1,
		now+(end-now)/2)
	if err != nil {
		return 0, err
	}
	const lone = 16
	many, err := p.medianBatch(ctx, loop{Engine: engine, Chunk: chunk, Depth: 1}, lone, end)
	if err != nil {
		return 0, err
	}
	// With one thread a batch of n reads takes cost + n reads, one of a single read cost + 1 read.
	return max(0, (lone*single-many)/(lone-1)), nil
}

// medianBatch returns the median time of batches of n reads on a reader with the loop's number of
// threads.
func (p *prober) medianBatch(ctx context.Context, l loop, n int, end units.Nanos) (t units.Nanos,
	err error) {
	const most = 200
	r, err := p.open(l.Engine, l.Depth)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var times []units.Nanos
	for len(times) < most && (len(times) == 0 || p.m.now() < end) {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("probe: %w", err)
		}
		took, err := p.batch(r, l, n)
		if err != nil {
			return 0, err
		}
		times = append(times, took)
	}
	return median(times), nil
}
