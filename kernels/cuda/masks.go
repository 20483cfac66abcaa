package cuda

import "github.com/windrow-sim/windrow/kernels/ref"

// MaskBytes returns the size of a mask over n units: whole 64-bit words, so that the host can read
// it as []uint64.
func MaskBytes(n int) int64 { return product(ceil(n, 64), wordBytes) }

// MaskAtLeast sets bit i of each token's mask where score i is at least the threshold, or with
// NonZero where the score is not zero. Bits beyond N are zero.
type MaskAtLeast struct {
	Scores    Mem // (tokens, n) float32
	Mask      Mem // (tokens, MaskBytes(n))
	N, Tokens int
	Threshold float32
	NonZero   bool
}

// MaskAtLeast launches a.
func (k *Kernels) MaskAtLeast(s Stream, a *MaskAtLeast) error {
	c := shapes{operation: "mask"}
	c.within("n", a.N, 0, most-63)
	c.within("tokens", a.Tokens, 0, mostTokens)
	if c.err != nil {
		return c.err
	}
	c.holds("Scores", a.Scores, product(a.Tokens, a.N, floatBytes))
	c.holds("Mask", a.Mask, product(a.Tokens, int(MaskBytes(a.N))))
	if c.err != nil {
		return c.err
	}
	words := 2 * ceil(a.N, 64)
	return k.launch(s, maskAtLeast, Grid{ceil(words, rowWarps), a.Tokens, 1}, rowThreads,
		PointerArg(a.Mask.Ptr), PointerArg(a.Scores.Ptr), IntArg(a.N), IntArg(words),
		FloatArg(a.Threshold), boolArg(a.NonZero))
}

// MaskList launches the listing of one mask over n units: the set units, ascending, as int32 into
// list (room for n), and their number as an int32 into count.
func (k *Kernels) MaskList(s Stream, list, count, mask Mem, n int) error {
	c := shapes{operation: "list of a mask"}
	c.within("n", n, 0, most-63)
	if c.err != nil {
		return c.err
	}
	c.holds("list", list, product(n, intBytes))
	c.holds("count", count, intBytes)
	c.holds("mask", mask, MaskBytes(n))
	if c.err != nil {
		return c.err
	}
	return k.launch(s, maskList, Grid{1, 1, 1}, listThreads, PointerArg(list.Ptr),
		PointerArg(count.Ptr), PointerArg(mask.Ptr), IntArg(2*ceil(n, 64)))
}

// Predictor predicts the active units of a layer, as engine/predictor does: those with W2·f(W1·x +
// B1) + B2 ≥ Cut, where f is max(·, 0), or the identity with Linear.
type Predictor struct {
	Format           ref.Format
	W1, W2           Mem // (rank, dim) and (units, rank) in the format
	B1, B2           Mem // (rank) and (units) float32; optional
	X                Mem // (tokens, dim) float32
	Hidden           Mem // (tokens, rank) float32: room
	Scores           Mem // (tokens, units) float32
	Mask             Mem // (tokens, MaskBytes(units))
	Dim, Rank, Units int
	Tokens           int
	MinLogit         float32
	Linear           bool
}

// Predict launches a: three kernels.
func (k *Kernels) Predict(s Stream, a *Predictor) error {
	err := k.MatVec(s, &MatVec{Format: a.Format, W: a.W1, X: a.X, Bias: a.B1, Y: a.Hidden,
		Rows: a.Rank, Cols: a.Dim, Tokens: a.Tokens, ReLU: !a.Linear})
	if err != nil {
		return err
	}
	err = k.MatVec(s, &MatVec{Format: a.Format, W: a.W2, X: a.Hidden, Bias: a.B2, Y: a.Scores,
		Rows: a.Units, Cols: a.Rank, Tokens: a.Tokens})
	if err != nil {
		return err
	}
	return k.MaskAtLeast(s, &MaskAtLeast{Scores: a.Scores, Mask: a.Mask, N: a.Units,
		Tokens: a.Tokens, Threshold: a.MinLogit})
}
