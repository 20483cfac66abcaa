package answers

import (
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
	"github.com/windrow-sim/windrow/traces/synth"
)

// The precisions of weights.
const (
	F16 = "f16"
	Q8  = "q8_0"
	Q4  = "q4_0"
)

// Footprint is the memory that a model needs.
type Footprint struct {
	Name   string      `json:"model"`
	DType  string      `json:"dtype"`
	Layers int         `json:"layers"`
	Bytes  units.Bytes `json:"weights_bytes"`
	FFN    units.Bytes `json:"ffn_bytes"` // of Bytes
	// of a neuron, or of an expert: the unit of reads
	Record units.Bytes `json:"record_bytes"`
	KV     int         `json:"kv_numbers_per_position"` // keys and values of all layers
	// Used is the share of the FFN that a dense runtime computes for a token: 1, or the share of
	// the selected experts.
	Used float64 `json:"used_share"`
	// Needed is the share of the FFN that a runtime with predicted rows needs for a token. Fresh is
	// the part of it that the previous token did not need. 0 = not known.
	Needed float64 `json:"needed_share,omitempty"`
	Fresh  float64 `json:"fresh_share,omitempty"`
	// Origin names the source of Needed and Fresh.
	Origin string `json:"shares_from,omitempty"`
}

// FootprintLike returns a published model (shapes.Lookup) with weights of a precision. An active
// share above 0 replaces the published one. Errors wrap ErrInput.
func FootprintLike(name, dtype string, active float64) (Footprint, error) {
	shape, info, err := shapes.Lookup(name)
	if err != nil {
		return Footprint{}, fmt.Errorf("answers: model: %w: %w", err, ErrInput)
	}
	m := Footprint{Name: info.Name, DType: dtype, Layers: shape.Layers, Used: 1}
	ffn := int64(shape.Layers) * int64(shape.DFFN) * int64(shape.Rows) * int64(shape.DModel) *
		int64(max(info.Experts, 1))
	if m.Bytes, err = weights(info.Params, dtype); err != nil {
		return Footprint{}, err
	}
	if m.FFN, err = weights(ffn, dtype); err != nil {
		return Footprint{}, err
	}
	m.Record = m.FFN / units.Bytes(shape.Layers*max(info.Experts, 1))
	if info.Experts == 0 {
		m.Record /= units.Bytes(shape.DFFN)
	}
	m.KV = shape.Layers * int(memory.KVBytes(shape.KVHeads, shape.HeadDim, 1))
	if info.Experts > 0 {
		if active != 0 {
			return Footprint{}, fmt.Errorf("answers: model %s: its router picks %d of %d experts; "+
				"an active share cannot be given: %w", info.Name, info.ExpertsPerToken,
				info.Experts, ErrInput)
		}
		m.Used = float64(info.ExpertsPerToken) / float64(info.Experts)
		m.Needed, m.Fresh, m.Origin = m.Used, m.Used*(1-m.Used),
			fmt.Sprintf("%d of %d experts, repeated by chance", info.ExpertsPerToken, info.Experts)
		return m, nil
	}
	return m, m.predict(shape, active)
}

// predict sets Needed and Fresh, if an active share is published or given.
func (m *Footprint) predict(shape traces.Shape, active float64) error {
	if active < 0 || active > 1 {
		return fmt.Errorf("answers: an active share of %g is not between 0 and 1; write 0.033 "+
			"for 3.3 %%: %w", active, ErrInput)
	}
	e, err := synth.Expect(synth.Options{Like: m.Name, Layers: shape.Layers, Tokens: 1,
		Predicted: true, ActiveShare: active})
	switch {
	case err == nil:
		m.Needed, m.Fresh = e.PredictedSAgg[1], e.PredictedSAgg[2]-e.PredictedSAgg[1]
		m.Origin = "the process of synth trace, " + m.Name
	case active > 0:
		return fmt.Errorf("answers: active share %g: %w: %w", active, err, ErrInput)
	}
	return nil // not published: the verdict on class flash says so
}

// weights is the size of parameters in a precision.
func weights(params int64, dtype string) (units.Bytes, error) {
	const block = 32 // weights
	size, ok := map[string]int64{F16: 2 * block, Q8: 34, Q4: 18}[dtype]
	if !ok {
		return 0, fmt.Errorf("answers: precision %q: known are %s: %w", dtype,
			strings.Join([]string{F16, Q8, Q4}, ", "), ErrInput)
	}
	return units.Bytes(params / block * size), nil
}

// dense is the size of all weights but the FFN.
func (m *Footprint) dense() units.Bytes { return m.Bytes - m.FFN }

// touched is the size of the weights that a dense runtime reads from memory for one token.
func (m *Footprint) touched() units.Bytes { return m.dense() + shareOf(m.FFN, m.Used) }

// shareOf is a share of a size.
func shareOf(b units.Bytes, share float64) units.Bytes { return units.Bytes(share * float64(b)) }

// size prints bytes with three digits.
func size(b units.Bytes) string {
	v, unit := float64(b)/float64(units.MiB), "MiB"
	if b >= units.GiB {
		v, unit = float64(b)/float64(units.GiB), "GiB"
	}
	switch {
	case b == 0:
		return "nothing"
	case v >= 100:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}
