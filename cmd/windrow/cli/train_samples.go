package cli

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/kernels/ref"
	"github.com/windrow-sim/windrow/traces"
)

// leastTokens is how many tokens a training needs to say anything: a batch to learn from and as
// many again.
const leastTokens = 128

// traceSamples are the tokens of a mapped trace as a predictor learns from them: predictor.Samples.
// Beside the file it takes 4 bytes for each token. Its methods may be called from several
// goroutines.
type traceSamples struct {
	src      *traces.Reader
	head     *traces.Header
	ahead    bool     // layer l's feature goes with the units of layer l+1
	sequence []uint32 // by token
	active   int64    // units of all tokens and layers
	tokens   sync.Pool
}

// newTraceSamples goes through a trace once and refuses one that cannot be learned from.
func newTraceSamples(path string, src *traces.Reader, ahead bool) (*traceSamples, error) {
	head := src.Header()
	switch {
	case head.FeatureKind == "":
		return nil, inputError("%s holds no features to predict from; record it again: windrow "+
			"record --features", path)
	case !slices.Contains(traces.FeatureKinds(), head.FeatureKind): // of a later version
		return nil, inputError("%s holds features of the kind %q; %s are known; record it "+
			"again: windrow record --features", path, head.FeatureKind,
			strings.Join(traces.FeatureKinds(), ", "))
	case src.Compress() != "none":
		return nil, inputError("%s is compressed (%s), and training reads tokens in any order; "+
			"record it again without --compress", path, src.Compress())
	case ahead && head.Layers < 2:
		return nil, inputError("%s is of a model of one layer, which no other goes ahead of", path)
	}
	s := &traceSamples{src: src, head: head, ahead: ahead, sequence: make([]uint32, src.Tokens())}
	s.tokens.New = func() any { return new(traces.Token) }
	var t traces.Token
	for i := range s.sequence {
		if err := src.Token(i, &t); err != nil {
			return nil, err
		}
		s.sequence[i] = t.Seq
		for _, active := range t.Active {
			s.active += int64(active.Count())
		}
	}
	return s, nil
}

// Len implements predictor.Samples, as do the other methods.
func (s *traceSamples) Len() int { return len(s.sequence) }

// Layers is the number of layers.
func (s *traceSamples) Layers() int { return s.head.Layers }

// Width is the length of a feature.
func (s *traceSamples) Width() int { return s.head.FeatureWidth }

// Units is the number of units of a layer.
func (s *traceSamples) Units() int { return s.head.Units }

// Sequence numbers the text of a token.
func (s *traceSamples) Sequence(i int) int { return int(s.sequence[i]) }

// with calls f with a token, which is valid during the call only.
func (s *traceSamples) with(i int, f func(t *traces.Token)) error {
	t := s.tokens.Get().(*traces.Token)
	defer s.tokens.Put(t)
	if err := s.src.Token(i, t); err != nil {
		return err
	}
	f(t)
	return nil
}

// feature is what predictors of these samples predict from.
func (s *traceSamples) feature() predictor.Feature {
	f := predictor.Feature(s.head.FeatureKind)
	if s.ahead {
		return f.ForNextLayer()
	}
	return f
}

// Feature fills dst with that of the layer.
func (s *traceSamples) Feature(i, layer int, dst []float32) error {
	return s.with(i, func(t *traces.Token) { fromHalves(t.Feature[layer], dst) })
}

// fromHalves reads little-endian float16 numbers.
func fromHalves(raw []byte, dst []float32) {
	for k := range dst {
		dst[k] = ref.F16ToF32(binary.LittleEndian.Uint16(raw[2*k:]))
	}
}

// all are the indices of the tokens.
func (s *traceSamples) all() []int {
	list := make([]int, s.Len())
	for i := range list {
		list[i] = i
	}
	return list
}

// named is the layer whose units an entry names; the number of layers if there is none.
func (s *traceSamples) named(entry int) int {
	if s.ahead {
		return entry + 1
	}
	return entry
}

// Active fills dst with the units that the entry should name.
func (s *traceSamples) Active(i, entry int, dst mask.Mask) error {
	return s.with(i, func(t *traces.Token) {
		if l := s.named(entry); l < len(t.Active) {
			copy(dst, t.Active[l])
		} else {
			clear(dst)
		}
	})
}

// HasMagnitudes says whether the trace was recorded with --magnitudes.
func (s *traceSamples) HasMagnitudes() bool { return s.head.HasMagnitude }

// Magnitudes fills dst with the |activation| of the units of Active, rounded down as the trace has
// them.
func (s *traceSamples) Magnitudes(i, entry int, dst []float32) error {
	return s.with(i, func(t *traces.Token) {
		if l := s.named(entry); l < len(t.Magnitude) {
			for k, code := range t.Magnitude[l] {
				dst[k] = float32(traces.MagnitudeFloor(code))
			}
		}
	})
}

// meanActive is the number of active units of a token's layer, mean.
func (s *traceSamples) meanActive() float64 {
	return float64(s.active) / (float64(s.Len()) * float64(s.Layers()))
}

// tokenSamples are the same tokens with the feature of layer 0 alone: centroid.Samples. A trace has
// one mask for each layer, in which gate and up have met already, so there is one projection.
type tokenSamples struct{ of *traceSamples }

// Len implements centroid.Samples, as do the other methods.
func (s tokenSamples) Len() int { return s.of.Len() }

// Shape is that of the trace.
func (s tokenSamples) Shape() centroid.Shape {
	return centroid.Shape{Layers: s.of.Layers(), Projections: 1, Units: s.of.Units(),
		Width: s.of.Width()}
}

// Feature fills dst with that of layer 0.
func (s tokenSamples) Feature(i int, dst []float32) error { return s.of.Feature(i, 0, dst) }

// Mask fills dst with the active units of a layer.
func (s tokenSamples) Mask(i, layer, _ int, dst mask.Mask) error {
	return s.of.Active(i, layer, dst)
}
