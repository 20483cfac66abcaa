package probe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

const (
	maxChunk = 4 * units.MiB
	slabSize = 32 * units.MiB // all buffers of the largest batch
	// maxRounds bounds the reads of a batch by this many for each thread: enough that starting and draining the loop do not count.
	maxRounds = 64
	minRounds = 4
	// warmRounds are read before a cell is measured.
	warmRounds = 2
	// batchesPerCell is how many batches a cell's time is cut into where reads are fast enough; P50 and P99 are over batches.
	batchesPerCell = 8
	// maxPositions bounds the memory for positions in a large file.
	maxPositions = 1 << 20
	// servedShare is the least part of a cell's bytes that storage must have served.
	servedShare = 0.95
)

// result is one measured loop.
type result struct {
	reads      int
	rate       units.Rate
	p50, p99   units.Nanos // of one read: depth × batch time / reads of the batch (Little's law), over batches
	cpuPerRead units.Nanos // 0 when not known
	counted    bool        // the system counts bytes served by storage
	tainted    string
}

// prober measures loops on one file.
type prober struct {
	m      *machine
	t      *target
	engine flashio.Engine
	random *rand.Rand
	span   units.Bytes       // reads of a batch lie in a stretch of this size; 0 = anywhere
	slab   []byte            // memory that reads go to
	reqs   []flashio.Request // reused by all batches
	order  map[units.Bytes]*positions
}

func newProber(cfg Config, m *machine, t *target, mode flashio.Mode) *prober {
	size := max(slabSize, slices.Max(cfg.Chunks))
	return &prober{
		m: m, t: t, engine: cfg.Engine, span: cfg.Span,
		random: rng.Stream(cfg.Seed, "probe/offsets"),
		slab:   flashio.AlignedBuffer(int(size), int(mode.Align)),
		order:  make(map[units.Bytes]*positions),
	}
}

// measure runs the loop l until the time end: a first batch that is not counted, to start the threads and to learn how long a
// batch may be, then as many as fit, one at least.
func (p *prober) measure(ctx context.Context, l loop, end units.Nanos) (res result, err error) {
	r, err := p.m.open(p.t.path, flashio.Options{Engine: p.engine, Direct: flashio.DirectAuto, Parallel: l.depth})
	if err != nil {
		return res, fmt.Errorf("probe: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()

	warm, err := p.batch(r, l.chunk, warmRounds*l.depth)
	if err != nil {
		return res, err
	}
	n := p.batchSize(l, warm, end-p.m.now())
	served, counted := p.m.readBytes()
	cpu, cpuKnown := p.m.cpuTime()
	var times []units.Nanos
	var busy units.Nanos
	for {
		if err := ctx.Err(); err != nil {
			return res, fmt.Errorf("probe: %w", err)
		}
		took, err := p.batch(r, l.chunk, n)
		if err != nil {
			return res, err
		}
		times = append(times, took)
		busy += took
		if p.m.now()+took > end {
			break
		}
	}
	res.reads = n * len(times)
	bytes := units.Bytes(res.reads) * l.chunk
	res.rate = bytes.Over(busy)
	if after, ok := p.m.cpuTime(); ok && cpuKnown {
		res.cpuPerRead = (after - cpu) / units.Nanos(res.reads)
	}
	if after, ok := p.m.readBytes(); ok && counted {
		res.counted = true
		res.tainted = judge(units.Bytes(after-served), bytes)
	}
	res.p50, res.p99 = perRead(times, l.depth, n)
	return res, nil
}

// judge says why a cell cannot be a measurement of the device; empty when it can.
func judge(served, asked units.Bytes) string {
	share := float64(served) / float64(asked)
	if share >= servedShare {
		return ""
	}
	return fmt.Sprintf("storage served %.0f %% of the bytes, the rest came from a cache in memory", 100*share)
}

// perRead turns batch times into the time of one read as its thread saw it.
func perRead(times []units.Nanos, depth, n int) (p50, p99 units.Nanos) {
	slices.Sort(times)
	at := func(share float64) units.Nanos {
		t := times[int(share*float64(len(times)-1)+0.5)]
		return t * units.Nanos(min(depth, n)) / units.Nanos(n)
	}
	return at(0.50), at(0.99)
}

// batchSize returns how many reads make a batch: a part of the time that is left, of a few rounds at least, because a batch of
// one round measures the slowest of its reads and not the rate of a loop. The result is a multiple of the depth where memory
// and file are large enough.
func (p *prober) batchSize(l loop, warm, left units.Nanos) int {
	rounds := maxRounds
	if perRound := warm / warmRounds; perRound > 0 {
		fit := int(left / perRound)
		rounds = min(maxRounds, max(fit/batchesPerCell, min(fit, minRounds), 1))
	}
	most := p.most(l.chunk)
	n := min(rounds*l.depth, most)
	return max(n-n%l.depth, min(l.depth, most))
}

// most returns the largest batch that memory and file allow.
func (p *prober) most(chunk units.Bytes) int {
	return int(min(units.Bytes(len(p.slab)), p.t.size) / chunk)
}

// batch reads n chunks in ascending order, as the engine does, and returns how long the reads took.
func (p *prober) batch(r flashio.Reader, chunk units.Bytes, n int) (units.Nanos, error) {
	n = min(n, p.most(chunk))
	p.reqs = p.reqs[:0]
	for i, at := range p.places(chunk, n) {
		lo := i * int(chunk)
		p.reqs = append(p.reqs, flashio.Request{Offset: at * int64(chunk), Buf: p.slab[lo : lo+int(chunk) : lo+int(chunk)]})
	}
	start := p.m.now()
	if err := r.ReadBatch(p.reqs); err != nil {
		return 0, fmt.Errorf("probe: %w", err)
	}
	return p.m.now() - start, nil
}

// places returns n different places of the file in ascending order, in units of chunks: in one stretch of the span's size (or
// twice the reads, if that is more), or anywhere.
func (p *prober) places(chunk units.Bytes, n int) []int64 {
	total := int64(p.t.size / chunk)
	list := make([]int64, n)
	if within := max(int64(p.span/chunk), 2*int64(n)); p.span > 0 && within < total {
		first := p.random.Int64N(total - within + 1)
		for i, at := range p.random.Perm(int(within))[:n] {
			list[i] = first + int64(at)
		}
	} else {
		at := p.order[chunk]
		if at == nil {
			at = newPositions(total, p.random)
			p.order[chunk] = at
		}
		for i := range list {
			list[i] = at.next(n - i)
		}
	}
	slices.Sort(list)
	return list
}

// batchCost estimates what a batch costs besides its reads: a batch of one read on all threads, less a lone read of a loop
// of one. It is the difference of two medians and never negative.
func (p *prober) batchCost(ctx context.Context, chunk units.Bytes, depth int, end units.Nanos) (units.Nanos, error) {
	now := p.m.now()
	single, err := p.medianBatch(ctx, chunk, depth, 1, now+(end-now)/2)
	if err != nil {
		return 0, err
	}
	const lone = 16
	many, err := p.medianBatch(ctx, chunk, 1, lone, end)
	if err != nil {
		return 0, err
	}
	// With one thread a batch of n reads takes cost + n reads, one of a single read cost + 1 read.
	return max(0, (lone*single-many)/(lone-1)), nil
}

// medianBatch returns the median time of batches of n reads on a reader with depth threads.
func (p *prober) medianBatch(ctx context.Context, chunk units.Bytes, depth, n int, end units.Nanos) (t units.Nanos, err error) {
	const most = 200
	r, err := p.m.open(p.t.path, flashio.Options{Engine: p.engine, Direct: flashio.DirectAuto, Parallel: depth})
	if err != nil {
		return 0, fmt.Errorf("probe: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var times []units.Nanos
	for len(times) < most && (len(times) == 0 || p.m.now() < end) {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("probe: %w", err)
		}
		took, err := p.batch(r, chunk, n)
		if err != nil {
			return 0, err
		}
		times = append(times, took)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// positions hands out the places of a file in a random order, each once before any comes again. A file with more
// places than maxPositions is cut into that many equal parts, and one random place stands for each.
type positions struct {
	order []int64
	used  int
	again *rand.Rand
}

func newPositions(places int64, random *rand.Rand) *positions {
	n := min(places, maxPositions)
	p := &positions{order: make([]int64, n), again: random}
	for i := range p.order {
		lo, hi := places/n*int64(i)+min(int64(i), places%n), places/n*int64(i+1)+min(int64(i+1), places%n)
		p.order[i] = lo + random.Int64N(hi-lo)
	}
	p.shuffle()
	return p
}

func (p *positions) shuffle() {
	p.again.Shuffle(len(p.order), func(i, j int) { p.order[i], p.order[j] = p.order[j], p.order[i] })
	p.used = 0
}

// next returns the next place. A batch that needs more places than are left before the end of the order starts it anew, so
// that no place is in one batch twice; need is how many places the batch still takes.
func (p *positions) next(need int) int64 {
	if p.used+min(need, len(p.order)) > len(p.order) {
		p.shuffle()
	}
	p.used++
	return p.order[p.used-1]
}
