package cuda_test

import (
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// Sizes of OPT-6.7B. pool is beyond every cache of a device, so that weights come from memory as in a model.
const (
	benchDim   = 4096
	benchUnits = 16384
	benchPool  = 512 << 20
)

// BenchmarkKernels measures bytes of weights per second by the device's own clock, beside a copy on the device, which reads and writes. It needs a real
// device: WINDROW_CUDA_LIBRARY=libcuda.so.1 go test -bench . ./kernels/cuda
func BenchmarkKernels(bm *testing.B) {
	b := newBench(bm, 1)
	if library := b.library; library != nil {
		bm.Skip("the stand-in has no times")
	}
	pool, x, act, out := b.room(benchPool), put(b, b.floats(benchDim)), b.room(4*benchUnits), b.room(4*benchUnits)
	b.must(b.d.Fill(pool.Ptr, 0, pool.Size, b.stream))
	var turn int64
	next := func(size int64) cuda.Mem { // another part of the pool each time
		if turn += size; turn+size > pool.Size {
			turn = 0
		}
		return pool.Slice(turn, size)
	}
	const matrix, layer = 2 * benchDim * benchDim, 2 * benchDim * benchUnits
	b.measure(bm, "copy", 2*layer, func() error { return b.d.OnDevice(next(layer).Ptr, next(layer).Ptr, layer, b.stream) })
	for _, f := range []ref.Format{ref.F16, ref.Q4} {
		size := int64(benchDim * f.Size(benchDim))
		b.measure(bm, "matvec-"+f.String(), size, func() error {
			return b.MatVec(b.stream, &cuda.MatVec{Format: f, W: next(size), X: x, Y: out, Rows: benchDim, Cols: benchDim, Tokens: 1})
		})
	}
	dense := cuda.FFN{X: x, Act: act, Out: out,
		Scratch: b.room(cuda.FFNScratch(benchUnits, benchDim, 1)), Rows: benchUnits, Dim: benchDim, Total: benchUnits, Tokens: 1, Every: true}
	b.measure(bm, "ffn-dense", 2*layer, func() error {
		dense.Up, dense.Down = next(layer), next(layer)
		return b.FFN(b.stream, &dense)
	})
	const active = benchUnits / 10
	units := b.ints(active, benchUnits)
	slices.Sort(units)
	sparse := dense
	sparse.Rows, sparse.Units, sparse.Slots = active, put(b, units), put(b, b.ints(active, benchUnits))
	b.measure(bm, "ffn-sparse", 2*2*benchDim*active, func() error {
		sparse.Up, sparse.Down = next(layer), next(layer)
		return b.FFN(b.stream, &sparse)
	})
	b.moves(bm, next, units)
	b.attends(bm, pool)
}

// moves measures the scatter of records from pinned memory, which the bus limits.
func (b *bench) moves(bm *testing.B, next func(int64) cuda.Mem, units []int32) {
	const row, records = 2 * benchDim, 512
	staging, err := b.d.HostAlloc(2*row*records, false)
	b.must(err)
	mapped, err := b.d.Mapped(staging)
	b.must(err)
	offsets := make([]uint64, records)
	for i := range offsets {
		offsets[i] = uint64(2 * row * i)
	}
	where, slots := put(b, offsets), put(b, units[:records])
	b.measure(bm, "scatter-pinned", 2*row*records, func() error {
		a := &cuda.RowBuffers{Up: next(row * benchUnits), Down: next(row * benchUnits), Places: benchUnits, Size: row}
		return b.Scatter(b.stream, a, mapped, where, slots, records)
	})
}

// attends measures one token's attention over 2048 positions of a layer, keys and values in float16.
func (b *bench) attends(bm *testing.B, pool cuda.Mem) {
	const heads, dim, context = 32, 128, 2048
	const size = 2 * heads * dim * context
	q := b.room(4 * heads * dim)
	a := &cuda.Attention{Q: q, Out: b.room(q.Size), Seqs: put(b, []int32{0}), Positions: put(b, []int32{context - 1}),
		Scratch: b.room(cuda.AttentionScratch(heads, dim, 1, context)), Heads: heads, Tokens: 1, Longest: context, Scale: 1,
		Cache: cuda.Cache{Format: ref.F16, Keys: pool.Slice(0, size), Vals: pool.Slice(size, size), Sequences: 1, Context: context, KVHeads: heads, Dim: dim}}
	b.measure(bm, "attention", 2*size, func() error { return b.Attention(b.stream, a) })
}

// measure runs a benchmark of an operation that moves some bytes.
func (b *bench) measure(bm *testing.B, name string, bytes int64, operation func() error) {
	bm.Run(name, func(bm *testing.B) {
		from, err := b.d.NewEvent(true)
		b.must(err)
		to, err := b.d.NewEvent(true)
		b.must(err)
		b.must(operation()) // the first time may compile
		b.must(b.d.Record(from, b.stream))
		for range bm.N {
			b.must(operation())
		}
		b.must(b.d.Record(to, b.stream))
		b.must(b.d.SyncStream(b.stream))
		took, err := b.d.Elapsed(from, to)
		b.must(err)
		bm.ReportMetric(float64(bytes)*float64(bm.N)/float64(took), "GB/s")
		bm.ReportMetric(float64(took)/float64(bm.N)/1000, "us/op")
	})
}
