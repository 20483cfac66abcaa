package metal

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cuda"
)

const (
	statusCompleted = 4 // MTLCommandBufferStatusCompleted
	statusError     = 5 // MTLCommandBufferStatusError
	// commands of a command buffer before it is committed, so that the device starts early
	mostEncoded = 128
	readWrite   = uintptr(3)
)

// work is a kind of encoder.
type work int

const (
	nothing work = iota
	compute
	blit
)

// stream is a command queue, its open command buffer, and the committed buffers that have not been
// checked.
type stream struct {
	queue, buffer, encoder ID
	work                   work
	encoded                int
	committed              []ID
}

// event is a point in a stream: the end of the command buffer that signals the value.
type event struct {
	object ID
	value  uint64
	buffer ID // 0 = never recorded
}

// queue makes a stream.
func (d *driver) queue() (*stream, error) {
	q := d.Send(d.device, "newCommandQueue")
	if q == 0 {
		return nil, &Error{Message: "newCommandQueue", Kind: cuda.ErrMemory,
			Text: "there are too many"}
	}
	return &stream{queue: q}, nil
}

func (d *driver) NewStream() (s cuda.Stream, err error) {
	err = d.do(false, func() error {
		made, err := d.queue()
		if err == nil {
			s = cuda.Stream(d.handle())
			d.streams[s] = made
		}
		return err
	})
	return s, err
}

func (d *driver) stream(s cuda.Stream) (*stream, error) {
	if found := d.streams[s]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("metal: there is no stream %d", s)
}

// DestroyStream waits for the stream's work: nothing would report its failure later.
func (d *driver) DestroyStream(s cuda.Stream) error {
	err := d.SyncStream(s)
	return errors.Join(err, d.do(true, func() error {
		st, err := d.stream(s)
		if err != nil {
			return nil // said above
		}
		d.commit(st)
		for _, b := range st.committed {
			d.Send(b, "release")
		}
		d.Send(st.queue, "release")
		delete(d.streams, s)
		return nil
	}))
}

// open makes sure that a stream has a command buffer.
func (d *driver) open(st *stream) error {
	if st.buffer != 0 {
		return nil
	}
	b := d.Send(st.queue, "commandBuffer")
	if b == 0 {
		return &Error{Message: "commandBuffer", Kind: cuda.ErrMemory, Text: "the queue has none"}
	}
	st.buffer = d.Send(b, "retain")
	return nil
}

// encoder returns the stream's encoder for a kind of work. The commands of an encoder run in order,
// and so do encoders that use the same memory.
func (d *driver) encoder(s cuda.Stream, want work) (ID, error) {
	st, err := d.stream(s)
	if err != nil {
		return 0, err
	}
	if s == 0 {
		if err := d.waitForOthers(st); err != nil {
			return 0, err
		}
	}
	if st.encoded >= mostEncoded {
		d.commit(st)
	}
	if err := d.open(st); err != nil {
		return 0, err
	}
	st.encoded++
	if st.work == want {
		return st.encoder, nil
	}
	d.end(st)
	message := "computeCommandEncoder"
	if want == blit {
		message = "blitCommandEncoder"
	}
	e := d.Send(st.buffer, message)
	if e == 0 {
		return 0, &Error{Message: message, Kind: cuda.ErrMemory, Text: "none was made"}
	}
	st.encoder, st.work = d.Send(e, "retain"), want
	return st.encoder, nil
}

// idle commits the open command buffer of a stream and waits for it, with the lock held.
func (d *driver) idle(st *stream) {
	d.commit(st)
	d.wait(st.committed)
	d.look(st, len(st.committed))
}

// waitForOthers orders the default stream behind all others.
func (d *driver) waitForOthers(own *stream) error {
	for _, st := range d.streams {
		if st == own || st.buffer == 0 && len(st.committed) == 0 {
			continue
		}
		d.idle(st)
	}
	return d.lost
}

// end ends the encoder of a stream.
func (d *driver) end(st *stream) {
	if st.work == nothing {
		return
	}
	d.Send(st.encoder, "endEncoding")
	d.Send(st.encoder, "release")
	st.encoder, st.work = 0, nothing
}

// commit hands a stream's command buffer over to the device.
func (d *driver) commit(st *stream) {
	if st.buffer == 0 {
		return
	}
	d.end(st)
	d.Send(st.buffer, "commit")
	st.committed = append(st.committed, st.buffer)
	st.buffer, st.encoded = 0, 0
	d.lookAround(st) // a caller that waits for events alone never waits for the stream
}

// lookAround looks at the command buffers that are done.
func (d *driver) lookAround(st *stream) {
	done := 0
	for done < len(st.committed) && d.Send(st.committed[done], "status") >= statusCompleted {
		done++
	}
	d.look(st, done)
}

// rests reports whether a stream has no work; the default stream means all streams.
func (d *driver) rests(s cuda.Stream) (bool, error) {
	if _, err := d.stream(s); err != nil {
		return false, err
	}
	for other, st := range d.streams {
		if s != 0 && other != s {
			continue
		}
		if d.lookAround(st); st.buffer != 0 || len(st.committed) > 0 {
			return false, d.lost
		}
	}
	return true, d.lost
}

// wait waits for command buffers of one queue, which finish in order.
func (d *driver) wait(buffers []ID) {
	if len(buffers) > 0 {
		d.Send(buffers[len(buffers)-1], "waitUntilCompleted")
	}
}

// look checks the first n committed command buffers, which must be done. The first failed one marks
// the device as lost.
func (d *driver) look(st *stream, n int) {
	for _, b := range st.committed[:n] {
		if d.Send(b, "status") == statusError && d.lost == nil {
			d.lost = &Error{Message: "commit", Kind: cuda.ErrLost,
				Text: d.describe(d.Send(b, "error")) + "; start the program again"}
		}
		d.Send(b, "release")
	}
	st.committed = slices.Delete(st.committed, 0, n)
}

// SyncStream waits for a stream; the default stream means all streams. It does not block other
// calls.
func (d *driver) SyncStream(s cuda.Stream) error {
	if s == 0 {
		return d.Synchronize()
	}
	return d.sync(s)
}

func (d *driver) sync(s cuda.Stream) error {
	var last ID
	err := d.do(true, func() error {
		st, err := d.stream(s)
		if err != nil {
			return err
		}
		d.commit(st)
		if n := len(st.committed); n > 0 {
			last = d.Send(st.committed[n-1], "retain")
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = d.pooled(func() error {
		d.Send(last, "waitUntilCompleted")
		return nil
	})
	return errors.Join(err, d.do(true, func() error {
		// Another goroutine may have looked at the buffers meanwhile, or handed over more.
		if st := d.streams[s]; st != nil {
			d.look(st, slices.Index(st.committed, last)+1)
		}
		d.Send(last, "release")
		return d.lost
	}))
}

func (d *driver) Synchronize() error {
	d.mutex.Lock()
	var all []cuda.Stream
	for s := range d.streams {
		all = append(all, s)
	}
	d.mutex.Unlock()
	var first error // a lost device reports the same error for all
	for _, s := range all {
		if err := d.sync(s); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// NewEvent makes an event. All have times.
func (d *driver) NewEvent(bool) (e cuda.Event, err error) {
	err = d.do(false, func() error {
		object := d.Send(d.device, "newEvent")
		if object == 0 {
			return &Error{Message: "newEvent", Kind: cuda.ErrMemory, Text: "none was made"}
		}
		e = cuda.Event(d.handle())
		d.events[e] = &event{object: object}
		return nil
	})
	return e, err
}

func (d *driver) event(e cuda.Event) (*event, error) {
	if found := d.events[e]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("metal: there is no event %d", e)
}

func (d *driver) DestroyEvent(e cuda.Event) error {
	return d.do(true, func() error {
		ev, err := d.event(e)
		if err != nil {
			return err
		}
		d.Send(ev.buffer, "release")
		d.Send(ev.object, "release")
		delete(d.events, e)
		return nil
	})
}

// Record ends the stream's command buffer with the event's signal and commits it.
func (d *driver) Record(e cuda.Event, s cuda.Stream) error {
	return d.do(false, func() error {
		ev, err := d.event(e)
		if err != nil {
			return err
		}
		st, err := d.stream(s)
		if err != nil {
			return err
		}
		if err := d.open(st); err != nil {
			return err
		}
		d.end(st)
		ev.value++
		d.Send(st.buffer, "encodeSignalEvent:value:", ev.object, ev.value)
		d.Send(ev.buffer, "release")
		ev.buffer = d.Send(st.buffer, "retain")
		d.commit(st)
		return nil
	})
}

func (d *driver) Wait(s cuda.Stream, e cuda.Event) error {
	return d.do(false, func() error {
		ev, err := d.event(e)
		if err != nil {
			return err
		}
		st, err := d.stream(s)
		if err != nil || ev.buffer == 0 {
			return err
		}
		if err := d.open(st); err != nil {
			return err
		}
		d.end(st)
		d.Send(st.buffer, "encodeWaitForEvent:value:", ev.object, ev.value)
		return nil
	})
}

// SyncEvent waits for the work that an event has marked. It returns failures only if they are known
// already; the stream reports the others.
func (d *driver) SyncEvent(e cuda.Event) error {
	var buffer ID
	err := d.do(false, func() error {
		ev, err := d.event(e)
		if err == nil {
			buffer = d.Send(ev.buffer, "retain")
		}
		return err
	})
	if err != nil || buffer == 0 {
		return err
	}
	return d.pooled(func() error {
		defer d.Send(buffer, "release")
		d.Send(buffer, "waitUntilCompleted")
		if d.Send(buffer, "status") == statusError {
			return &Error{Message: "commit", Kind: cuda.ErrLost, Text: d.describe(d.Send(buffer,
				"error"))}
		}
		return nil
	})
}

// Elapsed is between the ends of two command buffers by the device's clock.
func (d *driver) Elapsed(from, to cuda.Event) (took units.Nanos, err error) {
	err = d.do(false, func() error {
		var ends [2]float64 // seconds
		for i, e := range [2]cuda.Event{from, to} {
			ev, err := d.event(e)
			if err != nil {
				return err
			}
			if ev.buffer == 0 {
				return fmt.Errorf("metal: event %d was not recorded", e)
			}
			if ends[i] = d.Float(ev.buffer, "GPUEndTime"); ends[i] == 0 {
				return fmt.Errorf("metal: event %d has not happened; wait for it first", e)
			}
		}
		took = units.Nanos(math.Round((ends[1] - ends[0]) * 1e9))
		return nil
	})
	return took, err
}

// Launch encodes a kernel. Its arguments hold addresses, so Metal is told which buffers they point
// into.
func (d *driver) Launch(f cuda.Function, grid cuda.Grid, threads int, s cuda.Stream,
	args []cuda.Arg) error {
	packed, err := pack(args)
	if err != nil {
		return err
	}
	return d.do(false, func() error {
		p, ok := d.pipelines[f]
		if !ok {
			return fmt.Errorf("metal: there is no function %d", f)
		}
		if grid.X < 1 || grid.Y < 1 || grid.Z < 1 || threads < 1 || threads > p.threads {
			return fmt.Errorf("metal: a grid of %d × %d × %d with %d threads: at least 1 each, "+
				"and at most %d threads", grid.X, grid.Y, grid.Z, threads, p.threads)
		}
		encoder, err := d.encoder(s, compute)
		if err != nil {
			return err
		}
		d.Send(encoder, "setComputePipelineState:", p.state)
		d.Send(encoder, "setBytes:length:atIndex:", unsafe.Pointer(unsafe.SliceData(packed)),
			uintptr(len(packed)), uintptr(0))
		runtime.KeepAlive(packed)
		d.Send(encoder, "setThreadgroupMemoryLength:atIndex:", uintptr(roomBytes), uintptr(0))
		// In one message: by one reading of the documentation, a second one replaces the first.
		if used := d.used(args); len(used) > 0 {
			d.Send(encoder, "useResources:count:usage:", unsafe.Pointer(unsafe.SliceData(used)),
				uintptr(len(used)), readWrite)
			runtime.KeepAlive(used)
		}
		d.Send(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", Size{X: uint64(grid.X),
			Y: uint64(grid.Y), Z: uint64(grid.Z)}, Size{X: uint64(threads), Y: 1, Z: 1})
		return nil
	})
}

// used returns the buffers that a kernel's arguments point into, each once.
func (d *driver) used(args []cuda.Arg) []ID {
	var list []ID
	for _, a := range args {
		// A number of 64 bits that is not an address is in no buffer.
		if at, ok := d.pieces.find(a.Bits(), 1); ok && a.Kind() == cuda.Word64 &&
			!slices.Contains(list, at.buffer) {
			list = append(list, at.buffer)
		}
	}
	return list
}
