package layout

import (
	"cmp"
	"slices"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// Batch is a prefetch batch: units of one layer that are read into the staging buffer together, and
// whose rows are scattered together.
type Batch struct {
	Units []uint32 // ascending
	Plan  Plan
}

// BatchLimit returns the most bytes that a prefetch batch may take of a staging buffer of room
// bytes. That is half of the buffer, because one half is read while the rows of the other are
// scattered, or all of it, if half has no room for a record. A room of 0 stands for a buffer that
// grows; its limit is 0, for none. A buffer without room for one aligned record is an error that
// names the size needed.
func (p *Planner) BatchLimit(room int64) (int64, error) {
	if room == 0 {
		return 0, nil
	}
	need := Rounded(p.footprint())
	if room < need {
		return 0, refusal.Config("layout: a staging buffer of %v: a record of %v, read in blocks "+
			"of %v, takes up to %v of it; give it at least %v", units.Bytes(room), p.geo.Record,
			p.opt.Align, units.Bytes(need), units.Bytes(need))
	}
	if half := Half(room); half >= need {
		return half, nil
	}
	return room / StagingAlign * StagingAlign, nil
}

// footprint returns the most bytes of staging buffer that the reads of one unit take.
func (p *Planner) footprint() int64 {
	align, parts := int64(p.opt.Align), int64(p.geo.parts())
	stride, record := int64(p.geo.Stride)/parts, int64(p.geo.Record)/parts
	step := gcd(align, stride) // records begin at multiples of it
	for _, base := range p.geo.Base {
		step = gcd(step, base)
	}
	aligned := func(size int64) int64 { return (align - step + size + align - 1) / align * align }
	if p.opt.Coalesce && p.geo.Units <= 1+p.opt.Gap { // the gap joins the parts
		return aligned((parts-1)*int64(p.geo.Units)*stride + record)
	}
	return parts * aligned(record)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Batches cuts what a layer loads (ascending, without repeats) into prefetch batches and plans the
// reads of each. It appends them to batches, whose spare capacity it reuses. The Units of a batch
// may share memory with load.
//
// limit is a result of BatchLimit; 0 = none. The cuts are those of an engine with a staging buffer
// of that size:
//
//   - Each unit is in one batch, whole: a row is scattered whole, and its bytes in the buffer are
//     overwritten after that.
//   - The reads of a batch take at most limit bytes of the buffer. Loads that fit are one batch,
//     with the reads of Plan.
//   - A cut lies between two extents if the batch has room for a whole extent. Then no byte is read
//     twice.
//   - An extent longer than limit is cut between two records, as late as the limit allows. If the
//     second record begins in the aligned block in which the first one ends, both batches read that
//     block: alignment demands it. If an earlier cut splits no block, and the next batch still
//     begins at the same block, the cut is there instead.
func (p *Planner) Batches(layer int, load []uint32, limit int64, batches []Batch) []Batch {
	if len(load) == 0 {
		return batches
	}
	batches = oneMore(batches)
	whole := &batches[len(batches)-1]
	p.Plan(layer, load, &whole.Plan)
	whole.Units = load
	if limit == 0 || whole.Plan.Staging <= limit {
		return batches
	}
	batches = batches[:len(batches)-1]
	if p.geo.Order != nil {
		load = slices.Clone(load)
		slices.SortFunc(load, func(a, b uint32) int {
			return cmp.Compare(p.geo.Order.place(layer, a), p.geo.Order.place(layer, b))
		})
	}
	for len(load) > 0 {
		n := p.batchLength(layer, load, limit)
		batches = oneMore(batches)
		b := &batches[len(batches)-1]
		b.Units, load = load[:n:n], load[n:]
		if p.geo.Order != nil {
			slices.Sort(b.Units)
		}
		p.Plan(layer, b.Units, &b.Plan)
	}
	return batches
}

// oneMore makes a list longer by one. It reuses the entry in the list's spare capacity, if any.
func oneMore(batches []Batch) []Batch {
	if n := len(batches); n < cap(batches) {
		return batches[:n+1]
	}
	return append(batches, Batch{})
}

// span is the last extent of a batch among the parts with one number: the r-th parts of its units.
type span struct {
	from, to int64 // aligned
	last     int64 // start of the last part
	first    int64 // start of the first part of the batch
}

// batchLength returns how many of the units, which are in the order of their places, are in the
// first batch: 1 at least.
func (p *Planner) batchLength(layer int, load []uint32, limit int64) int {
	align, gap := int64(p.opt.Align), p.gap()
	record := int64(p.geo.Record) / int64(p.geo.parts())
	spans := make([]span, p.geo.parts())
	complete, extent := int64(0), 0 // bytes of complete extents; first unit of the last extent
	for i, unit := range load {
		size, opens := complete, true
		for part := range spans {
			s, at := &spans[part], p.partAt(layer, part, unit)
			if i > 0 && p.opt.Coalesce && p.joins(s.last, at, s.to, gap) {
				opens = false
			} else {
				complete += s.to - s.from
				size += s.to - s.from
				s.from = at / align * align
			}
			if i == 0 {
				s.first = at
			}
			s.last, s.to = at, p.roundUp(at+record)
			size += s.to - s.from
		}
		// The last of the r-th parts may lie near the first of the (r+1)-th: one extent for both.
		for part := 1; part < len(spans) && p.opt.Coalesce; part++ {
			before, first := &spans[part-1], spans[part].first
			if p.joins(before.last, first, before.to, gap) {
				size += first/align*align - before.to
			}
		}
		if opens {
			extent = i
		}
		if size > limit && extent > 0 {
			return extent
		}
		if size > limit {
			return p.cutWithin(layer, load, max(i, 1))
		}
	}
	return len(load)
}

// cutWithin returns where to cut an extent of which n units fit: behind them, or earlier if that
// splits no block and the next batch begins at the same block.
func (p *Planner) cutWithin(layer int, load []uint32, n int) int {
	align := int64(p.opt.Align)
	block := func(i int) int64 { return p.partAt(layer, 0, load[i]) / align }
	for i := n; i > 0 && i < len(load) && block(i) == block(n); i-- {
		if !p.sharesBlock(layer, load[i-1], load[i]) {
			return i
		}
	}
	return n
}

// sharesBlock reports whether the reads of two units, the first before the second, have an aligned
// block in common.
func (p *Planner) sharesBlock(layer int, first, second uint32) bool {
	align, record := int64(p.opt.Align), int64(p.geo.Record)/int64(p.geo.parts())
	for part := range p.geo.parts() {
		end := p.roundUp(p.partAt(layer, part, first) + record)
		if end > p.partAt(layer, part, second)/align*align {
			return true
		}
	}
	return false
}
