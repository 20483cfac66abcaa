package training

import (
	"context"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// ImportConfig says which predictors of others to take.
type ImportConfig struct {
	From        string // "powerinfer", "dejavu" or "checkpoint"
	Path        string // folder, or checkpoint
	Out         string // predictor to write
	FeatureKind string // that they predict from; "" = what the source is known for
}

// Import makes a low-rank predictor for the model of a session of files that do not say its shape.
func Import(ctx context.Context, s *session.Session, cfg ImportConfig) (*Result, error) {
	shape := s.Image.Shape
	opt := predictor.ImportOptions{Layers: shape.Layers, Width: shape.DModel, Units: shape.DFFN,
		Model: s.Image.Hash}
	if kind := cfg.FeatureKind; kind != "" {
		if _, err := engine.ParseFeatureKind(kind); err != nil {
			return nil, refusal.Config("{FeatureKind}: %v", err)
		}
		opt.Feature = predictor.Feature(kind)
	}
	p, err := importFrom(ctx, cfg.From, cfg.Path, opt)
	if err != nil {
		return nil, kinded(err)
	}
	if err := p.Save(cfg.Out); err != nil {
		return nil, err
	}
	return &Result{LowRank: newLowRankResult(cfg.Out, p, s.Image.Name)}, nil
}

func importFrom(ctx context.Context, kind, dir string,
	opt predictor.ImportOptions) (*predictor.Predictor, error) {
	switch kind {
	case "powerinfer":
		return predictor.ImportPowerInfer(ctx, dir, opt)
	case "dejavu":
		return predictor.ImportDejaVu(ctx, dir, opt)
	case "checkpoint":
		t, err := checkpoint.OpenAny(ctx, dir, checkpoint.FolderOptions{})
		if err != nil {
			return nil, err
		}
		defer t.Close()
		return predictor.FromCheckpoint(t, opt)
	}
	return nil, refusal.Config("{Import} %q: it is powerinfer, dejavu or checkpoint", kind)
}
