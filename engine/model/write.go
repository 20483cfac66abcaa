package model

import (
	"context"
	"fmt"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// imageAlign divides the offset of bundles and the length of the file: the smallest direct read
// everywhere.
const imageAlign = 4096

func bundlesName(layer int) string { return fmt.Sprintf("layers.%d.ffn.bundles", layer) }

// residentPad fills the resident tensors up to a multiple of 8 bytes, so that the data starts at
// one too; rarely needed.
const residentPad = "resident.pad"

// tensors lists all tensors of an image in the order of its data.
func (f facts) tensors() []checkpoint.TensorInfo {
	s, stride := f.arch.Shape, int64(f.stride)
	var list []checkpoint.TensorInfo
	size := int64(0)
	for _, r := range newWeights(f.arch, f.precision).residents() {
		list = append(list, checkpoint.TensorInfo{Name: r.name, DType: r.dtype, Shape: r.shape})
		size += r.elements() * r.dtype.Size()
	}
	pad := func(name string, n int64) {
		if n > 0 {
			list = append(list, checkpoint.TensorInfo{Name: name, DType: checkpoint.U8,
				Shape: []int64{n}})
		}
	}
	pad(residentPad, -size&7)
	for l := range s.Layers {
		dtype := dtypeOf(f.precision.Bundles)
		list = append(list, checkpoint.TensorInfo{Name: bundlesName(l), DType: dtype,
			Shape: []int64{int64(s.DFFN), stride / dtype.Size()}})
		pad(fmt.Sprintf("layers.%d.ffn.pad", l), -int64(s.DFFN)*stride&(imageAlign-1))
	}
	if f.hashed {
		count := hashCount(sizesOf(list)) + 1 // the padding is one block
		pad(hashesPad, imageAlign-count*hashSize&(imageAlign-1))
		list = append(list, checkpoint.TensorInfo{Name: hashesName, DType: checkpoint.U8,
			Shape: []int64{count, hashSize}})
	}
	return list
}

// sizesOf returns the sizes of tensors in bytes.
func sizesOf(list []checkpoint.TensorInfo) []int64 {
	sizes := make([]int64, len(list))
	for i, t := range list {
		sizes[i] = t.DType.Size()
		for _, dim := range t.Shape {
			sizes[i] *= dim
		}
	}
	return sizes
}

// filler provides the bytes of an image.
type filler interface {
	// resident hands the bytes of a resident tensor to emit, in order.
	resident(ctx context.Context, r resident, emit func([]byte) error) error
	// bundles hands the records of a layer to emit, in order.
	bundles(ctx context.Context, layer int, emit func([]byte) error) error
}

// writeImage writes a whole image or nothing. It calls moved for every written block.
func writeImage(ctx context.Context, out string, f facts, from filler,
	moved func(int64)) error {
	tensors, meta, opt := f.tensors(), f.encode(), checkpoint.WriterOptions{
		HeaderAlign: imageAlign, AlignTensor: bundlesName(0),
	}
	header, err := checkpoint.HeaderBytes(tensors, meta, opt)
	if err != nil {
		return err
	}
	w, err := checkpoint.NewWriter(out, tensors, meta, opt)
	if err != nil {
		return err
	}
	defer w.Abort()
	var table []byte
	hasher := blockHasher{done: func(sum [hashSize]byte) { table = append(table, sum[:]...) }}
	hasher.done(hashOf(header))
	emit := func(p []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := w.Write(p)
		hasher.write(p[:n])
		moved(int64(n))
		return err
	}
	residents, next := newWeights(f.arch, f.precision).residents(), 0
	layer := 0
	for _, t := range w.Tensors() {
		if err := w.Begin(t.Name); err != nil {
			return err
		}
		switch {
		case next < len(residents) && t.Name == residents[next].name:
			err = from.resident(ctx, residents[next], emit)
			next++
		case layer < f.arch.Shape.Layers && t.Name == bundlesName(layer):
			err = from.bundles(ctx, layer, emit)
			layer++
		case t.Name == hashesName:
			hasher.done(hashOf(table))
			err = emit(table)
		default:
			err = emit(make([]byte, t.Size)) // padding
		}
		if err != nil {
			return err
		}
		hasher.end()
	}
	return w.Commit()
}

// Progress gets the number of bytes read or written so far, out of total. It is called often, from
// one goroutine.
type Progress func(done, total int64)

// meter adds up for a Progress, which may be nil.
func meter(p Progress, total int64) func(int64) {
	done := int64(0)
	return func(n int64) {
		done += n
		if p != nil {
			p(done, total)
		}
	}
}

// dataSize returns the number of bytes behind the header.
func (f facts) dataSize() int64 {
	total := int64(0)
	for _, size := range sizesOf(f.tensors()) {
		total += size
	}
	return total
}
