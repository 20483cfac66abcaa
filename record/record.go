// Package record turns what an engine does into a trace: an engine.Observer that captures the true
// activation mask of every layer and token and, when the trace's header asks for them, the
// magnitudes of the active units and the features that predictors learn from. It knows engine and
// traces, which know nothing of each other.
//
// Tokens arrive in the order in which the engine computes them. Of sequences that run side by side
// that is not the order of a trace: InOrder stands between Recorder and trace and holds back what
// comes too early.
package record

import (
	"encoding/binary"
	"fmt"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/kernels/ref"
	"github.com/windrow-sim/windrow/traces"
)

// Appender takes whole tokens: *traces.Writer, or a slice in tests. The token is valid during the
// call only.
type Appender interface {
	Append(t *traces.Token) error
}

// Recorder collects the masks of the tokens of a step and appends each when it ends.
type Recorder struct {
	out           Appender
	layers, words int
	magnitudes    bool
	width         int // numbers of a feature; 0 = no features
	kind          engine.FeatureKind
	lanes         []lane // by token of a step
}

// lane is one token in the making.
type lane struct {
	token traces.Token
	next  int // layer expected next
}

// New returns a Recorder of masks of layers × words and of nothing else.
func New(out Appender, layers, words int) *Recorder {
	return &Recorder{out: out, layers: layers, words: words}
}

// NewFor returns a Recorder of what the header of a trace promises: masks of its layers and units,
// magnitudes, features. The engine must be made with the Recorder's FeatureKind. Predicted masks it
// does not tell.
func NewFor(out Appender, h *traces.Header) (*Recorder, error) {
	r := &Recorder{out: out, layers: h.Layers, words: h.Words(), magnitudes: h.HasMagnitude,
		width: h.FeatureWidth}
	if h.FeatureKind != "" {
		var err error
		if r.kind, err = engine.ParseFeatureKind(h.FeatureKind); err != nil {
			return nil, fmt.Errorf("record: %w", err)
		}
	}
	if h.HasPredicted {
		return nil, fmt.Errorf("record: the header promises predicted masks: the engine tells " +
			"true ones only")
	}
	return r, nil
}

// FeatureKind is what the engine has to show: engine.Config.FeatureKind.
func (r *Recorder) FeatureKind() engine.FeatureKind { return r.kind }

// lane returns that of a token of the step.
func (r *Recorder) lane(i int) *lane {
	for i >= len(r.lanes) {
		t := traces.Token{Active: make([]mask.Mask, r.layers)}
		for l := range t.Active {
			t.Active[l] = make(mask.Mask, r.words)
		}
		if r.magnitudes {
			t.Magnitude = make([][]byte, r.layers)
		}
		if r.width > 0 {
			t.Feature = make([][]byte, r.layers)
			for l := range t.Feature {
				t.Feature[l] = make([]byte, 2*r.width)
			}
		}
		r.lanes = append(r.lanes, lane{token: t})
	}
	return &r.lanes[i]
}

// Layer implements engine.Observer.
func (r *Recorder) Layer(ev *engine.LayerEvent) error {
	a := r.lane(ev.Entry)
	if ev.Layer != a.next || ev.Layer >= r.layers || len(ev.Active) != r.words {
		return fmt.Errorf("record: layer %d with %d mask words does not fit a trace of %d "+
			"layers (layer %d is next)",
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
	if r.width > 0 {
		if ev.FeatureKind != r.kind || len(ev.Feature) != r.width {
			return fmt.Errorf("record: layer %d has a feature of %d numbers of kind %v: those "+
				"of the trace have %d and are of kind %v", ev.Layer, len(ev.Feature),
				ev.FeatureKind, r.width, r.kind)
		}
		halves(a.token.Feature[ev.Layer], ev.Feature)
	}
	a.next++
	return nil
}

// halves writes numbers as little-endian float16, rounded to the nearest; what is too large for one
// becomes infinite, and a check of the trace says so.
func halves(dst []byte, src []float32) {
	for i, v := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], ref.F32ToF16(v))
	}
}

// Token implements engine.Observer.
func (r *Recorder) Token(ev *engine.TokenEvent) error {
	a := r.lane(ev.Entry)
	a.next = 0
	a.token.Seq, a.token.Pos, a.token.ID = uint32(ev.Token.Seq), uint32(ev.Token.Pos), ev.Token.ID
	a.token.Phase = traces.PhaseOf(ev.Token.Prefill)
	return r.out.Append(&a.token)
}
