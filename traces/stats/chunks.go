package stats

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// MaxChunk is the largest number of prompt tokens in one step.
const MaxChunk = 256

// Chunk is the mean step of a prompt that is computed several tokens at a time: the union over
// consecutive tokens of one sequence.
type Chunk struct {
	Tokens int `json:"tokens_count"`
	// number of chunks in the mean; 0 if no sequence is long enough
	Chunks        int     `json:"chunks_count"`
	Units         float64 `json:"units"` // of one layer, mean over the layers
	Share         float64 `json:"share"`
	BytesPerToken float64 `json:"bytes_per_token"` // of all layers
}

// ComputeChunks measures chunks of 1, 2, 4, … MaxChunk tokens in one pass. It cuts each sequence
// from its start, whatever the phase of its tokens. A shorter chunk at the end of a sequence is
// left out.
func ComputeChunks(src traces.Source, predicted bool) ([]Chunk, error) {
	h := src.Header()
	switch {
	case h.Layers <= 0 || h.Units <= 0:
		return nil, fmt.Errorf("stats: header: %d layers of %d units: nothing to unite", h.Layers,
			h.Units)
	case predicted && !h.HasPredicted:
		return nil, fmt.Errorf("stats: predicted masks: the trace has none; measure the true " +
			"masks, or record with a predictor")
	}
	var passes []*chunkPass
	for n := 1; n <= MaxChunk; n *= 2 {
		passes = append(passes, newChunkPass(h, n))
	}
	name := "active"
	if predicted {
		name = "predicted"
	}
	var sequences traces.Sequences
	var t traces.Token
	for i := range src.Tokens() {
		if err := src.Token(i, &t); err != nil {
			return nil, fmt.Errorf("stats: token %d: %w", i, err)
		}
		masks := t.Masks(predicted)
		if err := h.CheckMasks(name, masks); err != nil {
			return nil, fmt.Errorf("stats: token %d: %w", i, err)
		}
		first := sequences.Begins(t.Seq)
		for _, p := range passes {
			p.step(masks, first)
		}
	}
	var list []Chunk
	for _, p := range passes {
		list = append(list, p.chunk(h))
	}
	return list, nil
}

// chunkPass measures chunks of one length.
type chunkPass struct {
	tokens int
	have   int         // tokens of the current chunk
	union  []mask.Mask // by layer
	units  int64
	chunks int
}

func newChunkPass(h *traces.Header, tokens int) *chunkPass {
	return &chunkPass{tokens: tokens, union: mask.NewLayers(h.Layers, h.Units)}
}

func (p *chunkPass) step(masks []mask.Mask, first bool) {
	if first || p.have == p.tokens {
		p.have = 0
		for l := range p.union {
			clear(p.union[l])
		}
	}
	for l, m := range masks {
		p.union[l].Or(m)
	}
	if p.have++; p.have < p.tokens {
		return
	}
	p.chunks++
	for _, m := range p.union {
		p.units += int64(m.Count())
	}
}

func (p *chunkPass) chunk(h *traces.Header) Chunk {
	c := Chunk{Tokens: p.tokens, Chunks: p.chunks, Units: ratio(p.units,
		int64(p.chunks)*int64(h.Layers))}
	c.Share = c.Units / float64(h.Units)
	c.BytesPerToken = c.Units * float64(h.Layers) * float64(h.UnitBytes) / float64(p.tokens)
	return c
}
