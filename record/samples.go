package record

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/kernels/ref"
	"github.com/windrow-sim/windrow/traces"
)

// LeastTokens is the fewest tokens that a training can learn from: a batch and as many again.
const LeastTokens = 128

// Samples are the tokens of a mapped trace as a predictor learns from them: predictor.Samples.
// Beside the file it takes 4 bytes for each token. Its methods may be called from several
// goroutines.
type Samples struct {
	src      *traces.Reader
	head     *traces.Header
	ahead    bool     // layer l's feature goes with the units of layer l+1
	sequence []uint32 // by token
	active   int64    // units of all tokens and layers
	tokens   sync.Pool
}

// NewSamples goes through a trace once and refuses one that cannot be learned from.
func NewSamples(path string, src *traces.Reader, ahead bool) (*Samples, error) {
	head := src.Header()
	switch {
	case head.FeatureKind == "":
		return nil, refusal.Input("%s holds no features to predict from; record it again: windrow "+
			"record {Features}", path)
	case !slices.Contains(traces.FeatureKinds(), head.FeatureKind): // of a later version
		return nil, refusal.Input("%s holds features of the kind %q; %s are known; record it "+
			"again: windrow record {Features}", path, head.FeatureKind,
			strings.Join(traces.FeatureKinds(), ", "))
	case src.Compress() != "none":
		return nil, refusal.Input("%s is compressed (%s), and training reads tokens in any order; "+
			"record it again without {Compress}", path, src.Compress())
	case ahead && head.Layers < 2:
		return nil, refusal.Input("%s is of a model of one layer, which no other goes ahead of",
			path)
	}
	s := &Samples{src: src, head: head, ahead: ahead, sequence: make([]uint32, src.Tokens())}
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

// Header describes the trace.
func (s *Samples) Header() *traces.Header { return s.head }

// SHA256 is the hash of the trace.
func (s *Samples) SHA256() string { return s.src.SHA256() }

// Ahead says whether an entry names the units of the layer after it.
func (s *Samples) Ahead() bool { return s.ahead }

// Token reads a token of the trace, as traces.Reader does.
func (s *Samples) Token(i int, t *traces.Token) error { return s.src.Token(i, t) }

// Len implements predictor.Samples, as do the other methods.
func (s *Samples) Len() int { return len(s.sequence) }

// Layers is the number of layers.
func (s *Samples) Layers() int { return s.head.Layers }

// Width is the length of a feature.
func (s *Samples) Width() int { return s.head.FeatureWidth }

// Units is the number of units of a layer.
func (s *Samples) Units() int { return s.head.Units }

// Sequence numbers the text of a token.
func (s *Samples) Sequence(i int) int { return int(s.sequence[i]) }

// With calls f with a token, which is valid during the call only.
func (s *Samples) With(i int, f func(t *traces.Token)) error {
	t := s.tokens.Get().(*traces.Token)
	defer s.tokens.Put(t)
	if err := s.src.Token(i, t); err != nil {
		return err
	}
	f(t)
	return nil
}

// Predicts is what predictors of these samples predict from.
func (s *Samples) Predicts() predictor.Feature {
	f := predictor.Feature(s.head.FeatureKind)
	if s.ahead {
		return f.ForNextLayer()
	}
	return f
}

// Feature fills dst with that of the layer.
func (s *Samples) Feature(i, layer int, dst []float32) error {
	return s.With(i, func(t *traces.Token) { Widen(t.Feature[layer], dst) })
}

// Widen reads little-endian float16 numbers.
func Widen(raw []byte, dst []float32) {
	for k := range dst {
		dst[k] = ref.F16ToF32(binary.LittleEndian.Uint16(raw[2*k:]))
	}
}

// All are the indices of the tokens.
func (s *Samples) All() []int {
	list := make([]int, s.Len())
	for i := range list {
		list[i] = i
	}
	return list
}

// named is the layer whose units an entry names; the number of layers if there is none.
func (s *Samples) named(entry int) int {
	if s.ahead {
		return entry + 1
	}
	return entry
}

// Active fills dst with the units that the entry should name.
func (s *Samples) Active(i, entry int, dst mask.Mask) error {
	return s.With(i, func(t *traces.Token) {
		if l := s.named(entry); l < len(t.Active) {
			copy(dst, t.Active[l])
		} else {
			clear(dst)
		}
	})
}

// HasMagnitudes says whether the trace was recorded with --magnitudes.
func (s *Samples) HasMagnitudes() bool { return s.head.HasMagnitude }

// Magnitudes fills dst with the |activation| of the units of Active, rounded down as the trace has
// them.
func (s *Samples) Magnitudes(i, entry int, dst []float32) error {
	return s.With(i, func(t *traces.Token) {
		if l := s.named(entry); l < len(t.Magnitude) {
			for k, code := range t.Magnitude[l] {
				dst[k] = float32(traces.MagnitudeFloor(code))
			}
		}
	})
}

// MeanActive is the number of active units of a token's layer, mean.
func (s *Samples) MeanActive() float64 {
	return float64(s.active) / (float64(s.Len()) * float64(s.Layers()))
}

// TokenSamples are the same tokens with the feature of layer 0 alone: centroid.Samples. A trace has
// one mask for each layer, in which gate and up have met already, so there is one projection.
type TokenSamples struct{ Of *Samples }

// Len implements centroid.Samples, as do the other methods.
func (s TokenSamples) Len() int { return s.Of.Len() }

// Shape is that of the trace.
func (s TokenSamples) Shape() centroid.Shape {
	return centroid.Shape{Layers: s.Of.Layers(), Projections: 1, Units: s.Of.Units(),
		Width: s.Of.Width()}
}

// Feature fills dst with that of layer 0.
func (s TokenSamples) Feature(i int, dst []float32) error { return s.Of.Feature(i, 0, dst) }

// Mask fills dst with the active units of a layer.
func (s TokenSamples) Mask(i, layer, _ int, dst mask.Mask) error {
	return s.Of.Active(i, layer, dst)
}
