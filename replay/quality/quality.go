package quality

import (
	"context"
	"slices"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/eval"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/traces"
)

// Config says which text to predict, and with how much of the model.
type Config struct {
	Text      string // to predict
	Source    string // name of the text, for the result
	NoBOS     bool   // the text alone, without the token that begins texts
	Begin     bool   // every window begins as texts begin, in place of its own first token
	MaxTokens int    // of the text; 0 = all

	Context      int // tokens of a window of the text; 0 = DefaultContext, or the model's fewer
	Stride       int // tokens from one window of the text to the next; 0 = Context
	PrefillChunk int // tokens that go through the model together; speed alone depends on it
	Threads      int // 0 = all cores

	Shares    []float64          // also with the largest neurons, of 0 to 1
	Predictor *session.Predictor // also with what it names; nil = none
	Window    int                // tokens whose rows stay in memory, to count reads

	// Time simulates the time per token of masks with the rows of a window in memory, and gives it
	// also as an estimate in milliseconds; nil = not asked. Device names its device, for the
	// result.
	Time   func(src traces.Source, window int) (units.Nanos, document.Estimate, error)
	Device string
	Tool   string // program and version, for the result
	// Progress gets a stage of the work, with what is done of it and all. A stage begins with 0
	// done. May be nil.
	Progress func(stage string, done, total int)
}

// DefaultContext is what perplexities are compared at.
const DefaultContext = 512

// DefaultChunk is where larger steps gain little speed.
const DefaultChunk = 32

// Check refuses values out of range. Windows of the text are checked by package eval.
func (c *Config) Check() error {
	if c.Window < 0 {
		return refusal.Config("{Window} %d: 0 or more is wanted", c.Window)
	}
	if err := session.CheckChunk(c.PrefillChunk); err != nil {
		return err
	}
	for _, s := range c.Shares {
		if !(s > 0 && s < 1) {
			return refusal.Config("{Shares} %g: shares between 0 and 1 are wanted", s)
		}
	}
	return nil
}

// Result is one model on one text: dense, with a predictor, with each share.
type Result struct {
	Tool      string `json:"tool"`
	Model     string `json:"model"`
	Text      string `json:"text"`
	Context   int    `json:"context_tokens"`
	Stride    int    `json:"stride_tokens"`
	Predicted int    `json:"predicted_tokens"`
	Window    int    `json:"window_tokens"`
	Device    string `json:"device,omitempty"`
	Rows      []Row  `json:"rows"`
}

// Row is one share of the neurons.
type Row struct {
	Share      float64      `json:"target_share,omitempty"` // 0 = dense
	Active     float64      `json:"active_share"`           // that was reached
	Perplexity float64      `json:"perplexity"`
	NLL        float64      `json:"nll_per_token"`
	Agreement  float64      `json:"argmax_agreement"` // with the dense model
	Bytes      float64      `json:"flash_bytes_per_token"`
	PerToken   *units.Nanos `json:"simulated_ns_per_token,omitempty"`
	// Estimate is PerToken with its interval.
	Estimate   *document.Estimate `json:"simulated_ms_per_token_estimate,omitempty"`
	Thresholds []float32          `json:"thresholds,omitempty"` // by layer
	Lossy      bool               `json:"lossy"`
	// Of a predictor: its kind, the active units that it did not name, the others that it did, and
	// named over active.
	Predictor      string      `json:"predictor,omitempty"`
	PredictorBytes units.Bytes `json:"predictor_bytes,omitempty"`
	FalseNegatives *float64    `json:"false_negatives,omitempty"`
	FalsePositives *float64    `json:"false_positives,omitempty"`
	Ratio          *float64    `json:"named_over_active,omitempty"`
}

// Run measures the model of a session on a text.
func Run(ctx context.Context, s *session.Session, cfg Config) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	tok, err := s.Text()
	if err != nil {
		return nil, err
	}
	st := &study{Config: &cfg, s: s}
	if st.ids, err = s.Encode(cfg.Text, cfg.NoBOS); err != nil {
		return nil, err
	}
	if cfg.MaxTokens > 0 {
		st.ids = st.ids[:min(cfg.MaxTokens, len(st.ids))]
	}
	if st.rows, err = s.Resident(); err != nil {
		return nil, err
	}
	defer st.rows.Close()
	st.opt = eval.Options{Context: cfg.Context, Stride: cfg.Stride, Chunk: cfg.PrefillChunk}
	if cfg.Begin {
		st.opt.Begin = tok.Encode("")
	}
	if st.opt.Context == 0 {
		st.opt.Context = min(DefaultContext, s.Weights.Shape.MaxPos)
	}
	if st.opt.Stride == 0 {
		st.opt.Stride = st.opt.Context
	}
	r := &Result{Tool: cfg.Tool, Model: s.Image.Name, Text: cfg.Source, Context: st.opt.Context,
		Stride: st.opt.Stride, Window: cfg.Window, Device: cfg.Device}
	return r, st.all(ctx, r)
}

// study runs one model on one text.
type study struct {
	*Config
	s    *session.Session
	rows *engine.Resident
	ids  []uint32
	opt  eval.Options
}

// all fills the rows: the dense one, the predictor's, then the shares from the largest on.
func (st *study) all(ctx context.Context, r *Result) error {
	dense := newCounts(st.s)
	row, result, err := st.run(ctx, "eval (dense)", dense, engine.Config{})
	if err != nil {
		return err
	}
	row.Agreement = 1
	r.Predicted, r.Rows = result.Predicted, append(r.Rows, row)
	st.opt.Against = result.Argmax
	if st.Predictor != nil {
		if row, err = st.predicted(ctx); err != nil {
			return err
		}
		r.Rows = append(r.Rows, row)
	}
	shares := slices.Sorted(slices.Values(st.Shares))
	slices.Reverse(shares)
	for _, share := range slices.Compact(shares) {
		thresholds := dense.thresholds(share)
		row, result, err := st.run(ctx, "eval ("+document.Sig3(100*share)+" %)", newCounts(st.s),
			engine.Config{Thresholds: thresholds})
		if err != nil {
			return err
		}
		row.Share, row.Thresholds, row.Lossy = share, thresholds, true
		row.Agreement = float64(result.Agreed) / float64(result.Predicted)
		r.Rows = append(r.Rows, row)
	}
	return nil
}

// predicted is the row of a predictor: only what it names is computed, and what it should have
// named is counted beside.
func (st *study) predicted(ctx context.Context) (Row, error) {
	p, counts := st.Predictor, newCounts(st.s)
	row, result, err := st.run(ctx, "eval (predictor)", counts, engine.Config{Predictors: p.Make,
		Schedule: p.Schedule, Check: st.rows})
	if err != nil {
		return row, err
	}
	row.Lossy, row.Predictor, row.PredictorBytes = true, p.Kind, p.Bytes
	row.Agreement = float64(result.Agreed) / float64(result.Predicted)
	ratio := func(a, b int64) *float64 {
		v := 0.0
		if b > 0 {
			v = float64(a) / float64(b)
		}
		return &v
	}
	row.FalseNegatives, row.FalsePositives = ratio(counts.missed, counts.truly),
		ratio(counts.spurious, counts.asked-counts.truly)
	row.Ratio = ratio(counts.truly-counts.missed+counts.spurious, counts.truly)
	return row, nil
}

// run measures one setting; counts sees what the engine does.
func (st *study) run(ctx context.Context, stage string, counts *counts, cfg engine.Config) (Row,
	*eval.Result, error) {
	cfg.Threads, cfg.Context, cfg.Batch, cfg.Observer, cfg.Backend = st.Threads, st.opt.Context,
		st.opt.Chunk, counts, st.s.Backend()
	eng, err := engine.New(st.s.Weights, st.rows, cfg)
	if err != nil {
		return Row{}, nil, st.s.Refused(err)
	}
	defer eng.Close()
	opt := st.opt
	if st.Progress != nil {
		st.Progress(stage, 0, len(st.ids))
		opt.Progress = func(done, total int) { st.Progress(stage, done, total) }
	}
	result, err := eval.Run(ctx, eng, st.ids, opt)
	if err != nil {
		return Row{}, nil, err
	}
	row := Row{Perplexity: result.Perplexity, NLL: result.NLL / float64(result.Predicted),
		Active: counts.share()}
	return row, result, st.cost(&row, counts)
}

// cost adds what the window reads, and the simulated time.
func (st *study) cost(row *Row, counts *counts) error {
	src := &traces.Memory{Head: record.HeaderOf(st.s.Image, engine.Sampling{}, st.Tool),
		List: counts.tokens}
	loads := 0
	layers := make([]policy.Policy, src.Head.Layers)
	for l := range layers {
		layers[l] = policy.NewWindow(src.Head.Units, st.Window)
	}
	var d policy.Decision
	for i := range counts.tokens {
		for l, active := range counts.tokens[i].Active {
			if counts.tokens[i].Pos == 0 {
				layers[l].Reset()
			}
			layers[l].Step(active, &d)
			loads += len(d.Load)
		}
	}
	row.Bytes = float64(loads) * float64(src.Head.UnitBytes) / float64(len(counts.tokens))
	if st.Time == nil {
		return nil
	}
	t, estimate, err := st.Time(src, st.Window)
	row.PerToken, row.Estimate = &t, &estimate
	return err
}
