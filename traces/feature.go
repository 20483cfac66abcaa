package traces

import "encoding/binary"

// FFNInput is the FeatureKind of what the feed-forward part of a layer was computed from: the state behind that part's norm (for families
// whose attention and feed-forward part share one, behind that).
const FFNInput = "ffn_input"

const (
	featureNumberBytes = 2 // of a float16
	maxFeatureWidth    = 1 << 20
)

// featureBytes is the size of the feature of one layer.
func (h *Header) featureBytes() int { return featureNumberBytes * h.FeatureWidth }

// TokenBytes is the size of a token in an uncompressed trace, without its magnitudes: one byte for every active unit.
func (h *Header) TokenBytes() int64 {
	row := int64(0)
	for _, c := range traceColumns(h) {
		row += int64(c.Width())
	}
	return row * int64(h.Layers)
}

// notFinite counts the float16 numbers of a feature that are infinite or not a number: those with all bits of the exponent set.
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
