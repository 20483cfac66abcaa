package probe

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync/atomic"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// Shapes of the timed works. The row is that of a 7-billion-parameter model in fp16: 4096 weights,
// 8 KiB.
const (
	rowLength = 4096
	rowBytes  = 2 * rowLength
	slabRows  = 8192 // 64 MiB of weights, more than the caches of most machines hold

	denseSmall, denseLarge   = 64, 1024 // rows of a mat-vec
	recordRows               = 2        // an up and a down row, contiguous
	recordsSmall, recordsBig = 16, 256  // active neurons of a layer
	copySmall, copyLarge     = 4 << 10, 32 << 10
	copyCalls                = 256
	streamBlock              = 1 << 20
	kvHeads, kvPositions     = 16, 256
	kvHeadLength             = 128 // float32 values of one head's key or value
)

// kernels holds the memory that the works read. Every run reads another part of it, so that the
// data comes from memory, as the weights of a layer do, and not from the caches.
type kernels struct {
	pool    *cpu.Pool
	bytes   []byte    // 64 MiB
	weights []uint16  // slabRows rows of finite fp16
	cache   []float32 // keys, then values, of many heads
	x, y    []float32 // rowLength
	rows    []float32 // results of a mat-vec, activations of records
	order   []int     // records in random order
	at      int       // moves through the memory
	sink    atomic.Uint64
}

// newKernels allocates and fills about 190 MiB.
func newKernels(cores int, seed uint64) (*workload, error) {
	if cores < 1 {
		return nil, errors.New("no cores to measure")
	}
	random := rng.Stream(seed, "probe/host")
	k := &kernels{
		pool:    cpu.NewPool(cores),
		bytes:   make([]byte, slabRows*rowBytes),
		weights: make([]uint16, slabRows*rowLength),
		cache:   make([]float32, 64<<20/4),
		x:       make([]float32, rowLength),
		y:       make([]float32, rowLength),
		rows:    make([]float32, denseLarge),
	}
	k.fill(random)
	return &workload{
		memory: timed{name: "memory", large: work{run: k.stream, calls: 1,
			bytes: units.Bytes(len(k.bytes))}},
		dense:  timed{"dense", k.dense(denseSmall), k.dense(denseLarge)},
		rows:   timed{"rows", k.records(recordsSmall), k.records(recordsBig)},
		copies: timed{"copies", k.copies(copySmall), k.copies(copyLarge)},
		kv:     timed{name: "kv", large: k.attention()},
		close:  k.pool.Close,
	}, nil
}

// fill writes every page, because a page that was never written is one page of zeros in the
// processor's cache.
func (k *kernels) fill(random *rand.Rand) {
	for i := 0; i < len(k.bytes); i += 8 {
		binary.LittleEndian.PutUint64(k.bytes[i:], random.Uint64())
	}
	for i := range k.weights {
		// Any sign and fraction with an exponent of 2^-4: finite, and small enough that sums stay
		// so.
		k.weights[i] = binary.LittleEndian.Uint16(k.bytes[2*i:])&0x83ff | 0x2c00
	}
	for i := range k.cache {
		k.cache[i] = float32(k.bytes[i]) / 256
	}
	for i := range k.x {
		k.x[i] = float32(random.NormFloat64())
	}
	k.order = random.Perm(slabRows / recordRows)
}

// stream reads all bytes once, with every core.
func (k *kernels) stream() {
	k.pool.Run(len(k.bytes)/streamBlock, 1, func(lo, hi int) {
		k.sink.Add(cpu.StreamRead(k.bytes[lo*streamBlock : hi*streamBlock]))
	})
}

// window returns the index of the next n of total elements, going round.
func (k *kernels) window(n, total int) int {
	if k.at += n; k.at+n > total {
		k.at = 0
	}
	return k.at
}

// dense is a mat-vec over rows contiguous rows.
func (k *kernels) dense(rows int) work {
	return work{calls: 1, bytes: units.Bytes(rows * rowBytes), run: func() {
		at := k.window(rows, slabRows)
		k.pool.MatVec(k.weights[at*rowLength:(at+rows)*rowLength], rows, rowLength, k.x,
			k.rows[:rows])
	}}
}

// records is the feed-forward part of a layer over n scattered records, divided among the workers
// as the engine does it: a dot product with each up row, then the down rows scaled and added up,
// each worker for its part of the columns.
func (k *kernels) records(n int) work {
	const grainBytes = 128 << 10
	record := func(at, i int) []uint16 {
		start := k.order[at+min(i, n-1)] * recordRows * rowLength
		return k.weights[start : start+recordRows*rowLength]
	}
	return work{calls: 1, bytes: units.Bytes(n * recordRows * rowBytes), run: func() {
		at := k.window(n, len(k.order))
		k.pool.Run(n, grainBytes/rowBytes, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				k.rows[i] = cpu.DotNext(record(at, i)[:rowLength], k.x, record(at, i+1)[:rowLength])
			}
		})
		clear(k.y)
		k.pool.Run(rowLength, max(64, grainBytes/(2*n)), func(lo, hi int) {
			lo, hi = rowLength+lo, rowLength+hi
			for i := range n {
				cpu.AxpyNext(k.rows[i], record(at, i)[lo:hi], k.y[lo-rowLength:hi-rowLength],
					record(at, i+1)[lo:hi])
			}
		})
	}}
}

// copies is copyCalls copies of size bytes from one scattered place to another, as a row cache
// makes them: on one core.
func (k *kernels) copies(size int) work {
	places := len(k.bytes) / 2 / copyLarge
	return work{calls: copyCalls, bytes: units.Bytes(size), run: func() {
		for range copyCalls {
			at := k.window(1, len(k.order)-1)
			from := k.order[at] % places
			to := places + k.order[at+1]%places
			copy(k.bytes[to*copyLarge:to*copyLarge+size], k.bytes[from*copyLarge:])
		}
	}}
}

// attention reads the keys and the values of kvPositions positions in each of kvHeads heads: a
// score for every key, then the values added up with the scores as weights.
func (k *kernels) attention() work {
	const head = 2 * kvPositions * kvHeadLength
	return work{calls: 1, bytes: kvHeads * head * 4, run: func() {
		at := k.window(kvHeads, len(k.cache)/head)
		k.pool.Run(kvHeads, 1, func(lo, hi int) {
			for h := lo; h < hi; h++ {
				out := k.y[h*kvHeadLength : (h+1)*kvHeadLength]
				clear(out)
				k.head(k.cache[(at+h)*head:(at+h+1)*head], out)
			}
		})
	}}
}

func (k *kernels) head(kv, out []float32) {
	query := k.x[:kvHeadLength]
	keys, values := kv[:kvPositions*kvHeadLength], kv[kvPositions*kvHeadLength:]
	for p := range kvPositions {
		score := cpu.DotF32(query, keys[p*kvHeadLength:(p+1)*kvHeadLength])
		cpu.AxpyF32(score, values[p*kvHeadLength:(p+1)*kvHeadLength], out)
	}
}
