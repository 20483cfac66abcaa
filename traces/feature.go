package traces

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// The values of Header.FeatureKind: what a layer's predictor may be given, for one token.
// "Parallel" are families whose attention and feed-forward part start from the same state (Falcon,
// Phi).
const (
	// FFNInput is what the feed-forward part was computed from: the state behind that part's norm
	// (for families whose attention and feed-forward part share one, behind that). The row of layer
	// 0 is a feature for NeuroPrefetcher's predictor of whole tokens.
	FFNInput = "ffn_input"
	// AttentionOutput is the output of the attention block behind its output projection, before it
	// was added to the residual: LLM in a flash (section 3.1) predicts from it. In parallel
	// families the units do not depend on it.
	AttentionOutput = "attention_output"
	// Residual is the state in front of the norm of the feed-forward part (PowerInfer, Deja Vu):
	// with the attention's output added, or in parallel families the input of the layer.
	Residual = "residual"
)

// FeatureKinds lists the kinds, for messages and choices.
func FeatureKinds() []string { return []string{FFNInput, AttentionOutput, Residual} }

// knownFeature says whether a header's kind of features is one of ours, or may be one of a later
// minor version of the schema: that is read, and whoever needs to know what the features are
// refuses it.
func knownFeature(h *Header) bool {
	switch h.FeatureKind {
	case "", FFNInput, AttentionOutput, Residual:
		return true
	}
	return minor(h.SchemaVersion) > minor(SchemaVersion)
}

// minor is the second number of a version; 0 where there is none.
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

// TokenBytes is the size of a token in an uncompressed trace, without its magnitudes: one byte for
// every active unit.
func (h *Header) TokenBytes() int64 {
	row := int64(0)
	for _, c := range traceColumns(h) {
		row += int64(c.Width())
	}
	return row * int64(h.Layers)
}

// notFinite counts the float16 numbers of a feature that are infinite or not a number: those with
// all bits of the exponent set.
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
