package cuda

import (
	"errors"
	"sync/atomic"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/internal/units"
	kernels "github.com/windrow-sim/windrow/kernels/cuda"
)

// mark is a point in the work of a layer.
type mark int

const (
	attentionFrom mark = iota
	attentionTo
	scatterFrom
	scatterTo
	ffnFrom
	ffnTo
	headFrom
	headTo
	marks
)

// clock marks points in the streams with timed events. The stand-in for a device has no times: they
// are zero.
type clock struct {
	device *kernels.Device
	events [marks]kernels.Event
	on     atomic.Bool        // reads in the background mark, too
	passed [marks]atomic.Bool // since Times
}

// Clock implements engine.Backend.
func (b *Backend) Clock(on bool) { b.clock.on.Store(on) }

// mark records an event.
func (c *clock) mark(m mark, s kernels.Stream) error {
	if !c.on.Load() {
		return nil
	}
	c.passed[m].Store(true)
	return c.device.Record(c.events[m], s)
}

// Times implements engine.Backend, once the layer's work is done. Of several scatters of rows the
// last one counts.
func (b *Backend) Times() engine.DeviceTimes {
	c := &b.clock
	span := func(from, to mark) units.Nanos {
		if !c.passed[from].Swap(false) || !c.passed[to].Swap(false) || !c.on.Load() {
			return 0
		}
		took, err := c.device.Elapsed(c.events[from], c.events[to])
		if failed := (*kernels.Error)(nil); errors.As(err, &failed) && failed.Code == notSupported {
			c.on.Store(false)
		}
		if err != nil {
			return 0
		}
		return took
	}
	return engine.DeviceTimes{Attention: span(attentionFrom, attentionTo),
		Scatter: span(scatterFrom, scatterTo), FFN: span(ffnFrom, ffnTo), Head: span(headFrom,
			headTo)}
}

// notSupported is CUDA_ERROR_NOT_SUPPORTED.
const notSupported = 801
