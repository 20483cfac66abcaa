package replay

import (
	"context"
	"slices"
	"time"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// Speed is how fast a text ran from flash, in tokens/s: with what a predictor names, its arithmetic
// included, and with the true masks.
type Speed struct {
	Tokens      int
	Mode        flashio.Mode
	Named, True float64
}

// NamedSpeed runs the tokens of a trace from flash with the predictor of a file, and again with
// their true masks at the times at which the predictor would name them. Rows stay for a window of
// tokens. The result is nil, with a note, for a trace that begins in the middle of a sequence,
// whose past is not known.
func NamedSpeed(ctx context.Context, s *session.Session, src traces.Source, predictor string,
	window int) (*Speed, error) {
	p, err := s.Predictor(ctx, predictor, 0)
	if err != nil {
		return nil, err
	}
	tokens, err := tokensToRun(src)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		s.Note("note: the text begins in the middle of a recording and cannot be run; take " +
			"another")
		return nil, nil
	}
	r := &Speed{Tokens: len(tokens)}
	run := engine.Config{Schedule: p.Schedule}
	if r.True, r.Mode, err = timed(ctx, s, tokens, run, window); err != nil {
		return nil, err
	}
	for i := range tokens {
		tokens[i].Masks = nil
	}
	run.Predictors = p.Make
	r.Named, _, err = timed(ctx, s, tokens, run, window)
	return r, err
}

// tokensToRun are the tokens with copies of their masks; none when the first of them is not that of
// a sequence.
func tokensToRun(src traces.Source) (list []engine.Token, err error) {
	var t traces.Token
	for i := range src.Tokens() {
		if err := src.Token(i, &t); err != nil {
			return nil, err
		}
		masks := make([]mask.Mask, len(t.Active))
		for l, active := range t.Active {
			masks[l] = slices.Clone(active)
		}
		list = append(list, engine.Token{Seq: int(t.Seq), Pos: int(t.Pos), ID: t.ID,
			Prefill: t.Phase == traces.Prefill, Masks: masks})
	}
	if len(list) > 0 && list[0].Pos != 0 {
		return nil, nil
	}
	return list, nil
}

// timed runs tokens from flash and says how many of them there were in a second, and how they were
// read.
func timed(ctx context.Context, s *session.Session, tokens []engine.Token, run engine.Config,
	window int) (float64, flashio.Mode, error) {
	cfg := engine.FlashConfig{Policy: policy.SlidingWindow(window),
		Layout: layout.Options{Coalesce: true}}
	if run.Schedule != schedule.Demand { // no prediction names what the first layer needs
		data, err := s.Bundles(0)
		if err != nil {
			return 0, flashio.Mode{}, err
		}
		cfg.Dense = append(cfg.Dense, data)
	}
	reader, err := flashio.Open(s.Image.Path, flashio.Options{})
	if err != nil {
		return 0, flashio.Mode{}, err
	}
	mode := reader.Mode()
	rows, err := engine.NewFlash(s.Weights, s.Image.Geometry(), reader, cfg)
	if err != nil {
		reader.Close()
		return 0, mode, err
	}
	defer rows.Close()
	eng, err := engine.New(s.Weights, rows, run)
	if err != nil {
		return 0, mode, err
	}
	defer eng.Close()
	began := time.Now()
	for _, t := range tokens {
		if err := ctx.Err(); err != nil {
			return 0, mode, err
		}
		if t.Pos == 0 {
			eng.Reset()
		}
		if _, err := eng.Forward(t); err != nil {
			return 0, mode, err
		}
	}
	return float64(len(tokens)) / time.Since(began).Seconds(), mode, nil
}
