package arrowfile

import (
	"fmt"
	"math"
)

// Numbers of Arrow's format (format/Schema.fbs, Message.fbs and File.fbs): unions and enums.
const (
	typeNull, typeInt, typeFloat, typeBinary, typeUtf8, typeBool        = 1, 2, 3, 4, 5, 6
	typeDecimal, typeDate, typeTime, typeTimestamp, typeInterval        = 7, 8, 9, 10, 11
	typeList, typeStruct, typeUnion, typeFixedBinary, typeFixedList     = 12, 13, 14, 15, 16
	typeMap, typeDuration, typeLargeBinary, typeLargeUtf8, typeLargeLst = 17, 18, 19, 20, 21

	versionV4, versionV5 = 3, 4
	headerRecordBatch    = 3
	codecLZ4, codecZstd  = 0, 1
)

// Limits far above those of trace and Run files. They bound the work for a hostile schema.
const (
	maxFields = 1024 // columns and their children, all together
	maxDepth  = 8    // nesting of children
)

// field describes one column of a file.
type field struct {
	name     string
	typeName string
	node     int // index of its first field node in a batch
	buffer   int // index of its first buffer (the validity bitmap) in a batch
}

// schemaReader reads a schema and counts the nodes and buffers of each column in a batch.
type schemaReader struct {
	f       *flat
	visited int
	nodes   int
	buffers int
}

// fields reads the columns of a schema table.
func (r *schemaReader) fields(schema table) ([]field, error) {
	pos, n := schema.vector(1, 4)
	if n > maxFields {
		return nil, fmt.Errorf("%d columns, more than %d: %w", n, maxFields, ErrUnsupported)
	}
	out := make([]field, 0, n)
	for k := 0; k < n; k++ {
		t := r.f.element(pos, k)
		fd := field{name: string(clip(t.bytes(0))), node: r.nodes, buffer: r.buffers}
		fd.typeName = typeName(t)
		err := r.count(t, 0)
		if r.f.err != nil { // after an error, names and types are zeros
			return nil, r.f.err
		}
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", fd.name, err)
		}
		out = append(out, fd)
	}
	return out, r.f.err
}

// clip bounds the length of a name in error messages.
func clip(name []byte) []byte { return name[:min(len(name), 128)] }

// count adds the nodes and buffers of a field and its children.
func (r *schemaReader) count(t table, depth int) error {
	r.visited++
	if r.visited > maxFields || depth > maxDepth {
		return fmt.Errorf("the schema nests too deep or has too many fields: %w", ErrUnsupported)
	}
	r.nodes++
	kind := t.u8(2)
	if _, dict := t.sub(4); dict {
		r.buffers += 2 // buffers of the indices; the values are elsewhere
		return nil
	}
	switch kind {
	case typeNull:
	case typeInt, typeFloat, typeBool, typeDecimal, typeDate, typeTime, typeTimestamp, typeInterval,
		typeDuration, typeFixedBinary, typeList, typeLargeLst, typeMap:
		r.buffers += 2
	case typeBinary, typeUtf8, typeLargeBinary, typeLargeUtf8:
		r.buffers += 3
	case typeStruct, typeFixedList:
		r.buffers++
	default:
		return fmt.Errorf("type %s cannot be skipped; drop the column: %w", typeName(t),
			ErrUnsupported)
	}
	pos, n := t.vector(5, 4)
	for k := 0; k < n; k++ {
		if err := r.count(r.f.element(pos, k), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// typeName returns the name of a field's type as Arrow's tools print it.
func typeName(t table) string {
	if _, dict := t.sub(4); dict {
		return "dictionary"
	}
	detail, _ := t.sub(3)
	switch kind := t.u8(2); kind {
	case typeInt:
		sign := "uint"
		if detail.u8(1) != 0 {
			sign = "int"
		}
		return fmt.Sprintf("%s%d", sign, detail.i32(0))
	case typeFloat:
		return [...]string{"float16", "float32", "float64"}[min(uint16(detail.i16(0)), 2)]
	case typeFixedBinary:
		return fmt.Sprintf("fixed_size_binary[%d]", detail.i32(0))
	default:
		names := map[uint8]string{
			typeNull: "null", typeBinary: "binary", typeUtf8: "utf8", typeBool: "bool",
			typeDecimal: "decimal",
			typeDate:    "date", typeTime: "time", typeTimestamp: "timestamp",
			typeInterval: "interval", typeList: "list",
			typeStruct: "struct", typeUnion: "union", typeFixedList: "fixed_size_list",
			typeMap:      "map",
			typeDuration: "duration", typeLargeBinary: "large_binary", typeLargeUtf8: "large_utf8",
			typeLargeLst: "large_list",
		}
		if s := names[kind]; s != "" {
			return s
		}
		return fmt.Sprintf("type number %d", kind)
	}
}

// product returns a·b for a, b ≥ 0, or MaxInt64 on overflow.
func product(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
