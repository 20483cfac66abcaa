package model

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// streamBlock is how many elements are read at once: enough for full speed, little enough for the
// cache.
const streamBlock = 1 << 18

// tensor is a tensor that can be read, with the name that errors show.
type tensor struct {
	checkpoint.TensorInfo
	r    io.ReaderAt // of the tensor's own bytes
	s    *scratch
	plus float32 // is added to every number; F32 is then made of it
}

// scratch is the memory that stream reuses from tensor to tensor. It belongs to one goroutine.
type scratch struct{ raw, out []byte }

// stream converts a tensor to the type to and passes its bytes to emit, block by block; each call's
// bytes are overwritten afterwards. A NaN, an Inf and a number beyond the range of the type are
// ErrFormat, with tensor and index.
func (t tensor) stream(ctx context.Context, to checkpoint.DType, emit func([]byte) error) error {
	from, n := t.DType.Size(), t.Elements()
	block := min(n, streamBlock)
	t.s.raw = grown(t.s.raw, block*from)
	dst := t.s.raw // nothing to convert: only checked
	if to != t.DType {
		t.s.out = grown(t.s.out, block*to.Size())
		dst = t.s.out
	}
	for at := int64(0); at < n; at += block {
		if err := ctx.Err(); err != nil {
			return err
		}
		count := min(block, n-at)
		raw, out := t.s.raw[:count*from], dst[:count*to.Size()]
		if _, err := t.r.ReadAt(raw, at*from); err != nil {
			return fmt.Errorf("model: tensor %q: %w", t.Name, err)
		}
		if err := t.convert(out, to, raw, at); err != nil {
			return err
		}
		if t.plus != 0 {
			addToAll(out, t.plus)
		}
		if err := emit(out); err != nil {
			return err
		}
	}
	return nil
}

func grown(p []byte, n int64) []byte {
	if int64(len(p)) < n {
		return make([]byte, n)
	}
	return p
}

// convert checks and converts the elements that start at index at.
func (t tensor) convert(dst []byte, to checkpoint.DType, src []byte, at int64) error {
	if err := t.finite(src, at); err != nil {
		return err
	}
	if i := convert(dst, to, src, t.DType); i >= 0 {
		return fmt.Errorf("model: tensor %q: %w: the weight at index %d is beyond the range of %s",
			t.Name, checkpoint.ErrFormat, at+int64(i), to)
	}
	return nil
}

// addToAll adds a number to float32 numbers, as bytes.
func addToAll(p []byte, plus float32) {
	for ; len(p) >= 4; p = p[4:] {
		v := math.Float32frombits(binary.LittleEndian.Uint32(p)) + plus
		binary.LittleEndian.PutUint32(p, math.Float32bits(v))
	}
}

// firstNonFinite returns the index of the first NaN or Inf, or −1. These have all exponent bits
// set, so adding one in the lowest exponent bit carries into the sign's place; four (or two)
// elements are tested at once.
func firstNonFinite(dtype checkpoint.DType, p []byte) int {
	var exponent, one, carry uint64
	switch dtype {
	case checkpoint.F16:
		exponent, one, carry = 0x7C007C007C007C00, 0x0400040004000400, 0x8000800080008000
	case checkpoint.BF16:
		exponent, one, carry = 0x7F807F807F807F80, 0x0080008000800080, 0x8000800080008000
	case checkpoint.F32:
		exponent, one, carry = 0x7F8000007F800000, 0x0080000000800000, 0x8000000080000000
	default:
		return -1
	}
	size := int(dtype.Size())
	var word [8]byte
	for at := 0; at < len(p); at += 8 {
		var x uint64
		if len(p)-at >= 8 {
			x = binary.LittleEndian.Uint64(p[at:])
		} else {
			word = [8]byte{}
			copy(word[:], p[at:])
			x = binary.LittleEndian.Uint64(word[:])
		}
		if hit := (x&exponent + one) & carry; hit != 0 {
			lane := 0
			for hit&0xFFFF == 0 {
				hit >>= 16
				lane++
			}
			return (at + 2*lane) / size
		}
	}
	return -1
}

// convert changes src from one element type to another, both F16, BF16 or F32. It returns −1, or
// the index of the first number that is too large for the type. Widening is exact, narrowing rounds
// to nearest even. dst has room for exactly as many elements; it may be src when the types are the
// same.
func convert(dst []byte, to checkpoint.DType, src []byte, from checkpoint.DType) int {
	if from == to {
		copy(dst, src)
		return -1
	}
	const block = 256
	var wide [block]float32
	in, _ := formatOf(from)
	out, _ := formatOf(to)
	for at := 0; len(src) > 0; at += block {
		n := min(block, len(src)/in.Size(1))
		in.Decode(wide[:n], src)
		if i := out.Encode(dst[:out.Size(n)], wide[:n]); i >= 0 {
			return at + i
		}
		src, dst = src[in.Size(n):], dst[out.Size(n):]
	}
	return -1
}

// load reads a resident tensor into memory. The source may have another type than the Weights; of
// the same type, a matrix is read in place and nothing else is allocated.
func (r resident) load(ctx context.Context, t tensor) error {
	if r.matrix != nil && r.rows == nil && t.DType == r.dtype {
		r.matrix.Data = make([]byte, r.elements()*r.dtype.Size())
		return t.readInPlace(ctx, r.matrix.Data)
	}
	if r.matrix != nil {
		dst := make([]byte, 0, r.elements()*r.dtype.Size())
		err := t.rowsOf(ctx, r, func(p []byte) error {
			dst = append(dst, p...)
			return nil
		})
		r.matrix.Data = dst
		return err
	}
	dst := make([]float32, 0, r.elements())
	err := t.rowsOf(ctx, r, func(p []byte) error {
		for ; len(p) >= 4; p = p[4:] {
			dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(p)))
		}
		return nil
	})
	*r.vector = dst
	return err
}

// readInPlace reads the tensor's bytes unchanged into dst, which has the tensor's size. A NaN or an
// Inf is ErrFormat, with tensor and index.
func (t tensor) readInPlace(ctx context.Context, dst []byte) error {
	size := t.DType.Size()
	for at := int64(0); at < t.Elements(); at += streamBlock {
		if err := ctx.Err(); err != nil {
			return err
		}
		block := dst[at*size : min(at+streamBlock, t.Elements())*size]
		if _, err := t.r.ReadAt(block, at*size); err != nil {
			return fmt.Errorf("model: tensor %q: %w", t.Name, err)
		}
		if err := t.finite(block, at); err != nil {
			return err
		}
	}
	return nil
}

// finite refuses elements from index at on that are not finite.
func (t tensor) finite(p []byte, at int64) error {
	if i := firstNonFinite(t.DType, p); i >= 0 {
		return fmt.Errorf("model: tensor %q: %w: the weight at index %d is not finite", t.Name,
			checkpoint.ErrFormat, at+int64(i))
	}
	return nil
}

// rowsOf streams the rows of t that make up a resident tensor.
func (t tensor) rowsOf(ctx context.Context, r resident, emit func([]byte) error) error {
	if r.rows == nil {
		return t.stream(ctx, r.dtype, emit)
	}
	for _, part := range r.rows {
		if err := t.section(part).stream(ctx, r.dtype, emit); err != nil {
			return err
		}
	}
	return nil
}

// section is some rows of a tensor.
func (t tensor) section(part rowRange) tensor {
	row := t.Elements() / t.Shape[0] * t.DType.Size()
	s := t
	s.Shape = append([]int64{part.count}, t.Shape[1:]...)
	s.Size = part.count * row
	s.r = io.NewSectionReader(t.r, part.first*row, s.Size)
	return s
}

// equal reports whether two tensors have the same type, shape and bytes.
func equal(ctx context.Context, a, b tensor) (bool, error) {
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
		return false, nil
	}
	other := make([]byte, min(a.Size, streamBlock*a.DType.Size()))
	same, at := true, int64(0)
	err := a.stream(ctx, a.DType, func(p []byte) error {
		if _, err := b.r.ReadAt(other[:len(p)], at); err != nil {
			return fmt.Errorf("model: tensor %q: %w", b.Name, err)
		}
		same = same && bytes.Equal(p, other[:len(p)])
		at += int64(len(p))
		return nil
	})
	return same, err
}
