package sim

import (
	"fmt"
	"iter"
	"slices"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// Layer takes the decisions of one layer: which units are read, which are evicted, and how many
// rows of its cache are copied. It knows nothing of time and is not safe for concurrent use.
type Layer struct {
	policy policy.Policy
	cache  Cache
	dec    policy.Decision
}

// NewLayer returns a layer with nothing in memory.
func NewLayer(p policy.Policy, units int) *Layer {
	return &Layer{policy: p, cache: NewCache(units)}
}

// Step decides for one token, which needs the units of a mask. It returns the counts and the units
// to load, ascending and valid until the next Step.
func (l *Layer) Step(need mask.Mask) (w Work, load []uint32) {
	l.policy.Step(need, &l.dec)
	w.Hits, w.Loads, w.Evictions = l.dec.Hits, len(l.dec.Load), len(l.dec.Evict)
	// A policy that reads every unit makes the layer compute more than the mask.
	w.Need = w.Hits + w.Loads - l.dec.Ahead
	w.Copies, w.Resident = l.cache.Apply(l.dec.Load, l.dec.Evict)
	return w, l.dec.Load
}

// Reset empties memory and policy, as a new sequence does.
func (l *Layer) Reset() {
	l.policy.Reset()
	l.cache.Reset()
}

// Cache counts the row copies of one layer's cache. As in the engine, evictions decided after a
// token are applied with the next token's copies.
type Cache struct {
	slots   *policy.Slots
	pending []uint32
}

// NewCache returns an empty cache for so many units.
func NewCache(units int) Cache { return Cache{slots: policy.NewSlots(units)} }

// Apply removes the units that the last Apply was given to evict, inserts load, and keeps evict for
// the next Apply. It returns the number of rows copied (rows that fill gaps, and loaded rows) and
// the number of rows in memory after that.
func (c *Cache) Apply(load, evict []uint32) (copies, resident int) {
	for _, u := range c.pending {
		if from, to := c.slots.Delete(u); from != to {
			copies++
		}
	}
	for _, u := range load {
		c.slots.Insert(u)
	}
	c.pending = append(c.pending[:0], evict...)
	return copies + len(load), c.slots.Len()
}

// Reset empties the cache.
func (c *Cache) Reset() {
	c.slots.Reset()
	c.pending = c.pending[:0]
}

// Policies builds the policy of every layer. The policies hot and belady read src first, to count
// the uses of the units or to know the future. They are bounds for this trace.
func (cfg *Config) Policies(src traces.Source) ([]policy.Policy, error) {
	head, spec := src.Header(), cfg.Policy
	list := make([]policy.Policy, head.Layers)
	for l := range list {
		opt := policy.Options{Layer: l}
		var failed error
		masks := cfg.masks(src, l, &failed)
		switch spec.Kind {
		case policy.KindHot:
			opt.Hot = ranked(masks, head.Units)
		case policy.KindBelady:
			opt.Future = masks
		}
		p, err := policy.New(spec, head.Units, opt)
		if failed != nil {
			return nil, failed
		}
		if err != nil {
			return nil, configError{fmt.Errorf("sim: layer %d: %w", l, err)}
		}
		list[l] = p
	}
	return list, nil
}

// Layers returns every layer with its policy of Policies and nothing in memory.
func (cfg *Config) Layers(src traces.Source) ([]*Layer, error) {
	policies, err := cfg.Policies(src)
	if err != nil {
		return nil, err
	}
	layers := make([]*Layer, len(policies))
	for l, p := range policies {
		layers[l] = NewLayer(p, src.Header().Units)
	}
	return layers, nil
}

// masks yields the needed units of a layer for every token. It ends at a token that cannot be read
// and stores the error in failed.
func (cfg *Config) masks(src traces.Source, layer int, failed *error) iter.Seq[mask.Mask] {
	return func(yield func(mask.Mask) bool) {
		var t traces.Token
		for i := range cfg.tokens(src) {
			if *failed = src.Token(i, &t); *failed != nil || !yield(cfg.needed(&t)[layer]) {
				return
			}
		}
	}
}

// needed returns the masks of a token that say which units are needed.
func (cfg *Config) needed(t *traces.Token) []mask.Mask {
	return t.Masks(cfg.Predicted)
}

// tokens is the number of tokens of src that are simulated.
func (cfg *Config) tokens(src traces.Source) int {
	if n := src.Tokens(); cfg.MaxTokens <= 0 || n < cfg.MaxTokens {
		return n
	}
	return cfg.MaxTokens
}

// ranked lists the units by the number of tokens that need them, descending, then by number.
func ranked(masks iter.Seq[mask.Mask], units int) []uint32 {
	uses := make([]int, units)
	for m := range masks {
		for u := range m.Each {
			uses[u]++
		}
	}
	list := make([]uint32, units)
	for u := range list {
		list[u] = uint32(u)
	}
	slices.SortStableFunc(list, func(a, b uint32) int { return uses[b] - uses[a] })
	return list
}
