package model

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// bundleMemory bounds the buffers of a bundler. With larger blocks the reads of the transposed
// matrix are longer.
const bundleMemory = 32 << 20

// bundler makes the records of one layer after the other from the FFN's matrices: row i of gate (if
// there is one) and up (d_ffn, d_model), column i of down (d_model, d_ffn), zeros up to the stride.
// It works on blocks of neurons, so its memory does not depend on d_ffn.
//
// Quantised records are made from float32 records.
type bundler struct {
	d, ffn, parts, stride int
	format                ref.Format       // of the records
	carrier               checkpoint.DType // that the source is converted to
	block                 int              // neurons at once
	// as read: block rows of gate or up, or a row of a block of columns of down
	raw []byte
	// the block's columns of down, in the carrier (d_model, block)
	down []byte
	// records in the carrier (block, parts, d_model); nil when that is the format
	wide []byte
	row  []float32 // one row of wide
	out  []byte    // (block, stride)
}

// newBundler returns a bundler for matrices with elements of at most elem bytes. Its buffers take
// at most limit bytes, or the bytes of one neuron if that is more.
func newBundler(f facts, elem, limit int) *bundler {
	s := f.arch.Shape
	b := &bundler{d: s.DModel, ffn: s.DFFN, parts: s.Rows, stride: f.stride,
		format: f.precision.Bundles, carrier: dtypeOf(f.precision.Bundles)}
	quantised := b.format.Group() > 1
	if quantised {
		b.carrier = checkpoint.F32
	}
	es := int(b.carrier.Size())
	perNeuron := b.stride + es*b.d + elem*b.d
	if quantised {
		perNeuron += b.parts * es * b.d
	}
	b.block = min(max(1, limit/perNeuron), b.ffn)
	switch {
	case b.block > 256:
		b.block = b.block / 256 * 256 // whole blocks of a quantised down
	case b.block > 64:
		b.block = b.block / 64 * 64 // whole cache lines of down
	}
	b.raw, b.down, b.out = make([]byte, b.block*b.d*elem), make([]byte, b.block*b.d*es),
		make([]byte, b.block*b.stride)
	if quantised {
		b.wide, b.row = make([]byte, b.block*b.parts*es*b.d), make([]float32, b.d)
	}
	return b
}

// records returns the memory for records before quantisation, and their distance.
func (b *bundler) records() (to []byte, stride int) {
	if b.wide != nil {
		return b.wide, b.parts * int(b.carrier.Size()) * b.d
	}
	return b.out, b.stride
}

// layer passes the records of one layer to emit, in order; each call's bytes are overwritten
// afterwards. The last of the matrices is down.
func (b *bundler) layer(ctx context.Context, matrices []tensor, emit func([]byte) error) error {
	down := matrices[len(matrices)-1]
	if err := b.readAhead(ctx, down); err != nil {
		return err
	}
	for first := 0; first < b.ffn; first += b.block {
		n := min(b.block, b.ffn-first)
		for part, m := range matrices[:len(matrices)-1] {
			if err := b.rows(m, part, first, n); err != nil {
				return err
			}
		}
		if err := b.columns(ctx, down, first, n); err != nil {
			return err
		}
		if err := b.quantise(matrices, first, n); err != nil {
			return err
		}
		if err := emit(b.out[:n*b.stride]); err != nil {
			return err
		}
	}
	return nil
}

// readAhead reads down once from front to back. The system then has it in memory, as far as it
// fits, when columns jumps through it: flash serves one long read far faster than many short ones.
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

// rows copies rows first…first+n−1 of a matrix into the records, as part number part.
func (b *bundler) rows(m tensor, part, first, n int) error {
	size, es := int(m.DType.Size())*b.d, int(b.carrier.Size())
	raw := b.raw[:n*size]
	if _, err := m.r.ReadAt(raw, int64(first)*int64(size)); err != nil {
		return fmt.Errorf("model: tensor %q: %w", m.Name, err)
	}
	to, stride := b.records()
	for i := range n {
		dst := to[i*stride+part*es*b.d:][:es*b.d]
		if err := m.convert(dst, b.carrier, raw[i*size:][:size],
			int64(first+i)*int64(b.d)); err != nil {
			return err
		}
	}
	return nil
}

// columns copies columns first…first+n−1 of down behind the rows.
func (b *bundler) columns(ctx context.Context, down tensor, first, n int) error {
	size, es := down.DType.Size(), int(b.carrier.Size())
	for i := range b.d {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		raw := b.raw[:n*int(size)]
		at := int64(i)*int64(b.ffn) + int64(first)
		if _, err := down.r.ReadAt(raw, at*size); err != nil {
			return fmt.Errorf("model: tensor %q: %w", down.Name, err)
		}
		if err := down.convert(b.down[i*n*es:][:n*es], b.carrier, raw, at); err != nil {
			return err
		}
	}
	to, stride := b.records()
	transpose(to, stride, (b.parts-1)*es*b.d, b.down, b.d, n, es)
	return nil
}

// quantise quantises the block's wide records.
func (b *bundler) quantise(matrices []tensor, first, n int) error {
	if b.wide == nil {
		return nil
	}
	size := b.format.Size(b.d)
	for i := range n {
		for part := range b.parts {
			wide := b.wide[(i*b.parts+part)*4*b.d:]
			for j := range b.row {
				b.row[j] = math.Float32frombits(binary.LittleEndian.Uint32(wide[4*j:]))
			}
			if at := b.format.Encode(b.out[i*b.stride+part*size:][:size], b.row); at >= 0 {
				return fmt.Errorf("model: tensor %q: %w: a weight of neuron %d is beyond the "+
					"range of %s", matrices[part].Name, checkpoint.ErrFormat, first+i, b.format)
			}
		}
	}
	return nil
}

// transpose writes element (i, j) of src (d, n), of es bytes, to byte offset + es·i of record j of
// dst. Tiles keep both sides in the cache.
func transpose(dst []byte, stride, offset int, src []byte, d, n, es int) {
	const tile = 32
	for j0 := 0; j0 < n; j0 += tile {
		for i0 := 0; i0 < d; i0 += tile {
			width := min(tile, d-i0)
			for j := j0; j < min(j0+tile, n); j++ {
				record := dst[j*stride+offset+es*i0:][:es*width]
				for i := range width {
					from := src[((i0+i)*n+j)*es:]
					if es == 2 {
						binary.LittleEndian.PutUint16(record[2*i:],
							binary.LittleEndian.Uint16(from))
					} else {
						binary.LittleEndian.PutUint32(record[4*i:],
							binary.LittleEndian.Uint32(from))
					}
				}
			}
		}
	}
}
