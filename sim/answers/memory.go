package answers

import (
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
)

// ErrInput marks a question that has no answer because of what was given.
var ErrInput = refusal.Kind(refusal.ErrConfig, "answers: the question cannot be answered")

// Model describes the weights of a model: what memory holds and what flash holds.
type Model struct {
	Name      string
	Shape     traces.Shape
	Units     int         // per layer
	UnitBytes units.Bytes // of one record
	Untied    bool        // the output head has weights of its own
	// Params is the number of all parameters; 0 = those of embeddings, attention and FFN, without
	// biases, norms and positions.
	Params int64
	// Resident are the weights besides the records; nil = estimated from the fields above.
	Resident *traces.Resident
}

// ModelLike returns a published model (shapes.Lookup) with 16-bit weights.
func ModelLike(name string) (Model, error) {
	shape, info, err := shapes.Lookup(name)
	if err != nil {
		return Model{}, fmt.Errorf("answers: model: %w: %w", err, ErrInput)
	}
	if info.Experts > 0 {
		return Model{}, fmt.Errorf("answers: model %s: its units are experts, which the shape "+
			"does not size; give a trace of it: %w", info.Name, ErrInput)
	}
	return Model{Name: info.Name, Shape: shape, Units: shape.DFFN, UnitBytes: shape.RecordBytes(),
		Untied: !info.TiedEmbeddings, Params: info.Params}, nil
}

// ModelOf returns the model of a trace. A recorded trace knows the size of the resident weights. Of
// another, whether the head is tied and how many parameters there are comes from the published
// model of that name if the shapes agree; otherwise the head is taken as tied.
func ModelOf(h *traces.Header) Model {
	m := Model{Name: h.Model, Shape: h.Shape, Units: h.Units, UnitBytes: h.UnitBytes,
		Resident: h.Resident}
	m.Shape.Layers = h.Layers
	shape, info, err := shapes.Lookup(PublishedName(h.Model))
	if err != nil {
		return m
	}
	m.Untied = !info.TiedEmbeddings
	if shape == m.Shape && shape.DFFN == m.Units && shape.RecordBytes() == m.UnitBytes {
		m.Params = info.Params
	}
	return m
}

// PublishedName is the name of the published model whose shape a trace or a set of random weights
// was made from.
func PublishedName(model string) string { return strings.TrimPrefix(model, "synthetic ") }

// resident are the weights that every flash-resident engine keeps in memory, by kind: all but the
// FFN. What is not known is estimated: the head from the published name, biases, norms and
// positions from the published number of parameters.
func (m *Model) resident() memory.Weights {
	if r := m.Resident; r != nil {
		return memory.Weights{Embeddings: r.Embeddings, Attention: r.Attention, Other: r.Other}
	}
	w := memory.Weights{Embeddings: m.Shape.HeadBytes(),
		Attention: units.Bytes(m.Shape.Layers) * m.Shape.AttentionBytes()}
	if m.Untied {
		w.Embeddings *= 2
	}
	all := units.Bytes(m.Params) * units.Bytes(m.Shape.DTypeSize)
	w.Other = max(all-w.Total()-m.FFNBytes(), 0)
	return w
}

// FFNBytes is the size of the records of all layers.
func (m *Model) FFNBytes() units.Bytes {
	return units.Bytes(m.Shape.Layers) * units.Bytes(m.Units) * m.UnitBytes
}

// ResidentBytes are the weights that every flash-resident engine keeps in memory: all but the FFN.
func (m *Model) ResidentBytes() units.Bytes { return m.resident().Total() }

// Bytes is the size of all weights.
func (m *Model) Bytes() units.Bytes { return m.ResidentBytes() + m.FFNBytes() }

// PredictorBytes is the size of low-rank predictors of one inner dimension in all layers: d_model ×
// rank and rank × units (LLM in a flash, section 3.1).
func (m *Model) PredictorBytes(rank int) units.Bytes {
	return units.Bytes(m.Shape.Layers) * units.Bytes(rank) * units.Bytes(m.Shape.DModel+m.Units) *
		units.Bytes(m.Shape.DTypeSize)
}

// check refuses a model without layers, units or sizes.
func (m *Model) check() error {
	if m.Shape.Layers <= 0 || m.Units <= 0 || m.UnitBytes <= 0 || m.Shape.DTypeSize <= 0 {
		return fmt.Errorf("answers: model %s: %d layers of %d units of %v with weights of %d "+
			"bytes is not a model: %w",
			m.Name, m.Shape.Layers, m.Units, m.UnitBytes, m.Shape.DTypeSize, ErrInput)
	}
	return nil
}

// Holding describes the memory besides weights and rows.
type Holding struct {
	PredictorRank int `json:"predictor_rank"` // 0 = no predictor
	Positions     int `json:"positions"`      // of the KV cache; 0 = those of the trace
}

// Memory is the account of one configuration, beside the model's weights.
type Memory struct {
	memory.Memory
	Weights units.Bytes `json:"weights_bytes"` // of the whole model
	// MeanRows is the size of the rows that are in use on average; the part "row cache" is for the
	// fullest moment of each layer.
	MeanRows units.Bytes `json:"mean_row_bytes"`
}

// Share is the share of the model's weights that some bytes are.
func (m *Memory) Share(b units.Bytes) float64 { return float64(b) / float64(m.Weights) }

// Table lists the parts of the memory.
func (m *Memory) Table() *document.Table {
	t := document.NewTable(document.Text("part"), document.Number("memory", "MiB"),
		document.Number("share of the weights", "%"))
	add := func(name string, b units.Bytes) {
		t.Add(name, document.Sig3(float64(b)/float64(units.MiB)), document.Percent(m.Share(b)))
	}
	for _, part := range m.Parts {
		if part.Bytes > 0 {
			add(part.Label(), part.Bytes)
		}
	}
	add("total", m.Total)
	return t
}

// account is the model as the account of memory takes it.
func (m *Model) account() memory.Model {
	s := &m.Shape
	a := memory.Model{DModel: s.DModel, Layers: s.Layers, Units: m.Units, Heads: s.Heads,
		KVHeads: s.KVHeads, HeadDim: s.HeadDim, Vocab: s.Vocab, Record: m.UnitBytes,
		Weights: m.resident()}
	if m.Resident != nil {
		a.Embed = m.Resident.EmbedWidth
	}
	return a
}

// CachedRow is the size of a row in a row cache.
func (m *Model) CachedRow() units.Bytes {
	a := m.account()
	return a.CachedRow()
}

// config is the configuration for the account of memory.
func (m *Model) config(h Holding) memory.Config {
	return memory.Config{Positions: h.Positions, Predictor: m.PredictorBytes(h.PredictorRank)}
}

// Account lists the memory of a window of k tokens, 0 … memory.LongestWindow, as the package
// internal/decisions/memory says.
func (m *Model) Account(w *memory.Windows, k int, h Holding) (Memory, error) {
	a, err := w.Account(m.account(), m.config(h), k)
	return m.with(w, a), err
}

// LargestWindow is the account of the longest window that fits into the budget. The error for a
// budget that not even a window of 0 tokens fits into is a *memory.BudgetError, which lists what
// the floor consists of.
func (m *Model) LargestWindow(w *memory.Windows, h Holding, budget units.Bytes) (Memory, error) {
	a, err := w.Largest(m.account(), m.config(h), budget)
	return m.with(w, a), err
}

// with adds to an account what depends on the model and on the mean of the rows.
func (m *Model) with(w *memory.Windows, a memory.Memory) Memory {
	mean := 0.0
	for l := range w.Layers {
		mean += w.Layers[l].Mean[a.Window]
	}
	return Memory{Memory: a, Weights: m.Bytes(), MeanRows: units.Bytes(mean * float64(m.UnitBytes))}
}
