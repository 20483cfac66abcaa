package serving

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/tell"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/arrivals"
)

// The times of a Load.
const (
	TimesOfFile = "file"
	TimesRandom = "poisson"
	TimesAtOnce = "all at once"
)

// Load says which requests arrive, and when.
type Load struct {
	File     string          `json:"file,omitempty"`
	Format   arrivals.Format `json:"format,omitempty"`
	Times    string          `json:"times"`                    // TimesOfFile and so on
	Rate     float64         `json:"requests_per_s,omitempty"` // of a Poisson process
	Speedup  float64         `json:"speedup"`                  // of the file's times
	Requests int64           `json:"requests"`                 // 0 = all of the file
	Prompt   int             `json:"prompt_tokens,omitempty"`  // without a file
	Output   int             `json:"output_tokens,omitempty"`
	Spread   float64         `json:"length_spread,omitempty"`

	Path    string           `json:"-"` // of the file; empty = lengths are drawn
	Options arrivals.Options `json:"-"` // of the file
	Seed    uint64           `json:"-"` // of lengths and of the Poisson process

	file *arrivals.Reader // open, or nil
}

// prepare reads the file once: it notes the format and the number of requests, and refuses bad
// lines before the simulation begins.
func (l *Load) prepare(ctx context.Context) error {
	if l.Path == "" {
		return nil
	}
	l.File = filepath.Base(l.Path)
	r, err := arrivals.Open(ctx, l.Path, l.Options)
	if err != nil {
		return err
	}
	defer r.Close()
	l.Format = r.Stats().Format
	if l.Times == TimesOfFile && !l.Format.HasTimes() {
		return refusal.Config("serving: {Arrivals} %s: %s has no times; give {Rate} R", l.Path,
			l.Format)
	}
	if l.Requests > 0 {
		return nil
	}
	s, err := arrivals.Summarize(ctx, r)
	if err != nil {
		return err
	}
	if l.Requests = s.Requests; l.Requests == 0 {
		return refusal.Input("serving: %s holds no requests that ask for a token", l.Path)
	}
	return nil
}

// rate is that of the Poisson process; 0 for the times of the file.
func (l *Load) rate() float64 {
	if l.Times == TimesAtOnce {
		return math.Inf(1)
	}
	return l.Rate
}

// source opens the load at a rate, from its beginning. It closes the file that it opened before.
func (l *Load) source(ctx context.Context, rate float64) (Source, error) {
	shape := Shape{Requests: l.Requests, Speedup: l.Speedup, Rate: rate, Seed: l.Seed}
	if l.Path == "" {
		lengths, err := NewLengths(l.Prompt, l.Output, l.Spread, l.Seed)
		if err != nil {
			return nil, err
		}
		return NewShaped(lengths, shape)
	}
	if err := l.close(); err != nil {
		return nil, err
	}
	var err error
	if l.file, err = arrivals.Open(ctx, l.Path, l.Options); err != nil {
		return nil, err
	}
	return NewShaped(l.file, shape)
}

// close closes the file that source opened.
func (l *Load) close() error {
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	return file.Close()
}

// StudyConfig asks how a load is served, or which rate of it can be.
type StudyConfig struct {
	Config
	Load Load
	// FindRate searches the largest Poisson rate at which Share of the requests meet the
	// objectives.
	FindRate bool
	Share    float64
	// Tell hears the number of requests that are finished or refused, and of all.
	Tell tell.Tell
}

// Setting says how requests are served.
type Setting struct {
	Mask     string      `json:"mask"`
	Policy   string      `json:"policy"`
	Engine   string      `json:"engine"`
	Parallel int         `json:"parallel"`
	MaxBatch int         `json:"max_batch"`
	Chunk    int         `json:"prefill_chunk_tokens"`
	KV       units.Bytes `json:"kv_memory_bytes"` // 0 = no limit
	TTFT     units.Nanos `json:"slo_ttft_ns"`     // 0 = none
	TPOT     units.Nanos `json:"slo_tpot_ns"`     // 0 = none
	Deadline units.Nanos `json:"deadline_ns"`     // 0 = none
	Seed     uint64      `json:"seed"`
}

// Study is the answer. It has a Result, or a Rate.
type Study struct {
	Model  string  `json:"model"`
	Device string  `json:"device"`
	Server Setting `json:"server"`
	Load   Load    `json:"load"`
	Result *Result `json:"result,omitempty"`
	Rate   *Rate   `json:"rate,omitempty"`
}

// Serve answers a StudyConfig. When the context ends, the study holds what there was by then and is
// returned with the error. Errors about the configuration are of kind ErrConfig, sim.ErrConfig or
// refusal.ErrConfig; those about the file of requests are those of package arrivals.
func Serve(ctx context.Context, src traces.Source, cfg StudyConfig) (*Study, error) {
	load := &cfg.Load
	if err := load.prepare(ctx); err != nil {
		return nil, err
	}
	defer load.close()
	at := cfg.Tell.Stage("traffic (requests)")
	cfg.Progress = func(done int64) { at(int(done), int(load.Requests)) }
	server, err := New(src, cfg.Config)
	if err != nil {
		return nil, err
	}
	s := &Study{Model: src.Header().Model, Device: cfg.Sim.Device.Name, Server: Setting{
		Mask: "true", Policy: cfg.Sim.Policy.String(), Engine: cfg.Sim.Engine,
		Parallel: cfg.Sim.Parallel, MaxBatch: cfg.MaxBatch, Chunk: cfg.Chunk, KV: cfg.KV,
		TTFT: cfg.TTFT, TPOT: cfg.TPOT, Deadline: cfg.Deadline, Seed: cfg.Seed}}
	if cfg.Sim.Predicted {
		s.Server.Mask = "predicted"
	}
	if cfg.FindRate {
		s.Rate, err = server.FindRate(ctx, cfg.Share, func(rate float64) (Source, error) {
			at = cfg.Tell.Stage(fmt.Sprintf("traffic at %s (requests)", rateText(rate)))
			return load.source(ctx, rate)
		})
	} else {
		var requests Source
		if requests, err = load.source(ctx, load.rate()); err == nil {
			s.Result, err = server.Run(ctx, requests)
		}
	}
	if s.Load = *load; s.Result == nil && s.Rate == nil {
		return nil, err
	}
	return s, err
}
