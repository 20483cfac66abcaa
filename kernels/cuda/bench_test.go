package cuda_test

import (
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/cuda/suite"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// Sizes of OPT-6.7B. pool is beyond every cache of a device, so that weights come from memory as in
// a model.
const (
	benchDim   = 4096
	benchUnits = 16384
	benchPool  = 512 << 20
)

// BenchmarkKernels measures bytes of weights per second by the device's own clock, beside a copy on
// the device, which reads and writes. It needs a real device: WINDROW_CUDA_LIBRARY=libcuda.so.1 go
// test -bench . ./kernels/cuda
func BenchmarkKernels(bm *testing.B) {
	d, library := open(bm)
	if library != nil {
		bm.Skip("the stand-in has no times")
	}
	b := suite.New(bm, d, 1)
	pool, x, act, out := b.Room(benchPool), suite.Put(b, b.Floats(benchDim)), b.Room(4*benchUnits),
		b.Room(4*benchUnits)
	b.Must(b.Device.Fill(pool.Ptr, 0, pool.Size, b.Stream))
	var turn int64
	next := func(size int64) cuda.Mem { // another part of the pool each time
		if turn += size; turn+size > pool.Size {
			turn = 0
		}
		return pool.Slice(turn, size)
	}
	const matrix, layer = 2 * benchDim * benchDim, 2 * benchDim * benchUnits
	measure(b, bm, "copy", 2*layer, func() error {
		return b.Device.OnDevice(next(layer).Ptr,
			next(layer).Ptr, layer, b.Stream)
	})
	for _, f := range []ref.Format{ref.F16, ref.Q4} {
		size := int64(benchDim * f.Size(benchDim))
		measure(b, bm, "matvec-"+f.String(), size, func() error {
			return b.MatVec(b.Stream, &cuda.MatVec{Format: f, W: next(size), X: x, Y: out,
				Rows: benchDim, Cols: benchDim, Tokens: 1})
		})
	}
	dense := cuda.FFN{X: x, Act: act, Out: out,
		Scratch: b.Room(cuda.FFNScratch(benchUnits, benchDim, 1)), Rows: benchUnits, Dim: benchDim,
		Total: benchUnits, Tokens: 1, Every: true}
	measure(b, bm, "ffn-dense", 2*layer, func() error {
		dense.Up, dense.Down = next(layer), next(layer)
		return b.FFN(b.Stream, &dense)
	})
	const active = benchUnits / 10
	units := b.Ints(active, benchUnits)
	slices.Sort(units)
	sparse := dense
	sparse.Rows, sparse.Units, sparse.Slots = active, suite.Put(b, units),
		suite.Put(b, b.Ints(active, benchUnits))
	measure(b, bm, "ffn-sparse", 2*2*benchDim*active, func() error {
		sparse.Up, sparse.Down = next(layer), next(layer)
		return b.FFN(b.Stream, &sparse)
	})
	moves(b, bm, next, units)
	attends(b, bm, pool)
}

// moves measures the scatter of records from pinned memory, which the bus limits.
func moves(b *suite.Bench, bm *testing.B, next func(int64) cuda.Mem, units []int32) {
	const row, records = 2 * benchDim, 512
	staging, err := b.Device.HostAlloc(2*row*records, false)
	b.Must(err)
	mapped, err := b.Device.Mapped(staging)
	b.Must(err)
	offsets := make([]uint64, records)
	for i := range offsets {
		offsets[i] = uint64(2 * row * i)
	}
	where, slots := suite.Put(b, offsets), suite.Put(b, units[:records])
	measure(b, bm, "scatter-pinned", 2*row*records, func() error {
		a := &cuda.RowBuffers{Up: next(row * benchUnits), Down: next(row * benchUnits),
			Places: benchUnits, Size: row}
		return b.Scatter(b.Stream, a, mapped, where, slots, records)
	})
}

// attends measures one token's attention over 2048 positions of a layer, keys and values in
// float16.
func attends(b *suite.Bench, bm *testing.B, pool cuda.Mem) {
	const heads, dim, context = 32, 128, 2048
	const size = 2 * heads * dim * context
	q := b.Room(4 * heads * dim)
	a := &cuda.Attention{Q: q, Out: b.Room(q.Size), Seqs: suite.Put(b, []int32{0}),
		Positions: suite.Put(b, []int32{context - 1}),
		Scratch:   b.Room(cuda.AttentionScratch(heads, dim, 1, context)), Heads: heads, Tokens: 1,
		Longest: context, Scale: 1,
		Cache: cuda.Cache{Format: ref.F16, Keys: pool.Slice(0, size), Vals: pool.Slice(size, size),
			Sequences: 1, Context: context, KVHeads: heads, Dim: dim}}
	measure(b, bm, "attention", 2*size, func() error { return b.Attention(b.Stream, a) })
}

// measure runs a benchmark of an operation that moves some bytes.
func measure(b *suite.Bench, bm *testing.B, name string, bytes int64, operation func() error) {
	bm.Run(name, func(bm *testing.B) {
		from, err := b.Device.NewEvent(true)
		b.Must(err)
		to, err := b.Device.NewEvent(true)
		b.Must(err)
		b.Must(operation()) // the first time may compile
		b.Must(b.Device.Record(from, b.Stream))
		for range bm.N {
			b.Must(operation())
		}
		b.Must(b.Device.Record(to, b.Stream))
		b.Must(b.Device.SyncStream(b.Stream))
		took, err := b.Device.Elapsed(from, to)
		b.Must(err)
		bm.ReportMetric(float64(bytes)*float64(bm.N)/float64(took), "GB/s")
		bm.ReportMetric(float64(took)/float64(bm.N)/1000, "us/op")
	})
}
