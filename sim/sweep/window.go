package sweep

import (
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/sim"
)

// history keeps the masks of the last tokens of every layer. The decisions of all windows follow
// from them. Before token t, a window of k holds the units of the tokens t−k … t−1 of the sequence.
// Token t loads the units that it needs and that are not in this union. Units of token t−k that no
// token of t−k+1 … t needs are evicted. The union of a window has one mask more than that of the
// next shorter window.
type history struct {
	words, places int
	masks         []mask.Mask // by layer, a ring of places masks
}

func newHistory(layers, words, longest, block int) *history {
	h := &history{words: words, places: longest + block + 1, masks: make([]mask.Mask, layers)}
	for l := range h.masks {
		h.masks[l] = make(mask.Mask, words*h.places)
	}
	return h
}

// at returns the mask of a token of the last longest + block ones.
func (h *history) at(layer, token int) mask.Mask {
	from := token % h.places * h.words
	return h.masks[layer][from : from+h.words : from+h.words]
}

// covers holds, for each of a range of tokens, the union of the window of k tokens that ends with
// it. The first union ends with token first−1.
type covers struct {
	k     int
	first int         // token of union[1]
	union []mask.Mask // of the k tokens up to and with token first−1+i
}

// begin resets to windows of 0 tokens.
func (c *covers) begin(first, count, words int) {
	for len(c.union) <= count {
		c.union = append(c.union, make(mask.Mask, words))
	}
	c.k, c.first = 0, first
	for _, u := range c.union {
		clear(u)
	}
}

// widen extends the unions to windows of k tokens. starts[i] is the first token of the sequence of
// token first−1+i.
func (c *covers) widen(k int, h *history, layer int, starts []int) {
	for ; c.k < k; c.k++ {
		for i, start := range starts {
			if token := c.first - 1 + i - c.k; token >= start && token >= 0 {
				c.union[i].Or(h.at(layer, token))
			}
		}
	}
}

// windowed takes the decisions of a window of k tokens.
type windowed struct {
	k      int
	caches []sim.Cache // by layer
}

// step decides token i of the block. The lists of dec are reused.
func (w *windowed) step(p *pass, g *masks, layer, i int, c *covers,
	dec *policy.Decision) (work sim.Work) {
	token := p.first + i
	need := g.history.at(layer, token)
	start := p.starts[i+1]
	if token == start {
		w.caches[layer].Reset()
		dec.Load = need.AppendUnits(dec.Load[:0])
	} else {
		dec.Load = need.AppendAndNot(dec.Load[:0], c.union[i])
	}
	dec.Evict = dec.Evict[:0]
	if oldest := token - w.k; oldest >= start {
		dec.Evict = g.history.at(layer, oldest).AppendAndNot(dec.Evict, c.union[i+1])
	}
	work = sim.Work{Need: g.need[layer*p.block+i], Loads: len(dec.Load), Evictions: len(dec.Evict)}
	work.Hits = work.Need - work.Loads
	work.Copies, work.Resident = w.caches[layer].Apply(dec.Load, dec.Evict)
	return work
}
