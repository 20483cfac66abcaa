package input

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// Every kind is named by its first bytes, with the command that helps.
func TestField_N38_Foreign(t *testing.T) {
	const garbage = "\x00\x80\xfe"
	for _, c := range []struct {
		path, head string
		form       Form
		says       []string
	}{
		{"a.csv.gz", "\x1f\x8b\x08\x00", Rows, []string{"gzip", "gzip -dc a.csv.gz > a.csv"}},
		{"d/a.zst", "\x28\xb5\x2f\xfd", Rows, []string{"zstd", "zstd -dc d/a.zst > d/a"}},
		{"a.trace.arrow", "\x28\xb5\x2f\xfd", Arrow,
			[]string{"zstd -dc a.trace.arrow > unpacked-a.trace.arrow"}},
		{"p", "\x50\x2a\x4d\x18", Rows, []string{"zstd"}},
		{"a b.xz", "\xfd7zXZ\x00", Rows, []string{"xz -dc 'a b.xz' > 'a b'"}},
		{"a.bz2", "BZh91AY&SY", Rows, []string{"bzip2 -dc a.bz2 > a"}},
		{"a.lz4", "\x04\x22\x4d\x18", Rows, []string{"lz4 -dc"}},
		{"a.lz4", "\x02\x21\x4c\x18", Rows, []string{"lz4 -dc"}},
		{"a", "LZIP\x01", Rows, []string{"lzip -dc"}},
		{"a.lzma", "\x5d\x00\x00\x80\x00", Rows, []string{"--format=lzma"}},
		{"a", "\x89LZO\x00\r\n\x1a\n", Rows, []string{"lzop"}},
		{"a.Z", "\x1f\x9d\x90", Rows, []string{"uncompress -c a.Z > a"}},
		{"a", "\xff\x06\x00\x00sNaPpY", Rows, []string{"snappy"}},
		{"a.zip", "PK\x03\x04", Rows, []string{"zip", "unzip a.zip"}},
		{"a.zip", "PK\x05\x06", Rows, []string{"unzip"}},
		{"a.7z", "7z\xbc\xaf\x27\x1c", Rows, []string{"7z x"}},
		{"a.rar", "Rar!\x1a\x07", Rows, []string{"unrar"}},
		{"a.tar", "a.csv" + strings.Repeat("\x00", 252) + "ustar", Rows, []string{"tar -xf"}},
		{"it's.parquet", "PAR1\x15\x04", Rows, []string{"Parquet", `duckdb -c "COPY`, "it''s.csv"}},
		{"a.parquet", "PAR1\x15\x04", Rows, []string{"read_parquet('", "HEADER"}},
		{"a.parquet", "PAR1\x15\x04", Arrow, []string{"write_feather", "arrow-a.parquet"}},
		{"a", "PARE", Rows, []string{"encrypted Parquet"}},
		{"a", "ARROW1\x00\x00", Rows, []string{"Arrow file", "CSV"}},
		{"a", "FEA1", Arrow, []string{"Feather"}},
		{"a", "ORC", Rows, []string{"ORC"}},
		{"a", "Obj\x01", Rows, []string{"Avro"}},
		{"a", "SQLite format 3\x00", Rows, []string{"SQLite"}},
		{"a", "12345678DUCK", Rows, []string{"DuckDB"}},
		{"a", "\x89HDF\r\n\x1a\n", Rows, []string{"HDF5"}},
		{"a", "\x93NUMPY", Rows, []string{"NumPy"}},
		{"a.xls", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Rows, []string{"Excel", "CSV"}},
		{"a.xlsx", "PK\x03\x04\x14\x00[Content_Types].xml", Rows, []string{"Excel", "CSV"}},
		{"a.pdf", "%PDF-1.7", Rows, []string{"PDF"}},
		{"a", "version https://git-lfs.github.com/spec/v1\n", Rows, []string{"git lfs pull"}},
		{"a", "\xff\xfea\x00", Rows, []string{"UTF-16"}},
		{"a", "\xfe\xff\x00a", Rows, []string{"UTF-16"}},
		{"a", " \n<!doctype HTML>", Rows, []string{"web page"}},
		{"a", "<html lang=en>", Rows, []string{"web page"}},
	} {
		err := ForeignText(c.path, []byte(c.head+garbage), c.form)
		if !errors.Is(err, ErrKind) || !errors.Is(err, refusal.ErrInput) {
			t.Errorf("%q: %v", c.head, err)
			continue
		}
		for _, says := range c.says {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%q: %q does not say %q", c.head, err, says)
			}
		}
	}
}

// What only looks like one of them is not: texts, and a header whose length has such bytes.
func TestNotForeign(t *testing.T) {
	for _, head := range []string{"", "a", "PAR1 of 2", "ORC, n.: a monster", "BZh is a name",
		"%PDF- files", "Obj\r\n", "LZIP", "Rar!", `{"a": 1}`, "TIMESTAMP,ContextTokens\r\n",
		"\x1f\x8b\x08\x00\x00\x00\x00\x00{\"a\"", "PK\x03\x04\x00\x00\x00\x00{\"__metadata__\"",
		"\xff\xfe\x00\x00\x00\x00\x00\x00{\"a\":", "version 2", "\xef\xbb\xbfa", "GGUF\x03\x00",
		strings.Repeat("a", HeadBytes-1) + "\xe2", "\x00\x80\xfe"} {
		if err := Foreign("x", []byte(head), Rows); err != nil {
			t.Errorf("%q: %v", head, err)
		}
	}
}

// The mark is no part of a text, whoever reads it. A text may be a web page, a document may not.
func TestField_N63_Mark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	limit := Limit{Most: units.KiB}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{"\xef\xbb\xbfOnce": "Once", "Once": "Once",
		"\xef\xbb\xbf": "", "\xef\xbb": "\xef\xbb", "a\xef\xbb\xbf": "a\xef\xbb\xbf"} {
		put(text)
		for name, read := range map[string]func() ([]byte, error){
			"text":     func() ([]byte, error) { return ReadText(t.Context(), path, limit) },
			"document": func() ([]byte, error) { return ReadDocument(t.Context(), path, limit) },
		} {
			if got, err := read(); string(got) != want || err != nil {
				t.Errorf("%s %q: %q, %v", name, text, got, err)
			}
		}
	}
	put("<!DOCTYPE html>")
	if _, err := ReadText(t.Context(), path, limit); err != nil {
		t.Error(err)
	}
	if _, err := ReadDocument(t.Context(), path, limit); !errors.Is(err, ErrKind) ||
		!strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	put("\x28\xb5\x2f\xfd...")
	if _, err := ReadText(t.Context(), path, limit); !errors.Is(err, ErrKind) ||
		!strings.HasPrefix(err.Error(), path+": this is compressed (zstd)") {
		t.Error(err)
	}
}
