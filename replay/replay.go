package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/clock"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// Config is one configuration to measure. It is written whole into the Run.
type Config struct {
	Policy policy.Spec `json:"policy"` // which rows stay in memory
	// Schedule says when reads are submitted; the zero value reads on demand.
	Schedule schedule.Spec  `json:"schedule,omitzero"`
	Layout   layout.Options `json:"layout"`
	Threads  int            `json:"threads"` // compute threads; 0 = all cores
	// Predicted loads and computes by the predicted masks instead of the true ones.
	Predicted bool `json:"predicted"`
	MaxTokens int  `json:"max_tokens,omitempty"`
	// ReferenceEvery is the number of tokens between two readings of the reference pattern; 0 =
	// none.
	ReferenceEvery int `json:"reference_every"`
	ReferenceReads int `json:"reference_reads"` // of one reading; 0 = 128
	// ReferencePause is the pause after every reading. A device with a credit of bytes (a cloud
	// volume, a control group) has spent it on the reference pattern, and earns it again.
	ReferencePause time.Duration `json:"reference_pause_ns"`
	Seed           uint64        `json:"seed"`

	// Backend computes and Store keeps the rows; both nil for the CPU, or both of one device.
	Backend engine.Backend `json:"-"`
	Store   engine.Store   `json:"-"`
	// Bundles reads a layer's bundles. A schedule with a dense prefix needs it.
	Bundles  func(layer int) ([]byte, error) `json:"-"`
	Progress func(done, total int)           `json:"-"`
	Clock    clock.Reader                    `json:"-"` // nil = this machine's
}

// Result is a measured Run with what is needed to judge it.
type Result struct {
	Run   *traces.Run
	Drift Drift
	Mode  flashio.Mode
}

// Run replays src on the image's geometry with resident weights w. It reads through reader and
// closes it. On cancellation it returns the tokens measured so far together with ctx's error.
func Run(ctx context.Context, src traces.Source, w *model.Weights, geo layout.Geometry,
	reader flashio.Reader, cfg Config) (*Result, error) {
	if err := fits(src.Header(), w, geo, cfg); err != nil {
		reader.Close()
		return nil, err
	}
	tokens := src.Tokens()
	if cfg.MaxTokens > 0 {
		tokens = min(tokens, cfg.MaxTokens)
	}
	rows, err := traces.NewRows(tokens, src.Header().Layers)
	if err != nil {
		reader.Close()
		return nil, fmt.Errorf("replay: %w", err)
	}
	mode := reader.Mode()
	cfg.Layout.Align = max(cfg.Layout.Align, mode.Align)
	if cfg.Threads == 0 {
		cfg.Threads = runtime.GOMAXPROCS(0)
	}
	if cfg.ReferenceReads == 0 {
		cfg.ReferenceReads = referenceReads
	}
	reference, err := newReference(reader, mode, geo, cfg)
	if err != nil {
		reader.Close()
		return nil, err
	}
	defer reference.close()
	flash, positions, err := NewFlash(src, tokens, w, geo, reader, cfg)
	if err != nil {
		reader.Close()
		return nil, err
	}
	defer flash.Close()
	eng, err := engine.New(w, flash, engine.Config{Threads: cfg.Threads, Context: positions,
		Schedule: cfg.Schedule.Kind, Backend: cfg.Backend})
	if err != nil {
		return nil, err
	}
	defer eng.Close()

	m := &meter{rows: rows}
	eng.Observe(m)
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	m.watch = clock.NewWatch(cfg.Clock)
	err = drive(ctx, src, tokens, eng, m, reference, cfg)
	result := &Result{Mode: mode, Drift: reference.drift(), Run: &traces.Run{Rows: m.rows}}
	result.Run.Meta = meta(src.Header(), mode, result.Drift, m.watch.Jump(),
		flashio.Starved(reader), cfg)
	result.Run.Meta.Totals = traces.ComputeTotals(m.rows)
	if m.clocked {
		result.Run.Meta.Phases = traces.ComputePhases(m.rows, traces.ClockEvents)
	}
	if cfg.Schedule.Kind != schedule.Demand {
		m.ahead.Schedule = string(cfg.Schedule.Kind)
		result.Run.Meta.Prefetches = &m.ahead
	}
	return result, err
}

// drive feeds the tokens to the engine, with readings of the reference pattern between slices of
// tokens.
func drive(ctx context.Context, src traces.Source, tokens int, eng *engine.Engine, m *meter,
	ref *reference, cfg Config) error {
	var t traces.Token
	var sequences traces.Sequences
	for i := range tokens {
		if err := ctx.Err(); err != nil {
			return err
		}
		if cfg.ReferenceEvery > 0 && i%cfg.ReferenceEvery == 0 {
			if err := ref.read(); err != nil {
				return err
			}
			if err := pause(ctx, cfg.ReferencePause); err != nil {
				return err
			}
		}
		if err := src.Token(i, &t); err != nil {
			return err
		}
		if sequences.Begins(t.Seq) {
			eng.Reset()
		}
		m.index = uint32(i)
		token := engine.Token{Seq: int(t.Seq), Pos: int(t.Pos), ID: t.ID,
			Prefill: t.Phase == traces.Prefill, Masks: t.Masks(cfg.Predicted)}
		if _, err := eng.Forward(token); err != nil {
			return err
		}
		m.watch.Look()
		if cfg.Progress != nil {
			cfg.Progress(i+1, tokens)
		}
	}
	return ref.finish(cfg)
}

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ErrMismatch marks a trace, an image and a configuration that do not belong together.
var ErrMismatch = refusal.Kind(refusal.ErrConfig, "they do not belong together")

// fits refuses a trace of another model, and a configuration that cannot be run.
func fits(h *traces.Header, w *model.Weights, geo layout.Geometry, cfg Config) error {
	if err := cfg.Policy.Check(); err != nil {
		return refusal.Config("replay: %w", err)
	}
	if err := cfg.Schedule.Check(h.Layers); err != nil {
		return refusal.Config("replay: %w", err)
	}
	if cfg.Schedule.Staging == schedule.Unlimited {
		return refusal.Config("replay: a staging buffer without a limit can only be simulated; " +
			"give it a size")
	}
	if cfg.Predicted && !h.HasPredicted {
		return fmt.Errorf("replay: the trace of %s holds no predicted masks; replay the true "+
			"ones: %w", h.Model, ErrMismatch)
	}
	s := w.Shape
	if h.Layers != s.Layers || h.Units != geo.Units || h.UnitBytes != geo.Record ||
		h.Shape.Vocab > s.Vocab {
		return fmt.Errorf("replay: the trace of %s (%d layers of %d units of %v, vocabulary %d) "+
			"does not fit the image (%d of %d of %v, %d): %w",
			h.Model, h.Layers, h.Units, h.UnitBytes, h.Shape.Vocab, s.Layers, geo.Units, geo.Record,
			s.Vocab, ErrMismatch)
	}
	return nil
}

// NewFlash returns flash-resident rows whose caches and staging buffer are as large as the first
// tokens of a trace need, and no larger. It also returns the number of positions of the longest
// sequence. On an error the reader stays the caller's.
func NewFlash(src traces.Source, tokens int, w *model.Weights, geo layout.Geometry,
	reader flashio.Reader, cfg Config) (*engine.Flash, int, error) {
	cfg.Layout.Align = max(cfg.Layout.Align, reader.Mode().Align)
	n, err := cfg.need(src, tokens, geo)
	if err != nil {
		return nil, 0, err
	}
	dense, err := cfg.dense()
	if err != nil {
		return nil, 0, err
	}
	flash, err := engine.NewFlash(w, geo, reader, engine.FlashConfig{
		Policy: cfg.Policy, Layout: cfg.Layout, Capacity: n.Rows,
		Staging: int64(n.Staging), Prefetch: int64(cfg.Schedule.Staging), Dense: dense,
		Store: cfg.Store,
	})
	return flash, n.Positions, err
}

// dense reads the bundles of the dense prefix.
func (c *Config) dense() (list [][]byte, err error) {
	for l := range c.Schedule.Dense {
		if c.Bundles == nil {
			return nil, fmt.Errorf("replay: a dense prefix of %d layers, but no function that "+
				"reads their bundles (Config.Bundles): %w", c.Schedule.Dense, ErrMismatch)
		}
		data, err := c.Bundles(l)
		if err != nil {
			return nil, err
		}
		list = append(list, data)
	}
	return list, nil
}

// meta describes a measured run, with warnings about what makes its times unreliable.
func meta(h *traces.Header, mode flashio.Mode, drift Drift, jump units.Nanos, starved int64,
	cfg Config) traces.RunMeta {
	resolved, _ := json.Marshal(struct { // cannot fail: plain data
		Config
		Mode flashio.Mode `json:"mode"`
	}{cfg, mode})
	m := traces.RunMeta{
		SchemaVersion: traces.SchemaVersion, Emulated: mode.Engine == flashio.EngineEmulated,
		Model: h.Model,
		Seed:  cfg.Seed, Config: resolved, Warnings: slices.Clone(mode.Notes), ClockJump: jump,
	}
	if jump != 0 {
		m.Warnings = append(m.Warnings, clock.Why(jump)+" during the run; its times are not used "+
			"for a fit, measure again")
	}
	if starved > 0 {
		m.Warnings = append(m.Warnings, fmt.Sprintf("%d reads waited because the kernel had no "+
			"memory for them (ENOMEM); I/O times say nothing about flash", starved))
	}
	if !m.Emulated && (!mode.Direct || mode.MemoryBacked) {
		m.Warnings = append(m.Warnings, "reads were not direct: memory may have served them, so "+
			"that I/O times say nothing about flash")
	}
	if drift.Known {
		m.DriftPercent = &drift.Percent
	}
	if drift.Percent > compare.DefaultMaxDrift {
		m.Warnings = append(m.Warnings, fmt.Sprintf("the device drifted by %.3g %% while it was "+
			"measured; times are worth no more than that", drift.Percent))
	}
	return m
}

// meter is the Observer that turns engine events into rows of a Run. It cuts out the time between
// tokens, in which the driver reads the trace and the reference pattern while the engine is idle.
type meter struct {
	watch *clock.Watch
	rows  []traces.RunRow
	index uint32
	layer []traces.RunRow   // rows of the current token, without its identity
	shift units.Nanos       // subtracted from the engine's clock
	end   units.Nanos       // of the last row, on the engine's clock
	ahead traces.Prefetches // of schedules
	// clocked: a device reported times of its own. A stand-in reports none; the time that the host
	// waits for it then means nothing.
	clocked bool
}

// TimesOnly implements engine.Timing.
func (m *meter) TimesOnly() {}

// Layer implements engine.Observer.
func (m *meter) Layer(ev *engine.LayerEvent) error {
	if ev.Layer == 0 {
		m.shift += ev.Attention.Start - m.end
	}
	row := func(part traces.Part, s engine.Span) *traces.RunRow {
		m.layer = append(m.layer, traces.RunRow{Layer: uint16(ev.Layer), Part: part,
			Start: s.Start - m.shift, Dur: s.Dur})
		return &m.layer[len(m.layer)-1]
	}
	m.clocked = m.clocked || ev.Device != engine.DeviceTimes{}
	device := func(r *traces.RunRow, worked, waited units.Nanos) {
		r.Device, r.Wait = worked,
			waited
	}
	device(row(traces.PartAttention, ev.Attention), ev.Device.Attention, ev.Wait.Attention)
	row(traces.PartPredict, ev.Predict)
	io := row(traces.PartIO, ev.IO)
	io.Bytes, io.Requests, io.Hits, io.Misses = ev.Bytes, uint32(ev.Requests), uint32(ev.Hits),
		uint32(ev.Misses)
	mem := row(traces.PartMemory, ev.Memory)
	mem.Bytes, mem.Evictions = ev.Copied, uint32(ev.Evictions)
	device(mem, ev.Device.Scatter, ev.Wait.Scatter)
	device(row(traces.PartFFN, ev.FFN), ev.Device.FFN, ev.Wait.FFN)
	if ev.Prefetch > 0 {
		m.ahead.Hidden += max(ev.Prefetch-ev.IO.Dur, 0)
		m.ahead.Bytes += ev.Bytes
		m.ahead.Named += int64(ev.Misses)
	}
	return nil
}

// Token implements engine.Observer.
func (m *meter) Token(ev *engine.TokenEvent) error {
	m.layer = append(m.layer, traces.RunRow{Layer: traces.NoLayer, Part: traces.PartOther,
		Start: ev.Other.Start - m.shift, Dur: ev.Other.Dur, Device: ev.Device.Head})
	m.end = ev.Other.Start + ev.Other.Dur
	phase := traces.PhaseOf(ev.Token.Prefill)
	for _, r := range m.layer {
		r.Token, r.Seq, r.Pos, r.Phase = m.index, uint32(ev.Token.Seq), uint32(ev.Token.Pos), phase
		m.rows = append(m.rows, r)
	}
	m.layer = m.layer[:0]
	return nil
}
