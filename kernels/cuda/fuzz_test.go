package cuda_test

import (
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// FuzzShapes runs mat-vecs, feed-forwards and attention of any small shape against their plain twins.
func FuzzShapes(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint16(5), uint16(257), uint8(1))
	f.Add(uint64(2), uint8(4), uint16(300), uint16(32), uint8(3))
	f.Add(uint64(3), uint8(2), uint16(0), uint16(0), uint8(2))
	f.Fuzz(func(t *testing.T, seed uint64, format uint8, rows, cols uint16, tokens uint8) {
		b := newBench(t, seed)
		weights := ref.Formats()[int(format)%len(ref.Formats())]
		n, dim, count := int(rows%130), length(weights, int(cols%300)), int(tokens%4)
		b.checkMatVec(weights, n, dim, count, seed%2 == 0, seed%3 == 0)

		activation := cuda.Activation(seed % 7)
		l := b.layer(weights, max(dim, length(weights, 1)), n+1, activation == cuda.DReLU || seed%2 == 0, seed%3 == 0, activation)
		b.checkSparse(l, b.random.IntN(n+2), n+1, count)

		c := attentionCase{kvHeads: 1 + int(seed%2), dim: 1 + int(cols%100), context: n + 1, window: []int{0, 1 + n/2}[seed/2%2]}
		c.heads = c.kvHeads * (1 + int(seed/4%3))
		for range count {
			c.positions = append(c.positions, b.random.Int32N(int32(c.context)))
		}
		b.checkAttention([]ref.Format{ref.F16, ref.F32}[seed%2], c)
	})
}
