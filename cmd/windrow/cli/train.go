package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/record/training"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/sim"
)

func trainCommand(e *env) *cli.Command {
	def := training.DefaultConfig()
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
				training.Suffix + ")"},
			&cli.StringFlag{Name: "evaluate", Usage: "judge `PREDICTOR` by the trace and train " +
				"nothing"},
			&cli.StringFlag{Name: "import", Usage: "`KIND` of predictors to import: powerinfer, " +
				"dejavu, checkpoint"},
			shared("model"),
			shared("verify"),
			defaulting(shared("feature-kind"), "what the source is known for"),
			&cli.StringFlag{Name: "kind", Value: training.LowRank, Usage: "`KIND`: " +
				training.LowRank + " or " + training.Centroid},
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
			&cli.Float64Flag{Name: "worth", Value: def.Worth,
				Usage: "with --device, an active unit of " +
					"mean size is worth `N` reads"},
			&cli.IntFlag{Name: "centroids", Value: def.Centroids,
				Usage: "`N` active sets in the vocabulary of a layer"},
			defaulting(shared("k-max"), "twice the mean"),
			&cli.IntFlag{Name: "epochs", Value: def.Epochs,
				Usage: "at most `N` passes over the trace"},
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
	if c.IsSet("import") {
		return e.importPredictor(c)
	}
	if err := needArgs(c, 0, "no arguments"); err != nil {
		return err
	}
	if c.String("trace") == "" {
		return usageError("train needs --trace, a trace recorded with --features; see \"windrow " +
			"train --help\"")
	}
	if c.IsSet("window") && !c.IsSet("device") && !c.IsSet("model") {
		return usageError("--window is of a simulated or measured speed; give --device or -m too")
	}
	if c.IsSet("evaluate") {
		return e.judgePredictor(c)
	}
	if err := e.claim(c, c.String("out"), training.Suffix); err != nil {
		return err
	}
	cfg, err := e.trainConfig(c)
	if err != nil {
		return err
	}
	var done func()
	cfg.Tell, done = e.tell()
	r, err := training.Run(c.Context, cfg)
	done()
	if err != nil {
		return err
	}
	return e.put(c, r.Document())
}

// judgePredictor only judges.
func (e *env) judgePredictor(c *cli.Context) error {
	if err := onlyFlags(c, "with --evaluate", "evaluate", "trace", "device", "model", "verify",
		"window", "workers", "json", "format"); err != nil {
		return err
	}
	cfg := training.Config{Trace: c.String("trace"), Workers: c.Int("workers")}
	var err error
	if cfg.Speeds, cfg.Device, err = e.speedsOf(c); err != nil {
		return err
	}
	var done func()
	cfg.Tell, done = e.tell()
	r, err := training.Judge(c.Context, c.String("evaluate"), cfg)
	done()
	if err != nil {
		return err
	}
	return e.put(c, r.Document())
}

// importPredictor takes the predictors of others.
func (e *env) importPredictor(c *cli.Context) error {
	if err := onlyFlags(c, "with --import", "import", "model", "verify", "feature-kind", "out",
		"force", "json", "format"); err != nil {
		return err
	}
	if err := needArgs(c, 1, "the folder to import from"); err != nil {
		return err
	}
	if err := e.claim(c, c.String("out"), training.Suffix); err != nil {
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
	cfg := training.ImportConfig{From: c.String("import"), Path: c.Args().First(),
		Out: c.String("out")}
	if c.IsSet("feature-kind") {
		cfg.FeatureKind = c.String("feature-kind")
	}
	r, err := training.Import(c.Context, m, cfg)
	if err != nil {
		return err
	}
	return e.put(c, r.Document())
}

// trainConfig reads the flags of a training.
func (e *env) trainConfig(c *cli.Context) (cfg training.Config, err error) {
	common := []string{"kind", "trace", "test", "out", "epochs", "device", "model", "verify",
		"window", "seed", "workers", "force", "json", "format"}
	switch c.String("kind") {
	case training.LowRank:
		err = onlyFlags(c, "of low-rank predictors", append(common, "ahead", "relu", "rank",
			"goal-fp", "target-fn", "worth", "state")...)
	case training.Centroid:
		err = onlyFlags(c, "of centroids", append(common, "centroids", "k-max")...)
	}
	if err != nil {
		return cfg, err
	}
	if c.IsSet("worth") && !c.IsSet("device") {
		return cfg, usageError("--worth is counted in reads of a device; give one with --device")
	}
	cfg = training.Config{Kind: c.String("kind"), Trace: c.String("trace"), Test: c.String("test"),
		Out: c.String("out"), Ahead: c.Bool("ahead"), ReLU: c.Bool("relu"),
		Rank: optional(c, "rank"), Worth: c.Float64("worth"), State: c.String("state"),
		Centroids: c.Int("centroids"), KMax: optional(c, "k-max"), Epochs: c.Int("epochs"),
		Seed: c.Uint64("seed"), Workers: c.Int("workers")}
	if cfg.GoalFP, err = shareFlag(c, "goal-fp"); err != nil {
		return cfg, err
	}
	if cfg.TargetFN, err = shareFlag(c, "target-fn"); err != nil {
		return cfg, err
	}
	if cfg.Speeds, cfg.Device, err = e.speedsOf(c); err != nil {
		return cfg, err
	}
	return cfg, cfg.Check()
}

// speedsOf reads the flags that ask for speeds.
func (e *env) speedsOf(c *cli.Context) (s training.Speeds, d *devicemodels.Device, err error) {
	s.Window = c.Int("window")
	if name := c.String("device"); name != "" {
		if d, err = devicemodels.Find(c.Context, name); err != nil {
			return s, nil, err
		}
		s.Simulate = func(n *training.Named) (*training.SimulatedSpeed, error) {
			named, actual, err := sim.NamedSpeed(c.Context, n, sim.NamedConfig{Device: d,
				Window:   s.Window,
				Schedule: n.Schedule, PredictorRank: n.Rank})
			return &training.SimulatedSpeed{Device: d.Name, Tokens: n.Tokens(), Rank: n.Rank,
				Named: named.Value, True: actual.Value, NamedEstimate: named,
				TrueEstimate: actual}, err
		}
	}
	if c.IsSet("model") {
		s.Measure = func(n *training.Named, path string) (*training.MeasuredSpeed, error) {
			m, err := e.openSession(c)
			if err != nil {
				return nil, err
			}
			defer m.Close()
			r, err := replay.NamedSpeed(c.Context, m, n, path, s.Window)
			if err != nil || r == nil {
				return nil, err
			}
			return &training.MeasuredSpeed{Tokens: r.Tokens, Mode: r.Mode.String(), Named: r.Named,
				True: r.True}, nil
		}
	}
	return s, d, nil
}

// optional is the value of a flag, nil when it is not set.
func optional(c *cli.Context, name string) *int {
	if !c.IsSet(name) {
		return nil
	}
	n := c.Int(name)
	return &n
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

// parseShare reads "10%" or "0.1": a share above 0 and below 1.
func parseShare(text string) (v float64, ok bool) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	return v, err == nil && v > 0 && v < 1
}

// shareFlag reads a flag like "10%" or "0.1"; 0 = not given.
func shareFlag(c *cli.Context, name string) (float64, error) {
	text := c.String(name)
	if text == "" {
		return 0, nil
	}
	v, ok := parseShare(text)
	if !ok {
		return 0, usageError("--%s %q: a share between 0 and 1, or a percentage, is wanted", name,
			text)
	}
	return v, nil
}
