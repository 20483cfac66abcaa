package predictor

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/mask"
)

// oracle holds torch's results for the fixtures (testdata/make.py).
type oracle struct {
	Feature      []float32
	Width, Units int
	Values       map[string][][]float64
}

func readOracle(t *testing.T) *oracle {
	t.Helper()
	data, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{}
	if err := json.Unmarshal(data, o); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *oracle) options(layers int) ImportOptions {
	return ImportOptions{Layers: layers, Width: o.Width, Units: o.Units, Model: "abc",
		Feature: FFNInput}
}

// check compares predictions with torch's values, none of which is within rounding of the
// threshold.
func (o *oracle) check(t *testing.T, p *Predictor, name string, cut float64) {
	t.Helper()
	if p.Layers() != len(o.Values[name]) {
		t.Fatalf("%d layers, want %d", p.Layers(), len(o.Values[name]))
	}
	run, mask := p.Runner(nil), mask.New(o.Units)
	for l, values := range o.Values[name] {
		if err := run.Predict(l, o.Feature, mask); err != nil {
			t.Fatal(err)
		}
		if values == nil {
			if mask.Count() != o.Units || p.Rank(l) != 0 {
				t.Errorf("layer %d has no predictor, yet %d of %d units are predicted", l,
					mask.Count(), o.Units)
			}
			continue
		}
		for u, want := range values {
			if got := float64(run.z[u]); math.Abs(got-want) > 1e-4 {
				t.Fatalf("layer %d, unit %d: %g, torch says %g", l, u, got, want)
			}
			if got := mask[u/64]>>(u%64)&1 == 1; got != (want >= cut) {
				t.Errorf("layer %d, unit %d: predicted %v with %g against %g", l, u, got, want, cut)
			}
		}
		if n := mask.Count(); n == 0 || n == o.Units {
			t.Errorf("layer %d: %d units predicted; the fixture tests nothing", l, n)
		}
	}
}

func TestImportPowerInfer(t *testing.T) {
	o := readOracle(t)
	p, err := ImportPowerInfer(t.Context(), "testdata/powerinfer", o.options(3))
	if err != nil {
		t.Fatal(err)
	}
	o.check(t, p, "powerinfer", 0.25)
	if want := (Facts{Origin: "powerinfer", Model: "abc", Feature: FFNInput}); p.Kind() != ReLU ||
		p.Facts() != want || p.Rank(2) != 5 {
		t.Errorf("kind %s, facts %+v, rank %d", p.Kind(), p.Facts(), p.Rank(2))
	}
}

func TestImportDejaVu(t *testing.T) {
	o := readOracle(t)
	p, err := ImportDejaVu(t.Context(), "testdata/dejavu", o.options(2))
	if err != nil {
		t.Fatal(err)
	}
	o.check(t, p, "dejavu", 0)
	if p.Kind() != Linear || p.Facts().Origin != "dejavu" || p.Threshold(0) != 0.5 {
		t.Errorf("kind %s, origin %s, threshold %g", p.Kind(), p.Facts().Origin, p.Threshold(0))
	}
}

// The source's usual feature counts if the options have none.
func TestImportedFeatures(t *testing.T) {
	o := readOracle(t)
	turbo, err := checkpoint.OpenAny(t.Context(), "testdata/turbo.bin", checkpoint.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer turbo.Close()
	for name, c := range map[string]struct {
		load   func(ImportOptions) (*Predictor, error)
		layers int
		want   Feature
	}{
		"powerinfer": {func(opt ImportOptions) (*Predictor, error) {
			return ImportPowerInfer(t.Context(), "testdata/powerinfer", opt)
		}, 3, Residual},
		"dejavu": {func(opt ImportOptions) (*Predictor, error) {
			return ImportDejaVu(t.Context(), "testdata/dejavu", opt)
		}, 2, Residual},
		"checkpoint": {func(opt ImportOptions) (*Predictor, error) {
			return FromCheckpoint(turbo,
				opt)
		}, 3, UnknownFeature},
	} {
		for given, want := range map[Feature]Feature{UnknownFeature: c.want,
			AttentionOutput: AttentionOutput} {
			opt := o.options(c.layers)
			opt.Feature = given
			if p, err := c.load(opt); err != nil || p.Facts().Feature != want {
				t.Errorf("%s, given %q: %v, want %q", name, given, err, want)
			}
		}
	}
}

func TestFromCheckpoint(t *testing.T) {
	o := readOracle(t)
	f, err := checkpoint.OpenAny(t.Context(), "testdata/turbo.bin", checkpoint.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := FromCheckpoint(f, o.options(3))
	if err != nil {
		t.Fatal(err)
	}
	o.check(t, p, "turbo", 0)
	if p.Kind() != ReLU || p.Facts().Origin != "checkpoint" {
		t.Errorf("kind %s, origin %s", p.Kind(), p.Facts().Origin)
	}
	narrow := o.options(3)
	narrow.Width++
	if _, err := FromCheckpoint(f, narrow); !errors.Is(err, ErrMismatch) ||
		!strings.Contains(err.Error(), "predictor.fc1.weight has shape [3 6]") {
		t.Errorf("another width: error %v", err)
	}
}

func TestImportRefusals(t *testing.T) {
	o := readOracle(t)
	mixed := t.TempDir()
	for to, from := range map[string]string{"model_0.pt": "powerinfer/model_0.pt",
		"model_1.pt":     "dejavu/opt-layer0-0.98-0.95.pt",
		"a-layer0.pt":    "dejavu/opt-layer0-0.98-0.95.pt",
		"b-layer_0-x.pt": "dejavu/opt-layer1-0.98-0.95.pt"} {
		data, err := os.ReadFile(filepath.Join("testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(mixed, to), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	badConfig := t.TempDir()
	if err := os.WriteFile(filepath.Join(badConfig, "config.json"),
		[]byte(`{"sparse_threshold": "high"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	wrong := o.options(3)
	wrong.Units = 71
	for _, c := range []struct {
		name   string
		load   func(context.Context, string, ImportOptions) (*Predictor, error)
		dir    string
		opt    ImportOptions
		kind   error
		reason string
	}{
		{"a layer is missing", ImportPowerInfer, "testdata/powerinfer", o.options(4), ErrMismatch,
			"no file for layer 3 of 4"},
		{"a layer too many", ImportPowerInfer, "testdata/powerinfer", o.options(2), ErrMismatch,
			"model_2.pt is for a layer"},
		{"other units", ImportPowerInfer, "testdata/powerinfer", wrong, ErrMismatch,
			"fc2.weight has shape [70 3], the predictor needs [71 3]"},
		{"the other kind", ImportPowerInfer, mixed, o.options(2), checkpoint.ErrUnsupported,
			`the first "0.weight"`},
		{"two files for a layer", ImportDejaVu, mixed, o.options(2), checkpoint.ErrFormat,
			"for layer 0"},
		{"configuration", ImportPowerInfer, badConfig, o.options(2), checkpoint.ErrFormat,
			"config.json"},
		{"no folder", ImportDejaVu, "testdata/none", o.options(2), os.ErrNotExist, "testdata/none"},
		{"no shape", ImportDejaVu, "testdata/dejavu", ImportOptions{}, nil, "layers: 0"},
	} {
		_, err := c.load(t.Context(), c.dir, c.opt)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(),
			c.reason) {
			t.Errorf("%s: error %v; want %v with %q", c.name, err, c.kind, c.reason)
		}
	}
	f, err := checkpoint.OpenAny(t.Context(), "testdata/powerinfer/model_0.pt",
		checkpoint.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := FromCheckpoint(f, o.options(3)); !errors.Is(err, checkpoint.ErrUnsupported) {
		t.Errorf("a checkpoint without predictors: error %v", err)
	}
}
