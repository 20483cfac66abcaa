package metal

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cuda"
)

// open is a device over the fake runtime. When the test is over and the device closed, nothing may be left.
func open(t *testing.T) (*cuda.Device, *fake) {
	t.Helper()
	library, err := purego.Dlopen(shim(t), purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	var run func(name string, arguments unsafe.Pointer, bytes int32, grid unsafe.Pointer, threads int32, trouble []byte, size int32)
	purego.RegisterLibFunc(&run, library, "shim_run")
	f := newFake(t)
	f.kernel = func(name string, arguments []byte, grid [3]int32, threads int) string {
		trouble := make([]byte, 256)
		run(name, unsafe.Pointer(unsafe.SliceData(arguments)), int32(len(arguments)), unsafe.Pointer(&grid), int32(threads), trouble, int32(len(trouble)))
		text, _, _ := strings.Cut(string(trouble), "\x00")
		return text
	}
	t.Cleanup(func() {
		if left := f.left(); len(left) != 0 || len(f.pools) != 0 {
			t.Errorf("left after the test: %q, %d pools", left, len(f.pools))
		}
	})
	driver, err := newDriver(f, f.device)
	if err != nil {
		t.Fatal(err)
	}
	d, err := cuda.Open(driver, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d, f
}

// TestDriver runs the driver of Macs, over the fake runtime, with the text on the host.
func TestDriver(t *testing.T) {
	d, _ := open(t)
	if d.Facts.Name != "fake" || d.Facts.Capability != [2]int{8, 0} || d.Facts.Memory != 1<<30 || d.Facts.Driver != 3000 {
		t.Errorf("facts: %+v", d.Facts)
	}
	suite(t, d)
}

// TestDriverFaults: what Metal refuses is an error that names the message and says the system's words, and nothing is left.
func TestDriverFaults(t *testing.T) {
	for message, c := range map[string]struct {
		call func(b *bench) error
		kind error
	}{
		"newBufferWithLength:options:": {func(b *bench) error { _, err := b.d.Alloc(100); return err }, cuda.ErrMemory},
		"newBufferWithBytes:length:options:": {func(b *bench) error {
			return b.d.ToDevice(b.room(8).Ptr, make([]byte, 8), b.stream)
		}, cuda.ErrMemory},
		"newCommandQueue":                            {func(b *bench) error { _, err := b.d.NewStream(); return err }, cuda.ErrMemory},
		"newEvent":                                   {func(b *bench) error { _, err := b.d.NewEvent(true); return err }, cuda.ErrMemory},
		"commandBuffer":                              {func(b *bench) error { return b.d.Fill(b.room(8).Ptr, 0, 8, b.stream) }, cuda.ErrMemory},
		"blitCommandEncoder":                         {func(b *bench) error { return b.d.Fill(b.room(8).Ptr, 0, 8, b.stream) }, cuda.ErrMemory},
		"computeCommandEncoder":                      {func(b *bench) error { return b.Add(b.stream, b.room(4), b.room(4), 1) }, cuda.ErrMemory},
		"newLibraryWithSource:options:error:":        {func(b *bench) error { _, err := cuda.NewKernels(b.d); return err }, nil},
		"newFunctionWithName:":                       {func(b *bench) error { _, err := cuda.NewKernels(b.d); return err }, nil},
		"newComputePipelineStateWithFunction:error:": {func(b *bench) error { _, err := cuda.NewKernels(b.d); return err }, nil},
	} {
		t.Run(message, func(t *testing.T) {
			d, f := open(t)
			b := newBench(t, d)
			f.refuse[message] = "no, not today"
			err := c.call(b)
			var failed *Error
			if !errors.As(err, &failed) || failed.Message != message || failed.Kind != c.kind {
				t.Fatalf("%v, want an error of %s", err, message)
			}
			if strings.HasSuffix(message, "error:") && !strings.Contains(err.Error(), "no, not today") {
				t.Errorf("%v: the system's words are not in it", err)
			}
			b.checkAdd(10) // the device goes on
		})
	}
}

// TestDriverLost: a command buffer that fails takes the device with it; all can be given back then.
func TestDriverLost(t *testing.T) {
	d, f := open(t)
	k, err := cuda.NewKernels(d)
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	f.refuse[execution] = "the GPU went away"
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

// TestDriverOrder: without a wait for an event another stream's work is not seen, with it it is, and so it is from the default stream.
func TestDriverOrder(t *testing.T) {
	d, _ := open(t)
	b := newBench(t, d)
	other, err := d.NewStream()
	b.must(err)
	x, total := put(b, []float32{1}), put(b, []float32{0})
	b.must(d.SyncStream(b.stream))
	event, err := d.NewEvent(false)
	b.must(err)
	read := func(s cuda.Stream) float32 {
		var got [1]float32
		b.must(d.ToHost(cuda.AsBytes(got[:]), total.Ptr, s))
		return got[0]
	}
	b.must(b.Add(b.stream, total, x, 1))
	if got := read(other); got != 0 {
		t.Errorf("without a wait another stream sees %g", got)
	}
	b.must(d.Record(event, b.stream))
	b.must(d.Wait(other, event))
	if got := read(other); got != 1 {
		t.Errorf("after the event another stream sees %g", got)
	}
	b.must(b.Add(b.stream, total, x, 1))
	if got := read(0); got != 2 {
		t.Errorf("the default stream sees %g", got)
	}
	from, err := d.NewEvent(true)
	b.must(err)
	if _, err := d.Elapsed(from, event); err == nil {
		t.Error("an event that was not recorded has a time")
	}
	b.must(d.Record(from, b.stream))
	b.must(d.Record(event, b.stream))
	if _, err := d.Elapsed(from, event); err == nil {
		t.Error("an event that has not happened has a time")
	}
	b.must(d.SyncEvent(event))
	if took, err := d.Elapsed(from, event); err != nil || took != units.Microsecond {
		t.Errorf("elapsed: %v, %v", took, err)
	}
}

// TestDriverManyCommands: a stream that nobody waits for hands its work over by itself, and forgets what is done.
func TestDriverManyCommands(t *testing.T) {
	d, f := open(t)
	b := newBench(t, d)
	x, total := put(b, []float32{1}), put(b, []float32{0})
	event, err := d.NewEvent(false)
	b.must(err)
	const rounds = 5
	for range rounds {
		for range mostEncoded {
			b.must(b.Add(b.stream, total, x, 1))
		}
		b.must(d.Record(event, b.stream))
		b.must(d.SyncEvent(event))
	}
	buffers := 0
	for _, o := range f.alive {
		if o.class == "MTLCommandBuffer" {
			buffers++
		}
	}
	if buffers > 4 {
		t.Errorf("%d command buffers are kept", buffers)
	}
	if got := get[float32](b, total, 1)[0]; got != rounds*mostEncoded {
		t.Errorf("%g additions, want %d", got, rounds*mostEncoded)
	}
}

// TestDriverRegistered: memory of whole pages that was made elsewhere is used in place.
func TestDriverRegistered(t *testing.T) {
	d, _ := open(t)
	b := newBench(t, d)
	pages, err := syscall.Mmap(-1, 0, 2*syscall.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	b.must(err)
	defer func() { b.must(syscall.Munmap(pages)) }()
	if err := d.HostRegister(pages[1:]); err == nil {
		t.Error("memory that starts within a page was registered")
	}
	b.must(d.HostRegister(pages))
	if err := d.HostRegister(pages); err == nil {
		t.Error("memory was registered twice")
	}
	m, err := d.Mapped(pages[16:24])
	b.must(err)
	x := put(b, []float32{3, 4})
	b.must(b.Add(b.stream, m, x, 2))
	b.must(d.SyncStream(b.stream))
	if pages[18] != 0x40 || pages[19] != 0x40 || pages[23] != 0x40 { // 3 and 4
		t.Errorf("the device wrote % x", pages[16:24])
	}
	if err := d.HostFree(pages); err == nil {
		t.Error("registered memory was freed")
	}
	b.must(d.HostUnregister(pages))
	if _, err := d.Mapped(pages); err == nil {
		t.Error("memory that is not registered has an address on the device")
	}
}
