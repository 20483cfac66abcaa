package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/units"
)

// Mem is a range of device memory. The zero value is none.
type Mem struct {
	Ptr  Ptr
	Size int64 // bytes
}

// Slice returns size bytes of m at the offset from. It panics if they are not in m, as slicing
// does.
func (m Mem) Slice(from, size int64) Mem {
	if from < 0 || size < 0 || from+size > m.Size {
		panic(fmt.Sprintf("cuda: %d bytes from %d of a Mem of %d", size, from, m.Size))
	}
	return Mem{m.Ptr + Ptr(from), size}
}

// Device is an open device. Its Driver's methods are available too. It keeps track of everything
// made through it, and Close frees it all. Safe for concurrent use.
type Device struct {
	Driver
	Facts Facts

	mutex  sync.Mutex
	memory map[Ptr]bool
	host   map[*byte]pinned
	stream map[Stream]bool
	event  map[Event]bool
	module map[Module]bool
}

// pinned is host memory that the device can use.
type pinned struct {
	bytes      []byte
	registered bool // the caller's memory, only registered here
}

// Facts describes a device.
type Facts struct {
	Name       string
	Memory     units.Bytes
	Processors int    // multiprocessors
	Capability [2]int // compute capability, major and minor
	Driver     int    // newest CUDA of the driver: 12040 is 12.4
	Integrated bool   // the host's memory is the device's: pinned memory is as near as any
}

// leastCapability is the compute capability that the PTX is compiled for: Volta.
const leastCapability = 7

// Open takes a device into use. The driver is the Device's from now on, and closed on an error too.
func Open(driver Driver, device int) (*Device, error) {
	d := &Device{Driver: driver, memory: map[Ptr]bool{}, host: map[*byte]pinned{},
		stream: map[Stream]bool{}, event: map[Event]bool{}, module: map[Module]bool{}}
	if err := d.open(device); err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	return d, nil
}

func (d *Device) open(device int) error {
	count, err := d.Devices()
	if err != nil {
		return err
	}
	if device < 0 || device >= count {
		return environment("there is no device %d, there are %d; %s", device, count, deviceRemedy)
	}
	if err := d.describe(device); err != nil {
		return err
	}
	if d.Facts.Capability[0] < leastCapability {
		return environment("%s has compute capability %d.%d: the kernels need %d.0 (Volta) or "+
			"newer; use the CPU backend",
			d.Facts.Name, d.Facts.Capability[0], d.Facts.Capability[1], leastCapability)
	}
	return d.Use(device)
}

func (d *Device) describe(device int) (err error) {
	f := &d.Facts
	if f.Driver, err = d.Version(); err != nil {
		return err
	}
	if f.Name, err = d.Name(device); err != nil {
		return err
	}
	if f.Memory, err = d.Memory(device); err != nil {
		return err
	}
	if f.Processors, err = d.Attribute(device, Processors); err != nil {
		return err
	}
	if f.Capability[0], err = d.Attribute(device, ComputeMajor); err != nil {
		return err
	}
	if f.Capability[1], err = d.Attribute(device, ComputeMinor); err != nil {
		return err
	}
	integrated, err := d.Attribute(device, Integrated)
	f.Integrated = integrated != 0
	return err
}

// Alloc reserves device memory with undefined content. None is reserved for size 0.
func (d *Device) Alloc(size int64) (Mem, error) {
	if size == 0 {
		return Mem{}, nil
	}
	p, err := d.Driver.Alloc(size)
	if err != nil {
		return Mem{}, err
	}
	note(d, d.memory, p, true)
	return Mem{p, size}, nil
}

// Free frees memory from Alloc. Freeing the zero Mem does nothing.
func (d *Device) Free(m Mem) error {
	if m == (Mem{}) {
		return nil
	}
	forget(d, d.memory, m.Ptr)
	return d.Driver.Free(m.Ptr)
}

// HostAlloc reserves pinned memory; see Driver. None is reserved for size 0.
func (d *Device) HostAlloc(size int64, combined bool) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	b, err := d.Driver.HostAlloc(size, combined)
	if err != nil {
		return nil, err
	}
	note(d, d.host, unsafe.SliceData(b), pinned{bytes: b})
	return b, nil
}

// HostFree frees memory from HostAlloc.
func (d *Device) HostFree(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	forget(d, d.host, unsafe.SliceData(b))
	return d.Driver.HostFree(b)
}

// HostRegister pins memory; see Driver.
func (d *Device) HostRegister(b []byte) error {
	if err := d.Driver.HostRegister(b); err != nil {
		return err
	}
	note(d, d.host, unsafe.SliceData(b), pinned{b, true})
	return nil
}

// HostUnregister undoes HostRegister.
func (d *Device) HostUnregister(b []byte) error {
	forget(d, d.host, unsafe.SliceData(b))
	return d.Driver.HostUnregister(b)
}

// Mapped returns the device's address of pinned memory.
func (d *Device) Mapped(b []byte) (Mem, error) {
	p, err := d.HostPointer(b)
	return Mem{p, int64(len(b))}, err
}

// NewStream makes a stream; see Driver.
func (d *Device) NewStream() (Stream, error) {
	s, err := d.Driver.NewStream()
	if err == nil {
		note(d, d.stream, s, true)
	}
	return s, err
}

// DestroyStream ends a stream.
func (d *Device) DestroyStream(s Stream) error {
	forget(d, d.stream, s)
	return d.Driver.DestroyStream(s)
}

// NewEvent makes an event; see Driver.
func (d *Device) NewEvent(timed bool) (Event, error) {
	e, err := d.Driver.NewEvent(timed)
	if err == nil {
		note(d, d.event, e, true)
	}
	return e, err
}

// DestroyEvent ends an event.
func (d *Device) DestroyEvent(e Event) error {
	forget(d, d.event, e)
	return d.Driver.DestroyEvent(e)
}

// Load compiles PTX for the device.
func (d *Device) Load(ptx string) (Module, error) {
	m, err := d.Driver.Load(ptx)
	if err == nil {
		note(d, d.module, m, true)
	}
	return m, err
}

// Unload ends a module.
func (d *Device) Unload(m Module) error {
	forget(d, d.module, m)
	return d.Driver.Unload(m)
}

// Close waits for all work, frees everything that was made through the Device, and closes the
// driver. It goes on after an error and returns all errors.
func (d *Device) Close() error {
	errs := []error{d.Synchronize()} // no work may use the memory that is freed
	for e := range d.event {
		errs = append(errs, d.DestroyEvent(e))
	}
	for s := range d.stream {
		errs = append(errs, d.DestroyStream(s))
	}
	for p := range d.memory {
		errs = append(errs, d.Free(Mem{Ptr: p, Size: 1}))
	}
	for _, h := range d.host {
		if h.registered {
			errs = append(errs, d.HostUnregister(h.bytes))
			continue
		}
		errs = append(errs, d.HostFree(h.bytes))
	}
	for m := range d.module {
		errs = append(errs, d.Unload(m))
	}
	return errors.Join(distinct(append(errs, d.Driver.Close()))...)
}

// distinct leaves out errors with the text of an earlier one: on a lost device every call fails in
// the same way.
func distinct(errs []error) (list []error) {
	said := map[string]bool{}
	for _, err := range errs {
		if err != nil && !said[err.Error()] {
			said[err.Error()] = true
			list = append(list, err)
		}
	}
	return list
}

func note[K comparable, V any](d *Device, to map[K]V, key K, value V) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	to[key] = value
}

func forget[K comparable, V any](d *Device, from map[K]V, key K) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(from, key)
}

// AsBytes is the memory of a slice of numbers, without a copy, for ToDevice and ToHost.
func AsBytes[T uint16 | uint32 | uint64 | int32 | float32](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))),
		len(s)*int(unsafe.Sizeof(s[0])))
}
