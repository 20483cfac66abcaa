package training

import (
	"math"

	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/traces"
)

// A speed is of the first tokens of a text: a mean over these no longer moves, and a measurement
// has to be short.
const (
	MostSimulated = 1024
	MostMeasured  = 64
)

// Speeds asks how fast a text runs from flash with what a predictor names. The zero value asks
// nothing.
type Speeds struct {
	Window int // tokens whose rows stay in memory
	// Simulate and Measure give tokens/s with the predicted masks of a trace, and with its true
	// ones; nil = not asked. Measure also gets the predictor's file. A measurement of nil, without
	// an error, is of a text that cannot be run.
	Simulate func(n *Named) (*SimulatedSpeed, error)
	Measure  func(n *Named, predictor string) (*MeasuredSpeed, error)
}

// Speed is how fast a text runs from flash with what a predictor names, and with the true masks,
// which are not known beforehand. Both read at the same time: on demand, or ahead where the
// predictor does, with the first layer in memory then. Rows stay for a window of tokens, however
// many they are: a predictor that names much keeps much in memory, and may read less.
type Speed struct {
	Window   int             `json:"window"`
	Schedule string          `json:"schedule"` // demand, lookahead or token
	Sim      *SimulatedSpeed `json:"simulated,omitempty"`
	Measured *MeasuredSpeed  `json:"measured,omitempty"`
}

// SimulatedSpeed is that of a device model. The predictor is charged at the mean rank of its
// layers; a network that names centroids costs nothing.
type SimulatedSpeed struct {
	Device string  `json:"device"`
	Tokens int     `json:"tokens"`
	Rank   int     `json:"charged_rank,omitempty"`
	Named  float64 `json:"tokens_per_s"`
	True   float64 `json:"true_masks_tokens_per_s"`
	// The same with their intervals.
	NamedEstimate document.Estimate `json:"tokens_per_s_estimate"`
	TrueEstimate  document.Estimate `json:"true_masks_tokens_per_s_estimate"`
}

// MeasuredSpeed is that of this machine, the predictor's arithmetic included.
type MeasuredSpeed struct {
	Tokens int     `json:"tokens"`
	Mode   string  `json:"io"`
	Named  float64 `json:"tokens_per_s"`
	True   float64 `json:"true_masks_tokens_per_s"`
}

// check refuses a window that no trace has.
func (s *Speeds) check() error {
	if s.Window < 0 {
		return refusal.Config("{Window} %d: 0 or more is wanted", s.Window)
	}
	return nil
}

// of is the speed of the tokens of a text; nil when none is asked for. path is the predictor's
// file.
func (s *Speeds) of(samples *record.Samples, tokens []int, n *namer, path string) (*Speed, error) {
	if s.Simulate == nil && s.Measure == nil {
		return nil, nil
	}
	speed := &Speed{Window: s.Window, Schedule: n.schedule.String()}
	var err error
	if s.Simulate != nil {
		named := newNamed(samples, tokens[:min(len(tokens), MostSimulated)], n)
		if speed.Sim, err = s.Simulate(named); err != nil {
			return nil, err
		}
	}
	if s.Measure != nil {
		named := newNamed(samples, tokens[:min(len(tokens), MostMeasured)], n)
		if speed.Measured, err = s.Measure(named, path); err != nil {
			return nil, err
		}
	}
	return speed, nil
}

// namer is a predictor that gives the masks of a token of a trace, from the features of the dense
// run that was recorded. What it does not name keeps the true mask.
type namer struct {
	name     func(t *traces.Token, masks []mask.Mask) error
	schedule schedule.Kind
	rank     int // mean, of low-rank ones
}

// lowRankNamer asks every layer's matrices.
func lowRankNamer(p *predictor.Predictor) *namer {
	_, ahead := p.Facts().Feature.Kind()
	run, feature := p.Runner(nil), make([]float32, p.Width())
	n := &namer{}
	layers, sum := p.Layers(), 0
	if ahead {
		n.schedule, layers = schedule.LookAhead, layers-1 // the last entry names nothing
	}
	for l := range layers {
		sum += p.Rank(l)
	}
	n.rank = int(math.Round(float64(sum) / float64(layers)))
	n.name = func(t *traces.Token, masks []mask.Mask) error {
		for l := range layers {
			named := l
			if ahead {
				named++
			}
			record.Widen(t.Feature[l], feature)
			if err := run.Predict(l, feature, masks[named]); err != nil {
				return err
			}
		}
		return nil
	}
	return n
}

// centroidNamer asks once per token.
func centroidNamer(p *centroid.Predictor) (*namer, error) {
	run, err := p.NewRunner(0, nil)
	if err != nil {
		return nil, err
	}
	feature := make([]float32, p.Codebook().Shape().Width)
	return &namer{schedule: schedule.Token, name: func(t *traces.Token, masks []mask.Mask) error {
		record.Widen(t.Feature[0], feature)
		_, err := run.Predict(feature, masks)
		return err
	}}, nil
}

// Named are tokens of a trace with predicted masks that a predictor names: a traces.Source.
type Named struct {
	// Schedule is that of the predictor's kind: when its masks are known.
	Schedule schedule.Kind
	Rank     int // of a low-rank predictor, mean over the layers

	of    *record.Samples
	index []int
	namer *namer
	head  traces.Header
	masks []mask.Mask
}

func newNamed(s *record.Samples, index []int, n *namer) *Named {
	src := &Named{Schedule: n.schedule, Rank: n.rank, of: s, index: index, namer: n,
		head: *s.Header(), masks: mask.NewLayers(s.Layers(), s.Units())}
	src.head.HasPredicted = true
	return src
}

// Header implements traces.Source.
func (n *Named) Header() *traces.Header { return &n.head }

// Tokens implements traces.Source.
func (n *Named) Tokens() int { return len(n.index) }

// Token implements traces.Source.
func (n *Named) Token(i int, t *traces.Token) error {
	if err := n.of.Token(n.index[i], t); err != nil {
		return err
	}
	for l, active := range t.Active {
		copy(n.masks[l], active)
	}
	t.Predicted = append(t.Predicted[:0], n.masks...)
	return n.namer.name(t, n.masks)
}
