package metal_test

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/cuda/suite"
	"github.com/windrow-sim/windrow/kernels/metal"
)

// TestDevice runs the kernels on the machine's GPU.
func TestDevice(t *testing.T) { suite.Run(t, device(t)) }

// device is the machine's GPU; the test is skipped where there is none.
func device(t testing.TB) *cuda.Device {
	t.Helper()
	d, err := metal.Open()
	if errors.Is(err, metal.ErrEnvironment) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("device: %s, %v", d.Facts.Name, d.Facts.Memory)
	closed(t, d)
	return d
}

// closed closes a device with the test.
func closed(t testing.TB, d *cuda.Device) {
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestDeviceTimes: work takes time by the device's clock, and more of it takes longer.
func TestDeviceTimes(t *testing.T) {
	b := suite.New(t, device(t), 1)
	const n = 1 << 24
	x, y := b.Room(4*n), b.Room(4*n)
	b.Must(b.Device.Fill(x.Ptr, 0, x.Size, b.Stream))
	b.Must(b.Device.Fill(y.Ptr, 0, y.Size, b.Stream))
	var marks [3]cuda.Event
	for i, times := range []int{1, 1, 20} {
		for range times {
			b.Must(b.Add(b.Stream, y, x, n))
		}
		var err error
		marks[i], err = b.Device.NewEvent(true)
		b.Must(err)
		b.Must(b.Device.Record(marks[i], b.Stream))
	}
	b.Must(b.Device.SyncStream(b.Stream))
	once, err := b.Device.Elapsed(marks[0], marks[1])
	b.Must(err)
	often, err := b.Device.Elapsed(marks[1], marks[2])
	b.Must(err)
	if once <= 0 || often <= once {
		t.Errorf("an addition took %v, 20 of them %v", once, often)
	}
	if once > 0 {
		t.Logf("add: %.0f GB/s", 12*float64(n)/float64(once))
	}
}

// TestDeviceErrors: an impossible request is an error that says so, and the device works on.
func TestDeviceErrors(t *testing.T) {
	b := suite.New(t, device(t), 1)
	if _, err := b.Device.Function(cuda.Module(12345), "add"); err == nil {
		t.Error("a kernel of no module was found")
	}
	m, err := b.Device.Load(".visible .entry add(\n")
	b.Must(err)
	if _, err := b.Device.Function(m, "subtract"); err == nil || !strings.Contains(err.Error(),
		"subtract") {
		t.Errorf("a kernel that there is not: %v", err)
	}
	if _, err := b.Device.Load(".visible .entry subtract(\n"); err == nil ||
		!strings.Contains(err.Error(), "subtract") {
		t.Errorf("a module with a kernel that there is not: %v", err)
	}
	if _, err := b.Device.Alloc(1 << 50); !errors.Is(err, cuda.ErrMemory) {
		t.Errorf("1 PiB: %v, want %v", err, cuda.ErrMemory)
	}
	if err := b.Device.HostRegister(make([]byte, 100)); err == nil {
		t.Error("memory that is no whole page was registered")
	}
	if err := b.Device.ToDevice(16, make([]byte, 8), b.Stream); err == nil {
		t.Error("bytes were copied to where there is nothing")
	}
	adds(b)
}

// TestOtherSystems: on other systems the error says what is missing.
func TestOtherSystems(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("this is about systems without Metal")
	}
	if _, err := metal.Open(); !errors.Is(err, metal.ErrEnvironment) ||
		!strings.Contains(err.Error(), runtime.GOOS) || !strings.Contains(err.Error(),
		"use the CPU backend") {
		t.Errorf("%v", err)
	}
}

func TestErrorText(t *testing.T) {
	err := error(&metal.Error{Message: "newBufferWithLength:options:", Text: "16GiB",
		Kind: cuda.ErrMemory})
	if want := "metal: newBufferWithLength:options:: out of memory: 16GiB"; err.Error() != want ||
		!errors.Is(err, cuda.ErrMemory) || errors.Is(err, cuda.ErrLost) {
		t.Errorf("%q, want %q", err, want)
	}
	if err := error(&metal.Error{Message: "commit",
		Text: "no"}); err.Error() != "metal: commit: no" || errors.Is(err, os.ErrNotExist) {
		t.Errorf("%q", err)
	}
}

// adds shows that a device still computes.
func adds(b *suite.Bench) {
	b.Helper()
	total := suite.Put(b, []float32{1, 2})
	b.Must(b.Add(b.Stream, total, suite.Put(b, []float32{3, 4}), 2))
	if got := suite.Get[float32](b, total, 2); got[0] != 4 || got[1] != 6 {
		b.Errorf("1 + 3 and 2 + 4 are %v", got)
	}
}
