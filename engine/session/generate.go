package session

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// GenerateConfig says what to write, and how.
type GenerateConfig struct {
	N            int // tokens to generate
	Sampling     engine.Sampling
	Sequence     int // number of the text, which picks its random stream
	PrefillChunk int // tokens of the prompt that go through the model together, 1 or more
	Threads      int // 0 = all cores
	NoBOS        bool
	Stop         []string // texts to end before

	// Recorded are rows on flash with recorded masks; nil = a dense run, or Predictor's.
	Recorded *Recorded
	// Predictor is the file of a predictor: rows are read from flash as it names them; "" = none.
	Predictor string
	KMax      int         // as of Session.Predictor
	Flash     FlashConfig // of Predictor's rows; Positions and Batch are set by Generate
	// CountMissed also computes every row in memory, and counts the active ones that Predictor
	// missed.
	CountMissed bool

	// Draft is the image of a smaller model with the same tokenizer, which proposes Lambda tokens
	// at once for verification; "" = none.
	Draft  string
	Lambda int

	// Show gets the text piece by piece, the prompt first; may be nil.
	Show func(text string)
}

// DefaultGenerate generates 64 greedily chosen tokens, one after the other. A draft proposes 4 at
// once.
func DefaultGenerate() GenerateConfig {
	return GenerateConfig{N: 64, Sampling: DefaultSampling(), PrefillChunk: 1, Lambda: 4}
}

// DefaultSampling takes the most likely token.
func DefaultSampling() engine.Sampling {
	return engine.Sampling{TopP: 1, Penalty: 1, Seed: rng.DefaultSeed}
}

// Recorded are the rows of a run whose masks are known beforehand.
type Recorded struct {
	Rows   *engine.Flash
	Prompt []uint32
	Masks  func(seq, pos int) ([]mask.Mask, error)
	// Most is the number of tokens that can be generated.
	Most int
	// Expect checks chosen token i; EndOfText stands for the end of the text where a token could
	// be.
	Expect func(i int, id uint32) error
}

// EndOfText is an id that no vocabulary has.
const EndOfText = math.MaxUint32

// Generated is a text, and how it was written. Names in JSON follow llama-bench where it has them.
type Generated struct {
	Model    string        `json:"model"`
	Text     string        `json:"text"`
	Tokens   []uint32      `json:"tokens"`
	NPrompt  int           `json:"n_prompt"`
	NGen     int           `json:"n_gen"`
	AvgTS    float64       `json:"avg_ts"` // generated tokens per second, prompt excluded
	TTFT     float64       `json:"ttft_ms"`
	Bytes    units.Bytes   `json:"flash_bytes_read"`
	HitRatio float64       `json:"hit_ratio"`
	Sampling string        `json:"sampling"`
	Resident bool          `json:"resident"` // all rows in memory
	Mode     *flashio.Mode `json:"io_mode,omitempty"`
	Draft    *Drafted      `json:"draft,omitempty"`
	// Of a predictor: its kind, the rows that there was no room for, and with CountMissed the
	// share of the active neurons that were not computed.
	Predictor string   `json:"predictor,omitempty"`
	Dropped   int      `json:"dropped_rows,omitempty"`
	Missed    *float64 `json:"missed_share,omitempty"`
}

// Drafted says what speculative decoding did.
type Drafted struct {
	Model      string  `json:"model"`
	Lambda     int     `json:"lambda"`
	Verified   int     `json:"verifications"`
	Proposed   int     `json:"drafted"`
	Accepted   int     `json:"accepted"`
	Acceptance float64 `json:"acceptance_ratio"`
}

// CheckSampling refuses sampling options out of range.
func CheckSampling(s engine.Sampling) error {
	if _, err := engine.NewSampler(s, 0); err != nil {
		return refusal.Config("%v", err)
	}
	return nil
}

// CheckChunk refuses a number of prompt tokens that no step takes.
func CheckChunk(n int) error {
	if n < 1 || n > engine.MaxStep {
		return refusal.Config("{PrefillChunk} %d: 1 to %d tokens are possible", n, engine.MaxStep)
	}
	return nil
}

// Check refuses values out of range, and parts that do not go together.
func (c *GenerateConfig) Check() error {
	switch {
	case slices.Contains(c.Stop, ""):
		return refusal.Config("{Stop} \"\": every text holds the empty one; name a text to end " +
			"before")
	case c.Draft != "" && (c.Lambda < 1 || c.Lambda >= engine.MaxStep):
		return refusal.Config("{Lambda} %d: 1 to %d drafted tokens are possible", c.Lambda,
			engine.MaxStep-1)
	case c.Predictor == "" && c.KMax != 0:
		return refusal.Config("{KMax} is of a centroid predictor; name one with {Predictor}")
	case c.Predictor != "" && (c.Recorded != nil || c.Draft != ""):
		return c.oneText()
	case c.Draft != "" && c.Recorded != nil:
		return refusal.Config("{Draft} and {Oracle}: a trace holds no masks of drafted tokens; " +
			"give one of them")
	}
	if err := CheckChunk(c.PrefillChunk); err != nil {
		return err
	}
	return CheckSampling(c.Sampling)
}

// oneText refuses what cannot run with a predictor.
func (c *GenerateConfig) oneText() error {
	return refusal.Config("{Predictor} runs one text from flash; leave out {Oracle}, {Draft} and " +
		"{Prompts}")
}

// Options are an engine's to generate n tokens after each prompt, up to the end of the text.
func (s *Session) Options(n int, sampling engine.Sampling, chunk int) engine.GenerateOptions {
	opt := engine.GenerateOptions{MaxTokens: n, Sampling: sampling, Stop: map[uint32]bool{},
		Vocab: s.Tokenizer.VocabSize(), Chunk: chunk}
	if id, ok := s.Tokenizer.EOS(); ok {
		opt.Stop[id] = true
	}
	for _, id := range s.Image.Ends {
		opt.Stop[id] = true
	}
	return opt
}

// Generate writes one text. The prompt of a recorded run is the recording's own.
func (s *Session) Generate(ctx context.Context, prompt string, cfg GenerateConfig) (*Generated,
	error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if _, err := s.Text(); err != nil {
		return nil, err
	}
	g := &generation{Session: s, cfg: &cfg, opt: s.Options(cfg.N, cfg.Sampling, cfg.PrefillChunk),
		result: &Generated{Model: s.Image.Name, Sampling: cfg.Sampling.String(),
			Resident: cfg.Recorded == nil && cfg.Predictor == ""}}
	g.opt.Seq = cfg.Sequence
	if err := g.open(ctx, prompt); err != nil {
		return nil, err
	}
	defer g.rows.Close()
	if err := s.RoomFor(len(g.prompt), g.opt.MaxTokens); err != nil {
		return nil, err
	}
	return g.result, g.run(ctx)
}

// generation is one text in the making.
type generation struct {
	*Session
	cfg       *GenerateConfig
	opt       engine.GenerateOptions
	prompt    []uint32
	rows      engine.Rows
	predictor *Predictor // nil = none
	result    *Generated
}

// open readies the prompt and the rows.
func (g *generation) open(ctx context.Context, prompt string) (err error) {
	if r := g.cfg.Recorded; r != nil {
		g.rows, g.prompt, g.opt.Masks = r.Rows, r.Prompt, r.Masks
		g.opt.MaxTokens = min(g.opt.MaxTokens, r.Most)
		mode := r.Rows.Mode()
		g.result.Mode = &mode
		g.Note("%s: %v", g.Image.Name, mode)
		return nil
	}
	if path := g.cfg.Predictor; path != "" {
		if g.predictor, err = g.Predictor(ctx, path, g.cfg.KMax); err != nil {
			return err
		}
	}
	if g.prompt, err = g.Encode(prompt, g.cfg.NoBOS); err != nil {
		return err
	}
	if err := g.RoomFor(len(g.prompt), g.opt.MaxTokens); err != nil {
		return err
	}
	if g.predictor == nil {
		g.rows, err = g.Resident()
		return err
	}
	on := g.cfg.Flash
	on.Positions, on.Batch = g.positions(), g.opt.Chunk
	flash, err := g.FlashRows(g.predictor, on)
	if err != nil {
		return err
	}
	mode := flash.Mode()
	g.rows, g.result.Mode, g.result.Predictor = flash, &mode, g.predictor.Kind
	g.Note("%s: %v; %v", g.Image.Name, mode, g.predictor)
	return nil
}

// positions that the text has at most.
func (g *generation) positions() int {
	return min(len(g.prompt)+g.opt.MaxTokens, g.Weights.Shape.MaxPos)
}

// engine makes the engine, with an observer.
func (g *generation) engine(count *counter) (*engine.Engine, error) {
	lambda := 0
	if g.cfg.Draft != "" {
		lambda = g.cfg.Lambda
	}
	cfg := engine.Config{Threads: g.cfg.Threads, Context: g.positions(),
		Batch: max(g.opt.Chunk, lambda+1), Observer: count, Backend: g.Backend()}
	if g.predictor != nil {
		cfg.Predictors, cfg.Schedule = g.predictor.Make, g.predictor.Schedule
		if g.cfg.CountMissed {
			check, err := g.Resident()
			if err != nil {
				return nil, err
			}
			cfg.Check = check
		}
	}
	return engine.New(g.Weights, g.rows, cfg)
}

// errStopped ends a generation at a stop text.
var errStopped = errors.New("stop text")

// run writes the text and fills the result.
func (g *generation) run(ctx context.Context) error {
	count := &counter{}
	eng, err := g.engine(count)
	if err != nil {
		return err
	}
	defer eng.Close()
	r, w := g.result, newWriter(g.Tokenizer, g.cfg)
	for _, id := range g.prompt {
		w.show(w.stream.Next(id))
	}
	w.begun = time.Now()
	emit := func(id uint32) error {
		r.NGen++
		w.write(id)
		if err := g.expect(r.NGen-1, id); err != nil {
			return err
		}
		if w.stop.over {
			return errStopped
		}
		return nil
	}
	if g.cfg.Draft != "" {
		r.Tokens, err = g.drafting(ctx, eng, emit)
	} else {
		r.Tokens, err = eng.Generate(ctx, g.prompt, g.opt, emit)
	}
	w.end()
	if errors.Is(err, errStopped) {
		err = nil
	} else if err == nil && r.NGen < g.opt.MaxTokens {
		err = g.expect(r.NGen, EndOfText)
	}
	if err != nil {
		return err
	}
	w.fill(r)
	r.NPrompt = len(g.prompt)
	count.fill(r, g.predictor != nil, g.cfg.CountMissed)
	return nil
}

// writer makes a text of tokens, shows it, and notes when they came.
type writer struct {
	stream             *tokenizer.Stream
	stop               *stopper
	text               strings.Builder
	shown              func(text string) // may be nil
	begun, first, last time.Time
}

func newWriter(tok *tokenizer.Tokenizer, cfg *GenerateConfig) *writer {
	w := &writer{stream: tok.NewStream(), stop: newStopper(cfg.Stop), shown: cfg.Show}
	w.stream.SkipControl = true
	return w
}

// show passes a piece of the text on.
func (w *writer) show(piece string) {
	w.text.WriteString(piece)
	if w.shown != nil {
		w.shown(piece)
	}
}

// write adds a generated token, up to a stop text.
func (w *writer) write(id uint32) {
	w.last = time.Now()
	if w.first.IsZero() {
		w.first = w.last
	}
	w.show(w.stop.next(w.stream.Next(id)))
}

// end shows what was held back.
func (w *writer) end() {
	w.show(w.stop.next(w.stream.Flush()))
	w.show(w.stop.flush())
}

// fill puts the text and its times into a result.
func (w *writer) fill(r *Generated) {
	r.Text = w.text.String()
	if r.NGen > 0 {
		r.TTFT = w.first.Sub(w.begun).Seconds() * 1e3
	}
	if r.NGen > 1 {
		r.AvgTS = float64(r.NGen-1) / w.last.Sub(w.first).Seconds()
	}
}

// expect compares a chosen token with the recording, if there is one.
func (g *generation) expect(i int, id uint32) error {
	if g.cfg.Recorded == nil {
		return nil
	}
	return g.cfg.Recorded.Expect(i, id)
}

// drafting generates with the draft model.
func (g *generation) drafting(ctx context.Context, eng *engine.Engine,
	emit func(uint32) error) ([]uint32, error) {
	own := g.Session.cfg
	own.Model = g.cfg.Draft
	d, err := Open(ctx, own)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if d.Image.TokenizerHash != g.Image.TokenizerHash {
		return nil, refusal.Config("{Draft}: %s and %s have different tokenizers: a draft must "+
			"speak in the same tokens", d.Image.Name, g.Image.Name)
	}
	rows, err := d.Resident()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	small, err := engine.New(d.Weights, rows, engine.Config{Threads: g.cfg.Threads,
		Context: min(len(g.prompt)+g.opt.MaxTokens, d.Weights.Shape.MaxPos), Backend: d.Backend()})
	if err != nil {
		return nil, err
	}
	defer small.Close()
	ids, count, err := engine.Speculate(ctx, eng, small, g.prompt, engine.SpeculateOptions{
		GenerateOptions: g.opt, Draft: g.cfg.Lambda}, emit)
	g.result.Draft = &Drafted{Model: d.Image.Name, Lambda: g.cfg.Lambda, Verified: count.Verified,
		Proposed: count.Drafted, Accepted: count.Accepted}
	if count.Drafted > 0 {
		g.result.Draft.Acceptance = float64(count.Accepted) / float64(count.Drafted)
	}
	return ids, err
}

// counter adds up what the layers did.
type counter struct {
	bytes        units.Bytes
	hits, misses int
	// rows without room; with Check, active units that were not asked for, and all of them
	dropped, missed, truly int
}

// Layer implements engine.Observer.
func (n *counter) Layer(ev *engine.LayerEvent) error {
	n.bytes += ev.Bytes
	n.hits += ev.Hits
	n.misses += ev.Misses
	n.dropped += ev.Dropped
	truth := mask.Mask(ev.True)
	n.truly += truth.Count()
	if ev.Need != nil {
		n.missed += truth.CountAndNot(ev.Need)
	}
	return nil
}

// Token implements engine.Observer.
func (n *counter) Token(*engine.TokenEvent) error { return nil }

// CountsOnly implements engine.Counting.
func (n *counter) CountsOnly() {}

// fill puts the sums into a result.
func (n *counter) fill(r *Generated, predicted, checked bool) {
	r.Bytes = n.bytes
	if n.hits+n.misses > 0 {
		r.HitRatio = float64(n.hits) / float64(n.hits+n.misses)
	}
	if !predicted {
		return
	}
	r.Dropped = n.dropped
	if checked && n.truly > 0 {
		share := float64(n.missed) / float64(n.truly)
		r.Missed = &share
	}
}
