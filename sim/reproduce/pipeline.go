package reproduce

import (
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/units"
)

// Pipeline is one token of NeuroPrefetcher: a dense prefix of d layers whose MLP is resident, and a
// sparse suffix whose MLPs keep K_max rows and read the rows that are new, for the whole token in
// one submission that goes on while the prefix computes:
//
//	layer 0 ─▶ predictor ─▶ layers 1 … d−1 ──┐
//	                        reads ───────────┴─▶ layers d … N−1 ─▶ head
//
// What does not fit into memory is paged by the operating system, one fault at a time.
type Pipeline struct {
	Layers    int
	Attention units.Bytes           // of one layer, resident everywhere
	MLP       units.Bytes           // of one layer
	Rows      units.Bytes           // K_max records: what a sparse layer keeps and multiplies with
	Predictor units.Bytes           // resident, and multiplied with once per token
	Head      units.Bytes           // output head
	Fixed     units.Bytes           // all else that is resident: embedding and norms
	Reserve   units.Bytes           // memory that must stay free
	New       func(int) units.Bytes // bytes that a sparse layer reads per token
	Compute   devicemodels.Term
	Reads     units.Rate // of records
	Paging    units.Rate // of faults
}

// Token is what one token takes.
type Token struct {
	IO       units.Nanos // reads of the suffix
	Prefix   units.Nanos // what they overlap with: layers 1 … d−1
	Rest     units.Nanos // compute that they do not: layer 0, predictor, suffix and head
	Paged    units.Nanos // faults
	Total    units.Nanos
	Read     units.Bytes
	Resident units.Bytes // that the split asks for
}

// Share is the part of the token during which reads or faults go on.
func (t *Token) Share() float64 { return (t.IO + t.Paged).Seconds() / t.Total.Seconds() }

// Regime names what bounds a token.
type Regime string

// The regimes of the sweep of d.
const (
	// the reads take longer than the prefix: more dense layers are faster
	ReadBound    Regime = "reads"
	ComputeBound Regime = "compute" // the prefix hides the reads
	MemoryBound  Regime = "memory"  // the split does not fit: pages come and go
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

// Resident is the memory that a split into d dense layers and the rest asks for, without the
// reserve.
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
		// The dense MLPs are what can be paged: they are gone through in the same order for every
		// token.
		size := float64(units.Bytes(d) * p.MLP)
		t.Paged = p.Paging.Time(units.Bytes(CyclicMiss(size, size-float64(over), Random) * size))
	}
	t.Total = t.Rest + max(t.IO, t.Prefix) + t.Paged
	return t
}

// Largest is the largest number of dense layers that fits into memory; 1 when none does.
func (p *Pipeline) Largest(memory units.Bytes) int {
	for d := p.Layers; d > 1; d-- {
		if p.Resident(d)+p.Reserve <= memory {
			return d
		}
	}
	return 1
}

// Best is the number of dense layers, at least 1, with which a token is fastest, of those that fit
// into memory; 1 when none does.
func (p *Pipeline) Best(memory units.Bytes) int {
	best, fastest := 1, units.Nanos(0)
	for d := 1; d <= p.Largest(memory); d++ {
		if t := p.Token(d, memory); fastest == 0 || t.Total < fastest {
			best, fastest = d, t.Total
		}
	}
	return best
}
