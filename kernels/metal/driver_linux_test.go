package metal_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/cuda/suite"
	"github.com/windrow-sim/windrow/kernels/metal"
	"github.com/windrow-sim/windrow/kernels/metal/standin"
)

// open is a device over the stand-in's runtime. It is closed with the test.
func open(t *testing.T) (*cuda.Device, *standin.Runtime) {
	t.Helper()
	r := standin.Open(t)
	driver, err := r.Driver()
	if err != nil {
		t.Fatal(err)
	}
	d, err := cuda.Open(driver, 0)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, d)
	return d, r
}

func newBench(t *testing.T) (*suite.Bench, *standin.Runtime) {
	t.Helper()
	d, r := open(t)
	return suite.New(t, d, 1), r
}

// TestShim runs the text on the host, launched by the driver of CUDA: its stand-in looks closely at
// memory.
func TestShim(t *testing.T) {
	driver, err := cuda.OpenLibrary(standin.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	d, err := cuda.Open(driver, 0)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, d)
	suite.Run(t, d)
}

// TestDriver runs the driver of Macs, over the fake runtime, with the text on the host.
func TestDriver(t *testing.T) {
	d, _ := open(t)
	if d.Facts.Name != "fake" || d.Facts.Capability != [2]int{8, 0} || d.Facts.Memory != 1<<30 ||
		d.Facts.Driver != 3000 {
		t.Errorf("facts: %+v", d.Facts)
	}
	suite.Run(t, d)
}

// TestDriverFaults: a refusal of Metal is an error with the message's name and the system's text,
// and nothing is left.
func TestDriverFaults(t *testing.T) {
	for message, c := range map[string]struct {
		call func(b *suite.Bench) error
		kind error
	}{
		"newBufferWithLength:options:": {func(b *suite.Bench) error {
			_,
				err := b.Device.Alloc(100)
			return err
		}, cuda.ErrMemory},
		"newBufferWithBytes:length:options:": {func(b *suite.Bench) error {
			m := b.Room(8)
			// so that the stream has work, and a copy has to wait
			b.Must(b.Device.Fill(m.Ptr, 0, 8, b.Stream))
			return b.Device.ToDevice(m.Ptr, make([]byte, 8), b.Stream)
		}, cuda.ErrMemory},
		"newCommandQueue": {func(b *suite.Bench) error {
			_,
				err := b.Device.NewStream()
			return err
		}, cuda.ErrMemory},
		"newEvent": {func(b *suite.Bench) error {
			_,
				err := b.Device.NewEvent(true)
			return err
		}, cuda.ErrMemory},
		"commandBuffer": {func(b *suite.Bench) error {
			return b.Device.Fill(b.Room(8).Ptr, 0, 8, b.Stream)
		}, cuda.ErrMemory},
		"blitCommandEncoder": {func(b *suite.Bench) error {
			return b.Device.Fill(b.Room(8).Ptr, 0, 8, b.Stream)
		}, cuda.ErrMemory},
		"computeCommandEncoder": {func(b *suite.Bench) error {
			return b.Add(b.Stream, b.Room(4), b.Room(4), 1)
		}, cuda.ErrMemory},
		"newLibraryWithSource:options:error:": {func(b *suite.Bench) error {
			_,
				err := cuda.NewKernels(b.Device)
			return err
		}, nil},
		"newFunctionWithName:": {func(b *suite.Bench) error {
			_,
				err := cuda.NewKernels(b.Device)
			return err
		}, nil},
		"newComputePipelineStateWithFunction:error:": {func(b *suite.Bench) error {
			_,
				err := cuda.NewKernels(b.Device)
			return err
		}, nil},
	} {
		t.Run(message, func(t *testing.T) {
			b, r := newBench(t)
			r.Fail(message, 1, "no, not today", false)
			err := c.call(b)
			var failed *metal.Error
			if !errors.As(err, &failed) || failed.Message != message || failed.Kind != c.kind {
				t.Fatalf("%v, want an error of %s", err, message)
			}
			if strings.HasSuffix(message, "error:") && !strings.Contains(err.Error(),
				"no, not today") {
				t.Errorf("%v: the system's words are not in it", err)
			}
			adds(b) // the device goes on
		})
	}
}

// TestDriverLost: a command buffer that fails takes the device with it; all can be given back then.
func TestDriverLost(t *testing.T) {
	d, r := open(t)
	k, err := cuda.NewKernels(d)
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	r.Fail(standin.Execution, 1, "the GPU went away", false)
	err = errors.Join(k.Add(0, m, m, 16), d.Synchronize())
	if !errors.Is(err, cuda.ErrLost) || !strings.Contains(err.Error(), "the GPU went away") {
		t.Errorf("%v", err)
	}
	if err := k.Add(0, m, m, 16); !errors.Is(err, cuda.ErrLost) {
		t.Errorf("after that: %v", err)
	}
	if err := d.Free(m); err != nil {
		t.Errorf("memory of a lost device: %v", err)
	}
	if err := d.Close(); !errors.Is(err, cuda.ErrLost) {
		t.Errorf("Close: %v", err)
	}
}

// TestDriverOrder: without a wait for an event another stream's work is not seen, with it it is,
// and so it is from the default stream.
func TestDriverOrder(t *testing.T) {
	b, _ := newBench(t)
	d := b.Device
	other, err := d.NewStream()
	b.Must(err)
	x, total := suite.Put(b, []float32{1}), suite.Put(b, []float32{0})
	b.Must(d.SyncStream(b.Stream))
	event, err := d.NewEvent(false)
	b.Must(err)
	read := func(s cuda.Stream) float32 {
		var got [1]float32
		b.Must(d.ToHost(cuda.AsBytes(got[:]), total.Ptr, s))
		return got[0]
	}
	b.Must(b.Add(b.Stream, total, x, 1))
	if got := read(other); got != 0 {
		t.Errorf("without a wait another stream sees %g", got)
	}
	b.Must(d.Record(event, b.Stream))
	b.Must(d.Wait(other, event))
	if got := read(other); got != 1 {
		t.Errorf("after the event another stream sees %g", got)
	}
	b.Must(b.Add(b.Stream, total, x, 1))
	if got := read(0); got != 2 {
		t.Errorf("the default stream sees %g", got)
	}
	from, err := d.NewEvent(true)
	b.Must(err)
	if _, err := d.Elapsed(from, event); err == nil {
		t.Error("an event that was not recorded has a time")
	}
	b.Must(d.Record(from, b.Stream))
	b.Must(d.Record(event, b.Stream))
	if _, err := d.Elapsed(from, event); err == nil {
		t.Error("an event that has not happened has a time")
	}
	b.Must(d.SyncEvent(event))
	if took, err := d.Elapsed(from, event); err != nil || took != units.Microsecond {
		t.Errorf("elapsed: %v, %v", took, err)
	}
}

// TestDriverManyCommands: a stream without a wait commits its work by itself, and releases finished
// work.
func TestDriverManyCommands(t *testing.T) {
	b, r := newBench(t)
	d := b.Device
	x, total := suite.Put(b, []float32{1}), suite.Put(b, []float32{0})
	event, err := d.NewEvent(false)
	b.Must(err)
	const rounds, encoded = 5, 128 // encoded is the capacity of a command buffer
	for range rounds {
		for range encoded {
			b.Must(b.Add(b.Stream, total, x, 1))
		}
		b.Must(d.Record(event, b.Stream))
		b.Must(d.SyncEvent(event))
	}
	if buffers := r.Alive("MTLCommandBuffer"); buffers > 4 {
		t.Errorf("%d command buffers are kept", buffers)
	}
	if got := suite.Get[float32](b, total, 1)[0]; got != rounds*encoded {
		t.Errorf("%g additions, want %d", got, rounds*encoded)
	}
}

// TestDriverRegistered: memory of whole pages that was made elsewhere is used in place.
func TestDriverRegistered(t *testing.T) {
	b, _ := newBench(t)
	d := b.Device
	pages, err := syscall.Mmap(-1, 0, 2*syscall.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	b.Must(err)
	defer func() { b.Must(syscall.Munmap(pages)) }()
	if err := d.HostRegister(pages[1:]); err == nil {
		t.Error("memory that starts within a page was registered")
	}
	b.Must(d.HostRegister(pages))
	if err := d.HostRegister(pages); err == nil {
		t.Error("memory was registered twice")
	}
	m, err := d.Mapped(pages[16:24])
	b.Must(err)
	x := suite.Put(b, []float32{3, 4})
	b.Must(b.Add(b.Stream, m, x, 2))
	b.Must(d.SyncStream(b.Stream))
	if pages[18] != 0x40 || pages[19] != 0x40 || pages[23] != 0x40 { // 3 and 4
		t.Errorf("the device wrote % x", pages[16:24])
	}
	if err := d.HostFree(pages); err == nil {
		t.Error("registered memory was freed")
	}
	b.Must(d.HostUnregister(pages))
	if _, err := d.Mapped(pages); err == nil {
		t.Error("memory that is not registered has an address on the device")
	}
}
