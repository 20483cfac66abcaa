package quality

import (
	"math"
	"slices"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/traces"
)

// counts is an observer that keeps the masks, and how large the values are.
type counts struct {
	*record.Recorder
	tokens []traces.Token
	seq    int // windows so far
	units  int
	layers []([256]int64) // values by magnitude code
	active int64

	// of a predictor: units that could be named, that were active, and its errors
	asked, truly, missed, spurious int64
}

func newCounts(m *session.Session) *counts {
	s := m.Weights.Shape
	n := &counts{seq: -1, units: s.DFFN, layers: make([][256]int64, s.Layers)}
	n.Recorder = record.New(n, s.Layers, mask.Words(s.DFFN))
	return n
}

// Layer implements engine.Observer.
func (n *counts) Layer(ev *engine.LayerEvent) error {
	for _, v := range ev.Values {
		if v != 0 {
			n.layers[ev.Layer][traces.MagnitudeCode(v)]++
			n.active++
		}
	}
	if ev.Need == nil || ev.True == nil {
		return n.Recorder.Layer(ev)
	}
	n.asked += int64(n.units)
	n.truly += int64(ev.True.Count())
	n.missed += int64(ev.True.CountAndNot(ev.Need))
	n.spurious += int64(ev.Need.CountAndNot(ev.True))
	// What is read is what was named.
	named := *ev
	named.Active = ev.Need
	return n.Recorder.Layer(&named)
}

// Append implements record.Appender: every window of the text is a sequence.
func (n *counts) Append(t *traces.Token) error {
	if t.Pos == 0 {
		n.seq++
	}
	own := traces.Token{Seq: uint32(n.seq), Pos: t.Pos, Phase: t.Phase, ID: t.ID,
		Active: make([]mask.Mask, len(t.Active))}
	for l, active := range t.Active {
		own.Active[l] = slices.Clone(active)
	}
	n.tokens = append(n.tokens, own)
	return nil
}

// share is the mean share of active units.
func (n *counts) share() float64 {
	return float64(n.active) / float64(len(n.tokens)*len(n.layers)*n.units)
}

// thresholds returns, for each layer, the value that leaves at most a share of the units, at the
// resolution of the codes (a factor of 2^(1/8)).
func (n *counts) thresholds(share float64) []float32 {
	list := make([]float32, len(n.layers))
	most := int64(share * float64(len(n.tokens)*n.units))
	for l := range n.layers {
		kept, code := int64(0), 255
		for ; code >= 0 && kept+n.layers[l][code] <= most; code-- {
			kept += n.layers[l][code]
		}
		if code >= 0 { // codes above this one stay; values of code c are below the floor of c+1
			list[l] = math.Nextafter32(float32(traces.MagnitudeFloor(uint8(min(code+1, 255)))), 0)
		}
	}
	return list
}
