package session

import (
	"context"
	"fmt"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// Predictor is a predictor's file, ready for an engine.
type Predictor struct {
	Kind     string             // "low-rank", "low-rank look-ahead" or "centroid"
	Bytes    units.Bytes        // in memory
	Feature  engine.FeatureKind // that it predicts from
	Schedule schedule.Kind      // that its kind asks for
	// Make makes it for an engine's threads.
	Make func(pool *cpu.Pool) (engine.Predictors, error)
}

// String says what it is.
func (p *Predictor) String() string {
	return fmt.Sprintf("%s predictor from %v, %v in memory: the output is lossy", p.Kind, p.Feature,
		p.Bytes)
}

// Predictor opens a predictor's file of either kind. kMax is the number of units that a centroid
// predictor names per layer; 0 = as many as its centroids have in common.
func (s *Session) Predictor(ctx context.Context, path string, kMax int) (*Predictor, error) {
	file, err := checkpoint.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	format := file.Metadata()["format"]
	file.Close()
	switch format {
	case centroid.Format:
		return s.openCentroids(ctx, path, kMax)
	case predictor.Format:
		return s.openLowRank(ctx, path)
	}
	return nil, refusal.Input("%s is no predictor (its format is %q); make one with windrow train",
		path, format)
}

func (s *Session) openCentroids(ctx context.Context, path string, kMax int) (*Predictor, error) {
	p, err := centroid.Load(ctx, path)
	if err != nil {
		return nil, err
	}
	own, shape := s.Weights.Shape, p.Codebook().Shape()
	if err := p.Fits(s.Image.Hash, centroid.Shape{Layers: own.Layers,
		Projections: shape.Projections, Units: own.DFFN, Width: own.DModel}); err != nil {
		return nil, refusal.Input("%v", err)
	}
	opened := &Predictor{Kind: "centroid", Bytes: p.Bytes(), Schedule: schedule.Token}
	if opened.Feature, err = s.predictedFrom(path, p.Feature()); err != nil {
		return nil, err
	}
	opened.Make = func(pool *cpu.Pool) (engine.Predictors, error) {
		r, err := p.NewRunner(kMax, pool)
		return engine.Predictors{Token: tokenRunner{r}, FeatureKind: opened.Feature}, err
	}
	return opened, nil
}

func (s *Session) openLowRank(ctx context.Context, path string) (*Predictor, error) {
	p, err := predictor.Load(ctx, path)
	if err != nil {
		return nil, err
	}
	own := s.Weights.Shape
	if err := p.For(own.Layers, own.DModel, own.DFFN, s.Image.Hash); err != nil {
		return nil, refusal.Input("%v", err)
	}
	feature, ahead := p.Facts().Feature.Kind()
	if feature == predictor.UnknownFeature {
		return nil, refusal.Input("%s does not say what it predicts from; import it again with "+
			"{FeatureKind}", path)
	}
	opened := &Predictor{Kind: "low-rank", Bytes: p.Bytes()}
	if opened.Feature, err = s.predictedFrom(path, string(feature)); err != nil {
		return nil, err
	}
	opened.Make = func(pool *cpu.Pool) (engine.Predictors, error) {
		return engine.Predictors{Layer: p.Runner(pool), FeatureKind: opened.Feature}, nil
	}
	if ahead {
		opened.Kind, opened.Schedule = "low-rank look-ahead", schedule.LookAhead
		opened.Make = func(pool *cpu.Pool) (engine.Predictors, error) {
			return engine.Predictors{LookAhead: p.Runner(pool), FeatureKind: opened.Feature}, nil
		}
	}
	return opened, nil
}

// predictedFrom is the kind of features that a predictor's file names, if the model has it.
func (s *Session) predictedFrom(path, name string) (engine.FeatureKind, error) {
	kind, err := s.Feature(name)
	if err != nil {
		return 0, refusal.Input("%s: %v; train a predictor on a trace of another {FeatureKind}",
			path, err)
	}
	return kind, nil
}

// Feature reads a kind of features that the model must have.
func (s *Session) Feature(name string) (engine.FeatureKind, error) {
	kind, err := engine.ParseFeatureKind(name)
	if err != nil {
		return 0, err
	}
	return kind, kind.In(&s.Weights.Arch)
}

// tokenRunner is a centroid predictor as the engine calls it.
type tokenRunner struct{ *centroid.Runner }

// PredictToken implements engine.TokenPredictor.
func (r tokenRunner) PredictToken(input []float32, masks []mask.Mask) error {
	_, err := r.Predict(input, masks)
	return err
}
