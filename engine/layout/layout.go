// Package layout says where units (rows, bundles, experts) are on flash and turns a set of units into read
// requests. It is pure (no I/O, no clock) and a leaf, shared by the engine and the simulator, so that both ask for the
// same bytes by construction.
//
// Start with Geometry, then Planner.Plan.
package layout

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/units"
)

// Geometry is the place of every unit in a flash image: layer l's bundles are one array of Units records of Stride
// bytes that starts at Base[l]; the first Record bytes of each are the data.
type Geometry struct {
	Base   []int64     `json:"base"`   // file offset of each layer's bundles
	Units  int         `json:"units"`  // per layer
	Record units.Bytes `json:"record"` // P·d_model·bytes
	Stride units.Bytes `json:"stride"` // ≥ Record
	Size   int64       `json:"size"`   // of the file: an aligned read never goes beyond it
}

// Uniform is the geometry of layers laid one after the other from base: what a trace without an image is simulated on.
func Uniform(layers, perLayer int, record units.Bytes) Geometry {
	const align = 4096
	size := (int64(perLayer)*int64(record) + align - 1) / align * align
	g := Geometry{Base: make([]int64, layers), Units: perLayer, Record: record, Stride: record, Size: size * int64(layers)}
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
	// Gap joins units that are at most Gap records apart, reading and discarding what is between ("read more than
	// needed", LLM in a flash section 3.2). Only with Coalesce.
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
	// Records[i] is where the record of the i-th unit starts in the staging buffer.
	Records []int64
	// Staging is the number of bytes of staging buffer that the plan uses.
	Staging int64
	// Bytes is the sum of the requests' lengths: what the device is asked for.
	Bytes units.Bytes
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
		return nil, fmt.Errorf("layout: geometry: %d units of %d bytes with stride %d is larger than any device", geo.Units, geo.Record, geo.Stride)
	case geo.Record <= 0 || geo.Stride < geo.Record || geo.Units <= 0:
		return nil, fmt.Errorf("layout: geometry: %d units of %d bytes with stride %d is not a layout", geo.Units, geo.Record, geo.Stride)
	case opt.Align < 0 || opt.MaxRequest < 0 || opt.Gap < 0:
		return nil, fmt.Errorf("layout: options: align %d, chunk %d and gap %d must not be negative", opt.Align, opt.MaxRequest, opt.Gap)
	case opt.MaxRequest%opt.Align != 0:
		return nil, fmt.Errorf("layout: options: chunk %v is not a multiple of the %v that direct reads need here; use a multiple", opt.MaxRequest, opt.Align)
	}
	return &Planner{geo, opt}, nil
}

// Geometry returns the geometry the Planner was made with.
func (p *Planner) Geometry() Geometry { return p.geo }

// Plan fills plan with the reads that bring the given units (ascending, without repeats) of a layer. The slices of plan
// are reused when they have room. Two units whose aligned stretches touch share one stretch when Coalesce is set.
func (p *Planner) Plan(layer int, want []uint32, plan *Plan) {
	plan.Requests, plan.Records = plan.Requests[:0], plan.Records[:0]
	plan.Staging, plan.Bytes = 0, 0
	align, stride, record := int64(p.opt.Align), int64(p.geo.Stride), int64(p.geo.Record)
	base, gap := p.geo.Base[layer], int64(p.opt.Gap)*stride
	for i := 0; i < len(want); {
		start := base + int64(want[i])*stride
		from, to := start/align*align, p.roundUp(start+record)
		buf := plan.Staging
		plan.Records = append(plan.Records, buf+start-from)
		i++
		for p.opt.Coalesce && i < len(want) {
			start = base + int64(want[i])*stride
			// Touching after rounding counts as neighbouring: the block between is read anyway.
			if start > base+int64(want[i-1])*stride+stride+gap && start/align*align > to {
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

func (p *Planner) roundUp(offset int64) int64 {
	align := int64(p.opt.Align)
	up := (offset + align - 1) / align * align
	if up > p.geo.Size && p.geo.Size >= offset {
		return p.geo.Size
	}
	return up
}
