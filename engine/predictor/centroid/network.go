package centroid

import (
	"math"
	"math/rand/v2"

	"github.com/windrow-sim/windrow/kernels/cpu"
)

// network is the float32 network in training: standardised features → (Linear, ReLU) for each
// hidden layer → Linear. Its outputs are the logits of all heads in a row.
type network struct {
	pool   *cpu.Pool
	layers []*linear
	bounds []int // start of each head's logits, and the number of logits at the end

	// One batch, all (sample, element).
	x     [][]float32 // x[l] is the input of layer l; the last are the logits
	delta [][]float32 // derivatives of the loss by x
	loss  []float64   // of each sample
	right []int       // heads with the largest logit at the label
}

// linear is y = w·x + b with Adam's state.
type linear struct {
	in, out int
	w, b    []float32 // (out, in), (out)
	gw, gb  []float32 // derivatives
	m, v    []float32 // moments of w, then of b
}

func newLinear(in, out int, scale float64, r *rand.Rand) *linear {
	l := &linear{in: in, out: out, w: make([]float32, out*in), b: make([]float32, out),
		gw: make([]float32, out*in), gb: make([]float32, out)}
	l.m, l.v = make([]float32, len(l.w)+out), make([]float32, len(l.w)+out)
	for i := range l.w {
		l.w[i] = float32(r.NormFloat64() * scale)
	}
	return l
}

// newNetwork initialises the trunk as He and others (2015) do for ReLU; small heads start at the
// same chance for every centroid.
func newNetwork(width int, hidden, counts []int, batch int, pool *cpu.Pool, r *rand.Rand) *network {
	n := &network{pool: pool, bounds: make([]int, len(counts)+1), loss: make([]float64, batch),
		right: make([]int, batch)}
	for h, c := range counts {
		n.bounds[h+1] = n.bounds[h] + c
	}
	in := width
	for _, out := range hidden {
		n.layers = append(n.layers, newLinear(in, out, math.Sqrt(2/float64(in)), r))
		in = out
	}
	n.layers = append(n.layers, newLinear(in, n.bounds[len(counts)], 0.1/math.Sqrt(float64(in)), r))
	for _, l := range n.layers {
		n.x, n.delta = append(n.x, make([]float32, batch*l.in)), append(n.delta, make([]float32,
			batch*l.in))
	}
	logits := batch * n.bounds[len(counts)]
	n.x, n.delta = append(n.x, make([]float32, logits)), append(n.delta, make([]float32, logits))
	return n
}

// forward runs the first size samples of x[0], and sets loss, right, and the derivatives of the
// mean loss by the logits. labels has one id for each sample and head.
func (n *network) forward(size int, labels []int32) (loss float64, right int) {
	last := len(n.layers) - 1
	n.pool.Run(size, 1, func(lo, hi int) {
		for l, layer := range n.layers {
			layer.forward(n.x[l], n.x[l+1], lo, hi, l < last)
		}
		heads := len(n.bounds) - 1
		for s := lo; s < hi; s++ {
			n.crossEntropy(s, labels[s*heads:(s+1)*heads], 1/float64(size*heads))
		}
	})
	for s := range size {
		loss += n.loss[s]
		right += n.right[s]
	}
	return loss / float64(size), right
}

// forward computes samples lo to hi. A row of weights is used for all of them while it is in the
// cache.
func (l *linear) forward(x, y []float32, lo, hi int, relu bool) {
	for r := range l.out {
		w := l.w[r*l.in : (r+1)*l.in]
		for s := lo; s < hi; s++ {
			v := cpu.DotF32(w, x[s*l.in:(s+1)*l.in]) + l.b[r]
			if relu && v < 0 {
				v = 0
			}
			y[s*l.out+r] = v
		}
	}
}

// crossEntropy computes the mean cross-entropy of the softmax of each head, and its derivative by
// the logits times scale.
func (n *network) crossEntropy(s int, labels []int32, scale float64) {
	width := n.bounds[len(labels)]
	logits, delta := n.x[len(n.layers)][s*width:(s+1)*width],
		n.delta[len(n.layers)][s*width:(s+1)*width]
	n.loss[s], n.right[s] = 0, 0
	for h, want := range labels {
		z, d := logits[n.bounds[h]:n.bounds[h+1]], delta[n.bounds[h]:n.bounds[h+1]]
		best := argmax(z)
		sum := 0.0
		for _, v := range z {
			sum += math.Exp(float64(v - z[best]))
		}
		n.loss[s] += (math.Log(sum) - float64(z[want]-z[best])) / float64(len(labels))
		for i, v := range z {
			d[i] = float32(scale * math.Exp(float64(v-z[best])) / sum)
		}
		d[want] -= float32(scale)
		if best == int(want) {
			n.right[s]++
		}
	}
}

// argmax returns the index of the largest value; of several, the lowest.
func argmax(z []float32) (best int) {
	for i, v := range z {
		if v > z[best] {
			best = i
		}
	}
	return best
}

// backward computes the derivatives by all weights for the batch that forward ran. One worker sums
// each weight's derivative in the order of the samples, so it does not depend on the number of
// workers.
func (n *network) backward(size int) {
	n.pool.Run(size, 1, func(lo, hi int) {
		for l := len(n.layers) - 1; l > 0; l-- {
			n.layers[l].backward(n.x[l], n.delta[l], n.delta[l+1], lo, hi)
		}
	})
	for l, layer := range n.layers {
		n.pool.Run(layer.out, max(1, 4096/layer.in), func(lo, hi int) {
			layer.gradient(n.x[l], n.delta[l+1], size, lo, hi)
		})
	}
}

// backward computes the derivatives by the inputs x, which came out of a ReLU.
func (l *linear) backward(x, dx, dy []float32, lo, hi int) {
	clear(dx[lo*l.in : hi*l.in])
	for r := range l.out {
		w := l.w[r*l.in : (r+1)*l.in]
		for s := lo; s < hi; s++ {
			if d := dy[s*l.out+r]; d != 0 {
				cpu.AxpyF32(d, w, dx[s*l.in:(s+1)*l.in])
			}
		}
	}
	for i := lo * l.in; i < hi*l.in; i++ {
		if x[i] == 0 {
			dx[i] = 0
		}
	}
}

// gradient computes the derivatives by the weights of rows lo to hi.
func (l *linear) gradient(x, dy []float32, size, lo, hi int) {
	for r := lo; r < hi; r++ {
		g := l.gw[r*l.in : (r+1)*l.in]
		clear(g)
		l.gb[r] = 0
		for s := range size {
			if d := dy[s*l.out+r]; d != 0 {
				cpu.AxpyF32(d, x[s*l.in:(s+1)*l.in], g)
				l.gb[r] += d
			}
		}
	}
}

// adam changes all weights by one step (Kingma and Ba 2015, algorithm 1); step counts from 1.
func (n *network) adam(rate float64, step int) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8 // the paper's
	// The corrections of the moments, taken out of the loop.
	scale := float32(rate * math.Sqrt(1-math.Pow(beta2, float64(step))) / (1 - math.Pow(beta1,
		float64(step))))
	change := func(w, g, m, v []float32) {
		for i, g := range g {
			m[i] = float32(beta1*m[i]) + float32((1-beta1)*g)
			v[i] = float32(beta2*v[i]) + float32((1-beta2)*g*g)
			w[i] -= scale * m[i] / (float32(math.Sqrt(float64(v[i]))) + epsilon)
		}
	}
	for _, l := range n.layers {
		n.pool.Run(len(l.w), 4096, func(lo, hi int) {
			change(l.w[lo:hi], l.gw[lo:hi], l.m[lo:hi],
				l.v[lo:hi])
		})
		change(l.b, l.gb, l.m[len(l.w):], l.v[len(l.w):])
	}
}
