package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// ErrConfig marks a configuration that cannot be simulated.
var ErrConfig = refusal.Kind(refusal.ErrConfig, "sim: the configuration cannot be simulated")

// configError is an error of kind ErrConfig that reads as the error it wraps.
type configError struct{ error }

func (configError) Is(target error) bool { return errors.Is(ErrConfig, target) }
func (e configError) Unwrap() error      { return e.error }

// Config is one configuration to simulate. It is written whole into the Run.
type Config struct {
	// Policy decides which rows stay in memory from one token to the next.
	Policy policy.Spec `json:"policy"`
	// I/O engine, a key of the device's flash.engines
	Engine   string `json:"engine"`
	Parallel int    `json:"parallel"` // threads or queue depth
	// use the predicted masks instead of the true ones
	Predicted bool `json:"predicted"`
	MaxTokens int  `json:"max_tokens,omitempty"` // 0 = all
	// PredictorRank is the inner dimension of a low-rank predictor that computes the predicted
	// masks; 0 = they cost nothing.
	PredictorRank int `json:"predictor_rank,omitempty"`
	// Backend says what computes; OnCUDA is the device model's GPU.
	Backend Backend `json:"backend,omitempty"`
	// Observed makes the host wait for the GPU after every part, as a replay does to time the
	// parts. Without it the host waits for the logits alone, as generate does, and for the input of
	// a predictor if there is one.
	Observed bool `json:"observed,omitempty"`
	// Schedule says when reads are submitted; the zero value is on demand.
	Schedule Schedule             `json:"schedule,omitzero"`
	Layout   layout.Options       `json:"layout"`
	Device   *devicemodels.Device `json:"device"`
	// Geometry of the flash image; the zero value places the trace's units without gaps.
	Geometry layout.Geometry `json:"geometry"`
}

// runner is the state of one simulation.
type runner struct {
	*Machine
	prefetches *prefetching // nil on demand
	run        *traces.Run
	token      tokenSum
	summary    Summary
}

// tokenSum adds up one token, for the bound on what prefetching can gain.
type tokenSum struct {
	start   units.Nanos
	io      units.Nanos
	moved   units.Bytes // by I/O
	traffic units.Bytes // of memory, by compute
}

// Run simulates src under cfg. It is deterministic and streams the trace. Errors are of kind
// ErrConfig, or those of the trace or the context.
func Run(ctx context.Context, src traces.Source, cfg Config) (*traces.Run, error) {
	r, err := newRunner(src, cfg)
	if err != nil {
		return nil, err
	}
	tokens := r.cfg.tokens(src)
	if r.run.Rows, err = traces.NewRows(tokens, r.head.Layers); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	var t traces.Token
	var sequences traces.Sequences
	for i := range tokens {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := src.Token(i, &t); err != nil {
			return nil, err
		}
		if sequences.Changes(t.Seq) {
			r.reset()
		}
		step := r.step
		if r.prefetches != nil {
			step = r.prefetches.token
		}
		if err := step(uint32(i), &t); err != nil {
			return nil, err
		}
	}
	if r.prefetches != nil {
		if err := r.prefetches.finish(); err != nil {
			return nil, err
		}
	}
	r.summary.Totals = traces.ComputeTotals(r.run.Rows)
	r.run.Meta.Totals = r.summary.Totals
	if r.streams != nil && r.prefetches == nil { // a schedule does not follow the streams
		r.run.Meta.Phases = traces.ComputePhases(r.run.Rows, traces.ClockModel)
	}
	r.run.Meta.Prediction, r.run.Meta.Warnings = r.cfg.Predict(r.host, &r.summary)
	return r.run, nil
}

// Check refuses configurations that do not fit a trace with this header or the device model, with
// errors of kind ErrConfig. It fills in the geometry and the alignment where they are zero.
func (cfg *Config) Check(head *traces.Header) error {
	if cfg.Geometry.Units == 0 {
		cfg.Geometry = layout.Uniform(head.Layers, head.Units, head.UnitBytes)
	}
	if err := cfg.check(head); err != nil {
		return configError{err}
	}
	if cfg.Layout.Align == 0 {
		cfg.Layout.Align = max(cfg.Device.Flash.Align, 1)
		if cfg.Device.Flash.Engines[cfg.Engine].Cached {
			cfg.Layout.Align = 1 // reads through the page cache need no alignment
		}
	}
	return nil
}

func (cfg *Config) check(head *traces.Header) error {
	if cfg.Device == nil {
		return fmt.Errorf("sim: no device model given")
	}
	if err := cfg.checkBackend(); err != nil {
		return err
	}
	if err := cfg.Policy.Check(); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	if cfg.PredictorRank > 0 && !cfg.Predicted {
		return fmt.Errorf("sim: a predictor of rank %d, but the true masks are used; use the "+
			"predicted ones", cfg.PredictorRank)
	}
	if cfg.Predicted && !head.HasPredicted {
		return fmt.Errorf("sim: the trace of %s holds no predicted masks; simulate the true ones",
			head.Model)
	}
	if err := cfg.Schedule.check(head, cfg.Predicted); err != nil {
		return err
	}
	if cfg.Geometry.Units != head.Units || len(cfg.Geometry.Base) != head.Layers ||
		cfg.Geometry.Record != head.UnitBytes {
		return fmt.Errorf("sim: the trace has %d layers of %d units of %v, the image %d of %d "+
			"of %v; they are not of one model",
			head.Layers, head.Units, head.UnitBytes, len(cfg.Geometry.Base), cfg.Geometry.Units,
			cfg.Geometry.Record)
	}
	return nil
}

func (cfg *Config) checkBackend() error {
	switch cfg.Backend {
	case OnHost:
		if cfg.Observed {
			return fmt.Errorf("sim: observed, but the host computes: it has nothing to wait "+
				"for; choose the backend %s, or leave it out", OnCUDA)
		}
		return nil
	case OnCUDA:
	default:
		return fmt.Errorf("sim: backend %q; known are %s and the empty one, the host", cfg.Backend,
			OnCUDA)
	}
	if cfg.Device.GPU == nil {
		return fmt.Errorf("sim: the device model %s has no GPU; run \"windrow probe --backend "+
			"cuda -o DEVICE\" on that machine", cfg.Device.Name)
	}
	return nil
}

func newRunner(src traces.Source, cfg Config) (*runner, error) {
	head := src.Header()
	if err := cfg.Check(head); err != nil {
		return nil, err
	}
	machine, err := NewMachine(&cfg, head, MachineOptions{Policies: src, Seed: head.Seed})
	if err != nil {
		return nil, err
	}
	r := &runner{Machine: machine}
	resolved, err := json.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("sim: configuration: %w", err)
	}
	r.run = &traces.Run{Meta: traces.RunMeta{
		SchemaVersion: traces.SchemaVersion, Simulated: true, Model: head.Model,
		Device: cfg.Device.Name, Seed: head.Seed, Config: resolved,
	}}
	if cfg.Schedule.Kind != schedule.Demand {
		if r.prefetches, err = newPrefetching(r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// NewStation returns the flash of a checked configuration, idle.
func (cfg *Config) NewStation(seed uint64) (*flash.Station, error) {
	station, err := flash.NewStation(cfg.Device.Flash, flash.Config{
		Engine: cfg.Engine, Parallel: cfg.Parallel, Cores: cfg.Device.Host.Cores, Span: cfg.span(),
		Seed: seed,
	})
	if err != nil {
		return nil, configError{err}
	}
	return station, nil
}

func (r *runner) reset() {
	r.Reset()
	if r.prefetches != nil {
		r.prefetches.reset()
	}
}

// step simulates one token on demand, top to bottom.
func (r *runner) step(index uint32, t *traces.Token) error {
	masks := r.cfg.needed(t)
	row := traces.RunRow{Token: index, Seq: t.Seq, Pos: t.Pos, Phase: t.Phase}
	r.token = tokenSum{start: r.now}
	for l := range r.layers {
		row.Layer = uint16(l)
		if err := r.layer(row, masks[l]); err != nil {
			return err
		}
	}
	row.Layer, row.Part, row.Start = traces.NoLayer, traces.PartOther, r.now
	last := r.ChargeToken()
	r.note(row, r.EndToken(&last))
	r.summary.Bounded += last.Bounded
	if r.streams != nil { // a GPU computes beside reads without a schedule
		return nil
	}
	r.summary.Prefetched += r.host.Overlap(r.token.io, r.token.moved,
		r.now-r.token.start-r.token.io, r.token.traffic+last.Traffic)
	return nil
}

// layer simulates one layer of one token. row holds the token's sequence, position and layer.
func (r *runner) layer(row traces.RunRow, need mask.Mask) error {
	row.Start = r.now
	s, err := r.Layer(int(row.Layer), int(row.Pos), need)
	if err != nil {
		return err
	}
	for part := traces.PartAttention; part <= traces.PartFFN; part++ {
		one, spent := row, s.Parts[part]
		one.Part = part
		switch part {
		case traces.PartIO:
			one.Bytes, one.Requests = s.Bytes, uint32(s.Requests)
			one.Hits, one.Misses = uint32(s.Work.Hits), uint32(s.Work.Loads)
			if spent.Took > 0 {
				one.Depth = float32(float64(s.InFlight) / float64(spent.Took))
			}
		case traces.PartMemory:
			one.Bytes = units.Bytes(s.Work.Copies) * r.head.UnitBytes
			one.Evictions = uint32(s.Work.Evictions)
		}
		r.note(one, spent)
		row.Start += spent.Took
	}
	r.token.io, r.token.moved, r.token.traffic = r.token.io+s.Parts[traces.PartIO].Took,
		r.token.moved+s.Moved, r.token.traffic+s.Traffic
	r.summary.Bounded += s.Bounded
	return nil
}

// note appends a row with the time of its part.
func (r *runner) note(row traces.RunRow, spent Spent) {
	row.Dur, row.Device, row.Wait = spent.Took, spent.Device, spent.Wait
	r.run.Rows = append(r.run.Rows, row)
}

// spend appends the row of a part that starts now, and advances the clock by its time.
func (r *runner) spend(row traces.RunRow, part traces.Part, took units.Nanos) {
	row.Part, row.Start = part, r.now
	r.now += took
	r.note(row, Spent{Took: took})
}

// span is the extent of the image from the first unit to the last. The mapping table of a drive
// must cover it.
func (cfg *Config) span() units.Bytes {
	low, high := cfg.Geometry.Base[0], cfg.Geometry.Base[0]
	for _, base := range cfg.Geometry.Base {
		low, high = min(low, base), max(high, base)
	}
	return units.Bytes(high-low) + units.Bytes(cfg.Geometry.Units)*units.Bytes(cfg.Geometry.Stride)
}
