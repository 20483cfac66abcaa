package predictor

import "math"

// adam is AdamW (Loshchilov and Hutter 2019, algorithm 2): gradient descent with momentum, with
// each parameter's step scaled by the size of its recent gradients, and weight decay apart from the
// gradient.
type adam struct {
	m, v   []float32 // moving means of the gradient and of its square
	step   int
	decay  float32
	shrunk int // the first parameters, the matrices, are shrunk; biases are not
}

func newAdam(n *network, decay float64) *adam {
	return &adam{m: make([]float32, len(n.params)), v: make([]float32, len(n.params)),
		decay: float32(decay), shrunk: len(n.w1) + len(n.w2)}
}

// update takes one step of the given rate.
func (a *adam) update(params, grad []float32, rate float64) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8 // the authors' values
	a.step++
	c1 := float32(rate / (1 - math.Pow(beta1, float64(a.step))))
	c2 := float32(1 / (1 - math.Pow(beta2, float64(a.step))))
	keep := 1 - float32(rate)*a.decay
	for i := range a.shrunk {
		params[i] *= keep
	}
	m, v := a.m[:len(params)], a.v[:len(params)]
	for i, g := range grad {
		m[i] = beta1*m[i] + (1-beta1)*g
		v[i] = beta2*v[i] + (1-beta2)*g*g
		params[i] -= c1 * m[i] / (float32(math.Sqrt(float64(v[i]*c2))) + epsilon)
	}
}
