package predictor

import (
	"math"
	"math/rand/v2"
)

// network is the predictor of one layer while it is trained: float32, features standardised, W2 by
// columns.
type network struct {
	d, r, u int
	relu    bool
	params  []float32 // all of the following, in this order
	w1      []float32 // (r, d)
	w2      []float32 // (r, u): row j is column j of the predictor's W2
	b1      []float32 // (r)
	b2      []float32 // (u)
}

func newNetwork(d, r, u int, kind Kind) *network {
	n := &network{d: d, r: r, u: u, relu: kind == ReLU}
	n.view(make([]float32, r*d+r*u+r+u))
	return n
}

// view points n's matrices into params.
func (n *network) view(params []float32) {
	n.params = params
	n.w1, params = params[:n.r*n.d], params[n.r*n.d:]
	n.w2, params = params[:n.r*n.u], params[n.r*n.u:]
	n.b1, n.b2 = params[:n.r], params[n.r:]
}

// weights are the weights of the two classes in the loss. Their mean over all elements is 1, so
// losses can be compared: a predictor without knowledge has ln 2 when they are balanced.
type weights struct {
	active, inactive float32
	byMagnitude      bool // active is multiplied by the element's magnitude
}

// balanced gives the active elements together the weight of the inactive ones, from their share.
func balanced(share float64) weights {
	w := weights{active: 0.5, inactive: 0.5}
	if share > 0 {
		w.active = float32(0.5 / share)
	}
	if share < 1 {
		w.inactive = float32(0.5 / (1 - share))
	}
	return w
}

// init draws the start: matrices that keep the variance, and for b2 each unit's share of the
// weighted samples, which training would learn first.
func (n *network) init(st *survey, w weights, r *rand.Rand) {
	gain := 1.0
	if n.relu {
		gain = math.Sqrt2
	}
	draw(n.w1, gain/math.Sqrt(float64(n.d)), r)
	draw(n.w2, 1/math.Sqrt(float64(n.r)), r)
	active := float64(w.active)
	if w.byMagnitude {
		active *= st.meanMagnitude
	}
	for u, count := range st.count {
		const prior = 0.5 // a unit that was never active is rare, not impossible
		n.b2[u] = float32(math.Log(active * (float64(count) + prior) / (float64(w.inactive) *
			(float64(st.samples-count) + prior))))
	}
}

func draw(dst []float32, deviation float64, r *rand.Rand) {
	for i := range dst {
		dst[i] = float32(r.NormFloat64() * deviation)
	}
}

// workspace is the memory of one forward and backward pass over a batch.
type workspace struct {
	mid  []float32 // (size, r): after f
	z    []float32 // (size, u): before the sigmoid, then the gradient there
	dmid []float32 // (size, r)
}

func (n *network) workspace(size int) *workspace {
	return &workspace{mid: make([]float32, size*n.r), z: make([]float32, size*n.u),
		dmid: make([]float32, size*n.r)}
}

// forward computes ws.mid and ws.z for the batch.
func (n *network) forward(b *batch, ws *workspace) {
	mulNT(ws.mid, b.x, n.w1, b.n, n.r, n.d)
	for i := range b.n {
		mid := ws.mid[i*n.r : (i+1)*n.r]
		addTo(mid, n.b1)
		if n.relu {
			for j, v := range mid {
				mid[j] = max(v, 0)
			}
		}
		copy(ws.z[i*n.u:], n.b2)
	}
	mulNN(ws.z, ws.mid, n.w2, b.n, n.r, n.u)
}

// gradient replaces ws.z by the gradient of the loss there, and sets grad, laid out as params, to
// the gradient by the parameters. The loss is summed over units and averaged over the batch.
func (n *network) gradient(b *batch, ws *workspace, w weights, grad *network) {
	lossGradient(b, ws.z, n.u, w)
	clear(grad.params)
	for i := range b.n {
		addTo(grad.b2, ws.z[i*n.u:(i+1)*n.u])
	}
	mulTN(grad.w2, ws.mid, ws.z, b.n, n.r, n.u)
	mulNT(ws.dmid, ws.z, n.w2, b.n, n.r, n.u)
	if n.relu {
		for i, v := range ws.mid[:b.n*n.r] {
			if v == 0 {
				ws.dmid[i] = 0
			}
		}
	}
	for i := range b.n {
		addTo(grad.b1, ws.dmid[i*n.r:(i+1)*n.r])
	}
	mulTN(grad.w1, ws.dmid, b.x, b.n, n.r, n.d)
}

// lossGradient turns the values before the sigmoid into the loss's derivative by them:
// w·(sigmoid(z) − y) / n.
func lossGradient(b *batch, z []float32, units int, w weights) {
	scale := w.inactive / float32(b.n) // of an inactive element, which nearly all are
	m := 0
	for i := range b.n {
		row := z[i*units : (i+1)*units]
		sigmoids(row)
		for u := range b.mask(i).Each {
			weight := w.active / w.inactive
			if w.byMagnitude {
				weight *= b.mags[m]
				m++
			}
			row[u] = weight * (row[u] - 1)
		}
		for u := range row {
			row[u] *= scale
		}
	}
}

// sigmoids replaces values by their sigmoids within 1e-5, for gradients. It splits e^−z into a
// power of two and a polynomial for the rest.
func sigmoids(z []float32) {
	const far = 30 // float32 cannot distinguish the sigmoid from 1 beyond it
	for i, v := range z {
		if v > far {
			v = far
		}
		if v < -far {
			v = -far
		}
		t := v * -math.Log2E
		whole := int32(t+128.5) - 128        // rounds, because t+128 is positive
		f := (t - float32(whole)) * math.Ln2 // in ±0.35
		e := 1 + f*(1+f*(1./2+f*(1./6+f*(1./24+f*(1./120)))))
		z[i] = 1 / (1 + e*math.Float32frombits(uint32(whole+127)<<23))
	}
}

// loss returns the summed, weighted cross-entropy of the batch from ws.z, not divided by anything.
func (n *network) loss(b *batch, ws *workspace, w weights) float64 {
	sum, m := 0.0, 0
	for i := range b.n {
		z, active := ws.z[i*n.u:(i+1)*n.u], b.mask(i)
		for u, v := range z {
			if !active.Has(uint32(u)) {
				sum += float64(w.inactive) * softplus(float64(v))
				continue
			}
			weight := float64(w.active)
			if w.byMagnitude {
				weight *= float64(b.mags[m])
				m++
			}
			sum += weight * softplus(-float64(v))
		}
	}
	return sum
}

// softplus is log(1 + eᶻ), which is −log(1 − sigmoid(z)).
func softplus(z float64) float64 { return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) }
