package devicemodels

import (
	"fmt"
	"math"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// Basis says what a time rests on, weakest first.
type Basis uint8

// The bases.
const (
	// Unknown: the device gives no number. The work takes no time, and a prediction has to say so.
	Unknown Basis = iota
	// Roofline: a bound (Williams, Waterman and Patterson, 2009), bytes over the memory's rate or
	// operations over their peak. No program is faster, and most are slower.
	Roofline
	// Scaled: measured for other weights (another precision, or dense ones in place of a
	// predictor's) and taken over by bytes.
	Scaled
	// Measured: on this machine and for such weights, or published for it.
	Measured
)

// String returns the name in lower case.
func (b Basis) String() string {
	switch b {
	case Measured:
		return "measured"
	case Scaled:
		return "scaled by bytes"
	case Roofline:
		return "roofline"
	}
	return "not known"
}

// Term is the cost of one kind of work. The fixed part is what makes small pieces slow: n bytes in
// one call reach a share of n/(n + Rate·Fixed) of the rate.
type Term struct {
	Name  string
	Fixed units.Nanos // per call
	Rate  units.Rate  // 0 = bytes take no time
	Bound units.Rate  // of the roofline; 0 = not known
	Basis Basis       // of Rate
}

// Time is what calls pieces of work of b bytes together take: calls·Fixed + b/Rate.
func (t Term) Time(b units.Bytes, calls int) units.Nanos {
	return units.Nanos(calls)*t.Fixed + t.Rate.Time(b)
}

// Efficiency is the share of the roofline that Rate reaches; 0 where one of them is not known.
func (t Term) Efficiency() float64 {
	if t.Bound <= 0 {
		return 0
	}
	return float64(t.Rate) / float64(t.Bound)
}

// String says what the term rests on: "dense: measured, 0.81 of the roofline".
func (t Term) String() string {
	s := t.Name + ": " + t.Basis.String()
	switch e := t.Efficiency(); {
	case t.Basis == Unknown:
		s += ", charged as no time"
	case t.Basis != Roofline && t.Rate == 0:
		s += " as a fixed time"
	case t.Basis != Roofline && e > 0:
		s += fmt.Sprintf(", %.3g of the roofline", e)
	}
	return s
}

// Compute is a host at one precision of weights: the form in which it is simulated. Host.At makes
// it, once per run.
type Compute struct {
	Dense Term // one call per mat-vec, bytes of its weights
	Rows  Term // one call per layer, bytes of the records that it uses
	Copy  Term // one call per row copied inside memory, bytes moved once
	// bytes of the keys and values of all positions so far, so that it grows with every token; no
	// fixed part
	KV        Term
	Predictor Term // one call per mat-vec, bytes of the predictor's weights
	Transfer  Term // one call per batch of loaded rows; the zero Term where no bus is crossed
	// bytes of all cached rows, once per token; the zero Term where holding rows costs nothing
	Held Term
}

// basePrecision is the one that Host's own rates are for.
const basePrecision = "f16"

// weightBytes is the size of one weight of a named precision. The scales of quantised blocks are
// not counted.
func weightBytes(precision string) (size float64, known bool) {
	switch precision {
	case "f32":
		return 4, true
	case "f16", "bf16":
		return 2, true
	case "q8":
		return 1, true
	}
	return 0, false
}

// At returns the costs for weights of a precision: "f16", "bf16", "f32" or "q8" in either case,
// empty for f16; other names are taken as weights of a size that is not known. The rate of each
// term is
//
//	measured   the rate for this very precision, if there is one; or none, when all of the work is
//	           in its fixed part
//	scaled     else the rate for f16 in bytes per second, but no faster than the roofline
//	roofline   else min(MemoryRate/traffic, peak/operations per byte)
//
// where the traffic of a byte is 1, and 2 for a copy, which reads and writes it. A mat-vec does two
// operations per weight, so that its peak in bytes of weights per second is ComputeGFLOPS·10⁹/2 ·
// bytes per weight. Of attention's operations on keys and values, and of the bus that a transfer
// crosses, only the memory's side is bounded.
func (h *Host) At(precision string) Compute {
	name := strings.ToLower(precision)
	if name == "" {
		name = basePrecision
	}
	base, own := name == basePrecision, h.Precisions[name]
	if base {
		own = Precision{DenseRate: h.DenseRate, RowRate: h.RowRate}
	}
	matvec, memory := h.roofline(name), h.MemoryRate
	c := Compute{
		Dense: term("dense", h.DenseFixed, own.DenseRate, h.DenseRate, matvec, base),
		Rows:  term("rows", h.RowFixed, own.RowRate, h.RowRate, matvec, base),
		Copy:  term("copies", h.CopyFixed, h.CopyRate, 0, memory/2, true),
		KV:    term("keys and values", 0, h.KVRate, 0, memory, true),
	}
	c.Predictor = term("predictor", h.DenseFixed, h.PredictorRate, c.Dense.Rate, matvec, false)
	if h.TransferRate > 0 {
		c.Transfer = term("transfer", h.TransferFixed, h.TransferRate, 0, memory, true)
	}
	if h.HeldRate > 0 {
		// no bytes move, so there is no roofline
		c.Held = Term{Name: "held rows", Rate: h.HeldRate, Basis: Measured}
	}
	if c.Predictor.Basis == Scaled {
		c.Predictor.Basis = min(Scaled, c.Dense.Basis) // what is taken over may be a bound itself
	}
	return c
}

// roofline is the bound of a mat-vec in bytes of weights per second; 0 when nothing bounds it.
func (h *Host) roofline(precision string) units.Rate {
	size, _ := weightBytes(precision)
	peak := units.Rate(h.ComputeGFLOPS * 1e9 / 2 * size)
	if h.MemoryRate <= 0 || peak <= 0 {
		return max(h.MemoryRate, peak)
	}
	return min(h.MemoryRate, peak)
}

// term chooses the rate as At says: own for this very work, else other for work like it, else the
// bound. Work whose fixed part was measured for it (fixedOwn) and no rate is all in its fixed part.
func term(name string, fixed units.Nanos, own, other, bound units.Rate, fixedOwn bool) Term {
	t := Term{Name: name, Fixed: fixed, Bound: bound}
	switch {
	case own > 0:
		t.Rate, t.Basis = own, Measured
	case other > 0 && bound > 0:
		t.Rate, t.Basis = min(other, bound), Scaled
	case other > 0:
		t.Rate, t.Basis = other, Scaled
	case fixed > 0 && fixedOwn:
		t.Basis = Measured
	case bound > 0:
		t.Rate, t.Basis = bound, Roofline
	}
	return t
}

// Terms returns what the host charges, always in the same order, without what it does not have.
func (c Compute) Terms() []Term {
	list := []Term{c.Dense, c.Rows, c.Copy, c.KV}
	for _, t := range []Term{c.Predictor, c.Transfer, c.Held} {
		if t.Name != "" {
			list = append(list, t)
		}
	}
	return list
}

// Warnings says what makes a prediction doubtful: work that is charged as no time, and rates above
// the roofline.
func (c Compute) Warnings() []string {
	var list, free []string
	for _, t := range c.Terms() {
		if t.Basis == Unknown {
			free = append(free, t.Name)
		}
		if e := t.Efficiency(); e > 1 {
			list = append(list, fmt.Sprintf("host: %s at %v is %.3g times the roofline of %v: "+
				"measured from a cache, or the roofline is too low; probe the machine again",
				t.Name, t.Rate, e, t.Bound))
		}
	}
	if len(free) > 0 {
		list = append(list, fmt.Sprintf("host: no rate is known for %s, charged as no time; "+
			"probe the machine, or give host.memory_rate for a bound", strings.Join(free, ", ")))
	}
	return list
}

// Decide is what the policy and the layout take to decide about one layer that needs n units.
func (h *Host) Decide(n int) units.Nanos { return h.DecideFixed + units.Nanos(n)*h.DecideUnit }

// Overlap is how long I/O and compute take when they start together. Alone, the I/O takes io for
// ioBytes and the compute takes compute for computeBytes of memory traffic, which it therefore
// wants at the rate c = computeBytes/compute.
//
// The I/O goes first: a drive is slow beside memory, and its controller does not wait. With
// IOContention = s it costs the memory s·ioBytes. While it lasts, memory of rate M has (M − c)·io
// bytes that compute does not want; what the I/O takes beyond them, compute loses, and catches up
// at its own rate:
//
//	lost = (s·ioBytes − (M − c)⁺·io) / c, between 0 and io
//	wall = max(io, compute + lost)
//
// So with separate memories (s = 0), or where compute leaves enough (it is limited by its
// arithmetic), wall = max(io, compute). Where compute uses all of M, wall is what moving all bytes
// takes, (computeBytes + s·ioBytes)/M. Where the I/O takes all of M, wall is the sum, and
// prefetching during compute gains nothing.
//
// s is 1 for what the drive writes, 2 when the processor reads it again to copy it meanwhile. But
// bytes are not all: the memory's controller also turns round between reads and writes and opens
// other pages, so that s is a measured, effective number and may be far above 2. To measure it, run
// compute with and without reads at a rate r: s = (M − c under reads)/r, from a compute that uses
// all of M. Where MemoryRate is not known there is no contention.
func (h *Host) Overlap(io units.Nanos, ioBytes units.Bytes, compute units.Nanos,
	computeBytes units.Bytes) units.Nanos {
	wall := max(io, compute)
	if h.MemoryRate <= 0 || io <= 0 || compute <= 0 || computeBytes <= 0 {
		return wall
	}
	// The conversions keep compilers from fusing operations, which would round differently from
	// machine to machine.
	wanted := float64(computeBytes) / float64(compute) // bytes per nanosecond
	spare := float64(max(0, float64(h.MemoryRate)/1e9-wanted) * float64(io))
	lost := (float64(h.IOContention*float64(ioBytes)) - spare) / wanted
	lost = math.Round(min(max(lost, 0), float64(io)))
	return max(wall, compute+min(units.Nanos(lost), io))
}
