package cli

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/whatif"
)

func whatifCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "whatif", Usage: "a trace with another sparsity or another predictor",
		ArgsUsage: "TRACE",
		Description: "A share below the trace's own leaves active units out: the smallest " +
			"activations where the trace holds magnitudes (record --magnitudes),\n" +
			"otherwise by a model of how activations come and go. A larger share adds units by " +
			"that model. What a smaller share keeps, a larger\n" +
			"one keeps too. \"windrow trace info\" says of the result what it was made from.\n\n" +
			examples("windrow record -m tales.flash.safetensors --prompts "+
				"examples/prompts/tales.txt --limit 4 -n 32 --magnitudes -o sized.trace.arrow",
				"windrow trace whatif sized.trace.arrow --share 4% -o half.trace.arrow",
				"windrow trace whatif sized.trace.arrow --threshold 0.5 --false-negatives 5% "+
					"--false-positives 3% --small-first -o guessed.trace.arrow"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "share", Usage: "mean `SHARE` of active units over all " +
				"layers, 5% or 0.05; every layer's own is scaled alike"},
			&cli.StringFlag{Name: "layer-share", Usage: "mean `SHARE` of active units of each " +
				"layer"},
			&cli.Float64Flag{Name: "threshold", Usage: "keep units with an activation of at " +
				"least `VALUE`, to the 9 % that magnitudes are exact to"},
			&cli.StringFlag{Name: "false-negatives",
				Usage: "a predictor that misses this `SHARE` of the active units"},
			&cli.StringFlag{Name: "false-positives",
				Usage: "a predictor that names this `SHARE` of the inactive units"},
			&cli.BoolFlag{Name: "as-predicted", Usage: "predicted masks even without errors"},
			&cli.BoolFlag{Name: "small-first", Usage: "the predictor misses the smallest " +
				"activations first"},
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Required: true,
				Usage: "`TRACE` to write (*.trace.arrow)"},
			shared("compress"),
			shared("seed"),
		},
		Action: e.traceWhatif,
	}
}

// whatifOptions reads the flags.
func whatifOptions(c *cli.Context) (whatif.Options, error) {
	opt := whatif.Options{Threshold: c.Float64("threshold"), Predictor: c.Bool("as-predicted"),
		SmallFirst: c.Bool("small-first"), Seed: c.Uint64("seed")}
	asked := opt.Predictor || c.IsSet("threshold")
	for _, f := range []struct {
		name string
		into *float64
	}{
		{"share", &opt.Share}, {"layer-share", &opt.LayerShare},
		{"false-negatives", &opt.FalseNegatives}, {"false-positives", &opt.FalsePositives},
	} {
		if !c.IsSet(f.name) {
			continue
		}
		asked = true
		v, err := whatif.ParseShare(c.String(f.name))
		if err != nil {
			return opt, usageError("--%s: %v", f.name, err)
		}
		if v == 0 && (f.name == "share" || f.name == "layer-share") {
			return opt, usageError("--%s %s: it must be above 0", f.name, c.String(f.name))
		}
		*f.into = v
	}
	if !asked {
		return opt, usageError("trace whatif: say what to change with --share, --layer-share, " +
			"--threshold, --false-negatives or --false-positives")
	}
	if err := opt.Check(); err != nil {
		return opt, usageError("%v", err)
	}
	return opt, nil
}

func (e *env) traceWhatif(c *cli.Context) error {
	opt, err := whatifOptions(c)
	if err != nil {
		return err
	}
	out := c.String("out")
	if in := c.Args().First(); in != "" && filepath.Clean(in) == filepath.Clean(out) {
		return usageError("%s is both the trace to read and the trace to write", in)
	}
	if err := e.claim(c, out, traceSuffix); err != nil {
		return err
	}
	r, err := e.traceArgument(c)
	if err != nil {
		return err
	}
	defer r.Close()
	changed, rep, err := whatif.Apply(r, opt)
	if errors.Is(err, whatif.ErrOptions) {
		return usageError("%v", err)
	}
	if err != nil {
		return err
	}
	if err := e.writeTrace(c.Context, changed, out, traces.WriteOptions{
		Compress: c.String("compress"), Incomplete: !r.Complete()}); err != nil {
		return err
	}
	return e.put(c, rep.Document(out, changed.Tokens(), opt))
}

// writeTrace writes all tokens of a source to a file.
func (e *env) writeTrace(ctx context.Context, src traces.Source, out string,
	opt traces.WriteOptions) error {
	head := *src.Header()
	head.Tool = Tool
	w, err := traces.Create(out, head, opt)
	if err != nil {
		return err
	}
	defer w.Abort()
	p := e.startProgress("whatif (tokens)")
	defer p.done()
	var t traces.Token
	for i := range src.Tokens() {
		if err := errors.Join(ctx.Err(), src.Token(i, &t)); err != nil {
			return err
		}
		if err := w.Append(&t); err != nil {
			return err
		}
		p.update(i+1, src.Tokens())
	}
	return w.Close()
}
