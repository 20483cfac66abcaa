package checkpoint

import "github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"

// DType is an element type as safetensors spells it, for example "F16".
type DType = tensor.DType

// The element types of a model's weights; DType.Size knows more.
const (
	F16  = tensor.F16
	BF16 = tensor.BF16
	F32  = tensor.F32
	U8   = tensor.U8
)

// TensorInfo describes one tensor of a file of any format: its name, its type and shape as read,
// its place, and its encoding there, if any.
type TensorInfo = tensor.Info

// byteSize multiplies shape and element size without overflow.
func byteSize(dtype DType, shape []int64) (int64, error) { return tensor.ByteSize(dtype, shape) }
