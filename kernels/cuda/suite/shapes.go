package suite

import (
	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// shapes is Shapes of some seeds.
func (b *Bench) shapes() {
	for seed := range uint64(28) {
		b.Shapes(seed, uint8(b.Random.Uint32()), uint16(b.Random.Uint32()),
			uint16(b.Random.Uint32()), uint8(b.Random.Uint32()))
	}
}

// Shapes compares a mat-vec, a feed-forward part and attention of any small shape with plain Go.
func (b *Bench) Shapes(seed uint64, format uint8, rows, cols uint16, tokens uint8) {
	b.Helper()
	weights := ref.Formats()[int(format)%len(ref.Formats())]
	n, dim, count := int(rows%130), length(weights, int(cols%300)), int(tokens%4)
	b.checkMatVec(weights, n, dim, count, seed%2 == 0, seed%3 == 0)

	activation := cuda.Activation(seed % 7)
	l := b.layer(weights, max(dim, length(weights, 1)), n+1, activation == cuda.DReLU ||
		seed%2 == 0, seed%3 == 0, activation)
	b.checkSparse(l, b.Random.IntN(n+2), n+1, count)

	c := attentionCase{kvHeads: 1 + int(seed%2), dim: 1 + int(cols%100), context: n + 1,
		window: []int{0, 1 + n/2}[seed/2%2]}
	c.heads = c.kvHeads * (1 + int(seed/4%3))
	for range count {
		c.positions = append(c.positions, b.Random.Int32N(int32(c.context)))
	}
	b.checkAttention([]ref.Format{ref.F16, ref.F32}[seed%2], c)
}
