package record

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/kernels/ref"
	"github.com/windrow-sim/windrow/traces"
)

var (
	_ predictor.Samples = (*Samples)(nil)
	_ centroid.Samples  = TokenSamples{}
)

// widened reads the float16 numbers of a feature.
func widened(raw []byte, dst []float32) {
	for k := range dst {
		dst[k] = ref.F16ToF32(binary.LittleEndian.Uint16(raw[2*k:]))
	}
}

// recordTales records two prompts of the shipped model, with features and magnitudes.
func recordTales(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	tok, err := tokenizer.Load(t.Context(), "../examples/models/tales")
	if err != nil {
		t.Fatal(err)
	}
	text, err := tok.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(dir, "tales.flash.safetensors")
	if _, err := model.Pack(t.Context(), "../examples/models/tales", image,
		model.PackOptions{Tokenizer: text}); err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), session.Config{Model: image})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cfg := DefaultConfig()
	cfg.Prompts, cfg.N, cfg.Out = []string{"Once upon a time", "The fox"}, 8,
		filepath.Join(dir, "a.trace.arrow")
	cfg.Magnitudes, cfg.FeatureKind = true, traces.FFNInput
	r, err := Run(t.Context(), s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Sequences != 2 || r.Tokens < 16 || r.Trace != cfg.Out {
		t.Errorf("%+v", r)
	}
	return r.Trace
}

// readTokens returns copies of all tokens of a trace, and its header.
func readTokens(t *testing.T, path string) ([]traces.Token, traces.Header) {
	t.Helper()
	r, err := traces.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var list []traces.Token
	for i := range r.Tokens() {
		var tok traces.Token
		if err := r.Token(i, &tok); err != nil {
			t.Fatal(err)
		}
		list = append(list, clone(&tok))
	}
	return list, *r.Header()
}

// TestTraceSamples: samples are what the trace holds, from any number of goroutines; looking ahead,
// the units are those of the layer after.
func TestTraceSamples(t *testing.T) {
	path := recordTales(t)
	tokens, head := readTokens(t, path)
	for _, ahead := range []bool{false, true} {
		r, err := traces.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s, err := NewSamples(path, r, ahead)
		if err != nil {
			t.Fatal(err)
		}
		if s.Len() != len(tokens) || s.Layers() != head.Layers || s.Width() != head.FeatureWidth ||
			s.Units() != head.Units || !s.HasMagnitudes() {
			t.Fatalf("%d tokens of %d layers", s.Len(), s.Layers())
		}
		var group sync.WaitGroup
		for layer := range s.Layers() {
			group.Go(func() { checkSamples(t, s, tokens, layer, ahead) })
		}
		group.Wait()
		mask, feature, want := make([]uint64, head.Words()), make([]float32, s.Width()),
			make([]float32, s.Width())
		of := TokenSamples{s}
		widened(tokens[3].Feature[0], want)
		if err := of.Feature(3, feature); err != nil || !slices.Equal(feature, want) {
			t.Errorf("the feature of a token is not that of layer 0: %v", err)
		}
		if err := of.Mask(3, 1, 0, mask); err != nil || !ahead &&
			!slices.Equal(mask, tokens[3].Active[1]) {
			t.Errorf("the mask of layer 1 is another: %v", err)
		}
	}
}

// checkSamples compares one entry with the tokens.
func checkSamples(t *testing.T, s *Samples, tokens []traces.Token, entry int, ahead bool) {
	feature, want, mask := make([]float32, s.Width()), make([]float32, s.Width()), make([]uint64,
		s.Units()/64)
	for i := range tokens {
		named, mags := entry, []byte(nil)
		if ahead {
			named++
		}
		active := make([]uint64, len(mask)) // of the layer after the last: none
		if named < len(tokens[i].Active) {
			active, mags = tokens[i].Active[named], tokens[i].Magnitude[named]
		}
		got := make([]float32, len(mags))
		for _, err := range []error{s.Feature(i, entry, feature), s.Active(i, entry, mask),
			s.Magnitudes(i, entry, got)} {
			if err != nil {
				t.Error(err)
				return
			}
		}
		widened(tokens[i].Feature[entry], want)
		if !slices.Equal(feature, want) || !slices.Equal(mask, active) ||
			s.Sequence(i) != int(tokens[i].Seq) {
			t.Errorf("token %d, entry %d: other than in the trace", i, entry)
			return
		}
		for k, code := range mags {
			if got[k] != float32(traces.MagnitudeFloor(code)) {
				t.Errorf("token %d, entry %d: magnitude %d is %v", i, entry, k, got[k])
				return
			}
		}
	}
}
