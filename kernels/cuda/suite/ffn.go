package suite

import (
	"fmt"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// layer is a feed-forward layer: its weights by unit, and on the device.
type layer struct {
	dim, units                 int
	gate, up, down             []float32
	gateBias, upBias, downBias []float32
	// with all operands of a layer, and every unit in its own slot
	onDevice   cuda.FFN
	activation cuda.Activation
	threshold  float32
}

func (b *Bench) layer(f ref.Format, dim, units int, gated, biased bool,
	activation cuda.Activation) *layer {
	l := &layer{dim: dim, units: units, activation: activation, threshold: 0.4}
	a := &l.onDevice
	*a = cuda.FFN{Format: f, Rows: units, Dim: dim, Total: units, Activation: activation,
		Threshold: l.threshold}
	if gated {
		a.Gate, l.gate = b.weights(f, units*dim)
	}
	a.Up, l.up = b.weights(f, units*dim)
	a.Down, l.down = b.weights(f, units*dim)
	l.gateBias, l.upBias, l.downBias = make([]float32, units), make([]float32, units),
		make([]float32, dim)
	if biased {
		l.gateBias, l.upBias, l.downBias = b.Floats(units), b.Floats(units), b.Floats(dim)
		a.GateBias, a.UpBias, a.DownBias = Put(b, l.gateBias), Put(b, l.upBias), Put(b, l.downBias)
	}
	return l
}

// value is the plain twin of ffn_values, in float64.
func (l *layer) value(unit int, x []float32) sum {
	row := func(of []float32) []float32 { return of[unit*l.dim : (unit+1)*l.dim] }
	up := dot(row(l.up), x)
	up.add(float64(l.upBias[unit]))
	if l.gate == nil {
		return sum{activate(l.activation, l.threshold, up.value), up.size}
	}
	gate := dot(row(l.gate), x)
	gate.add(float64(l.gateBias[unit]))
	if l.activation == cuda.DReLU {
		up.value = max(up.value, 0)
	}
	return sum{activate(l.activation, l.threshold, gate.value) * up.value, gate.size *
		(1 + up.size)}
}

func activate(f cuda.Activation, threshold float32, x float64) float64 {
	switch f {
	case cuda.ReLU2:
		return max(x, 0) * max(x, 0)
	case cuda.FATReLU:
		if x > float64(threshold) {
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
func (b *Bench) run(a cuda.FFN, x []float32, tokens int) (act, out []float32) {
	b.Helper()
	a.Tokens, a.X = tokens, Put(b, x)
	a.Act, a.Out = b.Room(int64(4*tokens*a.Rows)), b.Room(int64(4*tokens*a.Dim))
	a.Scratch = b.Room(cuda.FFNScratch(a.Total, a.Dim, tokens))
	b.Must(b.FFN(b.Stream, &a))
	return Get[float32](b, a.Act, tokens*a.Rows), Get[float32](b, a.Out, tokens*a.Dim)
}

// check compares with plain Go; units lists the units of the rows.
func (b *Bench) check(what string, l *layer, units []int32, wanted func(token int, unit int32) bool,
	x, act, out []float32) {
	b.Helper()
	tokens := len(x) / l.dim
	for token := range tokens {
		h := x[token*l.dim : (token+1)*l.dim]
		sums := make([]sum, l.dim)
		for c := range sums {
			sums[c].add(float64(l.downBias[c]))
		}
		for i, u := range units {
			got, want := act[token*len(units)+i], l.value(int(u), h)
			if !wanted(token, u) {
				want = sum{}
			}
			// at the threshold either is right
			if jumps := l.activation == cuda.FATReLU && (got == 0) != (want.value == 0); !jumps {
				b.near(fmt.Sprintf("%s: value of token %d unit %d", what, token, u), got, want)
			}
			for c := range sums {
				sums[c].add(float64(got) * float64(l.down[int(u)*l.dim+c]))
			}
		}
		for c, want := range sums {
			b.near(fmt.Sprintf("%s: out of token %d column %d", what, token, c), out[token*l.dim+c],
				want)
		}
	}
}

func all(int, int32) bool { return true }

func (b *Bench) ffnDense() {
	activations := []cuda.Activation{cuda.ReLU, cuda.ReLU2, cuda.FATReLU, cuda.DReLU, cuda.SiLU,
		cuda.GELU, cuda.GELUNew}
	for _, f := range ref.Formats() {
		for i, activation := range activations {
			for _, gated := range []bool{false, true} {
				if activation == cuda.DReLU && !gated {
					continue
				}
				dim, units, tokens := length(f, []int{8, 33, 64, 1, 130}[i%5]), 1+b.Random.IntN(60),
					[]int{1, 3, 0, 2}[i%4]
				l := b.layer(f, dim, units, gated, i%2 == 0, activation)
				x := b.Floats(tokens * dim)
				act, out := b.run(l.onDevice, x, tokens)
				list := make([]int32, units)
				for u := range list {
					list[u] = int32(u)
				}
				b.check(fmt.Sprintf("%v activation %d gated %v", f, activation, gated), l, list,
					all, x, act, out)
			}
		}
	}
}

// ffnManyUnits has several parts, and columns for several blocks.
func (b *Bench) ffnManyUnits() {
	const dim, units = 1040, 300
	if cuda.FFNParts(units) < 2 {
		b.Fatal("one part only")
	}
	l := b.layer(ref.F16, dim, units, false, true, cuda.ReLU)
	x := b.Floats(dim)
	act, out := b.run(l.onDevice, x, 1)
	list := make([]int32, units)
	for u := range list {
		list[u] = int32(u)
	}
	b.check("many", l, list, all, x, act, out)
}

func (b *Bench) ffnSparse() {
	for _, f := range ref.Formats() {
		for _, rows := range []int{0, 1, 5, 130} {
			b.checkSparse(b.layer(f, length(f, 40), 270, true, true, cuda.ReLU), rows, 140, 3)
		}
	}
}

// checkSparse places some of a layer's rows in random slots; each token needs some of them.
func (b *Bench) checkSparse(l *layer, rows, places, tokens int) {
	b.Helper()
	units, slots := b.Ints(rows, l.units), b.Ints(rows, places)
	slices.Sort(units)
	a := l.onDevice
	a.Rows, a.Units, a.Slots = rows, Put(b, units), Put(b, slots)
	a.Up, a.Down = b.placed(a.Format, l.up, l.dim, places, units, slots), b.placed(a.Format, l.down,
		l.dim, places, units, slots)
	if l.gate != nil {
		a.Gate = b.placed(a.Format, l.gate, l.dim, places, units, slots)
	}
	words := (l.units + 63) / 64
	masks := make([]uint64, tokens*words)
	for i := range masks {
		masks[i] = b.Random.Uint64()
	}
	a.Wanted = Put(b, masks)
	wanted := func(token int, u int32) bool { return masks[token*words+int(u)/64]>>(u%64)&1 != 0 }
	x := b.Floats(tokens * l.dim)
	act, out := b.run(a, x, tokens)
	what := fmt.Sprintf("%v, %d rows of %d units, dim %d, activation %d", a.Format, rows, l.units,
		l.dim, a.Activation)
	b.check(what, l, units, wanted, x, act, out)
	a.Every = true
	if _, again := b.run(a, x, tokens); !slices.Equal(again, out) {
		b.Fatalf("%s: reading every row changes the sum", what)
	}
}

// placed makes a row buffer with row i of units in slot slots[i]; the other slots are NaN.
func (b *Bench) placed(f ref.Format, values []float32, dim, places int, units,
	slots []int32) cuda.Mem {
	b.Helper()
	words := f.Size(dim) / 2
	buffer := make([]uint16, places*words)
	for i := range buffer {
		buffer[i] = 0xffff
	}
	for i, u := range units {
		copy(buffer[int(slots[i])*words:],
			encode(f, slices.Clone(values[int(u)*dim:(int(u)+1)*dim])))
	}
	return Put(b, buffer)
}

// flashEqualsDense: the sum over the rows with an effect, wherever they lie, has the bits of the
// sum over all rows (invariant 2).
func (b *Bench) flashEqualsDense() {
	const dim, units = 64, 600
	for _, activation := range []cuda.Activation{cuda.ReLU, cuda.FATReLU, cuda.DReLU} {
		l := b.layer(ref.F16, dim, units, true, true, activation)
		x := b.Floats(dim)
		act, dense := b.run(l.onDevice, x, 1)
		var active []int32
		for u, v := range act {
			if v != 0 {
				active = append(active, int32(u))
			}
		}
		if len(active) < 10 || len(active) == units {
			b.Fatalf("%d of %d units are active: that shows nothing", len(active), units)
		}
		slots := b.Ints(len(active), units)
		a := l.onDevice
		a.Rows, a.Units, a.Slots = len(active), Put(b, active), Put(b, slots)
		a.Gate = b.placed(ref.F16, l.gate, dim, units, active, slots)
		a.Up, a.Down = b.placed(ref.F16, l.up, dim, units, active, slots), b.placed(ref.F16, l.down,
			dim, units, active, slots)
		if _, flash := b.run(a, x, 1); !slices.Equal(flash, dense) {
			b.Errorf("activation %d: a flash-resident layer differs from a dense one", activation)
		}
	}
}

// ffnCut: values up to the threshold are dropped, others are unchanged.
func (b *Bench) ffnCut() {
	l := b.layer(ref.F16, 32, 50, true, false, cuda.SiLU)
	x := b.Floats(32)
	whole, _ := b.run(l.onDevice, x, 1)
	a := l.onDevice
	a.ValueThreshold = 3
	cut, _ := b.run(a, x, 1)
	dropped := 0
	for i, v := range whole {
		want := v
		if math.Abs(float64(v)) <= 3 {
			want = 0
			dropped++
		}
		if cut[i] != want {
			b.Fatalf("unit %d: %g with a cut, %g without", i, cut[i], v)
		}
	}
	if dropped == 0 || dropped == len(whole) {
		b.Fatalf("%d of %d dropped: that shows nothing", dropped, len(whole))
	}
}

// gelus bounds the error of the error function, which a language may lack: units are points x, for
// which the kernel computes x·½·(1 + erf(x/√2)).
func (b *Bench) gelus() {
	const units, bound = 4001, 1e-6
	points := make([]float32, units)
	for u := range points {
		points[u] = float32(u-units/2) / 200
	}
	up := Put(b, points)
	act, _ := b.run(cuda.FFN{Format: ref.F32, Up: up, Down: up, Rows: units, Dim: 1, Total: units,
		Activation: cuda.GELU}, []float32{1}, 1)
	worst := 0.0
	for u, x := range points {
		if x != 0 {
			worst = max(worst, math.Abs(float64(act[u])-activate(cuda.GELU, 0,
				float64(x)))/(math.Abs(float64(x))/2))
		}
	}
	b.Logf("the error function is off by %.2g at most", worst)
	if !(worst <= bound) {
		b.Errorf("the error function is off by %g, more than %g", worst, bound)
	}
}
