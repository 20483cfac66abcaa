package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/record"
)

func recordCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "record",
		Usage: "run a model on prompts and capture its activation trace",
		Description: "Captures the true mask of every layer for every token, prompt and " +
			"generated, in one sequence per prompt. The trace is streamed;\n" +
			"when interrupted, what was recorded is kept under *.partial.trace.arrow and says " +
			"that it is not whole.\n\n" +
			"With --features it also keeps what predictors learn from, of every token and " +
			"layer: 2 bytes times the width of the model (OPT-6.7B:\n" +
			"256 KiB a token). --feature-kind says what, and is enough by itself:\n\n" +
			"  ffn_input         the input of the feed-forward part, behind its norm\n" +
			"  attention_output  the output of the attention, before it is added to the " +
			"residual (LLM in a flash)\n" +
			"  residual          the residual in front of that norm (PowerInfer, Deja Vu)\n\n" +
			"Centroid predictors (NeuroPrefetcher) learn from the kind in layer 0 alone. Where " +
			"attention and feed-forward part run side by side\n" +
			"(Falcon, Phi) the residual is the layer's input; a model with norms behind its " +
			"additions (OPT-350M) has none in front of a norm.\n\n" +
			"With --batch the rows of the trace are the same, in the same order, and the header " +
			"says how it was recorded. Tokens of all but the\n" +
			"first text of a batch wait in memory until the batch is complete, each as large as " +
			"in the trace.\n\n" +
			examples("windrow record -m tales.flash.safetensors --prompts "+
				"examples/prompts/tales.txt --limit 4 -n 32 -o tales.trace.arrow",
				"windrow trace info tales.trace.arrow",
				"windrow record -m tales.flash.safetensors --prompts examples/prompts/tales.txt "+
					"--limit 8 -n 16 --batch 4 --magnitudes --features -o learn.trace.arrow"),
		Flags: with(take("model!", "verify", "prompts!", "max-input", "n", "batch",
			"prefill-chunk", "no-bos"),
			take(samplingFlags...), []cli.Flag{
				&cli.IntFlag{Name: "limit", Usage: "only the first `N` prompts",
					DefaultText: "all"},
				&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Required: true,
					Usage: "`TRACE` to write (*.trace.arrow)"},
				shared("compress"),
				&cli.BoolFlag{Name: "magnitudes", Usage: "also the size of every active value, " +
					"so that \"trace whatif\" can ask what a threshold would leave out"},
				&cli.BoolFlag{Name: "features", Usage: "also what predictors predict from " +
					"(float16), to train them on"},
				shared("feature-kind"),
			}, take("backend", "device-memory", "threads")),
		Action: e.record,
	}
}

func (e *env) record(c *cli.Context) error {
	if err := e.claim(c, c.String("out"), traceSuffix); err != nil {
		return err
	}
	sampling, err := samplingOf(c)
	if err != nil {
		return err
	}
	cfg := record.Config{N: c.Int("n"), Sampling: sampling, Threads: c.Int("threads"),
		Out: c.String("out"), Compress: c.String("compress"), Magnitudes: c.Bool("magnitudes"),
		NoBOS: c.Bool("no-bos"), Batch: c.Int("batch"), PrefillChunk: c.Int("prefill-chunk"),
		Tool: Tool}
	if c.Bool("features") || c.IsSet("feature-kind") {
		cfg.FeatureKind = c.String("feature-kind")
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	limit, err := maxInput(c)
	if err != nil {
		return err
	}
	if cfg.Prompts, err = session.ReadPrompts(c.Context, c.String("prompts"), limit,
		c.Int("limit")); err != nil {
		return err
	}
	m, err := e.openSession(c)
	if err != nil {
		return err
	}
	defer m.Close()
	p := e.startProgress("record (prompts)")
	cfg.Progress = p.update
	r, err := record.Run(c.Context, m, cfg)
	p.done()
	if err != nil {
		return err
	}
	return e.put(c, r.Document())
}
