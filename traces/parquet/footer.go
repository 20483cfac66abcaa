package parquet

// Numbers of enumerations in parquet.thrift of Apache Parquet.
const (
	physicalBool, physicalInt64, physicalDouble, physicalBytes = 0, 2, 5, 6

	required, optional = 0, 1
	convertedUTF8      = 0
	encodingPlain      = 0
	encodingRLE        = 3
	codecZstd          = 6
	dataPage           = 0
)

// Numbers of fields in parquet.thrift, of the structures with many fields.
const (
	schemaType, schemaRepetition, schemaName, schemaChildren, schemaConverted, schemaLogical = 1, 3,
		4, 5, 6, 10

	fileVersion, fileSchema, fileRows, fileGroups, fileMetadata, fileCreator = 1, 2, 3, 4, 5, 6

	chunkType, chunkEncodings, chunkPath, chunkCodec, chunkValues, chunkPlain, chunkPacked,
	chunkPage = 1, 2, 3, 4, 5, 6, 7, 9
)

func (k Kind) physical() int {
	switch k {
	case Bool:
		return physicalBool
	case Int:
		return physicalInt64
	case Float:
		return physicalDouble
	}
	return physicalBytes
}

// page is a written page of one column.
type page struct {
	offset        int64
	plain, packed int64 // bytes with the page's header, before and after compression
}

// group is a written group of rows.
type group struct {
	rows  int
	pages []page // by column
}

// pageHeader returns the header of a page of values.
func pageHeader(values, plain, packed int) []byte {
	var data, h compact
	data.i32(1, values)
	data.i32(2, encodingPlain)
	data.i32(3, encodingRLE) // of definition levels
	data.i32(4, encodingRLE) // of repetition levels; there are none
	h.i32(1, dataPage)
	h.i32(2, plain)
	h.i32(3, packed)
	h.inner(5, data)
	return h.end()
}

// footer returns the footer of the file.
func (w *Writer) footer(metadata []Entry) []byte {
	var f compact
	rows := int64(0)
	groups := make([]compact, len(w.groups))
	for i := range w.groups {
		groups[i] = w.rowGroup(&w.groups[i])
		rows += int64(w.groups[i].rows)
	}
	f.i32(fileVersion, 1)
	f.structs(fileSchema, w.schema())
	f.i64(fileRows, rows)
	f.structs(fileGroups, groups)
	entries := make([]compact, len(metadata))
	for i, m := range metadata {
		entries[i].text(1, m.Key)
		entries[i].text(2, m.Value)
	}
	f.structs(fileMetadata, entries)
	f.text(fileCreator, "windrow")
	return f.end()
}

// schema returns the elements of the schema: the root, then the columns.
func (w *Writer) schema() []compact {
	var root compact
	root.text(schemaName, "schema")
	root.i32(schemaChildren, len(w.columns))
	list := []compact{root}
	for i := range w.columns {
		var s compact
		c := &w.columns[i]
		s.i32(schemaType, c.Kind.physical())
		repetition := required
		if c.Optional {
			repetition = optional
		}
		s.i32(schemaRepetition, repetition)
		s.text(schemaName, c.Name)
		if c.Kind == Text {
			var logical compact
			logical.inner(1, compact{}) // STRING
			s.i32(schemaConverted, convertedUTF8)
			s.inner(schemaLogical, logical)
		}
		list = append(list, s)
	}
	return list
}

func (w *Writer) rowGroup(g *group) (c compact) {
	chunks := make([]compact, len(g.pages))
	plain := int64(0)
	for i, p := range g.pages {
		var meta compact
		meta.i32(chunkType, w.columns[i].Kind.physical())
		meta.list(chunkEncodings, 2, typeI32)
		meta.data = append(meta.data, encodingPlain<<1, encodingRLE<<1) // zigzag
		meta.list(chunkPath, 1, typeBinary)
		meta.data = appendText(meta.data, w.columns[i].Name)
		meta.i32(chunkCodec, codecZstd)
		meta.i64(chunkValues, int64(g.rows))
		meta.i64(chunkPlain, p.plain)
		meta.i64(chunkPacked, p.packed)
		meta.i64(chunkPage, p.offset)
		chunks[i].i64(2, p.offset)
		chunks[i].inner(3, meta)
		plain += p.plain
	}
	c.structs(1, chunks)
	c.i64(2, plain)
	c.i64(3, int64(g.rows))
	return c
}
