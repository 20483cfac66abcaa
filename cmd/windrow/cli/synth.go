package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
	"github.com/windrow-sim/windrow/traces/synth"
)

func synthCommand(e *env) *cli.Command {
	like := shared("like")
	layers := shared("layers")
	return &cli.Command{
		Name:  "synth",
		Usage: "make models and traces of real shapes without a download",
		Subcommands: []*cli.Command{
			{
				Name:  "model",
				Usage: "random weights of a real shape, as a flash image",
				Description: "The weights are random: the image has the size, layout and " +
					"arithmetic of the model and says nothing sensible.\n" +
					"--scale keeps the record size and takes that share of the layers.\n\n" +
					examples("windrow synth model --like opt-125m --scale 0.25 -o "+
						"synth.flash.safetensors"),
				Flags: []cli.Flag{
					like, layers,
					&cli.Float64Flag{Name: "scale", Value: 1,
						Usage: "`SHARE` of the layers to make, above 0 up to 1"},
					&cli.StringFlag{Name: "out", Aliases: []string{"o"},
						Usage: "`IMG` to write (*.flash.safetensors)"},
					shared("seed"),
				},
				Action: e.synthModel,
			},
			{
				Name:  "trace",
				Usage: "activation masks of a real shape, matched to published statistics",
				Description: "Generating process: neurons are independent. Each is in topic or " +
					"out of it, by a two-state Markov chain with a mean stay of\n" +
					"43 tokens; how often is its popularity, log-normal over the neurons, and 4 " +
					"% always are. A neuron in topic is predicted in a\n" +
					"token with probability 0.22 (0.95 if it always is in topic), and active " +
					"such that false positives and negatives are as published.\n" +
					"The parameters are fitted to OPT-6.7B: active share per layer (LLM in a " +
					"flash, Table 6), 24 % of the neurons predicted in five\n" +
					"consecutive tokens and 2.4 % new per token (appendix C.1). Other models " +
					"have their own active share and these time scales. There is\n" +
					"no co-activation beyond popularity. \"windrow trace stats --predicted\" " +
					"shows the match.\n" +
					"Of a mixture of experts (mixtral-8x7b, olmoe-1b-7b, qwen3-30b-a3b) the " +
					"units are whole experts, and every token uses exactly K of N, those\n" +
					"with the highest scores. A score has a part that belongs to the expert, one " +
					"that drifts with the topic, one that drifts with the last\n" +
					"tokens, and one that is new for every token. Their shares and time scales " +
					"are fitted, for each model by itself, to published\n" +
					"repetitions, popularity and hit ratios; --routing takes those of another " +
					"model. Such traces hold no predicted masks.\n\n" +
					examples("windrow synth trace --like opt-6.7b --layers 4 --tokens 64 -o "+
						"opt.trace.arrow",
						"windrow trace stats opt.trace.arrow --predicted",
						"windrow synth trace --like mixtral-8x7b --tokens 64 -o "+
							"mixtral.trace.arrow"),
				Flags: []cli.Flag{
					like, layers,
					&cli.IntFlag{Name: "tokens", Aliases: []string{"n"}, Value: 256,
						Usage: "`N` tokens per sequence"},
					&cli.IntFlag{Name: "prompt", Usage: "`N` of them in the prefill phase"},
					&cli.IntFlag{Name: "sequences", Value: 1, Usage: "`N` sequences"},
					shared("active"),
					&cli.StringFlag{Name: "routing",
						Usage: "experts are chosen as those of `MODEL`: " +
							strings.Join(synth.Routings(), ", "),
						DefaultText: "the model's own, or of one with as many experts"},
					&cli.StringFlag{Name: "precision", Value: "f16",
						Usage: "`PRECISION` of the weights: f16, bf16 or f32"},
					&cli.BoolFlag{Name: "no-predicted", Usage: "true masks only"},
					&cli.StringFlag{Name: "out", Aliases: []string{"o"},
						Usage: "`TRACE` to write (*.trace.arrow)"},
					shared("seed"),
				},
				Action: e.synthTrace,
			},
		},
	}
}

// lookup finds a shape or prints the list of names.
func (e *env) lookup(c *cli.Context) (shape traces.Shape, info shapes.Info, done bool, err error) {
	if c.String("like") == "list" {
		return shape, info, true, e.putNames(c, "models", shapes.Names())
	}
	shape, info, err = shapes.Lookup(c.String("like"))
	if err != nil {
		return shape, info, false, usageError("%v", err)
	}
	if n := c.Int("layers"); n < 0 || n > shape.Layers {
		return shape, info, false, usageError("--layers %d: %s has %d", n, info.Name, shape.Layers)
	} else if n > 0 {
		shape.Layers = n
	}
	return shape, info, false, nil
}

// putNames prints a list of names, one a line in text.
func (e *env) putNames(c *cli.Context, what string, names []string) error {
	t := document.NewTable(document.Text(what))
	for _, n := range names {
		t.Add(n)
	}
	d := &document.Document{Name: "names", Title: "windrow " + verb(c.Command.HelpName),
		Headline: strings.Join(names, "\n"), Result: map[string]any{"names": names}}
	d.Sections = []document.Section{{Table: *t, Place: document.Details}}
	return e.put(c, d)
}

// needOutput asks for --out; a list of names needs none.
func (e *env) needOutput(c *cli.Context, suffix string) error {
	if !c.IsSet("out") {
		return usageError("%s needs --out; see \"%s --help\"", verb(c.Command.HelpName),
			c.Command.HelpName)
	}
	return e.claim(c, c.String("out"), suffix)
}

func (e *env) synthModel(c *cli.Context) error {
	shape, info, done, err := e.lookup(c)
	if err != nil || done {
		return err
	}
	if err := e.needOutput(c, ""); err != nil {
		return err
	}
	scale := c.Float64("scale")
	if !(scale > 0 && scale <= 1) {
		return usageError("--scale %g: it must be above 0 and at most 1", scale)
	}
	shape.Layers = max(1, int(float64(shape.Layers)*scale+0.5))
	to, end := e.tell()
	image, err := session.Synth(c.Context, session.SynthConfig{Shape: model.Shape(shape),
		Like: info.Name, Seed: c.Uint64("seed"), Out: c.String("out"),
		Tell: to})
	end()
	if err != nil {
		return err
	}
	defer image.Close()
	size := units.Bytes(image.Geometry().Size)
	d := imageDocument("synth-model", c.String("out"), image.Name, image.Shape,
		image.RecordBytes(), size, image.ResidentBytes(), image.BundleBytes())
	d.Result = map[string]any{"path": c.String("out"), "model": image.Name, "shape": image.Shape,
		"bytes": size, "resident_bytes": image.ResidentBytes(),
		"bundle_bytes": image.BundleBytes(), "record_bytes": image.RecordBytes()}
	return e.put(c, d)
}

func (e *env) synthTrace(c *cli.Context) error {
	_, info, done, err := e.lookup(c)
	if err != nil || done {
		return err
	}
	if err := e.needOutput(c, traceSuffix); err != nil {
		return err
	}
	opt := synth.Options{
		Like: info.Name, Layers: c.Int("layers"), Tokens: c.Int("tokens"), Prompt: c.Int("prompt"),
		Sequences: c.Int("sequences"),
		Seed:      c.Uint64("seed"), ActiveShare: c.Float64("active"), DType: c.String("precision"),
		Predicted: !c.Bool("no-predicted") && info.Experts == 0,
		Routing:   c.String("routing"),
	}
	if err := e.writeSynthTrace(c.Context, opt, c.String("out")); err != nil {
		return err
	}
	tokens := opt.Tokens * max(opt.Sequences, 1)
	return e.put(c, &document.Document{Name: "synth-trace", Title: "windrow synth trace",
		Headline: fmt.Sprintf("%s: %d tokens like those of %s", c.String("out"), tokens, opt.Like),
		Result:   map[string]any{"trace": c.String("out"), "like": opt.Like, "tokens": tokens}})
}

// writeSynthTrace streams a generated trace to a file.
func (e *env) writeSynthTrace(ctx context.Context, opt synth.Options, out string) error {
	head, err := synth.HeaderOf(opt)
	if err != nil {
		return usageError("%v", err)
	}
	head.Tool = Tool
	w, err := traces.Create(out, head, traces.WriteOptions{})
	if err != nil {
		return err
	}
	defer w.Abort()
	p := e.startProgress("synth trace")
	written, total := 0, opt.Tokens*max(opt.Sequences, 1)
	_, err = synth.Generate(ctx, opt, func(t *traces.Token) error {
		written++
		p.update(written, total)
		return errors.Join(ctx.Err(), w.Append(t))
	})
	p.done()
	if err != nil {
		return err
	}
	return w.Close()
}
