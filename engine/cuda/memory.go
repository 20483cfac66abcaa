package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	kernels "github.com/windrow-sim/windrow/kernels/cuda"
)

// scope holds device objects with one purpose, which are freed together. After the first error it
// makes nothing more.
type scope struct {
	b      *Backend
	memory []kernels.Mem
	host   [][]byte
	events []kernels.Event
	err    error
}

// ErrBudget: Options.Memory is less than the device memory that is needed. Such an error is
// kernels/cuda's ErrMemory, too.
var ErrBudget = errors.New("over the budget of device memory")

// budgetError is a refusal. least grows while the other needs of the same call are added up.
type budgetError struct{ bytes, used, budget, least units.Bytes }

func (e *budgetError) Error() string {
	return fmt.Sprintf("engine/cuda: %v of device memory on top of %v: %v: the budget is %v, "+
		"and %v are needed at least; give that much, or use a smaller context, batch or row cache",
		e.bytes, e.used, kernels.ErrMemory, e.budget, enough(e.least))
}

// enough is a size that prints as no less than the need: printed sizes are rounded.
func enough(need units.Bytes) units.Bytes {
	for size := need; ; size += size/256 + 1 {
		if said, err := units.ParseBytes(size.String()); err != nil || said >= need {
			return size
		}
	}
}

func (e *budgetError) Is(target error) bool {
	return target == ErrBudget || target == kernels.ErrMemory || target == refusal.ErrConfig
}

// allows reports whether the budget allows so many more bytes. After a refusal it still adds up the
// needs, but nothing is allocated any more.
func (s *scope) allows(bytes int64) bool {
	if refused := (*budgetError)(nil); errors.As(s.err, &refused) {
		refused.least += units.Bytes(bytes)
	}
	used := s.b.used.Load()
	if limit := int64(s.b.opt.Memory); s.err == nil && limit > 0 && used+bytes > limit {
		s.err = &budgetError{units.Bytes(bytes), units.Bytes(used), s.b.opt.Memory,
			units.Bytes(used + bytes)}
	}
	return s.err == nil
}

// room is device memory with undefined content.
func (s *scope) room(bytes int64) kernels.Mem {
	if bytes == 0 || !s.allows(bytes) {
		return kernels.Mem{}
	}
	m, err := s.b.device.Alloc(bytes)
	if s.err = err; err != nil {
		return kernels.Mem{}
	}
	s.b.used.Add(bytes)
	s.memory = append(s.memory, m)
	return m
}

// floats is room for so many float32.
func (s *scope) floats(n ...int) kernels.Mem {
	size := int64(4)
	for _, v := range n {
		size *= int64(v)
	}
	return s.room(size)
}

// bytes puts data on the device.
func (s *scope) bytes(data []byte) kernels.Mem {
	m := s.room(int64(len(data)))
	if s.err == nil && len(data) > 0 {
		s.err = s.b.device.ToDevice(m.Ptr, data, s.b.compute)
	}
	return m
}

// pinned is host memory that the device can use.
func (s *scope) pinned(bytes int64) []byte {
	if s.err != nil {
		return nil
	}
	var b []byte
	if b, s.err = s.b.device.HostAlloc(bytes, false); s.err == nil && b != nil {
		s.host = append(s.host, b)
	}
	return b
}

// event makes an event, with times if wanted.
func (s *scope) event(timed bool) kernels.Event {
	if s.err != nil {
		return 0
	}
	var e kernels.Event
	if e, s.err = s.b.device.NewEvent(timed); s.err == nil {
		s.events = append(s.events, e)
	}
	return e
}

// free frees everything, once the device has finished its work on it.
func (s *scope) free() error {
	errs := []error{s.b.device.Synchronize()}
	for _, m := range s.memory {
		s.b.used.Add(-m.Size)
		errs = append(errs, s.b.device.Free(m))
	}
	for _, h := range s.host {
		errs = append(errs, s.b.device.HostFree(h))
	}
	for _, e := range s.events {
		errs = append(errs, s.b.device.DestroyEvent(e))
	}
	*s = scope{b: s.b}
	return errors.Join(errs...)
}

// lists copies small lists to the device, for kernels of one stream. They are written to pinned
// memory, so that no copy waits for the stream; where pinned memory is device memory, kernels read
// them there. When it is full, the host waits until all of it has been used.
type lists struct {
	device *kernels.Device
	stream kernels.Stream
	host   []byte
	there  kernels.Mem
	used   int64
}

// lists allocates room for so many bytes, all of which may be in flight at once.
func (s *scope) lists(stream kernels.Stream, bytes int64) *lists {
	l := &lists{device: s.b.device, stream: stream, host: s.pinned(bytes)}
	if !l.device.Facts.Integrated {
		l.there = s.room(bytes)
	} else if s.err == nil {
		l.there, s.err = l.device.Mapped(l.host)
	}
	return l
}

// put takes data to the device.
func (l *lists) put(data []byte) (kernels.Mem, error) {
	const align = 16
	size := (int64(len(data)) + align - 1) / align * align
	if size == 0 {
		return kernels.Mem{}, nil
	}
	if size > int64(len(l.host)) {
		return kernels.Mem{}, fmt.Errorf("engine/cuda: a list of %d bytes: there is room for %d",
			len(data), len(l.host))
	}
	if l.used+size > int64(len(l.host)) {
		if err := l.device.SyncStream(l.stream); err != nil {
			return kernels.Mem{}, err
		}
		l.used = 0
	}
	here, there := l.host[l.used:l.used+int64(len(data))], l.there.Slice(l.used, int64(len(data)))
	l.used += size
	copy(here, data)
	if l.device.Facts.Integrated {
		return there, nil
	}
	return there, l.device.ToDevice(there.Ptr, here, l.stream)
}

// floats and words reinterpret pinned memory as numbers: its alignment suffices for both.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func words(b []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}
