package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cuda"
)

// ErrNoClock: the device does not tell the time between two events, as a stand-in for one does not.
// It is also cuda.ErrEnvironment.
var ErrNoClock = fmt.Errorf("the device has no clock: %w", cuda.ErrEnvironment)

// Options say how to measure. The zero value is usable.
type Options struct {
	Runs     int                   // of each call; 0 = 15
	Progress func(done, total int) // may be nil

	now func() time.Duration // for tests; nil = the monotonic clock
}

// Times of runs.
const (
	defaultRuns = 15
	// leastRun is how long the calls of one run take on the device together: a thousand times the
	// resolution of its events, and more.
	leastRun = 2 * time.Millisecond
)

// Measure times the calls on a device and returns the device as the simulator sees it. An error of
// ctx ends it between two runs.
func Measure(ctx context.Context, d *cuda.Device, opt Options) (*devicemodels.GPU, error) {
	if err := Clock(d); err != nil {
		return nil, err
	}
	l, err := newLab(d, opt, fullPool)
	if err != nil {
		return nil, fmt.Errorf("probe/gpu: %w", err)
	}
	list := full(l)
	if l.err != nil {
		return nil, fmt.Errorf("probe/gpu: %w", l.err)
	}
	var samples []sample
	for i := range list {
		s, err := l.measure(ctx, &list[i])
		if err != nil {
			return nil, fmt.Errorf("probe/gpu: %s, %s: %w", list[i].of, list[i].shape, err)
		}
		samples = append(samples, s)
		if opt.Progress != nil {
			opt.Progress(i+1, len(list))
		}
	}
	g, err := fit(samples)
	if err != nil {
		return nil, fmt.Errorf("probe/gpu: %s: %w", d.Facts.Name, err)
	}
	g.Model, g.Memory = d.Facts.Name, d.Facts.Memory
	return g, nil
}

// Check makes every call once on small sizes and returns how many there are. It looks at no clock.
func Check(ctx context.Context, d *cuda.Device) (calls int, err error) {
	l, err := newLab(d, Options{}, smallPool)
	if err != nil {
		return 0, fmt.Errorf("probe/gpu: %w", err)
	}
	list := small(l)
	if l.err != nil {
		return 0, fmt.Errorf("probe/gpu: %w", l.err)
	}
	for i := range list {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		err := list[i].once()
		if err == nil {
			err = d.SyncStream(l.stream)
		}
		if err != nil {
			return i, fmt.Errorf("probe/gpu: %s, %s: %w", list[i].of, list[i].shape, err)
		}
	}
	return len(list), nil
}

// Clock returns ErrNoClock for a device that does not tell times.
func Clock(d *cuda.Device) error {
	var events [2]cuda.Event
	for i := range events {
		e, err := d.NewEvent(true)
		if err != nil {
			return fmt.Errorf("probe/gpu: %w", err)
		}
		defer d.DestroyEvent(e)
		if err := d.Record(e, 0); err != nil {
			return fmt.Errorf("probe/gpu: %w", err)
		}
		events[i] = e
	}
	err := d.SyncEvent(events[1])
	if err == nil {
		_, err = d.Elapsed(events[0], events[1])
	}
	if failed := (*cuda.Error)(nil); errors.As(err, &failed) && failed.Code == notSupported {
		return fmt.Errorf("probe/gpu: %s: %w; times are measured on a real GPU only", d.Facts.Name,
			ErrNoClock)
	}
	if err != nil {
		return fmt.Errorf("probe/gpu: %w", err)
	}
	return nil
}

// notSupported is CUDA_ERROR_NOT_SUPPORTED.
const notSupported = 801

// sample is a call with its times.
type sample struct {
	of, shape string
	bytes     units.Bytes
	precision string
	took      units.Nanos // median, of one call
	spread    float64     // percent
	runs      int
}
