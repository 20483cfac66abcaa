package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
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
	Window    int                  `json:"window"`               // tokens of the sliding window
	Engine    string               `json:"engine"`               // I/O engine, a key of the device's flash.engines
	Parallel  int                  `json:"parallel"`             // threads or queue depth
	Predicted bool                 `json:"predicted"`            // use the predicted masks instead of the true ones
	MaxTokens int                  `json:"max_tokens,omitempty"` // 0 = all
	Layout    layout.Options       `json:"layout"`
	Device    *devicemodels.Device `json:"device"`
	// Geometry of the image that the trace is simulated on; the zero value lays the trace's units out densely.
	Geometry layout.Geometry `json:"geometry"`
}

// runner is the state of one simulation.
type runner struct {
	cfg     Config
	head    *traces.Header
	planner *layout.Planner
	station *Station
	layers  []layerState
	now     units.Nanos
	run     *traces.Run
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
	r.run.Meta.Warnings = cfg.extrapolations(&r.run.Meta.Totals)
	return r.run, nil
}

// extrapolations says where the run went beyond what the device model was fitted to.
func (cfg *Config) extrapolations(t *traces.Totals) []string {
	fit := cfg.Device.Fit
	if fit == nil || t.Requests == 0 {
		return nil
	}
	var list []string
	if mean := t.Bytes / units.Bytes(t.Requests); mean < fit.ChunkMin || mean > fit.ChunkMax {
		list = append(list, fmt.Sprintf("extrapolated: requests are of %v on average, the device model was fitted to %v to %v", mean, fit.ChunkMin, fit.ChunkMax))
	}
	if t.MeanDepth > float64(fit.DepthMax) {
		list = append(list, fmt.Sprintf("extrapolated: %.3g requests in flight on average, the device model was fitted to %d at most", t.MeanDepth, fit.DepthMax))
	}
	return list
}

// check refuses configurations that the trace or the device model does not allow.
func (cfg *Config) check(head *traces.Header) error {
	if cfg.Device == nil {
		return fmt.Errorf("sim: no device model given")
	}
	if cfg.Window < 0 {
		return fmt.Errorf("sim: window of %d tokens: it must be 0 or more", cfg.Window)
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
	station, err := NewStation(cfg.Device.Flash, cfg.Engine, cfg.Parallel, cfg.Device.Host.Cores)
	if err != nil {
		return nil, configError{err}
	}
	r := &runner{cfg: cfg, head: head, planner: planner, station: station, layers: make([]layerState, head.Layers)}
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
	r.spend(row, traces.PartPredict, host.DecideFixed+units.Nanos(need)*host.DecideUnit)

	io := row
	io.Bytes, io.Requests = r.plan.Bytes, uint32(len(r.plan.Requests))
	io.Hits, io.Misses = uint32(r.dec.Hits), uint32(len(r.dec.Load))
	batch, err := r.station.Batch(r.now, r.plan.Requests)
	if err != nil {
		return err
	}
	if took := batch.End - r.now; took > 0 {
		io.Depth = float32(float64(batch.Sojourn) / float64(took))
	}
	r.spend(io, traces.PartIO, batch.End-r.now)

	mem := row
	copies := state.apply(r.dec.Load, r.dec.Evict)
	mem.Bytes = units.Bytes(copies) * r.head.UnitBytes
	mem.Evictions = uint32(len(r.dec.Evict))
	r.spend(mem, traces.PartMemory, host.CopyRate.Time(mem.Bytes)+units.Nanos(copies)*host.CopyFixed)

	r.spend(row, traces.PartFFN, host.RowFixed+host.RowRate.Time(units.Bytes(need)*r.head.UnitBytes))
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

// attentionTime charges the four projections (q, k, v, out) as resident mat-vecs and the reading of pos+1 keys and values
// (float32 in the engine's cache).
func (r *runner) attentionTime(pos int) units.Nanos {
	host, s := &r.cfg.Device.Host, &r.head.Shape
	cache := s.KVBytes() * units.Bytes(pos+1)
	return host.LayerFixed + 4*host.DenseFixed + host.DenseRate.Time(s.AttentionBytes()) + host.KVRate.Time(cache)
}

// headTime charges the output head and what else happens once per token.
func (r *runner) headTime() units.Nanos {
	host := &r.cfg.Device.Host
	return host.TokenFixed + host.DenseFixed + host.DenseRate.Time(r.head.Shape.HeadBytes())
}

func engineNames(f devicemodels.Flash) []string { return slices.Sorted(maps.Keys(f.Engines)) }
