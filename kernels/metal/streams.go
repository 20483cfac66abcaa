package metal

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"structs"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cuda"
)

const (
	statusCompleted = 4   // MTLCommandBufferStatusCompleted
	statusError     = 5   // MTLCommandBufferStatusError
	mostEncoded     = 128 // commands of a command buffer before it is handed over, so that the device starts early
	readWrite       = uintptr(3)
)

// work is a kind of encoder.
type work int

const (
	nothing work = iota
	compute
	blit
)

// stream is a command queue, the command buffer that is being filled, and those that were handed over and not yet looked at.
type stream struct {
	queue, buffer, encoder id
	work                   work
	encoded                int
	committed              []id
}

// event is a point in a stream: the end of the command buffer that signals the value.
type event struct {
	object id
	value  uint64
	buffer id // 0 = never recorded
}

// queue makes a stream.
func (d *driver) queue() (*stream, error) {
	q := d.send(d.device, "newCommandQueue")
	if q == 0 {
		return nil, &Error{Message: "newCommandQueue", Kind: cuda.ErrMemory, Text: "there are too many"}
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

// DestroyStream waits for the stream's work, as nothing would be told of its failure later.
func (d *driver) DestroyStream(s cuda.Stream) error {
	err := d.SyncStream(s)
	return errors.Join(err, d.do(true, func() error {
		st, err := d.stream(s)
		if err != nil {
			return nil // said above
		}
		d.commit(st)
		for _, b := range st.committed {
			d.send(b, "release")
		}
		d.send(st.queue, "release")
		delete(d.streams, s)
		return nil
	}))
}

// open makes sure that a stream has a command buffer.
func (d *driver) open(st *stream) error {
	if st.buffer != 0 {
		return nil
	}
	b := d.send(st.queue, "commandBuffer")
	if b == 0 {
		return &Error{Message: "commandBuffer", Kind: cuda.ErrMemory, Text: "the queue has none"}
	}
	st.buffer = d.send(b, "retain")
	return nil
}

// encoder is the stream's encoder for a kind of work. Commands of one encoder follow each other, and so do encoders that use the same memory.
func (d *driver) encoder(s cuda.Stream, want work) (id, error) {
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
	e := d.send(st.buffer, message)
	if e == 0 {
		return 0, &Error{Message: message, Kind: cuda.ErrMemory, Text: "none was made"}
	}
	st.encoder, st.work = d.send(e, "retain"), want
	return st.encoder, nil
}

// idle hands over what a stream has and waits for it, with the lock held.
func (d *driver) idle(st *stream) {
	d.commit(st)
	d.wait(st.committed)
	d.look(st, len(st.committed))
}

// waitForOthers brings the default stream behind all others.
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
	d.send(st.encoder, "endEncoding")
	d.send(st.encoder, "release")
	st.encoder, st.work = 0, nothing
}

// commit hands a stream's command buffer over to the device.
func (d *driver) commit(st *stream) {
	if st.buffer == 0 {
		return
	}
	d.end(st)
	d.send(st.buffer, "commit")
	st.committed = append(st.committed, st.buffer)
	st.buffer, st.encoded = 0, 0
	// Who waits for events only never waits for the stream.
	done := 0
	for done < len(st.committed) && d.send(st.committed[done], "status") >= statusCompleted {
		done++
	}
	d.look(st, done)
}

// wait waits for command buffers of one queue, which are done in order.
func (d *driver) wait(buffers []id) {
	if len(buffers) > 0 {
		d.send(buffers[len(buffers)-1], "waitUntilCompleted")
	}
}

// look asks the first n command buffers that were handed over how it went; they must be done. The first that failed takes the device with it.
func (d *driver) look(st *stream, n int) {
	for _, b := range st.committed[:n] {
		if d.send(b, "status") == statusError && d.lost == nil {
			d.lost = &Error{Message: "commit", Kind: cuda.ErrLost, Text: d.describe(d.send(b, "error")) + "; start the program again"}
		}
		d.send(b, "release")
	}
	st.committed = slices.Delete(st.committed, 0, n)
}

// SyncStream waits for a stream, and for all where it is the default one. Others may go on calling meanwhile.
func (d *driver) SyncStream(s cuda.Stream) error {
	if s == 0 {
		return d.Synchronize()
	}
	return d.sync(s)
}

func (d *driver) sync(s cuda.Stream) error {
	var last id
	err := d.do(true, func() error {
		st, err := d.stream(s)
		if err != nil {
			return err
		}
		d.commit(st)
		if n := len(st.committed); n > 0 {
			last = d.send(st.committed[n-1], "retain")
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = d.pooled(func() error {
		d.send(last, "waitUntilCompleted")
		return nil
	})
	return errors.Join(err, d.do(true, func() error {
		// Another goroutine may have looked at the buffers meanwhile, or handed over more.
		if st := d.streams[s]; st != nil {
			d.look(st, slices.Index(st.committed, last)+1)
		}
		d.send(last, "release")
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
	var first error // a lost device says the same for all of them
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
		object := d.send(d.device, "newEvent")
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
		d.send(ev.buffer, "release")
		d.send(ev.object, "release")
		delete(d.events, e)
		return nil
	})
}

// Record ends the stream's command buffer with the event's signal and hands it over.
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
		d.send(st.buffer, "encodeSignalEvent:value:", ev.object, ev.value)
		d.send(ev.buffer, "release")
		ev.buffer = d.send(st.buffer, "retain")
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
		d.send(st.buffer, "encodeWaitForEvent:value:", ev.object, ev.value)
		return nil
	})
}

// SyncEvent waits for what an event has marked. Failures are for the stream to tell, but for those that are known.
func (d *driver) SyncEvent(e cuda.Event) error {
	var buffer id
	err := d.do(false, func() error {
		ev, err := d.event(e)
		if err == nil {
			buffer = d.send(ev.buffer, "retain")
		}
		return err
	})
	if err != nil || buffer == 0 {
		return err
	}
	return d.pooled(func() error {
		defer d.send(buffer, "release")
		d.send(buffer, "waitUntilCompleted")
		if d.send(buffer, "status") == statusError {
			return &Error{Message: "commit", Kind: cuda.ErrLost, Text: d.describe(d.send(buffer, "error"))}
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
			if ends[i] = d.float(ev.buffer, "GPUEndTime"); ends[i] == 0 {
				return fmt.Errorf("metal: event %d has not happened; wait for it first", e)
			}
		}
		took = units.Nanos(math.Round((ends[1] - ends[0]) * 1e9))
		return nil
	})
	return took, err
}

// size is an MTLSize.
type size struct {
	_       structs.HostLayout
	x, y, z uint64
}

// Launch encodes a kernel. Its arguments hold addresses, so Metal is told which buffers are behind them.
func (d *driver) Launch(f cuda.Function, grid cuda.Grid, threads int, s cuda.Stream, args []cuda.Arg) error {
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
			return fmt.Errorf("metal: a grid of %d × %d × %d with %d threads: at least 1 each, and at most %d threads", grid.X, grid.Y, grid.Z, threads, p.threads)
		}
		encoder, err := d.encoder(s, compute)
		if err != nil {
			return err
		}
		d.send(encoder, "setComputePipelineState:", p.state)
		d.send(encoder, "setBytes:length:atIndex:", unsafe.Pointer(unsafe.SliceData(packed)), uintptr(len(packed)), uintptr(0))
		runtime.KeepAlive(packed)
		d.send(encoder, "setThreadgroupMemoryLength:atIndex:", uintptr(roomBytes), uintptr(0))
		for _, a := range args {
			// A number of 64 bits that is not an address is in no buffer.
			if at, ok := d.pieces.find(a.Bits(), 1); ok && a.Kind() == cuda.Word64 {
				d.send(encoder, "useResource:usage:", at.buffer, readWrite)
			}
		}
		d.send(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", size{x: uint64(grid.X), y: uint64(grid.Y), z: uint64(grid.Z)}, size{x: uint64(threads), y: 1, z: 1})
		return nil
	})
}
