package placement

import (
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

const (
	// mostMembers bounds the stored units of one layer's sets: 32 MiB.
	mostMembers = 1 << 23
	// mostPairs bounds the counted pairs of one layer. A pair of a token counts twice.
	mostPairs = 1 << 28
)

// sets are the sets of units of one layer, one for each token.
type sets struct {
	units int
	uses  []uint32   // of every unit: the number of its sets, over all tokens
	every int        // lists has the sets of one in so many tokens
	lists [][]uint32 // ascending
}

// add counts a set.
func (s *sets) add(list []uint32) {
	for _, u := range list {
		s.uses[u]++
	}
}

// learned holds the sets of one layer, over a part of a trace.
type learned struct {
	needed sets // units that a token needs
	read   sets // units of them that are not in memory
}

// learner reads the sets of a part, layer by layer.
type learner struct {
	src *part
	cfg *sim.Config
	// Policies for two passes: a policy that knows the future cannot start again.
	count, keep []*sim.Layer
	// The limits of one layer.
	members, pairs int64
}

func newLearner(src *part, cfg *sim.Config) (*learner, error) {
	l := &learner{src: src, cfg: cfg, members: mostMembers, pairs: mostPairs}
	var err error
	if l.count, err = cfg.Layers(src); err != nil {
		return nil, err
	}
	l.keep, err = cfg.Layers(src)
	return l, err
}

// layer reads the sets of one layer. The first pass counts them. The second stores as many tokens'
// sets as the limits allow.
func (l *learner) layer(layer int) (*learned, error) {
	n := l.src.Header().Units
	all := &learned{
		needed: sets{units: n, uses: make([]uint32, n), every: 1},
		read:   sets{units: n, uses: make([]uint32, n), every: 1},
	}
	var members, pairs [2]int64
	err := l.each(l.count[layer], layer, func(_ int, needed, read []uint32) {
		for i, list := range [2][]uint32{needed, read} {
			all.of(i).add(list)
			members[i] += int64(len(list))
			pairs[i] += int64(len(list)) * int64(len(list))
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range members {
		all.of(i).every = int(max(1, (members[i]+l.members-1)/l.members,
			(pairs[i]+l.pairs-1)/l.pairs))
	}
	return all, l.each(l.keep[layer], layer, func(token int, needed, read []uint32) {
		for i, list := range [2][]uint32{needed, read} {
			if s := all.of(i); token%s.every == 0 {
				s.lists = append(s.lists, append([]uint32(nil), list...))
			}
		}
	})
}

// of returns the needed sets for 0, the read sets for 1.
func (l *learned) of(i int) *sets {
	if i == 0 {
		return &l.needed
	}
	return &l.read
}

// each steps a layer's policy through the part and calls do for every token. The lists are valid
// until do returns.
func (l *learner) each(step *sim.Layer, layer int, do func(token int, needed,
	read []uint32)) error {
	var t traces.Token
	var list []uint32
	var sequences traces.Sequences
	for i := range l.src.Tokens() {
		if err := l.src.Token(i, &t); err != nil {
			return err
		}
		if sequences.Changes(t.Seq) {
			step.Reset()
		}
		need := t.Masks(l.cfg.Predicted)[layer]
		list = need.AppendUnits(list[:0])
		_, load := step.Step(need)
		do(i, list, load)
	}
	return nil
}
