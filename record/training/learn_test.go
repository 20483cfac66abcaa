package training

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/tell"
	"github.com/windrow-sim/windrow/kernels/ref"
	"github.com/windrow-sim/windrow/traces"
)

const (
	layers, unitsOf, width = 3, 24, 8
	tokens                 = 1000
)

// madeUp writes a trace whose units follow from the features: unit u of a layer is active where the
// feature points the way of a vector of its own. Traces of other seeds are other texts of the same
// model. change edits the header.
func madeUp(t *testing.T, name string, seed uint64, n int, change func(h *traces.Header)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".trace.arrow")
	head := traces.Header{SchemaVersion: traces.SchemaVersion, Tool: "test",
		UnitKind: traces.Neuron, Layers: layers, Units: unitsOf, UnitBytes: 4096, Model: "made up",
		ModelSHA256: "ab", Shape: traces.Shape{DModel: width, Layers: layers, DFFN: unitsOf,
			Rows: 2, DTypeSize: 2}, Activation: "relu", DType: "f16", Sampling: "greedy",
		FeatureKind: traces.FFNInput, FeatureWidth: width, Host: map[string]string{"os": "test"}}
	if change != nil {
		change(&head)
	}
	w, err := traces.Create(path, head, traces.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ways := rng.Stream(1, "ways")
	way := make([]float64, layers*unitsOf*width)
	for i := range way {
		way[i] = ways.NormFloat64()
	}
	random := rng.Stream(seed, "features")
	for i := range n {
		tok := traces.Token{Seq: uint32(i / 20), Pos: uint32(i % 20), Phase: traces.Decode}
		// All layers of a token see much the same, so that one tells of the next.
		feature, at := make([]float64, width), make([]byte, 0, 2*width)
		for k := range feature {
			feature[k] = random.NormFloat64()
			at = binary.LittleEndian.AppendUint16(at, ref.F32ToF16(float32(feature[k])))
		}
		for l := range layers {
			active, sizes := mask.New(unitsOf), []byte{}
			for u := range unitsOf {
				dot := 0.0
				for k, v := range feature {
					dot += v * way[(l*unitsOf+u)*width+k]
				}
				if dot > 3 {
					active.Set(uint32(u))
					sizes = append(sizes, 1)
				}
			}
			tok.Active = append(tok.Active, active)
			tok.Feature = append(tok.Feature, at)
			if head.HasMagnitude {
				tok.Magnitude = append(tok.Magnitude, sizes)
			}
		}
		if err := w.Append(&tok); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// quick is a configuration that learns a made-up trace in a moment.
func quick(t *testing.T, kind string) Config {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Kind, cfg.Epochs, cfg.Centroids, cfg.Workers = kind, 300, 8, 2
	cfg.Trace, cfg.Test = madeUp(t, "learn", 1, tokens, nil), madeUp(t, "judge", 2, 200, nil)
	cfg.Out = filepath.Join(t.TempDir(), "p"+Suffix)
	rank := width
	if kind == LowRank {
		cfg.Rank = &rank
	}
	return cfg
}

// TestLowRankLearns: a predictor of a made-up trace finds most units of texts that it has not seen,
// and Judge reports the same of its file as the training.
func TestLowRankLearns(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		cfg := quick(t, LowRank)
		cfg.Ahead = ahead
		var speeds []*Named
		cfg.Speeds = Speeds{Window: 3, Simulate: func(n *Named) (*SimulatedSpeed, error) {
			speeds = append(speeds, n)
			namesUnits(t, n, ahead)
			return &SimulatedSpeed{Device: "d", Tokens: n.Tokens(), Named: 2, True: 4}, nil
		}}
		result, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		r := result.LowRank
		if len(r.Texts) != 2 || r.Trained+r.HeldOut != tokens || r.HeldOut == 0 ||
			r.Ahead != ahead || r.Texts[1].Text != "judge.trace.arrow" {
			t.Fatalf("%+v", r)
		}
		rows := layers
		if ahead {
			rows--
		}
		for i, text := range r.Texts {
			if len(text.Layers) != rows || text.Total.FalseNegative > 0.1 ||
				text.Total.FalsePositive > 0.15 {
				t.Errorf("ahead %v, %s: FN %.3f, FP %.3f in %d layers", ahead, text.Text,
					text.Total.FalseNegative, text.Total.FalsePositive, len(text.Layers))
			}
			if text.Speed == nil || text.Speed.Sim.Tokens != speeds[i].Tokens() ||
				text.Speed.Window != 3 || speeds[i].Rank != width {
				t.Errorf("%s: speed %+v", text.Text, text.Speed)
			}
		}
		if first := r.Texts[0].Layers[0].Layer; first != map[bool]int{true: 1}[ahead] {
			t.Errorf("ahead %v: the first row is of layer %d", ahead, first)
		}
		left, err := os.ReadDir(filepath.Dir(cfg.Out))
		if err != nil || len(left) != 1 {
			t.Errorf("besides the predictor %v is left, %v", left, err)
		}
		judged, err := Judge(t.Context(), cfg.Out, Config{Trace: cfg.Test, Speeds: cfg.Speeds})
		if err != nil || !reflect.DeepEqual(judged.LowRank.Texts[0].Layers, r.Texts[1].Layers) {
			t.Errorf("%v, judged %+v", err, judged)
		}
		doc := result.Document()
		if err := doc.Check(); err != nil || !strings.HasPrefix(doc.Headline, "FN ") ||
			!strings.Contains(doc.Headline, "judge.trace.arrow") || len(doc.Sections) != 3 {
			t.Errorf("%v: %q with %d sections", err, doc.Headline, len(doc.Sections))
		}
	}
}

// namesUnits: the tokens that speeds are asked of have the true masks of the trace and the named
// ones, which are mostly the same. Layer 0, which nothing looks ahead to, keeps the true masks.
func namesUnits(t *testing.T, n *Named, ahead bool) {
	t.Helper()
	var tok traces.Token
	var same [layers]int
	all := n.Tokens() * unitsOf
	for i := range n.Tokens() {
		if err := n.Token(i, &tok); err != nil {
			t.Fatal(err)
		}
		for l := range tok.Active {
			for u := range unitsOf {
				if tok.Predicted[l].Has(uint32(u)) == tok.Active[l].Has(uint32(u)) {
					same[l]++
				}
			}
		}
	}
	for l, n := range same {
		if kept := ahead && l == 0; n < all*8/10 || kept != (n == all) {
			t.Errorf("ahead %v: of %d units of layer %d, %d are named as they are", ahead, all, l,
				n)
		}
	}
	if !n.Header().HasPredicted {
		t.Error("the header does not say that masks are named")
	}
}

// TestCentroidsLearn: the sets of centroids are better than chance, and Judge agrees.
func TestCentroidsLearn(t *testing.T) {
	cfg := quick(t, Centroid)
	cfg.Centroids = 32
	result, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := result.Centroid
	if len(r.Texts) != 2 || r.Centroids != 32 || r.KMax < 2 || r.KMax >= unitsOf {
		t.Fatalf("%+v", r)
	}
	for _, text := range r.Texts {
		set := text.Report.Mean.Sets[0]
		if chance := float64(r.KMax) / unitsOf; set.Predicted.Recall < chance+0.1 ||
			set.Predicted.Recall > set.Oracle.Recall {
			t.Errorf("%s: recall %.3f, by chance %.3f, at best %.3f", text.Text,
				set.Predicted.Recall, chance, set.Oracle.Recall)
		}
	}
	judged, err := Judge(t.Context(), cfg.Out, Config{Trace: cfg.Test})
	if err != nil || !reflect.DeepEqual(judged.Centroid.Texts[0].Report.Mean,
		r.Texts[1].Report.Mean) {
		t.Errorf("%v, judged %+v", err, judged)
	}
	if doc := result.Document(); doc.Check() != nil || len(doc.Sections) != 2 ||
		!strings.Contains(doc.Sections[1].Note, "FN ") {
		t.Errorf("%v, %+v", doc.Check(), doc.Sections)
	}
}

// TestTracesThatDoNotBelong: what cannot be learned or judged is refused with the field that says
// so, and nothing is written.
func TestTracesThatDoNotBelong(t *testing.T) {
	other := func(change func(h *traces.Header)) string {
		return madeUp(t, "other", 3, 200, change)
	}
	zero, many := 0, 100
	for name, c := range map[string]struct {
		change func(c *Config)
		kind   error
		says   string
	}{
		"itself": {func(c *Config) { c.Test = c.Trace }, refusal.ErrConfig, "<Test>"},
		"another model": {func(c *Config) {
			c.Test = other(func(h *traces.Header) { h.ModelSHA256, h.Model = "cd", "strange" })
		}, refusal.ErrConfig, "made up and strange"},
		"another feature": {func(c *Config) {
			c.Test = other(func(h *traces.Header) { h.FeatureKind = traces.FeatureKinds()[1] })
		}, refusal.ErrConfig, "<FeatureKind>"},
		"too short": {func(c *Config) { c.Trace = madeUp(t, "short", 1, 40, nil) },
			refusal.ErrInput, "40 tokens"},
		"rank 0":   {func(c *Config) { c.Rank = &zero }, refusal.ErrConfig, "<Rank> 0"},
		"rank 100": {func(c *Config) { c.Rank = &many }, refusal.ErrConfig, "from 1 to 8"},
		"k max": {func(c *Config) { c.Kind, c.KMax = Centroid, &many }, refusal.ErrConfig,
			"<KMax>"},
		"no sizes": {func(c *Config) {
			d, err := devicemodels.Preset("m1-max")
			if err != nil {
				t.Fatal(err)
			}
			c.Device = d
		}, refusal.ErrInput, "<Magnitudes>"},
	} {
		cfg := quick(t, LowRank)
		c.change(&cfg)
		_, err := Run(t.Context(), cfg)
		if err == nil {
			t.Errorf("%s was taken", name)
			continue
		}
		text := refusal.Text(err, func(field string) string { return "<" + field + ">" })
		if !errors.Is(err, c.kind) || !strings.Contains(text, c.says) {
			t.Errorf("%s: %v", name, text)
		}
		if left, _ := os.ReadDir(filepath.Dir(cfg.Out)); len(left) != 0 {
			t.Errorf("%s left %v", name, left)
		}
	}
}

// TestJudgeSaysWhatItJudgesBy: the trace that was learned from is no fair judge, one of another
// feature none at all.
func TestJudgeSaysWhatItJudgesBy(t *testing.T) {
	cfg := quick(t, LowRank)
	cfg.Epochs = 1
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	var heard []string
	judge := Config{Trace: cfg.Trace, Tell: tell.Tell{Note: func(text string) {
		heard = append(heard, text)
	}}}
	if _, err := Judge(t.Context(), cfg.Out, judge); err != nil ||
		!slices.ContainsFunc(heard, func(s string) bool {
			return strings.Contains(s, "was trained on this trace")
		}) {
		t.Errorf("%v, %q", err, heard)
	}
	judge.Trace = madeUp(t, "other", 3, 200, func(h *traces.Header) {
		h.FeatureKind = traces.FeatureKinds()[1]
	})
	if _, err := Judge(t.Context(), cfg.Out, judge); !errors.Is(err, refusal.ErrConfig) ||
		!strings.Contains(err.Error(), "predicts from") {
		t.Errorf("%v", err)
	}
	judge.Trace = madeUp(t, "strange", 3, 200, func(h *traces.Header) { h.ModelSHA256 = "cd" })
	if _, err := Judge(t.Context(), cfg.Out, judge); !errors.Is(err, refusal.ErrConfig) ||
		!strings.Contains(err.Error(), "trained for the model") {
		t.Errorf("%v", err)
	}
	if _, err := Judge(t.Context(), cfg.Trace, judge); !errors.Is(err, refusal.ErrInput) {
		t.Errorf("a trace as predictor: %v", err)
	}
}
