package flashio

import "fmt"

// bounceBytes is the size of the aligned buffer for reads that are not aligned.
const bounceBytes = 1 << 20

// ReadFull fills buf from the file at offset off: for headers and other reads off the hot path. If
// r is direct and the range is not aligned, it makes aligned reads around the range, through a
// buffer of its own. The range itself must lie within the file.
func ReadFull(r Reader, off int64, buf []byte) error {
	align := r.Mode().Align
	one := Request{Offset: off, Buf: buf}
	if align <= 1 || off < 0 || len(buf) == 0 || aligned(&one, align) {
		return r.ReadBatch([]Request{one})
	}
	if end, ok := lengthOf(r); ok && int64(len(buf)) > end-off {
		return boundsError(r.Mode().Engine, "file", end, one)
	}
	size := max(bounceBytes, int(align))
	bounce := AlignedBuffer(size, int(align))
	if bounce == nil {
		return fmt.Errorf("flashio: read: no memory for an aligned buffer of %d bytes", size)
	}
	err := readBounced(r, off, buf, bounce, int64(align))
	if free := FreeBuffer(bounce); err == nil {
		err = free
	}
	return err
}

// lengthOf returns the length of a Reader's file, if the Reader knows it.
func lengthOf(r Reader) (int64, bool) {
	for {
		switch inner := r.(type) {
		case interface{ length() int64 }:
			return inner.length(), true
		case interface{ Unwrap() Reader }:
			r = inner.Unwrap()
		default:
			return 0, false
		}
	}
}

// readBounced fills buf with aligned reads into bounce, whose length is a multiple of align.
func readBounced(r Reader, off int64, buf, bounce []byte, align int64) error {
	for len(buf) > 0 {
		start := off / align * align
		end := (off + int64(len(buf)) + align - 1) / align * align
		piece := bounce[:min(end-start, int64(len(bounce)))]
		if err := r.ReadBatch([]Request{{Offset: start, Buf: piece}}); err != nil {
			return err
		}
		n := copy(buf, piece[off-start:])
		buf, off = buf[n:], off+int64(n)
	}
	return nil
}
