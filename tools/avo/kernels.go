package main

import (
	"fmt"

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

// accumulators is how many independent sums a dot product keeps. An FMA takes 4 cycles and two can
// start per cycle, so 8 sums keep the multipliers busy.
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

// counted emits a loop that runs body once for each full step of elements left in n, and takes them
// off n.
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

// weights is how a format with one number per weight is read.
type weights struct {
	goType string // of one weight
	size   int    // bytes of one weight
	// vector loads the lanes weights at p+offset as float32, single the one at p, with zeros in the
	// other lanes.
	vector func(c *build.Context, p reg.Register, offset int) reg.VecVirtual
	single func(c *build.Context, p reg.Register) reg.VecVirtual
}

func half() weights {
	return weights{
		goType: "uint16",
		size:   halfLen,
		vector: func(c *build.Context, p reg.Register, offset int) reg.VecVirtual {
			v := c.YMM()
			c.VCVTPH2PS(at(p, offset), v)
			return v
		},
		single: func(c *build.Context, p reg.Register) reg.VecVirtual {
			h, v := c.GP32(), c.XMM()
			c.MOVWLZX(at(p, 0), h)
			c.VMOVD(h, v)
			c.VCVTPH2PS(v, v)
			return v
		},
	}
}

// bfloat is the upper half of a float32.
func bfloat() weights {
	return weights{
		goType: "uint16",
		size:   halfLen,
		vector: func(c *build.Context, p reg.Register, offset int) reg.VecVirtual {
			v := c.YMM()
			c.VPMOVZXWD(at(p, offset), v)
			c.VPSLLD(operand.Imm(16), v, v)
			return v
		},
		single: func(c *build.Context, p reg.Register) reg.VecVirtual {
			h, v := c.GP32(), c.XMM()
			c.MOVWLZX(at(p, 0), h)
			c.SHLL(operand.Imm(16), h)
			c.VMOVD(h, v)
			return v
		},
	}
}

func float() weights {
	return weights{
		goType: "float32",
		size:   f32Len,
		vector: func(c *build.Context, p reg.Register, offset int) reg.VecVirtual {
			v := c.YMM()
			c.VMOVUPS(at(p, offset), v)
			return v
		},
		single: func(c *build.Context, p reg.Register) reg.VecVirtual {
			v := c.XMM()
			c.VMOVSS(at(p, 0), v)
			return v
		},
	}
}

// prefetch brings the lines of the bytes that begin ahead bytes beyond p, unless ahead is 0. Steps
// of at most a line miss none, wherever p lies.
func prefetch(c *build.Context, p, ahead reg.Register, bytes int) {
	c.TESTQ(ahead, ahead)
	c.JZ(operand.LabelRef("here"))
	lines := (bytes + line - 1) / line
	for i := range lines {
		c.PREFETCHT0(operand.Mem{Base: p, Index: ahead, Scale: 1, Disp: i * bytes / lines})
	}
	c.Label("here")
}

// sums returns n zeroed accumulators.
func sums(c *build.Context, n int) []reg.VecVirtual {
	acc := make([]reg.VecVirtual, n)
	for i := range acc {
		acc[i] = c.YMM()
		c.VXORPS(acc[i], acc[i], acc[i])
	}
	return acc
}

// reduce adds all lanes of all accumulators pairwise into the lowest lane of the first and returns
// that.
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

func dot(c *build.Context, name string, k weights, doc ...string) {
	begin(c, name, fmt.Sprintf("func(w *%s, x *float32, n int, ahead int) float32", k.goType),
		doc...)
	w, x, n, ahead := param(c, "w"), param(c, "x"), param(c, "n"), param(c, "ahead")
	acc := sums(c, accumulators)
	step := func(elements int) {
		advance(c, w, elements*k.size)
		advance(c, x, elements*f32Len)
	}
	block := accumulators * lanes
	counted(c, "block", n, block, func() {
		prefetch(c, w, ahead, block*k.size)
		for i, a := range acc {
			c.VFMADD231PS(at(x, i*lanes*f32Len), k.vector(c, w, i*lanes*k.size), a)
		}
		step(block)
	})
	counted(c, "vector", n, lanes, func() {
		c.VFMADD231PS(at(x, 0), k.vector(c, w, 0), acc[0])
		step(lanes)
	})
	sum := reduce(c, acc)
	counted(c, "single", n, 1, func() {
		c.VFMADD231SS(at(x, 0), k.single(c, w), sum)
		step(1)
	})
	finish(c, sum)
}

func finish(c *build.Context, sum reg.Register) {
	c.VZEROUPPER()
	c.Store(sum, c.ReturnIndex(0))
	c.RET()
}

func broadcast(c *build.Context, name string) reg.VecVirtual {
	v := c.YMM()
	c.Load(c.Param(name), v.AsX())
	c.VBROADCASTSS(v.AsX(), v)
	return v
}

// axpyVectors is the number of vectors in one round of an axpy's main loop: one line of 16-bit
// weights.
const axpyVectors = 8

// axpy rounds each element once, in the vector loops and in the last one.
func axpy(c *build.Context, name string, k weights, doc ...string) {
	begin(c, name, fmt.Sprintf("func(a float32, w *%s, y *float32, n int, ahead int)", k.goType),
		doc...)
	factor := broadcast(c, "a")
	w, y, n, ahead := param(c, "w"), param(c, "y"), param(c, "n"), param(c, "ahead")
	step := func(elements int) {
		advance(c, w, elements*k.size)
		advance(c, y, elements*f32Len)
	}
	update := func(i int) {
		v := k.vector(c, w, i*lanes*k.size)
		c.VFMADD213PS(at(y, i*lanes*f32Len), factor, v)
		c.VMOVUPS(v, at(y, i*lanes*f32Len))
	}
	counted(c, "block", n, axpyVectors*lanes, func() {
		prefetch(c, w, ahead, axpyVectors*lanes*k.size)
		for i := range axpyVectors {
			update(i)
		}
		step(axpyVectors * lanes)
	})
	counted(c, "vector", n, lanes, func() {
		update(0)
		step(lanes)
	})
	counted(c, "single", n, 1, func() {
		v := k.single(c, w)
		c.VFMADD213SS(at(y, 0), factor.AsX(), v)
		c.VMOVSS(v, at(y, 0))
		step(1)
	})
	c.VZEROUPPER()
	c.RET()
}

func widenF16(c *build.Context) {
	begin(c, "widenAVX2", "func(dst *float32, src *uint16, n int)",
		"widenAVX2 converts n float16 values to float32.")
	dst, src, n := param(c, "dst"), param(c, "src"), param(c, "n")
	step := func(elements int) {
		advance(c, src, elements*halfLen)
		advance(c, dst, elements*f32Len)
	}
	k := half()
	convert := func(i int) { c.VMOVUPS(k.vector(c, src, i*lanes*halfLen), at(dst, i*lanes*f32Len)) }
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
		c.VMOVSS(k.single(c, src), at(dst, 0))
		step(1)
	})
	c.VZEROUPPER()
	c.RET()
}

func streamRead(c *build.Context) {
	begin(c, "streamAVX2", "func(p *byte, blocks int) uint64",
		"streamAVX2 returns the sum of the 64-bit words of blocks*256 bytes.")
	p, n := param(c, "p"), param(c, "blocks")
	acc := sums(c, accumulators)
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
