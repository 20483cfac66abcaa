package sim

import (
	"context"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// NamedConfig says how to simulate a trace with the masks that a predictor names.
type NamedConfig struct {
	Device   *devicemodels.Device
	Window   int           // tokens whose rows stay in memory
	Schedule schedule.Kind // the first layer is dense where it prefetches
	// PredictorRank charges a low-rank predictor; 0 = the masks cost nothing.
	PredictorRank int
}

// NamedSpeed simulates a trace by its predicted masks, and by its true ones as if they were known
// at the same time, in tokens/s.
func NamedSpeed(ctx context.Context, src traces.Source, cfg NamedConfig) (named,
	actual document.Estimate, err error) {
	run := Config{Policy: policy.SlidingWindow(cfg.Window), Device: cfg.Device,
		Layout: layout.Options{Coalesce: true}}
	if run.Engine, err = cfg.Device.ReadEngine(ioengine.Auto); err != nil {
		return named, actual, err
	}
	run.Parallel = ioengine.DefaultParallel(run.Engine)
	if cfg.Schedule != schedule.Demand {
		run.Schedule = Schedule{Spec: schedule.Spec{Kind: cfg.Schedule, Dense: 1}, Recall: 1}
	}
	truth, err := Run(ctx, src, run)
	if err != nil {
		return named, actual, err
	}
	run.Predicted, run.PredictorRank = true, cfg.PredictorRank
	predicted, err := Run(ctx, src, run)
	if err != nil {
		return named, actual, err
	}
	return rateOf(predicted), rateOf(truth), nil
}

// rateOf is the predicted rate of a simulated run, in tokens/s.
func rateOf(r *traces.Run) document.Estimate {
	rate := r.Meta.Totals.TokensPerS
	return r.Meta.Prediction.Estimate(rate, rate)
}

// TimePerToken simulates a trace of an image's geometry on a device with the rows of a window of
// tokens in memory, read on demand. The estimate is of the same time, in milliseconds.
func TimePerToken(ctx context.Context, src traces.Source, d *devicemodels.Device, window int,
	geo layout.Geometry) (perToken units.Nanos, estimate document.Estimate, err error) {
	cfg := Config{Policy: policy.SlidingWindow(window), Device: d, Geometry: geo,
		Layout: layout.Options{Coalesce: true}}
	if cfg.Engine, err = d.ReadEngine(ioengine.Auto); err != nil {
		return 0, estimate, err
	}
	cfg.Parallel = ioengine.DefaultParallel(cfg.Engine)
	run, err := Run(ctx, src, cfg)
	if err != nil {
		return 0, estimate, err
	}
	t, n := run.Meta.Totals, units.Nanos(src.Tokens())
	perToken = t.Wall / n
	return perToken, run.Meta.Prediction.Time(perToken, t.PartNanos[traces.PartIO]/n), nil
}
