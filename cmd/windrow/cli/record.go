package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/traces"
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
		Flags: with(take("model!", "prompts!", "n", "batch", "prefill-chunk", "no-bos"),
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
	if err := checkOutput(c.String("out"), traceSuffix); err != nil {
		return err
	}
	sampling, err := samplingOf(c)
	if err != nil {
		return err
	}
	for _, flag := range []string{"batch", "prefill-chunk"} {
		if c.Int(flag) < 1 {
			return usageError("--%s %d: 1 or more is wanted", flag, c.Int(flag))
		}
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
	feature, err := recordedFeature(c, m)
	if err != nil {
		return err
	}
	if err := e.useBackend(c, m); err != nil {
		return err
	}
	n, err := e.recordTrace(c.Context, m, recordJob{
		prompts: prompts, tokens: c.Int("n"), sampling: sampling, threads: c.Int("threads"),
		out: c.String("out"), compress: c.String("compress"),
		magnitudes: c.Bool("magnitudes"), feature: feature, bare: c.Bool("no-bos"),
		batch: c.Int("batch"), chunk: c.Int("prefill-chunk"),
	})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(e.stdout, map[string]any{"trace": c.String("out"), "model": m.image.Name,
			"sequences": len(prompts), "tokens": n})
	}
	fmt.Fprintf(e.stdout, "%s: %d sequences, %d tokens\n", c.String("out"), len(prompts), n)
	return nil
}

// recordedFeature is the kind of features to record; "" = none.
func recordedFeature(c *cli.Context, m *openedModel) (string, error) {
	if !c.Bool("features") && !c.IsSet("feature-kind") {
		return "", nil
	}
	name := c.String("feature-kind")
	if _, err := featureIn(m, name); err != nil {
		return "", usageError("--feature-kind %s: %v", name, err)
	}
	return name, nil
}

// recordJob says what to record.
type recordJob struct {
	prompts    []string
	tokens     int // generated per prompt
	sampling   engine.Sampling
	threads    int
	out        string
	compress   string
	magnitudes bool   // one byte more per active unit
	feature    string // a kind of features, two bytes more per number of it; "" = none
	bare       bool   // texts without what the tokenizer puts around them
	batch      int    // prompts side by side; 0 = 1
	chunk      int    // prompt tokens of a step; 0 = 1
}

// header describes the trace to record. Batches and chunks do not change its rows; that they were
// used is among the facts of the host.
func (job *recordJob) header(m *openedModel) traces.Header {
	head := traceHeader(m.image, job.sampling)
	head.HasMagnitude = job.magnitudes
	if job.feature != "" {
		head.FeatureKind, head.FeatureWidth = job.feature, head.Shape.DModel
	}
	if job.bare {
		head.Host[hostBare] = "true"
	}
	if job.batch > 1 {
		head.Host[hostBatch] = strconv.Itoa(job.batch)
	}
	if m.device != nil {
		head.Host[hostBackend] = m.device.Device().Name
	}
	if job.chunk > 1 {
		head.Host[hostChunk] = strconv.Itoa(job.chunk)
	}
	return head
}

// Facts of the host that say how a trace was recorded, when not token by token from the beginning
// of texts on the CPU.
const (
	hostBatch = "batch"
	hostChunk = "prefill_chunk"
	hostBare  = "no_bos" // texts without what the tokenizer puts around them
	// A device rounds otherwise than the CPU: near zero another unit may be active.
	hostBackend = "backend"
)

// recordTrace runs the prompts densely and writes the trace. It returns the number of tokens in it.
func (e *env) recordTrace(ctx context.Context, m *openedModel, job recordJob) (int, error) {
	rows, err := m.resident()
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	ids, longest := make([][]uint32, len(job.prompts)), 0
	for i, prompt := range job.prompts {
		if ids[i], err = m.encode(prompt, job.bare); err != nil {
			return 0, err
		}
		if err := m.roomFor(len(ids[i]), job.tokens); err != nil {
			return 0, fmt.Errorf("prompt %d: %w", i+1, err)
		}
		longest = max(longest, len(ids[i]))
	}
	job.batch, job.chunk = min(max(job.batch, 1), len(ids)), max(job.chunk, 1)
	head := job.header(m)
	w, err := traces.Create(job.out, head, traces.WriteOptions{Compress: job.compress})
	if err != nil {
		return 0, err
	}
	defer w.Abort()
	count := &countingAppender{to: w}
	order := record.NewInOrder(count)
	recorder, err := record.NewFor(order, &head)
	if err != nil {
		return 0, err
	}
	eng, err := engine.New(m.weights, rows, engine.Config{
		Threads: job.threads, Context: min(longest+job.tokens, m.weights.Shape.MaxPos),
		Sequences: job.batch, Batch: job.batch - 1 + job.chunk, Observer: recorder,
		FeatureKind: recorder.FeatureKind(), Backend: m.backend(),
	})
	if err != nil {
		return 0, refused(m, err)
	}
	defer eng.Close()
	e.tellSize(&head, ids, longest, &job)
	tok := m.tokenizer
	opt := engine.GenerateOptions{MaxTokens: job.tokens, Sampling: job.sampling,
		Stop: map[uint32]bool{}, Vocab: tok.VocabSize(), Chunk: job.chunk}
	if id, ok := tok.EOS(); ok {
		opt.Stop[id] = true
	}
	err = e.recordBatches(ctx, eng, ids, job.batch, opt, order)
	if errors.Is(err, context.Canceled) {
		return count.n, e.keepPartial(w, err)
	}
	if err != nil {
		return count.n, err
	}
	return count.n, w.Close()
}

// recordBatches runs the prompts, so many at once. What a batch held back is passed on also when it
// was interrupted.
func (e *env) recordBatches(ctx context.Context, eng *engine.Engine, ids [][]uint32, size int,
	opt engine.GenerateOptions, order *record.InOrder) error {
	p := e.startProgress("record (prompts)")
	defer p.done()
	for from := 0; from < len(ids); from += size {
		to := min(from+size, len(ids))
		opt.Seq = from
		_, err := eng.GenerateBatch(ctx, ids[from:to], opt, func(int, uint32) error { return nil })
		if err == nil || errors.Is(err, context.Canceled) {
			err = errors.Join(err, order.Flush())
		}
		if err != nil {
			return err
		}
		p.update(to, len(ids))
	}
	return nil
}

// tellSize says what features make of the trace, and of the memory that batches need.
func (e *env) tellSize(head *traces.Header, ids [][]uint32, longest int, job *recordJob) {
	if job.feature == "" {
		return
	}
	tokens, behind := int64(0), int64(max(job.tokens-1, 0)) // the last new token is not run
	for _, prompt := range ids {
		tokens += int64(len(prompt)) + behind
	}
	features, token := units.Bytes(2*head.FeatureWidth*head.Layers), units.Bytes(head.TokenBytes())
	text := fmt.Sprintf("features take %v of a token's %v", features, token)
	if job.magnitudes {
		text += ", magnitudes aside"
	}
	text += fmt.Sprintf("; up to %d tokens, %v", tokens, units.Bytes(tokens)*token)
	if job.compress == "zstd" {
		text += " before compression"
	}
	if held := int64(job.batch-1) * (int64(longest) + behind); held > 0 {
		text += fmt.Sprintf("; batches hold back up to %v in memory", units.Bytes(held)*token)
	}
	e.note("%s", text)
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
