package torch

import (
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// storage is the bytes that tensors are views of.
type storage struct {
	dtype    tensor.DType
	elements int64
	offset   int64 // of the first byte, in the file
}

// view is a tensor: element (i, j, …) is element offset + i·strides[0] + j·strides[1] + … of the
// storage.
type view struct {
	*storage
	start          int64 // of the first element in the storage
	shape, strides []int64
	size           int64 // in bytes, when read
}

// newView checks that the view stays inside its storage and has a form that reader knows.
func newView(s *storage, start int64, shape, strides []int64) (*view, error) {
	if len(shape) != len(strides) {
		return nil, fmt.Errorf("%w: %d dimensions with %d strides", errFormat, len(shape),
			len(strides))
	}
	size, err := tensor.ByteSize(s.dtype, shape)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return &view{s, 0, shape, strides, 0}, nil
	}
	v := &view{s, start, shape, strides, size}
	last := uint64(start)
	if start < 0 {
		return nil, fmt.Errorf("%w: a tensor starts at element %d", errFormat, start)
	}
	for i, dim := range shape {
		hi, reach := bits.Mul64(uint64(dim-1), uint64(strides[i]))
		sum, carry := bits.Add64(last, reach, 0)
		if strides[i] < 0 || hi != 0 || carry != 0 {
			return nil, fmt.Errorf("%w: strides %v of shape %v", errFormat, strides, shape)
		}
		last = sum
	}
	if last >= uint64(s.elements) {
		return nil, fmt.Errorf("%w: shape %v with strides %v from element %d reaches element "+
			"%d, the storage has %d",
			errFormat, shape, strides, start, last, s.elements)
	}
	if size/s.dtype.Size() > s.elements-start {
		return nil, v.refused("an expanded view")
	}
	if v.kind() == scattered {
		return nil, v.refused("a view")
	}
	return v, nil
}

func (v *view) refused(what string) error {
	return fmt.Errorf("%w: %s with shape %v and strides %v; save the tensor with .contiguous()",
		errUnsupported, what, v.shape, v.strides)
}

// The forms of views, by the way to read them.
const (
	contiguous = iota // one piece
	inRows            // the last dimension is one piece, as for a[:, 2:5]
	inColumns         // the columns of a matrix are one piece each, as for a.T
	scattered         // none of these
)

// squeezed drops the dimensions of length 1: their strides mean nothing.
func (v *view) squeezed() (shape, strides []int64) {
	for i, dim := range v.shape {
		if dim != 1 {
			shape, strides = append(shape, dim), append(strides, v.strides[i])
		}
	}
	return shape, strides
}

// kind returns the form from the dimensions that squeezed keeps. It does not allocate: it is called
// for every tensor of a file.
func (v *view) kind() int {
	want, whole := int64(1), true
	// how many dimensions, and the strides of the first and the last
	n, outer, inner := 0, int64(0), int64(0)
	for i := len(v.shape) - 1; i >= 0; i-- {
		if v.shape[i] == 1 {
			continue
		}
		if outer = v.strides[i]; n == 0 {
			inner = outer
		}
		n++
		whole = whole && outer == want
		want *= v.shape[i]
	}
	switch {
	case whole || v.size == 0:
		return contiguous
	case inner == 1:
		return inRows
	case n == 2 && outer == 1:
		return inColumns
	case n == 1: // a column of a matrix: rows of one element
		return inRows
	}
	return scattered
}

// reader reads the tensor from the file in row-major order, little-endian.
func (v *view) reader(file io.ReaderAt, bigEndian bool) io.ReaderAt {
	elem := v.dtype.Size()
	read := v.readContiguous
	switch v.kind() {
	case inRows:
		read = v.readRows
	case inColumns:
		read = v.readColumns
	default:
		if !bigEndian || elem == 1 {
			return io.NewSectionReader(file, v.offset+v.start*elem, v.size)
		}
	}
	return &tensor.Blocks{Size: v.size, Block: elem, Decode: func(dst []byte, first int64) error {
		if err := read(file, dst, first); err != nil {
			return err
		}
		if bigEndian {
			for ; len(dst) > 0; dst = dst[elem:] {
				slices.Reverse(dst[:elem])
			}
		}
		return nil
	}}
}

// encoding names the form for Info.
func (v *view) encoding(bigEndian bool) string {
	k := v.kind()
	strided, swapped := k == inRows || k == inColumns, bigEndian && v.dtype.Size() > 1
	switch {
	case strided && swapped:
		return "strided big-endian"
	case strided:
		return "strided"
	case swapped:
		return "big-endian"
	}
	return ""
}

// full reads elements from the storage.
func (v *view) full(file io.ReaderAt, dst []byte, element int64) error {
	n, err := file.ReadAt(dst, v.offset+element*v.dtype.Size())
	if n < len(dst) {
		return err
	}
	return nil
}

func (v *view) readContiguous(file io.ReaderAt, dst []byte, first int64) error {
	return v.full(file, dst, v.start+first)
}

// readRows fills dst with the elements from index first on, run by run.
func (v *view) readRows(file io.ReaderAt, dst []byte, first int64) error {
	shape, strides := v.squeezed()
	n := len(shape) - 1
	width := shape[n]
	if strides[n] != 1 {
		width = 1 // every element is a run
		shape, strides = append(shape, 1), append(strides, 1)
		n++
	}
	for elem := v.dtype.Size(); len(dst) > 0; {
		row, in := first/width, first%width
		at := v.start + in
		for i := n - 1; i >= 0; i-- {
			at += row % shape[i] * strides[i]
			row /= shape[i]
		}
		count := min(width-in, int64(len(dst))/elem)
		if err := v.full(file, dst[:count*elem], at); err != nil {
			return err
		}
		dst = dst[count*elem:]
		first += count
	}
	return nil
}

// readColumns fills dst with the elements from index first on: of every column the piece that falls
// in the range is read at once and spread over the rows.
func (v *view) readColumns(file io.ReaderAt, dst []byte, first int64) error {
	shape, strides := v.squeezed()
	elem, width := v.dtype.Size(), shape[1]
	end := first + int64(len(dst))/elem
	column := make([]byte, (end-1)/width*elem-first/width*elem+elem)
	for j := range width {
		from := (first - j + width - 1) / width // first row whose element j is in the range
		to := (end - j + width - 1) / width     // first row whose element j is behind it
		if from >= to {
			continue
		}
		p := column[:(to-from)*elem]
		if err := v.full(file, p, v.start+from+j*strides[1]); err != nil {
			return err
		}
		for row := from; row < to; row++ {
			copy(dst[(row*width+j-first)*elem:][:elem], p[(row-from)*elem:])
		}
	}
	return nil
}
