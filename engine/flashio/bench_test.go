package flashio

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/windrow-sim/windrow/internal/rng"
)

// BenchmarkBatch reads batches of 256 random 16 KiB blocks: the bundles of a 7 B model. By default
// the file is small and temporary; WINDROW_BENCH_FILE names a large one, and WINDROW_BENCH_BATCH
// sets another number of requests.
func BenchmarkBatch(b *testing.B) {
	const block = 16 << 10
	path, batch := os.Getenv("WINDROW_BENCH_FILE"), 256
	if path == "" {
		path = writeImage(b, b.TempDir(), 64<<20)
	}
	if n, err := strconv.Atoi(os.Getenv("WINDROW_BENCH_BATCH")); err == nil {
		batch = n
	}
	// in a larger batch requests share buffers
	arena := AlignedBuffer(min(batch, 1024)*block, block)
	defer FreeBuffer(arena)
	for _, c := range []struct {
		opt        Options
		registered bool
	}{
		{opt: Options{EnginePread, DirectAuto, 1}},
		{opt: Options{EnginePread, DirectAuto, 8}},
		{opt: Options{EnginePread, DirectAuto, 32}},
		{opt: Options{EnginePread, DirectAuto, 64}},
		{opt: Options{EngineUring, DirectAuto, 32}},
		{opt: Options{EngineUring, DirectAuto, 256}},
		{opt: Options{EngineUring, DirectAuto, 256}, registered: true},
		{opt: Options{EnginePread, DirectOff, 32}},
		{opt: Options{EngineUring, DirectOff, 256}},
		{opt: Options{EngineMmap, DirectOff, 0}},
	} {
		b.Run(fmt.Sprintf("%s/%d/direct=%s/registered=%t", c.opt.Engine, c.opt.Parallel,
			c.opt.Direct, c.registered), func(b *testing.B) {
			r := openSubject(b, subject{opt: c.opt}, path)
			if c.registered {
				if ok, note := RegisterBuffers(r, arena); !ok {
					b.Skip(note)
				}
			}
			benchmarkReader(b, r, arena, batch, block)
		})
	}
}

func benchmarkReader(b *testing.B, r Reader, arena []byte, batch, block int) {
	size := r.(interface{ fileSize() int64 }).fileSize()
	dice := rng.Stream(rng.DefaultSeed, "flashio/bench")
	reqs := make([]Request, batch)
	for i := range reqs {
		reqs[i].Buf = arena[i*block%len(arena):][:block]
	}
	read := func() {
		for i := range reqs {
			reqs[i].Offset = dice.Int64N(size/int64(block)) * int64(block)
		}
		if err := r.ReadBatch(reqs); err != nil {
			b.Fatal(err)
		}
	}
	for range 20 { // the runtime makes its threads
		read()
	}
	b.SetBytes(int64(batch * block))
	b.ReportAllocs()
	before := processorTime()
	for b.Loop() {
		read()
	}
	requests := float64(b.N * batch)
	b.ReportMetric(float64((processorTime()-before).Nanoseconds())/requests, "cpu-ns/read")
	b.ReportMetric(requests/b.Elapsed().Seconds(), "reads/s")
}

func (f *file) fileSize() int64 { return f.size }
