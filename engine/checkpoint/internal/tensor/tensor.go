package tensor

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/windrow-sim/windrow/internal/refusal"
)

// The kinds of errors, to be tested with errors.Is. Errors of the operating system keep their own
// kind (fs.ErrNotExist and so on).
var (
	// ErrFormat: a file is broken: of another kind, truncated, or contradictory.
	ErrFormat = refusal.Kind(refusal.ErrInput, "bad format")
	// ErrUnsupported: a file may be whole but has content that this program does not handle.
	ErrUnsupported = refusal.Kind(refusal.ErrInput, "not supported")
)

// DType is an element type as safetensors spells it, for example "F16".
type DType string

// The element types of a model's weights; Size knows more.
const (
	F16  DType = "F16"
	BF16 DType = "BF16"
	F32  DType = "F32"
	U8   DType = "U8"
)

// NamedType returns the type of that name. The names of the known types cost no memory. Every other
// name is clipped: it only serves a message.
func NamedType(name []byte) DType {
	for _, d := range [...]DType{F16, BF16, F32, U8, "BOOL", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0",
		"I16", "U16", "I32", "U32", "I64", "U64", "F64", "C64"} {
		if string(d) == string(name) {
			return d
		}
	}
	return DType(Clip(string(name)))
}

// Size returns the number of bytes of one element, 0 for an unknown type and for the types of less
// than a byte.
func (d DType) Size() int64 {
	switch d {
	case "BOOL", U8, "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0":
		return 1
	case "I16", "U16", F16, BF16:
		return 2
	case "I32", "U32", F32:
		return 4
	case "I64", "U64", "F64", "C64":
		return 8
	}
	return 0
}

// Info describes one tensor of a file, as it is read.
type Info struct {
	Name  string
	DType DType
	Shape []int64 // empty for a scalar; a dimension may be 0
	// Offset is the place of the first byte, counted from the start of the file. A Writer ignores
	// it.
	Offset int64
	// Size in bytes, the product of the shape times the element size. A Writer ignores it.
	Size int64
	// Encoding is the file's storage of the tensor, if it is not Size bytes from Offset on: "Q4_0",
	// "strided", "big-endian" and so on. Reading decodes it. A Writer ignores it.
	Encoding string
}

// Elements is the number of elements.
func (t Info) Elements() int64 {
	if n := t.DType.Size(); n > 0 {
		return t.Size / n
	}
	return 0
}

// ByteSize multiplies shape and element size without overflow. A negative dimension is an
// ErrFormat, an unknown type an ErrUnsupported.
func ByteSize(dtype DType, shape []int64) (int64, error) {
	size := uint64(dtype.Size())
	if size == 0 {
		return 0, fmt.Errorf("%w: dtype %q; save the tensor in another type", ErrUnsupported, dtype)
	}
	empty := false
	for _, dim := range shape {
		if dim < 0 {
			return 0, fmt.Errorf("%w: shape %v has a negative dimension", ErrFormat, shape)
		}
		empty = empty || dim == 0
	}
	if empty {
		return 0, nil
	}
	for _, dim := range shape {
		hi, lo := bits.Mul64(size, uint64(dim))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, fmt.Errorf("%w: shape %v of %s is more than a file can hold", ErrFormat,
				shape, dtype)
		}
		size = lo
	}
	return int64(size), nil
}

// Clip shortens text that a file provides for a message.
func Clip(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
