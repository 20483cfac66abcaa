package predictor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// plainLoss is the loss in float64, straight from its formula, summed over units and averaged over
// the batch.
func plainLoss(n *network, params []float64, b *batch, w weights) float64 {
	w1, w2 := params[:n.r*n.d], params[n.r*n.d:][:n.r*n.u]
	b1, b2 := params[n.r*n.d+n.r*n.u:][:n.r], params[n.r*n.d+n.r*n.u+n.r:]
	total, m := 0.0, 0
	for i := range b.n {
		mid := make([]float64, n.r)
		for j := range mid {
			mid[j] = b1[j]
			for k, v := range b.feature(i) {
				mid[j] += w1[j*n.d+k] * float64(v)
			}
			if n.relu {
				mid[j] = max(mid[j], 0)
			}
		}
		for u := range n.u {
			z := b2[u]
			for j, v := range mid {
				z += v * w2[j*n.u+u]
			}
			p := 1 / (1 + math.Exp(-z))
			if b.mask(i)[u/64]>>(u%64)&1 == 0 {
				total -= float64(w.inactive) * math.Log(1-p)
				continue
			}
			weight := float64(w.active)
			if w.byMagnitude {
				weight *= float64(b.mags[m])
				m++
			}
			total -= weight * math.Log(p)
		}
	}
	return total / float64(b.n)
}

// TestGradient compares with central differences of the plain loss. The sigmoid of training is
// within 1e-5, which bounds the agreement.
func TestGradient(t *testing.T) {
	const d, r, u, n = 7, 5, 70, 6
	random := rand.New(rand.NewPCG(1, 1))
	m := newPlain(n, 1, d, u)
	for i := range m.features {
		m.features[i] = float32(random.NormFloat64())
	}
	for i := range m.values {
		if random.IntN(4) == 0 {
			m.values[i] = random.Float32() * 3
		}
	}
	b := newBatch(m, 0, n, true)
	if err := b.load([]int{3, 1, 0, 5, 2, 4}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []Kind{ReLU, Linear} {
		for _, w := range []weights{balanced(0.25), {active: 1.5, inactive: 0.8,
			byMagnitude: true}} {
			t.Run(fmt.Sprintf("%s/%v", kind, w.byMagnitude), func(t *testing.T) {
				net, grad := newNetwork(d, r, u, kind), newNetwork(d, r, u, kind)
				params := make([]float64, len(net.params))
				for i := range params {
					net.params[i] = float32(random.NormFloat64() * 0.5)
					params[i] = float64(net.params[i])
				}
				ws := net.workspace(n)
				net.forward(b, ws)
				if got, want := net.loss(b, ws, w)/n, plainLoss(net, params, b,
					w); math.Abs(got-want) > 1e-5*want {
					t.Errorf("loss %g, want %g", got, want)
				}
				net.gradient(b, ws, w, grad)
				for i := range params {
					const h = 1e-5
					here := params[i]
					params[i] = here + h
					above := plainLoss(net, params, b, w)
					params[i] = here - h
					want := (above - plainLoss(net, params, b, w)) / (2 * h)
					params[i] = here
					if got := float64(grad.params[i]); math.Abs(got-want) > 1e-4*(1+math.Abs(
						want)) {
						t.Fatalf("parameter %d of %d: gradient %g, want %g", i, len(params), got,
							want)
					}
				}
			})
		}
	}
}

// TestBalancedLoss checks the formula by hand: 2 samples of 2 units, one element of four active.
func TestBalancedLoss(t *testing.T) {
	w := balanced(0.25)
	if w.active != 2 || math.Abs(float64(w.inactive)-2./3) > 1e-7 {
		t.Fatalf("weights %v, want 2 and 2/3: a quarter of the elements counts as much as three "+
			"quarters", w)
	}
	m := newPlain(2, 1, 1, 2)
	m.value(0, 0)[1] = 5
	b := newBatch(m, 0, 2, false)
	if err := b.load([]int{0, 1}); err != nil {
		t.Fatal(err)
	}
	net := newNetwork(1, 1, 2, ReLU)
	ws := net.workspace(2)
	if got := net.loss(b, ws, w) / 4; math.Abs(got-math.Ln2) > 1e-7 {
		t.Errorf("knowing nothing costs %g, want ln 2", got)
	}
	copy(ws.z, []float32{-1, 2, 3, 0})
	want := (2./3*math.Log(1+math.Exp(-1)) + 2*math.Log(1+math.Exp(-2)) +
		2./3*math.Log(1+math.Exp(3)) + 2./3*math.Ln2) / 4
	if got := net.loss(b, ws, w) / 4; math.Abs(got-want) > 1e-7 {
		t.Errorf("loss %g, want %g", got, want)
	}
	for _, share := range []float64{0, 1} {
		if w := balanced(share); !finite(w.active) || !finite(w.inactive) {
			t.Errorf("share %g: weights %v", share, w)
		}
	}
}

func TestSigmoids(t *testing.T) {
	var z []float32
	for i := -4000; i <= 4000; i++ {
		z = append(z, float32(i)/100)
	}
	z = append(z, math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)))
	got := slices.Clone(z)
	sigmoids(got)
	for i, v := range z {
		if want := sigmoid(float64(v)); math.Abs(float64(got[i])-want) > 1e-5*want+1e-12 {
			t.Fatalf("sigmoid(%g) = %g, want %g", v, got[i], want)
		}
	}
}

// TestProducts compares the blocked products with plain ones, over sizes that do and do not fill
// the blocks.
func TestProducts(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	matrix := func(rows, cols int) []float32 {
		out := make([]float32, rows*cols)
		for i := range out {
			if random.IntN(3) > 0 {
				out[i] = float32(random.NormFloat64())
			}
		}
		return out
	}
	for _, s := range [][3]int{{1, 1, 1}, {3, 40, 5}, {2, 33, 1025}, {5, 3, 2100}, {4, 70, 1024}} {
		n, k, m := s[0], s[1], s[2]
		a, b, bt, c := matrix(n, k), matrix(k, m), make([]float32, m*k), make([]float32, n*m)
		for i := range k {
			for j := range m {
				bt[j*k+i] = b[i*m+j]
			}
		}
		mulNT(c, a, bt, n, m, k)
		compareProduct(t, "mulNT", c, a, b, n, k, m)
		clear(c)
		mulNN(c, a, b, n, k, m)
		compareProduct(t, "mulNN", c, a, b, n, k, m)
		at := make([]float32, n*k)
		for i := range n {
			for j := range k {
				at[j*n+i] = a[i*k+j]
			}
		}
		clear(c)
		mulTN(c, at, b, k, n, m)
		compareProduct(t, "mulTN", c, a, b, n, k, m)
	}
}

func compareProduct(t *testing.T, name string, c, a, b []float32, n, k, m int) {
	t.Helper()
	for i := range n {
		for j := range m {
			want := 0.0
			for x := range k {
				want += float64(a[i*k+x]) * float64(b[x*m+j])
			}
			if got := float64(c[i*m+j]); math.Abs(got-want) > 1e-4 {
				t.Fatalf("%s of %d×%d by %d×%d: element %d, %d is %g, want %g", name, n, k, k, m, i,
					j, got, want)
			}
		}
	}
}

// TestFold checks that the form that runs computes the same as the trained one, whatever the scale
// of the features.
func TestFold(t *testing.T) {
	const d, r, u, n = 9, 6, 67, 40
	for _, scale := range []float64{1e-4, 1, 1e4} {
		for _, kind := range []Kind{ReLU, Linear} {
			random := rand.New(rand.NewPCG(4, 4))
			m := newPlain(n, 1, d, u)
			for i := range m.features {
				m.features[i] = float32(scale * (random.NormFloat64() + 3*float64(i%d)))
			}
			index := make([]int, n)
			for i := range index {
				index[i] = i
			}
			b := newBatch(m, 0, n, false)
			st, err := surveyOf(b, index, 16)
			if err != nil {
				t.Fatal(err)
			}
			net := newNetwork(d, r, u, kind)
			net.init(st, balanced(0.5), random)
			l, err := net.fold(st)
			if err != nil {
				t.Fatalf("scale %g: %v", scale, err)
			}
			p, err := New(kind, d, u, []Layer{l}, Facts{})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.load(index); err != nil {
				t.Fatal(err)
			}
			raw := slices.Clone(b.x)
			st.standardise(b)
			ws, run := net.workspace(n), p.Runner(nil)
			net.forward(b, ws)
			for i := range n {
				for v, got := range run.values(&p.layers[0], raw[i*d:(i+1)*d]) {
					// float16 keeps 11 bits of each weight; a mean of several deviations multiplies
					// the loss
					if want := ws.z[i*u+v]; math.Abs(float64(got-want)) > 0.02 {
						t.Fatalf("scale %g, %s: sample %d, unit %d: %g, trained %g", scale, kind, i,
							v, got, want)
					}
				}
			}
		}
	}
}
