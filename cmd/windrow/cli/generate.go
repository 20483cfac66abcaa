package cli

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/traces"
)

func samplingOf(c *cli.Context) (engine.Sampling, error) {
	s := engine.Sampling{
		Temperature: c.Float64("temp"), TopK: c.Int("top-k"), TopP: c.Float64("top-p"),
		MinP: c.Float64("min-p"), Penalty: c.Float64("repeat-penalty"),
		Seed: c.Uint64("seed"),
	}
	if _, err := engine.NewSampler(s, 0); err != nil {
		return s, usageError("%v", err)
	}
	return s, nil
}

func generateCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "generate",
		Usage:     "run a model and print what it writes",
		ArgsUsage: "PROMPT",
		Description: "Without --oracle all rows are in memory (dense). With --oracle the " +
			"feed-forward rows stay on flash and are read as needed;\n" +
			"until predictors exist, which rows are needed comes from a trace that was recorded " +
			"on the same tokens, and the output is checked\n" +
			"against it. The prompt is then the trace's own.\n\n" +
			"With --draft the text is what the model alone would write: exactly when greedy, in " +
			"distribution when sampled.\n\n" +
			examples(`windrow generate -m tales.flash.safetensors -n 32 "Once upon a time"`,
				`windrow generate -m tales.flash.safetensors -n 32 --temp 0.8 --top-k 40 --stop "." "Once upon a time"`,
				"windrow generate -m tales.flash.safetensors -n 16 --prompts "+
					"examples/prompts/tales.txt --batch 4",
				"windrow record -m tales.flash.safetensors --prompts examples/prompts/tales.txt "+
					"--limit 2 -n 24 -o tales.trace.arrow",
				"windrow generate -m tales.flash.safetensors --oracle tales.trace.arrow "+
					"--window 4 --io pread"),
		Flags: with(take("model!", "n", "prompts", "batch", "prefill-chunk", "no-bos"),
			take(samplingFlags...), []cli.Flag{
				&cli.StringSliceFlag{Name: "stop", Usage: "end before this `TEXT`; may be given " +
					"several times"},
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

// generated is the result of a generation. Field names follow llama-bench where it has them.
type generated struct {
	Model    string        `json:"model"`
	Text     string        `json:"text"`
	Tokens   []uint32      `json:"tokens"`
	NPrompt  int           `json:"n_prompt"`
	NGen     int           `json:"n_gen"`
	AvgTS    float64       `json:"avg_ts"` // generated tokens per second, prompt excluded
	TTFT     float64       `json:"ttft_ms"`
	Bytes    int64         `json:"flash_bytes_read"`
	HitRatio float64       `json:"hit_ratio"`
	Sampling string        `json:"sampling"`
	Resident bool          `json:"resident"` // all rows in memory
	Mode     *flashio.Mode `json:"io_mode,omitempty"`
	Draft    *drafted      `json:"draft,omitempty"`
	// Of a predictor: its kind, the rows that there was no room for, and with --check-masks the
	// active neurons that were not computed.
	Predictor string   `json:"predictor,omitempty"`
	Dropped   int      `json:"dropped_rows,omitempty"`
	Missed    *float64 `json:"missed_share,omitempty"`
}

// drafted says what speculative decoding did.
type drafted struct {
	Model      string  `json:"model"`
	Lambda     int     `json:"lambda"`
	Verified   int     `json:"verifications"`
	Proposed   int     `json:"drafted"`
	Accepted   int     `json:"accepted"`
	Acceptance float64 `json:"acceptance_ratio"`
}

func (e *env) generate(c *cli.Context) error {
	sampling, err := samplingOf(c)
	if err != nil {
		return err
	}
	m, err := openModel(c.String("model"))
	if err != nil {
		return err
	}
	defer m.close()
	tok, err := m.text()
	if err != nil {
		return err
	}
	if err := e.useBackend(c, m); err != nil {
		return err
	}
	named, err := openPredictor(c, m)
	if err != nil {
		return err
	}
	if named != nil && (c.IsSet("oracle") || c.IsSet("draft") || c.IsSet("prompts")) {
		return usageError("--predictor runs one text from flash; leave out --oracle, --draft " +
			"and --prompts")
	}
	g := generated{Model: m.image.Name, Sampling: sampling.String(),
		Resident: c.String("oracle") == "" && named == nil}
	opt := engine.GenerateOptions{
		MaxTokens: c.Int("n"), Sampling: sampling, Seq: c.Int("sequence"), Stop: map[uint32]bool{},
		Vocab: tok.VocabSize(), Chunk: c.Int("prefill-chunk"),
	}
	if opt.Chunk < 1 {
		return usageError("--prefill-chunk %d: 1 or more is wanted", opt.Chunk)
	}
	if c.IsSet("draft") && c.IsSet("oracle") {
		return usageError("--draft and --oracle: a trace holds no masks of drafted tokens; give " +
			"one of them")
	}
	if id, ok := tok.EOS(); ok {
		opt.Stop[id] = true
	}
	if c.IsSet("prompts") {
		return e.generateBatches(c, m, opt)
	}
	var rows engine.Rows
	var prompt []uint32
	check := func(int, uint32) error { return nil }
	if !c.IsSet("oracle") {
		if err := needArgs(c, 1, "one prompt, in quotes"); err != nil {
			return err
		}
		if prompt, err = m.encode(c.Args().First(), c.Bool("no-bos")); err != nil {
			return err
		}
		if err := m.roomFor(len(prompt), opt.MaxTokens); err != nil {
			return err
		}
	}
	if g.Resident {
		if rows, err = m.resident(); err != nil {
			return err
		}
	} else if named != nil {
		flash, err := e.flashRows(c, m, named, min(len(prompt)+opt.MaxTokens,
			m.weights.Shape.MaxPos), opt.Chunk)
		if err != nil {
			return err
		}
		mode := flash.Mode()
		rows, g.Mode, g.Predictor = flash, &mode, named.kind
		e.note("%s: %s; %s", m.image.Name, modeLine(mode), predictorNote(named))
	} else {
		oracle, err := e.openOracle(c, m)
		if err != nil {
			return err
		}
		defer oracle.trace.Close()
		rows, prompt, opt.Masks, check = oracle.rows, oracle.prompt, oracle.masks, oracle.check
		opt.MaxTokens = min(opt.MaxTokens, len(oracle.ids)-len(prompt)+1)
		mode := oracle.rows.Mode()
		g.Mode = &mode
		e.note("%s: %s", m.image.Name, modeLine(mode))
	}
	defer rows.Close()
	if err := m.roomFor(len(prompt), opt.MaxTokens); err != nil {
		return err
	}
	return e.runGeneration(c, m, rows, named, prompt, opt, check, &g)
}

// runGeneration prints the text as it comes, or one JSON document.
func (e *env) runGeneration(c *cli.Context, m *openedModel, rows engine.Rows,
	named *openedPredictor, prompt []uint32, opt engine.GenerateOptions,
	check func(i int, id uint32) error, g *generated) error {
	count := &counter{}
	lambda := 0
	if c.IsSet("draft") {
		lambda = c.Int("lambda")
	}
	cfg := engine.Config{
		Threads: c.Int("threads"), Context: min(len(prompt)+opt.MaxTokens, m.weights.Shape.MaxPos),
		Batch: max(opt.Chunk, lambda+1), Observer: count,
		Backend: m.backend(),
	}
	if named != nil {
		cfg.Predictors, cfg.Schedule = named.make, named.schedule
		if c.Bool("check-masks") {
			check, err := m.resident()
			if err != nil {
				return err
			}
			cfg.Check = check
		}
	}
	eng, err := engine.New(m.weights, rows, cfg)
	if err != nil {
		return err
	}
	defer eng.Close()
	stream := m.tokenizer.NewStream()
	stream.SkipControl = true
	var text strings.Builder
	show := func(s string) {
		text.WriteString(s)
		if !c.Bool("json") {
			fmt.Fprint(e.stdout, s)
		}
	}
	for _, id := range prompt {
		show(stream.Next(id))
	}
	stop := newStopper(c.StringSlice("stop"))
	begin := time.Now()
	var first, last time.Time
	emit := func(id uint32) error {
		last = time.Now()
		if first.IsZero() {
			first = last
		}
		g.NGen++
		show(stop.next(stream.Next(id)))
		if err := check(g.NGen-1, id); err != nil {
			return err
		}
		if stop.over {
			return errStopped
		}
		return nil
	}
	if lambda > 0 {
		g.Tokens, err = e.drafting(c, m, eng, prompt, opt, g, emit)
	} else {
		g.Tokens, err = eng.Generate(c.Context, prompt, opt, emit)
	}
	show(stop.next(stream.Flush()))
	show(stop.flush())
	if !c.Bool("json") {
		fmt.Fprintln(e.stdout)
	}
	if errors.Is(err, errStopped) {
		err = nil
	} else if err == nil && g.NGen < opt.MaxTokens {
		err = check(g.NGen, endOfText)
	}
	if err != nil {
		return err
	}
	g.Text, g.NPrompt, g.Bytes = text.String(), len(prompt), int64(count.bytes)
	if count.hits+count.misses > 0 {
		g.HitRatio = float64(count.hits) / float64(count.hits+count.misses)
	}
	if g.NGen > 0 {
		g.TTFT = first.Sub(begin).Seconds() * 1e3
	}
	if g.NGen > 1 {
		g.AvgTS = float64(g.NGen-1) / last.Sub(first).Seconds()
	}
	if named != nil {
		g.Dropped = count.dropped
		if c.Bool("check-masks") && count.truly > 0 {
			share := float64(count.missed) / float64(count.truly)
			g.Missed = &share
		}
	}
	if c.Bool("json") {
		return printJSON(e.stdout, g)
	}
	e.note("%d prompt tokens, %d generated, %.4g tokens/s, first token after %.3g ms, %v read "+
		"from flash, hit ratio %.3g",
		g.NPrompt, g.NGen, g.AvgTS, g.TTFT, count.bytes, g.HitRatio)
	if g.Dropped > 0 {
		e.note("warning: there was no room for %d rows that were needed; give more --dram",
			g.Dropped)
	}
	if g.Missed != nil {
		e.note("%s of the active neurons were not computed", shareText(*g.Missed))
	}
	if d := g.Draft; d != nil {
		e.note("%s drafted %d tokens, %d were accepted, in %d verifications", d.Model, d.Proposed,
			d.Accepted, d.Verified)
	}
	return nil
}

// drafting generates with the draft model of the flags.
func (e *env) drafting(c *cli.Context, m *openedModel, eng *engine.Engine, prompt []uint32,
	opt engine.GenerateOptions, g *generated, emit func(uint32) error) ([]uint32, error) {
	d, err := openModel(c.String("draft"))
	if err != nil {
		return nil, err
	}
	defer d.close()
	if d.image.TokenizerHash != m.image.TokenizerHash {
		return nil, usageError("--draft: %s and %s have different tokenizers: a draft must "+
			"speak in the same tokens", d.image.Name, m.image.Name)
	}
	if err := e.useBackend(c, d); err != nil {
		return nil, err
	}
	rows, err := d.resident()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	small, err := engine.New(d.weights, rows, engine.Config{Threads: c.Int("threads"),
		Context: min(len(prompt)+opt.MaxTokens, d.weights.Shape.MaxPos), Backend: d.backend()})
	if err != nil {
		return nil, err
	}
	defer small.Close()
	ids, count, err := engine.Speculate(c.Context, eng, small, prompt, engine.SpeculateOptions{
		GenerateOptions: opt, Draft: c.Int("lambda")}, emit)
	g.Draft = &drafted{Model: d.image.Name, Lambda: c.Int("lambda"), Verified: count.Verified,
		Proposed: count.Drafted, Accepted: count.Accepted}
	if count.Drafted > 0 {
		g.Draft.Acceptance = float64(count.Accepted) / float64(count.Drafted)
	}
	return ids, err
}

// errStopped ends a generation at a stop text.
var errStopped = errors.New("stop text")

// counter adds up what the layers did.
type counter struct {
	bytes        units.Bytes
	hits, misses int
	// rows without room; with Check, active units that were not asked for, and all of them
	dropped, missed, truly int
}

func (n *counter) Layer(ev *engine.LayerEvent) error {
	n.bytes += ev.Bytes
	n.hits += ev.Hits
	n.misses += ev.Misses
	n.dropped += ev.Dropped
	n.truly += ev.True.Count()
	if ev.True != nil && ev.Need != nil {
		n.missed += ev.True.CountAndNot(ev.Need)
	}
	return nil
}

func (n *counter) Token(*engine.TokenEvent) error { return nil }

// CountsOnly implements engine.Counting.
func (n *counter) CountsOnly() {}

// oracle is a flash-resident engine's rows with the masks of one recorded sequence.
type oracle struct {
	trace  *traces.Reader
	rows   *engine.Flash
	ids    []uint32 // of the sequence
	prompt []uint32
	first  int // index of the sequence's first token in the trace
	token  traces.Token
}

func (e *env) openOracle(c *cli.Context, m *openedModel) (*oracle, error) {
	if c.NArg() > 0 {
		return nil, usageError("with --oracle the prompt is the trace's own; leave %q out",
			c.Args().First())
	}
	tr, err := e.openTrace(c.String("oracle"))
	if err != nil {
		return nil, err
	}
	o := &oracle{trace: tr, first: -1}
	if err = o.find(uint32(c.Int("sequence")), m); err == nil {
		o.rows, err = e.openFlash(c, m, tr)
	}
	if err != nil {
		tr.Close()
		return nil, err
	}
	return o, nil
}

// find reads the ids of the sequence and refuses a trace of another model.
func (o *oracle) find(seq uint32, m *openedModel) error {
	h := o.trace.Header()
	if h.ModelSHA256 != m.image.Hash {
		return usageError("the trace was recorded on %s (%.12s), the image is %s (%.12s): "+
			"oracle masks must be of the same weights",
			h.Model, h.ModelSHA256, m.image.Name, m.image.Hash)
	}
	for i := range o.trace.Tokens() {
		if err := o.trace.Token(i, &o.token); err != nil {
			return err
		}
		if o.token.Seq != seq {
			continue
		}
		if o.first < 0 {
			o.first = i
		}
		if int(o.token.Pos) != i-o.first {
			return inputError("%s: sequence %d has position %d where %d should be; oracle masks "+
				"need every position from 0", o.trace.Header().Model, seq, o.token.Pos, i-o.first)
		}
		o.ids = append(o.ids, o.token.ID)
		if o.token.Phase == traces.Prefill {
			o.prompt = append(o.prompt, o.token.ID)
		}
	}
	if len(o.prompt) == 0 {
		return usageError("the trace has no sequence %d with a prompt", seq)
	}
	return nil
}

func (o *oracle) masks(_, pos int) ([]mask.Mask, error) {
	if err := o.trace.Token(o.first+pos, &o.token); err != nil {
		return nil, err
	}
	return o.token.Active, nil
}

// endOfText stands for the end of the text where a token could be: no vocabulary is that large.
const endOfText = math.MaxUint32

// check compares a chosen token with the recorded one.
func (o *oracle) check(i int, id uint32) error {
	at := len(o.prompt) + i
	if at < len(o.ids) && o.ids[at] != id {
		if id == endOfText {
			return fmt.Errorf("the text ends at position %d, where the trace has token %d; use "+
				"the sampling the trace was recorded with (%s)",
				at, o.ids[at], o.trace.Header().Sampling)
		}
		return fmt.Errorf("the text departs from the trace at position %d: it has token %d, the "+
			"engine chose %d; use the sampling the trace was recorded with (%s)",
			at, o.ids[at], id, o.trace.Header().Sampling)
	}
	return nil
}

// openFlash opens the image for reading rows as the flags say, with as much memory as the trace
// needs.
func (e *env) openFlash(c *cli.Context, m *openedModel, tr *traces.Reader) (*engine.Flash, error) {
	opt, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	lay, err := layoutOptions(c)
	if err != nil {
		return nil, err
	}
	reader, err := flashio.Open(m.image.Path, opt)
	if err != nil {
		return nil, err
	}
	cfg := replay.Config{Layout: lay, Store: m.store()}
	cfg.Layout.Align = max(lay.Align, reader.Mode().Align)
	if cfg.Policy, err = e.budgetWindow(c, m, tr, tr.Tokens(), cfg); err != nil {
		reader.Close()
		return nil, err
	}
	flash, _, err := replay.NewFlash(tr, tr.Tokens(), m.weights, m.image.Geometry(), reader, cfg)
	if err != nil {
		reader.Close()
		return nil, err
	}
	for _, n := range reader.Mode().Notes {
		e.note("note: %s", n)
	}
	return flash, nil
}

// readText reads a text file.
func readText(path string) (string, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "", inputError("%s is a folder; name a text file", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", inputError("%s is not a text file", path)
	}
	if bytes.HasPrefix(data, []byte("version https://git-lfs")) {
		return "", inputError("%s is a Git LFS pointer, not the text; run git lfs pull", path)
	}
	return string(data), nil
}

// readPrompts reads one prompt per line; blank lines are skipped.
func readPrompts(path string, limit int) ([]string, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	var prompts []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && (limit == 0 || len(prompts) < limit) {
			prompts = append(prompts, line)
		}
	}
	if len(prompts) == 0 {
		return nil, inputError("%s holds no prompts; write one per line", path)
	}
	return prompts, nil
}
