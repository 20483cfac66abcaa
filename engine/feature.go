package engine

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine/model"
)

// FeatureKind names a vector of d_model numbers that a token has in every layer, from which
// predictors tell which units the layer needs. layer.go says where it is.
type FeatureKind uint8

// The kinds of features.
const (
	// FFNInput is what the feed-forward part is computed from: the residual stream behind that
	// part's norm. That of layer 0 is what centroids are named from (NeuroPrefetcher, section 3:
	// features of layer 0, of which the text does not say which).
	FFNInput FeatureKind = iota
	// AttentionOutput is what the output projection of the attention gives, with its bias, before
	// it is added to the residual stream: the predictors of LLM in a flash take that of their own
	// layer (section 3.1). Where attention and feed-forward part start side by side (Falcon, Phi)
	// the units do not depend on it, but it is known before they are needed.
	AttentionOutput
	// Residual is the residual stream in front of the norm of the feed-forward part: what
	// PowerInfer hands to its predictors (ffn_inp of llama.cpp's graph, for Falcon the layer's
	// input) and Deja Vu records for its own. Where attention and feed-forward part start side by
	// side it is the layer's input, without the attention's output.
	Residual

	FeatureKinds = int(iota) // their number
)

// String is the kind's name in traces and in the files of predictors.
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

// In refuses a kind that a model has not: with norms behind the residual additions (OPT-350M) none
// lies in front of the feed-forward part.
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

// keep sets a feature aside, of all tokens of a step, if somebody wants it.
func (e *Engine) keep(s *Step, k FeatureKind) {
	if e.kept[k] {
		e.backend.Keep(s, k)
	}
}
