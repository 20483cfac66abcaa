package sweep

import (
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/sim"
)

// history keeps the masks of the last tokens of every layer, from which the decisions of all
// windows follow: before token t a window of k holds the units of the tokens t−k … t−1 of the
// sequence, so that t loads what it needs beyond their union, and what of token t−k none of t−k+1 …
// t needs leaves. The unions of a longer window are those of a shorter one with one mask more.
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

// covers are the unions of the window of k tokens that ends with each of a range of tokens; those
// before token first end the first.
type covers struct {
	k     int
	first int         // token of union[1]
	union []mask.Mask // of the k tokens up to and with token first−1+i
}

// begin returns to windows of no tokens.
func (c *covers) begin(first, count, words int) {
	for len(c.union) <= count {
		c.union = append(c.union, make(mask.Mask, words))
	}
	c.k, c.first = 0, first
	for _, u := range c.union {
		clear(u)
	}
}

// widen goes on to windows of k tokens; starts[i] is the first token of the sequence of token
// first−1+i.
func (c *covers) widen(k int, h *history, layer int, starts []int) {
	for ; c.k < k; c.k++ {
		for i, start := range starts {
			if token := c.first - 1 + i - c.k; token >= start && token >= 0 {
				c.union[i].Or(h.at(layer, token))
			}
		}
	}
}

// windowed is the decisions of one length of window.
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
