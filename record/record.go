// Package record turns what an engine does into a trace: an engine.Observer that captures the true activation mask of
// every layer and token and, when asked to, the magnitudes of the active units. It knows engine and traces, which know nothing of each other.
package record

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/traces"
)

// Appender takes whole tokens: *traces.Writer, or a slice in tests.
type Appender interface {
	Append(t *traces.Token) error
}

// Recorder collects the masks of the tokens of a step and appends each when it ends.
type Recorder struct {
	out           Appender
	layers, words int
	magnitudes    bool
	lanes         []lane // by token of a step
}

// lane is one token in the making.
type lane struct {
	token traces.Token
	next  int // layer expected next
}

// New returns a Recorder of masks of layers × words, without magnitudes.
func New(out Appender, layers, words int) *Recorder {
	return &Recorder{out: out, layers: layers, words: words}
}

// NewMagnitudes returns a Recorder of masks and of the magnitude of every active unit.
func NewMagnitudes(out Appender, layers, words int) *Recorder {
	return &Recorder{out: out, layers: layers, words: words, magnitudes: true}
}

// lane returns that of a token of the step.
func (r *Recorder) lane(i int) *lane {
	for i >= len(r.lanes) {
		t := traces.Token{Active: make([][]uint64, r.layers)}
		for l := range t.Active {
			t.Active[l] = make([]uint64, r.words)
		}
		if r.magnitudes {
			t.Magnitude = make([][]byte, r.layers)
		}
		r.lanes = append(r.lanes, lane{token: t})
	}
	return &r.lanes[i]
}

// Layer implements engine.Observer.
func (r *Recorder) Layer(ev *engine.LayerEvent) error {
	a := r.lane(ev.Lane)
	if ev.Layer != a.next || ev.Layer >= r.layers || len(ev.Active) != r.words {
		return fmt.Errorf("record: layer %d with %d mask words does not fit a trace of %d layers (layer %d is next)",
			ev.Layer, len(ev.Active), r.layers, a.next)
	}
	copy(a.token.Active[ev.Layer], ev.Active)
	if r.magnitudes {
		codes := a.token.Magnitude[ev.Layer][:0]
		for _, v := range ev.Values {
			if v != 0 { // a flash-resident engine computes units that turn out to be zero
				codes = append(codes, traces.MagnitudeCode(v))
			}
		}
		a.token.Magnitude[ev.Layer] = codes
	}
	a.next++
	return nil
}

// Token implements engine.Observer.
func (r *Recorder) Token(ev *engine.TokenEvent) error {
	a := r.lane(ev.Lane)
	a.next = 0
	a.token.Seq, a.token.Pos, a.token.ID = uint32(ev.Token.Seq), uint32(ev.Token.Pos), ev.Token.ID
	a.token.Phase = traces.PhaseOf(ev.Token.Prefill)
	return r.out.Append(&a.token)
}
