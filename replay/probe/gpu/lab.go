package gpu

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cuda"
)

// Sizes of the pool that weights come from: beyond every cache of a device, and what the small
// sizes need.
const (
	fullPool  = 1 << 30
	smallPool = 4 << 20
	fill      = 0x2c // bytes of it are small numbers in every format
)

// side says whose time a call is.
type side int

const (
	onDevice side = iota // its work, by the device's events
	asking               // the host's, until it can ask for the next
	waiting              // the host's, from asking until it knows that the work is done
)

// call is one kind of work of one size. once asks for it.
type call struct {
	of, shape string
	bytes     units.Bytes
	precision string // of weights; empty = f16, or none
	side      side
	once      func() error
}

// lab is a device with what the calls need. After the first error it makes nothing more.
type lab struct {
	*cuda.Device
	*cuda.Kernels
	stream          cuda.Stream
	begin, from, to cuda.Event
	pool            cuda.Mem
	turn            int64
	gates           int // copies that hold the stream
	runs            int
	now             func() time.Duration
	err             error
}

func newLab(d *cuda.Device, opt Options, pool int64) (*lab, error) {
	l := &lab{Device: d, gates: 1, runs: opt.Runs, now: opt.now}
	if l.runs == 0 {
		l.runs = defaultRuns
	}
	if l.now == nil {
		begin := time.Now()
		l.now = func() time.Duration { return time.Since(begin) }
	}
	var err error
	if l.Kernels, err = cuda.NewKernels(d); err != nil {
		return nil, err
	}
	if l.stream, err = d.NewStream(); err != nil {
		return nil, err
	}
	for _, e := range []*cuda.Event{&l.begin, &l.from, &l.to} {
		if *e, err = d.NewEvent(true); err != nil {
			return nil, err
		}
	}
	free, _, err := d.MemInfo()
	if err != nil {
		return nil, err
	}
	l.pool = l.room(min(pool, int64(free)/2))
	if l.err == nil {
		l.err = d.Fill(l.pool.Ptr, fill, l.pool.Size, l.stream)
	}
	return l, l.err
}

// room is device memory with undefined content.
func (l *lab) room(size int64) (m cuda.Mem) {
	if l.err == nil {
		m, l.err = l.Alloc(size)
	}
	return m
}

// put brings a list to the device.
func put[T uint16 | uint32 | uint64 | int32 | float32](l *lab, list []T) cuda.Mem {
	data := cuda.AsBytes(list)
	m := l.room(int64(len(data)))
	if l.err == nil {
		l.err = l.ToDevice(m.Ptr, data, l.stream)
	}
	if l.err == nil {
		l.err = l.SyncStream(l.stream) // the list is of Go's heap
	}
	return m
}

// next is another part of the pool each time, so that no cache has it. fits says whether there is
// room for several.
func (l *lab) next(size int64) cuda.Mem {
	const align = 256
	from := (l.turn + align - 1) / align * align
	if from+size > l.pool.Size {
		from = 0
	}
	l.turn = from + size
	return l.pool.Slice(from, size)
}

func (l *lab) fits(size int64) bool { return size <= l.pool.Size/2 }

// measure times a call in so many runs.
func (l *lab) measure(ctx context.Context, c *call) (s sample, err error) {
	s = sample{of: c.of, shape: c.shape, bytes: c.bytes, precision: c.precision, runs: l.runs}
	const warm = 8 // calls; the first may compile and grow
	first, err := l.run(ctx, c, warm)
	if err != nil {
		return s, err
	}
	// A stream takes some hundred calls ahead; more would make the host wait.
	const fewest, most = 4, 200
	n := max(fewest, min(most, int(float64(leastRun.Nanoseconds())/max(first, 1))))
	times := make([]float64, 0, l.runs)
	for range l.runs {
		took, err := l.run(ctx, c, n)
		if err != nil {
			return s, err
		}
		times = append(times, took)
	}
	var median float64
	median, s.spread = medianOf(times)
	s.took = max(units.Nanos(math.Round(median)), 1)
	return s, nil
}

// run makes n calls and returns the nanoseconds of one.
func (l *lab) run(ctx context.Context, c *call, n int) (float64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if c.side == waiting {
		return l.wait(c, n)
	}
	const mostGates = 1 << 14
	for {
		took, dry, err := l.held(c, n)
		if err != nil || !dry {
			return took / float64(n), err
		}
		if l.gates *= 2; l.gates > mostGates {
			return 0, errors.New("the device is through with what holds its stream before all " +
				"calls are asked for; end what else uses this machine's processors")
		}
	}
}

// held makes n calls behind copies that hold the stream, and returns the nanoseconds of all. dry
// says that the copies were done before the last call was asked for.
func (l *lab) held(c *call, n int) (took float64, dry bool, err error) {
	half := l.pool.Size / 2
	start := l.now()
	err = l.Record(l.begin, l.stream)
	for i := 0; i < l.gates && err == nil; i++ {
		err = l.OnDevice(l.pool.Ptr+cuda.Ptr(half), l.pool.Ptr, half, l.stream)
	}
	if err == nil {
		err = l.Record(l.from, l.stream)
	}
	asked := l.now()
	for i := 0; i < n && err == nil; i++ {
		err = c.once()
	}
	done := l.now()
	if err == nil {
		err = l.Record(l.to, l.stream)
	}
	if err == nil {
		err = l.SyncEvent(l.to)
	}
	if err != nil {
		return 0, false, err
	}
	held, err := l.Elapsed(l.begin, l.from)
	if err != nil {
		return 0, false, err
	}
	worked, err := l.Elapsed(l.from, l.to)
	if c.side == asking {
		worked = units.Nanos(done - asked)
	}
	return float64(worked), time.Duration(held) < done-start, err
}

// wait makes n calls and waits for each.
func (l *lab) wait(c *call, n int) (float64, error) {
	start := l.now()
	for range n {
		if err := c.once(); err != nil {
			return 0, err
		}
		if err := l.SyncStream(l.stream); err != nil {
			return 0, err
		}
	}
	return float64(l.now()-start) / float64(n), nil
}

// medianOf returns the median of times, and within how many percent of it nine of ten of them are:
// from the distance of their quartiles, of which a normal distribution has 1.349 standard
// deviations, nine of ten within 1.645.
func medianOf(times []float64) (median, spread float64) {
	slices.Sort(times)
	median = times[len(times)/2]
	if len(times) < 4 || median <= 0 {
		return median, 0
	}
	quartiles := times[3*len(times)/4] - times[len(times)/4]
	return median, math.Round(1e4*1.645/1.349*quartiles/median) / 1e2
}
