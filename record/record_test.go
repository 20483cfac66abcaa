package record

import (
	"fmt"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

type list []traces.Token

func (l *list) Append(t *traces.Token) error {
	c := *t
	c.Active = make([]mask.Mask, len(t.Active))
	for i, m := range t.Active {
		c.Active[i] = slices.Clone(m)
	}
	*l = append(*l, c)
	return nil
}

func TestRecorderKeepsOrderAndPhase(t *testing.T) {
	var got list
	r := New(&got, 2, 1)
	for pos := range 3 {
		for l := range 2 {
			if err := r.Layer(&engine.LayerEvent{Layer: l, Active: []uint64{
				uint64(10*pos + l)}}); err != nil {
				t.Fatal(err)
			}
		}
		ev := engine.TokenEvent{Token: engine.Token{Seq: 4, Pos: pos, ID: uint32(100 + pos),
			Prefill: pos < 2}}
		if err := r.Token(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 3 {
		t.Fatalf("%d tokens, want 3", len(got))
	}
	for pos, tok := range got {
		phase := traces.Prefill
		if pos == 2 {
			phase = traces.Decode
		}
		if tok.Seq != 4 || tok.Pos != uint32(pos) || tok.ID != uint32(100+pos) ||
			tok.Phase != phase ||
			tok.Active[0][0] != uint64(10*pos) || tok.Active[1][0] != uint64(10*pos+1) {
			t.Errorf("token %d recorded as %+v", pos, tok)
		}
	}
}

func TestRecorderRefusesWrongShapes(t *testing.T) {
	var got list
	for _, ev := range []engine.LayerEvent{
		{Layer: 1, Active: []uint64{0}},    // layer 0 is missing
		{Layer: 0, Active: []uint64{0, 0}}, // too wide
	} {
		if err := New(&got, 2, 1).Layer(&ev); err == nil {
			t.Errorf("event %+v gave no error", ev)
		}
	}
	r := New(&got, 1, 1)
	if err := r.Layer(&engine.LayerEvent{Active: []uint64{1}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Layer(&engine.LayerEvent{Layer: 1, Active: []uint64{1}}); err == nil {
		t.Error("a layer beyond the trace gave no error")
	}
}

func TestRecorderOfMagnitudes(t *testing.T) {
	var magnitudes [][]byte
	r := newFor(t, traces.Header{Layers: 2, Units: 64, HasMagnitude: true},
		func(tok *traces.Token) error {
			for _, m := range tok.Magnitude {
				magnitudes = append(magnitudes, slices.Clone(m))
			}
			return nil
		})
	// two tokens of two layers; the value of zero is no active unit
	for i, values := range [][]float32{{1, 0, 2}, {}, {-0.5}, {8, 1, 1, 1}} {
		mask := uint64(1)<<len(slices.DeleteFunc(slices.Clone(values), func(v float32) bool {
			return v == 0
		})) - 1
		if err := r.Layer(&engine.LayerEvent{Layer: i % 2, Active: []uint64{mask},
			Values: values}); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			if err := r.Token(&engine.TokenEvent{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := [][]byte{
		{traces.MagnitudeCode(1), traces.MagnitudeCode(2)}, {}, {traces.MagnitudeCode(0.5)},
		{traces.MagnitudeCode(8), traces.MagnitudeCode(1), traces.MagnitudeCode(1),
			traces.MagnitudeCode(1)},
	}
	if !slices.EqualFunc(magnitudes, want, slices.Equal[[]byte]) {
		t.Errorf("recorded %v, want %v", magnitudes, want)
	}
}

// What the header does not ask for is not kept, and a token costs no allocation, not even with
// everything.
func TestRecorderAllocatesNothing(t *testing.T) {
	for _, head := range []traces.Header{
		{Layers: 1, Units: 64},
		{Layers: 1, Units: 64, HasMagnitude: true, FeatureKind: traces.FFNInput, FeatureWidth: 3},
	} {
		r := newFor(t, head, func(tok *traces.Token) error {
			if (tok.Magnitude != nil) != head.HasMagnitude ||
				(tok.Feature != nil) != (head.FeatureWidth > 0) {
				t.Errorf("magnitudes %v, features %v", tok.Magnitude, tok.Feature)
			}
			return nil
		})
		layer, token := engine.LayerEvent{Active: []uint64{1}, Values: []float32{1},
			Feature: []float32{1, 2, 3}}, engine.TokenEvent{}
		if n := testing.AllocsPerRun(10, func() {
			if err := r.Layer(&layer); err != nil {
				t.Fatal(err)
			}
			if err := r.Token(&token); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations per token", n)
		}
	}
}

func newFor(t *testing.T, head traces.Header, f appendFunc) *Recorder {
	t.Helper()
	r, err := NewFor(f, &head)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type appendFunc func(*traces.Token) error

func (f appendFunc) Append(t *traces.Token) error { return f(t) }

// TestRecorderOfSteps records tokens that went through the model together, layer by layer.
func TestRecorderOfSteps(t *testing.T) {
	var got []string
	r := New(appendFunc(func(tok *traces.Token) error {
		got = append(got, fmt.Sprint(tok.Seq, tok.Pos, tok.ID, tok.Active))
		return nil
	}), 2, 1)
	for layer := range 2 {
		for lane := range 3 {
			if err := r.Layer(&engine.LayerEvent{Layer: layer, Entry: lane, Active: []uint64{
				uint64(10*layer + lane)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for lane := range 3 {
		if err := r.Token(&engine.TokenEvent{Entry: lane, Token: engine.Token{Pos: lane,
			ID: uint32(7 + lane)}}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"0 0 7 [[0] [10]]", "0 1 8 [[1] [11]]", "0 2 9 [[2] [12]]"}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %v, want %v", got, want)
	}
}
