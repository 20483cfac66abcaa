package arrowfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// readBatch reads the message of a block and slices the columns from its body. It checks invariants
// 2 and 3.
func (f *File) readBatch(b block, picked []field) (Batch, error) {
	meta := f.data[b.offset : b.offset+b.meta]
	if binary.LittleEndian.Uint32(meta) != 0xFFFFFFFF {
		return Batch{}, fmt.Errorf("no message at byte %d: %w", b.offset, ErrFormat)
	}
	if size := int64(binary.LittleEndian.Uint32(meta[4:])); size > b.meta-8 {
		return Batch{}, fmt.Errorf("a message of %d bytes in a block of %d: %w", size, b.meta,
			ErrFormat)
	}
	msg := flat{b: meta[8:]}
	root := msg.root()
	rec, ok := root.sub(2)
	if msg.err != nil {
		return Batch{}, msg.err
	}
	if !ok || root.u8(1) != headerRecordBatch {
		return Batch{}, fmt.Errorf("message type %d is not a record batch: %w", root.u8(1),
			ErrFormat)
	}
	body := f.data[b.offset+b.meta : b.offset+b.meta+b.body]
	return readRecord(&msg, rec, body, picked, f.cols)
}

// readRecord slices the columns of one record batch from its body.
func readRecord(msg *flat, rec table, body []byte, picked []field, cols []Column) (Batch, error) {
	rows := rec.i64(0)
	var out Batch
	if c, ok := rec.sub(3); ok {
		if c.u8(0) != codecZstd {
			return out, fmt.Errorf("bodies compressed with codec %d (LZ4 is 0), need none or "+
				"zstd; write it with compression=\"zstd\" (pandas' and pyarrow's default is "+
				"LZ4): %w", c.u8(0), ErrUnsupported)
		}
		out.zstd = true
	}
	const pairBytes = 16 // both a node (length, nulls) and a buffer (offset, length) are two i64
	nodes, nNodes := rec.vector(1, pairBytes)
	bufs, nBufs := rec.vector(2, pairBytes)
	for i, fd := range picked {
		if msg.err != nil {
			return out, msg.err
		}
		name := cols[i].Name
		if fd.node >= nNodes || fd.buffer+cols[i].Buffers() >= nBufs {
			return out, fmt.Errorf("column %q has no data: %w", name, ErrFormat)
		}
		node := nodes + pairBytes*fd.node
		if n, nulls := msg.i64(node), msg.i64(node+8); n != rows || nulls != 0 {
			return out, fmt.Errorf("column %q has %d rows of %d and %d nulls; a row without a "+
				"value cannot be read: %w", name, n, rows, nulls, ErrFormat)
		}
		for k := range cols[i].Buffers() {
			buf := bufs + pairBytes*(fd.buffer+1+k) // 0 is the validity bitmap
			off, n := msg.i64(buf), msg.i64(buf+8)
			if off < 0 || n < 0 || off > int64(len(body)) || n > int64(len(body))-off ||
				off%8 != 0 {
				return out, fmt.Errorf("column %q: bytes %d+%d of a body of %d, or unaligned: %w",
					name, off, n, len(body), ErrFormat)
			}
			col := body[off : off+n : off+n]
			if err := checkBuffer(col, rows, cols[i], k, out.zstd); err != nil {
				return out, fmt.Errorf("column %q: %w", name, err)
			}
			out.cols = append(out.cols, col)
		}
	}
	if msg.err != nil {
		return out, msg.err
	}
	out.Rows = int(rows)
	return out, nil
}

// need returns the least and the most bytes of buffer k of the column, for a number of rows. The
// values of a Binary column have no least number of bytes: it depends on the offsets, which Value
// checks.
func (c Column) need(k int, rows int64) (least, most int64) {
	switch {
	case c.Type != Binary:
		least = product(rows, int64(c.Width()))
	case k == 0 && rows > 0:
		least = product(rows, offsetWidth) + offsetWidth
	case k == 1:
		return 0, product(rows, int64(c.Size))
	}
	return least, least
}

// checkBuffer checks that buffer k of a column holds the given number of rows, or claims to if it
// is compressed.
func checkBuffer(col []byte, rows int64, c Column, k int, compressed bool) error {
	if rows < 0 || rows > math.MaxInt64/offsetWidth-1 {
		return fmt.Errorf("%d rows: %w", rows, ErrFormat)
	}
	need, most := c.need(k, rows)
	if !compressed {
		if int64(len(col)) < need {
			return fmt.Errorf("%d bytes, need %d for %d rows: %w", len(col), need, rows, ErrFormat)
		}
		return nil
	}
	if rows == 0 || need == 0 && len(col) == 0 {
		return nil
	}
	if need > maxInflated {
		return fmt.Errorf("a batch of %d bytes when decompressed; rewrite with batches below 1 "+
			"GiB: %w", need, ErrUnsupported)
	}
	if len(col) < 8 {
		return fmt.Errorf("a compressed buffer of %d bytes: %w", len(col), ErrFormat)
	}
	size := int64(binary.LittleEndian.Uint64(col))
	if size == -1 { // stored without compression
		size = int64(len(col) - 8)
	}
	// writers may include the padding to 64 bytes
	if size < need || size > min(most, maxInflated)+64 {
		return fmt.Errorf("%d bytes when decompressed, need %d for %d rows: %w", size,
			max(need, most), rows, ErrFormat)
	}
	return nil
}

// Load fills dst with the buffers of a batch's columns in the order of Bind. A buffer has Rows ×
// width bytes and is 8-aligned. The values of a Binary column have any length; Value slices them.
// Without compression the buffers are slices of the file and Load does not allocate. With
// compression they are new memory.
func (f *File) Load(b *Batch, dst [][]byte) error {
	i := 0
	for _, c := range f.cols {
		for k := range c.Buffers() {
			least, most := c.need(k, int64(b.Rows))
			var err error
			if dst[i], err = f.inflated(b, b.cols[i], int(least), least < most); err != nil {
				return fmt.Errorf("column %q: %w", c.Name, err)
			}
			i++
		}
	}
	return nil
}

// Value returns value i of a Binary column from its two buffers. It reports whether the offsets lie
// inside the values.
func Value(offsets, values []byte, i int) ([]byte, bool) {
	from := binary.LittleEndian.Uint32(offsets[offsetWidth*i:])
	to := binary.LittleEndian.Uint32(offsets[offsetWidth*(i+1):])
	if from > to || uint64(to) > uint64(len(values)) {
		return nil, false
	}
	return values[from:to:to], true
}

// inflated returns the first need bytes of a buffer, or all bytes.
func (f *File) inflated(b *Batch, col []byte, need int, all bool) ([]byte, error) {
	if b.zstd && b.Rows > 0 && len(col) > 0 {
		var err error
		if col, err = f.decompress(col); err != nil {
			return nil, err
		}
	}
	if all {
		need = len(col)
	}
	return col[:need:need], nil
}

// decompress inflates one buffer.
func (f *File) decompress(col []byte) ([]byte, error) {
	size := int64(binary.LittleEndian.Uint64(col))
	if size == -1 {
		return col[8:], nil
	}
	out, err := f.inflate.DecodeAll(col[8:], aligned(int(size))[:0])
	if err != nil {
		return nil, fmt.Errorf("zstd: %v: %w", err, ErrFormat)
	}
	if int64(len(out)) != size {
		return nil, fmt.Errorf("%d bytes after decompression, %d expected: %w", len(out), size,
			ErrFormat)
	}
	return out, nil
}

// aligned returns n bytes that start on an 8-byte boundary.
func aligned(n int) []byte {
	words := make([]uint64, (n+7)/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}
