package engine

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// Backend does the arithmetic of steps: the CPU (processor), or a device (engine/cuda). A token has
// four vectors of d_model there: X, the residual stream; H, what attention and the feed-forward
// part are computed from; and Out, what they give. layer.go says in which order the parts come.
//
// Parts are given to a backend in order and may be done later, at the latest when something is
// asked back. So they return no error: the first one that happens stays, and Wait, Feature, Collect
// and Logits return it.
type Backend interface {
	// Prepare makes room for an engine's steps. A backend serves one engine at a time.
	Prepare(s *Setup) error
	// Release frees what Prepare made.
	Release() error
	// Reset follows an error or ends sequences: it waits for what is under way and forgets errors
	// that are over.
	Reset()

	// Embed sets X to the embeddings of the tokens.
	Embed(s *Step)
	// Norm sets H to a norm of X; NormInPlace sets X.
	Norm(s *Step, n NormOf)
	NormInPlace(s *Step, n NormOf)
	// CopyState sets H to X, AddOut adds Out to X.
	CopyState(s *Step)
	AddOut(s *Step)
	// Attention sets Out to the attention of H over the positions up to each token's own, and keeps
	// the tokens' keys and values.
	Attention(s *Step)
	// FFN sets Out to the feed-forward part of H, of the rows of the step that each token needs.
	FFN(s *Step)
	// Head computes the logits from X.
	Head(s *Step)
	// Keep sets aside, as a feature of the layer, what the parts that follow change: Out for
	// AttentionOutput, X for Residual. Only kinds of Setup.Kept are asked for.
	Keep(s *Step, k FeatureKind)

	// Wait returns when everything so far is done.
	Wait() error
	// Clock says whether Times will be asked for; Times are those of the last layer or output head
	// that is done, by the device's own clock; zero where it has none.
	Clock(on bool)
	Times() DeviceTimes
	// Feature is a feature of a token in the layer, valid until the next part: H for FFNInput,
	// otherwise what was kept.
	Feature(s *Step, i int, k FeatureKind) ([]float32, error)
	// Collect hands the values of the rows to Step.Collect and, with Setup.Check, what all rows
	// would have made active to Step.SetTrue, of every token.
	Collect(s *Step) error
	// Logits are those of a token, valid until the next step.
	Logits(s *Step, i int) ([]float32, error)
}

// DeviceTimes is how long a device worked on the parts of a layer, or on the output head, without
// what the host took to ask for it.
type DeviceTimes struct{ Attention, Scatter, FFN, Head units.Nanos }

// NormOf names a norm of a model.
type NormOf uint8

// The norms: those of a layer, and the one in front of the output head.
const (
	AttnNorm NormOf = iota
	FFNNorm
	FinalNorm
)

// Of is the norm's weights.
func (n NormOf) Of(w *model.Weights, layer int) *model.Norm {
	switch n {
	case AttnNorm:
		return &w.Layers[layer].AttnNorm
	case FFNNorm:
		return &w.Layers[layer].FFNNorm
	}
	return &w.FinalNorm
}

// Setup is what a backend has to be ready for.
type Setup struct {
	Weights                   *model.Weights
	Context, Sequences, Batch int       // positions, sequences, and tokens of a step at most
	Thresholds                []float32 // as in Config
	// Resident are the rows of layers that are all in memory, by unit; nil for a layer on flash.
	// Check, if not nil, as in Config.
	Resident, Check [][]Row
	// Kept says which features Keep will be asked for.
	Kept [FeatureKinds]bool
}

// Step is the tokens that go through the model together.
type Step struct {
	Tokens []Token
	Layer  int   // that is computed
	Rows   []Row // of the layer, ascending by unit: those that any of the tokens needs, or all

	entries []entry
	ev      LayerEvent
	lap     units.Nanos
}

// Row is one unit to compute. Its record is the gate row (where there is one), the up row, then the
// down row, each d_model weights.
type Row struct {
	Unit   uint32
	Slot   int32   // where a Store has it
	bias   float32 // of the up row
	record []byte
}

// Record is the row's weights, of rows in memory.
func (r *Row) Record() []byte { return r.record }

// Need is what a token needs of the layer that is computed; nil is every unit.
func (s *Step) Need(i int) mask.Mask { return s.entries[i].need[s.Layer] }

// Collect lists the values of the rows that a token needs and marks those that are active, which
// are those whose value is not zero. act is by row.
func (s *Step) Collect(i int, act []float32) {
	a := &s.entries[i]
	clear(a.mask)
	a.active, a.values = a.active[:0], a.values[:0]
	for j := range s.Rows {
		unit := s.Rows[j].Unit
		if !a.wants(s.Layer, unit) {
			continue
		}
		v := act[j]
		if v != 0 {
			a.mask.Set(unit)
		}
		if v != 0 || a.need[s.Layer] != nil {
			a.active, a.values = append(a.active, int32(j)), append(a.values, v)
		}
	}
}

// SetTrue says what of all units would have been active for a token. The mask is copied.
func (s *Step) SetTrue(i int, truth mask.Mask) { copy(s.entries[i].truth, truth) }

// Store keeps the rows of flash-resident layers where a backend computes with them.
type Store interface {
	// Staging is a buffer for reads, at an address that is a multiple of 4096.
	Staging(size int64) ([]byte, error)
	FreeStaging(b []byte) error
	// Synchronise waits until what was inserted has left the staging buffers, so that they can be
	// read into again.
	Synchronise() error
	// Cache keeps up to capacity rows of a layer.
	Cache(layer, capacity int) (Cache, error)
}

// Cache holds the resident rows of one layer. The residency policy decides which rows to insert and
// delete. rowCache is the implementation in main memory.
type Cache interface {
	// Delete removes units that are there, and returns how many rows were moved to close the gaps.
	Delete(units []uint32) (moved int)
	// Insert adds absent units, whose records lie in a staging buffer at the given offsets. It does
	// not grow beyond the capacity.
	Insert(units []uint32, staging []byte, at []int64) error
	// Rows appends the rows of the units of a mask, in order.
	Rows(to []Row, need mask.Mask) ([]Row, error)
	Reset()
	Close() error
}

// errAbsent is a policy's mistake: it decides before the rows are asked for.
func errAbsent(unit uint32) error {
	return fmt.Errorf("unit %d is needed but not in the row cache", unit)
}
