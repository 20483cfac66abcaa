package engine

import (
	"math"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// Attention computes out = W_o·(multi-head attention of h over the positions up to each token's
// own) + b_o. It first stores the keys and values of all tokens, so that a token sees the earlier
// tokens of its own step. The query, bias included, is scaled before the dot products, as OPT does;
// for other families the order changes rounding only.
func (p *processor) Attention(s *Step) {
	layer := &p.w.Layers[s.Layer]
	p.linear(s, &layer.Q, func(a *activations) ([]float32, []float32) { return a.h, a.q })
	p.linear(s, &layer.K, func(a *activations) ([]float32, []float32) { return a.h, a.k })
	p.linear(s, &layer.V, func(a *activations) ([]float32, []float32) { return a.h, a.v })
	scale := float32(p.arch.ScaleOfQueries())
	kvDim := p.shape.KVHeads * p.shape.HeadDim
	for i := range p.entries {
		a, t := &p.entries[i], &s.Tokens[i]
		if p.arch.QKNorm {
			p.headNorm(a.q, &layer.QNorm)
			p.headNorm(a.k, &layer.KNorm)
		}
		p.rotate(a.q, s.Layer, t.Pos)
		p.rotate(a.k, s.Layer, t.Pos)
		for j := range a.q {
			a.q[j] *= scale
		}
		at := (s.Layer*p.context + t.Pos) * kvDim
		copy(p.sequences[t.SeqID].keys[at:], a.k)
		copy(p.sequences[t.SeqID].vals[at:], a.v)
	}
	for i := range p.entries {
		p.attend(s, i)
	}
	p.linear(s, &layer.O, func(a *activations) ([]float32, []float32) { return a.att, a.out })
}

// attend computes the heads of one token. Several queries share a key head where there are fewer
// key heads.
func (p *processor) attend(s *Step, i int) {
	a, t, hd := &p.entries[i], &s.Tokens[i], p.shape.HeadDim
	kvDim, group := p.shape.KVHeads*hd, p.shape.Heads/p.shape.KVHeads
	keys, vals := p.sequences[t.SeqID].keys, p.sequences[t.SeqID].vals
	first := 0
	if window := p.arch.WindowOf(s.Layer); window > 0 {
		first = max(0, t.Pos-window+1)
	}
	const grainBytes = 64 << 10
	headBytes := 2 * 4 * hd * (t.Pos + 1 - first)
	p.pool.Run(p.shape.Heads, max(1, grainBytes/headBytes), func(lo, hi int) {
		for head := lo; head < hi; head++ {
			q, out := a.q[head*hd:(head+1)*hd], a.att[head*hd:(head+1)*hd]
			base := (s.Layer*p.context+first)*kvDim + head/group*hd
			scores := p.scores[head*p.context : head*p.context+t.Pos+1-first]
			for pos := range scores {
				row := base + pos*kvDim
				scores[pos] = cpu.DotF32(q, keys[row:row+hd])
			}
			softCap(scores, p.arch.ScoreCap)
			softmax(scores)
			clear(out)
			for pos, weight := range scores {
				row := base + pos*kvDim
				cpu.AxpyF32(weight, vals[row:row+hd], out)
			}
		}
	})
}

// rotate applies rotary positions (RoPE) to every head: elements i and i + dim/2 are the
// coordinates of a point, which is rotated by the angle pos·frequencies[i].
func (p *processor) rotate(heads []float32, layer, pos int) {
	rotary, frequencies := p.arch.RotaryOf(layer), p.frequencies
	if rotary == &p.arch.LocalRotary {
		frequencies = p.local
	}
	half, size := len(frequencies), rotary.Size()
	for i, angle := range frequencies {
		sin, cos := math.Sincos(float64(pos) * angle)
		sin, cos = sin*size, cos*size
		for at := 0; at < len(heads); at += p.shape.HeadDim {
			x, y := float64(heads[at+i]), float64(heads[at+half+i])
			heads[at+i], heads[at+half+i] = float32(x*cos-y*sin), float32(y*cos+x*sin)
		}
	}
}

// linear computes y = W·x + b for every token. A row of W is used for all tokens while it is in the
// cache.
func (p *processor) linear(s *Step, w *model.Linear, of func(*activations) (x, y []float32)) {
	if len(p.entries) == 1 {
		x, y := of(&p.entries[0])
		p.pool.MatVecFormat(p.w.Resident, w.W.Data, w.W.Rows, w.W.Cols, x, y[:w.W.Rows])
	} else {
		size := p.w.Resident.Size(w.W.Cols)
		const grainBytes = 64 << 10
		p.pool.Run(w.W.Rows, grainBytes/max(size*len(p.entries), 1)+1, func(lo, hi int) {
			for r := lo; r < hi; r++ {
				for i := range p.entries {
					x, y := of(&p.entries[i])
					y[r] = cpu.DotFormat(p.w.Resident, w.W.Data[r*size:(r+1)*size], x, nil)
				}
			}
		})
	}
	if w.B == nil {
		return
	}
	for i := range p.entries {
		_, y := of(&p.entries[i])
		add(y, w.B)
	}
}

// Norm sets h to the norm of x.
func (p *processor) Norm(s *Step, n NormOf) {
	for i := range p.entries {
		p.normed(p.entries[i].h, p.entries[i].x, n.Of(p.w, s.Layer))
	}
}

// NormInPlace replaces x by its norm.
func (p *processor) NormInPlace(s *Step, n NormOf) {
	for i := range p.entries {
		p.normed(p.entries[i].x, p.entries[i].x, n.Of(p.w, s.Layer))
	}
}

// NormOut replaces out by its norm.
func (p *processor) NormOut(s *Step, n NormOf) {
	for i := range p.entries {
		p.normed(p.entries[i].out, p.entries[i].out, n.Of(p.w, s.Layer))
	}
}

func (p *processor) normed(y, x []float32, n *model.Norm) {
	if p.arch.RMSNorm {
		rmsNorm(y, x, n, p.arch.Epsilon)
		return
	}
	layerNorm(y, x, n, p.arch.Epsilon)
}

// headNorm applies a norm to each head.
func (p *processor) headNorm(heads []float32, n *model.Norm) {
	for at := 0; at < len(heads); at += p.shape.HeadDim {
		head := heads[at : at+p.shape.HeadDim]
		p.normed(head, head, n)
	}
}

// CopyState sets h to x.
func (p *processor) CopyState(*Step) {
	for i := range p.entries {
		copy(p.entries[i].h, p.entries[i].x)
	}
}

// AddOut adds out to the residual.
func (p *processor) AddOut(*Step) {
	for i := range p.entries {
		add(p.entries[i].x, p.entries[i].out)
	}
}

// layerNorm computes y = (x − mean)/√(var + ε)·W + B with moments in float64; y may be x.
func layerNorm(y, x []float32, n *model.Norm, epsilon float64) {
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

// rmsNorm computes y = x/√(mean(x²) + ε)·W; y may be x.
func rmsNorm(y, x []float32, n *model.Norm, epsilon float64) {
	var square float64
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	scale := 1 / math.Sqrt(square/float64(len(x))+epsilon)
	for i, v := range x {
		y[i] = float32(float64(v)*scale) * n.W[i]
	}
}

// softCap bounds numbers softly by ±limit; 0 = not at all.
func softCap(list []float32, limit float64) {
	if limit == 0 {
		return
	}
	for i, v := range list {
		list[i] = float32(limit * math.Tanh(float64(v)/limit))
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
