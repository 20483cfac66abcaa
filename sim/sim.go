package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/layout"
	"github.com/windrow-sim/windrow/engine/policy"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// ErrConfig marks a configuration that cannot be simulated.
var ErrConfig = errors.New("sim: the configuration cannot be simulated")

// configError is an error of kind ErrConfig that reads as the error it wraps.
type configError struct{ error }

func (configError) Is(target error) bool { return target == ErrConfig }
func (e configError) Unwrap() error      { return e.error }

// Config is one configuration to simulate. It is written whole into the Run.
type Config struct {
	Window    int    `json:"window"`               // tokens of the sliding window
	Engine    string `json:"engine"`               // I/O engine, a key of the device's flash.engines
	Parallel  int    `json:"parallel"`             // threads or queue depth
	Predicted bool   `json:"predicted"`            // use the predicted masks instead of the true ones
	MaxTokens int    `json:"max_tokens,omitempty"` // 0 = all
	// PredictorRank is the inner dimension of a low-rank predictor that computes the predicted masks; 0 = they cost nothing.
	PredictorRank int                  `json:"predictor_rank,omitempty"`
	Layout        layout.Options       `json:"layout"`
	Device        *devicemodels.Device `json:"device"`
	// Geometry of the image that the trace is simulated on; the zero value lays the trace's units out densely.
	Geometry layout.Geometry `json:"geometry"`
}

// runner is the state of one simulation.
type runner struct {
	cfg     Config
	head    *traces.Header
	compute devicemodels.Compute
	planner *layout.Planner
	station *flash.Station
	reads   []flash.Read // of one batch, reused
	layers  []layerState
	now     units.Nanos
	run     *traces.Run
	overlap overlap
	bounded units.Nanos // of the host, at the roofline
	unknown bool        // work of the host was charged as no time
	plan    layout.Plan
	dec     policy.Decision
}

// layerState is the residency of one layer. Evictions decided after a token are applied with the next token's copies, as in
// the engine's row cache.
type layerState struct {
	window  *policy.Window
	slots   *policy.Slots
	pending []uint32
}

// Run simulates src under cfg. It is deterministic, streams the trace, and returns an error for an impossible
// configuration or a trace that the geometry cannot serve.
func Run(src traces.Source, cfg Config) (*traces.Run, error) {
	r, err := newRunner(src, cfg)
	if err != nil {
		return nil, err
	}
	tokens := src.Tokens()
	if cfg.MaxTokens > 0 {
		tokens = min(tokens, cfg.MaxTokens)
	}
	r.run.Rows = make([]traces.RunRow, 0, tokens*(r.head.Layers*(traces.Parts-1)+1))
	var t traces.Token
	seq := uint32(0)
	for i := range tokens {
		if err := src.Token(i, &t); err != nil {
			return nil, err
		}
		if i > 0 && t.Seq != seq {
			r.reset()
		}
		seq = t.Seq
		if err := r.token(uint32(i), &t); err != nil {
			return nil, err
		}
	}
	r.run.Meta.Totals = traces.ComputeTotals(r.run.Rows)
	r.run.Meta.Prediction, r.run.Meta.Warnings = r.predict()
	return r.run, nil
}

// check refuses configurations that the trace or the device model does not allow.
func (cfg *Config) check(head *traces.Header) error {
	if cfg.Device == nil {
		return fmt.Errorf("sim: no device model given")
	}
	if cfg.Window < 0 {
		return fmt.Errorf("sim: window of %d tokens: it must be 0 or more", cfg.Window)
	}
	if cfg.PredictorRank > 0 && !cfg.Predicted {
		return fmt.Errorf("sim: a predictor of rank %d, but the true masks are used; use the predicted ones", cfg.PredictorRank)
	}
	if cfg.Predicted && !head.HasPredicted {
		return fmt.Errorf("sim: the trace of %s holds no predicted masks; simulate the true ones", head.Model)
	}
	if cfg.Geometry.Units != head.Units || len(cfg.Geometry.Base) != head.Layers || cfg.Geometry.Record != head.UnitBytes {
		return fmt.Errorf("sim: the trace has %d layers of %d units of %v, the image %d of %d of %v; they are not of one model",
			head.Layers, head.Units, head.UnitBytes, len(cfg.Geometry.Base), cfg.Geometry.Units, cfg.Geometry.Record)
	}
	return nil
}

func newRunner(src traces.Source, cfg Config) (*runner, error) {
	head := src.Header()
	if cfg.Geometry.Units == 0 {
		cfg.Geometry = layout.Uniform(head.Layers, head.Units, head.UnitBytes)
	}
	if err := cfg.check(head); err != nil {
		return nil, configError{err}
	}
	if cfg.Layout.Align == 0 {
		cfg.Layout.Align = max(cfg.Device.Flash.Align, 1)
	}
	planner, err := layout.NewPlanner(cfg.Geometry, cfg.Layout)
	if err != nil {
		return nil, configError{err}
	}
	station, err := flash.NewStation(cfg.Device.Flash, flash.Config{
		Engine: cfg.Engine, Parallel: cfg.Parallel, Cores: cfg.Device.Host.Cores, Span: cfg.span(), Seed: head.Seed,
	})
	if err != nil {
		return nil, configError{err}
	}
	r := &runner{cfg: cfg, head: head, compute: cfg.Device.Host.At(head.DType), planner: planner, station: station, layers: make([]layerState, head.Layers)}
	for l := range r.layers {
		r.layers[l] = layerState{window: policy.NewWindow(head.Units, cfg.Window), slots: policy.NewSlots(head.Units)}
	}
	resolved, err := json.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("sim: configuration: %w", err)
	}
	r.run = &traces.Run{Meta: traces.RunMeta{
		SchemaVersion: traces.SchemaVersion, Simulated: true, Model: head.Model, Device: cfg.Device.Name, Seed: head.Seed, Config: resolved,
	}}
	return r, nil
}

func (r *runner) reset() {
	for l := range r.layers {
		s := &r.layers[l]
		s.window.Reset()
		s.slots.Reset()
		s.pending = s.pending[:0]
	}
}

// token simulates one token, top to bottom.
func (r *runner) token(index uint32, t *traces.Token) error {
	masks := t.Active
	if r.cfg.Predicted {
		masks = t.Predicted
	}
	row := traces.RunRow{Token: index, Seq: t.Seq, Pos: t.Pos, Phase: t.Phase}
	for l := range r.layers {
		row.Layer = uint16(l)
		if err := r.layer(row, masks[l]); err != nil {
			return err
		}
	}
	row.Layer = traces.NoLayer
	r.spend(row, traces.PartOther, r.headTime())
	r.overlap.end(&r.cfg.Device.Host, r.now)
	return nil
}

// layer simulates one layer of one token; row carries the token's identity.
func (r *runner) layer(row traces.RunRow, mask []uint64) error {
	host, state := &r.cfg.Device.Host, &r.layers[row.Layer]
	r.spend(row, traces.PartAttention, r.attentionTime(int(row.Pos)))

	need := 0
	for _, w := range mask {
		need += bits.OnesCount64(w)
	}
	state.window.Step(mask, &r.dec)
	r.planner.Plan(int(row.Layer), r.dec.Load, &r.plan)
	r.spend(row, traces.PartPredict, host.Decide(need)+r.predictorTime())

	io := row
	io.Bytes, io.Requests = r.plan.Bytes, uint32(len(r.plan.Requests))
	io.Hits, io.Misses = uint32(r.dec.Hits), uint32(len(r.dec.Load))
	r.reads = r.reads[:0]
	for _, q := range r.plan.Requests {
		r.reads = append(r.reads, flash.Read{Offset: units.Bytes(q.Offset), Length: units.Bytes(q.Length)})
	}
	batch, err := r.station.Batch(r.now, r.reads)
	if err != nil {
		return err
	}
	if took := batch.End - r.now; took > 0 {
		io.Depth = float32(float64(batch.Sojourn) / float64(took))
	}
	r.overlap.read(batch.End-r.now, batch.Moved)
	r.spend(io, traces.PartIO, batch.End-r.now)

	mem := row
	copies := state.apply(r.dec.Load, r.dec.Evict)
	mem.Bytes = units.Bytes(copies) * r.head.UnitBytes
	mem.Evictions = uint32(len(r.dec.Evict))
	r.spend(mem, traces.PartMemory, r.charge(r.compute.Copy, mem.Bytes, copies)+r.transferTime(len(r.dec.Load)))

	used := units.Bytes(need) * r.head.UnitBytes
	r.overlap.compute(used)
	r.spend(row, traces.PartFFN, r.charge(r.compute.Rows, used, 1))
	return nil
}

// apply does to the slots what the engine does to its row cache and returns the number of rows copied: rows that fill the
// gaps of the last token's evictions, and loaded rows.
func (s *layerState) apply(load, evict []uint32) (copies int) {
	for _, u := range s.pending {
		if from, to := s.slots.Delete(u); from != to {
			copies++
		}
	}
	for _, u := range load {
		s.slots.Insert(u)
	}
	s.pending = append(s.pending[:0], evict...)
	return copies + len(load)
}

// spend appends a row that starts now and lasts dur.
func (r *runner) spend(row traces.RunRow, part traces.Part, dur units.Nanos) {
	row.Part, row.Start, row.Dur = part, r.now, dur
	r.now += dur
	r.run.Rows = append(r.run.Rows, row)
}

// charge returns what a term takes, and notes times that are bounds.
func (r *runner) charge(t devicemodels.Term, bytes units.Bytes, calls int) units.Nanos {
	took := t.Time(bytes, calls)
	switch {
	case t.Basis == devicemodels.Roofline:
		r.bounded += took
	case t.Basis == devicemodels.Unknown && t.Name != "":
		r.unknown = true
	}
	return took
}

// attentionTime charges the four projections (q, k, v, out) as resident mat-vecs and the reading of pos+1 keys and values
// (float32 in the engine's cache).
func (r *runner) attentionTime(pos int) units.Nanos {
	host, s := &r.cfg.Device.Host, &r.head.Shape
	weights, cache := s.AttentionBytes(), s.KVBytes()*units.Bytes(pos+1)
	r.overlap.compute(weights + cache)
	return host.LayerFixed + host.SyncFixed + r.charge(r.compute.Dense, weights, 4) + r.charge(r.compute.KV, cache, 1)
}

// predictorTime charges the two mat-vecs of a low-rank predictor: d_model × rank, then rank × units (LLM in a flash, 3.1).
func (r *runner) predictorTime() units.Nanos {
	if r.cfg.PredictorRank == 0 {
		return 0
	}
	s := &r.head.Shape
	weights := units.Bytes(r.cfg.PredictorRank) * units.Bytes(s.DModel+r.head.Units) * units.Bytes(s.DTypeSize)
	r.overlap.compute(weights)
	return r.charge(r.compute.Predictor, weights, 2)
}

// transferTime charges the way of loaded rows to an accelerator with its own memory.
func (r *runner) transferTime(rows int) units.Nanos {
	if rows == 0 {
		return 0
	}
	return r.charge(r.compute.Transfer, units.Bytes(rows)*r.head.UnitBytes, 1)
}

// headTime charges the output head, what else happens once per token, and what holding the cached rows costs.
func (r *runner) headTime() units.Nanos {
	rows := 0
	for l := range r.layers {
		rows += r.layers[l].slots.Len()
	}
	weights := r.head.Shape.HeadBytes()
	r.overlap.compute(weights)
	return r.cfg.Device.Host.TokenFixed + r.charge(r.compute.Dense, weights, 1) + r.charge(r.compute.Held, units.Bytes(rows)*r.head.UnitBytes, 1)
}

// span is the stretch of the image that holds the units: what a drive's mapping table must cover.
func (cfg *Config) span() units.Bytes {
	low, high := cfg.Geometry.Base[0], cfg.Geometry.Base[0]
	for _, base := range cfg.Geometry.Base {
		low, high = min(low, base), max(high, base)
	}
	return units.Bytes(high-low) + units.Bytes(cfg.Geometry.Units)*units.Bytes(cfg.Geometry.Stride)
}
