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
	if inner, ok := find[sized](r); ok && int64(len(buf)) > inner.length()-off {
		return boundsError(r.Mode().Engine, "file", inner.length(), one)
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

// sized is a Reader that knows the length of its file.
type sized interface{ length() int64 }

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
