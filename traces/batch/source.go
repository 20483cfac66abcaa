package batch

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// Source presents the steps of a batch as the tokens of one sequence. Its masks are those of the
// step. A token's position is its step, and its id is 0.
type Source struct {
	lanes   Lanes
	atLeast int
	head    traces.Header
	counts  *Counts
}

// Union returns the steps of a batch of size sequences (see Lanes). A step needs the units that at
// least atLeast of its sequences need; 1 gives the union. True and predicted masks are united in
// the same way.
func (s *Stream) Union(size, atLeast int) (*Source, error) {
	if atLeast < 1 || atLeast > MaxAtLeast {
		return nil, fmt.Errorf("batch: needed by at least %d sequences: 1 to %d are possible",
			atLeast, MaxAtLeast)
	}
	lanes, err := s.Lanes(size)
	if err != nil {
		return nil, err
	}
	u := &Source{lanes: lanes, atLeast: atLeast, head: *s.Header(),
		counts: NewCounts(s.Header().Words())}
	u.head.HasMagnitude = false // several sequences have several, and several features
	u.head.FeatureKind, u.head.FeatureWidth = "", 0
	u.head.Sampling = fmt.Sprintf("steps of a batch of %d, units of at least %d; %s", size, atLeast,
		u.head.Sampling)
	return u, nil
}

// Lanes returns the lanes of the batch. Their Count is its size.
func (u *Source) Lanes() Lanes { return u.lanes }

// Header implements traces.Source.
func (u *Source) Header() *traces.Header { return &u.head }

// Tokens implements traces.Source: the number of steps.
func (u *Source) Tokens() int { return u.lanes.Steps }

// Token implements traces.Source. It makes new masks for each call.
func (u *Source) Token(i int, t *traces.Token) error {
	if i < 0 || i >= u.lanes.Steps {
		return fmt.Errorf("batch: step %d: the batch has %d", i, u.lanes.Steps)
	}
	lanes := make([]traces.Token, u.lanes.Count)
	for lane := range lanes {
		if err := u.lanes.Read(lane, i, &lanes[lane]); err != nil {
			return err
		}
	}
	*t = traces.Token{Pos: uint32(i), Phase: lanes[0].Phase, Active: t.Active[:0],
		Predicted: t.Predicted[:0]}
	t.Active = u.unite(t.Active, lanes, false)
	if u.head.HasPredicted {
		t.Predicted = u.unite(t.Predicted, lanes, true)
	} else {
		t.Predicted = nil
	}
	return nil
}

// unite appends the union of the lanes' masks of every layer, predicted or true ones.
func (u *Source) unite(masks []mask.Mask, lanes []traces.Token, predicted bool) []mask.Mask {
	unions := mask.NewLayers(u.head.Layers, u.head.Units)
	for l := range unions {
		u.counts.Reset()
		for lane := range lanes {
			u.counts.Add(lanes[lane].Masks(predicted)[l])
		}
		copy(unions[l], u.counts.AtLeast(u.atLeast))
	}
	return append(masks, unions...)
}
