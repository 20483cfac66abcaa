package metal

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

// TestDevice runs the text on the machine's GPU.
func TestDevice(t *testing.T) {
	suite(t, device(t))
}

// device is the machine's GPU; the test is skipped where there is none.
func device(t testing.TB) *cuda.Device {
	t.Helper()
	d, err := Open()
	if errors.Is(err, ErrEnvironment) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("device: %s, %v", d.Facts.Name, d.Facts.Memory)
	return d
}

// TestDeviceTimes: work takes time by the device's clock, and more of it takes longer.
func TestDeviceTimes(t *testing.T) {
	b := newBench(t, device(t))
	const n = 1 << 24
	x, y := b.room(4*n), b.room(4*n)
	b.must(b.d.Fill(x.Ptr, 0, x.Size, b.stream))
	b.must(b.d.Fill(y.Ptr, 0, y.Size, b.stream))
	var marks [3]cuda.Event
	for i, times := range []int{1, 1, 20} {
		for range times {
			b.must(b.Add(b.stream, y, x, n))
		}
		var err error
		marks[i], err = b.d.NewEvent(true)
		b.must(err)
		b.must(b.d.Record(marks[i], b.stream))
	}
	b.must(b.d.SyncStream(b.stream))
	once, err := b.d.Elapsed(marks[0], marks[1])
	b.must(err)
	often, err := b.d.Elapsed(marks[1], marks[2])
	b.must(err)
	if once <= 0 || often <= once {
		t.Errorf("an addition took %v, 20 of them %v", once, often)
	}
	if once > 0 {
		t.Logf("add: %.0f GB/s", 12*float64(n)/float64(once))
	}
}

// TestDeviceErrors: what cannot be is an error that says so, and the device goes on.
func TestDeviceErrors(t *testing.T) {
	b := newBench(t, device(t))
	if _, err := b.d.Function(cuda.Module(12345), "add"); err == nil {
		t.Error("a kernel of no module was found")
	}
	m, err := b.d.Load(".visible .entry add(\n")
	b.must(err)
	if _, err := b.d.Function(m, "subtract"); err == nil || !strings.Contains(err.Error(), "subtract") {
		t.Errorf("a kernel that there is not: %v", err)
	}
	if _, err := b.d.Load(".visible .entry subtract(\n"); err == nil || !strings.Contains(err.Error(), "subtract") {
		t.Errorf("a module with a kernel that there is not: %v", err)
	}
	if _, err := b.d.Alloc(1 << 50); !errors.Is(err, cuda.ErrMemory) {
		t.Errorf("1 PiB: %v, want %v", err, cuda.ErrMemory)
	}
	if err := b.d.HostRegister(make([]byte, 100)); err == nil {
		t.Error("memory that is no whole page was registered")
	}
	if err := b.d.ToDevice(16, make([]byte, 8), b.stream); err == nil {
		t.Error("bytes were copied to where there is nothing")
	}
	b.checkAdd(1000)
}

// TestOtherSystems: elsewhere the error says what is missing.
func TestOtherSystems(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("this is about systems without Metal")
	}
	if _, err := Open(); !errors.Is(err, ErrEnvironment) || !strings.Contains(err.Error(), runtime.GOOS) || !strings.Contains(err.Error(), remedy) {
		t.Errorf("%v", err)
	}
}

func TestErrorText(t *testing.T) {
	err := error(&Error{Message: "newBufferWithLength:options:", Text: "16GiB", Kind: cuda.ErrMemory})
	if want := "metal: newBufferWithLength:options:: out of memory: 16GiB"; err.Error() != want || !errors.Is(err, cuda.ErrMemory) || errors.Is(err, cuda.ErrLost) {
		t.Errorf("%q, want %q", err, want)
	}
	if err := error(&Error{Message: "commit", Text: "no"}); err.Error() != "metal: commit: no" || errors.Is(err, os.ErrNotExist) {
		t.Errorf("%q", err)
	}
}
