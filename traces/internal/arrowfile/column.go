package arrowfile

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
)

// Type is the type of a column's values. Values are little-endian.
type Type uint8

// The types of columns.
const (
	Uint8 Type = iota
	Uint16
	Uint32
	Int64
	Float32
	Fixed  // Column.Size bytes per value
	Binary // at most Column.Size bytes per value
)

// Column is a column of a table: without nulls, not a dictionary.
type Column struct {
	Name string
	Type Type
	Size int // bytes per value, for Fixed; the most of any value, for Binary
}

// offsetWidth is the number of bytes of one offset of a Binary column.
const offsetWidth = 4

// Buffers is the number of buffers of a column that Write takes and Load returns: the values, and
// for Binary the offsets before them. There is one more i32 offset than rows: value i is the bytes
// from offset i to offset i+1.
func (c Column) Buffers() int {
	if c.Type == Binary {
		return 2
	}
	return 1
}

// Width is the number of bytes of one value, for Binary of one offset.
func (c Column) Width() int {
	switch c.Type {
	case Uint8:
		return 1
	case Uint16:
		return 2
	case Uint32, Float32:
		return 4
	case Int64:
		return 8
	case Binary:
		return offsetWidth
	default:
		return c.Size
	}
}

// TypeName returns Arrow's name of the column's type, for error messages.
func (c Column) TypeName() string {
	switch c.Type {
	case Uint8:
		return "uint8"
	case Uint16:
		return "uint16"
	case Uint32:
		return "uint32"
	case Int64:
		return "int64"
	case Float32:
		return "float32"
	case Binary:
		return "binary"
	default:
		return fmt.Sprintf("fixed_size_binary[%d]", c.Size)
	}
}

func (c Column) arrowType() arrow.DataType {
	switch c.Type {
	case Uint8:
		return arrow.PrimitiveTypes.Uint8
	case Uint16:
		return arrow.PrimitiveTypes.Uint16
	case Uint32:
		return arrow.PrimitiveTypes.Uint32
	case Int64:
		return arrow.PrimitiveTypes.Int64
	case Float32:
		return arrow.PrimitiveTypes.Float32
	case Binary:
		return arrow.BinaryTypes.Binary
	default:
		return &arrow.FixedSizeBinaryType{ByteWidth: c.Size}
	}
}

// Codec is the compression of the bodies of batches.
type Codec uint8

// The codecs. LZ4 is neither read nor written: several readers of Arrow files cannot open it.
const (
	None Codec = iota
	Zstd
)

// String returns the name used in options and reports.
func (c Codec) String() string {
	if c == Zstd {
		return "zstd"
	}
	return "none"
}

// Pair is one entry of the schema's metadata.
type Pair struct{ Key, Value string }
