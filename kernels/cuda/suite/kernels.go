package suite

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

func (b *Bench) matVecs() {
	shapes := [][3]int{{0, 8, 1}, {1, 1, 1}, {1, 4096, 1}, {3, 0, 1}, {5, 7, 0}, {4, 256, 2},
		{129, 33, 1}, {17, 1000, 3}, {64, 8, 1}}
	for range 8 {
		shapes = append(shapes, [3]int{b.Random.IntN(70), b.Random.IntN(600), b.Random.IntN(4)})
	}
	for _, f := range ref.Formats() {
		for i, s := range shapes {
			b.checkMatVec(f, s[0], length(f, s[1]), s[2], i%2 == 0, i%3 == 0)
		}
	}
}

// checkMatVec runs a mat-vec on random numbers and compares with the plain twin.
func (b *Bench) checkMatVec(f ref.Format, rows, cols, tokens int, biased, relu bool) {
	b.Helper()
	w, values := b.weights(f, rows*cols)
	x, bias := b.Floats(tokens*cols), make([]float32, rows)
	a := &cuda.MatVec{Format: f, W: w, X: Put(b, x), Y: b.Room(int64(4 * tokens * rows)),
		Rows: rows, Cols: cols, Tokens: tokens, ReLU: relu}
	if biased {
		bias = b.Floats(rows)
		a.Bias = Put(b, bias)
	}
	b.Must(b.MatVec(b.Stream, a))
	for j, v := range Get[float32](b, a.Y, tokens*rows) {
		token, row := j/rows, j%rows
		want := dot(values[row*cols:(row+1)*cols], x[token*cols:])
		want.add(float64(bias[row]))
		if relu {
			want.value = max(want.value, 0)
		}
		b.near(fmt.Sprintf("%v, %d rows, %d cols: token %d row %d", f, rows, cols, token, row), v,
			want)
	}
}

// special: NaN stays NaN, and subnormal weights count.
func (b *Bench) special() {
	w := Put(b, []uint16{0x7c00, 0x0001, 0x7e00, 0x3c00, 0x0001, 0x8001})
	a := &cuda.MatVec{W: w, X: Put(b, []float32{1, 0x1p24}), Y: b.Room(12), Rows: 3, Cols: 2,
		Tokens: 1}
	b.Must(b.MatVec(b.Stream, a))
	got := Get[float32](b, a.Y, 3)
	if !math.IsInf(float64(got[0]), 1) || got[1] == got[1] || got[2] != 0x1p-24-1 {
		b.Errorf("got %v, want +Inf, NaN and 2^-24 - 1", got)
	}
}

func (b *Bench) norms() {
	for _, s := range [][2]int{{0, 8}, {1, 1}, {1, 31}, {3, 512}, {2, 1000}, {5, 64}} {
		for _, rms := range []bool{false, true} {
			rows, dim := s[0], s[1]
			x, w, bias := b.Floats(rows*dim), b.Floats(dim), b.Floats(dim)
			m := Put(b, x)
			a := &cuda.Norm{X: m, Y: m, W: Put(b, w), Rows: rows, Dim: dim, Epsilon: 1e-5, RMS: rms}
			if !rms {
				a.B = Put(b, bias)
			}
			b.Must(b.Norm(b.Stream, a))
			for j, v := range Get[float32](b, m, rows*dim) {
				b.near(fmt.Sprintf("%v rms %v element %d", s, rms, j), v,
					normed(x[j/dim*dim:(j/dim+1)*dim], w, bias, j%dim, rms))
			}
		}
	}
}

// normed is element i of a normed row.
func normed(x, w, bias []float32, i int, rms bool) (want sum) {
	var mean, square float64
	if !rms {
		for _, v := range x {
			mean += float64(v) / float64(len(x))
		}
	}
	for _, v := range x {
		square += (float64(v) - mean) * (float64(v) - mean)
	}
	scale := 1 / math.Sqrt(square/float64(len(x))+1e-5)
	want.add(float64(x[i]) * scale * float64(w[i]))
	want.add(-mean * scale * float64(w[i]))
	if !rms {
		want.add(float64(bias[i]))
	}
	return want
}

func (b *Bench) adds() {
	for _, n := range []int{0, 1, 255, 256, 257, 1000} {
		x, y := b.Floats(n), b.Floats(n)
		m := Put(b, y)
		b.Must(b.Add(b.Stream, m, Put(b, x), n))
		for i, v := range Get[float32](b, m, n) {
			if v != y[i]+x[i] {
				b.Fatalf("n %d: element %d is %g, want %g", n, i, v, y[i]+x[i])
			}
		}
	}
}

func (b *Bench) softCaps() {
	const limit = 0.75
	for _, n := range []int{0, 1, 255, 257, 1000} {
		x := b.Floats(n)
		m := Put(b, x)
		b.Must(b.SoftCap(b.Stream, m, limit, n))
		for i, v := range Get[float32](b, m, n) {
			var want sum
			want.add(limit * math.Tanh(float64(x[i])/limit))
			b.near(fmt.Sprintf("n %d: element %d", n, i), v, want)
		}
	}
}

func (b *Bench) embeds() {
	const rows = 11
	for _, f := range ref.Formats() {
		for _, s := range [][2]int{{1, 1}, {300, 3}, {64, 1}, {5, 0}, {0, 2}} {
			dim, tokens := length(f, s[0]), s[1]
			table, values := b.weights(f, rows*dim)
			ids, x := b.Ints(tokens, rows-2), b.Floats(tokens*dim)
			// A device may fuse the scale with an addition: then there is none.
			for _, c := range []struct {
				onto  bool
				scale float32
			}{{false, 0}, {true, 0}, {false, 5.6568542}} {
				onto := c.onto
				a := &cuda.Embed{Format: f, Table: table, IDs: Put(b, ids), X: Put(b, x),
					Rows: rows, Dim: dim, Tokens: tokens, Offset: 2, Onto: onto, Scale: c.scale}
				b.Must(b.Embed(b.Stream, a))
				for i, v := range Get[float32](b, a.X, tokens*dim) {
					want := values[(int(ids[i/dim])+2)*dim+i%dim]
					if c.scale != 0 {
						want *= c.scale
					}
					if onto {
						want += x[i]
					}
					if v != want {
						b.Fatalf("%v %v onto %v: element %d is %g, want %g", f, s, onto, i, v, want)
					}
				}
			}
		}
	}
}

func (b *Bench) masks() {
	for _, s := range [][2]int{{0, 1}, {1, 1}, {31, 2}, {64, 1}, {65, 3}, {1000, 1}, {20000, 1}} {
		n, tokens := s[0], s[1]
		scores := b.Floats(n * tokens)
		for i := range scores {
			if i%3 == 0 {
				scores[i] = []float32{0, 0.5}[i%2] // at the threshold
			}
		}
		for i, nonzero := range []bool{false, true, false} {
			threshold := []float32{0.5, 0.5, -1}[i] // at −1 the places beyond the end would count
			a := &cuda.MaskAtLeast{Scores: Put(b, scores), Mask: b.Room(int64(tokens) *
				cuda.MaskBytes(n)), N: n, Tokens: tokens, Threshold: threshold, NonZero: nonzero}
			b.Must(b.MaskAtLeast(b.Stream, a))
			words := (n + 63) / 64
			mask := Get[uint64](b, a.Mask, words*tokens)
			var units []int32 // of the last token
			for token := range tokens {
				units = units[:0]
				for i := range words * 64 {
					want := i < n && (scores[token*n+i] >= threshold || nonzero &&
						scores[token*n+i] != 0)
					if got := mask[token*words+i/64]>>(i%64)&1 != 0; got != want {
						b.Fatalf("%v nonzero %v: token %d bit %d is %v", s, nonzero, token, i, got)
					}
					if want {
						units = append(units, int32(i))
					}
				}
			}
			list, count := b.Room(int64(4*n)), b.Room(4)
			last := a.Mask.Slice(a.Mask.Size-cuda.MaskBytes(n), cuda.MaskBytes(n))
			b.Must(b.MaskList(b.Stream, list, count, last, n))
			if got := Get[int32](b, count, 1)[0]; int(got) != len(units) {
				b.Fatalf("%v: %d units in the list, want %d", s, got, len(units))
			}
			for i, u := range Get[int32](b, list, len(units)) {
				if u != units[i] {
					b.Fatalf("%v: unit %d of the list is %d, want %d", s, i, u, units[i])
				}
			}
		}
	}
}

func (b *Bench) predicts() {
	const dim, rank, units, tokens = 64, 32, 100, 2
	for i, f := range ref.Formats() {
		linear := i%2 == 0
		w1, first := b.weights(f, rank*dim)
		w2, second := b.weights(f, units*rank)
		x, b1, b2 := b.Floats(tokens*dim), b.Floats(rank), b.Floats(units)
		p := &cuda.Predictor{Format: f, W1: w1, W2: w2, B1: Put(b, b1), B2: Put(b, b2),
			X: Put(b, x), Hidden: b.Room(4 * tokens * rank),
			Scores: b.Room(4 * tokens * units), Mask: b.Room(tokens * cuda.MaskBytes(units)),
			Dim: dim, Rank: rank, Units: units, Tokens: tokens, MinLogit: 1, Linear: linear}
		b.Must(b.Predict(b.Stream, p))
		mask, scores := Get[uint64](b, p.Mask, tokens*2), Get[float32](b, p.Scores, tokens*units)
		hidden := make([]float32, rank)
		for i, got := range scores {
			token, unit := i/units, i%units
			for r := range hidden {
				h := dot(first[r*dim:(r+1)*dim], x[token*dim:]).value + float64(b1[r])
				if !linear {
					h = max(h, 0)
				}
				hidden[r] = float32(h)
			}
			want := dot(second[unit*rank:(unit+1)*rank], hidden)
			want.add(float64(b2[unit]))
			b.near(fmt.Sprintf("%v token %d unit %d", f, token, unit), got, want)
			if set := mask[token*2+unit/64]>>(unit%64)&1 != 0; set != (got >= 1) {
				b.Fatalf("%v token %d unit %d: score %g, bit %v", f, token, unit, got, set)
			}
		}
	}
}
