package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay/quality"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

func evalCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "eval",
		Usage: "perplexity of a text, and what dropping small activations costs and saves",
		Description: "Every token of the text is predicted once, in windows of --context tokens " +
			"that start --stride tokens apart. With --shares the model also runs\n" +
			"with only so many of its neurons: in each layer those whose value is largest, by a " +
			"threshold that is found on the same text (as CATS and TEAL\n" +
			"do). Each share gets its perplexity, how often its most likely token is the dense " +
			"model's, and the bytes that a window of --window tokens reads\n" +
			"per token; with --device also the simulated time. This is lossy: a share is a " +
			"trade, and the table shows its price.\n\n" +
			examples("windrow eval -m tales.flash.safetensors --text examples/prompts/scenes.txt",
				"windrow eval -m tales.flash.safetensors --text examples/prompts/scenes.txt "+
					"--shares 5%,2%,1% --max-tokens 256 -d m1-max --plot pareto.svg"),
		Flags: append(take("model!", "verify", "no-bos", "max-tokens", "window", "device",
			"predictor", "k-max", "backend", "device-memory", "threads"),
			&cli.StringFlag{Name: "text", Required: true, Usage: "`FILE` of text to predict"},
			shared("max-input"),
			defaulting(shared("context"), "512, or as many as the model has"),
			&cli.IntFlag{Name: "stride", Usage: "from one window to the next, `N` tokens",
				DefaultText: "the context"},
			&cli.BoolFlag{Name: "begin", Usage: "begin every window as texts begin: with the " +
				"tokenizer's first token in place of its own, if it has one"},
			defaulting(shared("prefill-chunk"), quality.DefaultChunk),
			&cli.StringFlag{Name: "shares", Usage: "also with these shares of the neurons, " +
				"`S,S,…`, for example 20%,5%"},
			&cli.StringFlag{Name: "plot", Usage: "draw perplexity over bytes per token to this " +
				"`FILE.svg`"}),
		Action: e.eval,
	}
}

func (e *env) eval(c *cli.Context) error {
	if err := e.claimFlag(c, "plot", ".svg"); err != nil {
		return err
	}
	cfg, device, err := evalConfig(c)
	if err != nil {
		return err
	}
	m, err := e.openSession(c)
	if err != nil {
		return err
	}
	defer m.Close()
	limit, err := maxInput(c)
	if err != nil {
		return err
	}
	if cfg.Text, err = session.ReadText(c.Context, c.String("text"), limit); err != nil {
		return err
	}
	if cfg.Predictor, err = openPredictor(c, m); err != nil {
		return err
	}
	if device != nil {
		cfg.Time = func(src traces.Source, window int) (units.Nanos,
			document.Estimate, error) {
			return sim.TimePerToken(c.Context, src, device, window, m.Image.Geometry())
		}
	}
	update, done := e.stages()
	cfg.Progress = update
	doc, err := quality.Run(c.Context, m, cfg)
	done()
	if err != nil {
		return err
	}
	if c.IsSet("plot") {
		if err := plotEval(c.String("plot"), doc); err != nil {
			return err
		}
	}
	return e.put(c, doc.Document())
}

// evalConfig reads the flags, and the device to simulate; nil = none.
func evalConfig(c *cli.Context) (cfg quality.Config, d *devicemodels.Device, err error) {
	cfg = quality.Config{Source: c.String("text"), NoBOS: c.Bool("no-bos"), Begin: c.Bool("begin"),
		MaxTokens: c.Int("max-tokens"), Context: c.Int("context"), Stride: c.Int("stride"),
		PrefillChunk: c.Int("prefill-chunk"), Threads: c.Int("threads"), Window: c.Int("window"),
		Tool: Tool}
	if cfg.Shares, err = parseShares(c.String("shares")); err != nil {
		return cfg, nil, err
	}
	if name := c.String("device"); name != "" {
		if d, err = devicemodels.Find(c.Context, name); err != nil {
			return cfg, nil, err
		}
		cfg.Device = d.Name
	}
	return cfg, d, cfg.Check()
}

// parseShares reads "5%,2%" into shares.
func parseShares(text string) (list []float64, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		v, ok := parseShare(part)
		if !ok {
			return nil, usageError("--shares %q: shares between 0 and 1, or percents, are "+
				"wanted, with commas between them", text)
		}
		list = append(list, v)
	}
	return list, nil
}

// plotEval draws perplexity over bytes per token.
func plotEval(path string, doc *quality.Result) error {
	var points []report.Point
	for _, r := range doc.Rows {
		label := "dense"
		if r.Predictor != "" {
			label = "predictor"
		} else if r.Lossy {
			label = document.Percent(r.Share) + " %"
		}
		points = append(points, report.Point{X: r.Bytes / 1e6, Y: r.Perplexity, Label: label})
	}
	return output.Write(path, func(f *output.File) error {
		return report.WriteParetoSVG(f, fmt.Sprintf("MB read per token, window of %d", doc.Window),
			"perplexity", points)
	})
}
