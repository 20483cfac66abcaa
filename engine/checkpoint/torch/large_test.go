package torch

import (
	"archive/zip"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// holes writes a file and skips zeros, so that the file is sparse.
type holes struct {
	f     *os.File
	zeros []byte
}

func (h *holes) Write(p []byte) (int, error) {
	if len(p) > 0 && &p[0] == &h.zeros[0] {
		_, err := h.f.Seek(int64(len(p)), 1)
		return len(p), err
	}
	return h.f.Write(p)
}

// sparse makes a file whose first storage, of zeros, has the given size and whose second one holds
// 1, 2, 3, 4.
func sparse(t *testing.T, size int64, pickle string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "large.bin")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := &holes{f, make([]byte, 64<<20)}
	z := zip.NewWriter(h)
	if err := z.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		name string
		text string
		size int64
	}{{"data.pkl", pickle, int64(len(pickle))}, {"data/0", "", size}, {"data/1", "\x01\x02\x03\x04",
		4}} {
		w, err := z.CreateRaw(&zip.FileHeader{Name: "x/" + e.name, CompressedSize64: uint64(e.size),
			UncompressedSize64: uint64(e.size)})
		if err == nil {
			_, err = w.Write([]byte(e.text))
		}
		if err == nil {
			err = z.Flush() // the writer's buffer comes before a hole
		}
		for left := e.size - int64(len(e.text)); err == nil &&
			left > 0; left -= int64(len(h.zeros)) {
			_, err = w.Write(h.zeros[:min(left, int64(len(h.zeros)))])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLargeTensorsAreReadInPieces reads from a tensor of 2 GiB and its transposed view, behind a
// storage of 5 GiB, which zip can only describe with its 64-bit fields, and watches the heap.
func TestLargeTensorsAreReadInPieces(t *testing.T) {
	if strconv.IntSize == 32 {
		t.Skip("the file is larger than this system can address")
	}
	const size, rows, columns, heap = int64(5) << 30, 1 << 15, 1 << 15, 64 << 20
	n := size / 2
	path := sparse(t, size, newPickle().op("}(").text("big").tensor("HalfStorage", "0", n, 1<<30,
		[]int64{rows, columns}, []int64{columns, 1}).
		text("turned").tensor("HalfStorage", "0", n, 1<<30, []int64{columns, rows},
		[]int64{1, columns}).
		text("small").tensor("HalfStorage", "1", 2, 0, []int64{2}, []int64{1}).op("u.").String())
	f, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// A mark in row 3, column 5.
	mark := binary.LittleEndian.AppendUint16(nil, 0x3C00)
	big, _ := f.Tensor("big")
	if out, err := os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	} else if _, err := out.WriteAt(mark, big.Offset+2*(3*columns+5)); err != nil {
		t.Fatal(err)
	} else if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	piece := make([]byte, 4<<20)
	for name, at := range map[string]int64{"big": 2 * (3*columns + 5), "turned": 2 * (5*rows + 3)} {
		s, err := f.Section(name)
		if err != nil || s.Size() != 2<<30 {
			t.Fatalf("%s: %v", name, err)
		}
		for _, off := range []int64{0, 1 << 30, 2<<30 - int64(len(piece))} {
			if k, err := s.ReadAt(piece, off); k != len(piece) {
				t.Fatalf("%s at %d: %d, %v", name, off, k, err)
			}
			if off == 0 && (piece[at] != mark[0] || piece[at+1] != mark[1]) {
				t.Errorf("%s: the mark is not at %d", name, at)
			}
		}
	}
	s, err := f.Section("small")
	if err != nil {
		t.Fatal(err)
	}
	everyRange(t, "small", s, []byte{1, 2, 3, 4})
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > heap {
		t.Errorf("%d bytes were allocated", grown)
	}
}
