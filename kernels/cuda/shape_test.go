package cuda_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// TestShapes: operands that do not fit are refused before anything is launched, by operation and
// operand.
func TestShapes(t *testing.T) {
	b := newBench(t, 50)
	m, small := b.Room(4096), b.Room(2)
	vec := cuda.MatVec{W: m, X: m, Y: m, Rows: 8, Cols: 8, Tokens: 1}
	ffn := cuda.FFN{Up: m, Down: m, X: m, Act: m, Scratch: m, Out: m, Rows: 4, Dim: 8, Total: 4,
		Tokens: 1}
	attention := cuda.Attention{Cache: cuda.Cache{Keys: m, Vals: m, Sequences: 1, Context: 4,
		KVHeads: 2, Dim: 4},
		Q: m, Out: m, Seqs: m, Positions: m, Scratch: m, Heads: 4, Tokens: 1, Longest: 4}
	norm := cuda.Norm{X: m, Y: m, W: m, B: m, Rows: 2, Dim: 8}
	turn := cuda.Rotary{X: m, Table: m, Positions: m, Heads: 2, Dim: 8, Half: 4, Tokens: 1,
		Context: 4}
	lookup := cuda.Embed{Table: m, IDs: m, X: m, Rows: 8, Dim: 8, Tokens: 1}
	rows := cuda.RowBuffers{Up: m, Down: m, Places: 4, Size: 16}
	for name, c := range map[string]struct {
		err  error
		word string
	}{
		"mat-vec W": {b.MatVec(0, with(vec, func(a *cuda.MatVec) { a.W = small })),
			"W has 2 bytes, it needs 128"},
		"mat-vec bias": {b.MatVec(0, with(vec, func(a *cuda.MatVec) { a.Bias = small })),
			"Bias"},
		"mat-vec rows": {b.MatVec(0, with(vec, func(a *cuda.MatVec) { a.Rows = -1 })),
			"rows is -1"},
		"mat-vec format": {b.MatVec(0, with(vec, func(a *cuda.MatVec) { a.Format = 9 })),
			"format"},
		"mat-vec tokens": {b.MatVec(0, with(vec, func(a *cuda.MatVec) { a.Tokens = 1 << 16 })),
			"tokens"},
		"mat-vec group": {b.MatVec(0, with(vec, func(a *cuda.MatVec) { a.Format = ref.Q4 })),
			"groups of 32"},
		"huge": {b.MatVec(0, with(vec, func(a *cuda.MatVec) {
			a.Format, a.Rows,
				a.Cols = ref.F32, 1<<31-1, 1<<31-1
		})), "W"},
		"ffn up":   {b.FFN(0, with(ffn, func(a *cuda.FFN) { a.Up = small })), "Up"},
		"ffn gate": {b.FFN(0, with(ffn, func(a *cuda.FFN) { a.Gate = small })), "Gate"},
		"ffn scratch": {b.FFN(0, with(ffn, func(a *cuda.FFN) { a.Scratch = small })),
			"Scratch"},
		"ffn rows": {b.FFN(0, with(ffn, func(a *cuda.FFN) { a.Rows = 5 })),
			"rows is 5, it must be 0 to 4"},
		"ffn units": {b.FFN(0, with(ffn, func(a *cuda.FFN) { a.Rows = 3 })),
			"without a list of their units"},
		"ffn drelu": {
			b.FFN(0, with(ffn, func(a *cuda.FFN) { a.Activation = cuda.DReLU })), "gate"},
		"ffn activation": {b.FFN(0, with(ffn, func(a *cuda.FFN) { a.Activation = 7 })),
			"activation"},
		"attention heads": {b.Attention(0, with(attention, func(a *cuda.Attention) {
			a.Heads = 3
		})), "evenly"},
		"attention longest": {b.Attention(0, with(attention, func(a *cuda.Attention) {
			a.Longest = 5
		})), "longest is 5"},
		"attention cache": {b.Attention(0, with(attention, func(a *cuda.Attention) {
			a.Cache.Vals = small
		})), "Vals"},
		"attention format": {b.Attention(0, with(attention, func(a *cuda.Attention) {
			a.Cache.Format = ref.BF16
		})), "a cache of BF16"},
		"attention stride": {b.Attention(0, with(attention, func(a *cuda.Attention) {
			a.Cache.Sequences = 2
		})), "apart"},
		"attention far": {b.Attention(0, with(attention, func(a *cuda.Attention) {
			a.Cache.Sequences, a.Cache.Stride = 1<<30, math.MaxInt/8
		})), "Keys"},
		"attention last": {b.Attention(0, with(attention, func(a *cuda.Attention) {
			a.Cache.Sequences, a.Cache.Stride = 2, 2040
		})), "last sequence"},
		"store": {b.StoreKV(0, &attention, small, m), "keys"},
		"norm B": {b.Norm(0, with(norm, func(a *cuda.Norm) { a.B = cuda.Mem{} })),
			"B has 0 bytes"},
		"norm dim": {b.Norm(0, with(norm, func(a *cuda.Norm) { a.Dim = 0 })), "dim"},
		"rotary half": {b.Rotary(0, with(turn, func(a *cuda.Rotary) { a.Half = 5 })),
			"half"},
		"rotary turns": {b.Rotary(0, with(turn, func(a *cuda.Rotary) { a.Table = small })),
			"Turns"},
		"embed": {b.Embed(0, with(lookup, func(a *cuda.Embed) { a.Table = small })),
			"Table"},
		"add":   {b.Add(0, m, small, 8), "x has"},
		"add n": {b.Add(0, m, m, -1), "n is -1"},
		"cap":   {b.SoftCap(0, small, 1, 8), "x has"},
		"cap 0": {b.SoftCap(0, m, 0, 8), "limit is 0"},
		"mask": {b.MaskAtLeast(0, &cuda.MaskAtLeast{Scores: m, Mask: small, N: 8,
			Tokens: 1}), "Mask"},
		"list":             {b.MaskList(0, small, m, m, 8), "list"},
		"scatter":          {b.Scatter(0, &rows, small, m, m, 1), "staging"},
		"scatter too many": {b.Scatter(0, &rows, m, m, m, 5), "records"},
		"move":             {b.Move(0, &rows, small, m, 2), "from"},
		"move without places": {b.Move(0, &cuda.RowBuffers{Up: small, Down: m, Places: 4, Size: 16},
			m, m, 2), "Up"},
	} {
		if !errors.Is(c.err, cuda.ErrShape) || !strings.Contains(c.err.Error(), c.word) ||
			!strings.HasPrefix(c.err.Error(), "cuda: ") {
			t.Errorf("%s: %v; want ErrShape with %q", name, c.err, c.word)
		}
	}
}

// with is a copy that was changed.
func with[T any](a T, change func(*T)) *T {
	change(&a)
	return &a
}

func TestSliceOfMem(t *testing.T) {
	m := cuda.Mem{Ptr: 1000, Size: 100}
	if got := m.Slice(10, 90); got != (cuda.Mem{Ptr: 1010, Size: 90}) {
		t.Errorf("got %+v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a slice beyond the end did not panic")
		}
	}()
	m.Slice(10, 91)
}
