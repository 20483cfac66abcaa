package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	group        = 32            // weights that share a scale
	groupVectors = group / lanes // vectors they fill
	scaleLen     = halfLen       // bytes of the scale in front of them
	// groupsPerBlock is how many groups one round of the main loops takes. Each is a sum of its own
	// until its scale is known, so that their latencies overlap.
	groupsPerBlock = 4
)

// quantised is how a format with groups of small whole numbers is read.
type quantised struct {
	size int // bytes of a group
	// unpack loads the numbers of the group at p+offset as float32, in order.
	unpack func(p reg.Register, offset int) [groupVectors]reg.VecVirtual
}

func eightBits(c *build.Context) quantised {
	return quantised{
		size: scaleLen + group,
		unpack: func(p reg.Register, offset int) (q [groupVectors]reg.VecVirtual) {
			for i := range q {
				q[i] = c.YMM()
				c.VPMOVSXBD(at(p, offset+scaleLen+i*lanes), q[i])
				c.VCVTDQ2PS(q[i], q[i])
			}
			return q
		},
	}
}

// fourBits has weights 0 to 15 of a group in the low halves of its bytes and 16 to 31 in the high
// ones, all 8 too large.
func fourBits(c *build.Context) quantised {
	low, bias := c.YMM(), c.YMM()
	c.VPCMPEQD(low, low, low) // all ones
	c.VPSRLD(operand.Imm(31), low, bias)
	c.VPSLLD(operand.Imm(3), bias, bias) // 8
	c.VPSRLD(operand.Imm(28), low, low)  // 15
	return quantised{
		size: scaleLen + group/2,
		unpack: func(p reg.Register, offset int) (q [groupVectors]reg.VecVirtual) {
			const half = groupVectors / 2
			for i := range half {
				q[i], q[i+half] = c.YMM(), c.YMM()
				c.VPMOVZXBD(at(p, offset+scaleLen+i*lanes), q[i])
				c.VPSRLD(operand.Imm(4), q[i], q[i+half])
				c.VPAND(low, q[i], q[i])
			}
			for i := range q {
				c.VPSUBD(bias, q[i], q[i])
				c.VCVTDQ2PS(q[i], q[i])
			}
			return q
		},
	}
}

// scale loads the scale of the group at p+offset into all lanes.
func scale(c *build.Context, p reg.Register, offset int) reg.VecVirtual {
	s := c.YMM()
	c.VPBROADCASTW(at(p, offset), s.AsX())
	c.VCVTPH2PS(s.AsX(), s)
	return s
}

// inGroups emits loops over groups: body works on the i-th of a block, from the pointers w and v.
func inGroups(c *build.Context, k quantised, w, v, groups, ahead reg.Register, body func(i int)) {
	step := func(n int) {
		advance(c, w, n*k.size)
		advance(c, v, n*group*f32Len)
	}
	counted(c, "block", groups, groupsPerBlock, func() {
		prefetch(c, w, ahead, groupsPerBlock*k.size)
		for i := range groupsPerBlock {
			body(i)
		}
		step(groupsPerBlock)
	})
	counted(c, "group", groups, 1, func() {
		body(0)
		step(1)
	})
}

func dotQuantised(c *build.Context, name string, format func(*build.Context) quantised,
	doc ...string) {
	begin(c, name, "func(w *byte, x *float32, groups int, ahead int) float32", doc...)
	w, x, groups, ahead := param(c, "w"), param(c, "x"), param(c, "groups"), param(c, "ahead")
	acc := sums(c, groupsPerBlock)
	k := format(c)
	inGroups(c, k, w, x, groups, ahead, func(i int) {
		q := k.unpack(w, i*k.size)
		c.VMULPS(at(x, i*group*f32Len), q[0], q[0])
		for j := 1; j < groupVectors; j++ {
			c.VFMADD231PS(at(x, (i*group+j*lanes)*f32Len), q[j], q[0])
		}
		c.VFMADD231PS(scale(c, w, i*k.size), q[0], acc[i])
	})
	finish(c, reduce(c, acc))
}

// axpyQuantised multiplies each number by its scale, which is exact (11 and 8 bits), and rounds
// each element once like axpy.
func axpyQuantised(c *build.Context, name string, format func(*build.Context) quantised,
	doc ...string) {
	begin(c, name, "func(a float32, w *byte, y *float32, groups int, ahead int)", doc...)
	factor := broadcast(c, "a")
	w, y, groups, ahead := param(c, "w"), param(c, "y"), param(c, "groups"), param(c, "ahead")
	k := format(c)
	inGroups(c, k, w, y, groups, ahead, func(i int) {
		s := scale(c, w, i*k.size)
		for j, v := range k.unpack(w, i*k.size) {
			to := at(y, (i*group+j*lanes)*f32Len)
			c.VMULPS(s, v, v)
			c.VFMADD213PS(to, factor, v)
			c.VMOVUPS(v, to)
		}
	})
	c.VZEROUPPER()
	c.RET()
}
