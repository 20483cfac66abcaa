package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/chat"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/plain"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/traces"
)

// samplingOf reads samplingFlags. Of the library 0 is none; who types it means something else.
func samplingOf(c *cli.Context) (s engine.Sampling, err error) {
	for _, name := range []string{"top-p", "repeat-penalty"} {
		if c.Float64(name) == 0 {
			return s, usageError("--%s 0: it must be above 0; 1 is none", name)
		}
	}
	return engine.Sampling{
		Temperature: c.Float64("temp"), TopK: c.Int("top-k"), TopP: c.Float64("top-p"),
		MinP: c.Float64("min-p"), Penalty: c.Float64("repeat-penalty"),
		Seed: c.Uint64("seed"),
	}, nil
}

func generateCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "generate",
		Usage:     "run a model and print what it writes",
		ArgsUsage: "PROMPT",
		Description: "Without --oracle and --predictor all rows are in memory (dense). With " +
			"--oracle the feed-forward rows stay on flash, and a trace that was recorded on the " +
			"same tokens names those that are read: the prompt is the trace's own, and the " +
			"output is checked against it. With --predictor a predictor names them for any " +
			"prompt, and misses some.\n\n" +
			"With --chat the prompt is a conversation: a JSON list of messages, or an object " +
			"with messages, tools, add_generation_prompt, now and chat_template_kwargs. The " +
			"model's chat template, which pack stores in the image, makes a text of it; the " +
			"text is read as it is, without a token in front. A template runs in a process of " +
			"its own, with limits on memory, time and output.\n\n" +
			"With --draft the text is what the model alone would write: exactly when greedy, in " +
			"distribution when sampled.\n\n" +
			examples(`windrow generate -m tales.flash.safetensors -n 32 "Once upon a time"`,
				`windrow generate -m tales.flash.safetensors -n 32 --temp 0.8 --top-k 40 --stop "." "Once upon a time"`,
				"windrow generate -m tales.flash.safetensors -n 16 "+
					"--chat examples/chat/story.json --chat-template examples/chat/plain.jinja",
				"windrow generate -m tales.flash.safetensors -n 16 --prompts "+
					"examples/prompts/tales.txt --batch 4",
				"windrow record -m tales.flash.safetensors --prompts examples/prompts/tales.txt "+
					"--limit 2 -n 24 -o two.trace.arrow",
				"windrow generate -m tales.flash.safetensors --oracle two.trace.arrow "+
					"--window 4 --io pread"),
		Flags: with(take("model!", "verify", "n", "prompts", "max-input", "batch", "prefill-chunk",
			"no-bos"),
			take(samplingFlags...), []cli.Flag{
				&cli.StringSliceFlag{Name: "stop", Usage: "end before this `TEXT`; may be given " +
					"several times"},
				&cli.StringFlag{Name: "chat", Usage: "JSON `FILE` with a conversation, - for " +
					"stdin: the model's chat template makes the prompt of it"},
				&cli.StringFlag{Name: "chat-template", Usage: "`FILE` with the chat template to " +
					"use instead of the image's"},
				&cli.BoolFlag{Name: "child", Hidden: true}, // renders for --chat
				&cli.StringFlag{Name: "oracle", Usage: "`TRACE` with the masks of the same " +
					"tokens: run flash-resident"},
				&cli.IntFlag{Name: "sequence", Usage: "`N`th sequence of the trace"},
				&cli.StringFlag{Name: "draft", Usage: "flash image `IMG` of a smaller model with " +
					"the same tokenizer that drafts (speculative decoding)"},
				shared("lambda"),
				&cli.BoolFlag{Name: "check-masks", Usage: "with --predictor, also compute every " +
					"row in memory and count the active ones that were missed"},
			}, take("predictor", "k-max", "window", "dense-prefix"), take(readingFlags...),
			take(engineFlags...), take("backend", "device-memory")),
		Action: e.generate,
	}
}

func (e *env) generate(c *cli.Context) error {
	if c.Bool("child") {
		return chat.Serve(e.stdin, e.stdout)
	}
	if err := checkTogether(c); err != nil {
		return err
	}
	cfg, err := generateConfig(c)
	if err != nil {
		return err
	}
	e.noteGreedy(c)
	m, err := e.openSession(c)
	if err != nil {
		return err
	}
	defer m.Close()
	if _, err := m.Text(); err != nil {
		return err
	}
	if path := c.String("draft"); isFile(path) { // of others Generate says what they are
		draft, err := e.openImage(c, path)
		if err != nil {
			return err
		}
		draft.Close()
	}
	if c.IsSet("prompts") {
		return e.generateBatches(c, m, cfg)
	}
	prompt := c.Args().First()
	if c.IsSet("oracle") {
		tr, err := e.openOracle(c, m, &cfg)
		if err != nil {
			return err
		}
		defer tr.Close()
	} else if c.IsSet("chat") {
		if prompt, err = e.chatPrompt(c, m); err != nil {
			return err
		}
		cfg.NoBOS = true
	} else if err := needArgs(c, 1, "one prompt, in quotes"); err != nil {
		return err
	}
	streams := e.format(c) == "text"
	if streams {
		cfg.Show = func(text string) { fmt.Fprint(e.stdout, plain.Text(text)) }
	}
	g, err := m.Generate(c.Context, prompt, cfg)
	if streams && g != nil {
		fmt.Fprintln(e.stdout)
	}
	if err != nil {
		return err
	}
	if streams {
		e.noteDocument(g.Document())
		return nil
	}
	return e.put(c, g.Document())
}

// chatPrompt reads a conversation and renders it.
func (e *env) chatPrompt(c *cli.Context, m *session.Session) (string, error) {
	limit, err := maxInput(c)
	if err != nil {
		return "", err
	}
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("generate: cannot find this program to start it again: %w", err)
	}
	messages, err := chat.Read(c.Context, c.String("chat"), e.stdin, limit)
	if err != nil {
		return "", err
	}
	return m.Prompt(c.Context, session.Chat{Messages: messages,
		ChatTemplate: c.String("chat-template"), Now: e.now(),
		Child: []string{exe, "generate", "-m", c.String("model"), "--child"}})
}

// noteGreedy names the flags that choose among tokens where the likeliest is taken.
func (e *env) noteGreedy(c *cli.Context) {
	if c.Float64("temp") != 0 {
		return
	}
	for _, name := range []string{"top-k", "top-p", "min-p"} {
		if c.IsSet(name) {
			e.note("--%s has no effect with --temp 0, which takes the likeliest token", name)
		}
	}
}

// checkTogether refuses flags that say how to do what no other flag asks for, and two prompts.
func checkTogether(c *cli.Context) error {
	for _, f := range []struct {
		name string
		with []string // of which one is needed
	}{
		{"batch", []string{"prompts"}},
		{"lambda", []string{"draft"}},
		{"sequence", []string{"oracle"}},
		{"check-masks", []string{"predictor"}},
		{"dense-prefix", []string{"predictor"}},
		{"window", []string{"oracle", "predictor"}},
		{"dram", []string{"oracle", "predictor"}},
	} {
		if c.IsSet(f.name) && !slices.ContainsFunc(f.with, c.IsSet) {
			return usageError("--%s goes with --%s", f.name, strings.Join(f.with, " or --"))
		}
	}
	if c.IsSet("chat-template") && !c.IsSet("chat") {
		return usageError("--chat-template goes with --chat FILE, the conversation")
	}
	if c.IsSet("chat") && (c.IsSet("prompts") || c.IsSet("oracle") || c.NArg() > 0) {
		return usageError("--chat is the prompt; leave out the prompt, --prompts and --oracle")
	}
	return nil
}

// generateConfig reads the flags.
func generateConfig(c *cli.Context) (cfg session.GenerateConfig, err error) {
	sampling, err := samplingOf(c)
	if err != nil {
		return cfg, err
	}
	cfg = session.GenerateConfig{N: c.Int("n"), Sampling: sampling,
		Sequence: c.Int("sequence"), PrefillChunk: c.Int("prefill-chunk"),
		Threads: c.Int("threads"), NoBOS: c.Bool("no-bos"), Stop: c.StringSlice("stop"),
		Predictor: c.String("predictor"), KMax: c.Int("k-max"), CountMissed: c.Bool("check-masks"),
		Draft: c.String("draft"), Lambda: c.Int("lambda")}
	if c.IsSet("oracle") {
		cfg.Recorded = &session.Recorded{} // openOracle fills it
	}
	if cfg.Flash.Reads, err = readsOf(c); err != nil {
		return cfg, err
	}
	cfg.Flash.Window, cfg.Flash.DRAM, cfg.Flash.DensePrefix = c.Int("window"), c.String("dram"),
		session.Auto
	if c.IsSet("dense-prefix") {
		cfg.Flash.DensePrefix = c.Int("dense-prefix")
	}
	return cfg, cfg.Check()
}

// openOracle makes the masks of a recorded sequence those of the generation, and returns their
// trace, to be closed afterwards.
func (e *env) openOracle(c *cli.Context, m *session.Session,
	cfg *session.GenerateConfig) (*traces.Reader, error) {
	if c.NArg() > 0 {
		return nil, usageError("with --oracle the prompt is the trace's own; leave %q out",
			c.Args().First())
	}
	if err := windowOrBudget(c); err != nil {
		return nil, err
	}
	tr, err := e.openTrace(c.Context, c.String("oracle"))
	if err != nil {
		return nil, err
	}
	cfg.Recorded, err = replay.OpenOracle(m, tr, replay.OracleConfig{Reads: cfg.Flash.Reads,
		Sequence: cfg.Sequence, Window: cfg.Flash.Window, DRAM: cfg.Flash.DRAM})
	if err != nil {
		tr.Close()
		return nil, err
	}
	return tr, nil
}

// noteDocument prints a document's words to stderr, for a verb whose stdout is a text.
func (e *env) noteDocument(d *document.Document) {
	e.note("%s", d.Headline)
	for _, w := range d.Warnings {
		e.note("warning: %s", w)
	}
	for _, f := range d.Facts {
		e.note("%s: %s", f.Key, f.Value)
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
