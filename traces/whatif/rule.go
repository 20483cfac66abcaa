package whatif

import (
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// Ways to choose the units of a layer, as LayerReport names them.
const (
	same        = "same"
	byMagnitude = "magnitude"
	thin        = "thin"
	thicken     = "thicken"
)

// rule chooses units of one layer: the active or the inactive units with a score of at least
// cutoff.
type rule struct {
	method string
	scorer scorer
	cutoff uint32
}

// scores calls f with the score of every unit that the rule chooses from.
func (r *rule) scores(t *traces.Token, l, units int, f func(u, score uint32)) {
	d := r.scorer.at(t.Seq, t.Pos)
	switch r.method {
	case byMagnitude:
		i := 0
		for u := range t.Active[l].Each {
			// Within one code the order of the magnitudes is unknown: noise decides.
			f(u, uint32(t.Magnitude[l][i])<<8|d.score(u)>>8)
			i++
		}
	case thin:
		for u := range t.Active[l].Each {
			f(u, d.score(u))
		}
	case thicken:
		others := mask.New(units)
		others.Fill(units)
		others.AndNot(t.Active[l])
		for u := range others.Each {
			f(u, d.score(u))
		}
	}
}

// count adds the scores of a token to a tally.
func (r *rule) count(t *traces.Token, l, units int, into tally) {
	r.scores(t, l, units, func(_, score uint32) { into[score]++ })
}

// mark adds the chosen units to a mask.
func (r *rule) mark(t *traces.Token, l, units int, into mask.Mask) {
	r.scores(t, l, units, func(u, score uint32) {
		if score >= r.cutoff {
			into.Set(u)
		}
	})
}
