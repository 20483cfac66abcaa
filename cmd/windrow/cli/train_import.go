package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/engine/predictor"
)

// importPredictor takes the predictors of others.
func (e *env) importPredictor(c *cli.Context) error {
	if err := needArgs(c, 1, "the folder to import from"); err != nil {
		return err
	}
	if err := checkOutput(c.String("out"), predictorSuffix); err != nil {
		return err
	}
	if c.String("model") == "" {
		return usageError("--import needs -m, the image of the model that the predictors are " +
			"for: their files do not say")
	}
	m, err := e.openSession(c)
	if err != nil {
		return err
	}
	defer m.Close()
	shape := m.Image.Shape
	opt := predictor.ImportOptions{Layers: shape.Layers, Width: shape.DModel, Units: shape.DFFN,
		Model: m.Image.Hash}
	if kind := c.String("feature-kind"); kind != "" {
		if _, err := engine.ParseFeatureKind(kind); err != nil {
			return usageError("--feature-kind: %v", err)
		}
		opt.Feature = predictor.Feature(kind)
	}
	p, err := importFrom(c.String("import"), c.Args().First(), opt)
	if err != nil {
		return trainError(err)
	}
	if err := p.Save(c.String("out")); err != nil {
		return err
	}
	return e.putTraining(c, newTrainResult(c, p, m.Image.Name))
}

func importFrom(kind, dir string, opt predictor.ImportOptions) (*predictor.Predictor, error) {
	switch kind {
	case "powerinfer":
		return predictor.ImportPowerInfer(dir, opt)
	case "dejavu":
		return predictor.ImportDejaVu(dir, opt)
	case "checkpoint":
		t, err := checkpoint.OpenAny(dir, checkpoint.FolderOptions{})
		if err != nil {
			return nil, err
		}
		defer t.Close()
		return predictor.FromCheckpoint(t, opt)
	}
	return nil, usageError("--import %q: it is powerinfer, dejavu or checkpoint", kind)
}
