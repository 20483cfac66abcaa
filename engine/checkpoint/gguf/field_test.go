package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestField_G1_DimensionOfZero(t *testing.T) {
	for name, dims := range map[string][]uint64{"alone": {0}, "inner": {0, 32}, "outer": {32, 0},
		"both": {0, 0}} {
		for _, number := range []uint32{0, 1, 2, 8, 30} {
			b := header(1, 0).tensor("t", number, 0, dims...).b
			if len(b) > 88 {
				t.Fatalf("%d bytes are more than the report's file", len(b))
			}
			_, err := openBytes(b)
			if refused(t, err, errFormat, `tensor "t"`, "dimension", "is 0"); t.Failed() {
				t.Log(name, number)
			}
		}
	}
}

func TestField_G3_CountsBeyondTheFile(t *testing.T) {
	for _, rank := range []uint32{5, 1_000_000, 0xFFFFFFFF} {
		_, err := openBytes(header(1, 0).text("t").u32(rank).u64(1).u64(1).u64(1).b)
		refused(t, err, errFormat, fmt.Sprintf("%d dimensions; at most 4", rank))
	}
	// Every count in turn says that there is more than 2^63 of it; nothing may be allocated by it.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, b := range [][]byte{
		header(1<<63, 0).u64(0).u64(0).b,
		header(0, 1<<63).u64(0).u64(0).b,
		header(0, 1).text("k").u32(kindText).u64(1 << 63).b,
		header(0, 1).text("k").u32(kindArray).u32(kindU8).u64(1 << 63).b,
		header(0, 1).text("k").u32(kindArray).u32(kindU64).u64(1 << 63).b,
		header(0, 1).text("k").u32(kindArray).u32(kindText).u64(1 << 63).b,
		header(0, 1).text("k").u32(kindArray).u32(kindArray).u64(1 << 63).b,
		header(1, 0).u64(1 << 63).u64(0).u64(0).b,
	} {
		_, err := openBytes(b)
		refused(t, err, errFormat, "truncated")
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

func TestField_G5_NoMerges(t *testing.T) {
	open := func(w *writer) (Vocabulary, error) {
		t.Helper()
		f, err := openBytes(w.b)
		if err != nil {
			t.Fatal(err)
		}
		return f.Vocabulary()
	}
	const p = "tokenizer.ggml."
	_, err := open(header(0, 2).keyText(p+"model", "gpt2").keyTexts(p+"tokens", "a", "b"))
	refused(t, err, errFormat, "byte-level BPE without merges", "merges.txt")
	_, err = open(header(0, 3).keyText(p+"model", "gpt2").keyTexts(p+"tokens", "a",
		"b").keyTexts(p + "merges"))
	refused(t, err, errFormat, "byte-level BPE without merges")
	_, err = open(header(0, 2).keyText(p+"model", "llama").keyTexts(p+"tokens", "a", "b"))
	refused(t, err, errFormat, "without scores")
	_, err = open(header(0, 0))
	refused(t, err, fs.ErrNotExist, "take the tokenizer of the original model")
	_, err = open(header(0, 4).keyText(p+"model", "gpt2").keyTexts(p+"tokens", "a",
		"b").keyTexts(p+"merges", "a b").keyU32(p+"bos_token_id", 2))
	refused(t, err, errFormat, "bos token 2 of 2")
	_, err = open(header(0, 3).keyText(p+"model", "gpt2").keyText(p+"tokens",
		"a").keyTexts(p+"merges", "a b"))
	refused(t, err, errFormat, "tokens is of type string")

	v, err := openFixture(t).Vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	if v.Model != "gpt2" || v.Pre != "default" || len(v.Tokens) != 12 || v.Tokens[3] != "t3" ||
		!slices.Equal(v.Merges, []string{"a b", "c d"}) ||
		len(v.Types) != 12 || v.Scores != nil || v.BOS != 1 || v.EOS != 2 || v.Unknown != -1 ||
		v.Padding != -1 ||
		v.AddBOS == nil || !*v.AddBOS || v.AddEOS != nil || v.SpacePrefix != nil {
		t.Errorf("%+v", v)
	}
}

func TestField_G6_BigEndian(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		b := binary.BigEndian.AppendUint32([]byte(magic), version)
		b = binary.BigEndian.AppendUint64(b, 1)
		b = binary.BigEndian.AppendUint64(b, 1)
		_, err := openBytes(b)
		refused(t, err, errUnsupported, fmt.Sprintf("%#02x000000", version), "big-endian")
	}
}

func TestField_M11_GitLFSPointer(t *testing.T) {
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) +
		"\nsize 4000\n"
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, []byte(pointer), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path)
	refused(t, err, errFormat, path, "Git LFS pointer", "git lfs pull")
}

func TestField_M12_TruncatedFile(t *testing.T) {
	whole, err := os.ReadFile("testdata/llama.gguf")
	if err != nil {
		t.Fatal(err)
	}
	_, err = openBytes(whole[:len(whole)-4096])
	refused(t, err, errFormat, "truncated", fmt.Sprint(len(whole)), fmt.Sprint(len(whole)-4096))
	f := openFixture(t)
	first := f.Tensors()[0].Offset
	for n := range first { // anywhere in the header, too
		if _, err := openBytes(whole[:n]); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(whole))
		}
	}

	path := filepath.Join(t.TempDir(), "a.gguf")
	if err := os.WriteFile(path, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err = Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, first+10); err != nil {
		t.Skip(err)
	}
	for _, x := range f.Tensors() {
		s, err := f.Section(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.ReadAt(make([]byte, x.Size), 0)
		refused(t, err, errFormat, "truncated", "since it was opened")
	}
}

func TestField_M14_DuplicateNames(t *testing.T) {
	_, err := openBytes(header(2, 0).tensor("t", 0, 0, 1).tensor("t", 0, 32, 1).data(32,
		make([]byte, 64)))
	refused(t, err, errFormat, `"t" occurs twice`)
}

func TestField_M16_OffsetsShapesAndTypes(t *testing.T) {
	const top = 1<<63 - 1
	for name, c := range map[string]struct {
		w    *writer
		want string
	}{
		"a large shape": {header(1, 0).tensor("x", 0, 0, 1000, 1000), "truncated"},
		"an overflowing shape": {header(1, 0).tensor("x", 0, 0, 1<<32, 1<<32),
			"more than a file can hold"},
		"overflow of blocks": {header(1, 0).tensor("x", 2, 0, 1<<62, 32),
			"more than a file can hold"},
		"overflow to 4": {header(1, 0).tensor("x", 1, 0, top, top, 4),
			"more than a file can hold"},
		"a negative dimension": {header(1, 0).tensor("x", 0, 0, 1<<64-1),
			"dimension 0 is 18446744073709551615"},
		"a negative offset": {header(1, 0).tensor("x", 0, 1<<64-32, 1),
			"offset 18446744073709551584"},
		"behind all": {header(1, 0).tensor("x", 0, top-31, 1), "belong to no tensor"},
		"to the end of space": {header(2, 0).tensor("x", 1, 0, 1<<62-32).tensor("y", 1, 1<<63-64,
			64), "ends behind what a file can hold"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openBytes(c.w.data(32, make([]byte, 32)))
			refused(t, err, errFormat, c.want)
		})
	}
}

// TestLargeTensorsAreReadInPieces reads from quantised tensors of 2 GiB, as they are read, and
// watches the heap.
func TestLargeTensorsAreReadInPieces(t *testing.T) {
	const size, heap = int64(2) << 30, 64 << 20
	const rows, row = 1 << 14, 1 << 15
	q8, q4 := uint64(rows*row/blockElements*q80Bytes), uint64(rows*row/blockElements*q40Bytes)
	head := header(2, 0).tensor("q8", 8, 0, row, rows).tensor("q4", 2, q8, row, rows).data(32, nil)
	path := filepath.Join(t.TempDir(), "large.gguf")
	if err := os.WriteFile(path, head, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, int64(len(head))+int64(q8+q4)); err != nil {
		t.Skip(err)
	}
	f, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	piece := make([]byte, 4<<20)
	for _, name := range []string{"q8", "q4"} {
		s, err := f.Section(name)
		if err != nil || s.Size() != size {
			t.Fatalf("%s: %d, %v", name, s.Size(), err)
		}
		for _, off := range []int64{0, 1<<30 - 5, size - int64(len(piece))} {
			piece[0], piece[len(piece)-1] = 1, 1
			if n, err := s.ReadAt(piece, off); n != len(piece) {
				t.Fatalf("%s at %d: %d, %v", name, off, n, err)
			}
			// A scale of zero makes zeros, of either sign.
			if bytes.ContainsAny(piece, "\x01") {
				t.Errorf("%s at %d: the file's zeros were read as something else", name, off)
			}
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > heap {
		t.Errorf("%d bytes were allocated", grown)
	}
}
