package shapes

import (
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/traces"
)

func TestLookupOPT67B(t *testing.T) {
	want := traces.Shape{DModel: 4096, Layers: 32, DFFN: 16384, Heads: 32, KVHeads: 32,
		HeadDim: 128, Vocab: 50272,
		MaxPos: 2048, Rows: 2, DTypeSize: 2}
	for _, name := range []string{"OPT-6.7B", "opt-6.7b", " Opt-6.7b "} {
		got, info, err := Lookup(name)
		if err != nil || got != want {
			t.Errorf("Lookup(%q) = %+v, %v; want %+v", name, got, err, want)
		}
		if info.Name != "OPT-6.7B" || info.Activation != "relu" || info.Gated ||
			!info.TiedEmbeddings {
			t.Errorf("Lookup(%q) info = %+v", name, info)
		}
	}
}

func TestGatedModelHasThreeRows(t *testing.T) {
	s, info, err := Lookup("mistral-7b-v0.1")
	if err != nil || s.Rows != 3 || !info.Gated || s.RecordBytes() != 24576 {
		t.Errorf("got %+v, %+v, %v; want 3 rows and records of 24,576 bytes", s, info, err)
	}
}

func TestUnknownNameSuggestsTheNearest(t *testing.T) {
	for name, want := range map[string]string{"opt-6.7": `"OPT-6.7B"`,
		"Mistral-7B": `"Mistral-7B-v0.1"`, "falcon7b": `"Falcon-7B"`} {
		_, _, err := Lookup(name)
		if err == nil || !strings.Contains(err.Error(), "did you mean "+want) ||
			!strings.Contains(err.Error(), "Phi-2") {
			t.Errorf("Lookup(%q): %v; want the nearest name %s and the list", name, err, want)
		}
	}
}

// Every row must parse, have a source, and its FFN and attention weights must fit into its
// parameter count.
func TestEveryRow(t *testing.T) {
	names := Names()
	if len(names) < 20 {
		t.Fatalf("%d names; the table was cut", len(names))
	}
	for _, name := range names {
		s, info, err := Lookup(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if info.Source == "" || s.DModel <= 0 || s.DFFN <= 0 || s.Layers <= 0 ||
			s.KVHeads > s.Heads || s.MaxPos <= 0 {
			t.Errorf("%s: incomplete: %+v %+v", name, s, info)
		}
		ffn := float64(s.Layers) * float64(s.Rows*s.DModel*s.DFFN) * math.Max(1,
			float64(info.Experts))
		attention := float64(s.Layers) * float64(2*s.DModel*s.HeadDim*(s.Heads+s.KVHeads))
		embedding := float64(s.Vocab * s.DModel)
		if rest := float64(info.Params) - ffn - attention -
			embedding; math.Abs(rest) > 0.13*float64(info.Params) {
			t.Errorf("%s: %d parameters, but the shape explains only all but %.3g", name,
				info.Params, rest)
		}
	}
}
