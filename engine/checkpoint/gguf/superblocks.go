package gguf

import "encoding/binary"

// superElements is the number of elements of the large blocks, the "K-quants" and IQ4_XS. A large
// block is made of small ones of 16 or 32 elements, each with a scale of a few bits; some have an
// offset too, to be subtracted. One float16 multiplies all scales, another one all offsets.
const superElements = 256

// packedScales is the size of the eight scales and offsets of Q4_K and Q5_K, and of the sixteen
// scales of Q3_K, of six bits each.
const packedScales = 12

// The sizes of the large blocks in bytes, their parts in the file's order.
const (
	q2KBytes   = superElements/16 + superElements/4 + 2 + 2
	q3KBytes   = superElements/8 + superElements/4 + packedScales + 2
	q4KBytes   = 2 + 2 + packedScales + superElements/2
	q5KBytes   = 2 + 2 + packedScales + superElements/8 + superElements/2
	q6KBytes   = superElements/2 + superElements/4 + superElements/16 + 2
	iq4XSBytes = 2 + 2 + superElements/64 + superElements/2
)

// decodeQ2K decodes a block of Q2_K: 16 bytes with a scale in the low half and an offset in the
// high half, for 16 elements each; 64 bytes of numbers; the factors of scales and offsets. Byte j
// of a half of 32 bytes has the numbers of elements j, j+32, j+64 and j+96 of 128, lowest first.
func decodeQ2K(dst, block []byte) {
	scales, packed := block[:16], block[16:80]
	scale, offset := half(block[80:]), half(block[82:q2KBytes])
	for small, b := range scales {
		step, less := scale*float32(b&15), offset*float32(b>>4)
		var values [4]float32
		for i := range values {
			values[i] = float32(step*float32(i)) - less
		}
		at, shift := twoBits(small)
		out := dst[64*small:][:64]
		for j, b := range packed[at:][:16] {
			put(out, j, values[b>>shift&3])
		}
	}
}

// decodeQ3K decodes a block of Q3_K: 32 bytes with the third bits, byte j for elements j + 32·i,
// lowest first; 64 bytes of the lower two bits as in Q2_K; 12 bytes with 16 scales that are 32 too
// large; their factor. Numbers are 4 too large.
func decodeQ3K(dst, block []byte) {
	third, packed, scales := block[:32], block[32:96], block[96:108]
	scale := half(block[108:q3KBytes])
	for small := range 16 {
		low := scales[small%8] >> (small / 8 * 4) & 15
		high := scales[8+small%4] >> (small / 4 * 2) & 3
		step := scale * float32(int(low|high<<4)-32)
		var values [8]float32
		for i := range values {
			values[i] = step * float32(i-4)
		}
		at, shift := twoBits(small)
		out, bits := dst[64*small:][:64], third[small%2*16:][:16]
		for j, b := range packed[at:][:16] {
			put(out, j, values[b>>shift&3|bits[j]>>(small/2)&1<<2])
		}
	}
}

// twoBits returns where the numbers of two bits of 16 elements begin, and by how much they are
// shifted.
func twoBits(small int) (at, shift int) {
	return small/8*32 + small%2*16, small % 8 / 2 * 2
}

// decodeQ4K decodes a block of Q4_K: the factors of scales and offsets; 12 bytes with these; 128
// bytes of numbers, 32 of them for the low halves of 32 elements and the high halves of the next.
func decodeQ4K(dst, block []byte) {
	scales, packed := block[4:16], block[16:q4KBytes]
	scale, offset := half(block), half(block[2:])
	for pair := range 4 {
		var values [2][16]float32
		for side := range values {
			step, less := scaleAndOffset(scales, 2*pair+side)
			step, less = scale*step, offset*less
			for i := range values[side] {
				values[side][i] = float32(step*float32(i)) - less
			}
		}
		low, high := dst[256*pair:][:128], dst[256*pair+128:][:128]
		for j, b := range packed[32*pair:][:32] {
			put(low, j, values[0][b&15])
			put(high, j, values[1][b>>4])
		}
	}
}

// decodeQ5K decodes a block of Q5_K: as Q4_K, with 32 bytes of fifth bits in front of the numbers,
// byte j for the elements j + 32·i, lowest first.
func decodeQ5K(dst, block []byte) {
	scales, fifth, packed := block[4:16], block[16:48], block[48:q5KBytes]
	scale, offset := half(block), half(block[2:])
	for small := range 8 {
		step, less := scaleAndOffset(scales, small)
		step, less = scale*step, offset*less
		var values [32]float32
		for i := range values {
			values[i] = float32(step*float32(i)) - less
		}
		out := dst[128*small:][:128]
		for j, b := range packed[small/2*32:][:32] {
			put(out, j, values[b>>(small%2*4)&15|fifth[j]>>small&1<<4])
		}
	}
}

// scaleAndOffset unpacks the scale and the offset of 32 elements. The first four of each lie in
// the lower six bits of bytes 0 to 3 and 4 to 7. The others have their lower four bits in bytes 8
// to 11, scales in the low halves, and their upper two in what is left of the former bytes.
func scaleAndOffset(packed []byte, small int) (scale, offset float32) {
	if small < 4 {
		return float32(packed[small] & 63), float32(packed[small+4] & 63)
	}
	low, up := packed[small+4], small-4
	return float32(low&15 | packed[up]>>6<<4), float32(low>>4 | packed[up+4]>>6<<4)
}

// decodeQ6K decodes a block of Q6_K. Its halves of 128 elements are alike: 64 bytes with the low
// four bits of elements j and j+32 in the low halves, of j+64 and j+96 in the high halves; 32 bytes
// with the upper two bits of these four, lowest first; a signed scale for every 16 elements.
// Numbers are 32 too large. The products are exact: 11 bits of the factor, 7 and 5 more are at most
// 23.
func decodeQ6K(dst, block []byte) {
	low, high, scales := block[:128], block[128:192], block[192:208]
	scale := half(block[208:q6KBytes])
	for small, b := range scales {
		step := scale * float32(int8(b))
		part, quarter := small/8, small%8/2
		fours := low[64*part+quarter%2*32+small%2*16:][:16]
		twos := high[32*part+small%2*16:][:16]
		out := dst[64*small:][:64]
		for j, b := range fours {
			n := b>>(quarter/2*4)&15 | twos[j]>>(2*quarter)&3<<4
			put(out, j, step*float32(int(n)-32))
		}
	}
}

// decodeIQ4XS decodes a block of IQ4_XS: the factor of the scales; the upper two bits of the eight
// scales, lowest first; 4 bytes with the lower four, which are together 32 too large; the indices
// of iq4Values, 16 bytes for each 32 elements.
func decodeIQ4XS(dst, block []byte) {
	scale, upper := half(block), binary.LittleEndian.Uint16(block[2:])
	lower, packed := block[4:8], block[8:iq4XSBytes]
	for small := range 8 {
		n := lower[small/2]>>(small%2*4)&15 | byte(upper>>(2*small)&3<<4)
		values := scaled(scale*float32(int(n)-32), &iq4Values)
		spread(dst[128*small:][:128], packed[16*small:][:16], &values)
	}
}
