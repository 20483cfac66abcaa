package memory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// KVElement is the default size of one number of a key or a value: the engine keeps float32.
const KVElement units.Bytes = 4

// Sizes in bytes of the engine's data per number, unit or row. A test of package engine compares
// the exported ones with its types.
const (
	float       = 4  // a number of an activation
	index       = 4  // the number of a unit or of a row
	rowBias     = 4  // of the up projection, beside a cached row
	RowBytes    = 40 // engine.Row: a row that a layer computes
	ReadBytes   = 24 // layout.Request
	BufferBytes = 32 // flashio.Request
	recordPlace = 8  // layout.Plan.Records
	header      = 24 // a slice
)

// Weights holds the sizes of the weights that every engine keeps in memory: all but those of the
// units.
type Weights struct {
	Embeddings units.Bytes // input and output, once when they are tied
	Attention  units.Bytes // the four projections of all layers
	Other      units.Bytes // biases, norms and positions
}

// Total is the size of all resident weights.
func (w Weights) Total() units.Bytes { return w.Embeddings + w.Attention + w.Other }

// Model holds the properties of a model that determine its memory.
type Model struct {
	DModel, Layers, Units   int // units of a layer
	Heads, KVHeads, HeadDim int
	Vocab                   int
	Embed                   int         // width of an embedding; 0 = DModel
	Record                  units.Bytes // weights of one unit
	Stride                  units.Bytes // of a unit in an image, padding included; 0 = Record
	Weights                 Weights
}

// KVBytes is the size of one position's keys and values in one layer, for elements of so many
// bytes; 0 = KVElement.
func KVBytes(kvHeads, headDim int, element units.Bytes) units.Bytes {
	if element == 0 {
		element = KVElement
	}
	return units.Bytes(2*kvHeads*headDim) * element
}

// CachedRow is the size of one row of a row cache: the record and its bias.
func (m *Model) CachedRow() units.Bytes { return m.Record + rowBias }

// Config holds the configuration of a run. The zero value has no rows and no positions.
type Config struct {
	Sequences int // side by side; 0 = 1
	Batch     int // tokens of a step; 0 = Sequences
	Positions int // of each sequence's KV cache
	// KVElement is the size of one number of a key or a value; 0 = the package's KVElement.
	KVElement units.Bytes
	// vectors of d_model per token for predictors and observers
	Features  int
	Predictor units.Bytes // its weights

	Dense  int         // number of first layers whose units are all in memory
	Rows   []int       // capacity of each layer's row cache; ignored for the dense layers
	Policy policy.Spec // of the layers behind the dense ones
	// Staging is the buffer of reads on demand.
	Staging units.Bytes
	// Prefetch says that the schedule prefetches. The prefetch buffer has PrefetchLimit bytes; 0 =
	// the size of the staging buffer.
	Prefetch      bool
	PrefetchLimit units.Bytes
}

// The names of the parts, in the order of an account.
const (
	PartEmbeddings  = "embeddings"
	PartAttention   = "attention"
	PartOther       = "other weights"
	PartPredictor   = "predictor"
	PartDense       = "dense prefix"
	PartRowCache    = "row cache"
	PartKV          = "KV cache"
	PartActivations = "activations"
	PartStaging     = "staging buffer"
	PartPrefetch    = "prefetch buffer"
	PartBookkeeping = "bookkeeping"
)

// Part is one part of the memory.
type Part struct {
	Name  string      `json:"part"`
	Bytes units.Bytes `json:"bytes"`
	// Element is the size of one number where a caller can choose it, in the KV cache; else 0.
	Element units.Bytes `json:"element_bytes,omitempty"`
}

// Label is the name, with the precision where a caller can choose it.
func (p Part) Label() string {
	if p.Element == 0 {
		return p.Name
	}
	return fmt.Sprintf("%s (%d-bit)", p.Name, 8*p.Element)
}

// Memory is an account. It lists all parts, also empty ones, in a fixed order.
type Memory struct {
	Window int         `json:"window"` // tokens; 0 for a policy that is no window
	Parts  []Part      `json:"parts"`
	Total  units.Bytes `json:"total_bytes"`
}

// Of returns the size of a part; 0 for an unknown name.
func (m Memory) Of(name string) units.Bytes {
	for _, p := range m.Parts {
		if p.Name == name {
			return p.Bytes
		}
	}
	return 0
}

// Replace returns the account with another size of a part.
func (m Memory) Replace(name string, bytes units.Bytes) Memory {
	m.Parts = slices.Clone(m.Parts)
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Name == name {
			m.Total += bytes - p.Bytes
			p.Bytes = bytes
		}
	}
	return m
}

// String lists the parts that are not empty.
func (m Memory) String() string {
	var list []string
	for _, p := range m.Parts {
		if p.Bytes > 0 {
			list = append(list, fmt.Sprintf("%s %v", p.Label(), p.Bytes))
		}
	}
	return strings.Join(list, ", ")
}

// Account returns the memory of a run of a model. Counts below 0 are 0. A product beyond 2^58
// bytes, more than any machine has, is 2^58.
func Account(m Model, c Config) Memory {
	if c.KVElement == 0 {
		c.KVElement = KVElement
	}
	if m.Embed == 0 {
		m.Embed = m.DModel
	}
	m.Stride = max(m.Stride, m.Record)
	sequences := max(c.Sequences, 1)
	c.Batch, c.Dense = max(c.Batch, sequences), min(max(c.Dense, 0), m.Layers)
	const parts = 11
	account := Memory{Parts: make([]Part, 0, parts)}
	if c.Policy.Kind == policy.KindWindow {
		account.Window = c.Policy.Window
	}
	add := func(p Part) {
		account.Parts, account.Total = append(account.Parts, p), account.Total+p.Bytes
	}
	rows := units.Bytes(0)
	for _, n := range c.cached() {
		rows += times(n, int(m.CachedRow()))
	}
	add(Part{Name: PartEmbeddings, Bytes: m.Weights.Embeddings})
	add(Part{Name: PartAttention, Bytes: m.Weights.Attention})
	add(Part{Name: PartOther, Bytes: m.Weights.Other})
	add(Part{Name: PartPredictor, Bytes: c.Predictor})
	add(Part{Name: PartDense, Bytes: times(c.Dense, m.Units, int(m.Stride)+RowBytes)})
	add(Part{Name: PartRowCache, Bytes: rows})
	add(Part{Name: PartKV, Bytes: times(sequences, m.Layers, c.Positions,
		int(KVBytes(m.KVHeads, m.HeadDim, c.KVElement))), Element: c.KVElement})
	add(Part{Name: PartActivations, Bytes: m.activations(&c)})
	add(Part{Name: PartStaging, Bytes: c.Staging})
	add(Part{Name: PartPrefetch, Bytes: c.prefetch()})
	add(Part{Name: PartBookkeeping, Bytes: m.bookkeeping(&c)})
	return account
}

// cached returns the capacities of the row caches, those behind the dense layers.
func (c *Config) cached() []int { return c.Rows[min(c.Dense, len(c.Rows)):] }

// activations is the size of the vectors of all tokens of a step and of one token's attention
// scores. A token has the residual stream, its norm, the output of a part, query, attention output,
// key, value, the values of the rows, the active values with their rows, the embedding and the
// logits.
func (m *Model) activations(c *Config) units.Bytes {
	q, kv := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim
	token := (3+c.Features)*m.DModel + 2*q + 2*kv + 3*m.Units + m.Embed + m.Vocab
	return times(c.Batch, token, float) + times(m.Heads, c.Positions, float)
}

// prefetch is the size of the prefetch buffer.
func (c *Config) prefetch() units.Bytes {
	switch {
	case !c.Prefetch:
		return 0
	case c.PrefetchLimit > 0:
		return c.PrefetchLimit
	}
	return units.Bytes(layout.Rounded(int64(c.Staging)))
}

// bookkeeping is the size of masks and lists. Every token of a step has masks of all layers and two
// masks of active units, and all tokens share the union. Every layer on flash has the state of its
// policy, the slots of its units and the list of units to evict. The layers share the lists of
// rows, records and requests, sized for the largest layer.
func (m *Model) bookkeeping(c *Config) units.Bytes {
	set := mask.Words(m.Units) * 8
	total := times(c.Batch, m.Layers, set+2*header) + times(c.Batch, 2*set) +
		times(m.Layers, set+2*header)
	largest := 0
	for _, rows := range c.cached() {
		total += c.Policy.StateBytes(m.Units) + times(m.Units, 2*index) + times(rows, index)
		largest = max(largest, rows)
	}
	return total + times(largest, RowBytes+2*index+recordPlace+ReadBytes+BufferBytes)
}

// times is the product of sizes, each at least 0, and at most 2^58.
func times(list ...int) units.Bytes {
	const most = 1 << 58
	product := 1.0
	for _, n := range list {
		product *= float64(max(n, 0))
	}
	if product > most {
		return most
	}
	exact := int64(1)
	for _, n := range list {
		exact *= int64(max(n, 0))
	}
	return units.Bytes(exact)
}
