package gguf

import (
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// encoding is how the elements of a tensor are stored: in blocks of so many elements and bytes.
type encoding struct {
	name     string
	dtype    tensor.DType // the type after decoding
	elements int64
	bytes    int64
	decode   func(dst, block []byte) // nil if the stored bytes are the elements
}

// encodings are the types that are read, by ggml_type.
var encodings = map[uint32]encoding{
	0:  {"F32", tensor.F32, 1, 4, nil},
	1:  {"F16", tensor.F16, 1, 2, nil},
	2:  {"Q4_0", tensor.F32, blockElements, q40Bytes, decodeQ40},
	3:  {"Q4_1", tensor.F32, blockElements, q41Bytes, decodeQ41},
	6:  {"Q5_0", tensor.F32, blockElements, q50Bytes, decodeQ50},
	7:  {"Q5_1", tensor.F32, blockElements, q51Bytes, decodeQ51},
	8:  {"Q8_0", tensor.F32, blockElements, q80Bytes, decodeQ80},
	10: {"Q2_K", tensor.F32, superElements, q2KBytes, decodeQ2K},
	11: {"Q3_K", tensor.F32, superElements, q3KBytes, decodeQ3K},
	12: {"Q4_K", tensor.F32, superElements, q4KBytes, decodeQ4K},
	13: {"Q5_K", tensor.F32, superElements, q5KBytes, decodeQ5K},
	14: {"Q6_K", tensor.F32, superElements, q6KBytes, decodeQ6K},
	20: {"IQ4_NL", tensor.F32, blockElements, iq4NLBytes, decodeIQ4NL},
	23: {"IQ4_XS", tensor.F32, superElements, iq4XSBytes, decodeIQ4XS},
	30: {"BF16", tensor.BF16, 1, 2, nil},
	39: {"MXFP4", tensor.F32, blockElements, mxfp4Bytes, decodeMXFP4},
}

// encodingOf finds a ggml_type by its number.
func encodingOf(number uint32) (encoding, error) {
	if e, ok := encodings[number]; ok {
		return e, nil
	}
	if name := otherType(number); name != "" {
		return encoding{}, fmt.Errorf("%w: type %s; %s are: quantise the original again to one "+
			"of these, for example with llama-quantize", errUnsupported, name, encodingNames())
	}
	return encoding{}, fmt.Errorf("%w: type number %d", errUnsupported, number)
}

// encodingNames lists the types that are read.
func encodingNames() string {
	var list []string
	for number := range uint32(64) {
		if e, ok := encodings[number]; ok {
			list = append(list, e.name)
		}
	}
	return listed(list)
}

// listed is "a, b and c".
func listed(list []string) string {
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

// otherType names the types that cannot be read; "" for unknown numbers.
func otherType(number uint32) string {
	names := [...]string{9: "Q8_1", 15: "Q8_K",
		16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S", 22: "IQ2_S",
		24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0",
		35: "TQ2_0", 40: "NVFP4", 41: "Q1_0"}
	if number < uint32(len(names)) {
		return names[number]
	}
	return ""
}
