package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	lanes   = 8  // float32 values in a YMM register
	line    = 64 // bytes in a cache line: what one prefetch brings
	halfLen = 2  // bytes of a float16
	f32Len  = 4  // bytes of a float32
)

// accumulators is how many independent sums a dot product keeps. An FMA takes 4 cycles and two can start per cycle, so 8
// sums keep the multipliers busy.
const accumulators = 8

// begin starts a kernel that neither lets its pointers escape nor grows the stack.
func begin(c *build.Context, name, signature string, doc ...string) {
	c.Function(name)
	c.Attributes(attr.NOSPLIT)
	c.Pragma("noescape")
	c.SignatureExpr(signature)
	c.Doc(doc...)
}

func param(c *build.Context, name string) reg.GPVirtual {
	return c.Load(c.Param(name), c.GP64()).(reg.GPVirtual)
}

// counted emits a loop that runs body once for each full step of elements left in n, and takes them off n.
func counted(c *build.Context, label string, n reg.Register, step int, body func()) {
	c.JMP(operand.LabelRef(label + "_check"))
	c.Label(label)
	body()
	c.SUBQ(operand.U32(step), n)
	c.Label(label + "_check")
	c.CMPQ(n, operand.U32(step))
	c.JGE(operand.LabelRef(label))
}

func advance(c *build.Context, p reg.Register, bytes int) { c.ADDQ(operand.U32(bytes), p) }

func at(p reg.Register, offset int) operand.Mem { return operand.Mem{Base: p, Disp: offset} }

// scalarHalf widens the one float16 at p into the lowest lane of a register. The other lanes are zero.
func scalarHalf(c *build.Context, p reg.Register) reg.VecVirtual {
	h, x := c.GP32(), c.XMM()
	c.MOVWLZX(at(p, 0), h)
	c.VMOVD(h, x)
	c.VCVTPH2PS(x, x)
	return x
}

// sums returns zeroed accumulators.
func sums(c *build.Context) []reg.VecVirtual {
	acc := make([]reg.VecVirtual, accumulators)
	for i := range acc {
		acc[i] = c.YMM()
		c.VXORPS(acc[i], acc[i], acc[i])
	}
	return acc
}

// reduce adds all lanes of all accumulators pairwise into the lowest lane of the first and returns that.
func reduce(c *build.Context, acc []reg.VecVirtual) reg.Register {
	for n := len(acc) / 2; n > 0; n /= 2 {
		for i := range n {
			c.VADDPS(acc[i+n], acc[i], acc[i])
		}
	}
	low, high := acc[0].AsX(), c.XMM()
	c.VEXTRACTF128(operand.Imm(1), acc[0], high)
	c.VADDPS(high, low, low)
	c.VHADDPS(low, low, low)
	c.VHADDPS(low, low, low)
	return low
}

func dotF16(c *build.Context) {
	begin(c, "dotAVX2", "func(w *uint16, x *float32, n int, ahead int) float32",
		"dotAVX2 returns the sum of w[i]*x[i] for i in [0,n). While it reads w it prefetches the memory that lies",
		"ahead bytes beyond it, line by line; an address that is not mapped is harmless.")
	w, x, n, ahead := param(c, "w"), param(c, "x"), param(c, "n"), param(c, "ahead")
	acc := sums(c)
	block := accumulators * lanes
	counted(c, "block", n, block, func() {
		for off := 0; off < block*halfLen; off += line {
			c.PREFETCHT0(operand.Mem{Base: w, Index: ahead, Scale: 1, Disp: off})
		}
		for i, a := range acc {
			v := c.YMM()
			c.VCVTPH2PS(at(w, i*lanes*halfLen), v)
			c.VFMADD231PS(at(x, i*lanes*f32Len), v, a)
		}
		advance(c, w, block*halfLen)
		advance(c, x, block*f32Len)
	})
	counted(c, "vector", n, lanes, func() {
		v := c.YMM()
		c.VCVTPH2PS(at(w, 0), v)
		c.VFMADD231PS(at(x, 0), v, acc[0])
		advance(c, w, lanes*halfLen)
		advance(c, x, lanes*f32Len)
	})
	sum := reduce(c, acc)
	counted(c, "single", n, 1, func() {
		c.VFMADD231SS(at(x, 0), scalarHalf(c, w), sum)
		advance(c, w, halfLen)
		advance(c, x, f32Len)
	})
	finish(c, sum)
}

func finish(c *build.Context, sum reg.Register) {
	c.VZEROUPPER()
	c.Store(sum, c.ReturnIndex(0))
	c.RET()
}

func dotF32(c *build.Context) {
	begin(c, "dotF32AVX2", "func(a *float32, b *float32, n int) float32",
		"dotF32AVX2 returns the sum of a[i]*b[i] for i in [0,n).")
	a, b, n := param(c, "a"), param(c, "b"), param(c, "n")
	acc := sums(c)
	block := accumulators * lanes
	step := func(elements int) {
		advance(c, a, elements*f32Len)
		advance(c, b, elements*f32Len)
	}
	counted(c, "block", n, block, func() {
		for i, s := range acc {
			v := c.YMM()
			c.VMOVUPS(at(a, i*lanes*f32Len), v)
			c.VFMADD231PS(at(b, i*lanes*f32Len), v, s)
		}
		step(block)
	})
	counted(c, "vector", n, lanes, func() {
		v := c.YMM()
		c.VMOVUPS(at(a, 0), v)
		c.VFMADD231PS(at(b, 0), v, acc[0])
		step(lanes)
	})
	sum := reduce(c, acc)
	counted(c, "single", n, 1, func() {
		v := c.XMM()
		c.VMOVSS(at(a, 0), v)
		c.VFMADD231SS(at(b, 0), v, sum)
		step(1)
	})
	finish(c, sum)
}

// axpyLoops emits y[i] += factor*source[i]. vector loads lanes elements of the source at a byte offset of its i-th vector,
// single loads one; advanceSource moves the source on by a number of elements.
type axpyLoops struct {
	factor        reg.VecVirtual
	y, n          reg.Register
	prefetch      func()
	vector        func(i int) reg.VecVirtual
	single        func() reg.VecVirtual
	advanceSource func(elements int)
}

// axpyVectors is the number of vectors in one round of an axpy's main loop: one line of float16.
const axpyVectors = line / halfLen / lanes

func (l axpyLoops) emit(c *build.Context) {
	step := func(elements int) {
		l.advanceSource(elements)
		advance(c, l.y, elements*f32Len)
	}
	// v = factor·v + y, stored to y: one rounding for each element, in the vector loops and in the last one.
	update := func(i int) {
		v := l.vector(i)
		c.VFMADD213PS(at(l.y, i*lanes*f32Len), l.factor, v)
		c.VMOVUPS(v, at(l.y, i*lanes*f32Len))
	}
	counted(c, "block", l.n, axpyVectors*lanes, func() {
		l.prefetch()
		for i := range axpyVectors {
			update(i)
		}
		step(axpyVectors * lanes)
	})
	counted(c, "vector", l.n, lanes, func() {
		update(0)
		step(lanes)
	})
	counted(c, "single", l.n, 1, func() {
		v := l.single()
		c.VFMADD213SS(at(l.y, 0), l.factor.AsX(), v)
		c.VMOVSS(v, at(l.y, 0))
		step(1)
	})
	c.VZEROUPPER()
	c.RET()
}

func broadcast(c *build.Context, name string) reg.VecVirtual {
	v := c.YMM()
	c.Load(c.Param(name), v.AsX())
	c.VBROADCASTSS(v.AsX(), v)
	return v
}

func axpyF16(c *build.Context) {
	begin(c, "axpyAVX2", "func(a float32, w *uint16, y *float32, n int, ahead int)",
		"axpyAVX2 adds a*w[i] to y[i] for i in [0,n), rounding once. It prefetches as dotAVX2 does.")
	w, ahead := param(c, "w"), param(c, "ahead")
	axpyLoops{
		factor:   broadcast(c, "a"),
		y:        param(c, "y"),
		n:        param(c, "n"),
		prefetch: func() { c.PREFETCHT0(operand.Mem{Base: w, Index: ahead, Scale: 1}) },
		vector: func(i int) reg.VecVirtual {
			v := c.YMM()
			c.VCVTPH2PS(at(w, i*lanes*halfLen), v)
			return v
		},
		single:        func() reg.VecVirtual { return scalarHalf(c, w) },
		advanceSource: func(elements int) { advance(c, w, elements*halfLen) },
	}.emit(c)
}

func axpyF32(c *build.Context) {
	begin(c, "axpyF32AVX2", "func(a float32, x *float32, y *float32, n int)",
		"axpyF32AVX2 adds a*x[i] to y[i] for i in [0,n), rounding once.")
	x := param(c, "x")
	axpyLoops{
		factor:   broadcast(c, "a"),
		y:        param(c, "y"),
		n:        param(c, "n"),
		prefetch: func() {}, // the KV cache is read in order: the hardware sees it coming
		vector: func(i int) reg.VecVirtual {
			v := c.YMM()
			c.VMOVUPS(at(x, i*lanes*f32Len), v)
			return v
		},
		single: func() reg.VecVirtual {
			v := c.XMM()
			c.VMOVSS(at(x, 0), v)
			return v
		},
		advanceSource: func(elements int) { advance(c, x, elements*f32Len) },
	}.emit(c)
}

func widenF16(c *build.Context) {
	begin(c, "widenAVX2", "func(dst *float32, src *uint16, n int)",
		"widenAVX2 converts n float16 values to float32.")
	dst, src, n := param(c, "dst"), param(c, "src"), param(c, "n")
	step := func(elements int) {
		advance(c, src, elements*halfLen)
		advance(c, dst, elements*f32Len)
	}
	convert := func(i int) {
		v := c.YMM()
		c.VCVTPH2PS(at(src, i*lanes*halfLen), v)
		c.VMOVUPS(v, at(dst, i*lanes*f32Len))
	}
	const vectors = line / halfLen / lanes
	counted(c, "block", n, vectors*lanes, func() {
		for i := range vectors {
			convert(i)
		}
		step(vectors * lanes)
	})
	counted(c, "vector", n, lanes, func() {
		convert(0)
		step(lanes)
	})
	counted(c, "single", n, 1, func() {
		c.VMOVSS(scalarHalf(c, src), at(dst, 0))
		step(1)
	})
	c.VZEROUPPER()
	c.RET()
}

func streamRead(c *build.Context) {
	begin(c, "streamAVX2", "func(p *byte, blocks int) uint64",
		"streamAVX2 returns the sum of the 64-bit words of blocks*256 bytes.")
	p, n := param(c, "p"), param(c, "blocks")
	acc := sums(c)
	const vector = 32 // bytes
	counted(c, "block", n, 1, func() {
		for i, a := range acc {
			c.VPADDQ(at(p, i*vector), a, a)
		}
		advance(c, p, accumulators*vector)
	})
	for half := len(acc) / 2; half > 0; half /= 2 {
		for i := range half {
			c.VPADDQ(acc[i+half], acc[i], acc[i])
		}
	}
	low, high := acc[0].AsX(), c.XMM()
	c.VEXTRACTI128(operand.Imm(1), acc[0], high)
	c.VPADDQ(high, low, low)
	c.VPSHUFD(operand.Imm(0x4e), low, high) // swap the two words
	c.VPADDQ(high, low, low)
	sum := c.GP64()
	c.VMOVQ(low, sum)
	c.VZEROUPPER()
	c.Store(sum, c.ReturnIndex(0))
	c.RET()
}
