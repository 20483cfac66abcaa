package engine

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// Rows provides the feed-forward rows of a layer. The two kinds are Resident and Flash.
type Rows interface {
	// Layer returns the rows of the needed units, ascending by unit and valid until the next call.
	// It fills the Predict, IO and Memory spans and the counters of ev. Resident returns all rows,
	// whatever is needed.
	Layer(layer int, need mask.Mask, now func() units.Nanos, ev *LayerEvent) ([]Row, error)
	// Masked reports whether Layer returns only the needed rows of a layer.
	Masked(layer int) bool
	// Reset empties the caches, at the start of a sequence.
	Reset()
	// Close frees the memory and the file.
	Close() error
	// resident returns the rows of resident layers; nil for a layer on flash.
	resident() [][]Row
}

// Resident holds every row in memory: the dense engine, which computes all units of each layer.
type Resident struct{ rows [][]Row }

// NewResident takes each layer's bundles as bytes (units × stride) in g's geometry.
func NewResident(w *model.Weights, bundles [][]byte, g layout.Geometry) (*Resident, error) {
	if err := checkRecords(w, g); err != nil {
		return nil, err
	}
	r := &Resident{rows: make([][]Row, len(bundles))}
	for l, data := range bundles {
		var err error
		if r.rows[l], err = residentRows(w, l, data, g); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// residentRows returns the rows of a layer whose bundles are in memory.
func residentRows(w *model.Weights, layer int, data []byte, g layout.Geometry) ([]Row, error) {
	if len(data) < g.Units*int(g.Stride) {
		return nil, fmt.Errorf("engine: layer %d: bundles are %d bytes, want %d", layer, len(data),
			g.Units*int(g.Stride))
	}
	rows := make([]Row, g.Units)
	for u := range rows {
		at := u * int(g.Stride)
		rows[u] = Row{Unit: uint32(u), Slot: int32(u), bias: upBias(&w.Layers[layer], u),
			record: data[at : at+int(g.Record)]}
	}
	return rows, nil
}

// upBias returns the bias of a unit's up row.
func upBias(l *model.Layer, unit int) float32 {
	if l.UpBias == nil {
		return 0
	}
	return l.UpBias[unit]
}

// checkRecords demands a geometry with whole records of the model, in its order, and a host that
// can use them in place.
func checkRecords(w *model.Weights, g layout.Geometry) error {
	if g.Split > 1 || g.Order != nil {
		return fmt.Errorf("engine: a layout of %d parts per record, or of another order: the "+
			"engine reads bundles in the model's order", g.Split)
	}
	if int(g.Record) != w.RecordBytes() || g.Units != w.Shape.DFFN {
		return fmt.Errorf("engine: %d units of %v per layer: the model has %d of %v", g.Units,
			g.Record, w.Shape.DFFN, units.Bytes(w.RecordBytes()))
	}
	_, err := ref.Bytes16(make([]byte, 2))
	return err
}

// Layer implements Rows.
func (r *Resident) Layer(layer int, _ mask.Mask, now func() units.Nanos, ev *LayerEvent) ([]Row,
	error) {
	t := now()
	ev.Predict, ev.IO, ev.Memory = Span{Start: t}, Span{Start: t}, Span{Start: t}
	return r.rows[layer], nil
}

func (r *Resident) resident() [][]Row { return r.rows }

// Masked implements Rows.
func (r *Resident) Masked(int) bool { return false }

// Reset implements Rows.
func (r *Resident) Reset() {}

// Close implements Rows.
func (r *Resident) Close() error { return nil }
