package metal

import (
	"fmt"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// layer is a feed-forward layer with all that it may have.
type layer struct {
	gate, up, down             *matrix // gate may be none
	gateBias, upBias, downBias []float32
	a                          cuda.FFN // every unit at its own place
}

func (b *bench) layer(f ref.Format, dim, units int, gated bool, activation cuda.Activation) *layer {
	l := &layer{up: b.matrix(f, units, dim), down: b.matrix(f, units, dim), gateBias: b.floats(units), upBias: b.floats(units), downBias: b.floats(dim)}
	if gated {
		l.gate = b.matrix(f, units, dim)
	}
	l.a = cuda.FFN{Format: f, Gate: b.load(l.gate), Up: b.load(l.up), Down: b.load(l.down), GateBias: put(b, l.gateBias), UpBias: put(b, l.upBias),
		DownBias: put(b, l.downBias), Rows: units, Dim: dim, Total: units, Activation: activation, Threshold: 0.4}
	return l
}

// value is what a unit's down row is multiplied with, in float64.
func (l *layer) value(unit int, x []float32) sum {
	up := dot(l.up.row(unit), x)
	up.add(float64(l.upBias[unit]))
	if l.gate == nil {
		return sum{activate(l.a.Activation, up.value), up.size * (1 + up.size)}
	}
	gate := dot(l.gate.row(unit), x)
	gate.add(float64(l.gateBias[unit]))
	if l.a.Activation == cuda.DReLU {
		up.value = max(up.value, 0)
	}
	return sum{activate(l.a.Activation, gate.value) * up.value, gate.size * (1 + gate.size) * (1 + up.size)}
}

func activate(f cuda.Activation, x float64) float64 {
	switch f {
	case cuda.ReLU2:
		return max(x, 0) * max(x, 0)
	case cuda.FATReLU:
		if x > float64(float32(0.4)) {
			return x
		}
		return 0
	case cuda.SiLU:
		return x / (1 + math.Exp(-x))
	case cuda.GELU:
		return x * 0.5 * (1 + math.Erf(x/math.Sqrt2))
	case cuda.GELUNew:
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}
	return max(x, 0)
}

// run computes a for tokens and returns act and out.
func (b *bench) run(a cuda.FFN, x []float32, tokens int) (act, out []float32) {
	b.Helper()
	a.Tokens, a.X = tokens, put(b, x)
	a.Act, a.Out = b.room(int64(4*tokens*a.Rows)), b.room(int64(4*tokens*a.Dim))
	a.Scratch = b.room(cuda.FFNScratch(a.Total, a.Dim, tokens))
	b.must(b.FFN(b.stream, &a))
	return get[float32](b, a.Act, tokens*a.Rows), get[float32](b, a.Out, tokens*a.Dim)
}

// sparse is a layer of which the units listed are at hand, at random places.
func (b *bench) sparse(l *layer, units []int32, places int) cuda.FFN {
	a, slots := l.a, b.ints(len(units), places)
	placed := func(m *matrix) cuda.Mem {
		if m == nil {
			return cuda.Mem{}
		}
		size := m.format.Size(m.cols)
		buffer := &matrix{bytes: make([]byte, places*size)}
		for i := range buffer.bytes {
			buffer.bytes[i] = 0xff // not numbers
		}
		for i, u := range units {
			copy(buffer.bytes[int(slots[i])*size:], m.bytes[int(u)*size:(int(u)+1)*size])
		}
		return b.load(buffer)
	}
	a.Rows, a.Units, a.Slots = len(units), put(b, units), put(b, slots)
	a.Gate, a.Up, a.Down = placed(l.gate), placed(l.up), placed(l.down)
	return a
}

// checkFFNs has every activation, with and without a gate, over all and over some rows of random shapes.
func (b *bench) checkFFNs() {
	activations := []cuda.Activation{cuda.ReLU, cuda.ReLU2, cuda.FATReLU, cuda.DReLU, cuda.SiLU, cuda.GELU, cuda.GELUNew}
	for i := range 4 * len(activations) {
		f, activation := ref.Formats()[i%5], activations[i%len(activations)]
		dim, units, tokens := length(f, 1+b.random.IntN(150)), 1+b.random.IntN(300), b.random.IntN(4)
		l := b.layer(f, dim, units, activation == cuda.DReLU || i%2 == 0, activation)
		x := b.floats(tokens * dim)
		list := make([]int32, units)
		for u := range list {
			list[u] = int32(u)
		}
		act, out := b.run(l.a, x, tokens)
		b.checkFFN(l, list, nil, x, act, out)

		rows := []int{0, 1, units, b.random.IntN(units + 1)}[i%4]
		some := b.ints(rows, units)
		slices.Sort(some)
		a := b.sparse(l, some, units+3)
		masks := make([]uint64, tokens*((units+63)/64))
		for j := range masks {
			masks[j] = b.random.Uint64()
		}
		a.Wanted = put(b, masks)
		act, out = b.run(a, x, tokens)
		b.checkFFN(l, some, masks, x, act, out)
	}
}

// checkFFN compares with the plain twin; units lists what the rows are, masks (none = all) what each token wants of them.
func (b *bench) checkFFN(l *layer, units []int32, masks []uint64, x, act, out []float32) {
	b.Helper()
	dim, words := l.a.Dim, (l.a.Total+63)/64
	what := fmt.Sprintf("%v, %d rows of %d units, dim %d, activation %d", l.a.Format, len(units), l.a.Total, dim, l.a.Activation)
	for token := range len(x) / dim {
		sums := make([]sum, dim)
		for c := range sums {
			sums[c].add(float64(l.downBias[c]))
		}
		for i, u := range units {
			got, want := act[token*len(units)+i], l.value(int(u), x[token*dim:(token+1)*dim])
			if masks != nil && masks[token*words+int(u)/64]>>(u%64)&1 == 0 {
				want = sum{}
			}
			if jumps := l.a.Activation == cuda.FATReLU && (got == 0) != (want.value == 0); !jumps { // at the threshold either is right
				b.near(fmt.Sprintf("%s: value of token %d unit %d", what, token, u), got, want)
			}
			for c := range sums {
				sums[c].add(float64(got) * float64(l.down.row(int(u))[c]))
			}
		}
		for c, want := range sums {
			b.near(fmt.Sprintf("%s: out of token %d column %d", what, token, c), out[token*dim+c], want)
		}
	}
}

// checkFlash: the sum over the rows with an effect, wherever they lie, has the bits of the sum over all rows.
func (b *bench) checkFlash() {
	const dim, units = 64, 600
	l := b.layer(ref.F16, dim, units, true, cuda.ReLU)
	x := b.floats(dim)
	act, dense := b.run(l.a, x, 1)
	var active []int32
	for u, v := range act {
		if v != 0 {
			active = append(active, int32(u))
		}
	}
	if len(active) < 10 || len(active) == units {
		b.Fatalf("%d of %d units are active: that shows nothing", len(active), units)
	}
	a := b.sparse(l, active, units)
	if _, flash := b.run(a, x, 1); !slices.Equal(flash, dense) {
		b.Error("a flash-resident layer differs from a dense one")
	}
	a.Every = true
	if _, flash := b.run(a, x, 1); !slices.Equal(flash, dense) {
		b.Error("reading every row changes the sum")
	}
}

// checkGELU bounds the error of the error function that port.h has: units are points x, of which the kernel gives x·½·(1 + erf(x/√2)).
func (b *bench) checkGELU() {
	const units, bound = 4001, 1e-6
	l := &layer{up: &matrix{format: ref.F32, cols: 1, bytes: make([]byte, 4*units), values: make([]float32, units)}}
	for u := range l.up.values {
		l.up.values[u] = float32(u-units/2) / 200
	}
	ref.F32.Encode(l.up.bytes, l.up.values)
	up := b.load(l.up)
	act, _ := b.run(cuda.FFN{Format: ref.F32, Up: up, Down: up, Rows: units, Dim: 1, Total: units, Activation: cuda.GELU}, []float32{1}, 1)
	worst := 0.0
	for u, x := range l.up.values {
		if x == 0 {
			continue
		}
		half := math.Abs(float64(x)) / 2
		worst = max(worst, math.Abs(float64(act[u])-activate(cuda.GELU, float64(x)))/half)
	}
	b.Logf("the error function is off by %.2g at most", worst)
	if !(worst <= bound) {
		b.Errorf("the error function is off by %g, more than %g", worst, bound)
	}
}

func (b *bench) checkRotary() {
	const context = 40
	for _, s := range [][4]int{{1, 2, 1, 1}, {4, 64, 32, 2}, {3, 80, 16, 3}, {2, 8, 0, 1}, {5, 6, 3, 0}} {
		heads, dim, half, tokens := s[0], s[1], s[2], s[3]
		frequencies := make([]float64, half)
		for i := range frequencies {
			frequencies[i] = math.Pow(10000, -float64(i)/float64(half))
		}
		x, positions := b.floats(tokens*heads*dim), b.ints(tokens, context)
		a := &cuda.Rotary{X: put(b, x), Turns: put(b, cuda.Turns(frequencies, context)), Positions: put(b, positions),
			Heads: heads, Dim: dim, Half: half, Tokens: tokens, Context: context}
		b.must(b.Rotary(b.stream, a))
		for j, got := range get[float32](b, a.X, len(x)) {
			at, want := j%dim, sum{}
			if at >= 2*half {
				want.add(float64(x[j]))
			} else {
				sin, cos := math.Sincos(float64(positions[j/(heads*dim)]) * frequencies[at%half])
				other := -half
				if at < half {
					sin, other = -sin, half
				}
				want.add(float64(x[j]) * cos)
				want.add(float64(x[j+other]) * sin)
			}
			b.near(fmt.Sprintf("%v element %d", s, j), got, want)
		}
	}
}

// attentionCase is a shape of attention: one token for each position, of a sequence of its own.
type attentionCase struct {
	heads, kvHeads, dim, context, window int
	positions                            []int32
}

func (b *bench) checkAttentions() {
	cases := []attentionCase{
		{1, 1, 1, 1, 0, []int32{0}},
		{4, 4, 16, 40, 0, []int32{39, 0}},
		{2, 1, 64, 300, 0, []int32{299, 127, 128}}, // the end of a block's span, and one beyond
		{2, 2, 130, 300, 130, []int32{280, 5, 129}},
		{2, 2, 8, 8, 0, nil},
	}
	for range 4 {
		kvHeads, context := 1+b.random.IntN(3), 1+b.random.IntN(200)
		cases = append(cases, attentionCase{kvHeads * (1 + b.random.IntN(3)), kvHeads, 1 + b.random.IntN(70), context, b.random.IntN(context + 1),
			[]int32{b.random.Int32N(int32(context)), int32(context - 1)}})
	}
	for _, f := range []ref.Format{ref.F16, ref.F32} {
		for _, c := range cases {
			b.checkAttention(f, c)
		}
	}
}

func (b *bench) checkAttention(f ref.Format, c attentionCase) {
	b.Helper()
	tokens, width := len(c.positions), c.kvHeads*c.dim
	cache := cuda.Cache{Format: f, Sequences: max(tokens, 1), Context: c.context, KVHeads: c.kvHeads, Dim: c.dim, Stride: c.context*width + 16}
	size := int64(cache.Sequences * f.Size(cache.Stride))
	cache.Keys, cache.Vals = b.room(size), b.room(size)
	b.must(b.d.Fill(cache.Keys.Ptr, 0xff, size, b.stream)) // not numbers
	b.must(b.d.Fill(cache.Vals.Ptr, 0xff, size, b.stream))
	keys, vals := make([]*matrix, tokens), make([]*matrix, tokens)
	for token, position := range c.positions {
		n := int(position) + 1
		keys[token], vals[token] = b.matrix(f, n, width), b.matrix(f, n, width)
		places, same := make([]int32, n), make([]int32, n)
		for p := range places {
			places[p], same[p] = int32(p), int32(token)
		}
		store := &cuda.Attention{Cache: cache, Seqs: put(b, same), Positions: put(b, places), Tokens: n}
		b.must(b.StoreKV(b.stream, store, put(b, keys[token].values), put(b, vals[token].values)))
	}
	q, seqs := b.floats(tokens*c.heads*c.dim), make([]int32, tokens)
	for token := range seqs {
		seqs[token] = int32(token)
	}
	a := &cuda.Attention{Cache: cache, Q: put(b, q), Out: b.room(int64(4 * len(q))), Seqs: put(b, seqs), Positions: put(b, c.positions),
		Scratch: b.room(cuda.AttentionScratch(c.heads, c.dim, tokens, c.context)), Heads: c.heads, Tokens: tokens, Longest: c.context, Window: c.window,
		Scale: float32(1 / math.Sqrt(float64(c.dim)))}
	b.must(b.Attention(b.stream, a))
	out := get[float32](b, a.Out, len(q))
	for token, position := range c.positions {
		for head := range c.heads {
			at := (token*c.heads + head) * c.dim
			want := attended(c, int(position), head, float64(a.Scale), q[at:at+c.dim], keys[token], vals[token])
			for i := range want {
				b.near(fmt.Sprintf("%v %+v: token %d head %d element %d", f, c, token, head, i), out[at+i], want[i])
			}
		}
	}
}

// attended is a head's output, in float64.
func attended(c attentionCase, position, head int, scale float64, q []float32, keys, vals *matrix) []sum {
	first := 0
	if c.window > 0 {
		first = max(0, position-c.window+1)
	}
	from := head / (c.heads / c.kvHeads) * c.dim
	var weights []float64
	top, total := math.Inf(-1), 0.0
	for p := first; p <= position; p++ {
		weights = append(weights, dot(keys.row(p)[from:from+c.dim], q).value*scale)
		top = max(top, weights[p-first])
	}
	for i, w := range weights {
		weights[i] = math.Exp(w - top)
		total += weights[i]
	}
	want := make([]sum, c.dim)
	for i, w := range weights {
		for e := range want {
			want[e].add(w / total * float64(vals.row(first + i)[from+e]))
		}
	}
	for e := range want {
		want[e].size *= 10 // the weights have errors too
	}
	return want
}
