package cpu

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// formatKernels is one implementation of the rows of all formats.
type formatKernels struct {
	name    string
	dot     func(f ref.Format, w []byte, x []float32) float32
	axpy    func(f ref.Format, a float32, w []byte, y []float32)
	axpyF32 func(a float32, x, y []float32) // axpy of the decoded weights
}

// formatImplementations are the one that this processor dispatches to and the portable one.
func formatImplementations() []formatKernels {
	return []formatKernels{
		{Features(),
			func(f ref.Format, w []byte, x []float32) float32 { return DotFormat(f, w, x, nil) },
			func(f ref.Format, a float32, w []byte, y []float32) { AxpyFormat(f, a, w, y, nil) },
			AxpyF32},
		{"portable",
			func(f ref.Format, w []byte, x []float32) float32 {
				switch f {
				case ref.BF16:
					return dotBF16Generic(words[uint16](w), x)
				case ref.F32:
					return dotF32Generic(words[float32](w), x)
				case ref.Q8:
					return dotQ8Generic(w, x)
				case ref.Q4:
					return dotQ4Generic(w, x)
				}
				return dotGeneric(words[uint16](w), x)
			},
			func(f ref.Format, a float32, w []byte, y []float32) {
				switch f {
				case ref.BF16:
					axpyBF16Generic(a, words[uint16](w), y)
				case ref.F32:
					axpyF32Generic(a, words[float32](w), y)
				case ref.Q8:
					axpyQ8Generic(a, w, y)
				case ref.Q4:
					axpyQ4Generic(a, w, y)
				default:
					axpyGeneric(a, words[uint16](w), y)
				}
			},
			axpyF32Generic},
	}
}

func eachFormat(t *testing.T, test func(t *testing.T, k formatKernels, f ref.Format)) {
	for _, k := range formatImplementations() {
		for _, f := range ref.Formats() {
			t.Run(k.name+"/"+f.String(), func(t *testing.T) { test(t, k, f) })
		}
	}
}

// encoded are n random weights. The numbers of quantised ones take all their values, also −128,
// which Encode never makes.
func encoded(r *rand.Rand, f ref.Format, n int) []byte {
	w := make([]byte, f.Size(n))
	f.Encode(w, floats(r, n))
	for g := 0; f.Group() > 1 && g < n; g += f.Group() {
		for i := f.Size(g) + 2; i < f.Size(g+f.Group()); i++ {
			w[i] = byte(r.Uint32())
		}
	}
	return w
}

func decoded(f ref.Format, w []byte, n int) []float32 {
	v := make([]float32, n)
	f.Decode(v, w)
	return v
}

// formatLengths are the lengths that a row can have in the format: every tail, in weights or in
// groups, and rows of real models.
func formatLengths(f ref.Format) (n []int) {
	for _, l := range lengths() {
		if l < 4096 {
			l *= f.Group()
		}
		n = append(n, l)
	}
	return n
}

func checkFormat(t *testing.T, k formatKernels, f ref.Format, w []byte, x []float32, a float32) {
	t.Helper()
	v := decoded(f, w, len(x))
	checkDot(t, k.dot(f, w, x), v, x)
	got, want := slices.Clone(x), slices.Clone(x)
	k.axpy(f, a, w, got)
	checkAxpy(t, got, a, v, x)
	if k.axpyF32(a, v, want); !slices.Equal(got, want) {
		t.Fatalf("%s %s, %d weights: the update differs from that by the decoded weights", k.name,
			f, len(x))
	}
}

func TestFormats(t *testing.T) {
	eachFormat(t, func(t *testing.T, k formatKernels, f ref.Format) {
		r := rng.Stream(rng.DefaultSeed, "formats")
		for _, n := range formatLengths(f) {
			checkFormat(t, k, f, encoded(r, f, n), floats(r, n), float32(r.NormFloat64()))
		}
	})
}

// FuzzFormats compares dot products, updates and mat-vecs of every format with the plain ones, at
// any address and any length.
func FuzzFormats(f *testing.F) {
	for _, n := range []uint16{0, 1, 8, 31, 64, 65, 127, 255, 256, 300, 1023} {
		f.Add(n, uint64(n), uint8(n))
	}
	pools := []*Pool{NewPool(1), NewPool(2), NewPool(3)}
	f.Cleanup(func() {
		for _, p := range pools {
			p.Close()
		}
	})
	f.Fuzz(func(t *testing.T, n16 uint16, seed uint64, offset uint8) {
		r := rand.New(rand.NewPCG(seed, 9))
		for _, format := range ref.Formats() {
			n := int(n16%1024) / format.Group() * format.Group()
			const rows = 5
			w, x := moved(encoded(r, format, rows*n), offset), floats(r, n+int(offset%8))[offset%8:]
			size, a := format.Size(n), float32(r.NormFloat64())
			for _, k := range formatImplementations() {
				for i := range rows {
					checkFormat(t, k, format, w[i*size:(i+1)*size], x, a)
				}
			}
			y := make([]float32, rows)
			for _, pool := range pools {
				pool.matVecBy(1, format, w, rows, n, x, y)
				checkRows(t, format, w, x, y)
			}
		}
	})
}

// moved is a copy of w at an offset from an aligned address, as far as plain Go can read there.
func moved(w []byte, offset uint8) []byte {
	if Features() == "generic" {
		offset &^= 3
	}
	copied := make([]byte, int(offset)+len(w))
	copy(copied[offset:], w)
	return copied[offset:]
}

// checkRows compares a mat-vec with DotFormat bit for bit, whatever row comes next.
func checkRows(t *testing.T, f ref.Format, w []byte, x, y []float32) {
	t.Helper()
	size := f.Size(len(x))
	for i, got := range y {
		row := w[i*size : (i+1)*size]
		for _, next := range [][]byte{nil, w[:size], row[size/2:]} {
			if want := DotFormat(f, row, x, next); math.Float32bits(got) != math.Float32bits(want) {
				t.Fatalf("%s, %d×%d: row %d is %g in the mat-vec, its dot %g", f, len(y), len(x), i,
					got, want)
			}
		}
	}
}

// A token alone goes through the mat-vec, several through DotFormat row by row: the engine relies
// on equal bits.
func TestMatVecFormatIsDotFormatBitForBit(t *testing.T) {
	r := rng.Stream(rng.DefaultSeed, "matvec")
	for _, workers := range []int{1, 2, 3, 5} {
		p := NewPool(workers)
		defer p.Close()
		for _, f := range ref.Formats() {
			for _, s := range [][2]int{{0, 0}, {3, 0}, {1, 1}, {7, 3}, {33, 6}, {300, 40}} {
				rows, cols := s[0], s[1]*f.Group()
				w, x, y := encoded(r, f, rows*cols), floats(r, cols), floats(r, rows)
				p.MatVecFormat(f, w, rows, cols, x, y)
				checkRows(t, f, w, x, y)
			}
		}
	}
}

// Float16 has two ways in: they are one.
func TestFormatF16IsDotAndAxpy(t *testing.T) {
	r := rng.Stream(rng.DefaultSeed, "f16")
	for _, n := range lengths() {
		w, x := halves(r, n), floats(r, n)
		if got, want := DotFormat(ref.F16, bytesOf(w), x, nil), Dot(w, x); got != want {
			t.Fatalf("n=%d: DotFormat %g, Dot %g", n, got, want)
		}
		got, want := slices.Clone(x), slices.Clone(x)
		AxpyFormat(ref.F16, 0.3, bytesOf(w), got, nil)
		if Axpy(0.3, w, want); !slices.Equal(got, want) {
			t.Fatalf("n=%d: AxpyFormat differs from Axpy", n)
		}
	}
}

// Workers may divide y between any two groups.
func TestAxpyFormatInPiecesIsBitEqual(t *testing.T) {
	eachFormat(t, func(t *testing.T, k formatKernels, f ref.Format) {
		r := rng.Stream(rng.DefaultSeed, "pieces")
		n := 203 / f.Group() * f.Group()
		w, y, a := encoded(r, f, n), floats(r, n), float32(r.NormFloat64())
		whole := slices.Clone(y)
		k.axpy(f, a, w, whole)
		for cut := 0; cut <= n; cut += f.Group() {
			got := slices.Clone(y)
			k.axpy(f, a, w[:f.Size(cut)], got[:cut])
			k.axpy(f, a, w[f.Size(cut):], got[cut:])
			if !slices.Equal(got, whole) {
				t.Fatalf("cut at %d: differs from the whole", cut)
			}
		}
	})
}

// Any address will do, and nothing beside the slices is read into the result or written.
func TestFormatAlignmentAndGuards(t *testing.T) {
	eachFormat(t, func(t *testing.T, k formatKernels, f ref.Format) {
		r := rng.Stream(rng.DefaultSeed, "alignment")
		const guard = 64
		nan := float32(math.NaN())
		for _, groups := range []int{1, 3, 4, 5, 31, 64, 77} {
			n := groups * f.Group()
			w, x, a := encoded(r, f, n), floats(r, n), float32(r.NormFloat64())
			dot, axpy := k.dot(f, w, x), slices.Clone(x)
			k.axpy(f, a, w, axpy)
			for off := range 9 {
				// NaN in every format, also as a scale
				around := bytes.Repeat([]byte{0xff}, len(w)+2*guard)
				ws := moved(around, uint8(off))[guard:][:len(w)]
				xs := slices.Repeat([]float32{nan}, n+2*guard)
				in := xs[guard-off:][:n] // elements, where ws moves by bytes
				copy(ws, w)
				copy(in, x)
				if got := k.dot(f, ws, in); got != dot {
					t.Fatalf("%d weights, offset %d: dot %g, elsewhere %g", n, off, got, dot)
				}
				if k.axpy(f, a, ws, in); !slices.Equal(in, axpy) {
					t.Fatalf("%d weights, offset %d: the update differs from that elsewhere", n,
						off)
				}
				for i, v := range xs {
					if outside := i < guard-off || i >= guard-off+n; outside && v == v {
						t.Fatalf("%d weights, offset %d: element %d outside the slice was written",
							n, off, i-guard+off)
					}
				}
			}
		}
	})
}

// Every number of a quantised format, at every place of a group and of a block of groups, comes out
// as it is decoded.
func TestEveryQuantisedNumber(t *testing.T) {
	eachFormat(t, func(t *testing.T, k formatKernels, f ref.Format) {
		if f.Group() == 1 {
			t.Skip("has no groups")
		}
		n := 5 * f.Group()
		w, y, one := make([]byte, f.Size(n)), make([]float32, n), make([]float32, n)
		for number := range 256 {
			for i := range w {
				w[i] = byte(number + i)
			}
			for g := 0; g < n; g += f.Group() {
				copy(w[f.Size(g):], []byte{byte(g), 0x34 + byte(g%3)}) // scales of 0.25 to 1
			}
			clear(y)
			k.axpy(f, 1, w, y)
			want := decoded(f, w, n)
			if !slices.Equal(y, want) {
				t.Fatalf("numbers from %d: got %v, want %v", number, y, want)
			}
			at := number % n
			one[at] = 2
			if got := k.dot(f, w, one); got != 2*want[at] {
				t.Fatalf("weight %d of %d: the dot product with 2 is %g, want %g", at, n, got,
					2*want[at])
			}
			one[at] = 0
		}
	})
}

func TestFormatShapesPanic(t *testing.T) {
	pool := NewPool(2)
	defer pool.Close()
	v := make([]float32, 64)
	for _, f := range ref.Formats() {
		w := make([]byte, f.Size(64))
		calls := map[string]func(){
			"DotFormat":  func() { DotFormat(f, w[:len(w)-1], v, nil) },
			"AxpyFormat": func() { AxpyFormat(f, 1, w[:len(w)-1], v, nil) },
			"mat-vec w":  func() { pool.MatVecFormat(f, w[:len(w)-1], 2, 32, v, v) },
			"mat-vec x":  func() { pool.MatVecFormat(f, w, 1, 64, v[:63], v) },
			"mat-vec y":  func() { pool.MatVecFormat(f, w, 2, 32, v, v[:1]) },
		}
		if f.Group() > 1 {
			calls["part of a group in DotFormat"] = func() { DotFormat(f, w, v[:40], nil) }
			calls["part of a group in AxpyFormat"] = func() { AxpyFormat(f, 1, w, v[:40], nil) }
			calls["part of a group in a mat-vec"] = func() { pool.MatVecFormat(f, w, 1, 40, v, v) }
		}
		for name, call := range calls {
			t.Run(fmt.Sprintf("%s/%s", f, name), func(t *testing.T) {
				defer func() {
					if recover() == nil {
						t.Error("did not panic")
					}
				}()
				call()
			})
		}
	}
}

func TestFormatsDoNotAllocate(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	const rows, cols = 512, 256
	x, y := make([]float32, cols), make([]float32, rows)
	for _, f := range ref.Formats() {
		w := make([]byte, f.Size(rows*cols))
		size := f.Size(cols)
		if got := testing.AllocsPerRun(10, func() {
			y[0] = DotFormat(f, w[:size], x, w[size:2*size])
			AxpyFormat(f, 1, w[:size], x, w[size:2*size])
			p.MatVecFormat(f, w, rows, cols, x, y)
		}); got != 0 {
			t.Errorf("%s: %g allocations", f, got)
		}
	}
}

// BenchmarkFormats is a mat-vec whose matrix stays in the second-level cache, and an update that
// stays in the first.
func BenchmarkFormats(b *testing.B) {
	const rows, n = 32, 4096
	random := rand.New(rand.NewPCG(1, 1))
	src, x, y := floats(random, rows*n), floats(random, n), make([]float32, n)
	pool := NewPool(1)
	defer pool.Close()
	for _, format := range ref.Formats() {
		w := make([]byte, format.Size(rows*n))
		format.Encode(w, src)
		row := w[:format.Size(n)]
		for _, c := range []struct {
			name    string
			weights int
			f       func()
		}{
			{"MatVec", rows * n, func() { pool.MatVecFormat(format, w, rows, n, x, y[:rows]) }},
			{"Dot", n, func() { y[0] = DotFormat(format, row, x, nil) }},
			{"Axpy", n, func() { AxpyFormat(format, 1e-9, row, y, nil) }},
		} {
			b.Run(c.name+"/"+format.String(), func(b *testing.B) {
				b.SetBytes(int64(format.Size(c.weights)))
				for b.Loop() {
					c.f()
				}
				b.ReportMetric(float64(c.weights)*float64(b.N)/b.Elapsed().Seconds()/1e9,
					"Gweights/s")
			})
		}
	}
}
