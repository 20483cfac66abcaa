package traces

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// SchemaVersion of trace and Run files: major.minor. A reader refuses a newer major version. 1.1
// added the columns "magnitude" and "feature" and the derivation of traces. A reader ignores
// columns that it does not know.
const SchemaVersion = "1.1"

// Phase is the phase of a token: prompt or generated.
type Phase uint8

// The phases of a sequence.
const (
	Prefill Phase = 0
	Decode  Phase = 1
)

// UnitKind is the kind of a trace's units.
type UnitKind string

// The kinds of units.
const (
	Neuron UnitKind = "neuron"
	Expert UnitKind = "expert"
)

// Shape holds the dimensions of a model that a simulation needs. Counts are of elements, not bytes.
type Shape struct {
	DModel  int `json:"d_model" yaml:"d_model"`
	Layers  int `json:"layers" yaml:"layers"`
	DFFN    int `json:"d_ffn" yaml:"d_ffn"` // units per layer
	Heads   int `json:"heads" yaml:"heads"`
	KVHeads int `json:"kv_heads" yaml:"kv_heads"`
	HeadDim int `json:"head_dim" yaml:"head_dim"`
	Vocab   int `json:"vocab" yaml:"vocab"`
	MaxPos  int `json:"max_positions" yaml:"max_positions"`
	// P: 2 (up, down) or 3 (gate, up, down)
	Rows      int `json:"rows_per_unit" yaml:"rows_per_unit"`
	DTypeSize int `json:"dtype_bytes" yaml:"dtype_bytes"` // bytes per weight
}

// RecordBytes returns the size of one unit's record: P·d_model·bytes.
func (s Shape) RecordBytes() units.Bytes { return units.Bytes(s.Rows * s.DModel * s.DTypeSize) }

// AttentionBytes returns the size of one layer's four projections: q, k, v and out.
func (s Shape) AttentionBytes() units.Bytes {
	return units.Bytes(2 * (s.Heads + s.KVHeads) * s.HeadDim * s.DModel * s.DTypeSize)
}

// KVBytes returns the size of one position's keys and values in one layer, in the engine's
// precision.
func (s Shape) KVBytes() units.Bytes { return memory.KVBytes(s.KVHeads, s.HeadDim, 0) }

// HeadBytes returns the size of the output head.
func (s Shape) HeadBytes() units.Bytes { return units.Bytes(s.Vocab * s.DModel * s.DTypeSize) }

// PhaseOf returns Prefill for a token of the prompt, else Decode.
func PhaseOf(prompt bool) Phase {
	if prompt {
		return Prefill
	}
	return Decode
}

// Header describes a trace. It is stored as schema metadata of the Arrow file.
type Header struct {
	SchemaVersion string      `json:"schema_version"`
	Tool          string      `json:"tool"` // "windrow 0.1.0"
	UnitKind      UnitKind    `json:"unit_kind"`
	Layers        int         `json:"layers"`
	Units         int         `json:"units"`          // per layer
	UnitBytes     units.Bytes `json:"bytes_per_unit"` // record bytes
	Model         string      `json:"model"`
	ModelSHA256   string      `json:"model_sha256"`
	Shape         Shape       `json:"shape"`
	// memory of the weights that are not units; nil = not known
	Resident   *Resident `json:"resident,omitempty"`
	Tokenizer  string    `json:"tokenizer_sha256"`
	Activation string    `json:"activation"`
	// a unit is active when its value is > Threshold
	Threshold    float64 `json:"threshold"`
	DType        string  `json:"dtype"`
	Seed         uint64  `json:"seed"`
	Sampling     string  `json:"sampling"`
	Synthetic    bool    `json:"synthetic"` // made by "synth trace", not recorded
	HasPredicted bool    `json:"has_predicted"`
	HasMagnitude bool    `json:"has_magnitude"`
	// kind of the features (FeatureKinds); "" = the trace has none
	FeatureKind string `json:"feature_kind,omitempty"`
	// numbers per feature, usually d_model
	FeatureWidth int `json:"feature_width,omitempty"`
	// SHA-256 of the trace that this one was derived from
	DerivedFrom string `json:"derived_from_sha256,omitempty"`
	// how it was derived; "" = recorded or generated
	DerivedBy string            `json:"derived_by,omitempty"`
	Host      map[string]string `json:"host"`
}

// Resident holds the sizes of a model's resident weights that its Shape does not give.
type Resident struct {
	Embeddings units.Bytes `json:"embeddings_bytes"` // input and output, once when they are tied
	Attention  units.Bytes `json:"attention_bytes"`  // the four projections of all layers
	Other      units.Bytes `json:"other_bytes"`      // biases, norms and positions
	EmbedWidth int         `json:"embed_width"`      // usually d_model
}

// Words is the number of uint64 words of one mask: ⌈units/64⌉.
func (h *Header) Words() int { return mask.Words(h.Units) }

// CheckMasks checks that there is one mask per layer, each of the trace's units. name is the name
// of the list in errors: "active" or "predicted".
func (h *Header) CheckMasks(name string, masks []mask.Mask) error {
	if len(masks) != h.Layers {
		return fmt.Errorf("%s masks of %d layers: the header says %d", name, len(masks), h.Layers)
	}
	words := h.Words()
	for l, m := range masks {
		if len(m) != words {
			return fmt.Errorf("%s mask of layer %d: %d words for %d units: must be %d", name, l,
				len(m), h.Units, words)
		}
		if !m.Padded(h.Units) {
			return fmt.Errorf("%s mask of layer %d: a bit beyond unit %d is set", name, l,
				h.Units-1)
		}
	}
	return nil
}

// Token is one token of a trace with its masks.
type Token struct {
	Seq   uint32
	Pos   uint32
	Phase Phase
	ID    uint32 // vocabulary id
	// Active[l] is the mask of layer l: read only.
	Active []mask.Mask
	// Predicted is like Active, nil when the trace holds no predicted masks.
	Predicted []mask.Mask
	// Magnitude[l] holds one MagnitudeCode per active unit of layer l, ascending by unit. It is nil
	// if the trace has no magnitudes: read only.
	Magnitude [][]byte
	// Feature[l] is the feature of layer l: FeatureWidth float16 numbers, little-endian. It is nil
	// if the trace has no features: read only.
	Feature [][]byte
	// Reuse, if not nil, is the memory that a Reader puts all of these into, in place of memory of
	// their own. They are then valid until the next call of Source.Token with the same Reuse.
	Reuse *Buffer
}

// Buffer is memory for the masks, magnitudes and features of one token. The zero value is ready.
type Buffer struct {
	masks []uint64
	codes []byte
}

// Masks returns the masks of the layers: the predicted ones if predicted, else the true ones.
func (t *Token) Masks(predicted bool) []mask.Mask {
	if predicted {
		return t.Predicted
	}
	return t.Active
}

// Sequences finds the tokens at which a pass over a trace enters another sequence.
type Sequences = mask.Sequences

// Source is a trace that is read token by token, in order of (sequence, position). *Reader and
// *Memory are Sources.
type Source interface {
	Header() *Header
	// Tokens is the number of tokens.
	Tokens() int
	// Token fills t with token i. The masks stay valid, unless t.Reuse is set. It reuses t.Active
	// if there is room.
	Token(i int, t *Token) error
}
