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

// class is a class with its judge, which fills in all but the names of a Runtime.
type class struct {
	name, systems string
	judge         func(q *assessment) Runtime
}

// classes are all of them, from the one that asks the most of memory.
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

// reserve is what must stay free of unified memory: below about 1 GiB the kernel of the study's
// Jetson cannot satisfy contiguous allocations.
const reserve = units.GiB

// room is what allocations find: on unified memory what is beyond the reserve, else the
// accelerator's memory.
func (q *assessment) room() units.Bytes {
	if q.machine.Unified() {
		return max(q.machine.Memory-reserve, 0)
	}
	return q.machine.Accelerator
}

// roomText says where room comes from.
func (q *assessment) roomText() string {
	if q.machine.Unified() {
		return fmt.Sprintf("%s of %s can be allocated, as %s must stay free", size(q.room()),
			size(q.machine.Memory), size(reserve))
	}
	return fmt.Sprintf("the accelerator has %s", size(q.machine.Accelerator))
}

// whole is everything that a dense runtime holds.
func (q *assessment) whole() units.Bytes { return q.model.Bytes + q.kv }

// wholeText names its parts.
func (q *assessment) wholeText() string {
	return fmt.Sprintf("weights of %s and a %d-bit KV cache of %s", size(q.model.Bytes),
		8*q.machine.KVElement, size(q.kv))
}

// fits is the row of everything in memory.
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

// offload moves what the accelerator does not hold to the host, and computes it there or fetches it
// for every token.
func (q *assessment) offload() Runtime {
	both := q.machine.Memory + q.machine.Accelerator
	switch {
	case q.whole() <= q.room():
		return q.fits()
	case q.machine.Unified():
		return Runtime{Verdict: VerdictNoCapacity,
			Reason: fmt.Sprintf("%s, %s; accelerator and host are "+
				"one pool, so what is moved to the host frees nothing", q.wholeText(),
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
	// fetched; a runtime that computes it on the host is not faster than the host's memory, whose
	// rate is not known
	if q.bus > 0 {
		r.RateLeast = min(r.RateMost, float64(q.bus)/float64(host))
	}
	return r
}

// mapped goes through the weights in the same order for every token, in the memory that the KV
// cache leaves. A token reads at least what does not fit, with the best replacement, and all with
// that of the page used longest ago.
func (q *assessment) mapped() Runtime {
	cache := q.machine.Memory - q.kv
	if q.model.Bytes <= cache {
		r := q.fits()
		r.Reason = fmt.Sprintf("%s; %s of memory, of which mapped pages need none contiguous",
			q.wholeText(), size(q.machine.Memory))
		return r
	}
	// The pages of one layer at least, or it thrashes within a layer.
	if layer := q.model.Bytes / units.Bytes(q.model.Layers); cache < layer {
		return Runtime{Verdict: VerdictAllocFails,
			Reason: fmt.Sprintf("a KV cache of %s leaves less of %s "+
				"than one layer of %s", size(q.kv), size(q.machine.Memory), size(layer))}
	}
	r := Runtime{Verdict: VerdictPages, ReadLeast: max(q.model.touched()-cache, 0),
		ReadMost: q.model.touched()}
	r.Reason = fmt.Sprintf("%s of weights through %s of page cache; of the %s that a token "+
		"touches, at least %s is read again and at most all",
		size(q.model.Bytes), size(cache), size(r.ReadMost), size(r.ReadLeast))
	used := q.model.touched() + q.kv
	r.RateMost, r.RateLeast = q.tokens(r.ReadLeast, q.faults, used), q.tokens(r.ReadMost, q.faults,
		used)
	return r
}

// placed puts whole tensors somewhere for good. On unified memory there is nothing between all in
// memory and all on disk: the study's FlexGen finds no mixed placement there. Of a layer on disk
// two are in memory, one being computed and one being read.
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

// predictorShare is what a predictor adds to the weights: NeuroPrefetcher's share of the base
// parameters (secondary).
const predictorShare = 0.0286

// flash keeps all but the FFN, a predictor, and rows for what a token needs of the FFN. Layers stay
// whole as far as there is room: the dense prefix.
func (q *assessment) flash() Runtime {
	m := &q.model
	if q.whole() <= q.room() {
		r := q.fits()
		if m.Needed > 0 { // it still computes no more than what is needed
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
