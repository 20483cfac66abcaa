package cuda

import (
	_ "embed"

	"github.com/windrow-sim/windrow/kernels/ref"
)

//go:generate ../../tools/cuda/ptx.sh -update

// ptx is kernels/source, compiled.
//
//go:embed kernels.ptx
var ptx string

// PTX returns the text that a Driver loads, for stand-ins of a device.
func PTX() string { return ptx }

// kernel numbers the entry points. Kernels for weights follow the order of ref.Format; kernels for
// the cache are f16, then f32.
type kernel int

const (
	matvec    kernel = 0
	ffnValues kernel = 5
	ffnDown   kernel = 10
	embed     kernel = 15
	kvStore   kernel = 20
	attend    kernel = 22
)

const (
	ffnJoin kernel = 24 + iota
	attendJoin
	rotary
	layerNorm
	rmsNorm
	add
	softCap
	maskAtLeast
	maskList
	scatter
	rowMove
	kernels
)

// names are the entry points by number.
func names() [kernels]string {
	return [kernels]string{
		"matvec_f16", "matvec_bf16", "matvec_f32", "matvec_q8", "matvec_q4",
		"ffn_values_f16", "ffn_values_bf16", "ffn_values_f32", "ffn_values_q8", "ffn_values_q4",
		"ffn_down_f16", "ffn_down_bf16", "ffn_down_f32", "ffn_down_q8", "ffn_down_q4",
		"embed_f16", "embed_bf16", "embed_f32", "embed_q8", "embed_q4",
		"kv_store_f16", "kv_store_f32",
		"attend_f16", "attend_f32",
		"ffn_join", "attend_join", "rotary", "layer_norm", "rms_norm", "add", "soft_cap",
		"mask_at_least", "mask_list", "scatter", "row_move",
	}
}

// Threads of a block.
const (
	warp        = 32
	rowThreads  = 128 // kernels with a warp per row
	rowWarps    = rowThreads / warp
	flatThreads = 256 // kernels with a thread per element
	normThreads = 512
	listThreads = 256 // LIST_THREADS in masks.h
)

// Kernels launches the kernels of this package on a device. Each method describes one operation,
// checks its operands (ErrShape) and launches it on a stream. All lists and biases are on the
// device; the zero Mem stands for an absent optional operand. Nothing is launched for a size of 0.
type Kernels struct {
	device    *Device
	functions [kernels]Function
}

// NewKernels compiles the kernels for a device. This takes up to some seconds when the driver has
// not cached them.
func NewKernels(d *Device) (*Kernels, error) {
	m, err := d.Load(ptx)
	if err != nil {
		return nil, err
	}
	k := &Kernels{device: d}
	for i, name := range names() {
		if k.functions[i], err = d.Function(m, name); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// launch runs a kernel unless its grid is empty.
func (k *Kernels) launch(s Stream, which kernel, g Grid, threads int, args ...Arg) error {
	if g.X == 0 || g.Y == 0 || g.Z == 0 {
		return nil
	}
	return k.device.Launch(k.functions[which], g, threads, s, args)
}

// MatVec computes y[t] = W·x[t] + bias for each token t, then max(·, 0) with ReLU. It reads W at
// the speed of memory.
type MatVec struct {
	Format             ref.Format
	W                  Mem // (rows, cols) in the format
	X                  Mem // (tokens, cols) float32
	Bias               Mem // (rows) float32; optional
	Y                  Mem // (tokens, rows) float32
	Rows, Cols, Tokens int
	ReLU               bool
}

// MatVec launches a.
func (k *Kernels) MatVec(s Stream, a *MatVec) error {
	c := shapes{operation: "mat-vec"}
	c.within("rows", a.Rows, 0, most)
	c.within("cols", a.Cols, 0, most)
	c.within("tokens", a.Tokens, 0, mostTokens)
	c.format(a.Format, a.Cols)
	if c.err != nil {
		return c.err
	}
	c.holds("W", a.W, product(a.Rows, a.Format.Size(a.Cols)))
	c.holds("X", a.X, product(a.Tokens, a.Cols, floatBytes))
	c.mayHold("Bias", a.Bias, product(a.Rows, floatBytes))
	c.holds("Y", a.Y, product(a.Tokens, a.Rows, floatBytes))
	if c.err != nil {
		return c.err
	}
	return k.launch(s, matvec+kernel(a.Format), Grid{ceil(a.Rows, rowWarps), a.Tokens, 1},
		rowThreads,
		PointerArg(a.Y.Ptr), PointerArg(a.W.Ptr), PointerArg(a.X.Ptr), PointerArg(a.Bias.Ptr),
		IntArg(a.Rows), IntArg(a.Cols), boolArg(a.ReLU))
}

// Norm normalises each row of X: a layer norm with moments of the row, or with RMS a root mean
// square norm. Rows are tokens, or the heads of all tokens. Y may be X.
type Norm struct {
	X, Y      Mem // (rows, dim) float32
	W, B      Mem // (dim) float32; B is not there with RMS
	Rows, Dim int
	Epsilon   float32
	RMS       bool
}

// Norm launches a.
func (k *Kernels) Norm(s Stream, a *Norm) error {
	c := shapes{operation: "norm"}
	c.within("rows", a.Rows, 0, most)
	c.within("dim", a.Dim, 1, most)
	if c.err != nil {
		return c.err
	}
	c.holds("X", a.X, product(a.Rows, a.Dim, floatBytes))
	c.holds("Y", a.Y, product(a.Rows, a.Dim, floatBytes))
	c.holds("W", a.W, product(a.Dim, floatBytes))
	if !a.RMS {
		c.holds("B", a.B, product(a.Dim, floatBytes))
	}
	if c.err != nil {
		return c.err
	}
	if a.RMS {
		return k.launch(s, rmsNorm, Grid{a.Rows, 1, 1}, normThreads, PointerArg(a.Y.Ptr),
			PointerArg(a.X.Ptr), PointerArg(a.W.Ptr), IntArg(a.Dim), FloatArg(a.Epsilon))
	}
	return k.launch(s, layerNorm, Grid{a.Rows, 1, 1}, normThreads,
		PointerArg(a.Y.Ptr), PointerArg(a.X.Ptr), PointerArg(a.W.Ptr), PointerArg(a.B.Ptr),
		IntArg(a.Dim), FloatArg(a.Epsilon))
}

// Add launches y += x over n float32.
func (k *Kernels) Add(s Stream, y, x Mem, n int) error {
	c := shapes{operation: "add"}
	c.within("n", n, 0, most)
	c.holds("y", y, product(max(n, 0), floatBytes))
	c.holds("x", x, product(max(n, 0), floatBytes))
	if c.err != nil {
		return c.err
	}
	return k.launch(s, add, Grid{ceil(n, flatThreads), 1, 1}, flatThreads, PointerArg(y.Ptr),
		PointerArg(x.Ptr), IntArg(n))
}

// SoftCap launches x = limit·tanh(x/limit) over n float32. limit is above 0.
func (k *Kernels) SoftCap(s Stream, x Mem, limit float32, n int) error {
	c := shapes{operation: "soft cap"}
	c.within("n", n, 0, most)
	if !(limit > 0) {
		c.fail("limit is %v, it must be above 0", limit)
	}
	c.holds("x", x, product(max(n, 0), floatBytes))
	if c.err != nil {
		return c.err
	}
	return k.launch(s, softCap, Grid{ceil(n, flatThreads), 1, 1}, flatThreads, PointerArg(x.Ptr),
		FloatArg(limit), IntArg(n))
}

// Embed looks up a row of a table for each token: ids[t] + Offset, times Scale. With Onto it is
// added to X, as learned positions are.
type Embed struct {
	Format            ref.Format
	Table             Mem // (rows, dim) in the format
	IDs               Mem // (tokens) int32; each plus Offset must be a row of the table
	X                 Mem // (tokens, dim) float32
	Rows, Dim, Tokens int
	Offset            int
	Onto              bool
	Scale             float32 // 0 = 1
}

// Embed launches a.
func (k *Kernels) Embed(s Stream, a *Embed) error {
	c := shapes{operation: "embed"}
	c.within("rows", a.Rows, 0, most)
	c.within("dim", a.Dim, 0, most)
	c.within("tokens", a.Tokens, 0, mostTokens)
	c.within("offset", a.Offset, 0, a.Rows)
	c.format(a.Format, a.Dim)
	if c.err != nil {
		return c.err
	}
	c.holds("Table", a.Table, product(a.Rows, a.Format.Size(a.Dim)))
	c.holds("IDs", a.IDs, product(a.Tokens, intBytes))
	c.holds("X", a.X, product(a.Tokens, a.Dim, floatBytes))
	if c.err != nil {
		return c.err
	}
	scale := a.Scale
	if scale == 0 {
		scale = 1
	}
	return k.launch(s, embed+kernel(a.Format), Grid{ceil(a.Dim, flatThreads), a.Tokens, 1},
		flatThreads,
		PointerArg(a.X.Ptr), PointerArg(a.Table.Ptr), PointerArg(a.IDs.Ptr), IntArg(a.Offset),
		IntArg(a.Dim), boolArg(a.Onto), FloatArg(scale))
}
