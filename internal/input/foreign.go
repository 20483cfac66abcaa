package input

import (
	"bytes"
	"context"
	"encoding/binary"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/windrow-sim/windrow/internal/plain"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// HeadBytes is the number of bytes from which Foreign tells every kind of file.
const HeadBytes = 512

// Form is the form of the files of a reader, for the remedy of a table of another form.
type Form int

// The forms.
const (
	Other Form = iota
	Rows       // lines of text: CSV, JSON lines
	Arrow      // an Arrow file
)

// byteOrderMark is the mark that some programs put before UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

// TrimMark returns a text without the byte order mark in front of it.
func TrimMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte(byteOrderMark)) }

// ReadText reads a whole text as ReadFile does, without its byte order mark. It refuses the files
// of Foreign and other encodings than UTF-8 that have a mark; such errors wrap ErrKind.
func ReadText(ctx context.Context, path string, limit Limit) ([]byte, error) {
	return readAs(ctx, path, limit, foreignProse)
}

// ReadDocument reads a text as ReadText does, for a form that no web page has: a web page is often
// saved in place of a file.
func ReadDocument(ctx context.Context, path string, limit Limit) ([]byte, error) {
	return readAs(ctx, path, limit, ForeignText)
}

// readAs reads a text that foreign does not refuse.
func readAs(ctx context.Context, path string, limit Limit,
	foreign func(path string, head []byte, form Form) error) ([]byte, error) {
	data, err := ReadFile(ctx, path, limit)
	if err != nil {
		return nil, err
	}
	if err := foreign(path, data[:min(len(data), HeadBytes)], Other); err != nil {
		return nil, &refused{refusal.Input("%s: %v", path, err), ErrKind}
	}
	return TrimMark(data), nil
}

// pageRemedy says how a web page came to be there.
const pageRemedy = "download the file itself (on GitHub and Hugging Face: \"raw\" or \"download\")"

// Foreign says of a file that it is of a kind that readers do not read, by its first bytes,
// HeadBytes or all of a shorter file: compressed, an archive, a table of another form, a Git LFS
// pointer. The error is ErrKind without the path in front, and says what the file is and the
// command that makes a file of the form of it. Web pages and encodings are not among the kinds:
// see ForeignText.
func Foreign(path string, head []byte, form Form) error {
	if isSafetensors(head) {
		return nil
	}
	if bytes.HasPrefix(head, []byte("version https://git-lfs")) {
		return foreign("this is a Git LFS pointer, not the file; run git lfs pull")
	}
	// A text may begin as these kinds do, but has no byte that no text has.
	if isProse(head) {
		return nil
	}
	for i := range compressions {
		if c := &compressions[i]; bytes.HasPrefix(head, []byte(c.magic)) {
			return foreign("this is compressed (%s); unpack it first: %s", c.name,
				c.unpack(path))
		}
	}
	for i := range tables {
		if t := &tables[i]; t.is(head) {
			return foreign("this is %s%s", t.name, t.remedy(path, form))
		}
	}
	for i := range archives {
		if a := &archives[i]; a.is(head) {
			return foreign("this is an archive (%s); unpack it first: %s %s", a.name, a.command,
				plain.Word(path))
		}
	}
	return nil
}

// foreignProse says the same of a text, and of other encodings than UTF-8.
func foreignProse(path string, head []byte, form Form) error {
	if err := Foreign(path, head, form); err != nil {
		return err
	}
	return encoding(head)
}

// ForeignText says the same of a text that no web page is.
func ForeignText(path string, head []byte, form Form) error {
	err := foreignProse(path, head, form)
	if err == nil && isPage(head) {
		err = foreign("this is a web page; " + pageRemedy)
	}
	return err
}

func foreign(format string, args ...any) error {
	return &refused{refusal.Input(format, args...), ErrKind}
}

// encoding refuses the marks of UTF-16 and UTF-32.
func encoding(head []byte) error {
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) ||
		bytes.HasPrefix(head, []byte{0, 0, 0xfe, 0xff}) {
		return foreign("this is UTF-16 or UTF-32, as PowerShell redirects; save it as UTF-8 " +
			"(iconv -f UTF-16 -t UTF-8)")
	}
	return nil
}

// isSafetensors reports a file that begins with the length of its header, whose bytes may be any,
// and the header.
func isSafetensors(head []byte) bool {
	const longest = 1 << 40 // no header is
	return len(head) > 8 && head[8] == '{' && binary.LittleEndian.Uint64(head) < longest
}

// isProse reports the start of a text: UTF-8 without control characters other than white space.
func isProse(head []byte) bool {
	for len(head) > 0 {
		r, size := utf8.DecodeRune(head)
		switch {
		case !utf8.FullRune(head):
			return true // the head ends within a character
		case r == utf8.RuneError && size == 1, unicode.IsControl(r) && !unicode.IsSpace(r):
			return false
		}
		head = head[size:]
	}
	return true
}

// isPage reports the start of a web page.
func isPage(head []byte) bool {
	start := bytes.ToLower(bytes.TrimSpace(TrimMark(head)))
	return bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start,
		[]byte("<html"))
}

// compression is a kind of compressed file.
type compression struct {
	name, magic string
	command     string   // prints what is inside
	suffixes    []string // of names
}

var compressions = []compression{
	{"gzip", "\x1f\x8b", "gzip -dc", []string{".gz"}},
	{"zstd", "\x28\xb5\x2f\xfd", "zstd -dc", []string{".zst", ".zstd"}},
	// a frame to skip, which pzstd writes first
	{"zstd", "\x50\x2a\x4d\x18", "zstd -dc", []string{".zst", ".zstd"}},
	{"xz", "\xfd7zXZ\x00", "xz -dc", []string{".xz"}},
	{"bzip2", "BZh", "bzip2 -dc", []string{".bz2"}},
	{"LZ4", "\x04\x22\x4d\x18", "lz4 -dc", []string{".lz4"}},
	{"LZ4", "\x02\x21\x4c\x18", "lz4 -dc", []string{".lz4"}},
	{"lzip", "LZIP\x01", "lzip -dc", []string{".lz"}},
	{"lzma", "\x5d\x00\x00", "xz --format=lzma -dc", []string{".lzma"}},
	{"LZO", "\x89LZO\x00\r\n\x1a\n", "lzop -dc", []string{".lzo"}},
	{"compress", "\x1f\x9d", "uncompress -c", []string{".Z"}},
	{"snappy", "\xff\x06\x00\x00sNaPpY", "snzip -dc", []string{".sz", ".snappy"}},
}

// unpack is the command that unpacks a file beside itself.
func (c *compression) unpack(path string) string {
	dir, base := filepath.Split(path)
	to := "unpacked-" + base
	for _, suffix := range c.suffixes {
		if rest, ok := strings.CutSuffix(base, suffix); ok && rest != "" {
			to = rest
		}
	}
	return c.command + " " + plain.Word(path) + " > " + plain.Word(dir+to)
}

// kind is a file with a magic at an offset and, where that does not tell, another text behind it.
type kind struct {
	name  string
	at    int
	magic string
	also  string
}

func (k *kind) is(head []byte) bool {
	return len(head) >= k.at && bytes.HasPrefix(head[k.at:], []byte(k.magic)) &&
		bytes.Contains(head, []byte(k.also))
}

// archives are folders in one file.
var archives = []struct {
	kind
	command string
}{
	{kind{name: "tar", at: 257, magic: "ustar"}, "tar -xf"},
	{kind{name: "zip", magic: "PK\x03\x04"}, "unzip"},
	{kind{name: "zip", magic: "PK\x05\x06"}, "unzip"},
	{kind{name: "7z", magic: "7z\xbc\xaf\x27\x1c"}, "7z x"},
	{kind{name: "rar", magic: "Rar!\x1a\x07"}, "unrar x"},
}

// table is a kind of file that holds rows.
type table struct {
	kind
	duckdb bool   // DuckDB reads it by its name
	says   string // another remedy
}

var tables = []table{
	{kind: kind{name: "a Parquet file", magic: "PAR1"}, duckdb: true},
	{kind: kind{name: "an encrypted Parquet file", magic: "PARE"}},
	{kind: kind{name: "an Arrow file", magic: "ARROW1\x00\x00"}},
	{kind: kind{name: "a Feather file of version 1", magic: "FEA1"}},
	{kind: kind{name: "an ORC file", magic: "ORC"}},
	{kind: kind{name: "an Avro file", magic: "Obj\x01"}},
	{kind: kind{name: "an SQLite database", magic: "SQLite format 3\x00"}},
	{kind: kind{name: "a DuckDB database", at: 8, magic: "DUCK"}},
	{kind: kind{name: "an HDF5 file", magic: "\x89HDF\r\n\x1a\n"}},
	{kind: kind{name: "a NumPy array", magic: "\x93NUMPY"}},
	{kind: kind{name: "an Excel workbook", magic: "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"},
		says: "save the sheet as CSV"},
	{kind: kind{name: "an Excel workbook", magic: "PK\x03\x04", also: "[Content_Types].xml"},
		says: "save the sheet as CSV"},
	{kind: kind{name: "a PDF", magic: "%PDF-"}, says: "save its text as UTF-8"},
}

// remedy says how to make a file of a form of the table; nothing where only its program knows.
func (t *table) remedy(path string, form Form) string {
	dir, base := filepath.Split(path)
	stem := dir + strings.TrimSuffix(base, filepath.Ext(base))
	switch {
	case t.says != "":
		return "; " + t.says
	case t.duckdb && form == Rows:
		return "; write it as CSV: duckdb -c " + plain.Word("COPY (FROM read_parquet("+
			sqlText(path)+")) TO "+sqlText(stem+".csv")+" (HEADER)")
	case t.duckdb && form == Arrow:
		const script = "import sys, pyarrow.feather as f, pyarrow.parquet as p; " +
			"f.write_feather(p.read_table(sys.argv[1]), sys.argv[2], 'uncompressed')"
		to := dir + "arrow-" + base
		return "; write it as an Arrow file: python3 -c " + plain.Word(script) + " " +
			plain.Word(path) + " " + plain.Word(to)
	case form == Rows:
		return "; write its rows as CSV"
	case form == Arrow:
		return "; write it as an Arrow file (Feather version 2)"
	}
	return ""
}

// sqlText is a text of SQL.
func sqlText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
