package engine

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/kernels/cpu"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// plain is a model computed in float64, position by position, caching keys and values only: the
// reference for the engine's features. It shares the order of rotary pairs and the activation
// functions with the engine, which the golden logits pin.
type plain struct {
	w       *model.Weights
	bundles [][]byte
	keys    [][][]float64 // by layer and position
	vals    [][][]float64
}

// featureContext is the context of the engine that the twin is compared with.
const featureContext = 8

// layerFeatures are the features of one layer, by kind.
type layerFeatures [FeatureKinds][]float64

func decoded(f ref.Format, raw []byte, n int) []float64 {
	row := make([]float32, n)
	f.Decode(row, raw[:f.Size(n)])
	return wide(row)
}

func wide(list []float32) []float64 {
	out := make([]float64, len(list))
	for i, v := range list {
		out[i] = float64(v)
	}
	return out
}

func plus(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i, v := range b {
		out[i] += v
	}
	return out
}

func inner(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func (p *plain) row(m *model.Matrix, r int) []float64 {
	return decoded(p.w.Resident, m.Data[r*p.w.Resident.Size(m.Cols):], m.Cols)
}

func (p *plain) linear(l *model.Linear, x []float64) []float64 {
	y := make([]float64, l.W.Rows)
	for r := range y {
		y[r] = inner(p.row(&l.W, r), x)
		if l.B != nil {
			y[r] += float64(l.B[r])
		}
	}
	return y
}

func (p *plain) norm(x []float64, n *model.Norm, rms bool) []float64 {
	mean, square := 0.0, 0.0
	if !rms {
		for _, v := range x {
			mean += v / float64(len(x))
		}
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v - mean) / math.Sqrt(square+p.w.Arch.Epsilon) * float64(n.W[i])
		if !rms {
			y[i] += float64(n.B[i])
		}
	}
	return y
}

// heads splits a vector, norms each head if the model does, and rotates it.
func (p *plain) heads(l int, x []float64, n *model.Norm, pos int) [][]float64 {
	var list [][]float64
	for head := range slices.Chunk(x, p.w.Shape.HeadDim) {
		if p.w.Arch.QKNorm && n != nil {
			head = p.norm(head, n, p.w.Arch.RMSNorm)
		}
		head = slices.Clone(head)
		rotary := p.w.Arch.Rotary
		if p.w.Arch.LocalRotary.Dim > 0 && p.w.Arch.WindowOf(l) > 0 {
			rotary = p.w.Arch.LocalRotary
		}
		if angles, size := rotary.Frequencies(featureContext), rotary.Size(); n != nil {
			for i, angle := range angles {
				sin, cos := math.Sincos(float64(pos) * angle)
				sin, cos = sin*size, cos*size
				a, b := head[i], head[i+len(angles)]
				head[i], head[i+len(angles)] = a*cos-b*sin, b*cos+a*sin
			}
		}
		list = append(list, head)
	}
	return list
}

// attention is the output of the attention block for h, with its output projection.
func (p *plain) attention(l, pos int, h []float64) []float64 {
	w, s := &p.w.Layers[l], p.w.Shape
	queries := p.heads(l, p.linear(&w.Q, h), &w.QNorm, pos)
	p.keys[l] = append(p.keys[l],
		slices.Concat(p.heads(l, p.linear(&w.K, h), &w.KNorm, pos)...))
	p.vals[l] = append(p.vals[l], p.linear(&w.V, h))
	first := 0
	if window := p.w.Arch.WindowOf(l); window > 0 {
		first = max(0, pos-window+1)
	}
	var all []float64
	for i, q := range queries {
		at := i / (s.Heads / s.KVHeads) * s.HeadDim
		total, sum := 0.0, make([]float64, s.HeadDim)
		for t := first; t <= pos; t++ {
			score := inner(q, p.keys[l][t][at:at+s.HeadDim]) * p.w.Arch.ScaleOfQueries()
			if limit := p.w.Arch.ScoreCap; limit > 0 {
				score = limit * math.Tanh(score/limit)
			}
			weight := math.Exp(score)
			total += weight
			for j := range sum {
				sum[j] += weight * p.vals[l][t][at+j]
			}
		}
		for j := range sum {
			sum[j] /= total
		}
		all = append(all, sum...)
	}
	return p.linear(&w.O, all)
}

// ffn is the feed-forward part of h over all units.
func (p *plain) ffn(l int, h []float64) []float64 {
	w, s, f := &p.w.Layers[l], p.w.Shape, p.w.Bundles
	out := make([]float64, s.DModel)
	if w.DownBias != nil {
		out = wide(w.DownBias)
	}
	part, record := f.Size(s.DModel), p.w.RecordBytes()
	for u := range s.DFFN {
		raw := p.bundles[l][u*record:]
		rows := make([][]float64, s.Rows)
		for i := range rows {
			rows[i] = decoded(f, raw[i*part:], s.DModel)
		}
		up := inner(rows[s.Rows-2], h) + float64(upBias(w, u))
		value := float64(activation(p.w.Arch.Activation, float32(up)))
		if s.Rows == 3 {
			gate := inner(rows[0], h)
			if w.GateBias != nil {
				gate += float64(w.GateBias[u])
			}
			if p.w.Arch.Activation.Kind == model.DReLU {
				up = max(up, 0)
			}
			value = float64(activation(p.w.Arch.Activation, float32(gate))) * up
		}
		for i, v := range rows[s.Rows-1] {
			out[i] += value * v
		}
	}
	return out
}

// features computes one position.
func (p *plain) features(id uint32, pos int) (list []layerFeatures) {
	a := &p.w.Arch
	x := p.row(&p.w.Embed, int(id))
	if a.EmbedScale != 0 {
		for i := range x {
			x[i] *= a.EmbedScale
		}
	}
	if a.Embed != p.w.Shape.DModel {
		x = p.linear(&model.Linear{W: p.w.In}, x)
	}
	if a.Positions {
		x = plus(x, p.row(&p.w.Pos, pos+positionOffset))
	}
	for l := range p.w.Layers {
		w := &p.w.Layers[l]
		var f layerFeatures
		switch {
		case a.PostNorm:
			f[AttentionOutput] = p.attention(l, pos, x)
			x = p.norm(plus(x, f[AttentionOutput]), &w.AttnNorm, a.RMSNorm)
			f[FFNInput] = x
			x = p.norm(plus(x, p.ffn(l, x)), &w.FFNNorm, a.RMSNorm)
		case a.Parallel:
			normed := p.norm(x, &w.AttnNorm, a.RMSNorm)
			f[Residual], f[AttentionOutput], f[FFNInput] = x, p.attention(l, pos, normed), normed
			if !a.SharedNorm {
				f[FFNInput] = p.norm(x, &w.FFNNorm, a.RMSNorm)
			}
			x = plus(plus(x, f[AttentionOutput]), p.ffn(l, f[FFNInput]))
		default:
			f[AttentionOutput] = p.attention(l, pos, p.norm(x, &w.AttnNorm, a.RMSNorm))
			out := f[AttentionOutput]
			if a.OutNorms {
				out = p.norm(out, &w.AttnOutNorm, a.RMSNorm)
			}
			f[Residual] = plus(x, out)
			f[FFNInput] = p.norm(f[Residual], &w.FFNNorm, a.RMSNorm)
			if out = p.ffn(l, f[FFNInput]); a.OutNorms {
				out = p.norm(out, &w.FFNOutNorm, a.RMSNorm)
			}
			x = plus(f[Residual], out)
		}
		list = append(list, f)
	}
	return list
}

// shown keeps the features of a run, by token in the order in which they end and by layer.
type shown struct {
	kind   FeatureKind
	wrong  int // events of another kind
	layers map[int][][]float32
	list   [][][]float32
	pos    []int
}

func (o *shown) Layer(ev *LayerEvent) error {
	if ev.FeatureKind != o.kind {
		o.wrong++
	}
	o.layers[ev.Entry] = append(o.layers[ev.Entry], slices.Clone(ev.Feature))
	return nil
}

func (o *shown) Token(ev *TokenEvent) error {
	o.list, o.pos = append(o.list, o.layers[ev.Entry]), append(o.pos, ev.Token.Pos)
	o.layers[ev.Entry] = nil
	return nil
}

func newShown(kind FeatureKind) *shown { return &shown{kind: kind, layers: map[int][][]float32{}} }

// TestFeaturesOfEveryFamily compares each kind of feature of each family with the plain twin, token
// by token and in steps of several tokens.
func TestFeaturesOfEveryFamily(t *testing.T) {
	for _, name := range familyForms(t) {
		t.Run(name, func(t *testing.T) {
			w, bundles, _, err := model.LoadFolder(t.Context(), filepath.Join(familiesDir, name))
			if err != nil {
				t.Fatal(err)
			}
			ids := []uint32{5, 40, 17, 62, 9, 33}
			twin := &plain{w: w, bundles: bundles, keys: make([][][]float64, w.Shape.Layers),
				vals: make([][][]float64, w.Shape.Layers)}
			var want [][]layerFeatures
			for pos, id := range ids {
				want = append(want, twin.features(id, pos))
			}
			rows, err := NewResident(w, bundles, geometry(w))
			if err != nil {
				t.Fatal(err)
			}
			for kind := range FeatureKind(FeatureKinds) {
				for _, chunk := range []int{1, 4} {
					seen := newShown(kind)
					e, err := New(w, rows, Config{Threads: 2, Context: featureContext, Batch: chunk,
						Observer: seen, FeatureKind: kind})
					if w.Arch.PostNorm && kind == Residual {
						if err == nil || !strings.Contains(err.Error(), "use ffn_input") {
							t.Fatalf("norms behind the additions have no residual in front of a "+
								"norm: %v", err)
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					for from := 0; from < len(ids); from += chunk {
						var step []Token
						for pos := from; pos < min(from+chunk, len(ids)); pos++ {
							step = append(step, Token{Pos: pos, ID: ids[pos]})
						}
						if _, err := e.Step(step); err != nil {
							t.Fatal(err)
						}
					}
					e.Close()
					if seen.wrong != 0 || len(seen.list) != len(ids) {
						t.Fatalf("%v: %d events of another kind, %d tokens", kind, seen.wrong,
							len(seen.list))
					}
					sameFeatures(t, fmt.Sprintf("%v in steps of %d", kind, chunk), seen, want)
				}
			}
		})
	}
}

// sameFeatures allows 1e-3 of the largest number of a feature: the engine computes in float32.
func sameFeatures(t *testing.T, what string, seen *shown, want [][]layerFeatures) {
	t.Helper()
	for i, layers := range seen.list {
		for l, got := range layers {
			exact := want[seen.pos[i]][l][seen.kind]
			largest, apart := 0.0, 0.0
			for j, v := range exact {
				largest, apart = max(largest, math.Abs(v)), max(apart, math.Abs(v-float64(got[j])))
			}
			if !(apart <= 1e-3*largest) || largest == 0 {
				t.Errorf("%s: position %d, layer %d: apart by %.1e, the largest number is %.1e",
					what, seen.pos[i], l, apart, largest)
			}
		}
	}
}

// listener is a predictor that predicts every unit and records its inputs.
type listener struct {
	units int
	heard map[int][][]float32 // by layer
}

func (p *listener) Predict(layer int, feature []float32, need mask.Mask) error {
	p.heard[layer] = append(p.heard[layer], slices.Clone(feature))
	need.Fill(p.units)
	return nil
}

func (p *listener) PredictToken(feature []float32, masks []mask.Mask) error {
	for l := 1; l < len(masks); l++ {
		if err := p.Predict(0, feature, masks[l]); err != nil {
			return err
		}
		if l > 1 {
			p.heard[0] = p.heard[0][:len(p.heard[0])-1]
		}
	}
	return nil
}

// TestPredictorsAreHandedTheirFeature lets a predictor of each kind listen under every schedule,
// while an observer is shown another kind, or none.
func TestPredictorsAreHandedTheirFeature(t *testing.T) {
	w, bundles, geo := tales(t)
	rows, err := NewResident(w, bundles, geo)
	if err != nil {
		t.Fatal(err)
	}
	ids := []uint32{3, 50, 7, 21}
	run := func(cfg Config) {
		t.Helper()
		cfg.Threads, cfg.Context = 1, 8
		e, err := New(w, rows, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for pos, id := range ids {
			if _, err := e.Forward(Token{Pos: pos, ID: id}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for kind := range FeatureKind(FeatureKinds) {
		want := newShown(kind)
		run(Config{Observer: want, FeatureKind: kind})
		for _, when := range []schedule.Kind{schedule.Demand, schedule.LookAhead, schedule.Token} {
			for _, observed := range []bool{false, true} {
				p := &listener{units: w.Shape.DFFN, heard: map[int][][]float32{}}
				cfg := Config{Schedule: when, Predictors: func(*cpu.Pool) (Predictors, error) {
					switch when {
					case schedule.LookAhead:
						return Predictors{LookAhead: p, FeatureKind: kind}, nil
					case schedule.Token:
						return Predictors{Token: p, FeatureKind: kind}, nil
					}
					return Predictors{Layer: p, FeatureKind: kind}, nil
				}}
				if observed {
					cfg.Observer, cfg.FeatureKind = newShown(0), (kind+1)%FeatureKind(FeatureKinds)
				}
				run(cfg)
				layers := map[schedule.Kind]int{schedule.Demand: w.Shape.Layers,
					schedule.LookAhead: w.Shape.Layers - 1,
					schedule.Token:     1}[when]
				if len(p.heard) != layers {
					t.Errorf("%v, schedule %v: asked in %d layers, want %d", kind, when,
						len(p.heard), layers)
				}
				for l := range layers {
					for pos := range ids {
						if !slices.Equal(p.heard[l][pos], want.list[pos][l]) {
							t.Fatalf("%v, schedule %v, observed %v: layer %d, position %d was "+
								"handed something else", kind, when, observed, l, pos)
						}
					}
				}
			}
		}
	}
}

// countsOnly looks at nothing that is computed.
type countsOnly struct{ Observer }

func (countsOnly) CountsOnly() {}

// A predictor of the feed-forward input, or no predictor, causes no copies.
func TestFeaturesAreKeptOnlyWhenWanted(t *testing.T) {
	w, bundles, geo := tales(t)
	rows, err := NewResident(w, bundles, geo)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(w, rows, Config{Threads: 1, Context: 8, FeatureKind: Residual})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if e.kept != ([FeatureKinds]bool{}) {
		t.Errorf("without an observer %v are kept", e.kept)
	}
	e.Observe(newShown(Residual))
	if want := [FeatureKinds]bool{Residual: true}; e.kept != want {
		t.Errorf("for an observer %v are kept", e.kept)
	}
	e.Observe(countsOnly{newShown(Residual)})
	if e.kept != ([FeatureKinds]bool{}) {
		t.Errorf("for an observer of counters %v are kept", e.kept)
	}
	plainer, err := New(w, rows, Config{Threads: 1, Context: 8, Observer: newShown(FFNInput)})
	if err != nil {
		t.Fatal(err)
	}
	defer plainer.Close()
	if plainer.kept != ([FeatureKinds]bool{}) {
		t.Errorf("for the input %v are kept", plainer.kept)
	}
}

func TestParseFeatureKind(t *testing.T) {
	for kind := range FeatureKind(FeatureKinds) {
		if got, err := ParseFeatureKind(kind.String()); err != nil || got != kind {
			t.Errorf("%v is read as %v, %v", kind, got, err)
		}
	}
	if _, err := ParseFeatureKind("attention"); err == nil || !strings.Contains(err.Error(),
		"attention_output and residual") {
		t.Errorf("an unknown kind: %v", err)
	}
	w, bundles, geo := tales(t)
	rows, err := NewResident(w, bundles, geo)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(w, rows, Config{FeatureKind: 7}); err == nil {
		t.Error("feature kind 7 gave no error")
	}
}
