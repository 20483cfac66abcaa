package report

import (
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// Exact is the "result" of a document about Runs: the numbers as they are.
type Exact struct {
	Title      string              `json:"title"`
	Generated  string              `json:"generated,omitempty"`
	Facts      []document.Fact     `json:"facts"`
	Sanity     []Sanity            `json:"sanity"`
	Comparison *compare.Comparison `json:"comparison"`
	Runs       []RunDocument       `json:"runs"`
	Trace      *TraceDocument      `json:"trace"`
	Tables     []document.Section  `json:"tables"`
}

// RunDocument is one Run, token by token.
type RunDocument struct {
	Label  string         `json:"label"`
	Kind   string         `json:"kind"`
	Meta   traces.RunMeta `json:"meta"`
	Tokens TokenColumns   `json:"tokens"`
}

// TokenColumns holds one entry per token in every array. Times are plain integers: units.Nanos
// would be written as text.
type TokenColumns struct {
	Token     []uint32           `json:"token"`
	Seq       []uint32           `json:"seq"`
	Pos       []uint32           `json:"pos"`
	Phase     []int              `json:"phase"` // 0 prefill, 1 decode
	Latency   []int64            `json:"latency_ns"`
	Parts     map[string][]int64 `json:"parts_ns"` // by part; encoding/json sorts the keys
	Bytes     []int64            `json:"flash_bytes"`
	Requests  []int64            `json:"requests"`
	Hits      []int64            `json:"hits"`
	Misses    []int64            `json:"misses"`
	Evictions []int64            `json:"evictions"`
	Depth     []float32          `json:"queue_depth"`
}

// TraceDocument is TraceStats with Δ.
type TraceDocument struct {
	Units       int       `json:"units_per_layer"`
	ActiveShare []float64 `json:"active_share_by_layer"`
	SAgg        []float64 `json:"s_agg_units_by_k"`
	Delta       []float64 `json:"delta_units_by_k"`
}

func (d *Data) exact(runs []series, c *contents) *Exact {
	doc := &Exact{
		Title: d.Title, Generated: d.Generated, Facts: append([]document.Fact{}, d.Facts...),
		Sanity: d.sanity(runs), Comparison: d.Comparison, Runs: []RunDocument{},
		Tables: append(append([]document.Section{}, c.Summary...), c.Details...),
	}
	for _, s := range runs {
		doc.Runs = append(doc.Runs,
			RunDocument{s.label, s.kind, s.run.Meta, tokenColumns(s.tokens)})
	}
	if t := d.Trace; t != nil {
		doc.Trace = &TraceDocument{t.Units, append([]float64{}, t.ActiveShare...),
			append([]float64{}, t.SAgg...), append([]float64{}, t.Delta()...)}
	}
	return doc
}

func tokenColumns(ts []compare.Token) TokenColumns {
	c := TokenColumns{Parts: make(map[string][]int64, traces.Parts)}
	for _, t := range ts {
		c.Token = append(c.Token, t.Index)
		c.Seq = append(c.Seq, t.Seq)
		c.Pos = append(c.Pos, t.Pos)
		c.Phase = append(c.Phase, int(t.Phase))
		c.Latency = append(c.Latency, int64(t.Latency))
		for p := range traces.Part(traces.Parts) {
			c.Parts[p.String()] = append(c.Parts[p.String()], int64(t.Parts[p]))
		}
		c.Bytes = append(c.Bytes, int64(t.Bytes))
		c.Requests = append(c.Requests, t.Requests)
		c.Hits = append(c.Hits, t.Hits)
		c.Misses = append(c.Misses, t.Misses)
		c.Evictions = append(c.Evictions, t.Evictions)
		c.Depth = append(c.Depth, float32(t.Depth))
	}
	return c
}
