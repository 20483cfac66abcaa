package world

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
	"github.com/windrow-sim/windrow/traces"
)

// shapes are the models of the world, and strides the distances of their records; 0 = the record's
// size. One has three rows a unit, one a number of units that fills no word of a mask.
var (
	shapes = []model.Shape{
		{DModel: 32, Layers: 3, DFFN: 96, Heads: 2, KVHeads: 2, HeadDim: 16, Vocab: 48,
			MaxPos: 32, Rows: 2, DTypeSize: 2},
		{DModel: 64, Layers: 4, DFFN: 160, Heads: 4, KVHeads: 2, HeadDim: 16, Vocab: 40,
			MaxPos: 32, Rows: 3, DTypeSize: 2},
		{DModel: 48, Layers: 2, DFFN: 70, Heads: 3, KVHeads: 3, HeadDim: 16, Vocab: 40,
			MaxPos: 32, Rows: 2, DTypeSize: 2},
		{DModel: 128, Layers: 5, DFFN: 256, Heads: 2, KVHeads: 2, HeadDim: 64, Vocab: 40,
			MaxPos: 32, Rows: 2, DTypeSize: 2},
	}
	strides = []units.Bytes{0, 512, 0, 0}
)

// weights are a model that is packed and open.
type weights struct {
	model   *model.Weights
	geo     layout.Geometry
	file    []byte   // the image
	bundles [][]byte // by layer
}

// models makes the models once.
var models = sync.OnceValues(func() (list []*weights, err error) {
	dir, err := os.MkdirTemp("", "windrow-world")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for i, shape := range shapes {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := model.Synth(context.Background(), shape, "world", uint64(i+1), path,
			model.SynthOptions{Stride: strides[i], ActiveShare: .2}); err != nil {
			return nil, err
		}
		w, err := openModel(path)
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
})

func openModel(path string) (*weights, error) {
	image, err := model.OpenImage(context.Background(), path)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	w := &weights{geo: image.Geometry()}
	if w.model, err = image.Weights(context.Background()); err != nil {
		return nil, err
	}
	for l := range image.Shape.Layers {
		data := make([]byte, image.LayerBytes())
		if err := image.Bundles(l, data); err != nil {
			return nil, err
		}
		w.bundles = append(w.bundles, data)
	}
	w.file, err = os.ReadFile(path)
	return w, err
}

// step is one call of the engine.
type step struct {
	reset  bool
	rewind int // the first sequence goes back to this position; -1 = it does not
	tokens []engine.Token

	logits [][]uint32  // of a dense engine, as bits
	need   []mask.Mask // by layer: what the tokens need together
}

// play draws the steps of a case, and has a dense engine run them.
func (c *Case) play(w *weights) ([]step, error) {
	steps := c.steps(w.model.Shape)
	if c.Script.Masks == True {
		if err := c.trueMasks(w, steps); err != nil {
			return nil, err
		}
	}
	return steps, c.dense(w, steps, c.Script.Masks)
}

// steps draws the tokens.
func (c *Case) steps(s model.Shape) []step {
	d := rng.Stream(c.Seed, "world/tokens")
	var list []step
	for range max(c.Script.Rounds, 1) {
		next := make([]int, c.Script.Sequences)
		random := newRandomMasks(c.Script.Share, s)
		for i := range c.Script.Steps {
			st := step{reset: i == 0, rewind: -1}
			if c.Script.Rewinds && next[0] > 1 && d.IntN(4) == 0 {
				next[0] = d.IntN(next[0])
				st.rewind = next[0]
			}
			for range 1 + d.IntN(c.Script.Batch) {
				seq := d.IntN(c.Script.Sequences)
				if next[seq] == s.MaxPos {
					continue
				}
				t := engine.Token{Seq: seq, SeqID: seq, Pos: next[seq],
					ID: uint32(d.IntN(s.Vocab)), Prefill: i == 0}
				if c.Script.Masks == Random {
					t.Masks = random.next(d)
				}
				next[seq]++
				st.tokens = append(st.tokens, t)
			}
			if len(st.tokens) > 0 {
				list = append(list, st)
			}
		}
	}
	return list
}

// randomMasks are masks in which units stay for some tokens.
type randomMasks struct {
	share float64
	units int
	masks []mask.Mask
	begun bool
}

func newRandomMasks(share float64, s model.Shape) *randomMasks {
	return &randomMasks{share: share, units: s.DFFN, masks: mask.NewLayers(s.Layers, s.DFFN)}
}

func (r *randomMasks) next(d *rand.Rand) []mask.Mask {
	var list []mask.Mask
	for _, m := range r.masks {
		for u := range uint32(r.units) {
			if r.begun && d.IntN(3) > 0 {
				continue
			}
			if m.Clear(u); d.Float64() < r.share {
				m.Set(u)
			}
		}
		list = append(list, slices.Clone(m))
	}
	r.begun = true
	return list
}

// trueMasks gives every token the mask of a dense run, and some units more.
func (c *Case) trueMasks(w *weights, steps []step) error {
	d := rng.Stream(c.Seed, "world/true")
	seen := &recorder{}
	err := c.resident(w, steps, seen, engine.Predictors{}, func(st *step, _ [][]float32) {
		for i := range st.tokens {
			st.tokens[i].Masks = seen.active[i]
			for _, m := range seen.active[i] {
				for range d.IntN(3) {
					m.Set(uint32(d.IntN(w.model.Shape.DFFN)))
				}
			}
		}
		seen.active = nil
	})
	return err
}

// dense runs the steps with all rows in memory: the logits that rows on flash must give. With true
// masks the engine computes all units, else those of the masks.
func (c *Case) dense(w *weights, steps []step, masks Masks) error {
	seen := &recorder{}
	run := slices.Clone(steps)
	if masks == True {
		for i := range run {
			run[i].tokens = slices.Clone(run[i].tokens)
			for j := range run[i].tokens {
				run[i].tokens[j].Masks = nil
			}
		}
	}
	at := 0
	err := c.resident(w, run, seen, c.predictors(), func(_ *step, logits [][]float32) {
		st := &steps[at]
		at++
		for _, one := range logits {
			st.logits = append(st.logits, bits(one))
		}
		st.need = mask.NewLayers(len(w.bundles), w.geo.Units)
		for i := range st.tokens {
			for l, m := range st.need {
				if masks == True {
					m.Or(st.tokens[i].Masks[l])
				} else {
					m.Or(seen.need[i][l])
				}
			}
		}
		seen.need = nil
	})
	return err
}

// resident runs steps with all rows in memory.
func (c *Case) resident(w *weights, steps []step, seen engine.Observer, p engine.Predictors,
	each func(*step, [][]float32)) error {
	rows, err := engine.NewResident(w.model, w.bundles, w.geo)
	if err != nil {
		return err
	}
	e, err := engine.New(w.model, rows, c.engineConfig(1, seen, p))
	if err != nil {
		return err
	}
	defer e.Close()
	for i := range steps {
		logits, err := steps[i].run(e)
		if err != nil {
			return err
		}
		each(&steps[i], logits)
	}
	return nil
}

// run gives a step to an engine.
func (s *step) run(e *engine.Engine) ([][]float32, error) {
	if s.reset {
		e.Reset()
	}
	if s.rewind >= 0 {
		e.Rewind(0, s.rewind)
	}
	return e.Step(s.tokens)
}

func (c *Case) engineConfig(threads int, o engine.Observer, p engine.Predictors) engine.Config {
	return engine.Config{Threads: threads, Sequences: c.Script.Sequences, Batch: c.Script.Batch,
		Observer: o, Schedule: c.Schedule.Kind,
		Predictors: func(*cpu.Pool) (engine.Predictors, error) { return p, nil }}
}

// recorder keeps what every token of a step needs, and which of its units are active, by layer.
type recorder struct{ need, active [][]mask.Mask }

func (r *recorder) Layer(ev *engine.LayerEvent) error {
	if ev.Layer == 0 {
		r.need, r.active = append(r.need, nil), append(r.active, nil)
	}
	r.need[ev.Entry] = append(r.need[ev.Entry], slices.Clone(ev.Need))
	r.active[ev.Entry] = append(r.active[ev.Entry], slices.Clone(ev.Active))
	return nil
}

func (r *recorder) Token(*engine.TokenEvent) error { return nil }

// predictors predict by a hash of the feature: units that need not be active.
func (c *Case) predictors() engine.Predictors {
	if c.Script.Masks != Predicted {
		return engine.Predictors{}
	}
	g := &guesser{share: c.Script.Share, units: shapes[c.Model].DFFN, seed: c.Seed}
	p := engine.Predictors{Layer: g}
	switch c.Schedule.Kind {
	case schedule.LookAhead:
		p.LookAhead = g
	case schedule.Token:
		p.Token = g
	}
	return p
}

type guesser struct {
	share float64
	units int
	seed  uint64
}

// Predict implements engine.Predictor.
func (g *guesser) Predict(layer int, feature []float32, need mask.Mask) error {
	h := fnv.New64a()
	for _, v := range feature {
		b := math.Float32bits(v)
		h.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24), byte(layer)})
	}
	d := rand.New(rand.NewPCG(g.seed, h.Sum64()))
	for u := range uint32(g.units) {
		if d.Float64() < g.share {
			need.Set(u)
		}
	}
	return nil
}

// PredictToken implements engine.TokenPredictor.
func (g *guesser) PredictToken(feature []float32, masks []mask.Mask) error {
	for l := 1; l < len(masks); l++ {
		if err := g.Predict(l, feature, masks[l]); err != nil {
			return err
		}
	}
	return nil
}

// trace has one token for each step. The simulator runs it, and memory is sized by it.
func (c *Case) trace(w *weights, steps []step) *traces.Memory {
	s := w.model.Shape
	m := &traces.Memory{Head: traces.Header{Layers: s.Layers, Units: s.DFFN,
		UnitBytes: w.geo.Record, Model: "world", Shape: traces.Shape(s), Seed: c.Seed}}
	seq, pos := uint32(0), uint32(0)
	for i := range steps {
		if steps[i].reset && i > 0 {
			seq, pos = seq+1, 0
		}
		m.List = append(m.List, traces.Token{Seq: seq, Pos: pos, Active: steps[i].need,
			ID: steps[i].tokens[0].ID, Phase: traces.PhaseOf(steps[i].tokens[0].Prefill)})
		pos++
	}
	return m
}

func bits(values []float32) []uint32 {
	list := make([]uint32, len(values))
	for i, v := range values {
		list[i] = math.Float32bits(v)
	}
	return list
}

// TestRandomMasksOverlap: neighbouring tokens share units, or no policy would have hits.
func TestRandomMasksOverlap(t *testing.T) {
	d := rng.Stream(1, "test")
	r := newRandomMasks(.3, shapes[0])
	a := r.next(d)
	b := r.next(d)
	if both := a[0].CountAnd(b[0]); both < 5 || both == a[0].Count() {
		t.Fatalf("two tokens share %d units of %d", both, a[0].Count())
	}
}
