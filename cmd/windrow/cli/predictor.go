package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
	"github.com/windrow-sim/windrow/traces"
)

// openedPredictor is a predictor's file, ready for an engine.
type openedPredictor struct {
	kind     string // "low-rank", "low-rank look-ahead" or "centroid"
	bytes    units.Bytes
	feature  engine.FeatureKind // that it predicts from
	schedule schedule.Kind      // that its kind asks for
	make     func(pool *cpu.Pool) (engine.Predictors, error)
}

// openPredictor opens the predictor of the flags for a model; nil when there is none.
func openPredictor(c *cli.Context, m *openedModel) (*openedPredictor, error) {
	path := c.String("predictor")
	if path == "" {
		if c.IsSet("k-max") {
			return nil, usageError("--k-max is of a centroid predictor; name one with --predictor")
		}
		return nil, nil
	}
	return openPredictorFile(path, m, c.Int("k-max"))
}

// openPredictorFile opens one of either kind; kMax is of centroids.
func openPredictorFile(path string, m *openedModel, kMax int) (*openedPredictor, error) {
	file, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	format := file.Metadata()["format"]
	file.Close()
	switch format {
	case centroid.Format:
		return openCentroids(path, m, kMax)
	case predictor.Format:
		return openLowRank(path, m)
	}
	return nil, inputError("%s is no predictor (its format is %q); make one with windrow train",
		path, format)
}

func openCentroids(path string, m *openedModel, kMax int) (*openedPredictor, error) {
	p, err := centroid.Load(path)
	if err != nil {
		return nil, err
	}
	s, shape := m.weights.Shape, p.Codebook().Shape()
	if err := p.Fits(m.image.Hash, centroid.Shape{Layers: s.Layers, Projections: shape.Projections,
		Units: s.DFFN, Width: s.DModel}); err != nil {
		return nil, inputError("%v", err)
	}
	opened := &openedPredictor{kind: "centroid", bytes: p.Bytes(), schedule: schedule.Token}
	if opened.feature, err = predictedFrom(path, centroidFeature(p), m); err != nil {
		return nil, err
	}
	opened.make = func(pool *cpu.Pool) (engine.Predictors, error) {
		r, err := p.NewRunner(kMax, pool)
		return engine.Predictors{Token: tokenRunner{r}, FeatureKind: opened.feature}, err
	}
	return opened, nil
}

// centroidFeature is what a predictor names its centroids from. Files of before there were kinds do
// not say: it was the input of the feed-forward part.
func centroidFeature(p *centroid.Predictor) string {
	if f := p.Facts().Feature; f != "" {
		return f
	}
	return traces.FFNInput
}

func openLowRank(path string, m *openedModel) (*openedPredictor, error) {
	p, err := predictor.Load(path)
	if err != nil {
		return nil, err
	}
	s := m.weights.Shape
	if err := p.For(s.Layers, s.DModel, s.DFFN, m.image.Hash); err != nil {
		return nil, inputError("%v", err)
	}
	feature, ahead := p.Facts().Feature.Kind()
	if feature == predictor.UnknownFeature {
		return nil, inputError("%s does not say what it predicts from; import it again with "+
			"--feature-kind", path)
	}
	opened := &openedPredictor{kind: "low-rank", bytes: p.Bytes()}
	if opened.feature, err = predictedFrom(path, string(feature), m); err != nil {
		return nil, err
	}
	opened.make = func(pool *cpu.Pool) (engine.Predictors, error) {
		return engine.Predictors{Layer: p.Runner(pool), FeatureKind: opened.feature}, nil
	}
	if ahead {
		opened.kind, opened.schedule = "low-rank look-ahead", schedule.LookAhead
		opened.make = func(pool *cpu.Pool) (engine.Predictors, error) {
			return engine.Predictors{LookAhead: p.Runner(pool), FeatureKind: opened.feature}, nil
		}
	}
	return opened, nil
}

// predictedFrom is the kind of features that a predictor's file names, if the model has it.
func predictedFrom(path, name string, m *openedModel) (engine.FeatureKind, error) {
	kind, err := featureIn(m, name)
	if err != nil {
		return 0, inputError("%s: %v; train a predictor on a trace of another --feature-kind", path,
			err)
	}
	return kind, nil
}

// featureIn reads a kind of features that a model must have.
func featureIn(m *openedModel, name string) (engine.FeatureKind, error) {
	kind, err := engine.ParseFeatureKind(name)
	if err != nil {
		return 0, err
	}
	return kind, kind.In(&m.weights.Arch)
}

// tokenRunner is a centroid predictor as the engine wants it.
type tokenRunner struct{ *centroid.Runner }

// PredictToken implements engine.TokenPredictor.
func (r tokenRunner) PredictToken(input []float32, masks []mask.Mask) error {
	_, err := r.Predict(input, masks)
	return err
}

// predictorNote says what was opened.
func predictorNote(p *openedPredictor) string {
	return fmt.Sprintf("%s predictor from %v, %v in memory: the output is lossy", p.kind, p.feature,
		p.bytes)
}

// flashRows opens rows on flash for a predictor, whose needs nobody knows beforehand: half of the
// room of each layer is for what the window keeps, the other half for what a token needs at once.
// --dram says how much room there is; without it there is room for every row.
func (e *env) flashRows(c *cli.Context, m *openedModel, named *openedPredictor, positions,
	batch int) (*engine.Flash, error) {
	opt, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	lay, err := layoutOptions(c)
	if err != nil {
		return nil, err
	}
	cfg := engine.FlashConfig{Layout: lay, Store: m.store()}
	dense := 0
	if named.schedule != schedule.Demand { // nobody names what the first layer needs
		dense = 1
	}
	if c.IsSet("dense-prefix") {
		dense = c.Int("dense-prefix")
	}
	s, geo := m.weights.Shape, m.image.Geometry()
	if dense < 0 || dense > s.Layers || named.schedule != schedule.Demand && dense < 1 {
		return nil, usageError("--dense-prefix %d: the model has %d layers, and a predictor "+
			"that looks ahead needs the first to be dense", dense, s.Layers)
	}
	rowsPerLayer, err := e.rowRoom(c, m, named, dense, positions, batch)
	if err != nil {
		return nil, err
	}
	cfg.Policy = policy.SlidingWindow(c.Int("window"))
	cfg.Capacity = make([]int, s.Layers)
	for l := range cfg.Capacity {
		cfg.Capacity[l] = min(rowsPerLayer, geo.Units)
	}
	if rowsPerLayer < geo.Units {
		kept := rowsPerLayer / 2
		cfg.Room = rowsPerLayer - kept
		if cfg.Policy.Window > 0 {
			cfg.Policy.Capacity = kept
		}
	}
	for l := range dense {
		data, err := m.bundles(l)
		if err != nil {
			return nil, err
		}
		cfg.Dense = append(cfg.Dense, data)
	}
	reader, err := flashio.Open(m.image.Path, opt)
	if err != nil {
		return nil, err
	}
	flash, err := engine.NewFlash(m.weights, geo, reader, cfg)
	if err != nil {
		reader.Close()
		return nil, err
	}
	for _, n := range reader.Mode().Notes {
		e.note("note: %s", n)
	}
	return flash, nil
}

// rowRoom is how many rows per layer there is memory for.
func (e *env) rowRoom(c *cli.Context, m *openedModel, named *openedPredictor, dense, positions,
	batch int) (int, error) {
	geo := m.image.Geometry()
	if !c.IsSet("dram") {
		return geo.Units, nil
	}
	budget, err := memoryBudget(c, m)
	if err != nil {
		return 0, err
	}
	cfg := engine.Config{Context: positions, Batch: batch, FeatureKind: named.feature,
		Schedule: named.schedule}
	parts := cfg.Memory(m.weights.Shape)
	parts.Predictor, parts.Dense = named.bytes, dense
	parts.Policy = policy.SlidingWindow(c.Int("window"))
	const block = 4096 // that direct reads are rounded to at most
	room, account, err := memory.RoomForRows(engine.MemoryModel(m.weights, geo), parts, block,
		budget)
	if err != nil {
		return 0, usageError("--dram %s: %v", c.String("dram"), err)
	}
	e.note("%d rows per layer in %v (%v)", room, budget, account)
	return room, nil
}
