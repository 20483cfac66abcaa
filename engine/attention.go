package engine

import (
	"math"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// attention computes out = W_o·(multi-head attention of h over positions 0…pos of layer l) + b_o and stores the position's key
// and value. OPT scales the query, bias included, before the dot products.
func (e *Engine) attention(l, pos int) {
	w, d, hd := &e.w.Layers[l], e.shape.DModel, e.shape.HeadDim
	q, k, v := e.qkv[:d], e.qkv[d:2*d], e.qkv[2*d:]
	e.linear(&w.Q, e.h, q)
	e.linear(&w.K, e.h, k)
	e.linear(&w.V, e.h, v)
	scale := float32(1 / math.Sqrt(float64(hd)))
	for i := range q {
		q[i] *= scale
	}
	base := l * e.context * d
	copy(e.keys[base+pos*d:], k)
	copy(e.vals[base+pos*d:], v)

	const grainBytes = 64 << 10
	headBytes := 2 * 4 * hd * (pos + 1)
	e.pool.Run(e.shape.Heads, max(1, grainBytes/headBytes), func(lo, hi int) {
		for head := lo; head < hi; head++ {
			at := head * hd
			scores := e.scores[head*e.context : head*e.context+pos+1]
			for p := range scores {
				row := base + p*d + at
				scores[p] = cpu.DotF32(q[at:at+hd], e.keys[row:row+hd])
			}
			softmax(scores)
			out := k[at : at+hd] // the key has been stored: its place serves as the head's output
			clear(out)
			for p, s := range scores {
				row := base + p*d + at
				cpu.AxpyF32(s, e.vals[row:row+hd], out)
			}
		}
	})
	e.linear(&w.O, k, e.out)
}

// linear computes y = W·x + b.
func (e *Engine) linear(w *model.Linear, x, y []float32) {
	e.pool.MatVec(w.W, len(y), len(x), x, y)
	add(y, w.B)
}

// layerNorm computes y = (x − mean)/√(var + ε)·W + B with moments in float64. ε is PyTorch's default, which OPT keeps.
func layerNorm(y, x []float32, n *model.Norm) {
	const epsilon = 1e-5
	var sum, square float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		square += (float64(v) - mean) * (float64(v) - mean)
	}
	scale := 1 / math.Sqrt(square/float64(len(x))+epsilon)
	for i, v := range x {
		y[i] = float32((float64(v)-mean)*scale)*n.W[i] + n.B[i]
	}
}

// softmax replaces scores by their softmax.
func softmax(scores []float32) {
	top := scores[0]
	for _, s := range scores {
		top = max(top, s)
	}
	var sum float64
	for i, s := range scores {
		p := math.Exp(float64(s - top))
		scores[i] = float32(p)
		sum += p
	}
	scale := float32(1 / sum)
	for i := range scores {
		scores[i] *= scale
	}
}

func add(dst, src []float32) {
	for i, v := range src {
		dst[i] += v
	}
}
