package predictor

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// small settings that learn the planted rule in a moment.
func small() Settings {
	return Settings{Ranks: []int{12}, Epochs: 12, Batch: 16, LearningRate: 0.01, HoldOut: 0.2,
		Seed: 7, Feature: FFNInput}
}

// train makes a predictor and returns the bytes of its file.
func train(t *testing.T, s Samples, opt Options) (*Predictor, *Report, []byte) {
	t.Helper()
	p, rep, err := Train(t.Context(), s, opt)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "p.safetensors")
	if err := p.Save(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return p, rep, data
}

// TestPlantedRule trains on a rule that a predictor of this rank can express exactly, and tests on
// samples of the same rule.
func TestPlantedRule(t *testing.T) {
	m := planted(800, 2, 24, 100)
	for _, kind := range []Kind{ReLU, Linear} {
		set := small()
		set.Kind, set.TargetFN = kind, 0.001
		rest := *m
		rest.n = 600 // the last 200 are not seen at all
		p, rep, _ := train(t, &rest, Options{Settings: set})
		scores, err := Evaluate(t.Context(), p, m, 600, 800, 0)
		if err != nil {
			t.Fatal(err)
		}
		for l, s := range scores {
			if s.FalseNegatives() > 0.005 || s.FalsePositives() > 0.005 || s.ActiveShare() < 0.05 {
				t.Errorf("%s, layer %d: %.3g false negatives, %.3g false positives of %.3g active",
					kind, l, s.FalseNegatives(), s.FalsePositives(), s.ActiveShare())
			}
			if s.Loss > 0.05 || rep.Layers[l].Loss > 0.05 {
				t.Errorf("%s, layer %d: a loss of %.3g, held out %.3g", kind, l, s.Loss,
					rep.Layers[l].Loss)
			}
		}
		if rep.Trained != 480 || rep.HeldOut != 120 {
			t.Errorf("%d trained, %d held out", rep.Trained, rep.HeldOut)
		}
	}
}

// TestFeatureIsKept trains on the planted rule under the name of each kind, ahead or not, finds the
// kind in the file, and the rule learned.
func TestFeatureIsKept(t *testing.T) {
	for _, kind := range []Feature{FFNInput, AttentionOutput, Residual} {
		for _, f := range []Feature{kind, kind.ForNextLayer()} {
			set := small()
			set.Feature, set.TargetFN = f, 0.001
			_, rep, data := train(t, planted(600, 1, 24, 100), Options{Settings: set})
			if s := rep.Layers[0].HeldOut; s.FalseNegatives() > 0.005 ||
				s.FalsePositives() > 0.005 {
				t.Errorf("%q: FN %.3g, FP %.3g", f, s.FalseNegatives(), s.FalsePositives())
			}
			path := filepath.Join(t.TempDir(), "p.safetensors")
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
			p, err := Load(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if got, ahead := p.Facts().Feature.Kind(); got != kind || ahead != (f != kind) {
				t.Errorf("trained on %q, the file says %q, ahead %v", f, got, ahead)
			}
		}
	}
}

// noisy is the planted rule with a share of the elements inverted, so that no threshold is perfect.
func noisy(n, layers int) *plain {
	m := planted(n, layers, 16, 80)
	for i := range m.values {
		if i*7919%29 == 0 {
			if m.values[i] != 0 {
				m.values[i] = 0
			} else {
				m.values[i] = 0.25
			}
		}
	}
	return m
}

func TestTargetIsMet(t *testing.T) {
	m := noisy(300, 2)
	last := math.Inf(1)
	for _, target := range []float64{0.02, 0.1, 0.3} {
		set := small()
		set.Epochs, set.TargetFN = 4, target
		_, rep, _ := train(t, m, Options{Settings: set})
		for l, r := range rep.Layers {
			if fn := r.HeldOut.FalseNegatives(); fn > target || fn < target/2 {
				t.Errorf("target %g, layer %d: %g false negatives on the held-out samples", target,
					l, fn)
			}
		}
		if fp := rep.Layers[0].HeldOut.FalsePositives(); fp > last {
			t.Errorf("target %g: %g false positives, more than the %g of a stricter one", target,
				fp, last)
		} else {
			last = fp
		}
	}
}

// TestDefaultTarget checks the share of false negatives without any wish.
func TestDefaultTarget(t *testing.T) {
	set := small()
	set.Epochs = 2
	_, rep, _ := train(t, noisy(200, 1), Options{Settings: set})
	if fn := rep.Layers[0].HeldOut.FalseNegatives(); fn > DefaultTarget || fn < DefaultTarget/2 {
		t.Errorf("%g false negatives by default, want just below %g", fn, DefaultTarget)
	}
}

func TestFixedThresholds(t *testing.T) {
	set := small()
	set.Epochs, set.Thresholds = 1, []float64{0.7, 0.4}
	p, rep, _ := train(t, noisy(60, 2), Options{Settings: set})
	for l, want := range set.Thresholds {
		if math.Abs(p.Threshold(l)-want) > 1e-6 || rep.Layers[l].Threshold != p.Threshold(l) {
			t.Errorf("layer %d: threshold %g, reported %g, want %g", l, p.Threshold(l),
				rep.Layers[l].Threshold, want)
		}
	}
}

// TestCostMovesErrors trains with costs: the dearer a false positive, the fewer there are, and the
// missed magnitude is small.
func TestCostMovesErrors(t *testing.T) {
	m := noisy(400, 1)
	last := int64(math.MaxInt64)
	for _, fp := range []Cost{{FalsePositive: 100, FalseNegative: 10000}, {FalsePositive: 1000,
		FalseNegative: 1000}, {FalsePositive: 10000, FalseNegative: 1000}} {
		set := small()
		set.Ranks, set.Cost = []int{3}, &fp
		_, rep, _ := train(t, m, Options{Settings: set})
		s := rep.Layers[0].HeldOut
		if s.Spurious >= last {
			t.Errorf("%+v: %d false positives, not fewer than the %d at a lower price", fp,
				s.Spurious, last)
		}
		last = s.Spurious
		if s.Missed > 0 && s.LostMagnitude() >= s.FalseNegatives() {
			t.Errorf("%+v: %g of the units are missed, with %g of the activation: not the small "+
				"ones", fp, s.FalseNegatives(), s.LostMagnitude())
		}
	}
}

func TestWorkersDoNotMatter(t *testing.T) {
	m := noisy(150, 5)
	set := small()
	set.Ranks, set.Epochs = []int{3, 9, 0, 5, 7}, 3
	_, rep, want := train(t, m, Options{Settings: set, Workers: 1})
	for _, workers := range []int{2, 5, 8} {
		_, other, got := train(t, m, Options{Settings: set, Workers: workers})
		if !bytes.Equal(got, want) || !reflect.DeepEqual(rep, other) {
			t.Errorf("%d workers make another predictor or report than 1", workers)
		}
	}
	set.Seed++
	if _, _, got := train(t, m, Options{Settings: set}); bytes.Equal(got, want) {
		t.Error("another seed makes the same predictor")
	}
}

// TestResume interrupts a training after its second layer and checks that the resumed training
// gives the result of an uninterrupted one.
func TestResume(t *testing.T) {
	m := noisy(150, 4)
	set := small()
	set.Ranks, set.Epochs = []int{4, 0, 6, 5}, 3
	_, whole, want := train(t, m, Options{Settings: set, Model: "m", Trace: "t"})

	opt := Options{Settings: set, Model: "m", Trace: "t", State: filepath.Join(t.TempDir(),
		"state"), Workers: 1}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opt.Progress = func(p Progress) {
		if p.Done == 2 {
			cancel()
		}
	}
	if _, _, err := Train(ctx, m, opt); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: error %v", err)
	}
	kept, err := filepath.Glob(filepath.Join(opt.State, "*"))
	if err != nil || len(kept) != 2 {
		t.Fatalf("%d layers kept (%v), want the 2 that were finished", len(kept), err)
	}

	taken, last := 0, Progress{}
	opt.Progress = func(p Progress) {
		if p.Finished && p.Epoch == 0 && p.Loss != 0 {
			taken++
		}
		last = p
	}
	opt.Workers = 3
	_, resumed, got := train(t, m, opt)
	if !bytes.Equal(got, want) || !reflect.DeepEqual(resumed, whole) {
		t.Error("the resumed training made another predictor or report")
	}
	if taken != 2 || last.Done != 4 || last.Layers != 4 {
		t.Errorf("%d layers taken from the state, want 2; last progress %+v", taken, last)
	}

	for name, change := range map[string]func(*Options){
		"seed": func(o *Options) { o.Seed++ }, "epochs": func(o *Options) { o.Epochs++ },
		"trace": func(o *Options) { o.Trace = "u" },
	} {
		other := opt
		change(&other)
		if _, _, err := Train(t.Context(), m, other); !errors.Is(err, ErrMismatch) {
			t.Errorf("state of another %s: error %v", name, err)
		}
	}
	if _, _, err := Train(t.Context(), planted(150, 4, 16, 80), opt); !errors.Is(err, ErrMismatch) {
		t.Errorf("state of other samples: error %v", err)
	}
	if err := os.WriteFile(kept[0], []byte("not a predictor"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Train(t.Context(), m, opt); !errors.Is(err, checkpoint.ErrFormat) ||
		!strings.Contains(err.Error(), kept[0]) {
		t.Errorf("broken state: error %v", err)
	}
}

// TestGoalRaisesRank starts below the rank of the rule, which misses the goal, in a layer that may
// grow and one without predictor.
func TestGoalRaisesRank(t *testing.T) {
	m := planted(400, 2, 24, 100)
	set := small()
	set.Kind, set.Ranks, set.GoalFP = Linear, []int{1, 0}, 0.01
	p, rep, _ := train(t, m, Options{Settings: set})
	r := rep.Layers[0]
	if r.Rank < 4 || r.Rank > 16 || p.Rank(0) != r.Rank || r.HeldOut.FalsePositives() > set.GoalFP {
		t.Errorf("rank %d with %g false positives; the rule has rank 4 and the goal is %g", r.Rank,
			r.HeldOut.FalsePositives(), set.GoalFP)
	}
	if p.Rank(1) != 0 {
		t.Errorf("a layer that was to have no predictor has rank %d", p.Rank(1))
	}
	set.Ranks, set.GoalFP, set.Epochs = []int{3, 0}, 1e-9, 1
	if _, rep, _ := train(t, noisy(60, 2), Options{Settings: set}); rep.Layers[0].Rank != 16 {
		t.Errorf("without end the rank is %d, want the feature's 16", rep.Layers[0].Rank)
	}
}

// TestEarlyStop trains on features without information: the held-out loss cannot fall for long.
func TestEarlyStop(t *testing.T) {
	m := noisy(200, 1)
	for i := range m.features {
		m.features[i] = float32((i * 7919) % 101)
	}
	set := small()
	set.Epochs, set.Patience, set.LearningRate = 60, 2, 0.02
	_, rep, _ := train(t, m, Options{Settings: set})
	if r := rep.Layers[0]; r.Epochs >= 60 || r.Epochs != r.BestEpoch+2 {
		t.Errorf("stopped after epoch %d with the best at %d, want 2 later and before 60", r.Epochs,
			r.BestEpoch)
	}
}

// TestConstantFeatures checks that features without information leave each unit's own share.
func TestConstantFeatures(t *testing.T) {
	m := planted(100, 1, 4, 10)
	for i := range m.features {
		m.features[i] = 3
	}
	set := small()
	set.Ranks, set.Epochs = []int{2}, 2
	p, _, _ := train(t, m, Options{Settings: set})
	if scores, err := Evaluate(t.Context(), p, m, 0, 100, 1); err != nil ||
		scores[0].Loss > math.Ln2 {
		t.Errorf("loss %v (%v), want no more than knowing nothing", scores, err)
	}
}

func TestRanks(t *testing.T) {
	if got := Ranks(6, 128, 1024); !slices.Equal(got, []int{128, 128, 1024, 1024, 1024, 1024}) {
		t.Errorf("ranks %v", got)
	}
	if got := Ranks(2, 1, 7); !slices.Equal(got, []int{7, 7}) {
		t.Errorf("of two layers both are among the last four, but their ranks are %v", got)
	}
	for _, c := range []struct{ width, units, want int }{{4096, 16384, 128}, {256, 1024, 32},
		{6, 20, 1}, {4096, 64, 64}} {
		o := Options{}
		if err := o.resolve(newPlain(2, 2, c.width, c.units)); err != nil ||
			!slices.Equal(o.Ranks, []int{c.want, c.want}) || o.GoalFP != DefaultGoal {
			t.Errorf("features of %d, %d units: ranks %v and a goal of %g by default (%v), want %d",
				c.width, c.units, o.Ranks, o.GoalFP, err, c.want)
		}
	}
	o := Options{Settings: Settings{Ranks: []int{5}}}
	if err := o.resolve(newPlain(2, 2, 8, 8)); err != nil || !slices.Equal(o.Ranks, []int{5, 5}) ||
		o.GoalFP != 0 {
		t.Errorf("rank 5 became %v with a goal of %g (%v)", o.Ranks, o.GoalFP, err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	m := planted(50, 2, 6, 20)
	bare := planted(50, 2, 6, 20)
	bare.noMagnitudes = true
	for _, c := range []struct {
		s      Samples
		set    Settings
		reason string
	}{
		{m, Settings{Ranks: []int{1, 2, 3}}, "3 ranks for 2 layers"},
		{m, Settings{Ranks: []int{7}}, "rank 7: it must be 0 to 6"},
		{m, Settings{Ranks: []int{-1}}, "rank -1"},
		{m, Settings{Kind: "tanh"}, `kind "tanh"`},
		{m, Settings{Epochs: -1}, "-1 epochs"},
		{m, Settings{Batch: 1 << 20}, "batches of 1048576"},
		{m, Settings{Patience: -2}, "patience -2"},
		{m, Settings{LearningRate: math.NaN()}, "learning rate NaN"},
		{m, Settings{WeightDecay: 2}, "weight decay 2"},
		{m, Settings{HoldOut: 1}, "1 of the samples held out"},
		{m, Settings{HoldOut: 0.999}, "at least two are needed"},
		{m, Settings{TargetFN: 1}, "a target of 1"},
		{m, Settings{GoalFP: -0.1}, "a goal of -0.1"},
		{m, Settings{TargetFN: 0.1, Thresholds: []float64{0.5}}, "both thresholds and a target"},
		{m, Settings{Thresholds: []float64{0.5, 0.5, 0.5}}, "3 thresholds for 2 layers"},
		{m, Settings{Thresholds: []float64{1}}, "threshold 1"},
		{m, Settings{Cost: &Cost{FalsePositive: 1000}}, "both must be above 0"},
		{bare, Settings{Cost: &Cost{1000, 1000}}, "no magnitudes"},
		{newPlain(5, 0, 6, 20), Settings{}, "layers: 0"},
	} {
		if c.set.Ranks == nil {
			c.set.Ranks = []int{2}
		}
		if _, _, err := Train(t.Context(), c.s, Options{Settings: c.set}); err == nil ||
			!strings.Contains(err.Error(), c.reason) {
			t.Errorf("%+v: error %v, want %q in it", c.set, err, c.reason)
		}
	}
}
