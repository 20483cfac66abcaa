package speculative

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// ErrConfig marks a configuration that cannot be simulated.
var ErrConfig = refusal.Kind(refusal.ErrConfig, "speculative: the speculation cannot be simulated")

// MaxDraft is the largest λ that is simulated.
const MaxDraft = 64

// Config describes the simulation.
type Config struct {
	Sim        sim.Config // its Policy is a window of k tokens
	Draft      int        // λ of the answer, 0 … MaxDraft
	Most       int        // largest λ of the table, which starts at 1; 0 = Draft alone, no table
	Acceptance float64    // α, in [0, 1]
	Drawn      bool       // accept each drafted token by a random draw, instead of the mean
	Seed       uint64     // of the draws
	// verifications that begin within the first Skip tokens of a sequence do not count: they fill
	// the window
	Skip      int
	DraftTime units.Nanos
	// DraftRatio, if not 0, replaces DraftTime: it is the time of a drafted token as a share of the
	// large model's compute per token.
	DraftRatio float64
	// Progress, if not nil, is called with the number of λ done and the number of all λ.
	Progress func(done, total int)
}

// Row is the result for one λ. Times, bytes and loads are per accepted token.
type Row struct {
	Draft         int         `json:"draft_count"`
	Last          int         `json:"window_ends_at"` // token of the batch, from 1
	Verifications int         `json:"verifications_count"`
	Tokens        float64     `json:"tokens_per_verification"`
	Union         float64     `json:"union_share"` // of all units, by a verification
	Loads         float64     `json:"loads_per_token"`
	Bytes         float64     `json:"bytes_per_token"`
	IO            units.Nanos `json:"io_ns"`
	Memory        units.Nanos `json:"memory_ns"`
	Compute       units.Nanos `json:"compute_ns"` // decisions included
	Drafting      units.Nanos `json:"drafting_ns"`
	Total         units.Nanos `json:"token_ns"` // sum of the four
	Speedup       float64     `json:"speedup"`  // over λ = 0
	// BreakEven is the mean α at which speculation takes as long as plain decoding; nil if it is
	// slower for every α, 0 if it is faster for every α.
	BreakEven *float64     `json:"break_even_acceptance"`
	Basis     traces.Basis `json:"basis"`
	// Estimate is Total with its interval, and TokensPerS its rate. A DraftTime is exact.
	Estimate   document.Estimate  `json:"token_estimate_ms"`
	TokensPerS document.Estimate  `json:"tokens_per_s_estimate"`
	Prediction *traces.Prediction `json:"prediction"` // of the verifications
}

// Result is the answer for one α.
type Result struct {
	Model      string      `json:"model"`
	Device     string      `json:"device"`
	Acceptance float64     `json:"acceptance"`
	Drawn      bool        `json:"drawn"`
	Seed       uint64      `json:"seed"`
	Window     int         `json:"window_tokens"`
	Skip       int         `json:"skip_tokens"`
	DraftTime  units.Nanos `json:"draft_ns"` // of a drafted token
	Plain      Row         `json:"plain"`    // λ = 0
	Asked      Row         `json:"asked"`
	Rows       []Row       `json:"table"`
	// the fastest λ of those simulated; 0 = plain decoding
	Best     int      `json:"best_draft_count"`
	Warnings []string `json:"warnings"`
}

// Run simulates every λ of a table on a trace. It is deterministic. Errors about cfg are of kind
// ErrConfig or sim.ErrConfig.
func Run(ctx context.Context, src traces.Source, cfg Config) (*Result, error) {
	if err := cfg.check(src); err != nil {
		return nil, err
	}
	r := &Result{Model: src.Header().Model, Device: cfg.Sim.Device.Name, Rows: []Row{},
		Warnings: []string{}, Acceptance: cfg.Acceptance, Drawn: cfg.Drawn, Seed: cfg.Seed,
		Window: cfg.Sim.Policy.Window, Skip: cfg.Skip, DraftTime: cfg.DraftTime}
	plain, err := cfg.simulate(ctx, src, 0, 1, nil)
	if err != nil {
		return nil, err
	}
	if cfg.DraftRatio > 0 {
		r.DraftTime = units.Nanos(cfg.DraftRatio * float64(plain.compute()) /
			float64(plain.verifications))
	}
	r.Plain = cfg.row(r, src.Header(), 0, 1, plain)
	r.Plain.Speedup = 1
	drafts := cfg.drafts()
	for i, draft := range drafts {
		row, err := cfg.answer(ctx, src, r, draft)
		if err != nil {
			return nil, err
		}
		if draft == cfg.Draft {
			r.Asked = row
		}
		if draft > 0 && draft <= cfg.Most {
			r.Rows = append(r.Rows, row)
		}
		if cfg.Progress != nil {
			cfg.Progress(i+1, len(drafts))
		}
	}
	best := r.Plain.Total
	for _, row := range append(slices.Clone(r.Rows), r.Asked) {
		if row.Total < best {
			best, r.Best = row.Total, row.Draft
		}
	}
	return r, nil
}

// drafts are the λ to simulate.
func (cfg *Config) drafts() (list []int) {
	for d := range cfg.Most {
		list = append(list, d+1)
	}
	if cfg.Draft == 0 || cfg.Draft > cfg.Most {
		list = append(list, cfg.Draft)
	}
	return list
}

// limits are the settings of Config.Sim that are refused.
func limits() []sim.Limit {
	return []sim.Limit{
		{Setting: sim.SettingPolicy, Why: "the paper's rule is about windows; give a window"},
		{Setting: sim.SettingSchedule, Why: "prefetches for the tokens of a verification are " +
			"not modelled; read on demand"},
		{Setting: sim.SettingBackend, Why: "several tokens in a step are not modelled on a GPU; " +
			"compute on the host"},
	}
}

func (cfg *Config) check(src traces.Source) error {
	if err := cfg.Sim.Refuse("speculative", limits()...); err != nil {
		return err
	}
	if err := cfg.Sim.Check(src.Header()); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("speculative: "+format+": %w", append(args, ErrConfig)...)
	}
	switch {
	case cfg.Draft < 0 || cfg.Draft > MaxDraft || cfg.Most < 0 || cfg.Most > MaxDraft:
		return bad("%d drafted tokens, in a table up to %d: 0 to %d are possible", cfg.Draft,
			cfg.Most, MaxDraft)
	case !(cfg.Acceptance >= 0 && cfg.Acceptance <= 1):
		return bad("acceptance %g: it is a probability, from 0 to 1", cfg.Acceptance)
	case cfg.Skip < 0:
		return bad("%d tokens to leave out: 0 or more are possible", cfg.Skip)
	case cfg.DraftTime < 0 || !(cfg.DraftRatio >= 0 && cfg.DraftRatio < 1e6):
		return bad("a drafted token in %v or %g of the compute of one: 0 or more are possible",
			cfg.DraftTime, cfg.DraftRatio)
	case cfg.DraftTime > 0 && cfg.DraftRatio > 0:
		return bad("a drafted token in %v and in %g of the compute of one: give one of them",
			cfg.DraftTime, cfg.DraftRatio)
	}
	return nil
}

// answer makes the row of one λ, with its break-even acceptance.
func (cfg *Config) answer(ctx context.Context, src traces.Source, r *Result, draft int) (Row,
	error) {
	means := make(map[int]*sums) // by last
	var failed error
	mean := func(last int) *sums {
		if means[last] == nil && failed == nil {
			means[last], failed = cfg.simulate(ctx, src, draft, last, nil)
		}
		return means[last]
	}
	last := Speculation{Draft: draft, Acceptance: cfg.Acceptance}.Last()
	var s *sums
	if cfg.Drawn {
		s, failed = cfg.simulate(ctx, src, draft, last, rng.Stream(cfg.Seed,
			fmt.Sprintf("speculative/%d", draft)))
	} else {
		s = mean(last)
	}
	if failed != nil {
		return Row{}, failed
	}
	row := cfg.row(r, src.Header(), draft, last, s)
	row.Speedup = float64(r.Plain.Total) / float64(row.Total)
	cost := func(last int) float64 {
		s := mean(last)
		if failed != nil {
			return 0
		}
		return float64(s.Wall())/float64(s.verifications) + float64(draft)*float64(r.DraftTime)
	}
	plain := float64(r.Plain.Total)
	switch {
	case draft == 0:
	case cost(1) <= plain:
		row.BreakEven = new(float64)
	case cost(draft+1)/float64(draft+1) <= plain:
		alpha := AcceptanceFor(draft, plain, cost)
		row.BreakEven = &alpha
	}
	return row, failed
}

// row turns sums into means per token, and keeps the warnings of the simulator.
func (cfg *Config) row(r *Result, head *traces.Header, draft, last int, s *sums) Row {
	tokens := Speculation{Draft: draft, Acceptance: cfg.Acceptance}.Tokens()
	if s.tokens > 0 {
		tokens = float64(s.tokens) / float64(s.verifications)
	}
	n := tokens * float64(s.verifications)
	mean := func(sum units.Nanos) units.Nanos { return units.Nanos(float64(sum)/n + 0.5) }
	row := Row{
		Draft: draft, Last: last, Verifications: s.verifications, Tokens: tokens,
		Union: float64(s.needed()) / float64(s.verifications) / float64(head.Layers*head.Units),
		Loads: float64(s.Loads) / n, Bytes: float64(s.Bytes) / n,
		IO: mean(s.Parts[traces.PartIO]), Memory: mean(s.Parts[traces.PartMemory]),
		Compute:  mean(s.compute()),
		Drafting: units.Nanos(float64(draft)*float64(r.DraftTime)/tokens + 0.5),
	}
	row.Total = row.IO + row.Memory + row.Compute + row.Drafting
	prediction, warnings := cfg.Sim.Predict(cfg.Sim.NewHost(head), s.Summary(s.verifications))
	row.Basis, row.Prediction = prediction.Basis, prediction
	row.estimate(cfg.DraftRatio > 0)
	for _, w := range warnings {
		if w = fmt.Sprintf("%d drafted tokens: %s", draft, w); !slices.Contains(r.Warnings, w) {
			r.Warnings = append(r.Warnings, w)
		}
	}
	return row
}

// estimate sets the intervals. The time of drafting is as uncertain as that of the host where it is
// a share of the compute, else exact.
func (row *Row) estimate(share bool) {
	p, exact := row.Prediction, row.Drafting
	if share {
		exact = 0
	}
	row.Estimate = p.Time(row.Total-exact, row.IO)
	for _, v := range []*float64{&row.Estimate.Value, row.Estimate.Low, row.Estimate.High} {
		if v != nil {
			*v += exact.Millis()
		}
	}
	if row.Total > 0 {
		row.TokensPerS = row.Estimate.Inverse(1e3)
	}
}

// simulate runs a whole trace with one λ and one end of the window. With draws, the next
// verification begins after the last accepted token. Without (nil), it begins after the batch.
func (cfg *Config) simulate(ctx context.Context, src traces.Source, draft, last int,
	draws *rand.Rand) (*sums, error) {
	r, err := newRunner(src, &cfg.Sim, draft)
	if err != nil {
		return nil, err
	}
	total := src.Tokens()
	if cfg.Sim.MaxTokens > 0 {
		total = min(total, cfg.Sim.MaxTokens)
	}
	sum := &sums{}
	var sequences traces.Sequences
	start := 0
	for from := 0; from < total; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t, err := r.tokens.at(from)
		if err != nil {
			return nil, err
		}
		if sequences.Begins(t.Seq) {
			start = from
			r.reset()
		}
		prompt, size, step := t.Phase == traces.Prefill, draft+1, draft+1
		switch {
		case prompt:
			size, step = 1, 1
		case draws != nil:
			step = accepted(draws, draft, cfg.Acceptance) + 1
		}
		if left, err := r.left(from, size, total, t.Seq); err != nil {
			return nil, err
		} else if left < size { // the sequence is too short for the verification
			from += left
			continue
		}
		one, err := r.verify(start, from, size, min(last, size))
		if err != nil {
			return nil, err
		}
		if !prompt && from-start >= cfg.Skip {
			sum.verifications++
			sum.Add(&one)
			if draws != nil {
				sum.tokens += step
			}
		}
		from += step
	}
	if sum.verifications == 0 {
		return nil, fmt.Errorf("speculative: %d tokens: no sequence has %d generated tokens after "+
			"its first %d; record more, or leave out fewer: %w", total, draft+1, cfg.Skip,
			ErrConfig)
	}
	return sum, nil
}

// left counts the tokens of a sequence from one token on, up to size.
func (r *runner) left(from, size, total int, seq uint32) (int, error) {
	for n := range size {
		if from+n >= total {
			return n, nil
		}
		if t, err := r.tokens.at(from + n); err != nil || t.Seq != seq {
			return n, err
		}
	}
	return size, nil
}

// accepted draws the number of accepted tokens. It always takes λ draws. A larger α therefore
// accepts at least as many tokens in the same verification.
func accepted(draws *rand.Rand, draft int, alpha float64) int {
	n, open := 0, true
	for range draft {
		open = draws.Float64() < alpha && open
		if open {
			n++
		}
	}
	return n
}
