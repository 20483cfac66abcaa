package parquet

import "encoding/binary"

// The types of Thrift's compact protocol that Parquet uses (thrift-compact-protocol.md of Apache
// Thrift).
const (
	typeI32    = 5
	typeI64    = 6
	typeBinary = 8
	typeList   = 9
	typeStruct = 12
)

// compact is one structure in Thrift's compact protocol. Its fields ascend by number.
type compact struct {
	data []byte
	last int // number of the last field
}

// field begins a field. Its number is written as the distance from the last field's, 1 to 15 in
// Parquet.
func (c *compact) field(number int, kind byte) {
	c.data = append(c.data, byte(number-c.last)<<4|kind)
	c.last = number
}

func (c *compact) i32(number int, v int) {
	c.field(number, typeI32)
	c.data = binary.AppendVarint(c.data, int64(v)) // zigzag, as Thrift's
}

func (c *compact) i64(number int, v int64) {
	c.field(number, typeI64)
	c.data = binary.AppendVarint(c.data, v)
}

func (c *compact) text(number int, v string) {
	c.field(number, typeBinary)
	c.data = appendText(c.data, v)
}

func (c *compact) inner(number int, of compact) {
	c.field(number, typeStruct)
	c.data = append(c.data, of.end()...)
}

// list begins a list of n elements, which the caller appends to data.
func (c *compact) list(number, n int, kind byte) {
	c.field(number, typeList)
	if n < 15 {
		c.data = append(c.data, byte(n)<<4|kind)
		return
	}
	c.data = binary.AppendUvarint(append(c.data, 0xF0|kind), uint64(n))
}

func (c *compact) structs(number int, of []compact) {
	c.list(number, len(of), typeStruct)
	for i := range of {
		c.data = append(c.data, of[i].end()...)
	}
}

// end returns the whole structure.
func (c *compact) end() []byte { return append(c.data, 0) }

func appendText(data []byte, v string) []byte {
	return append(binary.AppendUvarint(data, uint64(len(v))), v...)
}
