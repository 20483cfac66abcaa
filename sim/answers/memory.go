package answers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
)

// ErrBudget marks a budget of memory that not even the smallest configuration fits into.
var ErrBudget = errors.New("answers: the memory budget is below the floor")

// ErrInput marks a question that has no answer because of what was given.
var ErrInput = errors.New("answers: the question cannot be answered")

// Model is the weights of a model as memory and flash have to hold them.
type Model struct {
	Name      string
	Shape     traces.Shape
	Units     int         // per layer
	UnitBytes units.Bytes // of one record
	Untied    bool        // the output head has weights of its own
	// Params is the number of all parameters; 0 = those of embeddings, attention and FFN, without
	// biases, norms and positions.
	Params int64
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

// ModelOf returns the model of a trace. What its header does not say, whether the head is tied and
// how many parameters there are, comes from the published model of that name if the shapes agree;
// otherwise the head is taken as tied.
func ModelOf(h *traces.Header) Model {
	m := Model{Name: h.Model, Shape: h.Shape, Units: h.Units, UnitBytes: h.UnitBytes}
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

// EmbeddingBytes is the size of the input embedding and of the output head, once when they are
// tied.
func (m *Model) EmbeddingBytes() units.Bytes {
	if m.Untied {
		return 2 * m.Shape.HeadBytes()
	}
	return m.Shape.HeadBytes()
}

// AttentionBytes is the size of the attention projections of all layers.
func (m *Model) AttentionBytes() units.Bytes {
	return units.Bytes(m.Shape.Layers) * m.Shape.AttentionBytes()
}

// FFNBytes is the size of the records of all layers.
func (m *Model) FFNBytes() units.Bytes {
	return units.Bytes(m.Shape.Layers) * units.Bytes(m.Units) * m.UnitBytes
}

// otherBytes are biases, norms and positions: what the published number of parameters has beyond
// the shape.
func (m *Model) otherBytes() units.Bytes {
	all := units.Bytes(m.Params) * units.Bytes(m.Shape.DTypeSize)
	return max(all-m.EmbeddingBytes()-m.AttentionBytes()-m.FFNBytes(), 0)
}

// ResidentBytes are the weights that every flash-resident engine keeps in memory: all but the FFN.
func (m *Model) ResidentBytes() units.Bytes {
	return m.EmbeddingBytes() + m.AttentionBytes() + m.otherBytes()
}

// Bytes is the size of all weights.
func (m *Model) Bytes() units.Bytes { return m.ResidentBytes() + m.FFNBytes() }

// PredictorBytes is the size of low-rank predictors of one inner dimension in all layers: d_model ×
// rank and rank × units (LLM in a flash, section 3.1).
func (m *Model) PredictorBytes(rank int) units.Bytes {
	return units.Bytes(m.Shape.Layers) * units.Bytes(rank) * units.Bytes(m.Shape.DModel+m.Units) *
		units.Bytes(m.Shape.DTypeSize)
}

// check refuses a model of which nothing can be computed.
func (m *Model) check() error {
	if m.Shape.Layers <= 0 || m.Units <= 0 || m.UnitBytes <= 0 || m.Shape.DTypeSize <= 0 {
		return fmt.Errorf("answers: model %s: %d layers of %d units of %v with weights of %d "+
			"bytes is not a model: %w",
			m.Name, m.Shape.Layers, m.Units, m.UnitBytes, m.Shape.DTypeSize, ErrInput)
	}
	return nil
}

// Holding is what memory holds besides weights and rows.
type Holding struct {
	PredictorRank int         `json:"predictor_rank"` // 0 = no predictor
	Positions     int         `json:"positions"`      // of the KV cache; 0 = those of the trace
	Align         units.Bytes `json:"align"`          // of requests; 0 = 1 B
	Gap           int         `json:"gap"`            // layout.Options.Gap
}

// The parts of Account that depend on the window or on the context.
const (
	PartRowCache    = "row cache"
	PartKV          = "KV cache"
	PartStaging     = "staging"
	PartBookkeeping = "bookkeeping"
)

// Part is one part of the memory.
type Part struct {
	Name  string      `json:"part"`
	Bytes units.Bytes `json:"bytes"`
	Share float64     `json:"share_of_model"`
}

// Memory is what one configuration keeps in memory.
type Memory struct {
	Window int         `json:"window"`
	Parts  []Part      `json:"parts"`
	Total  units.Bytes `json:"total_bytes"`
	Share  float64     `json:"share_of_model"`
	// MeanRows is the size of the rows that are in use on average; the part "row cache" is for the
	// fullest moment of each layer.
	MeanRows units.Bytes `json:"mean_row_bytes"`
}

// Of returns the size of a part, 0 for one that there is not.
func (mem *Memory) Of(name string) units.Bytes {
	for _, p := range mem.Parts {
		if p.Name == name {
			return p.Bytes
		}
	}
	return 0
}

// Check returns an error of kind ErrBudget that lists the parts when a budget is smaller than they
// are; mem should be of the shortest window that the question allows.
func (mem *Memory) Check(model string, budget units.Bytes) error {
	if mem.Total <= budget {
		return nil
	}
	var parts []string
	for _, p := range mem.Parts {
		if p.Bytes > 0 {
			parts = append(parts, fmt.Sprintf("%s %v", p.Name, p.Bytes))
		}
	}
	window := "without a window"
	if mem.Window > 0 {
		window = fmt.Sprintf("with a window of %d tokens", mem.Window)
	}
	return fmt.Errorf("%w: %v for %s, which needs %v even %s (%s); give it more, or take fewer "+
		"positions or a smaller model",
		ErrBudget, budget, model, mem.Total, window, strings.Join(parts, ", "))
}

// RowBytes is the size of a cached row: its record, and a bias as float32.
func (m *Model) RowBytes() units.Bytes { return m.UnitBytes + 4 }

// Account lists the memory of a window of k tokens, 0 … MaxWindow:
//
//	embeddings   input and output, once when tied
//	attention    the four projections of all layers
//	other        biases, norms and positions, where the number of parameters is known
//	predictor    Model.PredictorBytes
//	row cache    per layer, the most rows that are in use at once, with a 4-byte bias each
//	KV cache     float32 keys and values of all positions, as the engine keeps them
//	staging      one layer's largest read: rows, gaps and alignment, an upper bound when
//	             neighbours join
//	bookkeeping  policy and slots: what is where, and when it was last active
//
// The program itself, its stacks and the activations of one token are not in it.
func (m *Model) Account(rows *Rows, k int, h Holding) Memory {
	mem := Memory{Window: k}
	model := float64(m.Bytes())
	add := func(name string, bytes units.Bytes) {
		mem.Parts = append(mem.Parts, Part{name, bytes, float64(bytes) / model})
		mem.Total += bytes
	}
	const index = 4 // bytes of a unit's or row's number
	var cached, most, book units.Bytes
	mean, words := 0.0, units.Bytes(m.Units+63)/64*8
	for l := range rows.Layers {
		r := &rows.Layers[l]
		cached += units.Bytes(r.Max[k]) * m.RowBytes()
		most = max(most, units.Bytes(r.Loads[k]))
		mean += r.Mean[k]
		// Slots: a row per unit, a unit per row. Window: last use per unit, what is resident, and
		// one mask per token.
		book += units.Bytes(2*m.Units+r.Max[k])*index + words*units.Bytes(k+1)
	}
	positions := h.Positions
	if positions == 0 {
		positions = rows.Positions
	}
	add("embeddings", m.EmbeddingBytes())
	add("attention", m.AttentionBytes())
	add("other", m.otherBytes())
	add("predictor", m.PredictorBytes(h.PredictorRank))
	add(PartRowCache, cached)
	add(PartKV, units.Bytes(m.Shape.Layers)*m.Shape.KVBytes()*units.Bytes(positions))
	add(PartStaging, most*m.read(h))
	add(PartBookkeeping, book)
	mem.Share, mem.MeanRows = float64(mem.Total)/model, units.Bytes(mean*float64(m.UnitBytes))
	return mem
}

// read is the most that one row puts into the staging buffer: its record, the gap before it,
// rounded out.
func (m *Model) read(h Holding) units.Bytes {
	row := m.UnitBytes * units.Bytes(1+h.Gap)
	if h.Align > 1 && m.UnitBytes%h.Align != 0 {
		row = (row+h.Align-1)/h.Align*h.Align + h.Align
	}
	return row
}

// LargestWindow returns the longest window whose memory fits into the budget. The error for a
// budget that not even a window of 0 tokens fits into is of kind ErrBudget and lists what the floor
// consists of.
func (m *Model) LargestWindow(rows *Rows, h Holding, budget units.Bytes) (Memory, error) {
	for k := MaxWindow; k >= 0; k-- {
		if mem := m.Account(rows, k, h); mem.Total <= budget {
			return mem, nil
		}
	}
	floor := m.Account(rows, 0, h)
	return floor, floor.Check(m.Name, budget)
}
