package cuda

import "github.com/windrow-sim/windrow/kernels/ref"

// Activation is a function of a neuron's pre-activation.
type Activation int32

// The activation functions, numbered as in source/ffn.h.
const (
	ReLU    Activation = iota
	ReLU2              // the square of ReLU
	FATReLU            // x where x > Threshold, else 0
	DReLU              // ReLU of the gate times ReLU of the up row
	SiLU
	GELU    // exact
	GELUNew // GPT-2's tanh form
)

// FFN is the feed-forward part of one layer for some tokens: act = f(up·x + upBias), or with a gate
// f(gate·x + gateBias)·(up·x + upBias), and out = downBias + Σ act·down over the rows, in order of
// units.
//
// There are Rows rows. Row i is unit Units[i], ascending, and lies in slot Slots[i] of the row
// buffers; without a list both are i. The sum has FFNParts(Total) parts, each an equal share of the
// units 0 … Total−1; the parts are added in order. So absent rows do not change the result if their
// value is zero.
type FFN struct {
	Format         ref.Format
	Gate, Up, Down Mem // (places, dim) in the format; Gate is optional
	Slots, Units   Mem // (rows) int32; optional
	// (tokens, MaskBytes(total)): the units to compute for each token; optional: all
	Wanted   Mem
	GateBias Mem // (total) float32, by unit; optional
	UpBias   Mem // as GateBias
	DownBias Mem // (dim) float32; optional
	X        Mem // (tokens, dim) float32
	Act      Mem // (tokens, rows) float32: the factors of the down rows
	Scratch  Mem // FFNScratch(total, dim, tokens) bytes
	Out      Mem // (tokens, dim) float32

	Rows, Dim, Total, Tokens int

	Activation     Activation
	Threshold      float32 // of FATReLU
	ValueThreshold float32 // values of this magnitude or less become zero; 0 = none
	// Every reads the up and down rows of units with value zero too, so that all rows cost the
	// same. It is faster when most rows of the list have an effect, as predicted rows do.
	Every bool
}

// FFNParts returns the number of parts of the sum over a layer's units: enough to keep a large
// device busy, and always the same for a layer's size.
func FFNParts(total int) int {
	const share, mostParts = 128, 64 // units
	return min(max(total/share, 1), mostParts)
}

// FFNScratch is the size of FFN's room in bytes.
func FFNScratch(total, dim, tokens int) int64 {
	return product(FFNParts(total), dim, tokens, floatBytes)
}

// piece is how many columns a thread of ffn_down sums: Row::count in source/rows.h.
func piece(f ref.Format) int {
	if f == ref.F32 {
		return 4
	}
	return 8
}

func (a *FFN) check() error {
	c := shapes{operation: "feed-forward"}
	c.within("rows", a.Rows, 0, a.Total)
	c.within("dim", a.Dim, 1, most)
	c.within("total", a.Total, 1, most-63)
	c.within("tokens", a.Tokens, 0, mostTokens)
	c.format(a.Format, a.Dim)
	c.within("activation", int(a.Activation), 0, int(GELUNew))
	if c.err != nil {
		return c.err
	}
	// Slots are known on the device only, but every row has its own.
	rows := product(a.Rows, a.Format.Size(a.Dim))
	c.mayHold("Slots", a.Slots, product(a.Rows, intBytes))
	c.mayHold("Gate", a.Gate, rows)
	c.holds("Up", a.Up, rows)
	c.holds("Down", a.Down, rows)
	c.mayHold("Units", a.Units, product(a.Rows, intBytes))
	c.mayHold("Wanted", a.Wanted, product(a.Tokens, int(MaskBytes(a.Total))))
	c.mayHold("GateBias", a.GateBias, product(a.Total, floatBytes))
	c.mayHold("UpBias", a.UpBias, product(a.Total, floatBytes))
	c.mayHold("DownBias", a.DownBias, product(a.Dim, floatBytes))
	c.holds("X", a.X, product(a.Tokens, a.Dim, floatBytes))
	c.holds("Act", a.Act, product(a.Tokens, a.Rows, floatBytes))
	c.holds("Scratch", a.Scratch, FFNScratch(a.Total, a.Dim, a.Tokens))
	c.holds("Out", a.Out, product(a.Tokens, a.Dim, floatBytes))
	if a.Units == (Mem{}) && a.Rows != 0 && a.Rows != a.Total {
		c.fail("%d of %d rows without a list of their units", a.Rows, a.Total)
	}
	if a.Activation == DReLU && a.Gate == (Mem{}) {
		c.fail("drelu without a gate")
	}
	return c.err
}

// FFN launches a: three kernels.
func (k *Kernels) FFN(s Stream, a *FFN) error {
	if err := a.check(); err != nil {
		return err
	}
	parts := FFNParts(a.Total)
	err := k.launch(s, ffnValues+kernel(a.Format), Grid{ceil(a.Rows, rowWarps), a.Tokens, 1},
		rowThreads,
		PointerArg(a.Act.Ptr), PointerArg(a.Gate.Ptr), PointerArg(a.Up.Ptr),
		PointerArg(a.Slots.Ptr), PointerArg(a.Units.Ptr), PointerArg(a.Wanted.Ptr),
		PointerArg(a.GateBias.Ptr), PointerArg(a.UpBias.Ptr), PointerArg(a.X.Ptr), IntArg(a.Rows),
		IntArg(a.Dim), IntArg(ceil(a.Total, 64)),
		IntArg(int(a.Activation)), FloatArg(a.Threshold), FloatArg(a.ValueThreshold),
		boolArg(a.Every))
	if err != nil {
		return err
	}
	err = k.launch(s, ffnDown+kernel(a.Format), Grid{ceil(ceil(a.Dim, piece(a.Format)), rowThreads),
		parts, a.Tokens}, rowThreads,
		PointerArg(a.Scratch.Ptr), PointerArg(a.Down.Ptr), PointerArg(a.Act.Ptr),
		PointerArg(a.Slots.Ptr), PointerArg(a.Units.Ptr), PointerArg(a.DownBias.Ptr),
		IntArg(a.Rows), IntArg(a.Dim), IntArg(a.Total), boolArg(a.Every))
	if err != nil {
		return err
	}
	return k.launch(s, ffnJoin, Grid{ceil(a.Dim, flatThreads), a.Tokens, 1}, flatThreads,
		PointerArg(a.Out.Ptr), PointerArg(a.Scratch.Ptr), IntArg(a.Dim), IntArg(parts))
}
