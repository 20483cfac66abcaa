package cli

import (
	"encoding/binary"
	"slices"
	"sync"
	"testing"

	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/kernels/ref"
	"github.com/windrow-sim/windrow/traces"
)

var (
	_ predictor.Samples = (*traceSamples)(nil)
	_ centroid.Samples  = tokenSamples{}
)

// halves widens the float16 numbers of a feature.
func halves(raw []byte, dst []float32) {
	for k := range dst {
		dst[k] = ref.F16ToF32(binary.LittleEndian.Uint16(raw[2*k:]))
	}
}

// TestTraceSamples: samples are what the trace holds, from any number of goroutines; looking ahead,
// the units are those of the layer after.
func TestTraceSamples(t *testing.T) {
	trainWorkspace(t)
	tokens, head := readTokens(t, "judge.trace.arrow")
	for _, ahead := range []bool{false, true} {
		r, err := traces.Open("judge.trace.arrow")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s, err := newTraceSamples("judge.trace.arrow", r, ahead)
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
		of := tokenSamples{s}
		halves(tokens[3].Feature[0], want)
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
func checkSamples(t *testing.T, s *traceSamples, tokens []traces.Token, entry int, ahead bool) {
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
		halves(tokens[i].Feature[entry], want)
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
