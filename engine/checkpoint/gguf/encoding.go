package gguf

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// encoding is how the elements of a tensor are stored: in blocks of so many elements and bytes.
type encoding struct {
	name     string
	dtype    tensor.DType // the type after decoding; "" for an unsupported type
	elements int64
	bytes    int64
	decode   func(dst, block []byte) // nil if the stored bytes are the elements
}

// encodingOf finds a ggml_type by its number.
func encodingOf(number uint32) (encoding, error) {
	switch number {
	case 0:
		return encoding{"F32", tensor.F32, 1, 4, nil}, nil
	case 1:
		return encoding{"F16", tensor.F16, 1, 2, nil}, nil
	case 2:
		return encoding{"Q4_0", tensor.F32, blockElements, q4Bytes, decodeQ4}, nil
	case 8:
		return encoding{"Q8_0", tensor.F32, blockElements, q8Bytes, decodeQ8}, nil
	case 14:
		return encoding{"Q6_K", tensor.F32, superElements, q6Bytes, decodeQ6}, nil
	case 30:
		return encoding{"BF16", tensor.BF16, 1, 2, nil}, nil
	}
	if name := otherType(number); name != "" {
		return encoding{}, fmt.Errorf("%w: type %s; F32, F16, BF16, Q8_0, Q6_K and Q4_0 are: "+
			"quantise the original again (llama-quantize --pure keeps to one type)",
			errUnsupported, name)
	}
	return encoding{}, fmt.Errorf("%w: type number %d", errUnsupported, number)
}

// otherType names the types that cannot be read; "" for unknown numbers.
func otherType(number uint32) string {
	names := [...]string{3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
		12: "Q4_K", 13: "Q5_K", 15: "Q8_K",
		16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S",
		22: "IQ2_S", 23: "IQ4_XS",
		24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0",
		39: "MXFP4"}
	if number < uint32(len(names)) {
		return names[number]
	}
	return ""
}
