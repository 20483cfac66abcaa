package synth

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
)

// maxActiveShare is the largest mean active share of the process; beyond it a model is dense.
const maxActiveShare = 0.9

// Options of Generate. The comments say what zero values mean.
type Options struct {
	// Like is the model whose shape and statistics the trace has: one of shapes.Names, in any case.
	Like string
	// Shape replaces the shape of Like if its DFFN is not 0.
	Shape traces.Shape
	// DType is the precision of the weights: "f16", "bf16" or "f32"; empty is f16.
	DType string
	// Layers and Units replace the shape's number of layers and of units per layer (neurons or
	// experts); 0 keeps them. A trace with fewer layers still spans the whole depth of the model.
	Layers, Units int
	// Tokens is the length of each sequence. The first Prompt tokens are of the phase prefill.
	Tokens, Prompt int
	// Sequences is the number of sequences; 0 means 1.
	Sequences int
	// First is the number of the first sequence. A sequence does not depend on the sequences before
	// it.
	First int
	Seed  uint64
	// ActiveShare replaces the published mean share of active units if it is not 0: 0.033 for 3.3
	// %. Experts have none: a router selects a fixed number.
	ActiveShare float64
	// Predicted adds predicted masks. The true masks do not depend on it. Experts have no predicted
	// masks: no errors of a predictor are published.
	Predicted bool
	// Routing is the model whose published routing the experts follow: one of Routings, in any
	// case; "" means that of Like, or of a model with as many experts. Neurons have none.
	Routing string
}

// plan is checked Options with all that follows from them.
type plan struct {
	opt    Options
	header traces.Header
	layers []layer   // of neurons
	routed []routing // of experts; one of the two is empty
}

// HeaderOf returns the header of Generate, so that a file can begin before the first token.
func HeaderOf(opt Options) (traces.Header, error) {
	p, err := newPlan(opt)
	if err != nil {
		return traces.Header{}, err
	}
	return p.header, nil
}

// Expect returns the expected averages of a trace without generating it. There is no closed form
// for experts.
func Expect(opt Options) (*Expected, error) {
	p, err := newPlan(opt)
	if err != nil {
		return nil, err
	}
	if p.routed != nil {
		return nil, fmt.Errorf("synth: model %s: its router picks whole experts, of which there "+
			"is no closed form; generate a trace, or name a dense model", opt.Like)
	}
	return expect(p.layers), nil
}

func newPlan(opt Options) (*plan, error) {
	shape, info, err := shapes.Lookup(opt.Like)
	if err != nil {
		return nil, fmt.Errorf("synth: options: %w", err)
	}
	if opt.Shape.DFFN != 0 {
		shape = opt.Shape
	}
	if opt.Layers != 0 {
		shape.Layers = opt.Layers
	}
	if opt.Units != 0 && info.Experts == 0 {
		shape.DFFN = opt.Units
	}
	if opt.Sequences == 0 {
		opt.Sequences = 1
	}
	if opt.DType != "" {
		size, known := map[string]int{"f16": 2, "bf16": 2, "f32": 4}[opt.DType]
		if !known {
			return nil, fmt.Errorf("synth: options: weights of precision %q; known are f16, bf16 "+
				"and f32", opt.DType)
		}
		shape.DTypeSize = size
	}
	if err := check(&opt, shape); err != nil {
		return nil, err
	}
	if info.Experts > 0 {
		return expertPlan(opt, shape, &info)
	}
	if opt.Routing != "" {
		return nil, fmt.Errorf("synth: options: %s has no experts, and so no routing; leave the "+
			"routing out", info.Name)
	}
	stats, err := statisticsOf(info.Name, opt.ActiveShare)
	if err != nil {
		return nil, err
	}
	layers, err := layersOf(shape.Layers, stats, fitted())
	if err != nil {
		return nil, err
	}
	return &plan{opt: opt, layers: layers, header: header(&opt, shape, &info, stats.origin)}, nil
}

// check refuses traces that cannot be generated or stored.
func check(opt *Options, shape traces.Shape) error {
	switch {
	case opt.Tokens <= 0 || opt.Tokens > math.MaxInt32:
		return fmt.Errorf("synth: options: %d tokens per sequence: at least 1 is needed",
			opt.Tokens)
	case opt.Sequences < 0 || opt.First < 0 || opt.Sequences > math.MaxInt32-opt.First:
		return fmt.Errorf("synth: options: %d sequences from number %d: at least 1 is needed, "+
			"from 0 on", opt.Sequences, opt.First)
	case opt.Prompt < 0 || opt.Prompt > opt.Tokens:
		return fmt.Errorf("synth: options: a prompt of %d tokens does not fit into sequences of %d",
			opt.Prompt, opt.Tokens)
	case !(opt.ActiveShare >= 0 && opt.ActiveShare <= maxActiveShare):
		return fmt.Errorf("synth: options: active share %g is not between 0 and %g; write 0.033 "+
			"for 3.3 %%", opt.ActiveShare, maxActiveShare)
	case shape.Layers <= 0 || shape.Layers > 1<<15 || shape.DFFN <= 0 || shape.DFFN > 1<<24 ||
		shape.Vocab < 0:
		return fmt.Errorf("synth: options: %d layers of %d units is not the shape of a model",
			shape.Layers, shape.DFFN)
	}
	return nil
}

func header(opt *Options, shape traces.Shape, info *shapes.Info, origin string) traces.Header {
	return traces.Header{
		SchemaVersion: traces.SchemaVersion,
		Tool:          "windrow",
		UnitKind:      traces.Neuron,
		Layers:        shape.Layers,
		Units:         shape.DFFN,
		UnitBytes:     shape.RecordBytes(),
		Model:         "synthetic " + strings.ToLower(info.Name),
		Shape:         shape,
		Activation:    info.Activation,
		DType:         cmp.Or(opt.DType, "f16"),
		Seed:          opt.Seed,
		Sampling:      "synthetic: " + origin,
		Synthetic:     true,
		HasPredicted:  opt.Predicted,
	}
}
