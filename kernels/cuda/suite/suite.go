// Package suite compares every kernel on a device with plain Go. The drivers share it: each runs it
// from a test. A new kernel is tested on all drivers once it has a line in checks.
package suite

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// Run runs all checks on a device, which stays open.
func Run(t *testing.T, d *cuda.Device) {
	for i, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.run(New(t, d, uint64(i))) })
	}
}

type check struct {
	name string
	run  func(b *Bench)
}

func checks() []check {
	return []check{
		{"copies", (*Bench).copies}, {"streams", (*Bench).streams},
		{"matvec", (*Bench).matVecs}, {"special", (*Bench).special}, {"norm", (*Bench).norms},
		{"add", (*Bench).adds}, {"embed", (*Bench).embeds}, {"soft cap", (*Bench).softCaps},
		{"mask", (*Bench).masks}, {"predict", (*Bench).predicts},
		{"ffn-dense", (*Bench).ffnDense}, {"ffn-many-units", (*Bench).ffnManyUnits}, {"ffn-sparse",
			(*Bench).ffnSparse},
		{"flash-equals-dense", (*Bench).flashEqualsDense}, {"ffn-cut", (*Bench).ffnCut},
		{"gelu", (*Bench).gelus},
		{"rotary", (*Bench).rotaries}, {"attention", (*Bench).attentions},
		{"scatter", (*Bench).scatters}, {"move", (*Bench).moves},
		{"shapes", (*Bench).shapes},
	}
}

// Bench is a device with kernels, a stream, and short ways to fill and read memory.
type Bench struct {
	testing.TB
	*cuda.Kernels
	Device *cuda.Device
	Stream cuda.Stream
	Random *rand.Rand
}

// New returns a Bench for a test. Its memory is freed with the device.
func New(t testing.TB, d *cuda.Device, seed uint64) *Bench {
	t.Helper()
	b := &Bench{TB: t, Device: d, Random: rand.New(rand.NewPCG(seed, 1))}
	var err error
	b.Kernels, err = cuda.NewKernels(d)
	b.Must(err)
	b.Stream, err = d.NewStream()
	b.Must(err)
	return b
}

// Must ends the test on an error.
func (b *Bench) Must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// Room is device memory of some bytes.
func (b *Bench) Room(bytes int64) cuda.Mem {
	b.Helper()
	m, err := b.Device.Alloc(bytes)
	b.Must(err)
	return m
}

// Put is device memory with values.
func Put[T uint16 | uint32 | uint64 | int32 | float32](b *Bench, values []T) cuda.Mem {
	b.Helper()
	bytes := cuda.AsBytes(values)
	m := b.Room(int64(len(bytes)))
	b.Must(b.Device.ToDevice(m.Ptr, bytes, b.Stream))
	return m
}

// Get waits for n values.
func Get[T uint16 | uint32 | uint64 | int32 | float32](b *Bench, m cuda.Mem, n int) []T {
	b.Helper()
	values := make([]T, n)
	b.Must(b.Device.ToHost(cuda.AsBytes(values), m.Ptr, b.Stream))
	b.Must(b.Device.SyncStream(b.Stream))
	return values
}

// Bytes are n random bytes.
func (b *Bench) Bytes(n int) []byte {
	list := make([]byte, n)
	for i := range list {
		list[i] = byte(b.Random.Uint32())
	}
	return list
}

// Floats are n numbers around 0.
func (b *Bench) Floats(n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(b.Random.NormFloat64())
	}
	return list
}

// Ints are n different numbers below limit, in random order.
func (b *Bench) Ints(n, limit int) []int32 {
	list := make([]int32, n)
	for i, v := range b.Random.Perm(limit)[:n] {
		list[i] = int32(v)
	}
	return list
}

// length is the nearest that a row can have in a format.
func length(f ref.Format, n int) int { return (n + f.Group() - 1) / f.Group() * f.Group() }

// weights returns n weights on the device, and their exact values.
func (b *Bench) weights(f ref.Format, n int) (cuda.Mem, []float32) {
	b.Helper()
	values := b.Floats(n)
	return Put(b, encode(f, values)), values
}

// encode stores values as weights, and replaces them by the stored values.
func encode(f ref.Format, values []float32) []uint16 {
	words := make([]uint16, f.Size(len(values))/2)
	bytes := cuda.AsBytes(words)
	f.Encode(bytes, values)
	f.Decode(values, bytes)
	return words
}

// sum is a sum and the sum of its terms' magnitudes, which bounds the effect of the order of
// summation.
type sum struct{ value, size float64 }

func (s *sum) add(v float64) { s.value, s.size = s.value+v, s.size+math.Abs(v) }

// dot is the plain twin of dot products, in float64.
func dot(w, x []float32) (s sum) {
	for i, v := range w {
		s.add(float64(v) * float64(x[i]))
	}
	return s
}

// near demands a relative error of at most 1e-3, or of rounding where large terms cancel.
func (b *Bench) near(what string, got float32, want sum) {
	b.Helper()
	if !(math.Abs(float64(got)-want.value) <= 1e-3*math.Abs(want.value)+1e-6*want.size+1e-12) {
		b.Fatalf("%s: got %g, want %g (of terms %g)", what, got, want.value, want.size)
	}
}
