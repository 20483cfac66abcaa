package cuda

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/kernels/ref"
)

// Sizes in bytes of operands other than weights.
const (
	floatBytes = 4
	intBytes   = 4
	wordBytes  = 8
)

// shapes collects the errors of an operation's operands and keeps the first.
type shapes struct {
	operation string
	err       error
}

func (c *shapes) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("cuda: %s: %w: %s", c.operation, ErrShape, fmt.Sprintf(format, args...))
	}
}

// within demands lo ≤ n ≤ hi.
func (c *shapes) within(what string, n, lo, hi int) {
	if n < lo || n > hi {
		c.fail("%s is %d, it must be %d to %d", what, n, lo, hi)
	}
}

// most is the largest number that a kernel can take.
const most = 1<<31 - 1

// mostTokens is the limit of a grid's second and third dimension.
const mostTokens = 65535

// holds demands that m has size bytes.
func (c *shapes) holds(what string, m Mem, size int64) {
	if m.Size < size {
		c.fail("%s has %d bytes, it needs %d", what, m.Size, size)
	}
}

// mayHold demands that m has size bytes if there is an m.
func (c *shapes) mayHold(what string, m Mem, size int64) {
	if m != (Mem{}) {
		c.holds(what, m, size)
	}
}

// format demands a format of weights that rows of n can have.
func (c *shapes) format(f ref.Format, n int) {
	c.within("format", int(f), int(ref.F16), int(ref.Q4))
	if n%f.Group() != 0 {
		c.fail("rows of %d weights in %v, which come in groups of %d", n, f, f.Group())
	}
}

// product multiplies sizes, none of them negative. A product beyond int64 becomes the largest
// int64: no memory is that large.
func product(n ...int) int64 {
	p := int64(1)
	for _, v := range n {
		if v != 0 && p > math.MaxInt64/int64(v) {
			p = math.MaxInt64
			continue
		}
		p *= int64(v)
	}
	return p
}

// ceil is ⌈n/of⌉.
func ceil(n, of int) int { return (n + of - 1) / of }
