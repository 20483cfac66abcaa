package policy

import (
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
)

// ErrController marks bounds that no Controller can keep to.
var ErrController = errors.New("not usable bounds of a window")

// Bounds are what a Controller keeps to.
type Bounds struct {
	Min, Max int // tokens, 0 ≤ Min ≤ Max
	// hysteresis: tokens in a row with room for one token more before the window grows, ≥ 1
	Calm int
}

// Check returns an error, which wraps ErrController, for bounds that make no sense.
func (b Bounds) Check() error {
	switch {
	case b.Min < 0 || b.Max < b.Min:
		return fmt.Errorf("policy: a window of %d to %d tokens: the bounds ascend from 0 or "+
			"more: %w", b.Min, b.Max, ErrController)
	case b.Calm < 1:
		return fmt.Errorf("policy: a window that grows after %d tokens: at least 1 is needed: %w",
			b.Calm, ErrController)
	}
	return nil
}

// Controller chooses the window of the next token from what memory has room for: it shrinks at once
// and grows by one token after Bounds.Calm tokens with room for it. It is a pure state machine,
// knows neither bytes nor time, and is not safe for concurrent use.
//
// It goes by what every window would have used with the last token, whether or not it was in
// effect. So its choices depend on masks and budgets alone, and a budget that is never smaller
// never gives a shorter window.
type Controller struct {
	bounds Bounds
	window int
	calm   int // tokens in a row with room for a longer window
}

// NewController returns a Controller at its longest window: an empty memory has room. Errors wrap
// ErrController.
func NewController(b Bounds) (*Controller, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	c := &Controller{bounds: b}
	c.Reset()
	return c, nil
}

// Reset starts a new sequence, which finds an empty memory, at the longest window.
func (c *Controller) Reset() { c.window, c.calm = c.bounds.Max, 0 }

// Next returns the window of the next token. room is the number of rows that memory has room for
// while that token computes; use[k] is how many the last token would have used with a window of k
// tokens (Elastic.Use); windows longer than the sequence so far are not in it. held is the window
// that the last token ended with: a shorter one than Next said, where the token itself made it
// shrink.
func (c *Controller) Next(room, held int, use []int) int {
	if held < c.window {
		c.window, c.calm = max(held, c.bounds.Min), 0
	}
	longest := len(use) - 1
	if longest < 0 { // the first token
		return c.window
	}
	if fits := fitting(use, room, min(c.window, longest), c.bounds.Min); fits < min(c.window,
		longest) {
		c.window, c.calm = fits, 0
		return c.window
	}
	if c.window >= min(c.bounds.Max, longest) || use[c.window+1] > room {
		c.calm = 0
		return c.window
	}
	if c.calm++; c.calm >= c.bounds.Calm {
		c.window, c.calm = c.window+1, 0
	}
	return c.window
}

// fitting is the longest window, from k down to least, that has room; least if none has.
func fitting(use []int, room, k, least int) int {
	for k > least && use[k] > room {
		k--
	}
	return k
}

// Elastic is a Window of all layers of a model whose length may change before every token and,
// where a token would not fit, during it. With a constant length each layer decides exactly as a
// Window of that length does.
//
// Rows are in use from the moment they are loaded until the token that evicts them is over: those
// of a layer's Evict leave at the next Begin, before anything is read. It is not safe for
// concurrent use.
type Elastic struct {
	window, longest int
	now             int // index of the token in its sequence; −1 before the first
	layers          []elastic
	// by token index modulo longest+1: units of all layers that were active in it and not since
	rows  []int
	early [][]uint32 // by layer, reused
}

// elastic is one layer.
type elastic struct {
	resident   mask.Mask
	lastActive []int32 // −1 = not in this sequence
	held       int     // units in resident
	leaving    int     // units of the last Evict that are still in use
}

// NewElastic returns an empty Elastic over so many layers of so many units, whose window is never
// longer than longest.
func NewElastic(layers, units, longest int) *Elastic {
	e := &Elastic{longest: longest, layers: make([]elastic, layers), rows: make([]int, longest+1),
		early: make([][]uint32, layers)}
	for l := range e.layers {
		e.layers[l] = elastic{resident: mask.New(units), lastActive: make([]int32, units)}
	}
	e.Reset()
	return e
}

// Reset empties memory for a new sequence.
func (e *Elastic) Reset() {
	e.window, e.now = e.longest, -1
	clear(e.rows)
	for l := range e.layers {
		y := &e.layers[l]
		clear(y.resident)
		for u := range y.lastActive {
			y.lastActive[u] = -1
		}
		y.held, y.leaving = 0, 0
	}
}

// Window is the length now: that of Begin, unless Step has shortened it since.
func (e *Elastic) Window() int { return e.window }

// InUse is the number of rows in use, of all layers.
func (e *Elastic) InUse() int {
	n := 0
	for l := range e.layers {
		n += e.layers[l].held + e.layers[l].leaving
	}
	return n
}

// Use appends how many rows the last token would have used with windows of 0, 1, … tokens, as far
// as the sequence and the longest window go.
func (e *Elastic) Use(use []int) []int {
	sum := 0
	for age := 0; age <= min(e.now, e.longest); age++ {
		sum += e.rows[(e.now-age)%len(e.rows)]
		use = append(use, sum)
	}
	return use
}

// Begin starts a token with a window of k tokens. What it returns, by layer and ascending, leaves
// memory before the token reads anything; it is valid until the next call. k is taken to the
// nearest length that there is.
func (e *Elastic) Begin(k int) (early [][]uint32) {
	e.now++
	e.window = min(max(k, 0), e.longest)
	e.rows[e.now%len(e.rows)] = 0
	for l := range e.layers {
		y := &e.layers[l]
		y.leaving = 0
		e.early[l] = y.shed(e.now-e.window, e.early[l][:0])
	}
	return e.early
}

// Step decides for the next layer of the token, as Policy.Step does. room is the number of rows
// that memory has room for, all layers together. Where the loads do not fit, the window shrinks at
// once, of all layers, as far as it must: what it returns then, by layer and ascending, leaves
// memory before anything of d.Load is read, together with what earlier layers of the token were to
// evict; it is nil where the loads fit, and valid until the next call. With a window of 0 tokens
// nothing is left to shrink: the loads are decided all the same, and InUse is above room.
func (e *Elastic) Step(layer int, need mask.Mask, room int, d *Decision) (early [][]uint32) {
	y := &e.layers[layer]
	d.demand(need, y.resident)
	e.touch(y, need)
	if fits := e.fitting(room); fits < e.window {
		e.window = fits
		for l := range e.layers {
			e.layers[l].leaving = 0
			e.early[l] = e.layers[l].shed(e.now-e.window, e.early[l][:0])
		}
		early = e.early
	}
	y.resident.Or(need)
	y.held += len(d.Load)
	d.Evict = y.shed(e.now-e.window+1, d.Evict)
	y.leaving = len(d.Evict)
	return early
}

// touch marks the units that the token needs as active now.
func (e *Elastic) touch(y *elastic, need mask.Mask) {
	at, n := e.now%len(e.rows), len(e.rows)
	for u := range need.Each {
		if last := int(y.lastActive[u]); last >= 0 && e.now-last < n {
			e.rows[last%n]--
		}
		y.lastActive[u] = int32(e.now)
		e.rows[at]++
	}
}

// fitting is the longest window, up to the present one, with which the rows in use once the present
// layer has loaded fit: layers that have computed use the units of the last k+1 tokens, those to
// come only of the k before this one. A window that has just grown is counted as if it had always
// been so long.
func (e *Elastic) fitting(room int) int {
	sum, n := 0, len(e.rows)
	for k := 0; k <= min(e.window, e.now); k++ {
		sum += e.rows[(e.now-k)%n]
		if sum > room {
			return max(k-1, 0)
		}
	}
	return e.window
}

// shed takes out the units that have not been active since the token of that index, ascending.
func (y *elastic) shed(since int, out []uint32) []uint32 {
	if y.held == 0 {
		return out
	}
	from := len(out)
	for u := range y.resident.Each {
		if int(y.lastActive[u]) < since {
			out = append(out, u)
			y.resident.Clear(u)
		}
	}
	y.held -= len(out) - from
	return out
}
