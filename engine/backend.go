package engine

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// Backend does the arithmetic of steps, on the CPU (processor) or on a device (engine/cuda). It
// holds three vectors of d_model per token: X, the residual stream; H, the input of attention and
// feed-forward part; and Out, their output. layer.go has the order of the calls.
//
// Operations run in order and may be asynchronous. They are complete when Wait, Feature, Collect or
// Logits returns. An operation returns no error: the backend keeps the first error, and Wait,
// Feature, Collect and Logits return it.
type Backend interface {
	// Prepare allocates memory for an engine's steps. A backend serves one engine at a time.
	Prepare(s *Setup) error
	// Release frees the memory of Prepare.
	Release() error
	// Reset starts all sequences anew, also after an error: it waits for running operations and
	// clears errors that the backend can recover from.
	Reset()

	// Embed sets X to the embeddings of the tokens.
	Embed(s *Step)
	// Norm sets H to a norm of X; NormInPlace sets X.
	Norm(s *Step, n NormOf)
	NormInPlace(s *Step, n NormOf)
	// NormOut replaces Out by a norm of it.
	NormOut(s *Step, n NormOf)
	// CopyState sets H to X, AddOut adds Out to X.
	CopyState(s *Step)
	AddOut(s *Step)
	// Attention sets Out to the attention of H over the positions up to each token's own, and keeps
	// the tokens' keys and values.
	Attention(s *Step)
	// FFN sets Out to the feed-forward part of H, over the rows of the step that each token needs.
	FFN(s *Step)
	// Head computes the logits from X.
	Head(s *Step)
	// Keep copies a feature of the layer before later operations overwrite it: Out for
	// AttentionOutput, X for Residual. The engine keeps only kinds of Setup.Kept.
	Keep(s *Step, k FeatureKind)

	// Wait returns when all operations are complete.
	Wait() error
	// Clock turns the measurement of Times on or off. Times returns the times of the last complete
	// layer or output head, by the device's own clock; zero without such a clock.
	Clock(on bool)
	Times() DeviceTimes
	// Feature returns a feature of a token in the layer, valid until the next operation: H for
	// FFNInput, else the copy made by Keep.
	Feature(s *Step, i int, k FeatureKind) ([]float32, error)
	// Collect passes the values of every token's rows to Step.Collect. With Setup.Check it also
	// passes the true mask over all rows to Step.SetTrue.
	Collect(s *Step) error
	// Logits returns the logits of a token, valid until the next step.
	Logits(s *Step, i int) ([]float32, error)
}

// DeviceTimes holds a device's time for the parts of a layer, or for the output head, without the
// host's time to launch them.
type DeviceTimes struct{ Attention, Scatter, FFN, Head units.Nanos }

// NormOf names a norm of a model.
type NormOf uint8

// The norms of a layer, in front of attention and FFN and over their outputs, and the norm in front
// of the output head.
const (
	AttnNorm NormOf = iota
	FFNNorm
	AttnOutNorm
	FFNOutNorm
	FinalNorm
)

// Of returns the norm's weights.
func (n NormOf) Of(w *model.Weights, layer int) *model.Norm {
	switch n {
	case AttnNorm:
		return &w.Layers[layer].AttnNorm
	case FFNNorm:
		return &w.Layers[layer].FFNNorm
	case AttnOutNorm:
		return &w.Layers[layer].AttnOutNorm
	case FFNOutNorm:
		return &w.Layers[layer].FFNOutNorm
	}
	return &w.FinalNorm
}

// Setup says what Prepare allocates for.
type Setup struct {
	Weights *model.Weights
	// positions per sequence, sequences, and tokens per step, at most
	Context, Sequences, Batch int
	Thresholds                []float32 // as in Config
	// Resident holds the rows of resident layers, by unit; nil for a layer on flash. Check is as in
	// Config; it may be nil.
	Resident, Check [][]Row
	// Kept holds the feature kinds that Keep is called with.
	Kept [FeatureKinds]bool
}

// Step holds the tokens that go through the model together.
type Step struct {
	Tokens []Token
	Layer  int   // the current layer
	Rows   []Row // of the layer, ascending by unit: the union of the tokens' needs, or all

	entries []entry
	ev      LayerEvent
	lap     units.Nanos
}

// Row is one unit to compute. Its record is the gate row (if the model has one), the up row, then
// the down row, each d_model weights.
type Row struct {
	Unit   uint32
	Slot   int32   // its slot in the Store's cache
	bias   float32 // of the up row
	record []byte
}

// Record returns the row's weights, if they are in main memory.
func (r *Row) Record() []byte { return r.record }

// Need returns the units that a token needs of the current layer; nil is every unit.
func (s *Step) Need(i int) mask.Mask { return s.entries[i].need[s.Layer] }

// Collect takes the values of a token's rows (act, by row), lists the rows that the token needs,
// and marks those with a value other than zero as active.
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

// SetTrue sets the true mask over all units for a token. The mask is copied.
func (s *Step) SetTrue(i int, truth mask.Mask) { copy(s.entries[i].truth, truth) }

// Store keeps the rows of flash-resident layers in the memory that a backend computes from.
type Store interface {
	// Staging allocates a buffer for reads, at an address that is a multiple of 4096.
	Staging(size int64) ([]byte, error)
	FreeStaging(b []byte) error
	// Synchronise waits until the inserted records have been copied out of the staging buffers, so
	// that new reads may overwrite them.
	Synchronise() error
	// Cache returns a cache for up to capacity rows of a layer.
	Cache(layer, capacity int) (Cache, error)
}

// Cache holds the resident rows of one layer. The residency policy decides which rows to insert and
// delete. rowCache is the implementation in main memory.
type Cache interface {
	// Delete removes units that are present, and returns the number of rows that were moved to
	// close the gaps.
	Delete(units []uint32) (moved int)
	// Insert adds absent units. Their records lie in a staging buffer at the given offsets. More
	// rows than the capacity are an error.
	Insert(units []uint32, staging []byte, at []int64) error
	// Rows appends the rows of a mask's units, in order.
	Rows(to []Row, need mask.Mask) ([]Row, error)
	Reset()
	Close() error
}

// errAbsent is a mistake of the policy: it must load every needed unit before Rows is called.
func errAbsent(unit uint32) error {
	return fmt.Errorf("unit %d is needed but not in the row cache", unit)
}
