package engine

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
)

// Predictor says which units a layer is going to need. It adds them to need, which it finds empty;
// feature is of the kind of Predictors (d_model). A prediction may be wrong either way: what is not
// named is not computed, at a loss.
type Predictor interface {
	Predict(layer int, feature []float32, need mask.Mask) error
}

// TokenPredictor names the units of all layers behind the first at once, from the feature of layer
// 0; masks are by layer, and those behind the first are clear.
type TokenPredictor interface {
	PredictToken(feature []float32, masks []mask.Mask) error
}

// Predictors name what is needed. Layer names what a layer needs from that layer's feature;
// LookAhead what the next layer needs (it is asked with the index of the layer whose feature it
// gets); Token what all layers behind the first need.
type Predictors struct {
	Layer, LookAhead Predictor
	Token            TokenPredictor
	FeatureKind      FeatureKind // what all of them predict from
}

// bring fetches the rows that the tokens of a step need of its layer, and notes the times. Those of
// the next layer are announced before the wait for what is under way, but after what has to be read
// on demand.
func (e *Engine) bring(s *Step) error {
	if err := e.synchronise(&s.ev.Wait.Attention); err != nil {
		return err
	}
	s.ev.Attention.Dur = e.now() - s.ev.Attention.Start
	flash, onFlash := e.rows.(*Flash)
	start := e.now()
	if err := e.want(s, s.Layer, e.predict.Layer); err != nil {
		return err
	}
	early := onFlash && flash.announced(s.Layer)
	if early {
		if err := e.announceNext(s); err != nil {
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
	if early {
		return nil
	}
	return e.announceNext(s) // in the time of the feed-forward part
}

// announceNext starts the reads of the next layer, where the schedule wants them now.
func (e *Engine) announceNext(s *Step) error {
	next := s.Layer + 1
	if e.schedule != schedule.LookAhead || next >= e.shape.Layers {
		return nil
	}
	if err := e.want(s, next, e.predict.LookAhead); err != nil {
		return err
	}
	if flash, ok := e.rows.(*Flash); ok {
		e.masks[next] = e.union(s, next)
		return flash.Announce(next, next+1, e.masks)
	}
	return nil
}

// announceToken starts the reads of all layers after the first, once that has computed.
func (e *Engine) announceToken(s *Step) error {
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
		if err := e.want(s, l, nil); err != nil {
			return err
		}
		e.masks[l] = e.union(s, l)
	}
	if flash, ok := e.rows.(*Flash); ok {
		if err := flash.Announce(1, e.shape.Layers, e.masks); err != nil {
			return err
		}
	}
	s.ev.Predict.Dur += e.now() - start
	return nil
}

// predictToken asks the predictor of whole tokens.
func (e *Engine) predictToken(s *Step) error {
	for i := range s.entries {
		a := &s.entries[i]
		for l := 1; l < len(a.own); l++ { // that of layer 0 is what it has just computed
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

// want sees to it that every token knows what it needs of a layer: from earlier in the step, from a
// predictor, or from the masks that it came with. Where all rows are in memory and nobody predicts,
// it needs all.
func (e *Engine) want(s *Step, l int, p Predictor) error {
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

// union is what the tokens of a step need of a layer together; nil where they need all. Where rows
// on flash have no room for all of it, the units with the highest numbers are left out, of the
// tokens' masks too.
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

// leaveOut keeps the first room units of a union, and takes the others out of the masks that it is
// made of. These may belong to a trace and are copied.
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

// wants says whether a token needs a unit of the layer that is computed.
func (a *entry) wants(l int, unit uint32) bool {
	return a.need[l] == nil || a.need[l].Has(unit)
}
