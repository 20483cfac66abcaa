package whatif

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/stats"
	"github.com/windrow-sim/windrow/traces/synth"
)

// keeper collects what a Recorder appends.
type keeper struct{ traces.Memory }

func (m *keeper) Append(t *traces.Token) error {
	c := *t
	c.Active, c.Magnitude = make([]mask.Mask, len(t.Active)), make([][]byte, len(t.Active))
	for l := range t.Active {
		c.Active[l], c.Magnitude[l] = slices.Clone(t.Active[l]), slices.Clone(t.Magnitude[l])
	}
	m.List = append(m.List, c)
	return nil
}

// recording runs the shipped model on eight of the shipped prompts, with magnitudes.
func recording(t *testing.T) *traces.Memory {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tales.flash.safetensors")
	if _, err := model.Pack(context.Background(), "../../examples/models/tales", path,
		model.PackOptions{}); err != nil {
		t.Fatal(err)
	}
	image, err := model.OpenImage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	w, err := image.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bundles := make([][]byte, image.Shape.Layers)
	for l := range bundles {
		bundles[l] = make([]byte, image.LayerBytes())
		if err := image.Bundles(l, bundles[l]); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := engine.NewResident(w, bundles, image.Geometry())
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(t.Context(), "../../examples/models/tales")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../examples/prompts/tales.txt")
	if err != nil {
		t.Fatal(err)
	}
	m := &keeper{traces.Memory{Head: traces.Header{UnitKind: traces.Neuron,
		Layers: image.Shape.Layers, Units: image.Shape.DFFN, HasMagnitude: true}}}
	recorder, err := record.NewFor(m, &m.Head)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(w, rows, engine.Config{Threads: 1, Observer: recorder})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for seq, line := range strings.SplitN(string(text), "\n", 9)[:8] {
		opt := engine.GenerateOptions{Seq: seq, MaxTokens: 60, Vocab: tok.VocabSize()}
		if _, err := e.Generate(context.Background(), tok.Encode(line), opt, func(uint32) error {
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return &m.Memory
}

// withoutMagnitudes is the trace as it would be had nobody asked for them.
func withoutMagnitudes(m *traces.Memory) *traces.Memory {
	out := &traces.Memory{Head: m.Head}
	out.Head.HasMagnitude = false
	for _, k := range m.List {
		k.Magnitude = nil
		out.List = append(out.List, k)
	}
	return out
}

func windows(t *testing.T, src traces.Source) *stats.Windows {
	t.Helper()
	s, err := stats.Compute(src, stats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &s.Total.Window
}

func synthetic(t *testing.T, share float64) *traces.Memory {
	t.Helper()
	m, err := synth.Collect(t.Context(), synth.Options{Like: "opt-6.7b", Layers: 1, Units: 8192,
		Tokens:      300,
		ActiveShare: share, Seed: 42})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// span is the range of errors that a comparison may have, in per cent.
type span struct{ least, most float64 }

// TestAgainstTruth holds the table of the package documentation: a recording with magnitudes tells
// what a smaller share of the same run looks like, and a synthetic process what another share of
// the same process does.
func TestAgainstTruth(t *testing.T) {
	whole := recording(t)
	own := mean(counted(whole))
	half, _ := apply(t, whole, Options{Share: own / 2})
	quarter, _ := apply(t, whole, Options{Share: own / 4})
	h, q := collect(t, half), collect(t, quarter)
	s3, s10, s20 := synthetic(t, 0.033), synthetic(t, 0.1), synthetic(t, 0.2)
	for _, c := range []struct {
		name            string
		from, truth     *traces.Memory
		persistence     span
		growth, arrival span
	}{
		{"recording, to a half", withoutMagnitudes(whole), h, span{-17, -8}, span{-3, 6},
			span{-6, 10}},
		{"recording, to a quarter", withoutMagnitudes(whole), q, span{-33, -23}, span{-4, 7},
			span{-6, 11}},
		{"synthetic, 20 to 10 %", s20, s10, span{-7, -2}, span{0, 12}, span{0, 31}},
		{"synthetic, 10 to 3.3 %", s10, s3, span{7, 13}, span{-8, 0}, span{-12, 0}},
		{"recording, from a half", withoutMagnitudes(h), whole, span{0, 9}, span{-12, 2},
			span{-15, 2}},
		{"recording, from a quarter", withoutMagnitudes(q), whole, span{4, 13}, span{-19, 2},
			span{-26, 0}},
		{"synthetic, 10 to 20 %", s10, s20, span{-13, -7}, span{1, 18}, span{6, 54}},
		{"synthetic, 3.3 to 10 %", s3, s10, span{-15, -8}, span{0, 15}, span{3, 32}},
	} {
		out, _ := apply(t, c.from, Options{Share: mean(counted(c.truth)), Seed: 42})
		want, got := windows(t, c.truth), windows(t, out)
		off := func(quantity string, allowed span, want, got float64) {
			if e := 100 * (got/want - 1); !(e >= allowed.least && e <= allowed.most) {
				t.Errorf("%s: %s is off by %+.1f %%, documented are %+v", c.name, quantity, e,
					allowed)
			}
		}
		if e := got.SAgg[1]/want.SAgg[1] - 1; math.Abs(e) > 0.01 {
			t.Errorf("%s: the shares differ by %g", c.name, e)
		}
		off("persistence", c.persistence, 1-want.Delta[1]/want.SAgg[1], 1-got.Delta[1]/got.SAgg[1])
		for _, k := range []int{2, 3, 5, 9, 16, 32} {
			off("s_agg(k)/share", c.growth, want.SAgg[k]/want.SAgg[1], got.SAgg[k]/got.SAgg[1])
		}
		for _, k := range []int{1, 2, 4, 8, 16} {
			off("new(k)/share", c.arrival, want.Delta[k]/want.SAgg[1], got.Delta[k]/got.SAgg[1])
		}
	}
}
