// Package layout says where units (rows, bundles, experts) are on flash, and turns a set of units
// into read requests. It is pure (no I/O, no clock). The engine and the simulator share it, so both
// ask for the same bytes by construction.
//
// A layer is an array of parts. In a bundled layout a part is a whole record, and the array has
// Units of them. In a layout split over n the array has n·Units parts, each an n-th of a record:
// first the first parts of all units, then the second ones, and so on. A unit's place within Units
// parts is its number, or what an Order says. Alignment, neighbours, gaps and chunks work alike for
// all layouts.
//
// An extent is a piece of the file that is read as a whole: neighbouring parts, with ends rounded
// to the alignment. A request is one read: an extent, or a chunk of one. A prefetch batch is the
// requests of one layer that are read into the staging buffer together.
//
// Start with Geometry, then Planner.Plan. batch.go and staging.go are about prefetches; order.go is
// about units in another order than their numbers.
package layout

import (
	"fmt"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// Geometry is the place of every unit in a flash image. The bundles of layer l are one array of
// Units records of Stride bytes that starts at Base[l]. The first Record bytes of each are data.
type Geometry struct {
	Base   []int64     `json:"base"`   // file offset of each layer's bundles
	Units  int         `json:"units"`  // per layer
	Record units.Bytes `json:"record"` // P·d_model·bytes
	Stride units.Bytes `json:"stride"` // ≥ Record
	Size   int64       `json:"size"`   // of the file; an aligned read ends there at the latest
	// Split stores the Split equal parts of every record apart, as a checkpoint with a matrix for
	// each kind of row does. Part r of unit u is number r·Units+u of an array of Split·Units parts,
	// each with an n-th of the stride. 0 or 1: bundled.
	Split int `json:"split,omitempty"`
	// Order is the order of the units; nil = by number.
	Order *Order `json:"order,omitempty"`
}

// parts is the number of parts of a unit's record.
func (g *Geometry) parts() int { return max(g.Split, 1) }

// Uniform returns the geometry of layers that follow each other from offset 0, each aligned to 4096
// bytes. A trace without an image is simulated on it.
func Uniform(layers, perLayer int, record units.Bytes) Geometry {
	const align = 4096
	size := (int64(perLayer)*int64(record) + align - 1) / align * align
	g := Geometry{Base: make([]int64, layers), Units: perLayer, Record: record, Stride: record,
		Size: size * int64(layers)}
	for l := range g.Base {
		g.Base[l] = int64(l) * size
	}
	return g
}

// Options shape the requests.
type Options struct {
	// Align rounds the ends of every request outwards; 1 = none. It must divide MaxRequest.
	Align units.Bytes `json:"align"`
	// MaxRequest is the largest request (the chunk size). Longer extents are split. 0 = no limit.
	MaxRequest units.Bytes `json:"max_request"`
	// Coalesce joins neighbouring units into one extent. Without it each unit is read on its own.
	Coalesce bool `json:"coalesce"`
	// Gap joins units that are at most Gap records apart, in a split geometry parts of records. The
	// records between them are read and discarded ("read more than needed", LLM in a flash, section
	// 3.2). Only with Coalesce.
	Gap int `json:"gap"`
}

// MostGap is the largest Gap. A wider one joins more than a layer.
const MostGap = 1 << 20

var (
	gapRange   = bounds.Range[int]{Least: 0, Most: MostGap, Why: "a wider gap joins whole layers"}
	alignRange = bounds.Range[units.Bytes]{Least: 1, Most: units.GiB,
		Why: "no device has larger blocks"}
)

// Request is one read: Length bytes of the file at Offset, into the staging buffer at Buf.
type Request struct {
	Offset int64
	Length int64
	Buf    int64
}

// Plan is the reads for one layer of one token.
type Plan struct {
	Requests []Request
	// Records[i] is the offset of the i-th unit's record in the staging buffer. In a split geometry
	// it is the offset of its first part; part r, an n-th of the record, starts at Records[r·n+i]
	// with n the number of units.
	Records []int64
	// Staging is the size in bytes of the staging buffer that the plan uses.
	Staging int64
	// Bytes is the sum of the lengths of the requests.
	Bytes units.Bytes

	keys   []uint64 // place and number of every part, sorted by place
	places []uint32 // of every part, ascending
	placed []int64  // Records by place
}

// Planner turns sets of units into Plans. It is immutable and safe for concurrent use.
type Planner struct {
	geo Geometry
	opt Options
}

// NewPlanner checks geometry and options. Errors about options are of kind refusal.ErrConfig.
func NewPlanner(geo Geometry, opt Options) (*Planner, error) {
	if opt.Align == 0 {
		opt.Align = 1
	}
	const most = 1 << 50 // bytes of one layer: beyond that offsets would overflow
	switch {
	case geo.Stride > most || int64(geo.Units) > most/max(int64(geo.Stride), 1):
		return nil, fmt.Errorf("layout: geometry: %d units of %d bytes with stride %d is larger "+
			"than any device", geo.Units, geo.Record, geo.Stride)
	case geo.Record <= 0 || geo.Stride < geo.Record || geo.Units <= 0:
		return nil, fmt.Errorf("layout: geometry: %d units of %d bytes with stride %d is not a "+
			"layout", geo.Units, geo.Record, geo.Stride)
	case opt.MaxRequest < 0 || opt.Gap < 0:
		return nil, refusal.Config("layout: options: align %d, chunk %d and gap %d must not be "+
			"negative", opt.Align, opt.MaxRequest, opt.Gap)
	case !alignRange.Has(opt.Align):
		return nil, refusal.Config("layout: options: align %v %s", opt.Align,
			alignRange.Refuse(opt.Align))
	case !gapRange.Has(opt.Gap):
		return nil, refusal.Config("layout: options: gap %d %s", opt.Gap, gapRange.Refuse(opt.Gap))
	case opt.MaxRequest%opt.Align != 0:
		return nil, refusal.Config("layout: options: chunk %v is not a multiple of the %v that "+
			"direct reads need here; use a multiple", opt.MaxRequest, opt.Align)
	case geo.Split < 0 || geo.Record%units.Bytes(geo.parts()) != 0 ||
		geo.Stride%units.Bytes(geo.parts()) != 0:
		return nil, fmt.Errorf("layout: geometry: records of %d bytes with stride %d cannot be "+
			"split into %d equal parts", geo.Record, geo.Stride, geo.Split)
	case geo.Split > 1 && geo.Units > math.MaxUint32/geo.Split:
		return nil, fmt.Errorf("layout: geometry: %d parts of %d units are more than can be "+
			"numbered", geo.Split, geo.Units)
	}
	if err := geo.Order.fits(len(geo.Base), geo.Units); err != nil {
		return nil, err
	}
	return &Planner{geo, opt}, nil
}

// Align returns the alignment of requests.
func (p *Planner) Align() units.Bytes { return p.opt.Align }

// Geometry returns the geometry of the Planner.
func (p *Planner) Geometry() Geometry { return p.geo }

// Plan fills plan with the reads of the given units (ascending, without repeats) of a layer. It
// reuses the slices of plan if they have room. With Coalesce, two units whose aligned extents touch
// share one extent.
func (p *Planner) Plan(layer int, want []uint32, plan *Plan) {
	plan.Requests, plan.Records = plan.Requests[:0], plan.Records[:0]
	plan.Staging, plan.Bytes = 0, 0
	if p.geo.Order == nil && p.geo.Split <= 1 {
		p.read(layer, want, plan)
		return
	}
	p.place(layer, want, plan)
	p.read(layer, plan.places, plan)
	plan.placed = append(plan.placed[:0], plan.Records...)
	for i, key := range plan.keys {
		plan.Records[uint32(key)] = plan.placed[i]
	}
}

// place finds the parts of the wanted units and sorts them by place.
func (p *Planner) place(layer int, want []uint32, plan *Plan) {
	plan.keys, plan.places = plan.keys[:0], plan.places[:0]
	number := uint64(0)
	for part := range p.geo.parts() {
		first := uint32(part * p.geo.Units)
		for _, u := range want {
			plan.keys = append(plan.keys, uint64(first+p.geo.Order.place(layer, u))<<32|number)
			number++
		}
	}
	slices.Sort(plan.keys)
	for _, key := range plan.keys {
		plan.places = append(plan.places, uint32(key>>32))
	}
}

// read appends the reads of the parts at the given places of a layer, ascending.
func (p *Planner) read(layer int, want []uint32, plan *Plan) {
	align, parts := int64(p.opt.Align), int64(p.geo.parts())
	stride, record := int64(p.geo.Stride)/parts, int64(p.geo.Record)/parts
	base, gap := p.geo.Base[layer], p.gap()
	for i := 0; i < len(want); {
		start := base + int64(want[i])*stride
		from, to := start/align*align, p.roundUp(start+record)
		buf := plan.Staging
		plan.Records = append(plan.Records, buf+start-from)
		i++
		for p.opt.Coalesce && i < len(want) {
			start = base + int64(want[i])*stride
			if !p.joins(base+int64(want[i-1])*stride, start, to, gap) {
				break
			}
			to = p.roundUp(start + record)
			plan.Records = append(plan.Records, buf+start-from)
			i++
		}
		plan.Staging += to - from
		plan.Bytes += units.Bytes(to - from)
		for from < to {
			n := to - from
			if limit := int64(p.opt.MaxRequest); limit > 0 && n > limit {
				n = limit
			}
			plan.Requests = append(plan.Requests, Request{Offset: from, Length: n, Buf: buf})
			from, buf = from+n, buf+n
		}
	}
}

// gap is the largest distance, in bytes, between the starts of two parts that are joined into one
// extent.
func (p *Planner) gap() int64 {
	return (1 + int64(p.opt.Gap)) * (int64(p.geo.Stride) / int64(p.geo.parts()))
}

// joins reports whether the part that starts at start belongs to the extent of its predecessor. The
// predecessor starts at last, and the extent ends, aligned, at end. An extent that touches the next
// one after rounding joins it: the block between them is read anyway.
func (p *Planner) joins(last, start, end, gap int64) bool {
	return start <= last+gap || start/int64(p.opt.Align)*int64(p.opt.Align) <= end
}

// partAt is where a part of a unit's record starts in the file.
func (p *Planner) partAt(layer, part int, unit uint32) int64 {
	place := int64(part)*int64(p.geo.Units) + int64(p.geo.Order.place(layer, unit))
	return p.geo.Base[layer] + place*(int64(p.geo.Stride)/int64(p.geo.parts()))
}

func (p *Planner) roundUp(offset int64) int64 {
	align := int64(p.opt.Align)
	up := (offset + align - 1) / align * align
	if up > p.geo.Size && p.geo.Size >= offset {
		return p.geo.Size
	}
	return up
}
