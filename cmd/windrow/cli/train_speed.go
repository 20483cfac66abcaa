package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/kernels/cpu"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// A speed is of the first tokens of a text: a mean over these no longer moves, and a measurement
// has to be short.
const (
	mostSimulated = 1024
	mostMeasured  = 64
)

// trainSpeed is how fast a text runs from flash with what a predictor names, and with the true
// masks, which nobody knows beforehand. Both read at the same time: on demand, or ahead where the
// predictor does, with the first layer in memory then. Rows stay for a window of tokens, however
// many they are: a predictor that names much keeps much in memory, and may read less.
type trainSpeed struct {
	Window   int             `json:"window"`
	Schedule string          `json:"schedule"` // demand, lookahead or token
	Sim      *simulatedSpeed `json:"simulated,omitempty"`
	Measured *measuredSpeed  `json:"measured,omitempty"`
}

// simulatedSpeed is that of a device model. The predictor is charged at the mean rank of its
// layers; a network that names centroids costs nothing.
type simulatedSpeed struct {
	Device string  `json:"device"`
	Tokens int     `json:"tokens"`
	Rank   int     `json:"charged_rank,omitempty"`
	Named  float64 `json:"tokens_per_s"`
	True   float64 `json:"true_masks_tokens_per_s"`
}

// measuredSpeed is that of this machine, the predictor's arithmetic included.
type measuredSpeed struct {
	Tokens int     `json:"tokens"`
	Mode   string  `json:"io"`
	Named  float64 `json:"tokens_per_s"`
	True   float64 `json:"true_masks_tokens_per_s"`
}

// namer is a predictor as a simulation needs it: the masks that it names for a token of a trace,
// from the features of the dense run that was recorded. What it does not name it finds as it was
// active.
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
			fromHalves(t.Feature[l], feature)
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
		fromHalves(t.Feature[0], feature)
		_, err := run.Predict(feature, masks)
		return err
	}}, nil
}

// namedTokens are tokens of a trace with predicted masks: a traces.Source.
type namedTokens struct {
	of    *traceSamples
	index []int
	namer *namer
	head  traces.Header
	masks []mask.Mask
}

func newNamedTokens(s *traceSamples, index []int, n *namer) *namedTokens {
	src := &namedTokens{of: s, index: index, namer: n, head: *s.head,
		masks: mask.NewLayers(s.Layers(), s.head.Units)}
	src.head.HasPredicted = true
	return src
}

// Header implements traces.Source.
func (n *namedTokens) Header() *traces.Header { return &n.head }

// Tokens implements traces.Source.
func (n *namedTokens) Tokens() int { return len(n.index) }

// Token implements traces.Source.
func (n *namedTokens) Token(i int, t *traces.Token) error {
	if err := n.of.src.Token(n.index[i], t); err != nil {
		return err
	}
	for l, mask := range t.Active {
		copy(n.masks[l], mask)
	}
	t.Predicted = append(t.Predicted[:0], n.masks...)
	return n.namer.name(t, n.masks)
}

// speed is what --device and -m ask of a text; nil when they are not given. index are the tokens of
// the text, path is the predictor's file.
func (e *env) speed(c *cli.Context, s *traceSamples, index []int, n *namer,
	path string) (*trainSpeed, error) {
	if !c.IsSet("device") && !c.IsSet("model") {
		return nil, nil
	}
	speed := &trainSpeed{Window: c.Int("window"), Schedule: n.schedule.String()}
	if name := c.String("device"); name != "" {
		var err error
		if speed.Sim, err = simulateNamed(name, speed.Window, newNamedTokens(s,
			index[:min(len(index), mostSimulated)], n)); err != nil {
			return nil, err
		}
	}
	if c.IsSet("model") {
		var err error
		if speed.Measured, err = e.measureNamed(c, s, index[:min(len(index), mostMeasured)],
			path); err != nil {
			return nil, err
		}
	}
	return speed, nil
}

// checkSpeed refuses a window that nobody would look at.
func checkSpeed(c *cli.Context) error {
	if c.IsSet("window") && !c.IsSet("device") && !c.IsSet("model") {
		return usageError("--window is of a simulated or measured speed; give --device or -m too")
	}
	if c.Int("window") < 0 {
		return usageError("--window %d: 0 or more is wanted", c.Int("window"))
	}
	return nil
}

// simulateNamed simulates what is named, then what was active.
func simulateNamed(name string, window int, src *namedTokens) (*simulatedSpeed, error) {
	d, err := loadDevice(name)
	if err != nil {
		return nil, err
	}
	cfg := sim.Config{Policy: policy.SlidingWindow(window), Device: d, Layout: layout.Options{
		Coalesce: true}}
	if cfg.Engine, err = engineOf(d, "auto"); err != nil {
		return nil, err
	}
	cfg.Parallel = ioengine.DefaultParallel(cfg.Engine)
	if src.namer.schedule != schedule.Demand {
		cfg.Schedule = sim.Schedule{Spec: schedule.Spec{Kind: src.namer.schedule, Dense: 1},
			Recall: 1}
	}
	actual, err := sim.Run(src, cfg)
	if err != nil {
		return nil, err
	}
	cfg.Predicted, cfg.PredictorRank = true, src.namer.rank
	named, err := sim.Run(src, cfg)
	if err != nil {
		return nil, err
	}
	return &simulatedSpeed{
		Device: d.Name, Tokens: src.Tokens(), Rank: src.namer.rank,
		Named: named.Meta.Totals.TokensPerS, True: actual.Meta.Totals.TokensPerS,
	}, nil
}

// measureNamed runs the tokens from flash: what the predictor names, then what was active.
func (e *env) measureNamed(c *cli.Context, s *traceSamples, index []int,
	path string) (*measuredSpeed, error) {
	m, err := e.openSession(c)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	named, err := m.Predictor(path, 0)
	if err != nil {
		return nil, err
	}
	tokens, err := tokensToRun(s, index)
	if err != nil || len(tokens) == 0 {
		e.note("note: the text begins in the middle of a recording and cannot be run; give --test")
		return nil, err
	}
	measured := &measuredSpeed{Tokens: len(tokens)}
	if measured.True, measured.Mode, err = timed(m, tokens, named.Schedule, nil,
		c.Int("window")); err != nil {
		return nil, err
	}
	for i := range tokens {
		tokens[i].Masks = nil
	}
	measured.Named, _, err = timed(m, tokens, named.Schedule, named.Make, c.Int("window"))
	return measured, err
}

// tokensToRun are copies of tokens with their masks; none when the first of them is not that of a
// sequence, since its past is not known.
func tokensToRun(s *traceSamples, index []int) (list []engine.Token, err error) {
	for _, i := range index {
		err := s.with(i, func(t *traces.Token) {
			masks := make([]mask.Mask, len(t.Active))
			for l, mask := range t.Active {
				masks[l] = slices.Clone(mask)
			}
			list = append(list, engine.Token{Seq: int(t.Seq), Pos: int(t.Pos), ID: t.ID,
				Prefill: t.Phase == traces.Prefill, Masks: masks})
		})
		if err != nil {
			return nil, err
		}
	}
	if list[0].Pos != 0 {
		return nil, nil
	}
	return list, nil
}

// timed runs tokens from flash and says how many of them there were in a second, and how they were
// read.
func timed(m *session.Session, tokens []engine.Token, when schedule.Kind,
	predictors func(*cpu.Pool) (engine.Predictors, error), window int) (float64, string, error) {
	cfg := engine.FlashConfig{Policy: policy.SlidingWindow(window), Layout: layout.Options{
		Coalesce: true}}
	if when != schedule.Demand { // nobody names what the first layer needs
		data, err := m.Bundles(0)
		if err != nil {
			return 0, "", err
		}
		cfg.Dense = append(cfg.Dense, data)
	}
	reader, err := flashio.Open(m.Image.Path, flashio.Options{Engine: flashio.EngineAuto,
		Direct: flashio.DirectAuto})
	if err != nil {
		return 0, "", err
	}
	rows, err := engine.NewFlash(m.Weights, m.Image.Geometry(), reader, cfg)
	if err != nil {
		reader.Close()
		return 0, "", err
	}
	defer rows.Close()
	eng, err := engine.New(m.Weights, rows, engine.Config{Schedule: when,
		Predictors: predictors})
	if err != nil {
		return 0, "", err
	}
	defer eng.Close()
	began := time.Now()
	for _, t := range tokens {
		if t.Pos == 0 {
			eng.Reset()
		}
		if _, err := eng.Forward(t); err != nil {
			return 0, "", err
		}
	}
	return float64(len(tokens)) / time.Since(began).Seconds(), rows.Mode().String(), nil
}

// text says it in a line for each.
func (s *trainSpeed) text() string {
	if s == nil {
		return ""
	}
	when := map[string]string{"demand": "reads on demand",
		string(schedule.LookAhead): "the next layer prefetched",
		string(schedule.Token):     "the whole token prefetched"}[s.Schedule]
	var b strings.Builder
	line := func(how string, tokens int, named, actual float64) {
		fmt.Fprintf(&b, "%s, %d tokens, window %d, %s: %s tokens/s, %s with the true masks (%s "+
			"%%)\n",
			how, tokens, s.Window, when, document.Sig3(named), document.Sig3(actual),
			percent(named/actual))
	}
	b.WriteString("\n")
	if v := s.Sim; v != nil {
		line("simulated on "+v.Device, v.Tokens, v.Named, v.True)
	}
	if v := s.Measured; v != nil {
		line("measured here ("+v.Mode+")", v.Tokens, v.Named, v.True)
	}
	return b.String()
}
