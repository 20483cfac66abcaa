package cli

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
)

// centroidResult is what training or judging centroids gives.
type centroidResult struct {
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
	Texts       []centroidText    `json:"texts"`
}

// centroidText is how well one text is predicted.
type centroidText struct {
	Text   string           `json:"text"`
	Report *centroid.Report `json:"report"`
	Speed  *trainSpeed      `json:"speed,omitempty"`
}

// trainCentroids trains, writes and reports.
func (e *env) trainCentroids(c *cli.Context) error {
	texts, err := e.openTexts(c, false)
	if err != nil {
		return err
	}
	defer texts.close()
	const heldOut = 0.1 // as for low-rank predictors
	all := tokenSamples{texts.train}
	fit, held, err := centroid.Split(all, heldOut)
	if err != nil {
		return trainError(err)
	}
	p, err := e.runCentroids(c, texts.train, fit, held)
	if err != nil {
		return trainError(err)
	}
	doc := newCentroidResult(c.String("out"), texts.train, p)
	if err := e.judgeCentroids(c, doc, p, heldOutOf(texts.trainPath), held); err != nil {
		return err
	}
	if texts.test != nil {
		if err := e.judgeCentroids(c, doc, p, filepath.Base(texts.testPath), tokenSamples{
			texts.test}); err != nil {
			return err
		}
	}
	if err := p.Save(c.String("out")); err != nil {
		return err
	}
	n, err := centroidNamer(p)
	if err != nil {
		return err
	}
	if doc.Texts[0].Speed, err = e.speed(c, texts.train, texts.train.all()[fit.Len():], n,
		c.String("out")); err != nil {
		return err
	}
	if texts.test != nil {
		if doc.Texts[1].Speed, err = e.speed(c, texts.test, texts.test.all(), n,
			c.String("out")); err != nil {
			return err
		}
	}
	return e.putCentroids(c, doc)
}

// runCentroids makes the vocabularies and trains the network that names their entries.
func (e *env) runCentroids(c *cli.Context, s *traceSamples, fit,
	held centroid.Samples) (*centroid.Predictor, error) {
	kMax := c.Int("k-max")
	if c.IsSet("k-max") && (kMax < 1 || kMax > s.Units()) {
		return nil, usageError("--k-max %d: it is from 1 to the %d units of a layer", kMax,
			s.Units())
	}
	if n := c.Int("centroids"); n < 1 {
		return nil, usageError("--centroids %d: 1 or more is wanted", n)
	}
	if n := c.Int("epochs"); n < 1 {
		return nil, usageError("--epochs %d: 1 or more is wanted", n)
	}
	if kMax == 0 {
		kMax = min(max(int(math.Round(2*s.meanActive())), 1), s.Units())
	}
	build := centroid.BuildOptions{ClusterOptions: centroid.ClusterOptions{
		Count: c.Int("centroids"), Size: kMax, Seed: c.Uint64("seed"),
		Workers: allCores(c.Int("workers"))}}
	bar := e.startProgress("train (vocabularies)")
	build.Progress = func(s centroid.BuildStep) { bar.update(s.Vocabulary-1, s.Vocabularies) }
	book, err := centroid.Build(c.Context, fit, build)
	bar.done()
	if err != nil {
		return nil, err
	}
	bar = e.startProgress("train (epochs)")
	defer bar.done()
	return centroid.Train(c.Context, fit, held, book, centroid.TrainOptions{
		Epochs: c.Int("epochs"), Seed: c.Uint64("seed"), Workers: allCores(c.Int("workers")),
		Model: s.head.ModelSHA256, Trace: s.src.SHA256(), Feature: s.head.FeatureKind,
		Progress: func(s centroid.Epoch) { bar.update(s.Epoch, s.Epochs) },
	})
}

// evaluateCentroids judges centroids by a trace.
func (e *env) evaluateCentroids(c *cli.Context, p *centroid.Predictor) error {
	texts, err := e.openJudged(c, p.Facts().Trace, p.Feature(), false)
	if err != nil {
		return err
	}
	defer texts.close()
	judged := tokenSamples{texts.test}
	if err := p.Fits(texts.test.head.ModelSHA256, judged.Shape()); err != nil {
		return trainError(err)
	}
	doc := newCentroidResult(c.String("evaluate"), texts.test, p)
	if err := e.judgeCentroids(c, doc, p, filepath.Base(texts.testPath), judged); err != nil {
		return err
	}
	n, err := centroidNamer(p)
	if err != nil {
		return err
	}
	if doc.Texts[0].Speed, err = e.speed(c, texts.test, texts.test.all(), n,
		c.String("evaluate")); err != nil {
		return err
	}
	return e.putCentroids(c, doc)
}

func newCentroidResult(path string, s *traceSamples, p *centroid.Predictor) *centroidResult {
	doc := &centroidResult{
		Predictor: path, Kind: centroids, Model: s.head.Model, ModelSHA256: p.Facts().Model,
		TraceSHA256: p.Facts().Trace, Feature: p.Feature(), Training: p.Facts().Training,
		Bytes: p.Bytes(), Parameters: p.Parameters(), FLOPs: p.FLOPs(),
	}
	for layer := 1; layer < s.Layers(); layer++ {
		doc.Centroids = max(doc.Centroids, p.Codebook().Vocabulary(layer, 0).Count())
	}
	// train gives all sets the size K_max
	doc.KMax = p.Codebook().Vocabulary(1, 0).Mask(0).Count()
	return doc
}

// judgeCentroids adds a text to the result.
func (e *env) judgeCentroids(c *cli.Context, doc *centroidResult, p *centroid.Predictor,
	name string, s centroid.Samples) error {
	bar := e.startProgress("judge (tokens)")
	defer bar.done()
	r, err := centroid.Evaluate(c.Context, p, s, centroid.EvaluateOptions{KMax: []int{doc.KMax},
		Workers: allCores(c.Int("workers")), Progress: bar.update})
	if err != nil {
		return trainError(err)
	}
	doc.Texts = append(doc.Texts, centroidText{Text: name, Report: r})
	return nil
}

func (e *env) putCentroids(c *cli.Context, doc *centroidResult) error {
	if c.Bool("json") {
		return printJSON(e.stdout, doc)
	}
	t := &doc.Training
	fmt.Fprintf(e.stdout, "%s: %s\n%s: for every layer behind the first one of %d active sets "+
		"of %d units, named from the %s of layer 0\n",
		doc.Predictor, doc.Model, doc.Kind, doc.Centroids, doc.KMax, doc.Feature)
	fmt.Fprintf(e.stdout, "trained on %d tokens, %d more held out, of trace %.12s; seed %d\n",
		t.Tokens, t.Held, doc.TraceSHA256, t.Seed)
	fmt.Fprintf(e.stdout, "%s in memory, %s for each token\n", document.IEC(doc.Bytes),
		document.SI(float64(doc.FLOPs), "FLOP"))
	for i := range doc.Texts {
		text := &doc.Texts[i]
		fmt.Fprintf(e.stdout, "\n%s, %d tokens; recall, precision and FP in %%:\n\n", text.Text,
			text.Report.Tokens)
		if err := text.Report.WriteText(e.stdout); err != nil {
			return err
		}
		fmt.Fprint(e.stdout, text.remarks(doc.KMax), text.Speed.text())
	}
	return nil
}

// remarks say which goals are missed, and why.
func (t *centroidText) remarks(kMax int) string {
	var b strings.Builder
	mean := &t.Report.Mean
	set := &mean.Sets[0]
	if recall, static := set.Predicted.Recall, set.Static.Recall; recall <= static {
		fmt.Fprintf(&b, "\nthe %d hottest units of each layer, which need no predictor, find "+
			"more: %s %% against %s %%", kMax, percent(static), percent(recall))
	}
	if missed := set.Predicted.Missed; missed > goalFN {
		why := fmt.Sprintf("the nearest of the centroids would miss %s %% too: a larger "+
			"vocabulary or --k-max is needed", percent(set.Oracle.Missed))
		if set.Oracle.Missed <= goalFN {
			why = "the vocabulary would do, but layer 0 does not tell which centroid is the nearest"
		}
		fmt.Fprintf(&b, "\nFN %s %%, above the goal of %s %%: %s", percent(missed), percent(goalFN),
			why)
	}
	if extra := set.Predicted.Extra; extra > goalFP {
		fmt.Fprintf(&b, "\nFP %s %%, above the goal of %s %%: a set has %d units whatever is "+
			"active, on average %s units", percent(extra), percent(goalFP), kMax,
			document.Sig3(mean.Active))
	}
	if b.Len() == 0 {
		return ""
	}
	return b.String() + "\n"
}
