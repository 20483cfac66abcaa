package arrowfile

import (
	"fmt"
	"math"

	flatbuffers "github.com/google/flatbuffers/go"
)

// flat is a flatbuffer. It checks every position before it reads there. The first bad position sets
// err, and from then on all reads return zero, so that callers check err once per structure.
type flat struct {
	b   []byte
	err error
}

// table is a table of a flat. The zero value is an absent table without fields.
type table struct {
	f    *flat
	pos  int // of the table
	vtab int // position of its vtable
	vlen int // bytes of its vtable
}

func (f *flat) ok(pos, n int) bool {
	if f.err == nil && (pos < 0 || n < 0 || pos > len(f.b)-n) {
		f.err = fmt.Errorf("metadata points to byte %d of %d: %w", pos, len(f.b), ErrFormat)
	}
	return f.err == nil
}

func (f *flat) u32(pos int) uint32 {
	if !f.ok(pos, 4) {
		return 0
	}
	return flatbuffers.GetUint32(f.b[pos:])
}

func (f *flat) i64(pos int) int64 {
	if !f.ok(pos, 8) {
		return 0
	}
	return flatbuffers.GetInt64(f.b[pos:])
}

// follow returns the target of the forward offset at pos.
func (f *flat) follow(pos int) int {
	off := f.u32(pos)
	if off > math.MaxInt32 {
		f.ok(-1, 0)
		return 0
	}
	return pos + int(off)
}

func (f *flat) root() table { return f.table(f.follow(0)) }

func (f *flat) table(pos int) table {
	if !f.ok(pos, 4) {
		return table{}
	}
	vtab := pos - int(flatbuffers.GetInt32(f.b[pos:]))
	if !f.ok(vtab, 4) {
		return table{}
	}
	vlen := int(flatbuffers.GetUint16(f.b[vtab:]))
	if !f.ok(vtab, max(vlen, 4)) {
		return table{}
	}
	return table{f, pos, vtab, vlen}
}

// slot returns the position of field i, size bytes long, and reports whether the table has it.
func (t table) slot(i, size int) (int, bool) {
	at := 4 + 2*i
	if t.f == nil || at+2 > t.vlen || t.f.err != nil {
		return 0, false
	}
	off := int(flatbuffers.GetUint16(t.f.b[t.vtab+at:]))
	if off == 0 || !t.f.ok(t.pos+off, size) {
		return 0, false
	}
	return t.pos + off, true
}

func (t table) u8(i int) uint8 {
	if p, ok := t.slot(i, 1); ok {
		return t.f.b[p]
	}
	return 0
}

func (t table) i16(i int) int16 {
	if p, ok := t.slot(i, 2); ok {
		return flatbuffers.GetInt16(t.f.b[p:])
	}
	return 0
}

func (t table) i32(i int) int32 {
	if p, ok := t.slot(i, 4); ok {
		return flatbuffers.GetInt32(t.f.b[p:])
	}
	return 0
}

func (t table) i64(i int) int64 {
	if p, ok := t.slot(i, 8); ok {
		return flatbuffers.GetInt64(t.f.b[p:])
	}
	return 0
}

// sub returns the table at field i and reports whether there is one.
func (t table) sub(i int) (table, bool) {
	p, ok := t.slot(i, 4)
	if !ok {
		return table{}, false
	}
	s := t.f.table(t.f.follow(p))
	return s, t.f.err == nil
}

// vector returns the position of the first of n elements of the given size. n is 0 for an absent
// vector. The whole vector lies in the buffer, which bounds n.
func (t table) vector(i, size int) (pos, n int) {
	p, ok := t.slot(i, 4)
	if !ok {
		return 0, 0
	}
	p = t.f.follow(p)
	count := int64(t.f.u32(p))
	if count*int64(size) > int64(len(t.f.b)) || !t.f.ok(p+4, int(count)*size) {
		t.f.ok(-1, 0)
		return 0, 0
	}
	return p + 4, int(count)
}

// element returns table k of a vector of tables that starts at pos.
func (f *flat) element(pos, k int) table { return f.table(f.follow(pos + 4*k)) }

// bytes returns the string or byte vector of field i without copying.
func (t table) bytes(i int) []byte {
	p, n := t.vector(i, 1)
	if n == 0 {
		return nil
	}
	return t.f.b[p : p+n]
}
