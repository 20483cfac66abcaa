package whatif

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/windrow-sim/windrow/traces"
)

func TestNothingAskedIsTheSourceItself(t *testing.T) {
	src := small(true)
	own := mean(counted(src))
	for _, opt := range []Options{{}, {Seed: 7}, {Share: own}, {Threshold: 1e-9},
		{Threshold: traces.MagnitudeFloor(100)}} {
		out, rep := apply(t, src, opt)
		if out != traces.Source(src) {
			t.Errorf("%+v: another source", opt)
		}
		if math.Abs(rep.Before-own) > 1e-12 || math.Abs(rep.After-own) > 1e-12 ||
			!rep.HasMagnitude || out.Header().DerivedBy != "" {
			t.Errorf("%+v: reported %g and %g, counted %g", opt, rep.Before, rep.After, own)
		}
	}
	equal(t, "the source", small(true), src)
}

func TestShareIsReached(t *testing.T) {
	const tolerance = 0.01
	for _, magnitudes := range []bool{false, true} {
		src := small(magnitudes)
		before := counted(src)
		for _, share := range []float64{0.02, 0.05, 0.1, 0.2, 0.5} {
			out, rep := apply(t, src, Options{Share: share, Seed: 1})
			after := counted(collect(t, out))
			if got := mean(after); math.Abs(got/share-1) > tolerance ||
				math.Abs(rep.After-got) > 1e-12 {
				t.Errorf("magnitudes %t: asked for %g, reported %g, counted %g", magnitudes, share,
					rep.After, got)
			}
			for l := range after {
				if ratio := after[l] / before[l] /
					(share / mean(before)); math.Abs(ratio-1) > tolerance {
					t.Errorf("magnitudes %t, share %g: layer %d was scaled %g times as much as "+
						"the mean", magnitudes, share, l, ratio)
				}
			}
			out, rep = apply(t, src, Options{LayerShare: share, Seed: 1})
			for l, got := range counted(collect(t, out)) {
				if math.Abs(got/share-1) > tolerance || math.Abs(rep.Layers[l].After-got) > 1e-12 ||
					math.Abs(rep.Layers[l].Before-before[l]) > 1e-12 {
					t.Errorf("magnitudes %t: layer %d: asked for %g, report %+v, counted %g",
						magnitudes, l, share, rep.Layers[l], got)
				}
			}
		}
	}
}

// Everything active is the other end of the scale.
func TestAllUnits(t *testing.T) {
	out, rep := apply(t, small(true), Options{LayerShare: 1})
	if got := mean(counted(collect(t, out))); math.Abs(got-1) > 1e-9 || rep.After != 1 ||
		rep.HasMagnitude {
		t.Errorf("share %g, report %+v", got, rep)
	}
}

// A layer cannot be more than full; the others take what it cannot. One without active units has no
// share to scale.
func TestScaleStopsAtFullLayers(t *testing.T) {
	src := small(false)
	for i := range src.List {
		clear(src.List[i].Active[0])
	}
	own := counted(src)
	out, rep := apply(t, src, Options{Share: 0.6, Seed: 1})
	after := counted(collect(t, out))
	if after[0] != 0 || math.Abs(after[1]-0.8) > 0.01 || math.Abs(after[2]-1) > 1e-9 ||
		own[2] <= own[1] || math.Abs(rep.After-0.6) > 0.01 {
		t.Errorf("layers of %v became %v, reported %g", own, after, rep.After)
	}
	if _, rep = apply(t, src, Options{Share: 0.9}); math.Abs(rep.After-2.0/3) > 1e-9 {
		t.Errorf("two full layers of three are %g", rep.After)
	}
}

func TestSharesNest(t *testing.T) {
	for _, magnitudes := range []bool{false, true} {
		src := small(magnitudes)
		own := mean(counted(src))
		for name, opt := range map[string]func(float64) Options{
			"share":       func(v float64) Options { return Options{Share: v, Seed: 3} },
			"layer share": func(v float64) Options { return Options{LayerShare: v, Seed: 3} },
		} {
			t.Run(fmt.Sprintf("%s, magnitudes %t", name, magnitudes), func(t *testing.T) {
				var list []*traces.Memory
				for _, v := range []float64{0.001, 0.01, 0.03, 0.05, own, 0.2, 0.21, 0.6, 1} {
					out, _ := apply(t, src, opt(v))
					list = append(list, collect(t, out))
				}
				nested(t, activeOf, list...)
			})
		}
	}
}

func TestThresholdKeepsWhatIsAbove(t *testing.T) {
	src := small(true)
	var list []*traces.Memory
	for _, threshold := range []float64{6e4, 2, 1, 0.51, 0.5, 0.3, 1e-9} {
		out, rep := apply(t, src, Options{Threshold: threshold})
		got := collect(t, out)
		list = append(list, got)
		floor := rep.Layers[0].Threshold
		if threshold > 1e-4 && math.Abs(math.Log2(floor/threshold)) > 1.0/16+1e-12 {
			t.Errorf("threshold %g became %g, more than half a step away", threshold, floor)
		}
		for i := range src.List {
			for l, codes := range src.List[i].Magnitude {
				var want []byte
				for _, c := range codes {
					if traces.MagnitudeFloor(c) >= floor {
						want = append(want, c)
					}
				}
				if !slices.Equal(want, got.List[i].Magnitude[l]) {
					t.Fatalf("threshold %g, token %d, layer %d: codes %v, want %v of %v", threshold,
						i, l, got.List[i].Magnitude[l], want, codes)
				}
			}
		}
		if math.Abs(mean(counted(got))-rep.After) > 1e-12 {
			t.Errorf("threshold %g: reported %g", threshold, rep.After)
		}
	}
	nested(t, activeOf, list...)
}

// The magnitudes of a thinner trace are those that its units had, one for each.
func TestMagnitudesStayWithTheirUnits(t *testing.T) {
	src := small(true)
	out, rep := apply(t, src, Options{Share: 0.05, Seed: 2})
	if !rep.HasMagnitude || !out.Header().HasMagnitude {
		t.Fatal("a thinner trace lost its magnitudes")
	}
	for i, got := range collect(t, out).List {
		for l, active := range got.Active {
			if active.Count() != len(got.Magnitude[l]) {
				t.Fatalf("token %d, layer %d: %d magnitudes for %d units", i, l,
					len(got.Magnitude[l]), active.Count())
			}
			was := map[uint32]byte{}
			k := 0
			for u := range src.List[i].Active[l].Each {
				was[u] = src.List[i].Magnitude[l][k]
				k++
			}
			k = 0
			for u := range active.Each {
				if code, ok := was[u]; !ok || code != got.Magnitude[l][k] {
					t.Fatalf("token %d, layer %d, unit %d: code %d, was %d", i, l, u,
						got.Magnitude[l][k], code)
				}
				k++
			}
		}
	}
	equal(t, "the source", small(true), src)
	out, rep = apply(t, src, Options{LayerShare: 0.15, Seed: 2})
	if rep.Layers[0].Method != thicken || rep.Layers[2].Method != byMagnitude || rep.HasMagnitude ||
		collect(t, out).List[0].Magnitude != nil {
		t.Errorf("a trace with units of unknown magnitude has magnitudes: %+v", rep)
	}
}

// Rates are those of the trace that the predictor works for: after a change of the share.
func TestPredictorRates(t *testing.T) {
	for _, opt := range []Options{
		{FalseNegatives: 0.05, FalsePositives: 0.03, Seed: 5},
		{FalseNegatives: 0.3, Seed: 5},
		{FalsePositives: 0.1, Seed: 5},
		{FalseNegatives: 0.2, FalsePositives: 0.1, SmallFirst: true, Share: 0.08, Seed: 5},
		{FalseNegatives: 1, FalsePositives: 1},
		{Predictor: true},
	} {
		out, rep := apply(t, small(true), opt)
		got := collect(t, out)
		for l := range got.Head.Layers {
			active, others, missed, wrong := 0, 0, 0, 0
			for _, k := range got.List {
				hit := k.Active[l].CountAnd(k.Predicted[l])
				active += k.Active[l].Count()
				others += got.Head.Units - k.Active[l].Count()
				missed += k.Active[l].Count() - hit
				wrong += k.Predicted[l].Count() - hit
			}
			fn, fp := float64(missed)/float64(active), float64(wrong)/float64(others)
			if math.Abs(fn-opt.FalseNegatives) > 0.01*opt.FalseNegatives ||
				math.Abs(fp-opt.FalsePositives) > 0.01*opt.FalsePositives ||
				math.Abs(fn-rep.Layers[l].FalseNegatives) > 1e-12 ||
				math.Abs(fp-rep.Layers[l].FalsePositives) > 1e-12 {
				t.Errorf("%s: layer %d misses %g and names %g, reported %+v", opt, l, fn, fp,
					rep.Layers[l])
			}
		}
		if !got.Head.HasPredicted || !rep.HasPredicted {
			t.Errorf("%s: no predicted masks", opt)
		}
	}
}

func TestPredictorErrorsNest(t *testing.T) {
	for _, small1st := range []bool{false, true} {
		var list []*traces.Memory
		for _, rates := range [][2]float64{{0.9, 0}, {0.5, 0.001}, {0.1, 0.01}, {0.01, 0.05},
			{0.001, 0.5}} {
			out, _ := apply(t, small(true), Options{FalseNegatives: rates[0],
				FalsePositives: rates[1], SmallFirst: small1st, Seed: 6})
			list = append(list, collect(t, out))
		}
		nested(t, predictedOf, list...)
	}
}

func TestSmallActivationsAreMissedFirst(t *testing.T) {
	out, _ := apply(t, small(true), Options{FalseNegatives: 0.25, SmallFirst: true, Seed: 6})
	got := collect(t, out)
	for l := range got.Head.Layers {
		missed, found := byte(0), byte(255)
		for _, k := range got.List {
			i := 0
			for u := range k.Active[l].Each {
				if !k.Predicted[l].Has(u) {
					missed = max(missed, k.Magnitude[l][i])
				} else {
					found = min(found, k.Magnitude[l][i])
				}
				i++
			}
		}
		if missed > found {
			t.Errorf("layer %d: a unit of code %d was missed and one of code %d found", l, missed,
				found)
		}
	}
}

// Invariant 1: any order, any number of goroutines, the same tokens; another seed gives others.
func TestTokensDoNotDependOnOrder(t *testing.T) {
	src := small(false)
	for _, share := range []float64{0.04, 0.3} {
		opt := Options{Share: share, FalseNegatives: 0.1, FalsePositives: 0.02, Seed: 9}
		out, _ := apply(t, src, opt)
		want := collect(t, out).List
		again, _ := apply(t, src, opt)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				var tok traces.Token
				for k := range again.Tokens() {
					i := (k*7 + g*31) % again.Tokens()
					if err := again.Token(i, &tok); err != nil || !slices.EqualFunc(tok.Active,
						want[i].Active, slices.Equal[[]uint64]) ||
						!slices.EqualFunc(tok.Predicted, want[i].Predicted,
							slices.Equal[[]uint64]) {
						t.Errorf("token %d differs (%v)", i, err)
						return
					}
				}
			})
		}
		wg.Wait()
		opt.Seed++
		other, _ := apply(t, src, opt)
		if slices.EqualFunc(collect(t, other).List[5].Active, want[5].Active,
			slices.Equal[[]uint64]) {
			t.Error("another seed chose the same units")
		}
	}
}

func TestResultSaysWhatItWasMadeFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.trace.arrow")
	write(t, path, small(true))
	r, err := traces.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, _ := apply(t, r, Options{Share: 0.05, Seed: 4})
	if h := out.Header(); h.DerivedFrom != r.SHA256() ||
		h.DerivedBy != "whatif share=0.05,seed=4" || len(h.DerivedFrom) != 64 {
		t.Errorf("derived from %q by %q", h.DerivedFrom, h.DerivedBy)
	}
	again, _ := apply(t, out, Options{FalseNegatives: 0.1})
	if h := again.Header(); h.DerivedFrom != "" ||
		h.DerivedBy != "whatif share=0.05,seed=4; whatif false-negatives=0.1" {
		t.Errorf("derived from %q by %q", h.DerivedFrom, h.DerivedBy)
	}
	// and the file of it is a trace like any other
	to := filepath.Join(t.TempDir(), "y.trace.arrow")
	write(t, to, again)
	rep, err := traces.CheckFile(t.Context(), to)
	if err != nil || rep.Magnitude != rep.Active || rep.Predicted == 0 ||
		rep.Header.DerivedBy == "" {
		t.Errorf("check: %v, %+v", err, rep)
	}
	if h, err := traces.Open(t.Context(), to); err != nil {
		t.Error(err)
	} else {
		equal(t, "tokens", collect(t, again).List, collect(t, h).List)
		h.Close()
	}
	bare, _ := apply(t, again, Options{LayerShare: 0.01})
	if h := bare.Header(); h.HasPredicted || collect(t, bare).List[0].Predicted != nil {
		t.Error("predicted masks of other active units were kept")
	}
}

func write(t *testing.T, path string, src traces.Source) {
	t.Helper()
	w, err := traces.Create(path, *src.Header(), traces.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, tok := range collect(t, src).List {
		if err := w.Append(&tok); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestApplyRefuses(t *testing.T) {
	edited := func(edit func(*traces.Memory)) *traces.Memory {
		m := small(true)
		edit(m)
		return m
	}
	for _, c := range []struct {
		name string
		src  traces.Source
		opt  Options
		kind error
		want string
	}{
		{"threshold without magnitudes", small(false), Options{Threshold: 0.5}, ErrOptions,
			"record it with --magnitudes"},
		{"threshold beyond the scale", small(true), Options{Threshold: 1e9}, ErrOptions,
			"told apart up to 60097 only"},
		{"small first without magnitudes", small(false), Options{FalseNegatives: 0.1,
			SmallFirst: true}, ErrOptions, "record it with --magnitudes"},
		{"small first of a thicker trace", small(true), Options{Share: 0.5, FalseNegatives: 0.1,
			SmallFirst: true}, ErrOptions, "units without magnitudes"},
		{"bad options", small(true), Options{Share: 2}, ErrOptions, "share of 2"},
		{"no tokens", edited(func(m *traces.Memory) { m.List = nil }), Options{Share: 0.1},
			traces.ErrFormat, "no tokens"},
		{"no layers", edited(func(m *traces.Memory) { m.Head.Layers = 0 }), Options{},
			traces.ErrFormat, "0 layers"},
		{"missing layer", edited(func(m *traces.Memory) {
			m.List[3].Active = m.List[3].Active[:2]
		}), Options{Share: 0.1}, traces.ErrFormat, "not 3 layers of 150 units"},
		{"short mask", edited(func(m *traces.Memory) {
			m.List[3].Active[1] = m.List[3].Active[1][:1]
		}), Options{FalsePositives: 0.1}, traces.ErrFormat, "position 3: masks"},
		{"missing magnitude", edited(func(m *traces.Memory) { m.List[3].Magnitude[2] = nil }),
			Options{Share: 0.1}, traces.ErrFormat, "position 3, layer 2: the header promises"},
		{"no magnitudes", edited(func(m *traces.Memory) { m.List[0].Magnitude = nil }),
			Options{Share: 0.1}, traces.ErrFormat, "the header promises"},
		{"unreadable", failing{small(true), 100}, Options{Share: 0.1, FalseNegatives: 0.1}, errRead,
			"cannot read"},
	} {
		out, _, err := Apply(c.src, c.opt)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) || out != nil {
			t.Errorf("%s: want %v with %q, got %v", c.name, c.kind, c.want, err)
		}
	}
	src := small(true)
	out, _ := apply(t, src, Options{Share: 0.05, Predictor: true})
	for _, i := range []int{-1, src.Tokens()} {
		if err := out.Token(i, &traces.Token{}); err == nil {
			t.Errorf("token %d: no error", i)
		}
	}
}

// Features are what layers were computed from, whatever is made of the masks: they pass unchanged.
func TestFeaturesStay(t *testing.T) {
	for name, c := range map[string]struct {
		opt  Options
		kind string
	}{
		"thinner": {Options{Share: 0.03}, traces.FFNInput}, "above a threshold": {
			Options{Threshold: 0.5}, traces.AttentionOutput},
		"thicker": {Options{Share: 0.5}, traces.Residual}, "predicted": {
			Options{FalseNegatives: 0.1, FalsePositives: 0.05}, traces.Residual},
	} {
		src := small(true)
		src.Head.FeatureKind, src.Head.FeatureWidth = c.kind, 1
		for i := range src.List {
			for l := range src.Head.Layers {
				src.List[i].Feature = append(src.List[i].Feature, []byte{byte(i), byte(l)})
			}
		}
		out, _ := apply(t, src, c.opt)
		if h := out.Header(); h.DerivedBy == "" || h.FeatureKind != c.kind || h.FeatureWidth != 1 {
			t.Errorf("%s: header %+v", name, h)
		}
		for i, tok := range collect(t, out).List {
			equal(t, name, src.List[i].Feature, tok.Feature)
		}
	}
}
