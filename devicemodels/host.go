package devicemodels

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// Basis is the evidence for a time, weakest first.
type Basis uint8

// The bases.
const (
	// Unknown: the device gives no number. The work is charged as no time, and predictions warn.
	Unknown Basis = iota
	// Roofline: a bound (Williams, Waterman and Patterson, 2009), bytes over the memory's rate or
	// operations over their peak. No program is faster, and most are slower.
	Roofline
	// Scaled: measured for other weights and scaled by bytes. The others have another precision, or
	// are dense weights in place of a predictor's.
	Scaled
	// Measured: measured on this machine for such weights, or published for it.
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

// Term is the cost of one kind of work. The fixed part makes small pieces slow: n bytes in one call
// reach the share n/(n + Rate·Fixed) of the rate.
type Term struct {
	Name  string
	Fixed units.Nanos // per call
	Rate  units.Rate  // 0 = bytes take no time
	Bound units.Rate  // of the roofline; 0 = not known
	Basis Basis       // of Rate
}

// Time is the time of so many calls for b bytes together: calls·Fixed + b/Rate.
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

// String states the basis of the term: "dense: measured, 0.81 of the roofline".
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

// Compute holds the costs of a host for one precision of weights. The simulator uses this form.
// Host.At makes it, once per run.
type Compute struct {
	Dense Term // one call per mat-vec, bytes of its weights
	Rows  Term // one call per layer, bytes of the records that it uses
	Copy  Term // one call per row copied inside memory, bytes moved once
	// bytes of the keys and values of all positions so far, which grow with every token; no fixed
	// part
	KV        Term
	Predictor Term // one call per mat-vec, bytes of the predictor's weights
	Transfer  Term // one call per batch of loaded rows; the zero Term where no bus is crossed
	// bytes of all resident rows, once per token; the zero Term where residency costs nothing
	Held Term
}

// basePrecision is the precision of the rates in GPU, and in a Host that names none.
const basePrecision = "f16"

// base is the precision of DenseRate and RowRate.
func (h *Host) base() string { return cmp.Or(strings.ToLower(h.Precision), basePrecision) }

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

// At returns the costs for weights of a precision: "f16", "bf16", "f32" or "q8" in either case, or
// empty for f16. Any other name is a precision of unknown size. The rate of each term is
//
//	measured   the rate for this very precision, if there is one; or none, when all of the work is
//	           in its fixed part
//	scaled     else the rate for Host.Precision in bytes per second, but no faster than the
//	           roofline
//	roofline   else min(MemoryRate/traffic, peak/operations per byte)
//
// where the traffic of a byte is 1, and 2 for a copy, which reads and writes it. A mat-vec does two
// operations per weight. Its peak in bytes of weights per second is therefore ComputeGFLOPS·10⁹/2 ·
// bytes per weight. Attention over keys and values, and transfers over a bus, are bounded by memory
// alone.
func (h *Host) At(precision string) Compute {
	name := strings.ToLower(precision)
	if name == "" {
		name = basePrecision
	}
	base, own := name == h.base(), h.Precisions[name]
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
		c.Predictor.Basis = min(Scaled, c.Dense.Basis) // the scaled rate may be a bound itself
	}
	return c
}

// roofline is the bound of a mat-vec in bytes of weights per second; 0 = no bound.
func (h *Host) roofline(precision string) units.Rate {
	size, _ := weightBytes(precision)
	peak := units.Rate(h.ComputeGFLOPS * 1e9 / 2 * size)
	if h.MemoryRate <= 0 || peak <= 0 {
		return max(h.MemoryRate, peak)
	}
	return min(h.MemoryRate, peak)
}

// term chooses the rate as At says: own for this work, else other for similar work, else the bound.
// Work with a fixed part of its own (fixedOwn) and no rate takes its fixed part alone.
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

// HasAccelerator reports whether a processor of its own computes.
func (h *Host) HasAccelerator() bool {
	return h.Accelerator || h.TransferRate > 0 || h.SyncFixed > 0 || h.HeldRate > 0
}

// Terms returns the terms of the host, always in the same order, without those that it lacks.
func (c Compute) Terms() []Term {
	list := []Term{c.Dense, c.Rows, c.Copy, c.KV}
	for _, t := range []Term{c.Predictor, c.Transfer, c.Held} {
		if t.Name != "" {
			list = append(list, t)
		}
	}
	return list
}

// Warnings lists doubts about a prediction: work that is charged as no time, and rates above the
// roofline.
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

// Decide is the time of policy and layout for one layer that needs n units.
func (h *Host) Decide(n int) units.Nanos { return h.DecideFixed + units.Nanos(n)*h.DecideUnit }

// Overlap is the time of I/O and compute that start together. Alone, the I/O takes the time io for
// ioBytes. Alone, the compute takes the time compute for computeBytes of memory traffic, so it
// demands the rate c = computeBytes/compute.
//
// The I/O has priority: a drive is slow beside memory, and its controller does not wait. With
// IOContention = s it costs the memory s·ioBytes. While it lasts, memory of rate M has (M − c)·io
// bytes that compute does not demand. The I/O takes these first. Compute loses the rest and catches
// up at its own rate:
//
//	lost = (s·ioBytes − (M − c)⁺·io) / c, between 0 and io
//	wall = max(io, compute + lost)
//
// With separate memories (s = 0), or where arithmetic limits compute and leaves enough, wall =
// max(io, compute). Where compute uses all of M, wall is the time to move all bytes, (computeBytes
// + s·ioBytes)/M. Where the I/O takes all of M, wall is the sum, and prefetching during compute
// gains nothing.
//
// s is 1 for the bytes that the drive writes, and 2 when the processor also reads them to copy
// them. The memory's controller further loses time when it switches between reads and writes and
// opens other pages. s is therefore a measured, effective number and may be far above 2. To measure
// it, run a compute that uses all of M with and without reads at a rate r: s = (M − c under
// reads)/r. Without a MemoryRate there is no contention.
func (h *Host) Overlap(io units.Nanos, ioBytes units.Bytes, compute units.Nanos,
	computeBytes units.Bytes) units.Nanos {
	wall := max(io, compute)
	if h.MemoryRate <= 0 || io <= 0 || compute <= 0 || computeBytes <= 0 {
		return wall
	}
	// The conversions forbid fused operations, which round differently on different machines.
	wanted := float64(computeBytes) / float64(compute) // bytes per nanosecond
	spare := float64(max(0, float64(h.MemoryRate)/1e9-wanted) * float64(io))
	lost := (float64(h.IOContention*float64(ioBytes)) - spare) / wanted
	lost = math.Round(min(max(lost, 0), float64(io)))
	return max(wall, compute+min(units.Nanos(lost), io))
}
