package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/layout"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/policy"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Config is one configuration to measure. It is written whole into the Run.
type Config struct {
	Window    int            `json:"window"`
	Layout    layout.Options `json:"layout"`
	Threads   int            `json:"threads"`   // compute threads; 0 = all cores
	Predicted bool           `json:"predicted"` // load and compute by the predicted masks instead of the true ones
	MaxTokens int            `json:"max_tokens,omitempty"`
	// ReferenceEvery is the number of tokens between two readings of the reference pattern; 0 = none.
	ReferenceEvery int    `json:"reference_every"`
	Seed           uint64 `json:"seed"`

	Progress func(done, total int) `json:"-"`
}

// Result is a measured Run with what is needed to judge it.
type Result struct {
	Run   *traces.Run
	Drift Drift
	Mode  flashio.Mode
	Rows  []int // rows that each layer's cache was given: the largest number needed
}

// Run replays src on the image's geometry with resident weights w, reading through reader, which it closes. On cancellation it
// returns what was measured so far together with ctx's error.
func Run(ctx context.Context, src traces.Source, w *model.Weights, geo layout.Geometry, reader flashio.Reader, cfg Config) (*Result, error) {
	if err := fits(src.Header(), w, geo, cfg); err != nil {
		reader.Close()
		return nil, err
	}
	tokens := src.Tokens()
	if cfg.MaxTokens > 0 {
		tokens = min(tokens, cfg.MaxTokens)
	}
	rows, context, err := requirements(src, tokens, cfg)
	if err != nil {
		reader.Close()
		return nil, err
	}
	mode := reader.Mode()
	reference := newReference(reader, mode, geo, cfg.Seed)
	defer reference.close()
	flash, err := engine.NewFlash(w, geo, reader, engine.FlashConfig{Window: cfg.Window, Layout: cfg.Layout, Capacity: rows})
	if err != nil {
		reader.Close()
		return nil, err
	}
	defer flash.Close()
	eng, err := engine.New(w, flash, engine.Config{Threads: cfg.Threads, Context: context})
	if err != nil {
		return nil, err
	}
	defer eng.Close()

	m := &meter{rows: make([]traces.RunRow, 0, tokens*(src.Header().Layers*(traces.Parts-1)+1))}
	eng.Observe(m)
	err = drive(ctx, src, tokens, eng, m, reference, cfg)
	result := &Result{Mode: mode, Rows: rows, Drift: reference.drift(), Run: &traces.Run{Rows: m.rows}}
	result.Run.Meta = meta(src.Header(), mode, cfg)
	result.Run.Meta.Totals = traces.ComputeTotals(m.rows)
	return result, err
}

// drive feeds the tokens to the engine, with readings of the reference pattern between slices of tokens.
func drive(ctx context.Context, src traces.Source, tokens int, eng *engine.Engine, m *meter, ref *reference, cfg Config) error {
	var t traces.Token
	seq := uint32(0)
	for i := range tokens {
		if err := ctx.Err(); err != nil {
			return err
		}
		if cfg.ReferenceEvery > 0 && i%cfg.ReferenceEvery == 0 {
			if err := ref.read(); err != nil {
				return err
			}
			m.pause = true
		}
		if err := src.Token(i, &t); err != nil {
			return err
		}
		if i == 0 || t.Seq != seq {
			eng.Reset()
		}
		seq = t.Seq
		m.index = uint32(i)
		token := engine.Token{Seq: int(t.Seq), Pos: int(t.Pos), ID: t.ID, Prefill: t.Phase == traces.Prefill, Masks: cfg.masks(&t)}
		if _, err := eng.Forward(token); err != nil {
			return err
		}
		if cfg.Progress != nil {
			cfg.Progress(i+1, tokens)
		}
	}
	if cfg.ReferenceEvery > 0 {
		return ref.read()
	}
	return nil
}

// ErrMismatch marks a trace, an image and a configuration that do not belong together.
var ErrMismatch = errors.New("they do not belong together")

// masks are those of t that the configuration goes by.
func (c *Config) masks(t *traces.Token) [][]uint64 {
	if c.Predicted {
		return t.Predicted
	}
	return t.Active
}

// fits refuses a trace of another model, and a configuration that is none.
func fits(h *traces.Header, w *model.Weights, geo layout.Geometry, cfg Config) error {
	if cfg.Window < 0 {
		return fmt.Errorf("replay: window of %d tokens: it must be 0 or more: %w", cfg.Window, ErrMismatch)
	}
	if cfg.Predicted && !h.HasPredicted {
		return fmt.Errorf("replay: the trace of %s holds no predicted masks; replay the true ones: %w", h.Model, ErrMismatch)
	}
	s := w.Shape
	if h.Layers != s.Layers || h.Units != geo.Units || h.UnitBytes != geo.Record || h.Shape.Vocab > s.Vocab {
		return fmt.Errorf("replay: the trace of %s (%d layers of %d units of %v, vocabulary %d) does not fit the image (%d of %d of %v, %d): %w",
			h.Model, h.Layers, h.Units, h.UnitBytes, h.Shape.Vocab, s.Layers, geo.Units, geo.Record, s.Vocab, ErrMismatch)
	}
	return nil
}

// requirements runs the policy over the trace and returns the largest number of rows each layer needs at once (the paper's
// Req_i, here of this very trace) and the number of positions of the longest sequence.
func requirements(src traces.Source, tokens int, cfg Config) (rows []int, positions int, err error) {
	h := src.Header()
	rows = make([]int, h.Layers)
	inUse := make([]int, h.Layers)
	windows := make([]*policy.Window, h.Layers)
	for l := range windows {
		windows[l] = policy.NewWindow(h.Units, cfg.Window)
	}
	var t traces.Token
	var d policy.Decision
	seq := uint32(0)
	for i := range tokens {
		if err := src.Token(i, &t); err != nil {
			return nil, 0, err
		}
		positions = max(positions, int(t.Pos)+1)
		masks := cfg.masks(&t)
		for l, w := range windows {
			if i > 0 && t.Seq != seq {
				w.Reset()
				inUse[l] = 0
			}
			w.Step(masks[l], &d)
			rows[l] = max(rows[l], inUse[l]+len(d.Load))
			inUse[l] += len(d.Load) - len(d.Evict)
		}
		seq = t.Seq
	}
	return rows, positions, nil
}

func meta(h *traces.Header, mode flashio.Mode, cfg Config) traces.RunMeta {
	resolved, _ := json.Marshal(struct { // cannot fail: plain data
		Config
		Mode flashio.Mode `json:"mode"`
	}{cfg, mode})
	return traces.RunMeta{
		SchemaVersion: traces.SchemaVersion, Emulated: mode.Engine == flashio.EngineEmulated, Model: h.Model,
		Seed: cfg.Seed, Config: resolved, Warnings: mode.Notes,
	}
}

// meter is the Observer that turns engine events into rows of a Run. Time spent between tokens on reference reads is cut out.
type meter struct {
	rows  []traces.RunRow
	index uint32
	layer []traces.RunRow // rows of the current token, without its identity
	shift units.Nanos     // subtracted from the engine's clock
	end   units.Nanos     // of the last row, on the engine's clock
	pause bool            // time before the next row is not part of the run
}

// Layer implements engine.Observer.
func (m *meter) Layer(ev *engine.LayerEvent) error {
	if m.pause || len(m.rows) == 0 && ev.Layer == 0 {
		m.shift += ev.Attention.Start - m.end
		m.pause = false
	}
	row := func(part traces.Part, s engine.Span) *traces.RunRow {
		m.layer = append(m.layer, traces.RunRow{Layer: uint16(ev.Layer), Part: part, Start: s.Start - m.shift, Dur: s.Dur})
		return &m.layer[len(m.layer)-1]
	}
	row(traces.PartAttention, ev.Attention)
	row(traces.PartPredict, ev.Predict)
	io := row(traces.PartIO, ev.IO)
	io.Bytes, io.Requests, io.Hits, io.Misses = ev.Bytes, uint32(ev.Requests), uint32(ev.Hits), uint32(ev.Misses)
	mem := row(traces.PartMemory, ev.Memory)
	mem.Bytes, mem.Evictions = ev.Copied, uint32(ev.Evictions)
	row(traces.PartFFN, ev.FFN)
	return nil
}

// Token implements engine.Observer.
func (m *meter) Token(ev *engine.TokenEvent) error {
	m.layer = append(m.layer, traces.RunRow{Layer: traces.NoLayer, Part: traces.PartOther, Start: ev.Other.Start - m.shift, Dur: ev.Other.Dur})
	m.end = ev.Other.Start + ev.Other.Dur
	phase := traces.Decode
	if ev.Token.Prefill {
		phase = traces.Prefill
	}
	for _, r := range m.layer {
		r.Token, r.Seq, r.Pos, r.Phase = m.index, uint32(ev.Token.Seq), uint32(ev.Token.Pos), phase
		m.rows = append(m.rows, r)
	}
	m.layer = m.layer[:0]
	return nil
}
