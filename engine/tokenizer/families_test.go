package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const familiesDir = "testdata/families"

// familyVectors is vectors.json of one family, made by tools/tokenizer_vectors/families.py.
type familyVectors struct {
	Class  string
	IDs    [][]uint32 // by text of texts.json, with the tokens around it
	Plain  []string   // fast families: the text of the ids without that
	Decode []struct {
		IDs   []uint32
		Text  string
		Shown string
	}
}

// families returns the names of the folders.
func families(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(familiesDir, "*", "vectors.json"))
	if err != nil || len(list) < 15 {
		t.Fatalf("%d families, error %v", len(list), err)
	}
	for i, path := range list {
		list[i] = filepath.Base(filepath.Dir(path))
	}
	return list
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func familyTexts(t testing.TB) []string {
	t.Helper()
	var texts []string
	readJSON(t, filepath.Join(familiesDir, "texts.json"), &texts)
	if len(texts) < 300 {
		t.Fatalf("only %d texts", len(texts))
	}
	return texts
}

func readFamily(t testing.TB, name string) familyVectors {
	t.Helper()
	var v familyVectors
	readJSON(t, filepath.Join(familiesDir, name, "vectors.json"), &v)
	return v
}

// TestFamilies compares every family with its reference, and so the document that its tokenizer
// writes.
func TestFamilies(t *testing.T) {
	texts := familyTexts(t)
	for _, name := range families(t) {
		t.Run(name, func(t *testing.T) {
			v := readFamily(t, name)
			tok := load(t, filepath.Join(familiesDir, name))
			checkFamily(t, tok, v, texts)
			again, err := Parse(marshal(t, tok))
			if err != nil {
				t.Fatal(err)
			}
			if again.SHA256() != tok.SHA256() {
				t.Error("the document changes when it is read and written")
			}
			checkFamily(t, again, v, texts)
		})
	}
}

func checkFamily(t *testing.T, tok *Tokenizer, v familyVectors, texts []string) {
	t.Helper()
	if len(v.IDs) != len(texts) || len(v.Decode) < 100 {
		t.Fatalf("%d vectors for %d texts, %d to decode", len(v.IDs), len(texts), len(v.Decode))
	}
	for range 2 { // the second time from the cache
		for i, text := range texts {
			if got := tok.Encode(text); !slices.Equal(got, v.IDs[i]) {
				t.Errorf("Encode(%q) = %v, reference %v", text, got, v.IDs[i])
			}
		}
	}
	for i, text := range v.Plain {
		if got := tok.Decode(tok.EncodePlain(texts[i])); got != text {
			t.Errorf("%q came back as %q, reference %q", texts[i], got, text)
		}
	}
	for _, d := range v.Decode {
		if got := tok.Decode(d.IDs); got != d.Text {
			t.Errorf("Decode(%v) = %q, reference %q", d.IDs, got, d.Text)
		}
		if got := tok.DecodeText(d.IDs); got != d.Shown {
			t.Errorf("DecodeText(%v) = %q, reference %q", d.IDs, got, d.Shown)
		}
		checkStream(t, tok, d.IDs)
	}
}

// checkStream decodes token by token: whole characters, which together are the text.
func checkStream(t *testing.T, tok *Tokenizer, ids []uint32) {
	t.Helper()
	s := tok.NewStream()
	var out strings.Builder
	for range 2 { // Flush begins anew
		out.Reset()
		for _, id := range ids {
			piece := s.Next(id)
			if !utf8.ValidString(piece) {
				t.Errorf("Next(%d) = %q: half a character", id, piece)
			}
			out.WriteString(piece)
		}
		if got, want := out.String()+s.Flush(), tok.Decode(ids); got != want {
			t.Errorf("%v: stream %q, whole %q", ids, got, want)
		}
	}
}

// TestFamilyClasses compares three classes of characters with the reference's, for every code
// point. Its \w is of a later Unicode than Go's: that is a deviation that doc.go lists.
func TestFamilyClasses(t *testing.T) {
	var ref map[string][]rune
	readJSON(t, filepath.Join(familiesDir, "classes.json"), &ref)
	for name, is := range map[string]func(rune) bool{"digit": isDigit, "punctuation": isPunctuation,
		"word": isWord} {
		in := make([]bool, unicode.MaxRune+1)
		for i := 0; i < len(ref[name]); i += 2 {
			for r := ref[name][i]; r <= ref[name][i+1]; r++ {
				in[r] = true
			}
		}
		newer := 0
		for r := rune(1); r <= unicode.MaxRune; r++ {
			switch got := is(r); {
			case got == in[r] || 0xD800 <= r && r < 0xE000:
			case name == "word" && in[r] && !unicode.In(r, unicode.L, unicode.M, unicode.N,
				unicode.P, unicode.S, unicode.Z):
				newer++
			default:
				t.Errorf("%U: %s is %v, reference %v", r, name, got, in[r])
			}
		}
		if name == "word" && unicode.Version == "15.0.0" && newer != 5055 {
			t.Errorf("%d code points are newer than Go's tables; doc.go says 5,055", newer)
		}
	}
}
