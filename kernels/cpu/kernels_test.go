package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// kernels is one implementation to compare with ref.
type kernels struct {
	name    string
	dot     func(w []uint16, x []float32) float32
	axpy    func(a float32, w []uint16, y []float32)
	matVec  func(w []uint16, rows, cols int, x, y []float32)
	dotF32  func(a, b []float32) float32
	axpyF32 func(a float32, x, y []float32)
	widen   func(dst []float32, src []uint16)
	stream  func(b []byte) uint64
}

// implementations are the one that this processor dispatches to and the portable one, which no
// public switch can select.
func implementations() []kernels {
	return []kernels{
		{Features(), Dot, Axpy, MatVec, DotF32, AxpyF32, F16SliceToF32, StreamRead},
		{"portable", dotGeneric, axpyGeneric, func(w []uint16, rows, cols int, x, y []float32) {
			for r := range rows {
				y[r] = dotGeneric(w[r*cols:(r+1)*cols], x)
			}
		}, dotF32Generic, axpyF32Generic, widenGeneric, streamGeneric},
	}
}

func each(t *testing.T, f func(t *testing.T, k kernels)) {
	for _, k := range implementations() {
		t.Run(k.name, func(t *testing.T) { f(t, k) })
	}
}

func halves(r *rand.Rand, n int) []uint16 {
	w := make([]uint16, n)
	for i := range w {
		w[i] = ref.F32ToF16(float32(r.NormFloat64()))
	}
	return w
}

func floats(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func wide(w []uint16) []float32 {
	x := make([]float32, len(w))
	ref.F16SliceToF32(x, w)
	return x
}

// The unit roundoff of float32 and its smallest positive number, the error of a result that
// underflows.
const (
	roundoff = 1.0 / (1 << 24)
	tiny     = math.SmallestNonzeroFloat32
)

// exactDot returns the sum of products in float64 and the sum of the absolute values of the finite
// ones. Each product is exact (24+24 bits); the sums are good to 2^-53, which is nothing beside a
// float32's 2^-24.
func exactDot(a, b []float32) (sum, magnitude float64) {
	for i := range a {
		p := float64(a[i]) * float64(b[i])
		sum += p
		if !math.IsNaN(p) && !math.IsInf(p, 0) {
			magnitude += math.Abs(p)
		}
	}
	return sum, magnitude
}

// depth bounds the roundings that one product can pass through in any implementation here: its own,
// one for each element that shares its accumulator (n/4 in the portable version with 4 sums, less
// with 64), and at most 16 for single vectors, the reduction and the tail. The error of a sum is at
// most depth·2^-24 of the sum of absolute values (Higham, Accuracy and Stability of Numerical
// Algorithms, section 4.2), to first order; the 17th covers the rest.
func depth(n int) float64 { return float64(n)/4 + 17 }

// checkDot compares got with the exact sum, and with ref where that is not finite.
func checkDot(t *testing.T, got float32, a, b []float32) {
	t.Helper()
	sum, magnitude := exactDot(a, b)
	want := ref.DotF32(a, b)
	switch {
	case magnitude > math.MaxFloat32/2:
		// Whether a partial sum overflows depends on the order, so nothing can be said.
	case math.IsNaN(sum) || math.IsInf(sum, 0):
		if !sameClass(got, float32(sum)) || !sameClass(want, float32(sum)) {
			t.Fatalf("n=%d: got %g, ref %g, exact %g", len(a), got, want, sum)
		}
	default:
		tolerance := depth(len(a))*roundoff*magnitude + float64(len(a))*tiny
		if diff := math.Abs(float64(got) - sum); !(diff <= tolerance) {
			t.Fatalf("n=%d: got %g, exact %g, off by %g, tolerance %g", len(a), got, sum, diff,
				tolerance)
		}
		// ref is one long sum: n roundings.
		tolerance = float64(len(a)+1)*roundoff*magnitude + float64(len(a))*tiny
		if diff := math.Abs(float64(want) - sum); !(diff <= tolerance) {
			t.Fatalf("n=%d: ref %g, exact %g, off by %g, tolerance %g", len(a), want, sum, diff,
				tolerance)
		}
	}
}

// sameClass: both NaN, or the same value.
func sameClass(a, b float32) bool { return a == b || (a != a && b != b) }

// checkAxpy compares got with y + a·x, element by element: two roundings at most, of the product
// and of the sum.
func checkAxpy(t *testing.T, got []float32, a float32, x, y []float32) {
	t.Helper()
	for i := range x {
		product := float64(a) * float64(x[i])
		exact := product + float64(y[i])
		if math.IsNaN(exact) || math.IsInf(exact, 0) {
			if !sameClass(got[i], float32(exact)) {
				t.Fatalf("element %d of %d: got %g, exact %g", i, len(x), got[i], exact)
			}
			continue
		}
		if math.Abs(product)+math.Abs(float64(y[i])) > math.MaxFloat32/2 {
			continue
		}
		tolerance := roundoff*(math.Abs(product)+math.Abs(exact))*(1+2*roundoff) + 2*tiny
		if diff := math.Abs(float64(got[i]) - exact); !(diff <= tolerance) {
			t.Fatalf("element %d of %d: got %g, exact %g, off by %g, tolerance %g", i, len(x),
				got[i], exact, diff, tolerance)
		}
	}
}

// lengths covers every tail twice over, whole blocks, and rows of real models.
func lengths() []int {
	var n []int
	for i := range 68 {
		n = append(n, i)
	}
	return append(n, 127, 128, 129, 191, 200, 768, 1000, 2560, 4096, 14336)
}

func TestDot(t *testing.T) {
	each(t, func(t *testing.T, k kernels) {
		r := rng.Stream(rng.DefaultSeed, "dot")
		for _, n := range lengths() {
			w, x := halves(r, n), floats(r, n)
			checkDot(t, k.dot(w, x), wide(w), x)
			checkDot(t, k.dotF32(wide(w), x), wide(w), x)
		}
	})
}

func TestAxpy(t *testing.T) {
	each(t, func(t *testing.T, k kernels) {
		r := rng.Stream(rng.DefaultSeed, "axpy")
		for _, n := range lengths() {
			w, y, a := halves(r, n), floats(r, n), float32(r.NormFloat64())
			got := slices.Clone(y)
			k.axpy(a, w, got)
			checkAxpy(t, got, a, wide(w), y)
			got = slices.Clone(y)
			k.axpyF32(a, wide(w), got)
			checkAxpy(t, got, a, wide(w), y)
		}
	})
}

// Every element counts exactly once: with one weight of 1 among zeros the result is that element,
// without rounding.
func TestDotSeesEveryElement(t *testing.T) {
	each(t, func(t *testing.T, k kernels) {
		for _, n := range []int{1, 7, 8, 9, 63, 64, 65, 135, 203} {
			w, ones, x := make([]uint16, n), make([]float32, n), make([]float32, n)
			for i := range x {
				x[i] = float32(i + 1)
			}
			for i := range n {
				w[i], ones[i] = 0x3c00, 1
				if got := k.dot(w, x); got != x[i] {
					t.Fatalf("dot, n=%d: element %d came out as %g", n, i, got)
				}
				if got := k.dotF32(ones, x); got != x[i] {
					t.Fatalf("dotF32, n=%d: element %d came out as %g", n, i, got)
				}
				w[i], ones[i] = 0, 0
			}
		}
	})
}

// Any address will do, the result does not depend on it, and nothing beside the slices is read into
// the result or written.
func TestAlignmentAndGuards(t *testing.T) {
	each(t, func(t *testing.T, k kernels) {
		r := rng.Stream(rng.DefaultSeed, "alignment")
		const guard = 16
		nan := float32(math.NaN())
		for _, n := range []int{1, 5, 8, 31, 64, 77, 200} {
			w, x, a := halves(r, n), floats(r, n), float32(r.NormFloat64())
			dot, axpy := k.dot(w, x), slices.Clone(x)
			k.axpy(a, w, axpy)
			for off := range guard {
				w2 := slices.Repeat([]uint16{0x7e00}, n+2*guard) // NaN all around
				x2 := slices.Repeat([]float32{nan}, n+2*guard)
				ws, xs := w2[off:off+n], x2[guard-off:guard-off+n]
				copy(ws, w)
				copy(xs, x)
				if got := k.dot(ws, xs); got != dot {
					t.Fatalf("dot, n=%d, offset %d: %g, elsewhere %g", n, off, got, dot)
				}
				k.axpy(a, ws, xs)
				if !slices.Equal(xs, axpy) {
					t.Fatalf("axpy, n=%d, offset %d: differs from the result elsewhere", n, off)
				}
				k.widen(xs, ws)
				if !slices.Equal(xs, wide(w)) {
					t.Fatalf("widen, n=%d, offset %d: wrong", n, off)
				}
				for i, v := range x2 {
					if outside := i < guard-off || i >= guard-off+n; outside && v == v {
						t.Fatalf("n=%d, offset %d: element %d outside the slice was written", n,
							off, i-guard+off)
					}
				}
			}
		}
	})
}

// Bytes of an mmapped file need not be aligned for float16: the hardware does not mind.
func TestDotAtOddAddress(t *testing.T) {
	if Features() == "generic" {
		t.Skip("plain Go may not read words at odd addresses everywhere")
	}
	r := rng.Stream(rng.DefaultSeed, "odd")
	w, x := halves(r, 100), floats(r, 100)
	raw := make([]byte, 201)
	copy(raw[1:], unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 200))
	odd := (*uint16)(unsafe.Add(unsafe.Pointer(&raw[0]), 1))
	if got, want := Dot(unsafe.Slice(odd, 100), x), Dot(w, x); got != want {
		t.Errorf("got %g, aligned %g", got, want)
	}
}

func TestNonFinite(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	cases := []struct {
		name   string
		w0, w1 float32
		x0, x1 float32
		want   float64
	}{
		{"NaN weight", float32(nan), 1, 1, 1, nan},
		{"NaN input", 1, 1, float32(nan), 1, nan},
		{"NaN times zero", 0, 1, float32(nan), 1, nan},
		{"Inf weight", float32(inf), 1, 2, 1, inf},
		{"Inf times negative", float32(inf), 1, -2, 1, -inf},
		{"Inf times zero", float32(inf), 1, 0, 1, nan},
		{"Inf minus Inf", float32(inf), float32(inf), 1, -1, nan},
	}
	each(t, func(t *testing.T, k kernels) {
		for _, c := range cases {
			for _, n := range []int{2, 9, 64, 75} {
				for at := range n - 1 {
					w, x := slices.Repeat([]uint16{0x3c00}, n), slices.Repeat([]float32{1}, n)
					w[at], x[at] = ref.F32ToF16(c.w0), c.x0
					w[n-1], x[n-1] = ref.F32ToF16(c.w1), c.x1
					want := float32(c.want)
					if got := k.dot(w, x); !sameClass(got, want) {
						t.Fatalf("%s at %d of %d: dot %g, want %g", c.name, at, n, got, want)
					}
					if got := k.dotF32(wide(w), x); !sameClass(got, want) {
						t.Fatalf("%s at %d of %d: dotF32 %g, want %g", c.name, at, n, got, want)
					}
					y := make([]float32, n)
					k.axpy(c.x0, w, y)
					checkAxpy(t, y, c.x0, wide(w), make([]float32, n))
				}
			}
		}
	})
}

func TestWidenIsExactForEveryHalf(t *testing.T) {
	each(t, func(t *testing.T, k kernels) {
		src, dst := make([]uint16, 1<<16), make([]float32, 1<<16)
		for i := range src {
			src[i] = uint16(i)
		}
		k.widen(dst, src)
		for i, v := range dst {
			if want := ref.F16ToF32(uint16(i)); math.Float32bits(v) != math.Float32bits(want) {
				t.Fatalf("%#04x: bits %#08x, ref %#08x", i, math.Float32bits(v),
					math.Float32bits(want))
			}
		}
	})
}

// The loop over longestCall pieces must not lose its place.
func TestWidenLong(t *testing.T) {
	r := rng.Stream(rng.DefaultSeed, "long")
	src := make([]uint16, 1<<18+1<<17+3)
	for i := range src {
		src[i] = uint16(r.Uint32()) &^ 0x4000 // finite
	}
	dst := make([]float32, len(src))
	F16SliceToF32(dst, src)
	if !slices.Equal(dst, wide(src)) {
		t.Error("differs from ref")
	}
}

func TestStreamRead(t *testing.T) {
	each(t, func(t *testing.T, k kernels) {
		r := rng.Stream(rng.DefaultSeed, "stream")
		b := make([]byte, 2<<20+300)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		for _, n := range []int{0, 1, 7, 8, 31, 33, 255, 256, 257, 777, 1 << 20, len(b) - 1} {
			for off := range 2 {
				if got, want := k.stream(b[off:off+n]), ref.StreamRead(b[off:off+n]); got != want {
					t.Fatalf("n=%d, offset %d: %#x, ref %#x", n, off, got, want)
				}
			}
		}
	})
}

func shapes() [][2]int {
	return [][2]int{{0, 0}, {0, 5}, {3, 0}, {1, 1}, {1, 64}, {7, 13}, {5, 64}, {64, 5}, {33, 200},
		{200, 768}, {3, 4096}}
}

func TestMatVecIsDotBitForBit(t *testing.T) {
	each(t, func(t *testing.T, k kernels) {
		r := rng.Stream(rng.DefaultSeed, "matvec")
		for _, s := range shapes() {
			rows, cols := s[0], s[1]
			w, x, y := halves(r, rows*cols), floats(r, cols), floats(r, rows)
			k.matVec(w, rows, cols, x, y)
			for i, got := range y {
				if want := k.dot(w[i*cols:(i+1)*cols],
					x); math.Float32bits(got) != math.Float32bits(want) {
					t.Fatalf("%d×%d: row %d is %g, its dot %g", rows, cols, i, got, want)
				}
			}
		}
	})
}

func TestNextChangesNothing(t *testing.T) {
	r := rng.Stream(rng.DefaultSeed, "next")
	for _, n := range lengths() {
		w, x, other := halves(r, n), floats(r, n), halves(r, n)
		for _, next := range [][]uint16{nil, other, w, other[:n/2]} {
			if got, want := DotNext(w, x, next), Dot(w, x); got != want {
				t.Fatalf("n=%d: DotNext %g, Dot %g", n, got, want)
			}
			y, want := slices.Clone(x), slices.Clone(x)
			AxpyNext(0.3, w, y, next)
			Axpy(0.3, w, want)
			if !slices.Equal(y, want) {
				t.Fatalf("n=%d: AxpyNext differs from Axpy", n)
			}
		}
	}
}

// Workers may divide y anywhere: vectors and tails round alike.
func TestAxpyInPiecesIsBitEqual(t *testing.T) {
	each(t, func(t *testing.T, k kernels) {
		r := rng.Stream(rng.DefaultSeed, "pieces")
		const n = 203
		w, y, a := halves(r, n), floats(r, n), float32(r.NormFloat64())
		whole, wholeF32 := slices.Clone(y), slices.Clone(y)
		k.axpy(a, w, whole)
		k.axpyF32(a, wide(w), wholeF32)
		if !slices.Equal(whole, wholeF32) {
			t.Fatal("axpy and axpyF32 of the same values differ")
		}
		for cut := range n + 1 {
			got := slices.Clone(y)
			k.axpy(a, w[:cut], got[:cut])
			k.axpy(a, w[cut:], got[cut:])
			if !slices.Equal(got, whole) {
				t.Fatalf("cut at %d: differs from the whole", cut)
			}
		}
	})
}

// A slice that is too short must not reach the assembly, even where its capacity would do.
func TestShortSlicesPanic(t *testing.T) {
	w, v := make([]uint16, 8), make([]float32, 8)
	x := make([]float32, 8)[:7]
	pool := NewPool(2)
	defer pool.Close()
	calls := map[string]func(){
		"Dot":           func() { Dot(w, x) },
		"DotNext":       func() { DotNext(w, x, nil) },
		"Axpy":          func() { Axpy(1, w, x) },
		"AxpyNext":      func() { AxpyNext(1, w, x, nil) },
		"DotF32":        func() { DotF32(v, x) },
		"AxpyF32":       func() { AxpyF32(1, v, x) },
		"F16SliceToF32": func() { F16SliceToF32(x, w) },
		"MatVec x":      func() { MatVec(w, 1, 8, x, v) },
		"MatVec w":      func() { MatVec(w[:7], 2, 4, v, v) },
		"MatVec y":      func() { MatVec(w, 2, 4, v, v[:1]) },
		"Pool x":        func() { pool.MatVec(w, 1, 8, x, v) },
		"Pool w":        func() { pool.MatVec(w[:7], 2, 4, v, v) },
		"Pool y":        func() { pool.MatVec(w, 2, 4, v, v[:1]) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			call()
		})
	}
}

func TestKernelsDoNotAllocate(t *testing.T) {
	w, x, y := make([]uint16, 64*64), make([]float32, 64), make([]float32, 64)
	b := make([]byte, 1000)
	got := testing.AllocsPerRun(10, func() {
		y[0] = DotNext(w[:64], x, w[64:128]) + DotF32(x, y)
		AxpyNext(1, w[:64], y, w[64:128])
		AxpyF32(1, x, y)
		MatVec(w, 64, 64, x, y)
		F16SliceToF32(x, w[:64])
		y[1] = float32(StreamRead(b))
	})
	if got != 0 {
		t.Errorf("%g allocations", got)
	}
}

func ExampleMatVec() {
	// Two rows of three float16 weights: 1 2 3 and 0.5 0 −1.
	w := []uint16{0x3c00, 0x4000, 0x4200, 0x3800, 0x0000, 0xbc00}
	x := []float32{1, 10, 100}
	y := make([]float32, 2)
	MatVec(w, 2, 3, x, y)
	fmt.Println(y)
	// Output: [321 -99.5]
}

func TestHalfIsExactForEveryPattern(t *testing.T) {
	for i := range 1 << 16 {
		got, want := half(uint16(i)), ref.F16ToF32(uint16(i))
		if !sameClass(got, want) || math.Signbit(float64(got)) != math.Signbit(float64(want)) {
			t.Fatalf("%#04x: %g, ref %g", i, got, want)
		}
	}
}
