package policy

import (
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
)

// ErrController is wrapped by errors about invalid Bounds.
var ErrController = errors.New("not usable bounds of a window")

// Bounds limit a Controller.
type Bounds struct {
	Min, Max int // tokens, 0 ≤ Min ≤ Max
	// hysteresis, ≥ 1: the window grows after so many tokens in a row with room for one token more
	Calm int
}

// Check returns an error that wraps ErrController for invalid bounds.
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

// Controller chooses the window of the next token from the room in memory. It shrinks at once, and
// grows by one token after Bounds.Calm tokens with room for it. It is a pure state machine that
// knows neither bytes nor time. It is not safe for concurrent use.
//
// It uses the rows that every window would have used with the last token, whether or not that
// window was in effect. Its choices therefore depend on masks and budgets alone, and a budget that
// is never smaller never gives a shorter window.
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

// Reset starts a new sequence with an empty memory, at the longest window.
func (c *Controller) Reset() { c.window, c.calm = c.bounds.Max, 0 }

// Next returns the window of the next token. room is the number of rows that fit into memory while
// that token computes. use[k] is the number of rows that the last token would have used with a
// window of k tokens (Elastic.Use); it ends at the length of the sequence so far. last is the
// window at the end of the last token, which is shorter than the one that Next returned if that
// token made it shrink.
func (c *Controller) Next(room, last int, use []int) int {
	if last < c.window {
		c.window, c.calm = max(last, c.bounds.Min), 0
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

// fitting returns the longest window from k down to least that has room, or least.
func fitting(use []int, room, k, least int) int {
	for k > least && use[k] > room {
		k--
	}
	return k
}

// Elastic is a Window of all layers of a model. Its length may change before every token and, if a
// token does not fit, during it. With a constant length each layer decides exactly like a Window of
// that length.
//
// A row is in use from its load until the end of the token that evicts it. The rows of a layer's
// Evict leave at the next Begin, before any read. Elastic is not safe for concurrent use.
type Elastic struct {
	window, longest int
	now             int // index of the token in its sequence; −1 before the first
	layers          []elastic
	// by token index modulo longest+1: units of all layers that were last active in that token
	rows  []int
	early [][]uint32 // by layer, reused
}

// elastic is one layer.
type elastic struct {
	resident   mask.Mask
	lastActive []int32 // −1 = not in this sequence
	size       int     // units in resident
	leaving    int     // units of the last Evict, still in use
}

// NewElastic returns an empty Elastic over so many layers of so many units, with a window of at
// most longest tokens.
func NewElastic(layers, units, longest int) *Elastic {
	e := &Elastic{longest: longest, layers: make([]elastic, layers), rows: make([]int, longest+1),
		early: make([][]uint32, layers)}
	for l := range e.layers {
		e.layers[l] = elastic{resident: mask.New(units), lastActive: make([]int32, units)}
	}
	e.Reset()
	return e
}

// Reset empties memory, for a new sequence.
func (e *Elastic) Reset() {
	e.window, e.now = e.longest, -1
	clear(e.rows)
	for l := range e.layers {
		y := &e.layers[l]
		clear(y.resident)
		for u := range y.lastActive {
			y.lastActive[u] = -1
		}
		y.size, y.leaving = 0, 0
	}
}

// Window returns the current length: that of Begin, unless Step has shortened it since.
func (e *Elastic) Window() int { return e.window }

// InUse returns the number of rows in use in all layers.
func (e *Elastic) InUse() int {
	n := 0
	for l := range e.layers {
		n += e.layers[l].size + e.layers[l].leaving
	}
	return n
}

// Use appends the numbers of rows that the last token would have used with windows of 0, 1, …
// tokens, up to the length of the sequence and of the longest window.
func (e *Elastic) Use(use []int) []int {
	sum := 0
	for age := 0; age <= min(e.now, e.longest); age++ {
		sum += e.rows[(e.now-age)%len(e.rows)]
		use = append(use, sum)
	}
	return use
}

// Begin starts a token with a window of k tokens, or of the nearest possible length. It returns the
// units, by layer and ascending, that leave memory before the token reads. The result is valid
// until the next call.
func (e *Elastic) Begin(k int) (early [][]uint32) {
	e.now++
	e.window = min(max(k, 0), e.longest)
	e.rows[e.now%len(e.rows)] = 0
	for l := range e.layers {
		y := &e.layers[l]
		y.leaving = 0
		e.early[l] = y.evictInactive(e.now-e.window, e.early[l][:0])
	}
	return e.early
}

// Step decides for the next layer of the token, as Policy.Step does. room is the number of rows
// that fit into memory, for all layers together. If the loads do not fit, the window of all layers
// shrinks at once, as far as it must. early is then the units, by layer and ascending, that leave
// memory before any read of d.Load, together with the units that earlier layers of the token evict.
// early is nil if the loads fit, and valid until the next call. A window of 0 tokens cannot shrink:
// the loads are decided all the same, and InUse exceeds room.
func (e *Elastic) Step(layer int, need mask.Mask, room int, d *Decision) (early [][]uint32) {
	y := &e.layers[layer]
	d.demand(need, y.resident)
	e.touch(y, need)
	if fits := e.fitting(room); fits < e.window {
		e.window = fits
		for l := range e.layers {
			e.layers[l].leaving = 0
			e.early[l] = e.layers[l].evictInactive(e.now-e.window, e.early[l][:0])
		}
		early = e.early
	}
	y.resident.Or(need)
	y.size += len(d.Load)
	d.Evict = y.evictInactive(e.now-e.window+1, d.Evict)
	y.leaving = len(d.Evict)
	return early
}

// touch marks the units that the token needs as active.
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

// fitting returns the longest window, up to the current one, whose rows fit after the current layer
// has loaded. Layers that have computed use the units of the last k+1 tokens, later layers only
// those of the k tokens before this one. A window that has just grown counts as if it had always
// had its length.
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

// evictInactive removes the units that have not been active since the token of that index, and
// appends them in ascending order.
func (y *elastic) evictInactive(since int, out []uint32) []uint32 {
	if y.size == 0 {
		return out
	}
	from := len(out)
	for u := range y.resident.Each {
		if int(y.lastActive[u]) < since {
			out = append(out, u)
			y.resident.Clear(u)
		}
	}
	y.size -= len(out) - from
	return out
}
