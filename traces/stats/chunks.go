package stats

import (
	"fmt"
	"math/bits"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// MaxChunk is the largest number of tokens of a prompt that are measured as one step.
const MaxChunk = 256

// Chunk is the mean step of a prompt that is computed several tokens at a time: the union over
// tokens that follow each other in one sequence.
type Chunk struct {
	Tokens int `json:"tokens_count"`
	// that Units is the mean of; 0 when no sequence is long enough
	Chunks        int     `json:"chunks_count"`
	Units         float64 `json:"units"` // of one layer, mean over the layers
	Share         float64 `json:"share"`
	BytesPerToken float64 `json:"bytes_per_token"` // of all layers
}

// ComputeChunks measures chunks of 1, 2, 4, … MaxChunk tokens in one pass. Each sequence, whatever
// its tokens' phase, is cut from its start; a chunk that its end cuts short is left out.
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
	c := &collector{head: *h} // for its checks
	var t traces.Token
	for i := range src.Tokens() {
		if err := src.Token(i, &t); err != nil {
			return nil, fmt.Errorf("stats: token %d: %w", i, err)
		}
		masks, name := t.Active, "active"
		if predicted {
			masks, name = t.Predicted, "predicted"
		}
		if err := c.checkMasks(name, masks); err != nil {
			return nil, fmt.Errorf("stats: token %d: %w", i, err)
		}
		for _, p := range passes {
			p.step(masks, i == 0 || t.Seq != c.seq)
		}
		c.seq = t.Seq
	}
	var list []Chunk
	for _, p := range passes {
		list = append(list, p.chunk(h))
	}
	return list, nil
}

// chunkPass unites chunks of one length.
type chunkPass struct {
	tokens int
	have   int         // tokens of the current chunk
	union  []mask.Mask // (layer, word)
	units  int64
	chunks int
}

func newChunkPass(h *traces.Header, tokens int) *chunkPass {
	p := &chunkPass{tokens: tokens, union: make([]mask.Mask, h.Layers)}
	for l := range p.union {
		p.union[l] = make([]uint64, h.Words())
	}
	return p
}

func (p *chunkPass) step(masks []mask.Mask, first bool) {
	if first || p.have == p.tokens {
		p.have = 0
		for l := range p.union {
			clear(p.union[l])
		}
	}
	for l, mask := range masks {
		for w, m := range mask {
			p.union[l][w] |= m
		}
	}
	if p.have++; p.have < p.tokens {
		return
	}
	p.chunks++
	for l := range p.union {
		for _, w := range p.union[l] {
			p.units += int64(bits.OnesCount64(w))
		}
	}
}

func (p *chunkPass) chunk(h *traces.Header) Chunk {
	c := Chunk{Tokens: p.tokens, Chunks: p.chunks, Units: ratio(p.units,
		int64(p.chunks)*int64(h.Layers))}
	c.Share = c.Units / float64(h.Units)
	c.BytesPerToken = c.Units * float64(h.Layers) * float64(h.UnitBytes) / float64(p.tokens)
	return c
}
