package predictor

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// tiny is a predictor by hand: 3 layers, of rank 2, 0 and 1, the last without biases.
func tiny(t testing.TB) *Predictor {
	t.Helper()
	p, err := New(ReLU, 2, 3, []Layer{
		{Rank: 2, W1: halves(1, 0, 0, -1), B1: []float32{0, 0.1}, W2: halves(1, 0, 0, 1, 0.5, 0.5),
			B2: []float32{-1, 0, 0.3}, MinLogit: 0.25},
		{},
		{Rank: 1, W1: halves(2, 2), W2: halves(-1, 1, 65504), MinLogit: -math.MaxFloat32},
	}, Facts{Origin: "a test", Feature: AttentionOutput, Model: "model", Trace: "trace",
		Settings: `{"seed":1}`})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func halves(v ...float32) []uint16 { return half(v) }

func TestSaveAndLoad(t *testing.T) {
	p := tiny(t)
	path := filepath.Join(t.TempDir(), "p.safetensors")
	if err := p.Save(path); err != nil {
		t.Fatal(err)
	}
	q, err := Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p, q) {
		t.Errorf("loaded %+v, saved %+v", q, p)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Save(path); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(path); err != nil || string(first) != string(second) {
		t.Errorf("saved again it is another file (%v)", err)
	}
}

func TestLoadRefusals(t *testing.T) {
	for _, c := range []struct {
		key, value string
		kind       error
		reason     string
	}{
		{"format", "windrow flash image", checkpoint.ErrUnsupported, "not a low-rank predictor"},
		{"format_version", "2", checkpoint.ErrUnsupported, `format_version is "2"`},
		{"kind", "gelu", checkpoint.ErrFormat, `kind "gelu"`},
		{"cuts", "[1]", checkpoint.ErrFormat, "cuts"},
		{"cuts", "[0,0,1e39]", checkpoint.ErrFormat, "cuts"},
		{"layers", "1", checkpoint.ErrFormat, "cuts"},
		{"layers", "x", checkpoint.ErrFormat, "layers"},
		{"layers", "99999999", checkpoint.ErrFormat, "layers: 99999999"},
		{"width", "3", checkpoint.ErrFormat, "shape [2 2], the predictor needs [2 3]"},
		{"units", "0", checkpoint.ErrFormat, "units: 0"},
	} {
		path := filepath.Join(t.TempDir(), "p.safetensors")
		if err := tiny(t).save(path, map[string]string{c.key: c.value}); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(t.Context(), path); !errors.Is(err, c.kind) ||
			!strings.Contains(err.Error(),
				c.reason) {
			t.Errorf("%s = %s: error %v, want %v with %q", c.key, c.value, err, c.kind, c.reason)
		}
	}
	less := filepath.Join(t.TempDir(), "less.safetensors")
	if err := tiny(t).save(less, map[string]string{"layers": "2", "cuts": "[0,0]"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), less); !errors.Is(err, checkpoint.ErrFormat) ||
		!strings.Contains(err.Error(),
			"2 of 6 tensors") {
		t.Errorf("tensors of a layer that is not there: error %v", err)
	}
	if _, err := Load(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("no file: error %v", err)
	}
}

func TestFor(t *testing.T) {
	p := tiny(t)
	for _, model := range []string{"model", ""} {
		if err := p.For(3, 2, 3, model); err != nil {
			t.Errorf("its own model, known as %q: %v", model, err)
		}
	}
	for reason, err := range map[string]error{
		"3 layers, the model 4":          p.For(4, 2, 3, "model"),
		"2 d_model, the model 5":         p.For(3, 5, 3, "model"),
		"3 units per layer, the model 9": p.For(3, 2, 9, "model"),
		"for the model model, this is m": p.For(3, 2, 3, "m"),
	} {
		if !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), reason) {
			t.Errorf("error %v, want %q", err, reason)
		}
	}
}

func TestNewRefusals(t *testing.T) {
	ok := func() Layer { return Layer{Rank: 1, W1: halves(1, 2), W2: halves(1, 2, 3)} }
	with := func(change func(*Layer)) []Layer {
		l := ok()
		change(&l)
		return []Layer{l}
	}
	if _, err := New(Linear, 2, 3, []Layer{ok()}, Facts{}); err != nil {
		t.Fatal(err)
	}
	for reason, layers := range map[string][]Layer{
		"layers: 0":            nil,
		"rank 2":               with(func(l *Layer) { l.Rank = 2 }),
		"rank -1":              with(func(l *Layer) { l.Rank = -1 }),
		"rank 0 and yet":       with(func(l *Layer) { l.Rank = 0 }),
		"do not make rank":     with(func(l *Layer) { l.B2 = []float32{1} }),
		"weight 1 is +Inf":     with(func(l *Layer) { l.W1[1] = ref.F32ToF16(1e6) }),
		"weight 2 is NaN":      with(func(l *Layer) { l.W2[2] = 0x7e00 }),
		"bias or cut 0 is NaN": with(func(l *Layer) { l.MinLogit = float32(math.NaN()) }),
		"bias or cut 2 is -Inf": with(func(l *Layer) {
			l.B2 = []float32{0, 0,
				float32(math.Inf(-1))}
		}),
	} {
		if _, err := New(Linear, 2, 3, layers, Facts{}); err == nil ||
			!strings.Contains(err.Error(), reason) {
			t.Errorf("error %v, want %q", err, reason)
		}
	}
}
