package answers

import (
	"context"
	"fmt"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// sequentialChunk is the size of the requests of sequential reads. It is so large that latency does
// not matter on any device. Many requests are in flight, so that devices whose servers serve one
// read each reach their full rate.
const sequentialChunk = units.MiB

// sequentialRead is the time to read all units of all layers, layer by layer, and how far it can be
// trusted.
func sequentialRead(ctx context.Context, h *traces.Header, cfg sim.Config) (units.Nanos,
	*traces.Prediction, error) {
	cfg.Policy, cfg.Predicted, cfg.PredictorRank, cfg.MaxTokens = policy.Spec{}, false, 0, 0
	cfg.Layout = layout.Options{Align: cfg.Layout.Align, MaxRequest: sequentialChunk,
		Coalesce: true}
	run, err := sim.Run(ctx, everything{h}, cfg)
	if err != nil {
		return 0, nil, fmt.Errorf("answers: batch: sequential read: %w", err)
	}
	return run.Meta.Totals.PartNanos[traces.PartIO], run.Meta.Prediction, nil
}

// everything is a trace of one token that needs all units.
type everything struct{ head *traces.Header }

func (e everything) Header() *traces.Header { return e.head }

func (e everything) Tokens() int { return 1 }

func (e everything) Token(_ int, t *traces.Token) error {
	all := mask.New(e.head.Units)
	all.Fill(e.head.Units)
	*t = traces.Token{Phase: traces.Decode, Active: t.Active[:0]}
	for range e.head.Layers {
		t.Active = append(t.Active, all)
	}
	return nil
}
