package cuda

import (
	"math"

	"github.com/windrow-sim/windrow/kernels/ref"
)

// Cache holds one layer's keys and values of all sequences: (sequence, position, kv_head, dim),
// with Stride elements from one sequence to the next.
type Cache struct {
	Format             ref.Format // F16 or F32
	Keys, Vals         Mem
	Sequences, Context int
	KVHeads, Dim       int
	Stride             int
}

func (c *shapes) cache(a *Cache) {
	c.within("sequences", a.Sequences, 1, most)
	c.within("context", a.Context, 1, most)
	c.within("kv_heads", a.KVHeads, 1, most)
	c.within("dim of a head", a.Dim, 1, most)
	if a.Format != ref.F16 && a.Format != ref.F32 {
		c.fail("a cache of %v: it can be F16 or F32", a.Format)
	}
	if c.err != nil {
		return
	}
	one := product(a.Context, a.KVHeads, a.Dim, a.Format.Size(1))
	stride := product(max(a.Stride, 0), a.Format.Size(1))
	if a.Sequences > 1 && stride < one {
		c.fail("sequences are %d elements apart, %d bytes: one has %d", a.Stride, stride, one)
	}
	size := product(a.Sequences-1, int(stride))
	c.holds("Keys", a.Keys, size)
	c.holds("Vals", a.Vals, size)
	c.holds("Keys of the last sequence", Mem{Size: a.Keys.Size - size}, one)
	c.holds("Vals of the last sequence", Mem{Size: a.Vals.Size - size}, one)
}

// variant is the number of a format among the kernels of the cache.
func (a *Cache) variant() kernel {
	if a.Format == ref.F32 {
		return 1
	}
	return 0
}

// RotaryTable returns the table of Rotary for positions 0 … context−1: the cosine and sine of
// position·frequency, computed in float64.
func RotaryTable(frequencies []float64, context int) []float32 {
	list := make([]float32, 0, 2*context*len(frequencies))
	for p := range context {
		for _, f := range frequencies {
			sin, cos := math.Sincos(float64(p) * f)
			list = append(list, float32(cos), float32(sin))
		}
	}
	return list
}

// Rotary rotates the first 2·Half elements of each head by their position (RoPE): elements i and i
// + Half are the coordinates of a point.
type Rotary struct {
	X                                 Mem // (tokens, heads, dim) float32
	Table                             Mem // (context, half, 2) float32, made by Turns
	Positions                         Mem // (tokens) int32, below context
	Heads, Dim, Half, Tokens, Context int
}

// Rotary launches a.
func (k *Kernels) Rotary(s Stream, a *Rotary) error {
	c := shapes{operation: "rotary"}
	c.within("heads", a.Heads, 0, most)
	c.within("dim of a head", a.Dim, 1, most)
	c.within("half", a.Half, 0, a.Dim/2)
	c.within("tokens", a.Tokens, 0, mostTokens)
	c.within("context", a.Context, 1, most)
	if c.err != nil {
		return c.err
	}
	c.holds("X", a.X, product(a.Tokens, a.Heads, a.Dim, floatBytes))
	c.holds("Turns", a.Table, product(a.Context, a.Half, 2*floatBytes))
	c.holds("Positions", a.Positions, product(a.Tokens, intBytes))
	if c.err != nil {
		return c.err
	}
	return k.launch(s, rotary, Grid{ceil(a.Heads*a.Half, flatThreads), a.Tokens, 1}, flatThreads,
		PointerArg(a.X.Ptr), PointerArg(a.Table.Ptr), PointerArg(a.Positions.Ptr), IntArg(a.Heads),
		IntArg(a.Dim), IntArg(a.Half))
}

// Attention computes the attention of some tokens over the positions up to their own. The keys and
// values must be in the cache: StoreKV stores those of all tokens first. Queries are scaled by
// Scale; Heads/KVHeads neighbouring heads share keys.
type Attention struct {
	Cache     Cache
	Q, Out    Mem // (tokens, heads, dim) float32
	Seqs      Mem // (tokens) int32: which sequence of the cache
	Positions Mem // (tokens) int32
	Scratch   Mem // AttentionScratch bytes
	Heads     int
	Tokens    int
	Longest   int // above every position
	Window    int // positions that a query sees, its own included; 0 = all
	Scale     float32
	Cap       float32 // bounds the scaled scores softly, Cap·tanh(score/Cap); 0 = not
}

// span is how many positions a block looks at, SPAN in attention.h.
const span = 128

func (a *Attention) parts() int {
	n := a.Longest
	if a.Window > 0 {
		n = min(n, a.Window)
	}
	return ceil(n, span)
}

// AttentionScratch returns the bytes of scratch memory for tokens that see up to positions
// positions.
func AttentionScratch(heads, dim, tokens, positions int) int64 {
	const found = 2 // FOUND in attention.h
	return product(heads, dim+found, tokens, floatBytes, ceil(positions, span))
}

// StoreKV launches the copy of the tokens' keys and values, (tokens, kv_heads, dim) float32, into
// the cache.
func (k *Kernels) StoreKV(s Stream, a *Attention, keys, vals Mem) error {
	c := shapes{operation: "store of keys and values"}
	c.within("tokens", a.Tokens, 0, mostTokens)
	c.cache(&a.Cache)
	if c.err != nil {
		return c.err
	}
	width := a.Cache.KVHeads * a.Cache.Dim
	c.holds("keys", keys, product(a.Tokens, width, floatBytes))
	c.holds("vals", vals, product(a.Tokens, width, floatBytes))
	c.holds("Seqs", a.Seqs, product(a.Tokens, intBytes))
	c.holds("Positions", a.Positions, product(a.Tokens, intBytes))
	if c.err != nil {
		return c.err
	}
	return k.launch(s, kvStore+a.Cache.variant(), Grid{ceil(width, flatThreads), a.Tokens, 1},
		flatThreads,
		PointerArg(a.Cache.Keys.Ptr), PointerArg(a.Cache.Vals.Ptr), PointerArg(keys.Ptr),
		PointerArg(vals.Ptr), PointerArg(a.Seqs.Ptr), PointerArg(a.Positions.Ptr),
		IntArg(width), LongArg(int64(a.Cache.Stride)))
}

func (a *Attention) check() error {
	c := shapes{operation: "attention"}
	c.cache(&a.Cache)
	c.within("tokens", a.Tokens, 0, mostTokens)
	c.within("heads", a.Heads, 1, most)
	c.within("longest", a.Longest, 1, a.Cache.Context)
	c.within("window", a.Window, 0, most)
	if c.err != nil {
		return c.err
	}
	if a.Heads%a.Cache.KVHeads != 0 {
		c.fail("%d heads cannot share %d kv_heads evenly", a.Heads, a.Cache.KVHeads)
	}
	c.within("parts of a context", a.parts(), 1, mostTokens)
	size := product(a.Tokens, a.Heads, a.Cache.Dim, floatBytes)
	c.holds("Q", a.Q, size)
	c.holds("Out", a.Out, size)
	c.holds("Seqs", a.Seqs, product(a.Tokens, intBytes))
	c.holds("Positions", a.Positions, product(a.Tokens, intBytes))
	c.holds("Scratch", a.Scratch, AttentionScratch(a.Heads, a.Cache.Dim, a.Tokens, a.parts()*span))
	return c.err
}

// Attention launches a: two kernels.
func (k *Kernels) Attention(s Stream, a *Attention) error {
	if err := a.check(); err != nil {
		return err
	}
	parts := a.parts()
	err := k.launch(s, attend+a.Cache.variant(), Grid{a.Heads, parts, a.Tokens}, rowThreads,
		PointerArg(a.Scratch.Ptr), PointerArg(a.Q.Ptr), PointerArg(a.Cache.Keys.Ptr),
		PointerArg(a.Cache.Vals.Ptr), PointerArg(a.Seqs.Ptr), PointerArg(a.Positions.Ptr),
		IntArg(a.Heads), IntArg(a.Cache.KVHeads), IntArg(a.Cache.Dim),
		LongArg(int64(a.Cache.Stride)), IntArg(a.Window), FloatArg(a.Scale),
		FloatArg(a.Cap))
	if err != nil {
		return err
	}
	return k.launch(s, attendJoin, Grid{a.Heads, a.Tokens, 1}, rowThreads,
		PointerArg(a.Out.Ptr), PointerArg(a.Scratch.Ptr), IntArg(a.Heads), IntArg(a.Cache.Dim),
		IntArg(parts))
}
