package flashio

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// fileKernel is a ring over bytes, with the counts of a file that ends.
type fileKernel struct {
	starvedKernel
	data []byte
}

func (k *fileKernel) Push(tag int, offset int64, buf []byte) error {
	n := copy(buf, k.data[min(offset, int64(len(k.data))):])
	k.queued, k.tags = append(k.queued, int32(n)), append(k.tags, tag)
	return nil
}

// O5: an image ends where its writer's alignment ends, 4 KiB. A device that reads 16 KiB at a time
// is asked beyond that, and gives what there is.
func TestField_O5_RoundedBeyondTheEnd(t *testing.T) {
	const align = 16 << 10
	const size = 2*align + 4096
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i/256 + i + 1)
	}
	opt := SourceOptions{Path: "file", Size: size, Align: align, Threads: 2}
	pool, err := NewPool(&brokenFile{data: data}, opt)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := NewRing(&fileKernel{data: data}, opt)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]Reader{"pread": pool, "uring": ring} {
		buf := AlignedBuffer(3*align, align)
		for i := range buf {
			buf[i] = 0xff
		}
		want := append(bytes.Clone(data), make([]byte, 3*align-size)...)
		if err := r.ReadBatch([]Request{{0, buf[:align]}, {align, buf[align:]}}); err != nil ||
			!bytes.Equal(buf, want) {
			t.Errorf("%s: %v, the bytes are equal: %t", name, err, bytes.Equal(buf, want))
		}
		last := make([]byte, 100)
		if err := ReadFull(r, size-100, last); err != nil || !bytes.Equal(last, data[size-100:]) {
			t.Errorf("%s: the last bytes: %v", name, err)
		}
		if err := ReadFull(r, size-50, last); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: 50 bytes beyond the last: %v", name, err)
		}
		// More than that is beyond the file, and so is any of it for a reader without alignment.
		for _, req := range []Request{{2 * align, buf[:2*align]}, {3 * align, buf[:align]}} {
			if err := r.ReadBatch([]Request{req}); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %d bytes at %d: %v", name, len(req.Buf), req.Offset, err)
			}
		}
		if err := errors.Join(r.Close(), FreeBuffer(buf)); err != nil {
			t.Error(err)
		}
	}
	// Three values: the strictest of offset, length and buffer is asked of all.
	for _, c := range []struct{ buf, off, want units.Bytes }{{512, 4096, 4096}, {4096, 512, 4096},
		{4, 16 << 10, 16 << 10}} {
		if got := directAlign(FileInfo{DirectKnown: true, DirectBuf: c.buf,
			DirectOff: c.off}); got != c.want {
			t.Errorf("buffer %v, offset %v: %v, want %v", c.buf, c.off, got, c.want)
		}
	}
}
