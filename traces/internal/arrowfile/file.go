package arrowfile

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

const (
	magic     = "ARROW1"
	headBytes = 8  // the magic and two bytes of padding
	tailBytes = 10 // the footer's length and the magic

	// maxInflated bounds the decompressed size of one batch. Writer's batches are a few MiB.
	maxInflated = 1 << 30
)

// File is a parsed file. It refers to the bytes given to Parse, which must not change. After Bind
// it is safe for concurrent use.
type File struct {
	data    []byte
	foot    flat
	schema  table
	fields  []field
	codec   Codec
	blocks  []block
	batches []Batch
	cols    []Column
	inflate *zstd.Decoder
}

type block struct {
	offset, meta, body int64
}

// Batch is one batch of the bound columns.
type Batch struct {
	Rows int
	// cols are the buffers of the bound columns: values, or a length and a zstd frame.
	cols [][]byte
	zstd bool
}

// Parse reads the footer and the schema.
func Parse(data []byte) (*File, error) {
	if order := binary.NativeEndian.Uint16([]byte{1, 0}); order != 1 {
		return nil, fmt.Errorf("this host is big-endian: %w", ErrUnsupported)
	}
	f := &File{data: data}
	footer, err := f.findFooter()
	if err != nil {
		return nil, err
	}
	f.foot.b = data[footer : len(data)-tailBytes]
	root := f.foot.root()
	if v := root.i16(0); f.foot.err == nil && (v < versionV4 || v > versionV5) {
		return nil, fmt.Errorf("metadata of Arrow version number %d, need V4 or V5: %w", v,
			ErrUnsupported)
	}
	schema, ok := root.sub(1)
	if f.foot.err != nil {
		return nil, f.foot.err
	}
	if !ok {
		return nil, fmt.Errorf("the footer has no schema: %w", ErrFormat)
	}
	if schema.i16(0) != 0 {
		return nil, fmt.Errorf("the file is big-endian: %w", ErrUnsupported)
	}
	f.schema = schema
	r := schemaReader{f: &f.foot}
	if f.fields, err = r.fields(schema); err != nil {
		return nil, err
	}
	f.blocks, err = f.readBlocks(root, int64(footer))
	return f, err
}

// findFooter checks both magics and the footer's length, and returns the footer's position.
func (f *File) findFooter() (int, error) {
	n := len(f.data)
	switch {
	case n == 0:
		return 0, fmt.Errorf("the file is empty: %w", ErrFormat)
	case n < headBytes+4+tailBytes:
		return 0, fmt.Errorf("%d bytes are too few for an Arrow file: %w", n, ErrFormat)
	case string(f.data[:4]) == "\xff\xff\xff\xff":
		return 0, fmt.Errorf("this is an Arrow stream, need an Arrow file; rewrite it with a "+
			"file writer: %w", ErrFormat)
	case string(f.data[:len(magic)]) != magic:
		return 0, fmt.Errorf("no Arrow magic at the start: not a trace or a run: %w", ErrFormat)
	case string(f.data[n-len(magic):]) != magic:
		return 0, fmt.Errorf("no Arrow magic at the end: the file is cut short: %w", ErrFormat)
	}
	size := int64(binary.LittleEndian.Uint32(f.data[n-tailBytes:]))
	if size < 4 || size > int64(n-headBytes-tailBytes) {
		return 0, fmt.Errorf("a footer of %d bytes in a file of %d: %w", size, n, ErrFormat)
	}
	return n - tailBytes - int(size), nil
}

// readBlocks reads the list of batches. It checks invariant 1.
func (f *File) readBlocks(root table, footer int64) ([]block, error) {
	const blockBytes = 24 // offset i64, meta i32, padding, body i64
	pos, n := root.vector(3, blockBytes)
	if f.foot.err != nil {
		return nil, f.foot.err
	}
	blocks := make([]block, n)
	end := int64(headBytes)
	for i := range blocks {
		p := pos + i*blockBytes
		b := block{f.foot.i64(p), int64(int32(f.foot.u32(p + 8))), f.foot.i64(p + 16)}
		bad := b.offset < end || b.offset > footer || b.meta < 8 || b.meta > footer-b.offset ||
			b.body < 0 || b.body > footer-b.offset-b.meta || b.offset%8 != 0 || b.meta%8 != 0
		if bad {
			return nil, fmt.Errorf("batch %d: a block at %d+%d+%d, outside %d..%d or unaligned: %w",
				i, b.offset, b.meta, b.body, end, footer, ErrFormat)
		}
		end = b.offset + b.meta + b.body
		blocks[i] = b
	}
	return blocks, f.foot.err
}

// Meta returns the value of a key of the schema's metadata, as a slice of the file.
func (f *File) Meta(key string) ([]byte, bool) {
	pos, n := f.schema.vector(2, 4)
	for k := 0; k < n; k++ {
		kv := f.foot.element(pos, k)
		if string(kv.bytes(0)) == key && f.foot.err == nil {
			return kv.bytes(1), f.foot.err == nil
		}
	}
	return nil, false
}

// Has reports whether the file has a column of that name.
func (f *File) Has(name string) bool {
	for i := range f.fields {
		if f.fields[i].name == name {
			return true
		}
	}
	return false
}

// Codec returns the compression of the bodies; None before Bind.
func (f *File) Codec() Codec { return f.codec }

// Bind selects columns by name and checks all batches. It ignores other columns of the file.
func (f *File) Bind(cols []Column) error {
	picked := make([]field, len(cols))
	for i, c := range cols {
		fd, err := f.pick(c)
		if err != nil {
			return err
		}
		picked[i] = fd
	}
	f.cols = cols
	f.batches = make([]Batch, 0, len(f.blocks))
	for i, b := range f.blocks {
		batch, err := f.readBatch(b, picked)
		if err != nil {
			return fmt.Errorf("batch %d: %w", i, err)
		}
		if batch.zstd {
			f.codec = Zstd
		}
		f.batches = append(f.batches, batch)
	}
	if f.codec == Zstd {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(maxInflated),
			zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return fmt.Errorf("zstd: %w", err)
		}
		f.inflate = d
	}
	return nil
}

// pick returns the field of column c. It must exist once and have the right type.
func (f *File) pick(c Column) (field, error) {
	var found []field
	for _, fd := range f.fields {
		if fd.name == c.Name {
			found = append(found, fd)
		}
	}
	switch {
	case len(found) == 0:
		return field{}, fmt.Errorf("column %q (%s) is missing: %w", c.Name, c.TypeName(), ErrFormat)
	case len(found) > 1:
		return field{}, fmt.Errorf("column %q is there %d times: %w", c.Name, len(found), ErrFormat)
	case found[0].typeName != c.TypeName():
		return field{}, fmt.Errorf("column %q has type %s, need %s; cast it: %w", c.Name,
			found[0].typeName, c.TypeName(), ErrFormat)
	}
	return found[0], nil
}

// Batches returns the batches, for Load.
func (f *File) Batches() []Batch { return f.batches }

// Close releases the decompressor. Slices of the file stay valid.
func (f *File) Close() {
	if f.inflate != nil {
		f.inflate.Close()
	}
}
