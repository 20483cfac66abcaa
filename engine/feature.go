package engine

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine/model"
)

// FeatureKind names a vector of d_model numbers that every token has in every layer. Predictors
// predict the needed units from it. layer.go shows where it comes from.
type FeatureKind uint8

// The kinds of features.
const (
	// FFNInput is the input of the feed-forward part: the residual stream behind that part's norm.
	// Centroids are named by the FFNInput of layer 0 (NeuroPrefetcher, section 3, uses features of
	// layer 0 without saying which).
	FFNInput FeatureKind = iota
	// AttentionOutput is the output of the attention's output projection, with its bias, before it
	// is added to the residual stream, and before Gemma's norm of it. The predictors of LLM in a
	// flash use the AttentionOutput of their own layer (section 3.1). Where attention and
	// feed-forward part are parallel (Falcon, Phi, GPT-NeoX) the units do not depend on it, but it
	// is known before they are needed.
	AttentionOutput
	// Residual is the residual stream in front of the norm of the feed-forward part. PowerInfer's
	// predictors use it (ffn_inp of llama.cpp's graph, for Falcon the layer's input); Deja Vu
	// records it. Where attention and feed-forward part are parallel it is the layer's input,
	// without the attention's output.
	Residual

	FeatureKinds = int(iota) // their number
)

// String returns the kind's name in traces and in the files of predictors.
func (k FeatureKind) String() string {
	switch k {
	case FFNInput:
		return "ffn_input"
	case AttentionOutput:
		return "attention_output"
	case Residual:
		return "residual"
	}
	return fmt.Sprintf("feature kind %d", uint8(k))
}

// ParseFeatureKind reads a name.
func ParseFeatureKind(name string) (FeatureKind, error) {
	for k := range FeatureKind(FeatureKinds) {
		if name == k.String() {
			return k, nil
		}
	}
	return 0, fmt.Errorf("engine: features of kind %q: the engine knows %v, %v and %v", name,
		FFNInput, AttentionOutput, Residual)
}

// In refuses a kind that a model lacks. With norms behind the residual additions (OPT-350M) there
// is no norm in front of the feed-forward part.
func (k FeatureKind) In(arch *model.Arch) error {
	switch {
	case int(k) >= FeatureKinds:
		return fmt.Errorf("engine: %v is not known", k)
	case k == Residual && arch.PostNorm:
		return fmt.Errorf("engine: the model has no %v: no norm lies between its residual "+
			"stream and its feed-forward part; use %v, which is the same there", k, FFNInput)
	}
	return nil
}

// keep copies a feature of all tokens of a step, if the observer or a predictor needs it.
func (e *Engine) keep(s *Step, k FeatureKind) {
	if e.kept[k] {
		e.backend.Keep(s, k)
	}
}
