package suite

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

func (b *Bench) rotaries() {
	const context = 40
	for _, s := range [][4]int{{1, 2, 1, 1}, {4, 64, 32, 2}, {3, 80, 16, 3}, {2, 8, 0, 1},
		{5, 6, 3, 0}} {
		heads, dim, half, tokens := s[0], s[1], s[2], s[3]
		frequencies := make([]float64, half)
		for i := range frequencies {
			frequencies[i] = math.Pow(10000, -float64(i)/float64(half))
		}
		x, positions := b.Floats(tokens*heads*dim), b.Ints(tokens, context)
		a := &cuda.Rotary{X: Put(b, x), Table: Put(b, cuda.RotaryTable(frequencies, context)),
			Positions: Put(b, positions),
			Heads:     heads, Dim: dim, Half: half, Tokens: tokens, Context: context}
		b.Must(b.Rotary(b.Stream, a))
		for j, v := range Get[float32](b, a.X, len(x)) {
			at := j % dim
			want := sum{}
			switch {
			case at >= 2*half:
				want.add(float64(x[j]))
			default:
				sin, cos := math.Sincos(float64(positions[j/(heads*dim)]) * frequencies[at%half])
				want.add(float64(x[j]) * cos)
				if at < half {
					want.add(-float64(x[j+half]) * sin)
				} else {
					want.add(float64(x[j-half]) * sin)
				}
			}
			b.near(fmt.Sprintf("%v element %d", s, j), v, want)
		}
	}
}

// history holds the keys and values of one layer in plain Go.
type history struct {
	a          cuda.Attention
	keys, vals []float32 // (sequence, position, kv_heads, dim)
}

func (b *Bench) history(f ref.Format, sequences, context, heads, kvHeads, dim int) *history {
	width := kvHeads * dim
	h := &history{}
	h.a = cuda.Attention{Heads: heads, Scale: float32(1 / math.Sqrt(float64(dim))),
		Cache: cuda.Cache{Format: f, Sequences: sequences, Context: context, KVHeads: kvHeads,
			Dim: dim, Stride: context*width + 16}}
	size := int64(sequences * f.Size(h.a.Cache.Stride))
	h.a.Cache.Keys, h.a.Cache.Vals = b.Room(size), b.Room(size)
	for _, m := range []cuda.Mem{h.a.Cache.Keys, h.a.Cache.Vals} {
		b.Must(b.Device.Fill(m.Ptr, 0xff, m.Size, b.Stream))
	}
	h.keys, h.vals = make([]float32, sequences*context*width), make([]float32,
		sequences*context*width)
	return h
}

// store puts the keys and values of every position up to each token's own into the cache.
func (b *Bench) store(h *history, seqs, positions []int32) {
	b.Helper()
	width := h.a.Cache.KVHeads * h.a.Cache.Dim
	for i, seq := range seqs {
		n := int(positions[i]) + 1
		k, v := b.Floats(n*width), b.Floats(n*width)
		at := int(seq) * h.a.Cache.Context * width
		copy(h.keys[at:], k)
		copy(h.vals[at:], v)
		all, same := make([]int32, n), make([]int32, n)
		for p := range all {
			all[p], same[p] = int32(p), seq
		}
		a := h.a
		a.Tokens, a.Seqs, a.Positions = n, Put(b, same), Put(b, all)
		b.Must(b.StoreKV(b.Stream, &a, Put(b, k), Put(b, v)))
	}
	if h.a.Cache.Format == ref.F16 {
		for i := range h.keys {
			h.keys[i], h.vals[i] = ref.F16ToF32(ref.F32ToF16(h.keys[i])),
				ref.F16ToF32(ref.F32ToF16(h.vals[i]))
		}
	}
}

// attended is element c of a head's output, in float64.
func (h *history) attended(q []float32, seq, position, head, c int) (want sum) {
	dim, width := h.a.Cache.Dim, h.a.Cache.KVHeads*h.a.Cache.Dim
	first := 0
	if h.a.Window > 0 {
		first = max(0, position-h.a.Window+1)
	}
	base := seq*h.a.Cache.Context*width + head/(h.a.Heads/h.a.Cache.KVHeads)*dim
	top, scores := math.Inf(-1), []float64{}
	for p := first; p <= position; p++ {
		s := dot(h.keys[base+p*width:base+p*width+dim], q).value * float64(h.a.Scale)
		if limit := float64(h.a.Cap); limit > 0 {
			s = limit * math.Tanh(s/limit)
		}
		scores, top = append(scores, s), max(top, s)
	}
	total := 0.0
	for _, s := range scores {
		total += math.Exp(s - top)
	}
	for i, s := range scores {
		want.add(math.Exp(s-top) / total * float64(h.vals[base+(first+i)*width+c]))
	}
	want.size *= 10 // the weights have errors too
	return want
}

// attentionCase is a shape of attention: one token for each position, of a sequence of its own.
type attentionCase struct {
	heads, kvHeads, dim, context, window int
	positions                            []int32
	limit                                float32 // of scores
}

func (b *Bench) attentions() {
	for _, f := range []ref.Format{ref.F16, ref.F32} {
		for _, c := range []attentionCase{
			{1, 1, 1, 1, 0, []int32{0}, 0},
			{4, 4, 16, 40, 0, []int32{39, 0}, 0},
			{4, 4, 16, 40, 0, []int32{39, 0}, 0.5},
			{6, 2, 33, 20, 0, []int32{7}, 0},
			// the end of a block's span, and one beyond it
			{2, 1, 64, 300, 0, []int32{299, 127, 128}, 0},
			{2, 2, 130, 300, 130, []int32{280, 5, 129}, 1.5},
			{3, 3, 8, 50, 1, []int32{49}, 0},
			{2, 2, 8, 8, 0, nil, 0},
		} {
			b.checkAttention(f, c)
		}
	}
}

// checkAttention stores random keys and values and compares the attention over them with plain Go.
func (b *Bench) checkAttention(f ref.Format, c attentionCase) {
	b.Helper()
	tokens := len(c.positions)
	h := b.history(f, max(tokens, 1), c.context, c.heads, c.kvHeads, c.dim)
	seqs := b.Ints(tokens, tokens)
	b.store(h, seqs, c.positions)
	q := b.Floats(tokens * c.heads * c.dim)
	a := &h.a
	a.Tokens, a.Longest, a.Window, a.Q, a.Seqs, a.Positions = tokens, c.context, c.window,
		Put(b, q), Put(b, seqs), Put(b, c.positions)
	a.Cap = c.limit
	a.Out = b.Room(int64(4 * len(q)))
	a.Scratch = b.Room(cuda.AttentionScratch(c.heads, c.dim, tokens, c.context))
	b.Must(b.Attention(b.Stream, a))
	for j, v := range Get[float32](b, a.Out, len(q)) {
		token, head := j/(c.heads*c.dim), j/c.dim%c.heads
		want := h.attended(q[j/c.dim*c.dim:], int(seqs[token]), int(c.positions[token]), head,
			j%c.dim)
		b.near(fmt.Sprintf("%v %+v: token %d head %d element %d", f, c, token, head, j%c.dim), v,
			want)
	}
}
