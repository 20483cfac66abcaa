package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/traces"
)

func recordCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "record",
		Usage: "run a model on prompts and capture its activation trace",
		Description: "Captures the true mask of every layer for every token, prompt and generated, in one sequence per prompt. The trace is streamed;\n" +
			"when interrupted, what was recorded is kept under *.partial.trace.arrow and says that it is not whole.\n\n" +
			examples("windrow record -m tales.flash.safetensors --prompts examples/prompts/tales.txt --limit 4 -n 32 -o tales.trace.arrow",
				"windrow trace info tales.trace.arrow"),
		Flags: append([]cli.Flag{
			modelFlag(),
			&cli.StringFlag{Name: "prompts", Required: true, Usage: "`FILE` with one prompt per line"},
			&cli.IntFlag{Name: "limit", Usage: "only the first `N` prompts", DefaultText: "all"},
			&cli.IntFlag{Name: "n", Value: 64, Usage: "`N` tokens to generate per prompt"},
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Required: true, Usage: "`TRACE` to write (*.trace.arrow)"},
			&cli.StringFlag{Name: "compress", Value: "none", Usage: "`CODEC`: none (can be mapped without copies) or zstd"},
			&cli.BoolFlag{Name: "magnitudes", Usage: "also the size of every active value, so that \"trace whatif\" can ask what a threshold would leave out"},
			threadsFlag(), jsonFlag(),
		}, samplingFlags()...),
		Action: e.record,
	}
}

func (e *env) record(c *cli.Context) error {
	if err := checkOutput(c.String("out"), traceSuffix); err != nil {
		return err
	}
	sampling, err := samplingOf(c)
	if err != nil {
		return err
	}
	prompts, err := readPrompts(c.String("prompts"), c.Int("limit"))
	if err != nil {
		return err
	}
	m, err := openModel(c.String("model"))
	if err != nil {
		return err
	}
	defer m.close()
	n, err := e.recordTrace(c.Context, m, recordJob{
		prompts: prompts, tokens: c.Int("n"), sampling: sampling, threads: c.Int("threads"), out: c.String("out"), compress: c.String("compress"),
		magnitudes: c.Bool("magnitudes"),
	})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(e.stdout, map[string]any{"trace": c.String("out"), "model": m.image.Name, "sequences": len(prompts), "tokens": n})
	}
	fmt.Fprintf(e.stdout, "%s: %d sequences, %d tokens\n", c.String("out"), len(prompts), n)
	return nil
}

// recordJob says what to record.
type recordJob struct {
	prompts  []string
	tokens   int // generated per prompt
	sampling engine.Sampling
	threads  int
	out      string
	compress string
	// magnitudes asks for one byte more per active unit.
	magnitudes bool
}

// recordTrace runs the prompts densely and writes the trace. It returns the number of tokens in it.
func (e *env) recordTrace(ctx context.Context, m *openedModel, job recordJob) (int, error) {
	tok, err := m.text()
	if err != nil {
		return 0, err
	}
	rows, err := m.resident()
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	ids := make([][]uint32, len(job.prompts))
	for i, prompt := range job.prompts {
		ids[i] = tok.Encode(prompt)
		if err := m.roomFor(len(ids[i]), job.tokens); err != nil {
			return 0, fmt.Errorf("prompt %d: %w", i+1, err)
		}
	}
	head := traceHeader(m.image, job.sampling)
	head.HasMagnitude = job.magnitudes
	w, err := traces.Create(job.out, head, traces.WriteOptions{Compress: job.compress})
	if err != nil {
		return 0, err
	}
	defer w.Abort()
	count := &countingAppender{to: w}
	recorder := record.New
	if job.magnitudes {
		recorder = record.NewMagnitudes
	}
	eng, err := engine.New(m.weights, rows, engine.Config{Threads: job.threads, Observer: recorder(count, head.Layers, head.Words())})
	if err != nil {
		return 0, err
	}
	defer eng.Close()
	opt := engine.GenerateOptions{MaxTokens: job.tokens, Sampling: job.sampling, Stop: map[uint32]bool{}, Vocab: tok.VocabSize()}
	if id, ok := tok.EOS(); ok {
		opt.Stop[id] = true
	}
	p := e.startProgress("record (prompts)")
	for i := range ids {
		opt.Seq = i
		_, err = eng.Generate(ctx, ids[i], opt, func(uint32) error { return nil })
		if err != nil {
			break
		}
		p.update(i+1, len(ids))
	}
	p.done()
	if errors.Is(err, context.Canceled) {
		return count.n, e.keepPartial(w, err)
	}
	if err != nil {
		return count.n, err
	}
	return count.n, w.Close()
}

// keepPartial finishes an interrupted trace under a name and a manifest that say so.
func (e *env) keepPartial(w *traces.Writer, cause error) error {
	path, err := w.Interrupt()
	if err != nil {
		return errors.Join(cause, err)
	}
	return fmt.Errorf("what was recorded so far is in %s: %w", path, cause)
}

// countingAppender counts the tokens that pass.
type countingAppender struct {
	to record.Appender
	n  int
}

func (a *countingAppender) Append(t *traces.Token) error {
	a.n++
	return a.to.Append(t)
}
