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

// Recorder collects the masks of one token and appends it when the token ends.
type Recorder struct {
	out   Appender
	token traces.Token
	next  int // layer expected next
}

// New returns a Recorder of masks of layers × words, without magnitudes.
func New(out Appender, layers, words int) *Recorder {
	r := &Recorder{out: out, token: traces.Token{Active: make([][]uint64, layers)}}
	for l := range r.token.Active {
		r.token.Active[l] = make([]uint64, words)
	}
	return r
}

// NewMagnitudes returns a Recorder of masks and of the magnitude of every active unit.
func NewMagnitudes(out Appender, layers, words int) *Recorder {
	r := New(out, layers, words)
	r.token.Magnitude = make([][]byte, layers)
	return r
}

// Layer implements engine.Observer.
func (r *Recorder) Layer(ev *engine.LayerEvent) error {
	if ev.Layer != r.next || ev.Layer >= len(r.token.Active) || len(ev.Active) != len(r.token.Active[ev.Layer]) {
		return fmt.Errorf("record: layer %d with %d mask words does not fit a trace of %d layers (layer %d is next)",
			ev.Layer, len(ev.Active), len(r.token.Active), r.next)
	}
	copy(r.token.Active[ev.Layer], ev.Active)
	if r.token.Magnitude != nil {
		codes := r.token.Magnitude[ev.Layer][:0]
		for _, v := range ev.Values {
			if v > 0 { // a flash-resident engine computes units that turn out to be zero
				codes = append(codes, traces.MagnitudeCode(v))
			}
		}
		r.token.Magnitude[ev.Layer] = codes
	}
	r.next++
	return nil
}

// Token implements engine.Observer.
func (r *Recorder) Token(ev *engine.TokenEvent) error {
	r.next = 0
	r.token.Seq, r.token.Pos, r.token.ID = uint32(ev.Token.Seq), uint32(ev.Token.Pos), ev.Token.ID
	r.token.Phase = traces.PhaseOf(ev.Token.Prefill)
	return r.out.Append(&r.token)
}
