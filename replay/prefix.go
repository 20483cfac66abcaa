package replay

import (
	"context"

	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// PrefixConfig says how to search the dense prefix. The schedule is schedule.Token; MaxTokens of
// the Config are measured for every prefix.
type PrefixConfig struct {
	Config
	Reads session.Reads
	DRAM  string // tries only prefixes that fit, as Session.Budget reads it; "" = all
	Step  int    // tries every Step-th prefix
	Tool  string // program and version, for the result
	// Tried is called with the number of layers of each prefix tried and of the model; may be nil.
	Tried func(dense, layers int)
}

// DefaultPrefixTokens is the number of tokens that are measured for every prefix.
const DefaultPrefixTokens = 16

// stepRange is the range of PrefixConfig.Step.
var stepRange = bounds.Range[int]{Least: 1, Most: 1 << 16, Why: "no model has more layers"}

// Check refuses values out of range. A first token alone says nothing, since it loads everything.
func (c *PrefixConfig) Check() error {
	if c.MaxTokens < 2 || !stepRange.Has(c.Step) {
		return refusal.Config("{MeasureTokens} %d, {Step} %d: 2 tokens or more and a step from %v "+
			"are wanted", c.MaxTokens, c.Step, stepRange)
	}
	return c.Reads.Check()
}

// Prefixes are the dense prefixes that were tried.
type Prefixes struct {
	Tool   string      `json:"tool"`
	Model  string      `json:"model"`
	Trace  string      `json:"trace_sha256"`
	Device string      `json:"device"` // how the reads were done
	Budget units.Bytes `json:"budget_bytes,omitempty"`
	Best   int         `json:"best_dense_layers"`
	Rows   []Prefix    `json:"prefixes"`
}

// Prefix is one dense prefix. Times and bytes are per token.
type Prefix struct {
	Dense      int         `json:"dense_layers"`
	Memory     units.Bytes `json:"memory_bytes"`
	Fits       bool        `json:"fits"`
	TokensPerS float64     `json:"tokens_per_s,omitempty"`
	Waited     units.Nanos `json:"io_wait_ns_per_token,omitempty"`
	Hidden     units.Nanos `json:"hidden_io_ns_per_token,omitempty"`
	Compute    units.Nanos `json:"compute_ns_per_token,omitempty"`
	Bytes      units.Bytes `json:"flash_bytes_per_token,omitempty"`
	Regime     string      `json:"regime"` // "reads", "compute" or "memory"
}

// SearchPrefix replays the first tokens of a trace with every dense prefix that fits into memory,
// and names the fastest (d* of NeuroPrefetcher). A prefix is bound by reads while compute waits for
// them, by compute when it does not; the first that does not fit ends the search.
func SearchPrefix(ctx context.Context, s *session.Session, tr *traces.Reader,
	cfg PrefixConfig) (*Prefixes, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	r := &Prefixes{Tool: cfg.Tool, Model: s.Image.Name, Trace: tr.SHA256()}
	var err error
	if r.Budget, err = s.Budget(cfg.DRAM); err != nil {
		return nil, err
	}
	cfg.MaxTokens = min(cfg.MaxTokens, tr.Tokens())
	cfg.Bundles, cfg.Layout, cfg.Schedule.Kind = s.Bundles, cfg.Reads.Layout, schedule.Token
	fastest := 0.0
	for d := 1; d <= s.Weights.Shape.Layers; d += cfg.Step {
		row, err := r.try(ctx, s, tr, &cfg, d)
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, row)
		if row.TokensPerS > fastest {
			fastest, r.Best = row.TokensPerS, d
		}
		if cfg.Tried != nil {
			cfg.Tried(d, s.Weights.Shape.Layers)
		}
		if !row.Fits {
			break // nor does a larger one
		}
	}
	if r.Best == 0 {
		return nil, refusal.Config("{DRAM} %s: not even one dense layer fits: %v are needed",
			cfg.DRAM, r.Rows[0].Memory)
	}
	return r, nil
}

// try measures one prefix.
func (r *Prefixes) try(ctx context.Context, s *session.Session, tr *traces.Reader,
	cfg *PrefixConfig, dense int) (Prefix, error) {
	run := cfg.Config
	run.Schedule.Dense = dense
	reader, err := cfg.Reads.Open(s)
	if err != nil {
		return Prefix{}, err
	}
	run.Layout.Align = max(run.Layout.Align, reader.Mode().Align)
	r.Device = reader.Mode().String()
	need, err := MemoryOf(tr, run.MaxTokens, s.Weights, s.Image.Geometry(), run)
	row := Prefix{Dense: dense, Memory: need.Total, Fits: r.Budget == 0 || need.Total <= r.Budget,
		Regime: "memory"}
	if err != nil || !row.Fits {
		reader.Close()
		return row, err
	}
	result, err := Run(ctx, tr, s.Weights, s.Image.Geometry(), reader, run)
	if err != nil {
		return row, err
	}
	t, ahead := result.Run.Meta.Totals, result.Run.Meta.Prefetches
	n := units.Nanos(t.Tokens)
	row.TokensPerS, row.Waited, row.Hidden, row.Bytes = t.TokensPerS, t.PartNanos[traces.PartIO]/n,
		ahead.Hidden/n, t.Bytes/units.Bytes(t.Tokens)
	row.Compute = t.Wall/n - row.Waited
	// A twentieth of a token is the noise of waking up.
	if row.Regime = "reads"; row.Waited*20 < t.Wall/n {
		row.Regime = "compute"
	}
	return row, nil
}
