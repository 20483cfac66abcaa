package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/cuda/standin"
	"github.com/windrow-sim/windrow/kernels/cuda/suite"
)

// libraryVariable names a real driver library (libcuda.so.1) to run the tests of kernels and
// conformance on, instead of the stand-in.
const libraryVariable = "WINDROW_CUDA_LIBRARY"

// TestMain holds the context of a real device for as long as tests run: making one takes long, and
// then it is made once.
func TestMain(m *testing.M) {
	if name := os.Getenv(libraryVariable); name != "" {
		driver, err := openDriver(name)
		if err == nil {
			err = driver.Use(0)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// open gives a device and its stand-in, which is nil on a real device. The device is closed with
// the test, and nothing may be left on it.
func open(t testing.TB) (*cuda.Device, *standin.Library) {
	t.Helper()
	name, library := os.Getenv(libraryVariable), (*standin.Library)(nil)
	if name == "" {
		library = standin.Open(t)
		name = library.Path()
	}
	driver, err := openDriver(name)
	if err != nil {
		t.Fatal(err)
	}
	d, err := cuda.Open(driver, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d, library
}

// emulated opens a device of the stand-in, for tests of states that a real device does not show.
func emulated(t testing.TB) (*cuda.Device, *standin.Library) {
	t.Helper()
	if os.Getenv(libraryVariable) != "" {
		t.Skip("this is about the stand-in")
	}
	return open(t)
}

// newBench is a bench on a device of its own, seeded.
func newBench(t testing.TB, seed uint64) *suite.Bench {
	t.Helper()
	d, _ := open(t)
	return suite.New(t, d, seed)
}

// TestKernels compares every kernel with plain Go.
func TestKernels(t *testing.T) {
	d, _ := open(t)
	suite.Run(t, d)
}

func TestFacts(t *testing.T) {
	d, library := open(t)
	f := d.Facts
	if f.Name == "" || f.Memory <= 0 || f.Processors <= 0 || f.Driver < 12000 ||
		f.Capability[0] < 7 {
		t.Errorf("facts: %+v", f)
	}
	if library != nil && !strings.Contains(f.Name, "emulated") {
		t.Errorf("the stand-in calls itself %q: it must say that it is one", f.Name)
	}
	free, total, err := d.MemInfo()
	if err != nil || free <= 0 || free > total {
		t.Errorf("memory: %v of %v, %v", free, total, err)
	}
	for _, a := range []cuda.Attribute{cuda.MaxThreads, cuda.WarpSize, cuda.MapsHostMemory,
		cuda.UnifiedAddresses, cuda.CopyEngines} {
		if v, err := d.Attribute(0, a); err != nil || v < 1 {
			t.Errorf("attribute %d: %d, %v", a, v, err)
		}
	}
}

func TestNoSuchDevice(t *testing.T) {
	library := standin.Open(t)
	driver, err := openDriver(library.Path())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cuda.Open(driver, 3); !errors.Is(err, cuda.ErrEnvironment) ||
		!strings.Contains(err.Error(), "no device 3") {
		t.Errorf("device 3 of 1: %v", err)
	}
}

// second is the error of a call that gives something else too.
func second[T any](_ T, err error) error { return err }
