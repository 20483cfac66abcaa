package gguf

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// blockElements is the number of elements of the small blocks. All of them have the numbers of
// elements j and j+16 in byte j: the low half and the high half.
const blockElements = 32

// The sizes of the small blocks in bytes.
const (
	q40Bytes   = 2 + blockElements/2                       // scale, numbers
	q41Bytes   = 2 + 2 + blockElements/2                   // scale, offset, numbers
	q50Bytes   = 2 + blockElements/8 + blockElements/2     // scale, fifth bits, numbers
	q51Bytes   = 2 + 2 + blockElements/8 + blockElements/2 // scale, offset, fifth bits, numbers
	q80Bytes   = 2 + blockElements                         // scale, signed bytes
	iq4NLBytes = 2 + blockElements/2                       // scale, indices of iq4Values
	mxfp4Bytes = 1 + blockElements/2                       // exponent, indices of mxfp4Values
)

// maxBlockBytes is the size of the longest block of any type.
const maxBlockBytes = q6KBytes

// iq4Values are the numbers of IQ4_NL and IQ4_XS (kvalues_iq4nl).
var iq4Values = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// mxfp4Values are the numbers of MXFP4, doubled (kvalues_mxfp4).
var mxfp4Values = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// half reads the float16 at the start of b.
func half(b []byte) float32 { return ref.F16ToF32(binary.LittleEndian.Uint16(b)) }

// put writes element i.
func put(dst []byte, i int, v float32) {
	binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
}

// decodeQ40 decodes a block of Q4_0: numbers that are 8 too large.
func decodeQ40(dst, block []byte) {
	scale := half(block)
	var values [16]float32
	for i := range values {
		values[i] = scale * float32(i-8)
	}
	spread(dst, block[2:q40Bytes], &values)
}

// decodeQ41 decodes a block of Q4_1. The conversion keeps the product from being fused with the
// sum, which some processors would round otherwise.
func decodeQ41(dst, block []byte) {
	scale, offset := half(block), half(block[2:])
	var values [16]float32
	for i := range values {
		values[i] = float32(scale*float32(i)) + offset
	}
	spread(dst, block[4:q41Bytes], &values)
}

// decodeQ50 decodes a block of Q5_0: numbers of five bits that are 16 too large.
func decodeQ50(dst, block []byte) {
	scale := half(block)
	var values [32]float32
	for i := range values {
		values[i] = scale * float32(i-16)
	}
	spreadFive(dst, block[6:q50Bytes], binary.LittleEndian.Uint32(block[2:]), &values)
}

// decodeQ51 decodes a block of Q5_1.
func decodeQ51(dst, block []byte) {
	scale, offset := half(block), half(block[2:])
	var values [32]float32
	for i := range values {
		values[i] = float32(scale*float32(i)) + offset
	}
	spreadFive(dst, block[8:q51Bytes], binary.LittleEndian.Uint32(block[4:]), &values)
}

// decodeQ80 decodes a block of Q8_0.
func decodeQ80(dst, block []byte) {
	scale := half(block)
	dst = dst[:4*blockElements]
	for j, b := range block[2:q80Bytes] {
		put(dst, j, scale*float32(int8(b)))
	}
}

// decodeIQ4NL decodes a block of IQ4_NL.
func decodeIQ4NL(dst, block []byte) {
	values := scaled(half(block), &iq4Values)
	spread(dst, block[2:iq4NLBytes], &values)
}

// decodeMXFP4 decodes a block of MXFP4. The exponent of the scale is biased by 127; the scale is
// halved, because the numbers are doubled.
func decodeMXFP4(dst, block []byte) {
	bits := uint32(0x00200000) << (block[0] & 1) // below the least normal number
	if block[0] >= 2 {
		bits = uint32(block[0]-1) << 23
	}
	values := scaled(math.Float32frombits(bits), &mxfp4Values)
	spread(dst, block[1:mxfp4Bytes], &values)
}

// scaled multiplies a table.
func scaled(scale float32, table *[16]int8) (values [16]float32) {
	for i, n := range table {
		values[i] = scale * float32(n)
	}
	return values
}

// spread writes the values of packed numbers of four bits: those in the low halves of the bytes,
// then those in the high halves.
func spread(dst, packed []byte, values *[16]float32) {
	n := len(packed)
	low, high := dst[:4*n], dst[4*n:8*n]
	for j, b := range packed {
		put(low, j, values[b&15])
		put(high, j, values[b>>4])
	}
}

// spreadFive is spread for 32 numbers with a fifth bit.
func spreadFive(dst, packed []byte, fifth uint32, values *[32]float32) {
	dst = dst[:4*blockElements]
	for j, b := range packed {
		put(dst, j, values[uint32(b&15)|fifth>>j&1<<4])
		put(dst, j+16, values[uint32(b>>4)|fifth>>(j+16)&1<<4])
	}
}

// blocks returns a reader of a quantised tensor with the given decoded size and the file offset of
// its blocks.
func (e encoding) blocks(file io.ReaderAt, offset, size int64) *tensor.Blocks {
	decoded := 4 * e.elements
	return &tensor.Blocks{Size: size, Block: decoded, Decode: func(dst []byte, first int64) error {
		// The stored blocks are read into the end of dst and decoded to its front. A decoded block
		// is longer than a stored one, so the front never overtakes blocks that are not decoded
		// yet, except the block itself: it is copied first.
		n := int64(len(dst)) / decoded
		stored := dst[int64(len(dst))-n*e.bytes:]
		if got, err := file.ReadAt(stored, offset+first*e.bytes); got < len(stored) {
			return err
		}
		var block [maxBlockBytes]byte
		for i := range n {
			copy(block[:e.bytes], stored[i*e.bytes:])
			e.decode(dst[i*decoded:][:decoded], block[:e.bytes])
		}
		return nil
	}}
}
