// Package layout says where units (rows, bundles, experts) are on flash and turns a set of units
// into read requests. It is pure (no I/O, no clock) and a leaf, shared by the engine and the
// simulator, so that both ask for the same bytes by construction.
//
// A layer is an array of parts. Bundled, a part is a whole record and the array has Units of them;
// split over n, it has n·Units parts of an n-th of a record, first those of all units' first rows.
// Where in its run of Units a unit lies is its own number, or what an Order says. Everything else
// (alignment, neighbours, gaps, chunks) is the same for all of them.
//
// Start with Geometry, then Planner.Plan; order.go for units in another order than their own.
package layout

import (
	"fmt"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/internal/units"
)

// Geometry is the place of every unit in a flash image: layer l's bundles are one array of Units
// records of Stride bytes that starts at Base[l]; the first Record bytes of each are the data.
type Geometry struct {
	Base   []int64     `json:"base"`   // file offset of each layer's bundles
	Units  int         `json:"units"`  // per layer
	Record units.Bytes `json:"record"` // P·d_model·bytes
	Stride units.Bytes `json:"stride"` // ≥ Record
	Size   int64       `json:"size"`   // of the file: an aligned read never goes beyond it
	// Split lays the Split equal parts of every record apart, as in a checkpoint with a matrix for
	// each kind of row: part r of unit u is number r·Units+u of an array of Split·Units parts with
	// an n-th of the stride. 0 or 1: bundled.
	Split int `json:"split,omitempty"`
	// Order is where units lie; nil: in the order of their numbers.
	Order *Order `json:"order,omitempty"`
}

// parts is the number of places that the record of a unit is spread over.
func (g *Geometry) parts() int { return max(g.Split, 1) }

// Uniform is the geometry of layers laid one after the other from base: what a trace without an
// image is simulated on.
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
	// Align rounds every request's ends outwards; 1 for none. It must divide MaxRequest.
	Align units.Bytes `json:"align"`
	// MaxRequest is the largest request (the chunk size): longer stretches are split. 0 = no limit.
	MaxRequest units.Bytes `json:"max_request"`
	// Coalesce joins neighbouring units into one stretch. Without it each unit is read on its own.
	Coalesce bool `json:"coalesce"`
	// Gap joins units that are at most Gap records apart, reading and discarding what is between
	// ("read more than needed", LLM in a flash section 3.2); of a split geometry, parts of records.
	// Only with Coalesce.
	Gap int `json:"gap"`
}

// Request is one read: Length bytes of the file at Offset, to be put at Buf in the staging buffer.
type Request struct {
	Offset int64
	Length int64
	Buf    int64
}

// Plan is what must be read for one layer of one token.
type Plan struct {
	Requests []Request
	// Records[i] is where the record of the i-th unit starts in the staging buffer. Of a split
	// geometry it is where its first part starts; part r, an n-th of the record, starts at
	// Records[r·n+i] with n the number of units.
	Records []int64
	// Staging is the number of bytes of staging buffer that the plan uses.
	Staging int64
	// Bytes is the sum of the requests' lengths: what the device is asked for.
	Bytes units.Bytes

	keys   []uint64 // place and number of every part, by place
	places []uint32 // of every part, ascending
	placed []int64  // Records by place
}

// Planner turns unit sets into Plans. It is immutable and safe for concurrent use.
type Planner struct {
	geo Geometry
	opt Options
}

// NewPlanner checks geometry and options.
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
	case opt.Align < 0 || opt.MaxRequest < 0 || opt.Gap < 0:
		return nil, fmt.Errorf("layout: options: align %d, chunk %d and gap %d must not be "+
			"negative", opt.Align, opt.MaxRequest, opt.Gap)
	case opt.MaxRequest%opt.Align != 0:
		return nil, fmt.Errorf("layout: options: chunk %v is not a multiple of the %v that "+
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

// Align is what requests are aligned to.
func (p *Planner) Align() units.Bytes { return p.opt.Align }

// Geometry returns the geometry the Planner was made with.
func (p *Planner) Geometry() Geometry { return p.geo }

// Plan fills plan with the reads that bring the given units (ascending, without repeats) of a
// layer. The slices of plan are reused when they have room. Two units whose aligned stretches touch
// share one stretch when Coalesce is set.
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

// place finds the parts of the wanted units and sorts them by where they lie.
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

// read appends the reads that bring the parts at the given places of a layer, ascending.
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

// joins reports whether a part that starts at start belongs to the extent of the part before, which
// starts at last, where the extent ends, aligned, at end. An extent that touches the next one after
// rounding is joined with it: the block between is read anyway.
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
