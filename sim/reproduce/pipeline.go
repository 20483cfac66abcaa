package reproduce

import (
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/units"
)

// Pipeline is one token of NeuroPrefetcher. A dense prefix of d layers has its MLPs resident. The
// MLPs of the sparse suffix keep K_max rows and read the new ones. The reads of the whole token are
// submitted at once and run while the prefix computes:
//
//	layer 0 ─▶ predictor ─▶ layers 1 … d−1 ──┐
//	                        reads ───────────┴─▶ layers d … N−1 ─▶ head
//
// The operating system pages the rest, one fault at a time.
type Pipeline struct {
	Layers    int
	Attention units.Bytes           // of one layer, resident everywhere
	MLP       units.Bytes           // of one layer
	Rows      units.Bytes           // K_max records, which a sparse layer keeps and multiplies with
	Predictor units.Bytes           // resident, and multiplied with once per token
	Head      units.Bytes           // output head
	Fixed     units.Bytes           // the other resident weights: embedding and norms
	Reserve   units.Bytes           // memory that must stay free
	New       func(int) units.Bytes // bytes that a sparse layer reads per token
	Compute   devicemodels.Term
	Reads     units.Rate // of records
	Paging    units.Rate // of faults
}

// Token has the times of one token.
type Token struct {
	IO       units.Nanos // reads of the suffix
	Prefix   units.Nanos // compute that overlaps with the reads: layers 1 … d−1
	Rest     units.Nanos // compute that does not: layer 0, predictor, suffix and head
	Paged    units.Nanos // faults
	Total    units.Nanos
	Read     units.Bytes
	Resident units.Bytes // memory of the split
}

// Share is the share of the token with reads or faults in flight.
func (t *Token) Share() float64 { return (t.IO + t.Paged).Seconds() / t.Total.Seconds() }

// Regime names the bottleneck of a token.
type Regime string

// The regimes of the sweep of d.
const (
	// the reads take longer than the prefix: more dense layers are faster
	ReadBound    Regime = "reads"
	ComputeBound Regime = "compute" // the prefix hides the reads
	MemoryBound  Regime = "memory"  // the split does not fit: pages are evicted and read again
)

// Regime returns the regime of a token.
func (t *Token) Regime() Regime {
	switch {
	case t.Paged > 0:
		return MemoryBound
	case t.Prefix >= t.IO:
		return ComputeBound
	}
	return ReadBound
}

// Resident is the memory of a split with d dense layers, without the reserve.
func (p *Pipeline) Resident(d int) units.Bytes {
	all := p.Fixed + p.Head + units.Bytes(p.Layers)*p.Attention + units.Bytes(d)*p.MLP
	if d < p.Layers {
		all += p.Predictor + units.Bytes(p.Layers-d)*p.Rows
	}
	return all
}

// Token computes a token with d ≥ 1 dense layers in the given memory.
func (p *Pipeline) Token(d int, memory units.Bytes) Token {
	t := Token{Resident: p.Resident(d)}
	layer := p.Attention + p.MLP
	rest := layer + p.Head
	if d < p.Layers {
		rest += p.Predictor
	}
	for l := d; l < p.Layers; l++ {
		t.Read += p.New(l)
		rest += p.Attention + p.Rows
	}
	t.IO, t.Prefix, t.Rest = p.Reads.Time(t.Read), p.Compute.Time(units.Bytes(d-1)*layer, 1),
		p.Compute.Time(rest, 1)
	if over := t.Resident + p.Reserve - memory; over > 0 {
		// The dense MLPs can be paged. Every token reads them in the same order.
		size := float64(units.Bytes(d) * p.MLP)
		t.Paged = p.Paging.Time(units.Bytes(CyclicMiss(size, size-float64(over), Random) * size))
	}
	t.Total = t.Rest + max(t.IO, t.Prefix) + t.Paged
	return t
}

// Largest is the largest number of dense layers that fits into memory; 1 if none does.
func (p *Pipeline) Largest(memory units.Bytes) int {
	for d := p.Layers; d > 1; d-- {
		if p.Resident(d)+p.Reserve <= memory {
			return d
		}
	}
	return 1
}

// Best is the number of dense layers, at least 1, with the fastest token of those that fit into
// memory; 1 if none fits.
func (p *Pipeline) Best(memory units.Bytes) int {
	best, fastest := 1, units.Nanos(0)
	for d := 1; d <= p.Largest(memory); d++ {
		if t := p.Token(d, memory); fastest == 0 || t.Total < fastest {
			best, fastest = d, t.Total
		}
	}
	return best
}
