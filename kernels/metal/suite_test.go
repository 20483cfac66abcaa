package metal

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// bench is a device with kernels, a stream, and short ways to fill and read memory.
type bench struct {
	testing.TB
	*cuda.Kernels
	d      *cuda.Device
	stream cuda.Stream
	random *rand.Rand
}

// newBench takes a device over: it is closed with the test.
func newBench(t testing.TB, d *cuda.Device) *bench {
	t.Helper()
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	b := &bench{TB: t, d: d, random: rand.New(rand.NewPCG(7, 1))}
	var err error
	b.Kernels, err = cuda.NewKernels(d)
	b.must(err)
	b.stream, err = d.NewStream()
	b.must(err)
	return b
}

// suite compares every kernel on a device with plain Go.
func suite(t *testing.T, d *cuda.Device) {
	b := newBench(t, d)
	for _, check := range []struct {
		name string
		run  func(b *bench)
	}{
		{"copies", (*bench).checkCopies}, {"streams", (*bench).checkStreams},
		{"matvec", (*bench).checkMatVecs}, {"special", (*bench).checkSpecial}, {"norm", (*bench).checkNorms}, {"embed", (*bench).checkEmbeds},
		{"add", func(b *bench) { b.checkAdd(0); b.checkAdd(1); b.checkAdd(1001) }},
		{"predict", (*bench).checkPredicts}, {"ffn", (*bench).checkFFNs}, {"flash", (*bench).checkFlash}, {"gelu", (*bench).checkGELU},
		{"rotary", (*bench).checkRotary}, {"attention", (*bench).checkAttentions}, {"rows", (*bench).checkRows},
	} {
		t.Run(check.name, func(t *testing.T) {
			own := *b
			own.TB = t
			check.run(&own)
		})
	}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// room is device memory of some bytes.
func (b *bench) room(size int64) cuda.Mem {
	b.Helper()
	m, err := b.d.Alloc(size)
	b.must(err)
	return m
}

func put[T uint16 | uint32 | uint64 | int32 | float32](b *bench, values []T) cuda.Mem {
	b.Helper()
	m := b.room(int64(len(cuda.AsBytes(values))))
	b.must(b.d.ToDevice(m.Ptr, cuda.AsBytes(values), b.stream))
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

func (b *bench) bytesOf(n int) []byte {
	list := make([]byte, n)
	for i := range list {
		list[i] = byte(b.random.Uint32())
	}
	return list
}

// matrix is rows of random weights in a format, as bytes and as the numbers that these mean.
type matrix struct {
	format ref.Format
	cols   int
	bytes  []byte
	values []float32
}

func (b *bench) matrix(f ref.Format, rows, cols int) *matrix {
	m := &matrix{format: f, cols: cols, bytes: make([]byte, rows*f.Size(cols)), values: b.floats(rows * cols)}
	if at := f.Encode(m.bytes, m.values); at >= 0 {
		b.Fatalf("weight %d does not fit %v", at, f)
	}
	f.Decode(m.values, m.bytes)
	return m
}

func (m *matrix) row(r int) []float32 { return m.values[r*m.cols : (r+1)*m.cols] }

// load brings a matrix to the device. None has no memory.
func (b *bench) load(m *matrix) cuda.Mem {
	b.Helper()
	if m == nil {
		return cuda.Mem{}
	}
	to := b.room(int64(len(m.bytes)))
	b.must(b.d.ToDevice(to.Ptr, m.bytes, b.stream))
	return to
}

// length rounds up to what rows of a format can have.
func length(f ref.Format, n int) int { return (n + f.Group() - 1) / f.Group() * f.Group() }

// sum is a number that was added up, and the sum of magnitudes, which bounds the rounding error.
type sum struct{ value, size float64 }

func (s *sum) add(v float64) { s.value, s.size = s.value+v, s.size+math.Abs(v) }

func dot(w, x []float32) (s sum) {
	for i, v := range w {
		s.add(float64(v) * float64(x[i]))
	}
	return s
}

// near demands a relative error of at most 1e-3 of what was added up.
func (b *bench) near(what string, got float32, want sum) {
	b.Helper()
	if diff := math.Abs(float64(got) - want.value); !(diff <= 1e-3*want.size+1e-30) {
		b.Fatalf("%s: %g, want %g (terms of %g together)", what, got, want.value, want.size)
	}
}

func (b *bench) checkMatVecs() {
	shapes := [][3]int{{0, 8, 1}, {1, 1, 1}, {1, 4096, 1}, {3, 0, 1}, {5, 7, 0}, {4, 256, 2}, {129, 33, 1}, {17, 1000, 3}}
	for range 6 {
		shapes = append(shapes, [3]int{b.random.IntN(70), b.random.IntN(600), b.random.IntN(4)})
	}
	for _, f := range ref.Formats() {
		for i, s := range shapes {
			rows, cols, tokens := s[0], length(f, s[1]), s[2]
			w, x, bias := b.matrix(f, rows, cols), b.floats(tokens*cols), make([]float32, rows)
			a := &cuda.MatVec{Format: f, W: b.load(w), X: put(b, x), Y: b.room(int64(4 * tokens * rows)), Rows: rows, Cols: cols, Tokens: tokens, ReLU: i%3 == 0}
			if i%2 == 0 {
				bias = b.floats(rows)
				a.Bias = put(b, bias)
			}
			b.must(b.MatVec(b.stream, a))
			for j, got := range get[float32](b, a.Y, tokens*rows) {
				want := dot(w.row(j%rows), x[j/rows*cols:])
				want.add(float64(bias[j%rows]))
				if a.ReLU {
					want.value = max(want.value, 0)
				}
				b.near(fmt.Sprintf("%v %v: element %d", f, s, j), got, want)
			}
		}
	}
}

// checkSpecial: what is not a number stays so, and subnormal weights count.
func (b *bench) checkSpecial() {
	w := put(b, []uint16{0x7c00, 0x0001, 0x7e00, 0x3c00, 0x0001, 0x8001})
	a := &cuda.MatVec{W: w, X: put(b, []float32{1, 0x1p24}), Y: b.room(12), Rows: 3, Cols: 2, Tokens: 1}
	b.must(b.MatVec(b.stream, a))
	if got := get[float32](b, a.Y, 3); !math.IsInf(float64(got[0]), 1) || got[1] == got[1] || got[2] != 0x1p-24-1 {
		b.Errorf("got %v, want +Inf, NaN and 2^-24 - 1", got)
	}
}

func (b *bench) checkNorms() {
	for _, s := range [][2]int{{0, 8}, {1, 1}, {1, 31}, {3, 512}, {2, 1000}, {5, 64}} {
		for _, rms := range []bool{false, true} {
			rows, dim := s[0], s[1]
			x, w, bias := b.floats(rows*dim), b.floats(dim), b.floats(dim)
			m := put(b, x)
			a := &cuda.Norm{X: m, Y: m, W: put(b, w), Rows: rows, Dim: dim, Epsilon: 1e-5, RMS: rms}
			if !rms {
				a.B = put(b, bias)
			}
			b.must(b.Norm(b.stream, a))
			for j, got := range get[float32](b, m, rows*dim) {
				var mean, square float64
				row := x[j/dim*dim : (j/dim+1)*dim]
				for _, v := range row {
					mean += float64(v) / float64(dim)
				}
				if rms {
					mean = 0
				}
				for _, v := range row {
					square += (float64(v) - mean) * (float64(v) - mean) / float64(dim)
				}
				scale := float64(w[j%dim]) / math.Sqrt(square+1e-5)
				want := sum{}
				want.add(float64(x[j]) * scale)
				want.add(-mean * scale)
				if !rms {
					want.add(float64(bias[j%dim]))
				}
				b.near(fmt.Sprintf("%v rms %v: element %d", s, rms, j), got, want)
			}
		}
	}
}

func (b *bench) checkAdd(n int) {
	x, y := b.floats(n), b.floats(n)
	m := put(b, y)
	b.must(b.Add(b.stream, m, put(b, x), n))
	for i, got := range get[float32](b, m, n) {
		if got != y[i]+x[i] {
			b.Fatalf("n %d: element %d is %g, want %g", n, i, got, y[i]+x[i])
		}
	}
}

func (b *bench) checkEmbeds() {
	const rows = 11
	for _, f := range ref.Formats() {
		for _, s := range [][2]int{{1, 1}, {300, 3}, {5, 0}, {0, 2}} {
			dim, tokens := length(f, s[0]), s[1]
			table, ids, x := b.matrix(f, rows, dim), b.ints(tokens, rows-2), b.floats(tokens*dim)
			for _, onto := range []bool{false, true} {
				a := &cuda.Embed{Format: f, Table: b.load(table), IDs: put(b, ids), X: put(b, x), Rows: rows, Dim: dim, Tokens: tokens, Offset: 2, Onto: onto}
				b.must(b.Embed(b.stream, a))
				for i, got := range get[float32](b, a.X, tokens*dim) {
					want := table.row(int(ids[i/dim]) + 2)[i%dim]
					if onto {
						want += x[i]
					}
					if got != want {
						b.Fatalf("%v %v onto %v: element %d is %g, want %g", f, s, onto, i, got, want)
					}
				}
			}
		}
	}
}

// checkPredicts runs a low-rank predictor, with the mask and the list of its units.
func (b *bench) checkPredicts() {
	for i, f := range ref.Formats() {
		const rank, tokens = 32, 2
		dim, units, linear := length(f, 40), []int{1, 64, 100, 65, 700}[i], i%2 == 0
		w1, w2 := b.matrix(f, rank, dim), b.matrix(f, units, rank)
		x, b1, b2 := b.floats(tokens*dim), b.floats(rank), b.floats(units)
		p := &cuda.Predictor{Format: f, W1: b.load(w1), W2: b.load(w2), B1: put(b, b1), B2: put(b, b2), X: put(b, x), Hidden: b.room(4 * tokens * rank),
			Scores: b.room(int64(4 * tokens * units)), Mask: b.room(tokens * cuda.MaskBytes(units)), Dim: dim, Rank: rank, Units: units,
			Tokens: tokens, Cut: 1, Linear: linear}
		b.must(b.Predict(b.stream, p))
		words := (units + 63) / 64
		mask, scores := get[uint64](b, p.Mask, tokens*words), get[float32](b, p.Scores, tokens*units)
		list, count := b.room(int64(4*units)), b.room(4)
		b.must(b.MaskList(b.stream, list, count, p.Mask.Slice(p.Mask.Size-cuda.MaskBytes(units), cuda.MaskBytes(units)), units))
		var active []int32 // of the last token
		for token := range tokens {
			hidden := make([]float32, rank)
			for r := range hidden {
				if hidden[r] = float32(dot(w1.row(r), x[token*dim:]).value) + b1[r]; !linear {
					hidden[r] = max(hidden[r], 0)
				}
			}
			active = active[:0]
			for u := range words * 64 {
				set := mask[token*words+u/64]>>(u%64)&1 != 0
				if set && token == tokens-1 {
					active = append(active, int32(u))
				}
				if u >= units {
					if set {
						b.Fatalf("%v: bit %d is beyond %d units", f, u, units)
					}
					continue
				}
				got, want := scores[token*units+u], dot(w2.row(u), hidden)
				want.add(float64(b2[u]))
				b.near(fmt.Sprintf("%v token %d unit %d", f, token, u), got, want)
				if set != (got >= 1) {
					b.Fatalf("%v token %d unit %d: score %g, bit %v", f, token, u, got, set)
				}
			}
		}
		if n := int(get[int32](b, count, 1)[0]); n != len(active) || !slices.Equal(get[int32](b, list, n), active) {
			b.Fatalf("%v: %d units in the list, want %d, or others", f, n, len(active))
		}
	}
}

// checkCopies takes bytes to the device, across it and back, of sizes and at places that are no whole words too.
func (b *bench) checkCopies() {
	for _, size := range []int{1, 4, 4096, 4999} {
		for _, at := range []int64{0, 3} {
			content := b.bytesOf(size)
			pinned, err := b.d.HostAlloc(int64(size), true)
			b.must(err)
			copy(pinned, content)
			one, two, got := b.room(int64(size)+at), b.room(int64(size)+at), make([]byte, size)
			b.must(b.d.ToDevice(one.Ptr+cuda.Ptr(at), pinned, b.stream))
			b.must(b.d.OnDevice(two.Ptr, one.Ptr+cuda.Ptr(at), int64(size), b.stream))
			b.must(b.d.ToHost(got, two.Ptr, b.stream))
			b.must(b.d.SyncStream(b.stream))
			if !bytes.Equal(got, content) {
				b.Fatalf("%d bytes at %d changed on their way", size, at)
			}
			b.must(b.d.Fill(two.Ptr, 7, int64(size), b.stream))
			b.must(b.d.ToHost(pinned, two.Ptr, b.stream))
			b.must(b.d.SyncStream(b.stream))
			if !bytes.Equal(pinned, bytes.Repeat([]byte{7}, size)) {
				b.Fatalf("Fill of %d bytes was not read back", size)
			}
			b.must(b.d.HostFree(pinned))
		}
	}
}

// checkStreams: a stream that waits for an event of another sees its work.
func (b *bench) checkStreams() {
	const n = 1000
	other, err := b.d.NewStream()
	b.must(err)
	event, err := b.d.NewEvent(true)
	b.must(err)
	b.must(b.d.Wait(other, event)) // of an event that was never recorded: nothing to wait for
	one, total := b.floats(n), put(b, make([]float32, n))
	x := put(b, one)
	for i := range 10 {
		from, to := b.stream, other
		if i%2 == 1 {
			from, to = other, b.stream
		}
		b.must(b.Add(from, total, x, n))
		b.must(b.d.Record(event, from))
		b.must(b.d.Wait(to, event))
	}
	b.must(b.d.SyncEvent(event))
	for i, got := range get[float32](b, total, n) {
		want := float32(0)
		for range 10 {
			want += one[i]
		}
		if got != want {
			b.Fatalf("element %d is %g, want %g", i, got, want)
		}
	}
	b.must(b.d.DestroyEvent(event))
	b.must(b.d.DestroyStream(other))
}

// checkRows scatters records from pinned memory to row buffers and moves rows there.
func (b *bench) checkRows() {
	const places, n = 20, 6
	for i, size := range []int{2, 48, 66, 4096} {
		kinds := 2 + i%2
		var want [3][]byte
		var mem [3]cuda.Mem
		for kind := 3 - kinds; kind < 3; kind++ {
			want[kind] = b.bytesOf(places * size)
			mem[kind] = b.room(int64(places * size))
			b.must(b.d.ToDevice(mem[kind].Ptr, want[kind], b.stream))
		}
		a := &cuda.RowBuffers{Gate: mem[0], Up: mem[1], Down: mem[2], Places: places, Size: size}
		staging, err := b.d.HostAlloc(int64(n*(kinds*size+6)), false)
		b.must(err)
		copy(staging, b.bytesOf(len(staging)))
		mapped, err := b.d.Mapped(staging)
		b.must(err)
		order, offsets := b.ints(places, places), make([]uint64, n)
		for j := range offsets {
			offsets[j] = uint64(j * (kinds*size + i%2*6))
			for k := range kinds {
				copy(want[3-kinds+k][int(order[j])*size:][:size], staging[int(offsets[j])+k*size:])
			}
		}
		b.must(b.Scatter(b.stream, a, mapped, put(b, offsets), put(b, order[:n]), n))
		b.must(b.Scatter(b.stream, a, mapped, cuda.Mem{}, cuda.Mem{}, 0))
		from, to := order[:n], order[n:2*n]
		b.must(b.Move(b.stream, a, put(b, from), put(b, to), n))
		for kind := 3 - kinds; kind < 3; kind++ {
			for j := range from {
				copy(want[kind][int(to[j])*size:][:size], want[kind][int(from[j])*size:])
			}
			got := make([]byte, len(want[kind]))
			b.must(b.d.ToHost(got, mem[kind].Ptr, b.stream))
			b.must(b.d.SyncStream(b.stream))
			if !bytes.Equal(got, want[kind]) {
				b.Fatalf("rows of %d bytes: buffer %d is not what it should be", size, kind)
			}
		}
		b.must(b.d.HostFree(staging))
	}
}
