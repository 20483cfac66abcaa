// Package parquettest reads the files of package parquet, for tests: a second, plain implementation
// of the same parts of Parquet. The tests of package parquet check it against pyarrow.
package parquettest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/klauspost/compress/zstd"

	"github.com/windrow-sim/windrow/traces/parquet"
)

// File is a decoded table.
type File struct {
	Columns  []parquet.Column
	Metadata []parquet.Entry
	Rows     [][]any // values as parquet.Writer.Row takes them
}

// Read decodes a file of parquet.Writer. All defects give one error.
func Read(data []byte) (f *File, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, fmt.Errorf("parquettest: not a file of package parquet: %v", r)
		}
	}()
	f = &File{}
	return f, f.read(data)
}

func (f *File) read(data []byte) error {
	const magic = "PAR1"
	n := len(data)
	if string(data[:4]) != magic || string(data[n-4:]) != magic {
		return errors.New("parquettest: no magic")
	}
	size := int(binary.LittleEndian.Uint32(data[n-8:]))
	footer := &thrift{data: data[n-8-size : n-8]}
	meta := footer.structure()
	if len(footer.data) != 0 {
		return fmt.Errorf("parquettest: %d bytes behind the footer", len(footer.data))
	}
	kinds := map[int64]parquet.Kind{0: parquet.Bool, 2: parquet.Int, 5: parquet.Float,
		6: parquet.Text}
	for _, s := range meta[2].([]any)[1:] {
		s := s.(map[int]any)
		f.Columns = append(f.Columns, parquet.Column{Name: s[4].(string), Kind: kinds[s[1].(int64)],
			Optional: s[3].(int64) == 1})
	}
	for _, e := range meta[5].([]any) {
		e := e.(map[int]any)
		f.Metadata = append(f.Metadata, parquet.Entry{Key: e[1].(string), Value: e[2].(string)})
	}
	unpack, err := zstd.NewReader(nil)
	if err != nil {
		return fmt.Errorf("parquettest: %w", err)
	}
	defer unpack.Close()
	for _, g := range meta[4].([]any) {
		g := g.(map[int]any)
		first, count := len(f.Rows), int(g[3].(int64))
		for range count {
			f.Rows = append(f.Rows, make([]any, len(f.Columns)))
		}
		for c, chunk := range g[1].([]any) {
			m := chunk.(map[int]any)[3].(map[int]any)
			page := &thrift{data: data[m[9].(int64):]}
			head := page.structure()
			plain, err := unpack.DecodeAll(page.data[:head[3].(int64)], nil)
			if err != nil || int64(len(plain)) != head[2].(int64) || m[5].(int64) != int64(count) {
				return fmt.Errorf("parquettest: page of %s: %d bytes, header %v: %w",
					f.Columns[c].Name, len(plain), head, err)
			}
			for i, v := range values(f.Columns[c], plain, count) {
				f.Rows[first+i][c] = v
			}
		}
	}
	if meta[3].(int64) != int64(len(f.Rows)) {
		return fmt.Errorf("parquettest: %d rows, the footer says %v", len(f.Rows), meta[3])
	}
	return nil
}

// values decodes a page.
func values(c parquet.Column, data []byte, n int) (list []any) {
	present := func(int) bool { return true }
	if c.Optional {
		size := binary.LittleEndian.Uint32(data)
		bits := data[4 : 4+size]
		_, head := binary.Uvarint(bits)
		present = func(i int) bool { return bits[head+i/8]>>(i%8)&1 == 1 }
		data = data[4+size:]
	}
	bools := 0
	for i := range n {
		switch {
		case !present(i):
			list = append(list, nil)
		case c.Kind == parquet.Bool:
			list = append(list, data[bools/8]>>(bools%8)&1 == 1)
			bools++
		case c.Kind == parquet.Int:
			list, data = append(list, int64(binary.LittleEndian.Uint64(data))), data[8:]
		case c.Kind == parquet.Float:
			list, data = append(list, math.Float64frombits(binary.LittleEndian.Uint64(data))),
				data[8:]
		default:
			size := binary.LittleEndian.Uint32(data)
			list, data = append(list, string(data[4:4+size])), data[4+size:]
		}
	}
	return list
}

// The types of Thrift's compact protocol that Read understands.
const (
	typeI32    = 5
	typeI64    = 6
	typeBinary = 8
	typeList   = 9
	typeStruct = 12
)

// thrift reads the compact protocol.
type thrift struct{ data []byte }

func (r *thrift) byte() byte {
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

func (r *thrift) structure() map[int]any {
	fields, number := map[int]any{}, 0
	for {
		b := r.byte()
		if b == 0 {
			return fields
		}
		number += int(b >> 4)
		fields[number] = r.value(b & 15)
	}
}

func (r *thrift) value(kind byte) any {
	switch kind {
	case typeI32, typeI64:
		v, n := binary.Varint(r.data)
		r.data = r.data[n:]
		return v
	case typeBinary:
		size, n := binary.Uvarint(r.data)
		text := string(r.data[n : n+int(size)])
		r.data = r.data[n+int(size):]
		return text
	case typeStruct:
		return r.structure()
	case typeList:
		b := r.byte()
		count := uint64(b >> 4)
		if count == 15 {
			var n int
			count, n = binary.Uvarint(r.data)
			r.data = r.data[n:]
		}
		list := []any{}
		for range count {
			list = append(list, r.value(b&15))
		}
		return list
	}
	panic(fmt.Sprintf("type %d", kind))
}
