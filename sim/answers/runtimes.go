package answers

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/units"
)

// The classes of runtimes.
const (
	ClassResident = "resident"
	ClassOffload  = "offload"
	ClassMapped   = "mapped"
	ClassPlaced   = "placed"
	ClassFlash    = "flash"
)

// class is a class of runtimes. judge returns its Runtime without the names.
type class struct {
	name, systems string
	judge         func(q *assessment) Runtime
}

// classes are all classes, in order of their demand for memory, the largest first.
func classes() ([]class, error) {
	list := []class{
		{ClassResident, "", (*assessment).resident}, {ClassOffload, "", (*assessment).offload},
		{ClassMapped, "", (*assessment).mapped},
		{ClassPlaced, "", (*assessment).placed}, {ClassFlash, "", (*assessment).flash},
	}
	study, err := PublishedStudy()
	if err != nil {
		return nil, err
	}
	for i := range list {
		for _, s := range study {
			if s.Class == list[i].name && s.Systems != "" {
				if list[i].systems != "" {
					list[i].systems += ", "
				}
				list[i].systems += s.Systems
			}
		}
	}
	return list, nil
}

// reserve is the unified memory that must stay free. Below about 1 GiB the kernel of the study's
// Jetson cannot satisfy contiguous allocations.
const reserve = units.GiB

// room is the memory for allocations: unified memory without the reserve, or the accelerator's
// memory.
func (q *assessment) room() units.Bytes {
	if q.machine.Unified() {
		return max(q.machine.Memory-reserve, 0)
	}
	return q.machine.Accelerator
}

// roomText describes room.
func (q *assessment) roomText() string {
	if q.machine.Unified() {
		return fmt.Sprintf("%s of %s can be allocated, as %s must stay free", size(q.room()),
			size(q.machine.Memory), size(reserve))
	}
	return fmt.Sprintf("the accelerator has %s", size(q.machine.Accelerator))
}

// whole is the memory of a dense runtime: all weights and the KV cache.
func (q *assessment) whole() units.Bytes { return q.model.Bytes + q.kv }

// wholeText describes whole.
func (q *assessment) wholeText() string {
	return fmt.Sprintf("weights of %s and a %d-bit KV cache of %s", size(q.model.Bytes),
		8*q.machine.KVElement, size(q.kv))
}

// fits is the verdict if everything is in memory.
func (q *assessment) fits() Runtime {
	r := Runtime{Verdict: VerdictFits, Reason: fmt.Sprintf("%s; %s", q.wholeText(), q.roomText())}
	r.RateMost = q.tokens(0, 0, q.model.touched()+q.kv)
	r.RateLeast = r.RateMost
	return r
}

func (q *assessment) resident() Runtime {
	if q.whole() <= q.room() {
		return q.fits()
	}
	return Runtime{Verdict: VerdictAllocFails, Reason: fmt.Sprintf("%s, %s; short of %s",
		q.wholeText(),
		q.roomText(), size(q.whole()-q.room()))}
}

// offload keeps the weights that do not fit the accelerator on the host. It computes them there, or
// fetches them for every token.
func (q *assessment) offload() Runtime {
	both := q.machine.Memory + q.machine.Accelerator
	switch {
	case q.whole() <= q.room():
		return q.fits()
	case q.machine.Unified():
		return Runtime{Verdict: VerdictNoCapacity,
			Reason: fmt.Sprintf("%s, %s; accelerator and host are "+
				"one pool, so that moving weights to the host frees nothing", q.wholeText(),
				q.roomText())}
	case q.whole() > both:
		return Runtime{Verdict: VerdictAllocFails,
			Reason: fmt.Sprintf("%s; accelerator and host have %s "+
				"together, short of %s", q.wholeText(), size(both), size(q.whole()-both))}
	}
	host := q.whole() - q.machine.Accelerator
	r := Runtime{Verdict: VerdictFits, Reason: fmt.Sprintf("%s; %s of it in the memory of the host",
		q.wholeText(), size(host))}
	r.RateMost = q.tokens(0, 0, q.model.touched()+q.kv)
	// The rate if the weights are fetched. A runtime that computes on the host is limited by the
	// host's memory, whose rate is not known.
	if q.bus > 0 {
		r.RateLeast = min(r.RateMost, float64(q.bus)/float64(host))
	}
	return r
}

// mapped reads the weights in the same order for every token, through the page cache that the KV
// cache leaves. With the best replacement, a token reads the pages that do not fit. With least
// recently used, it reads all.
func (q *assessment) mapped() Runtime {
	cache := q.machine.Memory - q.kv
	if q.model.Bytes <= cache {
		r := q.fits()
		r.Reason = fmt.Sprintf("%s; %s of memory, of which mapped pages need none contiguous",
			q.wholeText(), size(q.machine.Memory))
		return r
	}
	// With less than the pages of one layer it thrashes within a layer.
	if layer := q.model.Bytes / units.Bytes(q.model.Layers); cache < layer {
		return Runtime{Verdict: VerdictAllocFails,
			Reason: fmt.Sprintf("a KV cache of %s leaves less of %s "+
				"than one layer of %s", size(q.kv), size(q.machine.Memory), size(layer))}
	}
	r := Runtime{Verdict: VerdictPages, ReadLeast: max(q.model.touched()-cache, 0),
		ReadMost: q.model.touched()}
	r.Reason = fmt.Sprintf("%s of weights through %s of page cache. A token touches %s. How much "+
		"of it is read again depends on the page cache: between %s and all",
		size(q.model.Bytes), size(cache), size(r.ReadMost), size(r.ReadLeast))
	used := q.model.touched() + q.kv
	r.RateMost, r.RateLeast = q.tokens(r.ReadLeast, q.faults, used), q.tokens(r.ReadMost, q.faults,
		used)
	return r
}

// placed assigns every tensor to one place. On unified memory either all tensors are in memory or
// all are on disk: the study's FlexGen finds no mixed placement there. Of the layers on disk, two
// are in memory at a time, one being computed and one being read.
func (q *assessment) placed() Runtime {
	buffers := 2 * q.model.Bytes / units.Bytes(q.model.Layers)
	both := q.machine.Memory + q.machine.Accelerator
	if q.machine.Unified() {
		both = q.room()
	}
	r := Runtime{Verdict: VerdictAllDisk, ReadLeast: q.model.Bytes, ReadMost: q.model.Bytes}
	switch {
	case q.whole() <= both:
		return q.fits()
	case buffers+q.kv > q.room():
		return Runtime{Verdict: VerdictAllocFails,
			Reason: fmt.Sprintf("buffers for two layers of %s and a "+
				"KV cache of %s; %s", size(buffers), size(q.kv), q.roomText())}
	case q.machine.Unified():
		r.Reason = fmt.Sprintf("%s, %s; no mixed placement on one pool, so all %s is read for "+
			"every token", q.wholeText(), q.roomText(), size(q.model.Bytes))
	default:
		r.Verdict, r.ReadLeast = VerdictMixed, min(q.whole()+buffers-both, q.model.Bytes)
		r.ReadMost = r.ReadLeast
		r.Reason = fmt.Sprintf("%s; accelerator and host hold all but %s, which is read for "+
			"every token", q.wholeText(), size(r.ReadLeast))
	}
	r.RateMost = q.tokens(r.ReadLeast, q.long, q.model.Bytes+q.kv)
	r.RateLeast = r.RateMost
	return r
}

// predictorShare is the size of a predictor as a share of the base parameters (NeuroPrefetcher,
// secondary source).
const predictorShare = 0.0286

// flash keeps all but the FFN, a predictor, and the FFN rows that a token needs. As many layers as
// there is room for stay whole: the dense prefix.
func (q *assessment) flash() Runtime {
	m := &q.model
	if q.whole() <= q.room() {
		r := q.fits()
		if m.Needed > 0 { // it computes the needed rows only
			r.RateMost = q.tokens(0, 0, m.dense()+shareOf(m.FFN, m.Needed)+q.kv)
			r.RateLeast = r.RateMost
		}
		return r
	}
	if m.Needed == 0 {
		return Runtime{Verdict: VerdictUnknown,
			Reason: fmt.Sprintf("no active share of %s is published; "+
				"give one", m.Name)}
	}
	fixed, rows := m.dense()+shareOf(m.Bytes, predictorShare)+q.kv, shareOf(m.FFN, m.Needed)
	if fixed+rows > q.room() {
		return Runtime{Verdict: VerdictAllocFails,
			Reason: fmt.Sprintf("all but the FFN, a predictor and "+
				"the KV cache are %s, rows of %.3g %% of the FFN %s; %s",
				size(fixed), 100*m.Needed, size(rows), q.roomText())}
	}
	whole := 0 // layers
	if more := shareOf(m.FFN/units.Bytes(m.Layers), 1-m.Needed); more > 0 {
		whole = min(int((q.room()-fixed-rows)/more), m.Layers)
	}
	r := Runtime{Verdict: VerdictFits, ReadLeast: shareOf(m.FFN,
		m.Fresh*float64(m.Layers-whole)/float64(m.Layers))}
	r.ReadMost = r.ReadLeast
	r.Reason = fmt.Sprintf("%s and rows of %.3g %% of the FFN, %d of %d layers whole; %s; %s is "+
		"read for a token",
		size(fixed), 100*m.Needed, whole, m.Layers, q.roomText(), size(r.ReadLeast))
	used := m.dense() + rows + q.kv
	r.RateMost, r.RateLeast = q.tokens(r.ReadLeast, q.long, used), q.tokens(r.ReadMost,
		min(q.short, q.long), used)
	return r
}
