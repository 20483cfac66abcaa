package probe

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// fake is a machine whose clock moves only while its flash reads or its kernels run.
type fake struct {
	t     *testing.T
	clock units.Nanos
	flash devicemodels.Flash
	mode  flashio.Mode

	served float64     // share of the bytes that storage counts
	slower func() bool // the flash takes three times as long while this holds
	free   units.Bytes
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
	hostRuns  int
	hostFixed units.Nanos
	hostRate  units.Rate
}

func newFake(t *testing.T, flash devicemodels.Flash) *fake {
	return &fake{
		t: t, flash: flash, served: 1, free: 1 << 40, hostFixed: 5 * units.Microsecond, hostRate: 10 * units.GBps,
		mode: flashio.Mode{Engine: flashio.EnginePread, Direct: true, WantDirect: true, Align: 512, FileSystem: "ext4"},
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
			return &fakeReader{fake: f, depth: opt.Parallel, requested: opt.Engine, size: info.Size()}, nil
		},
		dropCache: func(path string) error { f.dropped = append(f.dropped, path); return nil },
		readBytes: func() (int64, bool) { return f.read, !f.noIO },
		cpuTime:   func() (units.Nanos, bool) { return f.cpu, !f.noCPU },
		freeSpace: func(string) (units.Bytes, bool) { return f.free, true },
		now:       func() units.Nanos { return f.clock },
		wall:      func() time.Time { return time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC) },
		workload:  func(int, uint64) (*workload, error) { return f.workload(), nil },
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
	depth     int
	requested flashio.Engine
	size      int64
	closed    bool
}

func (r *fakeReader) Mode() flashio.Mode {
	m := r.mode
	m.Requested, m.Parallel = r.requested, r.depth
	return m
}

func (r *fakeReader) Close() error {
	if !r.closed {
		r.closed = true
		r.fake.open--
	}
	return nil
}

// ReadBatch moves the clock by what the batch takes: threads that take requests in order, host time on the cores, servers and a link,
// all first come, first served.
func (r *fakeReader) ReadBatch(reqs []flashio.Request) error {
	r.batches++
	if r.onBatch != nil {
		if err := r.onBatch(); err != nil {
			return err
		}
	}
	r.check(reqs)
	cost := r.flash.Engines[string(r.mode.Engine)]
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
	for _, q := range reqs {
		b := units.Bytes(len(q.Buf))
		thread, core := first(threads), first(cores)
		submitted := max(threads[thread], cores[core]) + cost.Submit + cost.Complete
		cores[core] = submitted
		server := first(servers)
		begin := max(submitted, servers[server])
		servers[server] = begin + slow*(r.flash.LTFB+r.flash.ServerRate.Time(b))
		link = max(link, begin+slow*r.flash.LTFB) + slow*r.flash.LinkRate.Time(b)
		threads[thread] = max(servers[server], link)
		end = max(end, threads[thread])
		r.cpu += cost.Submit + cost.Complete
		r.read += int64(float64(b) * r.served)
	}
	r.clock = end
	return nil
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
func nvme() devicemodels.Flash {
	return devicemodels.Flash{
		Servers: 24, LTFB: 70 * units.Microsecond, ServerRate: 900 * units.MBps, LinkRate: 3400 * units.MBps, Align: 512,
		Engines: map[string]devicemodels.EngineCost{
			"pread": {Batch: 3 * units.Microsecond, Submit: 1 * units.Microsecond, Complete: 1 * units.Microsecond},
			"uring": {Batch: 2 * units.Microsecond, Submit: 1 * units.Microsecond, Complete: 1 * units.Microsecond, Serial: true},
		},
	}
}
