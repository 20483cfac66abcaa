package traces

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// The values of Header.FeatureKind: the input of a layer's predictor, for one token. In parallel
// families (Falcon, Phi) attention and the feed-forward block start from the same state.
const (
	// FFNInput is the input of the feed-forward block: the state after that block's norm. Families
	// with one norm for both blocks use the state after that norm. The row of layer 0 is a feature
	// for NeuroPrefetcher's predictor of whole tokens.
	FFNInput = "ffn_input"
	// AttentionOutput is the output of the attention block after its output projection, before it
	// is added to the residual. LLM in a flash (section 3.1) predicts from it. In parallel families
	// the units do not depend on it.
	AttentionOutput = "attention_output"
	// Residual is the state before the norm of the feed-forward block (PowerInfer, Deja Vu). It
	// includes the attention's output; in parallel families it is the input of the layer.
	Residual = "residual"
)

// FeatureKinds lists the kinds, for messages and choices.
func FeatureKinds() []string { return []string{FFNInput, AttentionOutput, Residual} }

// knownFeature reports whether this version may read a trace with a header's kind of features. A
// kind of a later minor version is read too. Code that uses the features refuses a kind that it
// does not know.
func knownFeature(h *Header) bool {
	switch h.FeatureKind {
	case "", FFNInput, AttentionOutput, Residual:
		return true
	}
	return minor(h.SchemaVersion) > minor(SchemaVersion)
}

// minor returns the second number of a version, 0 if there is none.
func minor(version string) int {
	_, text, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(text)
	return n
}

const (
	featureNumberBytes = 2 // of a float16
	maxFeatureWidth    = 1 << 20
)

// featureBytes is the size of the feature of one layer.
func (h *Header) featureBytes() int { return featureNumberBytes * h.FeatureWidth }

// TokenBytes is the size of a token in an uncompressed trace, without its magnitudes, which take
// one byte per active unit.
func (h *Header) TokenBytes() int64 {
	row := int64(0)
	for _, c := range traceColumns(h) {
		row += int64(c.Width())
	}
	return row * int64(h.Layers)
}

// notFinite counts the float16 numbers of a feature that are infinite or not a number: all bits of
// their exponent are set.
func notFinite(feature []byte) int {
	const exponent = 0x7C00
	n := 0
	for ; len(feature) > 0; feature = feature[featureNumberBytes:] {
		if binary.LittleEndian.Uint16(feature)&exponent == exponent {
			n++
		}
	}
	return n
}
