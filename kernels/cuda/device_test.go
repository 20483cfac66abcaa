package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/cuda/standin"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// libraryVariable names a real driver library (libcuda.so.1) to run the tests of kernels and conformance on, instead of the stand-in.
const libraryVariable = "WINDROW_CUDA_LIBRARY"

// TestMain holds the context of a real device for as long as tests run: making one takes long, and then it is made once.
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

// open gives a device and its stand-in, which is nil on a real device. The device is closed with the test, and nothing may be left on it.
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

// emulated opens a device of the stand-in, for what a real device does not show.
func emulated(t testing.TB) (*cuda.Device, *standin.Library) {
	t.Helper()
	if os.Getenv(libraryVariable) != "" {
		t.Skip("this is about the stand-in")
	}
	return open(t)
}

// bench is a device with kernels, a stream and short ways to fill and read memory.
type bench struct {
	testing.TB
	*cuda.Kernels
	d       *cuda.Device
	library *standin.Library // nil on a real device
	stream  cuda.Stream
	random  *rand.Rand
}

func newBench(t testing.TB, seed uint64) *bench {
	t.Helper()
	d, library := open(t)
	k, err := cuda.NewKernels(d)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{TB: t, Kernels: k, d: d, library: library, random: rand.New(rand.NewPCG(seed, 1))}
	b.stream, err = d.NewStream()
	b.must(err)
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// room is device memory of some bytes.
func (b *bench) room(bytes int64) cuda.Mem {
	b.Helper()
	m, err := b.d.Alloc(bytes)
	b.must(err)
	return m
}

func put[T uint16 | uint32 | uint64 | int32 | float32](b *bench, values []T) cuda.Mem {
	b.Helper()
	bytes := cuda.AsBytes(values)
	m := b.room(int64(len(bytes)))
	b.must(b.d.ToDevice(m.Ptr, bytes, b.stream))
	return m
}

func get[T uint16 | uint32 | uint64 | int32 | float32](b *bench, m cuda.Mem, n int) []T {
	b.Helper()
	values := make([]T, n)
	b.must(b.d.ToHost(cuda.AsBytes(values), m.Ptr, b.stream))
	b.must(b.d.SyncStream(b.stream))
	return values
}

// floats are n numbers around 0.
func (b *bench) floats(n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(b.random.NormFloat64())
	}
	return list
}

// ints are n different numbers below limit, in random order.
func (b *bench) ints(n, limit int) []int32 {
	list := make([]int32, n)
	for i, v := range b.random.Perm(limit)[:n] {
		list[i] = int32(v)
	}
	return list
}

// length is the nearest that a row can have in a format.
func length(f ref.Format, n int) int { return (n + f.Group() - 1) / f.Group() * f.Group() }

// weights are n weights on the device, and their exact values.
func (b *bench) weights(f ref.Format, n int) (cuda.Mem, []float32) {
	b.Helper()
	values := b.floats(n)
	return put(b, encode(f, values)), values
}

// encode stores values as weights, which it replaces by what is stored.
func encode(f ref.Format, values []float32) []uint16 {
	words := make([]uint16, f.Size(len(values))/2)
	bytes := cuda.AsBytes(words)
	f.Encode(bytes, values)
	f.Decode(values, bytes)
	return words
}

// sum is a sum and the sum of its terms' magnitudes, which says how far another order of summation may lead.
type sum struct{ value, size float64 }

func (s *sum) add(v float64) { s.value, s.size = s.value+v, s.size+math.Abs(v) }

// dot is the plain twin of dot products, in float64.
func dot(w, x []float32) (s sum) {
	for i, v := range w {
		s.add(float64(v) * float64(x[i]))
	}
	return s
}

// near demands a relative error of 1e-3, or one of rounding where large terms cancel.
func (b *bench) near(what string, got float32, want sum) {
	b.Helper()
	if !(math.Abs(float64(got)-want.value) <= 1e-3*math.Abs(want.value)+1e-6*want.size+1e-12) {
		b.Fatalf("%s: got %g, want %g (of terms %g)", what, got, want.value, want.size)
	}
}

func TestFacts(t *testing.T) {
	d, library := open(t)
	f := d.Facts
	if f.Name == "" || f.Memory <= 0 || f.Processors <= 0 || f.Driver < 12000 || f.Capability[0] < 7 {
		t.Errorf("facts: %+v", f)
	}
	if library != nil && !strings.Contains(f.Name, "emulated") {
		t.Errorf("the stand-in calls itself %q: it must say that it is one", f.Name)
	}
	free, total, err := d.MemInfo()
	if err != nil || free <= 0 || free > total {
		t.Errorf("memory: %v of %v, %v", free, total, err)
	}
	for _, a := range []cuda.Attribute{cuda.MaxThreads, cuda.WarpSize, cuda.MapsHostMemory, cuda.UnifiedAddresses, cuda.CopyEngines} {
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
	if _, err := cuda.Open(driver, 3); !errors.Is(err, cuda.ErrEnvironment) || !strings.Contains(err.Error(), "no device 3") {
		t.Errorf("device 3 of 1: %v", err)
	}
}

// second is the error of a call that gives something else too.
func second[T any](_ T, err error) error { return err }
