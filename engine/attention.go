package engine

import (
	"math"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// attention computes out = W_o·(multi-head attention of h over the positions up to each token's own) + b_o and stores the tokens' keys
// and values, those of all tokens first: a token sees the earlier ones of its own step. The query, bias included, is scaled before the dot products,
// as OPT does; for the others the order makes no difference beyond rounding.
func (e *Engine) attention(s *step) {
	e.linear(s, &s.layer.Q, func(a *lane) ([]float32, []float32) { return a.h, a.q })
	e.linear(s, &s.layer.K, func(a *lane) ([]float32, []float32) { return a.h, a.k })
	e.linear(s, &s.layer.V, func(a *lane) ([]float32, []float32) { return a.h, a.v })
	scale := float32(1 / math.Sqrt(float64(e.shape.HeadDim)))
	kvDim := e.shape.KVHeads * e.shape.HeadDim
	for i := range s.lanes {
		a, t := &s.lanes[i], &s.tokens[i]
		if e.arch.QKNorm {
			e.headNorm(a.q, &s.layer.QNorm)
			e.headNorm(a.k, &s.layer.KNorm)
		}
		e.turn(a.q, t.Pos)
		e.turn(a.k, t.Pos)
		for j := range a.q {
			a.q[j] *= scale
		}
		at := (s.l*e.context + t.Pos) * kvDim
		copy(e.slots[t.Slot].keys[at:], a.k)
		copy(e.slots[t.Slot].vals[at:], a.v)
	}
	for i := range s.lanes {
		e.attend(s, i)
	}
	e.linear(s, &s.layer.O, func(a *lane) ([]float32, []float32) { return a.att, a.out })
}

// attend computes the heads of one token. Several queries share a key head where there are fewer of these.
func (e *Engine) attend(s *step, i int) {
	a, t, hd := &s.lanes[i], &s.tokens[i], e.shape.HeadDim
	kvDim, group := e.shape.KVHeads*hd, e.shape.Heads/e.shape.KVHeads
	keys, vals := e.slots[t.Slot].keys, e.slots[t.Slot].vals
	first := 0
	if e.arch.Window > 0 {
		first = max(0, t.Pos-e.arch.Window+1)
	}
	const grainBytes = 64 << 10
	headBytes := 2 * 4 * hd * (t.Pos + 1 - first)
	e.pool.Run(e.shape.Heads, max(1, grainBytes/headBytes), func(lo, hi int) {
		for head := lo; head < hi; head++ {
			q, out := a.q[head*hd:(head+1)*hd], a.att[head*hd:(head+1)*hd]
			base := (s.l*e.context+first)*kvDim + head/group*hd
			scores := e.scores[head*e.context : head*e.context+t.Pos+1-first]
			for p := range scores {
				row := base + p*kvDim
				scores[p] = cpu.DotF32(q, keys[row:row+hd])
			}
			softmax(scores)
			clear(out)
			for p, weight := range scores {
				row := base + p*kvDim
				cpu.AxpyF32(weight, vals[row:row+hd], out)
			}
		}
	})
}

// turn applies rotary positions to every head: element i and i + dim/2 are a point that is turned by pos·turns[i].
func (e *Engine) turn(heads []float32, pos int) {
	half := len(e.turns)
	if half == 0 {
		return
	}
	for i, angle := range e.turns {
		sin, cos := math.Sincos(float64(pos) * angle)
		for at := 0; at < len(heads); at += e.shape.HeadDim {
			x, y := float64(heads[at+i]), float64(heads[at+half+i])
			heads[at+i], heads[at+half+i] = float32(x*cos-y*sin), float32(y*cos+x*sin)
		}
	}
}

// linear computes y = W·x + b for every token; a row of W is used for all of them while it is in the cache.
func (e *Engine) linear(s *step, w *model.Linear, of func(*lane) (x, y []float32)) {
	if len(s.lanes) == 1 {
		x, y := of(&s.lanes[0])
		e.pool.MatVecFormat(e.w.Resident, w.W.Data, w.W.Rows, w.W.Cols, x, y[:w.W.Rows])
	} else {
		size := e.w.Resident.Size(w.W.Cols)
		const grainBytes = 64 << 10
		e.pool.Run(w.W.Rows, grainBytes/max(size*len(s.lanes), 1)+1, func(lo, hi int) {
			for r := lo; r < hi; r++ {
				for i := range s.lanes {
					x, y := of(&s.lanes[i])
					y[r] = cpu.DotFormat(e.w.Resident, w.W.Data[r*size:(r+1)*size], x, nil)
				}
			}
		})
	}
	if w.B == nil {
		return
	}
	for i := range s.lanes {
		_, y := of(&s.lanes[i])
		add(y, w.B)
	}
}

// norm sets h to the norm of x.
func (e *Engine) norm(s *step, n *model.Norm) {
	for i := range s.lanes {
		e.normed(s.lanes[i].h, s.lanes[i].x, n)
	}
}

// normInPlace replaces x by its norm.
func (e *Engine) normInPlace(s *step, n *model.Norm) {
	for i := range s.lanes {
		e.normed(s.lanes[i].x, s.lanes[i].x, n)
	}
}

func (e *Engine) normed(y, x []float32, n *model.Norm) {
	if e.arch.RMSNorm {
		rmsNorm(y, x, n, e.arch.Epsilon)
		return
	}
	layerNorm(y, x, n, e.arch.Epsilon)
}

// headNorm applies a layer norm to each head.
func (e *Engine) headNorm(heads []float32, n *model.Norm) {
	for at := 0; at < len(heads); at += e.shape.HeadDim {
		head := heads[at : at+e.shape.HeadDim]
		layerNorm(head, head, n, e.arch.Epsilon)
	}
}

// copyState sets h to x.
func (e *Engine) copyState(s *step) {
	for i := range s.lanes {
		copy(s.lanes[i].h, s.lanes[i].x)
	}
}

// addOut adds out to the residual.
func (e *Engine) addOut(s *step) {
	for i := range s.lanes {
		add(s.lanes[i].x, s.lanes[i].out)
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
