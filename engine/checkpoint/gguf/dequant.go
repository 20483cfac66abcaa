package gguf

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// The blocks of Q4_0 and Q8_0: a float16 scale, then 32 numbers of 4 or 8 bits. The blocks of Q6_K,
// llama-quantize's type for the output head of a Q4_0 model: 256 numbers of 6 bits, 16 scales of 8
// bits, then a float16 scale of all.
const (
	blockElements = 32
	q4Bytes       = 2 + blockElements/2
	q8Bytes       = 2 + blockElements
	superElements = 256
	q6Bytes       = superElements/2 + superElements/4 + superElements/16 + 2
)

// decodeQ4 decodes a block of Q4_0: byte j of the numbers has element j in its low half and element
// j+16 in its high half, each 8 too large.
func decodeQ4(dst, block []byte) {
	scale := ref.F16ToF32(binary.LittleEndian.Uint16(block))
	var value [16]uint32
	for i := range value {
		value[i] = math.Float32bits(scale * float32(i-8))
	}
	dst = dst[:4*blockElements]
	for j, b := range block[2:q4Bytes] {
		binary.LittleEndian.PutUint32(dst[4*j:], value[b&15])
		binary.LittleEndian.PutUint32(dst[4*j+2*blockElements:], value[b>>4])
	}
}

// decodeQ8 decodes a block of Q8_0: signed bytes.
func decodeQ8(dst, block []byte) {
	scale := ref.F16ToF32(binary.LittleEndian.Uint16(block))
	dst = dst[:4*blockElements]
	for j, b := range block[2:q8Bytes] {
		binary.LittleEndian.PutUint32(dst[4*j:], math.Float32bits(scale*float32(int8(b))))
	}
}

// decodeQ6 decodes a block of Q6_K. Its halves of 128 elements are alike: 64 bytes with the low
// four bits of elements j and j+32 in the low halves, of j+64 and j+96 in the high halves; 32 bytes
// with the upper two bits of these four, lowest first; a scale for every 16 elements. Numbers are
// 32 too large. The products are exact: 11 bits of scale, 7 and 5 more are at most 23.
func decodeQ6(dst, block []byte) {
	low, high, scales := block[:128], block[128:192], block[192:208]
	scale := ref.F16ToF32(binary.LittleEndian.Uint16(block[208:q6Bytes]))
	for half := range 2 {
		for quarter := range 4 {
			for j := range 32 {
				four := low[64*half+quarter%2*32+j] >> (quarter / 2 * 4) & 15
				two := high[32*half+j] >> (2 * quarter) & 3
				at := 128*half + 32*quarter + j
				v := scale * float32(int8(scales[at/16])) * float32(int(two<<4|four)-32)
				binary.LittleEndian.PutUint32(dst[4*at:], math.Float32bits(v))
			}
		}
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
		var block [q6Bytes]byte // the longest
		for i := range n {
			copy(block[:e.bytes], stored[i*e.bytes:])
			e.decode(dst[i*decoded:][:decoded], block[:e.bytes])
		}
		return nil
	}}
}
