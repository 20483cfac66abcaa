package tokenizer

import (
	"encoding/binary"
	"math"
)

// message reads a message of Protocol Buffers field by field. It copies nothing.
type message struct {
	data []byte
	at   int // offset in the file of data[0]
}

// field is one field of a message.
type field struct {
	number uint64
	wire   uint64
	bits   uint64 // wireVarint, wireFixed64, wireFixed32
	data   []byte // wireBytes
	at     int    // offset in the file, of data for wireBytes
}

// The wire types; groups (3 and 4) are not read.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// next returns the first field and drops it from the message. ok is false at the end.
func (m *message) next() (f field, ok bool, err error) {
	if len(m.data) == 0 {
		return f, false, nil
	}
	f.at = m.at
	key, err := m.varint()
	if err != nil {
		return f, false, err
	}
	f.number, f.wire = key>>3, key&7
	size := uint64(0)
	switch f.wire {
	case wireVarint:
		f.bits, err = m.varint()
		return f, err == nil, err
	case wireBytes:
		if size, err = m.varint(); err != nil {
			return f, false, err
		}
	case wireFixed64:
		size = 8
	case wireFixed32:
		size = 4
	default:
		return f, false, modelAt(f.at).malformed("field %d of wire type %d", f.number, f.wire)
	}
	if size > uint64(len(m.data)) {
		return f, false, modelAt(f.at).malformed("field %d has %d bytes, but only %d are left",
			f.number, size, len(m.data))
	}
	f.data = m.data[:size]
	switch f.wire {
	case wireBytes:
		f.at = m.at
	case wireFixed64:
		f.bits = binary.LittleEndian.Uint64(f.data)
	case wireFixed32:
		f.bits = uint64(binary.LittleEndian.Uint32(f.data))
	}
	m.data, m.at = m.data[size:], m.at+int(size)
	return f, true, nil
}

// varint takes a number off the message.
func (m *message) varint() (uint64, error) {
	n, width := binary.Uvarint(m.data)
	if width <= 0 {
		return 0, modelAt(m.at).malformed("a number that is cut or longer than 64 bits")
	}
	m.data, m.at = m.data[width:], m.at+width
	return n, nil
}

// expect refuses a field with another wire type than the schema's.
func (f field) expect(wire uint64) error {
	if f.wire != wire {
		return modelAt(f.at).malformed("field %d has wire type %d instead of %d", f.number, f.wire,
			wire)
	}
	return nil
}

// float returns a wireFixed32 as a float32.
func (f field) float() float32 { return math.Float32frombits(uint32(f.bits)) }

// modelAt is a position in the file by its offset.
func modelAt(offset int) position { return inList(modelFile, "byte").entry(offset) }
