package checkpoint

import "github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"

// DType is an element type as safetensors spells it, for example "F16".
type DType = tensor.DType

// The element types that a model's weights come in; DType.Size knows the others.
const (
	F16  = tensor.F16
	BF16 = tensor.BF16
	F32  = tensor.F32
	U8   = tensor.U8
)

// TensorInfo describes one tensor of a file, whatever the format: its name, type and shape as it is
// read, its place, and how it is encoded there if not plainly.
type TensorInfo = tensor.Info

// byteSize multiplies shape and element size without overflow.
func byteSize(dtype DType, shape []int64) (int64, error) { return tensor.ByteSize(dtype, shape) }
