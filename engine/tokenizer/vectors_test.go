package tokenizer

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// vectors is testdata/vectors.json, made by tools/tokenizer_vectors.
type vectors struct {
	Reference string
	Opt       []encoding
	Prefix    []encoding
	Decode    []encoding
	Newer     []struct {
		Text  string
		Words []string
	}
	Classes map[string][]rune // first, last, first, last, …
}

type encoding struct {
	Text        string
	IDs         []uint32
	SlowDiffers bool `json:"slow_differs"`
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// folder makes a copy of testdata/opt in which the given files are replaced, added or, where the
// content is "", left out.
func folder(t testing.TB, change map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/opt")); err != nil {
		t.Fatal(err)
	}
	for name, content := range change {
		path := filepath.Join(dir, name)
		if content == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// read returns a file of testdata.
func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func load(t testing.TB, dir string) *Tokenizer {
	t.Helper()
	tok, err := Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func loadOPT(t testing.TB) *Tokenizer { return load(t, "testdata/opt") }

func loadPrefix(t testing.TB) *Tokenizer {
	return load(t, folder(t, map[string]string{
		configFile:  read(t, "prefix/"+configFile),
		specialFile: read(t, "prefix/"+specialFile),
		addedFile:   read(t, "prefix/"+addedFile),
	}))
}

// checkVectors compares all ids, twice, so that the second time comes from the cache.
func checkVectors(t *testing.T, tok *Tokenizer, list []encoding) {
	t.Helper()
	for range 2 {
		for _, v := range list {
			if got := tok.Encode(v.Text); !slices.Equal(got, v.IDs) {
				t.Errorf("Encode(%q) = %v, reference %v", v.Text, got, v.IDs)
			}
		}
	}
}

func TestVectorsOPT(t *testing.T) {
	v := readVectors(t)
	if len(v.Opt) < 300 {
		t.Fatalf("only %d vectors", len(v.Opt))
	}
	tok := loadOPT(t)
	checkVectors(t, tok, v.Opt)
	for _, e := range v.Opt {
		if e.SlowDiffers {
			t.Errorf("%q: the slow reference differs, which doc.go says it does not without "+
				"add_prefix_space", e.Text)
		}
		if got := tok.Decode(tok.EncodePlain(e.Text)); got != e.Text {
			t.Errorf("%q came back as %q", e.Text, got)
		}
		if got := tok.Decode(e.IDs); got != "</s>"+e.Text {
			t.Errorf("Decode(%v) = %q", e.IDs, got)
		}
	}
}

func TestVectorsPrefixSpace(t *testing.T) {
	tok := loadPrefix(t)
	v := readVectors(t).Prefix
	checkVectors(t, tok, v)
	if !slices.ContainsFunc(v, func(e encoding) bool { return e.SlowDiffers }) {
		t.Error("the slow reference no longer differs anywhere: doc.go says that it does with " +
			"add_prefix_space")
	}
	if id, ok := tok.Pad(); ok {
		t.Errorf("pad_token is null, but Pad is %d", id)
	}
	if n := tok.VocabSize(); n != 1001 || tok.Token(1000) != "<|cut here|>" ||
		!tok.IsSpecial(1000) {
		t.Errorf("added_tokens.json: size %d, token %q", n, tok.Token(1000))
	}
}

func TestVectorsDecode(t *testing.T) {
	tok := loadOPT(t)
	for _, v := range readVectors(t).Decode {
		if got := tok.Decode(v.IDs); got != v.Text {
			t.Errorf("Decode(%v) = %q, reference %q", v.IDs, got, v.Text)
		}
	}
}

// TestClasses compares the class of every code point with the reference's. Go's tables may be
// newer, never different: a letter or number more is the deviation that doc.go lists.
func TestClasses(t *testing.T) {
	ref := make([]class, unicode.MaxRune+1)
	for name, c := range map[string]class{"letter": letter, "number": number, "space": space} {
		runs := readVectors(t).Classes[name]
		for i := 0; i < len(runs); i += 2 {
			for r := runs[i]; r <= runs[i+1]; r++ {
				ref[r] = c
			}
		}
	}
	newer := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if 0xD800 <= r && r < 0xE000 {
			continue
		}
		got, width := classify(string(r) + "x")
		if width != len(string(r)) {
			t.Fatalf("%U: width %d", r, width)
		}
		switch {
		case got == ref[r]:
		case ref[r] == other && (got == letter || got == number):
			newer++
		default:
			t.Errorf("%U has class %d, reference %d", r, got, ref[r])
		}
	}
	if unicode.Version == "15.0.0" && newer != 4388 {
		t.Errorf("%d code points are newer than the reference; doc.go says 4,388", newer)
	}
}

// TestNewerLettersDeviate holds a known gap: the day the tables agree, it fails and doc.go can lose
// an entry.
func TestNewerLettersDeviate(t *testing.T) {
	for _, v := range readVectors(t).Newer {
		if got := words(v.Text); slices.Equal(got, v.Words) {
			t.Errorf("%q is cut like the reference does: %q", v.Text, got)
		}
	}
}

// TestShippedModel reads the folder as transformers writes it.
func TestShippedModel(t *testing.T) {
	const dir = "../../examples/models/tales"
	if _, err := os.Stat(filepath.Join(dir, vocabFile)); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the model is not in this checkout")
	}
	tok := load(t, dir)
	if bos, ok := tok.BOS(); !ok || bos != 2 || !tok.AddsBOS() {
		t.Errorf("BOS is %d, %v, put first: %v", bos, ok, tok.AddsBOS())
	}
	for _, v := range readVectors(t).Opt {
		if got := tok.Decode(tok.EncodePlain(v.Text)); got != v.Text {
			t.Errorf("%q came back as %q", v.Text, got)
		}
	}
}

func TestRoles(t *testing.T) {
	tok := loadOPT(t)
	bos, okBOS := tok.BOS()
	eos, okEOS := tok.EOS()
	pad, okPad := tok.Pad()
	got := []any{bos, okBOS, eos, okEOS, pad, okPad, tok.AddsBOS(), tok.VocabSize(), tok.Token(2),
		tok.Token(1000), tok.IsSpecial(0), tok.IsSpecial(1)}
	want := []any{uint32(2), true, uint32(2), true, uint32(1), true, true, 1000, "</s>", "", false,
		true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bos, eos, pad, adds BOS, size, tokens, <s> and <pad> special (-want +got):\n%s",
			diff)
	}
	if s := tok.Token(tok.EncodePlain(" the")[0]); !strings.HasPrefix(s, "Ġ") {
		t.Errorf("Token gives %q: not the spelling of vocab.json", s)
	}
}
