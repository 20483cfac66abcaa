package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// predictorSuffix is that of predictors of either kind; the file says which it is.
const predictorSuffix = ".predictor.safetensors"

// The kinds of predictors.
const (
	lowRank   = "low-rank"
	centroids = "centroid"
)

func trainCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "train",
		Usage:     "train, import or judge a predictor of a model's active units",
		ArgsUsage: "[DIR, with --import]",
		Description: "Learns from a trace with features which units of a layer will be active, " +
			"before their rows are in memory. The kinds:\n\n" +
			"  low-rank  two small matrices for each layer, on its feature (LLM in a flash); " +
			"with --ahead they name the units of\n" +
			"            the layer after it, while there is still time to read them\n" +
			"  centroid  from the feature of layer 0, one active set of a small vocabulary for " +
			"every later layer (NeuroPrefetcher)\n\n" +
			"What the features are (record --feature-kind) is kept in the predictor, and an " +
			"engine hands it the same.\n\n" +
			"A share of the texts is held out; it decides when training ends and where the " +
			"thresholds are, so that a --test trace of other\n" +
			"texts says more. The report gives both kinds of error: active units that were not " +
			"predicted (FN: skipped, quality) and\n" +
			"inactive ones that were (FP: read for nothing, time). With --device the thresholds " +
			"weigh a read of one bundle on the device\n" +
			"against the activation that is lost; the trace needs --magnitudes for that.\n\n" +
			"With --device the report also has simulated tokens/s of each text: with what the " +
			"predictor names, charged at its mean rank, and\n" +
			"with the true masks. With -m it has those of a short run from the image on this " +
			"machine. Memory is not bounded: what names many\n" +
			"rows keeps many, and may read fewer. To weigh nothing and only ask for the speed, " +
			"use --evaluate.\n\n" +
			"An interrupted low-rank training keeps the layers it has finished, and the same " +
			"command goes on with them. --evaluate only\n" +
			"judges. --import takes predictors of others, with -m for their shape: powerinfer " +
			"and dejavu from a folder of *.pt files, which\n" +
			"predict from the residual, checkpoint from a model that holds its own; " +
			"--feature-kind says what these predict from.\n\n" +
			examples("windrow record -m tales.flash.safetensors --prompts "+
				"examples/prompts/tales.txt --limit 8 -n 16 --batch 4 --magnitudes --features "+
				"-o learn.trace.arrow",
				"windrow record -m tales.flash.safetensors --prompts "+
					"examples/prompts/letters.txt --limit 4 -n 8 --magnitudes --features -o "+
					"judge.trace.arrow",
				"windrow train -t learn.trace.arrow --test judge.trace.arrow --epochs 2 -o "+
					"tales.predictor.safetensors",
				"windrow train -t learn.trace.arrow --ahead --rank 16 --epochs 2 -o "+
					"ahead.predictor.safetensors",
				"windrow train -t learn.trace.arrow --kind centroid --centroids 16 --k-max 128 "+
					"--epochs 4 -o sets.predictor.safetensors",
				"windrow train -t judge.trace.arrow --evaluate tales.predictor.safetensors",
				"windrow train -t judge.trace.arrow --evaluate tales.predictor.safetensors "+
					"--device m1-max -m tales.flash.safetensors"),
		Flags: []cli.Flag{
			shared("trace"),
			&cli.StringFlag{Name: "test", Usage: "also judge by `TRACE`, of other texts"},
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Usage: "`PREDICTOR` to write (*" +
				predictorSuffix + ")"},
			&cli.StringFlag{Name: "evaluate", Usage: "judge `PREDICTOR` by the trace and train " +
				"nothing"},
			&cli.StringFlag{Name: "import", Usage: "`KIND` of predictors to import: powerinfer, " +
				"dejavu, checkpoint"},
			shared("model"),
			defaulting(shared("feature-kind"), "what the source is known for"),
			&cli.StringFlag{Name: "kind", Value: lowRank, Usage: "`KIND`: " + lowRank + " or " +
				centroids},
			&cli.BoolFlag{Name: "ahead", Usage: "name the units of the next layer"},
			&cli.BoolFlag{Name: "relu", Usage: "a ReLU between the two matrices, as in the " +
				"paper; without it the same rank is more accurate"},
			&cli.IntFlag{Name: "rank", Usage: "`N` inner values in every layer",
				DefaultText: "as many as --goal-fp needs"},
			&cli.StringFlag{Name: "goal-fp", Usage: "double a layer's rank while more than " +
				"`SHARE` of the inactive units is predicted", DefaultText: "10%, with --rank none"},
			&cli.StringFlag{Name: "target-fn", Usage: "thresholds that miss at most `SHARE` of " +
				"the active units of the held-out part", DefaultText: "4%, with --device none"},
			shared("device"),
			shared("window"),
			&cli.Float64Flag{Name: "worth", Value: 10, Usage: "with --device, an active unit of " +
				"mean size is worth `N` reads"},
			&cli.IntFlag{Name: "centroids", Value: 256,
				Usage: "`N` active sets in the vocabulary of a layer"},
			defaulting(shared("k-max"), "twice the mean"),
			&cli.IntFlag{Name: "epochs", Value: 20, Usage: "at most `N` passes over the trace"},
			&cli.StringFlag{Name: "state", Usage: "`FOLDER` that keeps finished layers until " +
				"all are", DefaultText: "beside the predictor"},
			shared("workers"),
			shared("seed"),
		},
		Action: e.train,
	}
}

// train does what the flags ask for, and refuses those that it would not look at.
func (e *env) train(c *cli.Context) error {
	if c.Int("workers") < 0 {
		return usageError("--workers %d: 0 (all cores) or more is wanted", c.Int("workers"))
	}
	if c.IsSet("import") {
		if err := onlyFlags(c, "with --import", "import", "model", "feature-kind", "out",
			"json"); err != nil {
			return err
		}
		return e.importPredictor(c)
	}
	if err := needArgs(c, 0, "no arguments"); err != nil {
		return err
	}
	if c.String("trace") == "" {
		return usageError("train needs --trace, a trace recorded with --features; see \"windrow " +
			"train --help\"")
	}
	if err := checkSpeed(c); err != nil {
		return err
	}
	if c.IsSet("evaluate") {
		if err := onlyFlags(c, "with --evaluate", "evaluate", "trace", "device", "model", "window",
			"workers", "json"); err != nil {
			return err
		}
		return e.evaluatePredictor(c)
	}
	if err := checkOutput(c.String("out"), predictorSuffix); err != nil {
		return err
	}
	common := []string{"kind", "trace", "test", "out", "epochs", "device", "model", "window",
		"seed", "workers", "json"}
	switch kind := c.String("kind"); kind {
	case lowRank:
		if err := onlyFlags(c, "of low-rank predictors", append(common, "ahead", "relu", "rank",
			"goal-fp", "target-fn", "worth", "state")...); err != nil {
			return err
		}
		return e.trainLowRank(c)
	case centroids:
		if err := onlyFlags(c, "of centroids", append(common, "centroids",
			"k-max")...); err != nil {
			return err
		}
		return e.trainCentroids(c)
	default:
		return usageError("--kind %q: it is %s or %s", kind, lowRank, centroids)
	}
}

// onlyFlags refuses flags that would be read by nobody.
func onlyFlags(c *cli.Context, where string, known ...string) error {
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; c.IsSet(name) && !slices.Contains(known, name) {
			return usageError("--%s has no meaning %s; leave it out", name, where)
		}
	}
	return nil
}

// trainTexts are the traces of a training.
type trainTexts struct {
	train, test         *traceSamples // test may be nil
	trainPath, testPath string
	closers             []*traces.Reader
}

func (t *trainTexts) close() {
	for _, r := range t.closers {
		r.Close()
	}
}

// openTexts opens what to learn from and, if it is named, what to judge by.
func (e *env) openTexts(c *cli.Context, ahead bool) (*trainTexts, error) {
	t := &trainTexts{trainPath: c.String("trace"), testPath: c.String("test")}
	if err := t.open(e, ahead); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *trainTexts) open(e *env, ahead bool) (err error) {
	if t.train, err = t.samples(e, t.trainPath, ahead); err != nil {
		return err
	}
	if n := t.train.Len(); n < leastTokens {
		return inputError("%s holds %d tokens, too few to learn from (%d at least; some ten "+
			"thousand make a good predictor); record more prompts", t.trainPath, n, leastTokens)
	}
	if t.testPath == "" {
		return nil
	}
	if t.test, err = t.samples(e, t.testPath, ahead); err != nil {
		return err
	}
	if t.test.src.SHA256() == t.train.src.SHA256() {
		return usageError("--test %s is the trace to learn from; give one of other texts",
			t.testPath)
	}
	a, b := t.train.head, t.test.head
	if a.ModelSHA256 != b.ModelSHA256 || a.Layers != b.Layers || a.Units != b.Units ||
		a.FeatureWidth != b.FeatureWidth {
		return usageError("%s and %s are of different models (%s and %s); record both of one",
			t.trainPath, t.testPath, a.Model, b.Model)
	}
	if a.FeatureKind != b.FeatureKind {
		return usageError("%s holds features of kind %s, %s of kind %s; record both with one "+
			"--feature-kind", t.trainPath, a.FeatureKind, t.testPath, b.FeatureKind)
	}
	return nil
}

func (t *trainTexts) samples(e *env, path string, ahead bool) (*traceSamples, error) {
	r, err := e.openTrace(path)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, r)
	return newTraceSamples(path, r, ahead)
}

// lowRankOptions are the flags.
func lowRankOptions(c *cli.Context, s *traceSamples) (predictor.Options, error) {
	opt := predictor.Options{Workers: c.Int("workers"), State: c.String("state"),
		Model: s.head.ModelSHA256, Trace: s.src.SHA256()}
	opt.Epochs, opt.Seed, opt.Feature = c.Int("epochs"), c.Uint64("seed"), s.feature()
	if opt.State == "" {
		opt.State = strings.TrimSuffix(c.String("out"), predictorSuffix) + ".partial.predictor"
	}
	if c.Bool("relu") {
		opt.Kind = predictor.ReLU
	}
	var err error
	if opt.GoalFP, err = shareFlag(c, "goal-fp"); err != nil {
		return opt, err
	}
	if opt.TargetFN, err = shareFlag(c, "target-fn"); err != nil {
		return opt, err
	}
	if opt.Cost, err = readCost(c, s.head); err != nil {
		return opt, err
	}
	if opt.Cost != nil && !s.HasMagnitudes() {
		return opt, inputError("%s holds no magnitudes, which --device weighs; record it again "+
			"with --features --magnitudes", c.String("trace"))
	}
	rank := c.Int("rank")
	if c.IsSet("rank") && (rank < 1 || rank > min(s.Width(), s.Units())) {
		return opt, usageError("--rank %d: it is from 1 to %d, the smaller of feature and units",
			rank, min(s.Width(), s.Units()))
	}
	if c.Int("epochs") < 1 {
		return opt, usageError("--epochs %d: 1 or more is wanted", c.Int("epochs"))
	}
	if rank != 0 {
		opt.Ranks = []int{rank}
	}
	if s.ahead {
		opt.Ranks, opt.GoalFP = aheadRanks(s, rank, opt.GoalFP)
	}
	return opt, nil
}

// aheadRanks leaves the last entry, which no layer follows, without a predictor; the others begin
// where the library would begin.
func aheadRanks(s *traceSamples, rank int, goal float64) ([]int, float64) {
	if rank == 0 {
		rank = predictor.StartRank(s)
		if goal == 0 {
			goal = predictor.DefaultGoal
		}
	}
	ranks := make([]int, s.Layers())
	for l := range len(ranks) - 1 {
		ranks[l] = rank
	}
	return ranks, goal
}

// shareFlag reads a flag like "10%" or "0.1"; 0 = not given.
func shareFlag(c *cli.Context, name string) (float64, error) {
	text := c.String(name)
	if text == "" {
		return 0, nil
	}
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(number, 64)
	if isPercent {
		v /= 100
	}
	if err != nil || !(v > 0 && v < 1) {
		return 0, usageError("--%s %q: a share between 0 and 1, or a percentage, is wanted", name,
			text)
	}
	return v, nil
}

// readCost weighs errors by the time of one read among as many as the device takes at once; nil
// without --device.
func readCost(c *cli.Context, head *traces.Header) (*predictor.Cost, error) {
	name := c.String("device")
	if name == "" {
		if c.IsSet("worth") {
			return nil, usageError("--worth is counted in reads of a device; give one with " +
				"--device")
		}
		return nil, nil
	}
	d, err := loadDevice(name)
	if err != nil {
		return nil, err
	}
	reader, err := engineOf(d, "auto")
	if err != nil {
		return nil, err
	}
	align := max(d.Flash.Align, 1)
	read := (head.UnitBytes + align - 1) / align * align
	rate := d.Flash.Throughput(reader, d.Host.Cores, read, ioengine.DefaultParallel(reader))
	if rate < 1 {
		return nil, usageError("--device %s: the model gives no rate for reads of %v", name, read)
	}
	one := rate.Time(read)
	worth := c.Float64("worth")
	if !(worth > 0 && worth <= 1e6) {
		return nil, usageError("--worth %g: above 0 and at most a million reads are wanted", worth)
	}
	return &predictor.Cost{FalsePositive: max(one, 1),
		FalseNegative: max(units.FromSeconds(worth*one.Seconds()), 1)}, nil
}

// trainLowRank trains, writes and reports.
func (e *env) trainLowRank(c *cli.Context) error {
	texts, err := e.openTexts(c, c.Bool("ahead"))
	if err != nil {
		return err
	}
	defer texts.close()
	opt, err := lowRankOptions(c, texts.train)
	if err != nil {
		return err
	}
	p, rep, err := e.runTraining(c.Context, texts.train, opt)
	if err != nil {
		return trainError(err)
	}
	doc := newTrainResult(c, p, texts.train.head.Model)
	doc.Trained, doc.HeldOut = rep.Trained, rep.HeldOut
	held := make([]predictor.Score, len(rep.Layers))
	for l := range held {
		held[l] = rep.Layers[l].HeldOut
	}
	doc.add(heldOutOf(texts.trainPath), p, held)
	if texts.test != nil {
		scores, err := predictor.Evaluate(c.Context, p, texts.test, 0, texts.test.Len(),
			opt.Workers)
		if err != nil {
			return trainError(err)
		}
		doc.add(filepath.Base(texts.testPath), p, scores)
	}
	if err := p.Save(c.String("out")); err != nil {
		return err
	}
	clearState(opt.State, texts.train.Layers())
	if doc.Texts[0].Speed, err = e.speed(c, texts.train, rep.Held, lowRankNamer(p),
		c.String("out")); err != nil {
		return err
	}
	if texts.test != nil {
		if doc.Texts[1].Speed, err = e.speed(c, texts.test, texts.test.all(), lowRankNamer(p),
			c.String("out")); err != nil {
			return err
		}
	}
	return e.putTraining(c, doc)
}

func heldOutOf(path string) string { return "held-out part of " + filepath.Base(path) }

// runTraining trains with progress. When it is interrupted, the error says what is kept.
func (e *env) runTraining(ctx context.Context, s *traceSamples,
	opt predictor.Options) (*predictor.Predictor, *predictor.Report, error) {
	bar := e.startProgress("train (epochs)")
	at, finished := make([]int, s.Layers()), 0
	opt.Progress = func(p predictor.Progress) {
		at[p.Layer], finished = p.Epoch, p.Done
		if p.Finished {
			at[p.Layer] = p.Epochs
		}
		sum := 0
		for _, n := range at {
			sum += n
		}
		bar.label = fmt.Sprintf("train: %d of %d layers, layer %d at rank %d, loss %.3f; epochs",
			p.Done, p.Layers, p.Layer, p.Rank, p.Loss)
		bar.update(sum, p.Layers*p.Epochs)
	}
	p, rep, err := predictor.Train(ctx, s, opt)
	bar.done()
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%d of %d layers are kept in %s, and the same command goes on from "+
			"there: %w", finished, s.Layers(), opt.State, context.Canceled)
	}
	return p, rep, err
}

// clearState removes the finished layers that the predictor now holds, and their folder if nothing
// else is in it.
func clearState(dir string, layers int) {
	for l := range layers {
		os.Remove(filepath.Join(dir, fmt.Sprintf("layer-%04d.safetensors", l)))
	}
	os.Remove(dir)
}

// trainError makes a wrong command line of things that do not belong together.
func trainError(err error) error {
	switch {
	case errors.Is(err, predictor.ErrMismatch), errors.Is(err, centroid.ErrMismatch), errors.Is(err,
		centroid.ErrOptions):
		return usageError("%v", err)
	case errors.Is(err, centroid.ErrSamples):
		return inputError("%v", err)
	}
	return err
}

// evaluatePredictor judges a predictor of either kind by a trace.
func (e *env) evaluatePredictor(c *cli.Context) error {
	path := c.String("evaluate")
	p, err := predictor.Load(path)
	if errors.Is(err, checkpoint.ErrUnsupported) {
		sets, other := centroid.Load(path)
		if other == nil {
			return e.evaluateCentroids(c, sets)
		}
		if !errors.Is(other, checkpoint.ErrUnsupported) {
			err = other
		}
	}
	if err != nil {
		return err
	}
	feature, ahead := p.Facts().Feature.Kind()
	texts, err := e.openJudged(c, p.Facts().Trace, string(feature), ahead)
	if err != nil {
		return err
	}
	defer texts.close()
	s := texts.test
	if err := p.For(s.Layers(), s.Width(), s.Units(), s.head.ModelSHA256); err != nil {
		return trainError(err)
	}
	scores, err := predictor.Evaluate(c.Context, p, s, 0, s.Len(), c.Int("workers"))
	if err != nil {
		return trainError(err)
	}
	doc := newTrainResult(c, p, s.head.Model)
	doc.add(filepath.Base(texts.testPath), p, scores)
	if doc.Texts[0].Speed, err = e.speed(c, s, s.all(), lowRankNamer(p), path); err != nil {
		return err
	}
	return e.putTraining(c, doc)
}

// openJudged opens the trace of --evaluate; learned is the hash of the one that the predictor was
// trained on, feature the kind that it predicts from.
func (e *env) openJudged(c *cli.Context, learned, feature string, ahead bool) (t *trainTexts,
	err error) {
	t = &trainTexts{testPath: c.String("trace")}
	if t.test, err = t.samples(e, t.testPath, ahead); err != nil {
		t.close()
		return nil, err
	}
	switch held := t.test.head.FeatureKind; {
	case feature == "":
		e.note("note: %s does not say what it predicts from; %s is taken", c.String("evaluate"),
			held)
	case feature != held:
		t.close()
		return nil, usageError("%s predicts from %s, and %s holds %s; record one with "+
			"--feature-kind %s", c.String("evaluate"), feature, t.testPath, held, feature)
	}
	if learned != "" && learned == t.test.src.SHA256() {
		e.note("warning: the predictor was trained on this trace; other texts say more")
	}
	return t, nil
}

// allCores is what 0 workers mean.
func allCores(workers int) int {
	if workers == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return workers
}
