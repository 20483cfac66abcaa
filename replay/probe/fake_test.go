package probe

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// fake is a machine whose clock moves only while its flash reads or its kernels run.
type fake struct {
	t     testing.TB
	clock units.Nanos
	flash flash.Spec
	mode  flashio.Mode

	engines []flashio.Engine

	limit  *bucket     // in front of the flash
	noise  float64     // relative, of the LTFB
	spread units.Nanos // added to a read that is far from the one before
	mute   bool        // the reader cannot tell times of reads

	served float64       // share of the bytes that storage counts
	stuck  bool          // pages stay in memory
	slower func() bool   // the flash takes three times as long while this holds
	set    time.Duration // how far the wall clock was set
	free   units.Bytes
	memory units.Bytes // for the page cache
	noCPU  bool
	noIO   bool

	cpu       units.Nanos
	read      int64
	opened    []flashio.Options
	dropped   []string
	open      int // readers not closed yet
	batches   int
	onBatch   func() error // called before every batch
	badBatch  string       // the first batch that broke a rule, and how
	offsets   []int64      // of every read, in order
	dice      *rand.Rand
	hostRuns  int
	hostFixed units.Nanos
	hostRate  units.Rate
}

func newFake(t testing.TB, flash flash.Spec) *fake {
	return &fake{
		t: t, flash: flash, served: 1, free: 1 << 40, hostFixed: 5 * units.Microsecond,
		hostRate: 10 * units.GBps,
		mode:     flashio.Mode{Direct: true, WantDirect: true, Align: 512, FileSystem: "ext4"},
		engines:  []flashio.Engine{flashio.EnginePread}, dice: rng.Stream(1, "probe/fake"),
	}
}

func (f *fake) machine() *machine {
	return &machine{
		hostname: "fake", cores: 2,
		open: func(path string, opt flashio.Options) (flashio.Reader, error) {
			info, err := os.Stat(path)
			if err != nil {
				return nil, err
			}
			f.opened = append(f.opened, opt)
			f.open++
			return &fakeReader{fake: f, depth: opt.Parallel, engine: opt.Engine, size: info.Size()},
				nil
		},
		engines: func() []flashio.Engine { return f.engines },
		sleep: func(ctx context.Context, t units.Nanos) error {
			f.clock += t
			return ctx.Err()
		},
		dropCache:   func(path string) error { f.dropped = append(f.dropped, path); return nil },
		readBytes:   func() (int64, bool) { return f.read, !f.noIO },
		cpuTime:     func() (units.Nanos, bool) { return f.cpu, !f.noCPU },
		freeSpace:   func(string) (units.Bytes, bool) { return f.free, true },
		cacheMemory: func() units.Bytes { return f.memory },
		now:         func() units.Nanos { return f.clock },
		wall: func() time.Time {
			start := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
			return start.Add(time.Duration(f.clock) + f.set)
		},
		workload: func(int, uint64) (*workload, error) { return f.workload(), nil },
	}
}

func (f *fake) workload() *workload {
	job := func(bytes units.Bytes) work {
		return work{calls: 1, bytes: bytes, run: func() {
			f.hostRuns++
			f.clock += f.hostFixed + f.hostRate.Time(bytes)
		}}
	}
	both := timed{small: job(1 << 20), large: job(8 << 20)}
	one := timed{large: job(64 << 20)}
	return &workload{memory: one, dense: both, rows: both, copies: both, kv: one, close: func() {}}
}

type fakeReader struct {
	*fake
	depth  int
	engine flashio.Engine
	size   int64
	times  []units.Nanos
	mapped *flash.Station // engine mmap
	closed bool
}

// TimeReads makes the reader one that flashio.TimeReads knows.
func (r *fakeReader) TimeReads(into []units.Nanos) bool {
	if !r.mute {
		r.times = into
	}
	return !r.mute
}

// bucket lets credit bytes (or as many reads, when perRead) pass in every interval, and keeps up to
// burst while nothing is read.
type bucket struct {
	interval      units.Nanos
	credit, burst int64
	perRead       bool

	left int64
	next units.Nanos // when more comes
}

// pass returns when a read of size bytes at time now has its credit.
func (b *bucket) pass(now units.Nanos, size int64) units.Nanos {
	if b.perRead {
		size = 1
	}
	for b.next <= now || b.left < size {
		waited := b.next > now
		if b.left += b.credit; !waited { // what a waiting read leaves is not lost
			b.left = min(b.left, max(b.burst, b.credit))
		}
		now = max(now, b.next)
		b.next += b.interval
	}
	b.left -= size
	return now
}

func (r *fakeReader) Mode() flashio.Mode {
	m := r.mode
	m.Engine, m.Requested, m.Parallel = r.engine, r.engine, r.depth
	return m
}

func (r *fakeReader) Close() error {
	if !r.closed {
		r.closed = true
		r.fake.open--
	}
	return nil
}

// ReadBatch moves the clock by what the batch takes: threads that take requests in order, host time
// on the cores, servers and a link, all first come, first served.
func (r *fakeReader) ReadBatch(reqs []flashio.Request) error {
	r.batches++
	if r.onBatch != nil {
		if err := r.onBatch(); err != nil {
			return err
		}
	}
	if r.engine == flashio.EngineMmap {
		return r.copyMapped(reqs)
	}
	r.check(reqs)
	cost := r.flash.Engines[string(r.engine)]
	threads := full(r.depth, r.clock+cost.Batch)
	cores, servers := full(2, r.clock), full(r.flash.Servers, r.clock)
	if cost.Serial {
		cores = full(1, r.clock)
	}
	slow := units.Nanos(1)
	if r.slower != nil && r.slower() {
		slow = 3
	}
	link, end := r.clock, r.clock
	for i, q := range reqs {
		b := units.Bytes(len(q.Buf))
		thread, core := first(threads), first(cores)
		picked := threads[thread]
		submitted := max(picked, cores[core]) + cost.Submit + cost.Complete
		cores[core] = submitted
		if r.limit != nil {
			submitted = r.limit.pass(submitted, int64(b))
		}
		ltfb := slow * r.firstByte(q.Offset)
		server := first(servers)
		begin := max(submitted, servers[server])
		servers[server] = begin + ltfb + slow*r.flash.ServerRate.Time(b)
		link = max(link, begin+ltfb) + slow*r.flash.LinkRate.Time(b)
		threads[thread] = max(servers[server], link)
		end = max(end, threads[thread])
		if i < len(r.times) {
			r.times[i] = threads[thread] - picked
		}
		r.cpu += cost.Submit + cost.Complete
		r.read += int64(float64(b) * r.served)
	}
	r.clock = end
	return nil
}

// firstByte is the latency of a read at an offset: with noise, and longer when it lies beyond the
// first 64 MiB.
func (r *fakeReader) firstByte(offset int64) units.Nanos {
	t := float64(r.flash.LTFB)
	if r.noise > 0 {
		t *= math.Exp(r.noise*r.dice.NormFloat64() - r.noise*r.noise/2)
	}
	if offset >= 64<<20 {
		t += float64(r.spread)
	}
	return units.Nanos(t)
}

// check records the first broken rule of a batch.
func (r *fakeReader) check(reqs []flashio.Request) {
	seen := map[int64]bool{}
	for _, q := range reqs {
		n := int64(len(q.Buf))
		switch {
		case r.closed:
			r.complain("read from a closed reader")
		case n == 0 || q.Offset%n != 0 || q.Offset%int64(r.mode.Align) != 0:
			r.complain("misaligned offset")
		case q.Offset < 0 || q.Offset+n > r.size:
			r.complain("read outside the file")
		case seen[q.Offset]:
			r.complain("the same place twice in one batch")
		}
		seen[q.Offset] = true
		r.offsets = append(r.offsets, q.Offset)
	}
}

func (r *fakeReader) complain(what string) {
	if r.badBatch == "" {
		r.badBatch = what
	}
}

func full(n int, t units.Nanos) []units.Nanos {
	s := make([]units.Nanos, n)
	for i := range s {
		s[i] = t
	}
	return s
}

func first(times []units.Nanos) int {
	return slices.Index(times, slices.Min(times))
}

var errBroken = errors.New("broken drive")

// nvme is a plausible drive: 24 servers of 70 µs behind a 3.4 GB/s link.
func nvme() flash.Spec {
	return flash.Spec{
		Servers: 24, LTFB: 70 * units.Microsecond, ServerRate: 900 * units.MBps, LinkRate: 3400 *
			units.MBps, Align: 512,
		Engines: map[string]flash.EngineCost{
			"pread": {Batch: 3 * units.Microsecond, Submit: 1 * units.Microsecond, Complete: 1 *
				units.Microsecond},
			"uring": {Batch: 2 * units.Microsecond, Submit: 1 * units.Microsecond, Complete: 1 *
				units.Microsecond, Serial: true},
		},
	}
}
