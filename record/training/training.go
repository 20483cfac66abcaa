package training

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/tell"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/traces"
)

// Suffix ends the names of predictors of either kind. The file says which it is.
const Suffix = ".predictor.safetensors"

// The kinds of predictors.
const (
	LowRank  = "low-rank"
	Centroid = "centroid"
)

// Config says what to learn, and from what.
type Config struct {
	Kind  string // LowRank or Centroid
	Trace string // to learn from, or to judge by, with features
	Test  string // also to judge by, of other texts; "" = none
	Out   string // predictor to write

	// Of low-rank predictors. Zero values leave the choice to package predictor.
	Ahead    bool // name the units of the next layer
	ReLU     bool // between the two matrices
	Rank     *int // of every layer; nil = as many as GoalFP needs
	GoalFP   float64
	TargetFN float64
	Device   *devicemodels.Device // whose reads the thresholds weigh; nil = none
	Worth    float64              // reads that an active unit of mean size is worth
	State    string               // folder of finished layers; "" = beside Out

	// Of centroids.
	Centroids int  // active sets in the vocabulary of a layer
	KMax      *int // units of an active set; nil = twice the mean

	Epochs  int // at most
	Seed    uint64
	Workers int // threads; 0 = all cores

	Speeds Speeds
	Tell   tell.Tell
}

// DefaultConfig trains a low-rank predictor. 20 passes are more than small traces need: training
// ends earlier when held-out text no longer gains. An active unit is worth ten reads, and a
// vocabulary has 256 active sets.
func DefaultConfig() Config {
	return Config{Kind: LowRank, Worth: 10, Centroids: 256, Epochs: 20, Seed: rng.DefaultSeed}
}

// Check refuses values out of range, as far as they do not depend on the trace.
func (c *Config) Check() error {
	switch {
	case c.Kind != LowRank && c.Kind != Centroid:
		return refusal.Config("{Kind} %q: it is %s or %s", c.Kind, LowRank, Centroid)
	case c.Workers < 0:
		return refusal.Config("{Workers} %d: 0 (all cores) or more is wanted", c.Workers)
	case c.Epochs < 1:
		return refusal.Config("{Epochs} %d: 1 or more is wanted", c.Epochs)
	case c.Kind == LowRank && c.Device != nil && !(c.Worth > 0 && c.Worth <= 1e6):
		return refusal.Config("{Worth} %g: above 0 and at most a million reads are wanted", c.Worth)
	case c.Kind == Centroid && c.Centroids < 1:
		return refusal.Config("{Centroids} %d: 1 or more is wanted", c.Centroids)
	}
	return c.Speeds.check()
}

// Result is a predictor with how good it is; one of the two is nil.
type Result struct {
	LowRank  *LowRankResult
	Centroid *CentroidResult
}

// Run trains a predictor, writes it and judges it. When a training of low-rank predictors is
// interrupted its finished layers are kept, and the error says where.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	texts, err := openTexts(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	defer texts.close()
	r := &Result{}
	if cfg.Kind == Centroid {
		r.Centroid, err = cfg.trainCentroids(ctx, texts)
	} else {
		r.LowRank, err = cfg.trainLowRank(ctx, texts)
	}
	if err != nil {
		return nil, kinded(err)
	}
	return r, nil
}

// kinded makes a refused configuration of things that do not belong together.
func kinded(err error) error {
	switch {
	case errors.Is(err, predictor.ErrMismatch), errors.Is(err, centroid.ErrMismatch),
		errors.Is(err, centroid.ErrOptions):
		return refusal.Config("%v", err)
	case errors.Is(err, centroid.ErrSamples):
		return refusal.Input("%v", err)
	}
	return err
}

// texts are the traces of a training.
type texts struct {
	train, test         *record.Samples // train is nil when only judging, test may be nil
	trainPath, testPath string
	closers             []*traces.Reader
}

func (t *texts) close() {
	for _, r := range t.closers {
		r.Close()
	}
}

// openTexts opens what to learn from and, if it is named, what to judge by.
func openTexts(ctx context.Context, c *Config) (*texts, error) {
	t := &texts{trainPath: c.Trace, testPath: c.Test}
	if err := t.open(ctx, c); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *texts) open(ctx context.Context, c *Config) (err error) {
	ahead := c.Ahead && c.Kind == LowRank
	if t.train, err = t.samples(ctx, &c.Tell, t.trainPath, ahead); err != nil {
		return err
	}
	if n := t.train.Len(); n < record.LeastTokens {
		return refusal.Input("%s holds %d tokens, too few to learn from (%d at least; some ten "+
			"thousand make a good predictor); record more prompts", t.trainPath, n,
			record.LeastTokens)
	}
	if t.testPath == "" {
		return nil
	}
	if t.test, err = t.samples(ctx, &c.Tell, t.testPath, ahead); err != nil {
		return err
	}
	if t.test.SHA256() == t.train.SHA256() {
		return refusal.Config("{Test} %s is the trace to learn from; give one of other texts",
			t.testPath)
	}
	a, b := t.train.Header(), t.test.Header()
	if a.ModelSHA256 != b.ModelSHA256 || a.Layers != b.Layers || a.Units != b.Units ||
		a.FeatureWidth != b.FeatureWidth {
		return refusal.Config("%s and %s are of different models (%s and %s); record both of one",
			t.trainPath, t.testPath, a.Model, b.Model)
	}
	if a.FeatureKind != b.FeatureKind {
		return refusal.Config("%s holds features of kind %s, %s of kind %s; record both with one "+
			"{FeatureKind}", t.trainPath, a.FeatureKind, t.testPath, b.FeatureKind)
	}
	return nil
}

func (t *texts) samples(ctx context.Context, to *tell.Tell, path string,
	ahead bool) (*record.Samples, error) {
	r, err := traces.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, r)
	for _, w := range r.Warnings() {
		to.Notef("warning: %s", w)
	}
	return record.NewSamples(path, r, ahead)
}

// heldOut names the held-out part of a trace in results.
func heldOut(path string) string { return "held-out part of " + filepath.Base(path) }
