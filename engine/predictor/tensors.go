package predictor

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// names are the names of a layer's tensors: W1, b1, W2, b2.
type names [4]string

// readLayer reads a layer with features of the given width and so many units from tensors of any
// float type, rounds weights to float16, and returns the number of tensors. Without both matrices
// the layer has no predictor; biases are optional.
func readLayer(t checkpoint.Tensors, l *Layer, name names, width, unitsPerLayer int) (used int,
	err error) {
	first, ok1 := t.Tensor(name[0])
	_, ok2 := t.Tensor(name[2])
	if !ok1 && !ok2 {
		return 0, nil
	}
	if !ok1 || !ok2 {
		return 0, fmt.Errorf("%w: one of %s and %s is missing", checkpoint.ErrFormat, name[0],
			name[2])
	}
	rank := 0
	if len(first.Shape) == 2 && first.Shape[0] >= 1 && first.Shape[0] <= maxDimension {
		rank = int(first.Shape[0])
	}
	w1, err1 := readFloats(t, name[0], []int{rank, width})
	w2, err2 := readFloats(t, name[2], []int{unitsPerLayer, rank})
	switch {
	case err1 != nil:
		return 0, err1
	case err2 != nil:
		return 0, err2
	}
	l.Rank, l.W1, l.W2, used = rank, half(w1), half(w2), 2
	for _, bias := range []struct {
		name string
		dst  *[]float32
		n    int
	}{{name[1], &l.B1, rank}, {name[3], &l.B2, unitsPerLayer}} {
		if _, ok := t.Tensor(bias.name); !ok {
			continue
		}
		if *bias.dst, err = readFloats(t, bias.name, []int{bias.n}); err != nil {
			return 0, err
		}
		used++
	}
	return used, nil
}

// readFloats reads a tensor of exactly the given shape.
func readFloats(t checkpoint.Tensors, name string, shape []int) ([]float32, error) {
	info, _ := t.Tensor(name)
	want, n := make([]int64, len(shape)), 1
	same := len(info.Shape) == len(shape)
	for i, dim := range shape {
		want[i] = int64(dim)
		n *= dim
		same = same && info.Shape[i] == want[i]
	}
	if !same || n == 0 {
		return nil, fmt.Errorf("%w: tensor %s has shape %v, the predictor needs %v", ErrMismatch,
			name, info.Shape, want)
	}
	out := make([]float32, n) // no larger than the file, which has been checked to hold the tensor
	return out, checkpoint.ReadRows(t, name, 0, want[0], out)
}

func half(full []float32) []uint16 {
	out := make([]uint16, len(full))
	for i, v := range full {
		out[i] = ref.F32ToF16(v)
	}
	return out
}
