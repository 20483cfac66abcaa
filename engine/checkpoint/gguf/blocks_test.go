package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/ref"
)

// TestBlocksAreThoseOfGGUFPy compares every quantised type with gguf-py on random blocks, bit for
// bit.
func TestBlocksAreThoseOfGGUFPy(t *testing.T) {
	f, err := Open(t.Context(), "testdata/blocks.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := expected(t, "blocks")
	for number, e := range encodings {
		if _, ok := want[e.name]; !ok && e.decode != nil {
			t.Errorf("type %d, %s: the fixture has no tensor of it", number, e.name)
		}
	}
	for name, e := range want {
		t.Run(name, func(t *testing.T) {
			s, err := f.Section(name)
			if err != nil {
				t.Fatal(err)
			}
			if x, _ := f.Tensor(name); !slices.Equal(x.Shape, e.Shape) || x.Encoding != name {
				t.Errorf("%+v", x)
			}
			sameHash(t, e, s)
		})
	}
}

// TestSmallBlocksByDefinition compares with the formulas of the specification, element by element,
// for known scales and every byte.
func TestSmallBlocksByDefinition(t *testing.T) {
	for _, bits := range []uint16{0x0000, 0x8000, 0x3C00, 0xBC00, 0x0001, 0x7BFF, 0x2E66} {
		scale := ref.F16ToF32(bits)
		for start := range 256 {
			q8 := binary.LittleEndian.AppendUint16(nil, bits)
			for j := range blockElements {
				q8 = append(q8, byte(start+j*7))
			}
			var dst [4 * blockElements]byte
			decodeQ80(dst[:], q8)
			for j := range blockElements {
				check(t, "Q8_0", j, dst[4*j:], scale*float32(int8(q8[2+j])))
			}
			q4 := q8[:q40Bytes]
			decodeQ40(dst[:], q4)
			for j := range blockElements {
				nibble := int(q4[2+j%16] >> (4 * (j / 16)) & 15)
				check(t, "Q4_0", j, dst[4*j:], float32(nibble-8)*scale)
			}
		}
	}
}

func check(t *testing.T, what string, j int, got []byte, want float32) {
	t.Helper()
	if g := math.Float32frombits(binary.LittleEndian.Uint32(got)); g != want {
		t.Fatalf("%s, element %d: %v, want %v", what, j, g, want)
	}
}

// TestField_X5_HalvesOfMXFP4: a byte of type 39 has element j in its low half and element j+16 in
// its high half. Its exponent 127 is a scale of 1: the numbers are those of E2M1.
func TestField_X5_HalvesOfMXFP4(t *testing.T) {
	e2m1 := []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}
	for exponent, factor := range map[byte]float64{127: 1, 128: 2, 120: 1.0 / 128, 2: 0x1p-125,
		1: 0x1p-126, 0: 0x1p-127, 252: 0x1p125} {
		block := []byte{exponent}
		for j := range 16 {
			block = append(block, byte(j|(15-j)<<4))
		}
		var dst [4 * blockElements]byte
		decodeMXFP4(dst[:], block)
		for j := range 16 {
			what := fmt.Sprintf("exponent %d", exponent)
			check(t, what, j, dst[4*j:], float32(float64(e2m1[j])*factor))
			check(t, what, j+16, dst[4*(j+16):], float32(float64(e2m1[15-j])*factor))
		}
	}
}

// quantised are the numbers of the types that are decoded, ascending.
func quantised() []uint32 {
	var list []uint32
	for number, e := range encodings {
		if e.decode != nil {
			list = append(list, number)
		}
	}
	slices.Sort(list)
	return list
}

// TestField_X4_RowsAreWholeBlocks: the type of every tensor is read from the tensor. Rows that are
// no whole blocks of it, as 896 elements of a K-quant are not, are refused with the tensor's name.
func TestField_X4_RowsAreWholeBlocks(t *testing.T) {
	types := quantised()
	for _, number := range types {
		e, block := encodings[number], uint64(32)
		if strings.HasSuffix(e.name, "_K") || e.name == "IQ4_XS" {
			block = 256
		}
		for _, row := range []uint64{896, 32, 31, 1, 256, 512, 288} {
			const rows = 3
			whole := row%block == 0
			data := make([]byte, rows*int64(row)/e.elements*e.bytes+64)
			f, err := openBytes(header(1, 0).tensor("blk.7.ffn_up.weight", number, 0, row, rows).
				data(32, data))
			if !whole {
				refused(t, err, errFormat, `"blk.7.ffn_up.weight"`, e.name,
					fmt.Sprintf("rows of %d elements are not whole blocks of %d", row, block))
				continue
			}
			if err != nil {
				t.Fatalf("%s, rows of %d: %v", e.name, row, err)
			}
			x, _ := f.Tensor("blk.7.ffn_up.weight")
			if x.Encoding != e.name || x.Size != 4*rows*int64(row) {
				t.Errorf("%s, rows of %d: %+v", e.name, row, x)
			}
		}
	}
	// A "Q4_K_M" of a model with 896 elements a row is a mixture; general.file_type says nothing.
	w := header(uint64(len(types)), 1).keyU32("general.file_type", 15)
	at := int64(0)
	for _, number := range types {
		w.tensor(encodings[number].name, number, uint64(at), 768)
		at += (768/encodings[number].elements*encodings[number].bytes + 31) / 32 * 32
	}
	f, err := openBytes(w.data(32, make([]byte, at)))
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range types {
		name := encodings[number].name
		if x, ok := f.Tensor(name); !ok || x.Encoding != name || x.Size != 4*768 {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// TestTruncatedBlocks: a file that ends inside a tensor is refused, wherever that is.
func TestTruncatedBlocks(t *testing.T) {
	for _, number := range quantised() {
		e := encodings[number]
		w := header(1, 0).tensor("t", number, 0, uint64(e.elements), 2)
		whole := w.data(32, make([]byte, 2*e.bytes))
		if _, err := openBytes(whole); err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		for less := range 2 * e.bytes {
			_, err := openBytes(whole[:int64(len(whole))-less-1])
			if refused(t, err, errFormat, "truncated"); t.Failed() {
				t.Fatal(e.name, less)
			}
		}
	}
}

func TestOtherTypesAreRefused(t *testing.T) {
	for number := range uint32(64) {
		if _, ok := encodings[number]; ok {
			if name := otherType(number); name != "" {
				t.Errorf("type %d is read and is %s", number, name)
			}
			continue
		}
		_, err := encodingOf(number)
		want := fmt.Sprintf("type number %d", number)
		if name := otherType(number); name != "" {
			want = "type " + name + "; F32, F16, Q4_0"
		}
		refused(t, err, errUnsupported, want)
		if strings.Contains(err.Error(), ";") && !strings.Contains(err.Error(), "BF16 and MXFP4") {
			t.Errorf("%v", err)
		}
	}
}

// FuzzBlocks decodes blocks of any bytes in two ways: as a whole, and in pieces from any place.
func FuzzBlocks(f *testing.F) {
	for _, number := range quantised() {
		f.Add(number, bytes.Repeat([]byte{0xA5, 0x3C}, 240), uint16(7), uint16(300))
	}
	f.Fuzz(func(t *testing.T, number uint32, data []byte, from, n uint16) {
		e, ok := encodings[number]
		if !ok || e.decode == nil {
			return
		}
		count := int64(len(data)) / e.bytes
		size := 4 * e.elements * count
		whole := make([]byte, size)
		for i := range count {
			e.decode(whole[4*e.elements*i:][:4*e.elements], data[e.bytes*i:][:e.bytes])
		}
		r := e.blocks(bytes.NewReader(data), 0, size)
		start := min(int64(from), size)
		piece := make([]byte, min(int64(n), size-start))
		if got, err := r.ReadAt(piece, start); got != len(piece) || err != nil ||
			!bytes.Equal(piece, whole[start:][:len(piece)]) {
			t.Fatalf("%s: %d bytes at %d: %d, %v", e.name, len(piece), start, got, err)
		}
		if got, err := r.ReadAt(make([]byte, 1), size); got != 0 || err == nil {
			t.Fatalf("%s: %d bytes behind the end, %v", e.name, got, err)
		}
	})
}

func BenchmarkBlocks(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, number := range quantised() {
		e := encodings[number]
		b.Run(e.name, func(b *testing.B) {
			data := make([]byte, e.bytes*(1<<20)/e.elements)
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			dst := make([]byte, 4<<20)
			r := e.blocks(bytes.NewReader(data), 0, 4<<20)
			b.SetBytes(1 << 20) // elements, not bytes: MB/s is million elements per second
			for b.Loop() {
				if _, err := r.ReadAt(dst, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
