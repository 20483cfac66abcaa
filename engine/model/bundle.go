package model

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// bundleMemory bounds the buffers of a bundler. Larger blocks read longer stretches of the matrix that is transposed.
const bundleMemory = 32 << 20

// bundler turns fc1 (d_ffn, d_model) and fc2 (d_model, d_ffn) of one layer after the other into records: row i of fc1, column
// i of fc2, zeros up to the stride. It works on blocks of neurons, so its memory does not depend on d_ffn.
type bundler struct {
	d, ffn, stride int
	block          int    // neurons at once
	raw            []byte // as read: block rows of fc1, or a row of a block of columns of fc2
	down           []byte // the block's columns of fc2, float16 (d_model, block)
	out            []byte // (block, stride)
}

// newBundler returns a bundler for matrices with elements of at most elem bytes whose buffers need at most limit bytes, or
// what one neuron needs.
func newBundler(s Shape, stride, elem, limit int) *bundler {
	perNeuron := stride + 2*s.DModel + elem*s.DModel
	block := min(max(1, limit/perNeuron), s.DFFN)
	if block > 64 {
		block = block / 64 * 64 // whole cache lines of fc2
	}
	return &bundler{
		d: s.DModel, ffn: s.DFFN, stride: stride, block: block,
		raw:  make([]byte, block*s.DModel*elem),
		down: make([]byte, block*s.DModel*2),
		out:  make([]byte, block*stride),
	}
}

// layer hands the records of one layer to emit, in order; what it gets is overwritten afterwards.
func (b *bundler) layer(ctx context.Context, up, down tensor, emit func([]byte) error) error {
	if err := b.readAhead(ctx, down); err != nil {
		return err
	}
	for first := 0; first < b.ffn; first += b.block {
		n := min(b.block, b.ffn-first)
		if err := b.rows(up, first, n); err != nil {
			return err
		}
		if err := b.columns(ctx, down, first, n); err != nil {
			return err
		}
		if err := emit(b.out[:n*b.stride]); err != nil {
			return err
		}
	}
	return nil
}

// readAhead reads fc2 once from front to back, so that the system has it in memory, as far as it fits, when columns jumps
// through it: flash serves one long read far faster than many short ones.
func (b *bundler) readAhead(ctx context.Context, down tensor) error {
	for at := int64(0); at < down.Size; at += int64(len(b.raw)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := b.raw[:min(int64(len(b.raw)), down.Size-at)]
		if _, err := down.r.ReadAt(p, at); err != nil {
			return fmt.Errorf("model: tensor %q: %w", down.Name, err)
		}
	}
	return nil
}

// rows puts rows first…first+n−1 of fc1 into the fronts of the records.
func (b *bundler) rows(up tensor, first, n int) error {
	size := int(up.DType.Size()) * b.d
	raw := b.raw[:n*size]
	if _, err := up.r.ReadAt(raw, int64(first)*int64(size)); err != nil {
		return fmt.Errorf("model: tensor %q: %w", up.Name, err)
	}
	for i := range n {
		dst := b.out[i*b.stride:][:2*b.d]
		if err := up.convert(dst, checkpoint.F16, raw[i*size:][:size], int64(first+i)*int64(b.d)); err != nil {
			return err
		}
	}
	return nil
}

// columns puts columns first…first+n−1 of fc2 behind the rows.
func (b *bundler) columns(ctx context.Context, down tensor, first, n int) error {
	size := down.DType.Size()
	for i := range b.d {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		raw := b.raw[:n*int(size)]
		at := int64(i)*int64(b.ffn) + int64(first)
		if _, err := down.r.ReadAt(raw, at*size); err != nil {
			return fmt.Errorf("model: tensor %q: %w", down.Name, err)
		}
		if err := down.convert(b.down[i*n*2:][:n*2], checkpoint.F16, raw, at); err != nil {
			return err
		}
	}
	transpose(b.out, b.stride, 2*b.d, b.down, b.d, n)
	return nil
}

// transpose writes element (i, j) of src, float16 (d, n), to byte offset + 2·i of record j of dst. Tiles keep both sides
// in the cache.
func transpose(dst []byte, stride, offset int, src []byte, d, n int) {
	const tile = 32
	for j0 := 0; j0 < n; j0 += tile {
		for i0 := 0; i0 < d; i0 += tile {
			width := min(tile, d-i0)
			for j := j0; j < min(j0+tile, n); j++ {
				record := dst[j*stride+offset+2*i0:][:2*width]
				for i := range width {
					binary.LittleEndian.PutUint16(record[2*i:], binary.LittleEndian.Uint16(src[((i0+i)*n+j)*2:]))
				}
			}
		}
	}
}
