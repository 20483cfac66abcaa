package training

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"

	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/record"
)

// CentroidResult is a predictor of centroids, and how good it is.
type CentroidResult struct {
	Predictor   string            `json:"predictor"`
	Kind        string            `json:"kind"`
	Model       string            `json:"model"`
	ModelSHA256 string            `json:"model_sha256"`
	TraceSHA256 string            `json:"trace_sha256"` // that it was trained on
	Feature     string            `json:"feature"`
	Training    centroid.Training `json:"training"`
	Centroids   int               `json:"centroids"` // in a vocabulary, at most
	KMax        int               `json:"k_max"`
	Bytes       units.Bytes       `json:"bytes"`
	Parameters  int64             `json:"parameters"`
	FLOPs       int64             `json:"flops_per_token"`
	Texts       []CentroidText    `json:"texts"`
}

// CentroidText is how well one text is predicted.
type CentroidText struct {
	Text   string           `json:"text"`
	Report *centroid.Report `json:"report"`
	Speed  *Speed           `json:"speed,omitempty"`
}

// trainCentroids trains, writes and judges.
func (c *Config) trainCentroids(ctx context.Context, t *texts) (*CentroidResult, error) {
	const share = 0.1 // held out, as for low-rank predictors
	fit, held, err := centroid.Split(record.TokenSamples{Of: t.train}, share)
	if err != nil {
		return nil, err
	}
	p, err := c.runCentroids(ctx, t.train, fit, held)
	if err != nil {
		return nil, err
	}
	r := newCentroidResult(c.Out, t.train, p)
	if err := r.judge(ctx, c, p, heldOut(t.trainPath), held); err != nil {
		return nil, err
	}
	if t.test != nil {
		if err := r.judge(ctx, c, p, filepath.Base(t.testPath),
			record.TokenSamples{Of: t.test}); err != nil {
			return nil, err
		}
	}
	if err := p.Save(c.Out); err != nil {
		return nil, err
	}
	n, err := centroidNamer(p)
	if err != nil {
		return nil, err
	}
	if r.Texts[0].Speed, err = c.Speeds.of(t.train, t.train.All()[fit.Len():], n,
		c.Out); err != nil {
		return nil, err
	}
	if t.test != nil {
		r.Texts[1].Speed, err = c.Speeds.of(t.test, t.test.All(), n, c.Out)
	}
	return r, err
}

// runCentroids makes the vocabularies and trains the network that names their entries.
func (c *Config) runCentroids(ctx context.Context, s *record.Samples, fit,
	held centroid.Samples) (*centroid.Predictor, error) {
	kMax := min(max(int(math.Round(2*s.MeanActive())), 1), s.Units())
	if c.KMax != nil {
		if kMax = *c.KMax; kMax < 1 || kMax > s.Units() {
			return nil, refusal.Config("{KMax} %d: it is from 1 to the %d units of a layer", kMax,
				s.Units())
		}
	}
	build := centroid.BuildOptions{ClusterOptions: centroid.ClusterOptions{
		Count: c.Centroids, Size: kMax, Seed: c.Seed, Workers: c.workers()}}
	build.Progress = func(s centroid.BuildStep) {
		c.Tell.At("train (vocabularies)", s.Vocabulary-1, s.Vocabularies)
	}
	book, err := centroid.Build(ctx, fit, build)
	if err != nil {
		return nil, anew(err)
	}
	c.Tell.At("train (epochs)", 0, c.Epochs)
	p, err := centroid.Train(ctx, fit, held, book, centroid.TrainOptions{
		Epochs: c.Epochs, Seed: c.Seed, Workers: c.workers(),
		Model: s.Header().ModelSHA256, Trace: s.SHA256(), Feature: s.Header().FeatureKind,
		Progress: func(s centroid.Epoch) {
			c.Tell.At("train (epochs)", s.Epoch, s.Epochs)
		},
	})
	return p, anew(err)
}

// anew says of an interruption that nothing is kept.
func anew(err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("nothing is kept; the same command starts anew: %w", err)
	}
	return err
}

// workers is the number of threads.
func (c *Config) workers() int {
	if c.Workers == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return c.Workers
}

func newCentroidResult(path string, s *record.Samples, p *centroid.Predictor) *CentroidResult {
	r := &CentroidResult{
		Predictor: path, Kind: Centroid, Model: s.Header().Model, ModelSHA256: p.Facts().Model,
		TraceSHA256: p.Facts().Trace, Feature: p.Feature(), Training: p.Facts().Training,
		Bytes: p.Bytes(), Parameters: p.Parameters(), FLOPs: p.FLOPs(),
	}
	for layer := 1; layer < s.Layers(); layer++ {
		r.Centroids = max(r.Centroids, p.Codebook().Vocabulary(layer, 0).Count())
	}
	// A training gives all sets the size K_max.
	r.KMax = p.Codebook().Vocabulary(1, 0).Mask(0).Count()
	return r
}

// judge adds a text.
func (r *CentroidResult) judge(ctx context.Context, c *Config, p *centroid.Predictor, name string,
	s centroid.Samples) error {
	c.Tell.At("judge (tokens)", 0, s.Len())
	rep, err := centroid.Evaluate(ctx, p, s, centroid.EvaluateOptions{KMax: []int{r.KMax},
		Workers: c.workers(), Progress: func(done, total int) {
			c.Tell.At("judge (tokens)", done, total)
		}})
	if err != nil {
		return err
	}
	r.Texts = append(r.Texts, CentroidText{Text: name, Report: rep})
	return nil
}
