package whatif

import (
	"math"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// predictor is a trace with the predicted masks of a predictor with given error rates.
type predictor struct {
	src   traces.Source
	head  traces.Header
	found []rule // chooses the named ones of the active units
	wrong []rule // chooses the named ones of the inactive units
}

// newPredictor makes the rules that reach the rates of opt in each layer, and reports the rates
// reached.
func newPredictor(src traces.Source, opt Options, rep *Report) (*predictor, error) {
	h := src.Header()
	c, err := takeCensus(src)
	if err != nil {
		return nil, err
	}
	p := &predictor{src: src, head: *h, found: make([]rule, h.Layers), wrong: make([]rule,
		h.Layers)}
	p.head.HasPredicted = true
	hits, misses := make([]tally, h.Layers), make([]tally, h.Layers)
	for l := range p.found {
		p.found[l] = rule{method: thin, scorer: newScorer(opt.Seed, "missed", l, thinWeights(),
			c.counts[l])}
		if opt.SmallFirst && h.HasMagnitude {
			p.found[l].method = byMagnitude
		}
		p.wrong[l] = rule{method: thicken, scorer: newScorer(opt.Seed, "named", l, thickenWeights(),
			c.counts[l])}
		hits[l], misses[l] = newTally(), newTally()
	}
	err = eachToken(src, func(t *traces.Token) error {
		for l := range p.found {
			p.found[l].count(t, l, h.Units, hits[l])
			if opt.FalsePositives > 0 {
				p.wrong[l].count(t, l, h.Units, misses[l])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for l := range p.found {
		active, others := float64(c.active[l]),
			float64(c.tokens)*float64(h.Units)-float64(c.active[l])
		var found, wrong int64
		p.found[l].cutoff, found = hits[l].highest(int64(math.Round(active *
			(1 - opt.FalseNegatives))))
		p.wrong[l].cutoff, wrong = misses[l].highest(int64(math.Round(others * opt.FalsePositives)))
		if opt.FalsePositives == 0 {
			p.wrong[l].method = same // names none
		}
		rep.Layers[l].FalseNegatives = ratio(active-float64(found), active)
		rep.Layers[l].FalsePositives = ratio(float64(wrong), others)
	}
	return p, nil
}

// ratio returns a/b, or 0 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Header implements traces.Source.
func (p *predictor) Header() *traces.Header { return &p.head }

// Tokens implements traces.Source.
func (p *predictor) Tokens() int { return p.src.Tokens() }

// Token implements traces.Source. It makes new predicted masks for each call.
func (p *predictor) Token(i int, t *traces.Token) error {
	t.Predicted = nil
	if err := p.src.Token(i, t); err != nil {
		return err
	}
	if err := checkShape(&p.head, t); err != nil {
		return err
	}
	t.Predicted = mask.NewLayers(p.head.Layers, p.head.Units)
	for l := range t.Predicted {
		p.found[l].mark(t, l, p.head.Units, t.Predicted[l])
		p.wrong[l].mark(t, l, p.head.Units, t.Predicted[l])
	}
	return nil
}
