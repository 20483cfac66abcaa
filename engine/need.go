package engine

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
)

// Predictor predicts which units a layer needs. It adds them to need, which is empty; feature is of
// the kind of Predictors (d_model). A prediction may be wrong either way: a unit that is not
// predicted is not computed, at a loss of quality.
type Predictor interface {
	Predict(layer int, feature []float32, need mask.Mask) error
}

// TokenPredictor predicts the units of all layers behind the first at once, from the feature of
// layer 0. masks are by layer, and those behind the first are empty.
type TokenPredictor interface {
	PredictToken(feature []float32, masks []mask.Mask) error
}

// Predictors predict what is needed. Layer predicts the units of a layer from that layer's feature.
// LookAhead predicts those of the next layer; its argument is the layer whose feature it gets.
// Token predicts those of all layers behind the first.
type Predictors struct {
	Layer, LookAhead Predictor
	Token            TokenPredictor
	FeatureKind      FeatureKind // that all of them predict from
}

// fetchRows loads this layer's rows and notes the times. It issues the next layer's prefetches
// after this layer's demand reads and before it waits for prefetches in flight.
func (e *Engine) fetchRows(s *Step) error {
	if err := e.synchronise(&s.ev.Wait.Attention); err != nil {
		return err
	}
	s.ev.Attention.Dur = e.now() - s.ev.Attention.Start
	flash, onFlash := e.rows.(*Flash)
	start := e.now()
	if err := e.decideNeed(s, s.Layer, e.predict.Layer); err != nil {
		return err
	}
	prefetched := onFlash && flash.prefetching(s.Layer)
	if prefetched {
		if err := e.prefetchNext(s); err != nil {
			return err
		}
	}
	decided := e.now() - start
	rows, err := e.rows.Layer(s.Layer, e.union(s, s.Layer), e.now, &s.ev)
	if err != nil {
		return err
	}
	s.Rows = rows
	if onFlash && e.timed {
		waiting := e.now()
		if err := flash.store.Synchronise(); err != nil {
			return err
		}
		end := e.now()
		s.ev.Wait.Scatter, s.ev.Memory.Dur = end-waiting, end-s.ev.Memory.Start
	}
	s.ev.Predict.Start = start
	s.ev.Predict.Dur += decided
	s.ev.FFN.Start = s.ev.Memory.Start + s.ev.Memory.Dur
	if prefetched {
		return nil
	}
	return e.prefetchNext(s) // beside the feed-forward part
}

// prefetchNext starts the prefetch of the next layer, if the schedule looks ahead.
func (e *Engine) prefetchNext(s *Step) error {
	next := s.Layer + 1
	if e.schedule != schedule.LookAhead || next >= e.shape.Layers {
		return nil
	}
	if err := e.decideNeed(s, next, e.predict.LookAhead); err != nil {
		return err
	}
	if flash, ok := e.rows.(*Flash); ok {
		e.masks[next] = e.union(s, next)
		return flash.Prefetch(next, next+1, e.masks)
	}
	return nil
}

// prefetchToken starts the prefetches of all layers behind the first, once the first has computed,
// if the schedule is of whole tokens.
func (e *Engine) prefetchToken(s *Step) error {
	if e.schedule != schedule.Token || s.Layer != 0 {
		return nil
	}
	start := e.now()
	if e.predict.Token != nil {
		if err := e.predictToken(s); err != nil {
			return err
		}
	}
	for l := 1; l < e.shape.Layers; l++ {
		if err := e.decideNeed(s, l, nil); err != nil {
			return err
		}
		e.masks[l] = e.union(s, l)
	}
	if flash, ok := e.rows.(*Flash); ok {
		if err := flash.Prefetch(1, e.shape.Layers, e.masks); err != nil {
			return err
		}
	}
	s.ev.Predict.Dur += e.now() - start
	return nil
}

// predictToken predicts what every token of a step needs of all layers behind the first.
func (e *Engine) predictToken(s *Step) error {
	for i := range s.entries {
		a := &s.entries[i]
		for l := 1; l < len(a.own); l++ { // layer 0 has its mask already
			clear(a.own[l])
		}
		feature, err := e.backend.Feature(s, i, e.predict.FeatureKind)
		if err != nil {
			return err
		}
		if err := e.predict.Token.PredictToken(feature, a.own); err != nil {
			return err
		}
		for l := 1; l < len(a.own); l++ {
			a.need[l] = a.own[l]
		}
	}
	return nil
}

// decideNeed sets the mask of what every token needs of a layer, unless it is set already: from the
// predictor p, or else from the masks that the token came with. A token without either needs all
// units; rows on flash refuse that.
func (e *Engine) decideNeed(s *Step, l int, p Predictor) error {
	for i := range s.entries {
		a, t := &s.entries[i], &s.Tokens[i]
		switch {
		case a.need[l] != nil:
		case p != nil:
			clear(a.own[l])
			feature, err := e.backend.Feature(s, i, e.predict.FeatureKind)
			if err != nil {
				return err
			}
			if err := p.Predict(s.Layer, feature, a.own[l]); err != nil {
				return err
			}
			a.need[l] = a.own[l]
		case len(t.Masks) > l:
			a.need[l] = t.Masks[l]
		case e.rows.Masked(l):
			return fmt.Errorf("no mask: a flash-resident engine needs a predictor, or the masks " +
				"of a recorded trace of the same tokens")
		}
	}
	return nil
}

// union returns what the tokens of a step need of a layer together; nil if they need all units. If
// rows on flash have no room for the union, the units with the highest numbers are left out, also
// out of the tokens' masks.
func (e *Engine) union(s *Step, l int) mask.Mask {
	if s.entries[0].need[l] == nil {
		return nil
	}
	all := s.entries[0].need[l]
	if len(s.entries) > 1 {
		all = e.unions[l]
		clear(all)
		for i := range s.entries {
			all.Or(s.entries[i].need[l])
		}
	}
	flash, ok := e.rows.(*Flash)
	if !ok || flash.room == 0 || !flash.Masked(l) {
		return all
	}
	over := all.Count() - flash.room
	if over <= 0 {
		return all
	}
	e.dropped[l] = over
	return e.leaveOut(s, l, all, flash.room)
}

// leaveOut keeps the first room units of a union, and takes the others out of the tokens' masks. It
// copies these masks, which may belong to a trace.
func (e *Engine) leaveOut(s *Step, l int, all mask.Mask, room int) mask.Mask {
	kept := e.unions[l]
	copy(kept, all)
	kept.KeepLowest(room)
	for i := range s.entries {
		a := &s.entries[i]
		copy(a.own[l], a.need[l])
		a.own[l].And(kept)
		a.need[l] = a.own[l]
	}
	return kept
}

// wants reports whether a token needs a unit of layer l.
func (a *entry) wants(l int, unit uint32) bool {
	return a.need[l] == nil || a.need[l].Has(unit)
}
