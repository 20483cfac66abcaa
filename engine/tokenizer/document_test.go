package tokenizer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func marshal(t testing.TB, tok *Tokenizer) []byte {
	t.Helper()
	doc, err := tok.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDocumentRoundTrip(t *testing.T) {
	v := readVectors(t)
	for name, c := range map[string]struct {
		tok  *Tokenizer
		list []encoding
	}{"opt": {loadOPT(t), v.Opt}, "prefix": {loadPrefix(t), v.Prefix}} {
		t.Run(name, func(t *testing.T) {
			doc := marshal(t, c.tok)
			got, err := Parse(doc)
			if err != nil {
				t.Fatal(err)
			}
			checkVectors(t, got, c.list)
			if again := marshal(t, got); !bytes.Equal(again, doc) {
				t.Error("the document changes when it is read and written")
			}
			sum := sha256.Sum256(doc)
			if want := hex.EncodeToString(sum[:]); got.SHA256() != want || c.tok.SHA256() != want {
				t.Errorf("SHA256 is %s and %s, of the document %s", got.SHA256(), c.tok.SHA256(),
					want)
			}
			for id := range uint32(got.VocabSize()) {
				if got.Token(id) != c.tok.Token(id) || got.IsSpecial(id) != c.tok.IsSpecial(id) ||
					got.DecodeText([]uint32{id}) != c.tok.DecodeText([]uint32{id}) {
					t.Errorf("token %d differs", id)
				}
			}
		})
	}
}

// TestDocumentIsStable holds the form: a change of it changes the hash in every trace, so it needs
// a new version.
func TestDocumentIsStable(t *testing.T) {
	const begin = `{"format":"windrow byte-level bpe","version":1,"add_bos":true,"add_prefix_space":false,"bos":2,"eos":2,"pad":1,"control":[1,2],"added":[],"vocab":["<s>","<pad>","</s>","<unk>","!",`
	if doc := marshal(t, loadOPT(t)); !strings.HasPrefix(string(doc), begin) {
		t.Errorf("the document begins with %s", doc[:len(begin)])
	}
	doc := marshal(t, loadOPT(t))
	if bytes.Contains(doc, []byte("\n")) {
		t.Error("the document is not one line")
	}
}

// TestOverlapOfTwoPasses: where the order of the passes counts, the plain form has no place for it.
// A document in the plain form keeps its one pass.
func TestOverlapOfTwoPasses(t *testing.T) {
	change := replaced(t, configFile, `"1": {`,
		`"1000": {"content": "<x>", "special": true}, "1001": {"content": "a<x", "special": false}, "1": {`)
	tok := load(t, folder(t, change))
	if got, want := tok.EncodePlain("a<x>"), []uint32{tok.base['a'], 1000}; !slices.Equal(got,
		want) {
		t.Errorf("%v, want %v: <x> is cut out in the first pass", got, want)
	}
	if doc := marshal(t, tok); !bytes.Contains(doc, []byte(generalFormat)) {
		t.Errorf("the document begins with %.40s", doc)
	}
	old := strings.Replace(string(marshal(t, loadOPT(t))), `"added":[]`, `"added":[3]`, 1)
	old = strings.Replace(old, `"<unk>"`, `"a</"`, 1)
	tok, err := Parse([]byte(old))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tok.EncodePlain("a</s>"), []uint32{3, tok.base['s'],
		tok.base['>']}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v: the leftmost in one pass", got, want)
	}
	if string(marshal(t, tok)) != old {
		t.Error("the document changes when it is read and written")
	}
}

func TestGeneralDocumentErrors(t *testing.T) {
	doc := string(marshal(t, load(t, familiesDir+"/sp_unigram")))
	merges := string(marshal(t, load(t, familiesDir+"/sp_llama")))
	for _, c := range []struct {
		name, doc, old, with string
		kind                 error
		want                 []string
	}{
		{"version", doc, `"version":1`, `"version":2`, ErrUnsupported, []string{"version is 2"}},
		{"field", doc, `"ties":[],`, ``, ErrFormat, []string{"fields"}},
		{"unknown in pipeline", doc, `"fuse_unk":true`, `"fuse":true`, ErrFormat,
			[]string{"pipeline", "fuse"}},
		{"step", doc, `"type":"sentencepiece"`, `"type":"nmt"`, ErrUnsupported,
			[]string{"normalizer", "nmt"}},
		{"scheme", doc, `"prefix":"always"`, `"prefix":"often"`, ErrUnsupported, []string{"often"}},
		{"model", merges, `"type":"bpe"`, `"type":"wordpiece"`, ErrUnsupported,
			[]string{"wordpiece"}},
		{"scores", doc, `"scores":[null,`, `"scores":[`, ErrFormat, []string{"scores"}},
		{"decoder", doc, `"bytes":"character"`, `"bytes":"bit"`, ErrUnsupported, []string{"bit"}},
		{"marks", doc, `"marks":"one"`, `"marks":"two"`, ErrUnsupported, []string{"two"}},
		{"special outside", doc, `"specials":[{"id":0`, `"specials":[{"id":7000`, ErrFormat,
			[]string{"specials[0]", "7000"}},
		{"order of specials", doc, `"specials":[{"id":0`, `"specials":[{"id":1`, ErrFormat,
			[]string{"specials[1]"}},
		{"half a merge", merges, `"merges":[`, `"merges":[5,`, ErrFormat, []string{"no pairs"}},
		{"merge outside", merges, `"merges":[`, `"merges":[5,70000,`, ErrFormat,
			[]string{"merges[0]", "70000"}},
		{"tie", merges, `"ties":[`, `"ties":[0,`, ErrFormat, []string{"ties[0]"}},
		{"template", doc, `"prefix":[1]`, `"prefix":[7000]`, ErrFormat,
			[]string{"7000 is outside"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := strings.Replace(c.doc, c.old, c.with, 1)
			if bad == c.doc {
				t.Fatalf("the document does not contain %q", c.old)
			}
			_, err := Parse([]byte(bad))
			checkError(t, err, c.kind, c.want)
		})
	}
}

func TestHashTellsTokenizersApart(t *testing.T) {
	hashes := make(map[string]string)
	for name, tok := range map[string]*Tokenizer{
		"opt":    loadOPT(t),
		"prefix": loadPrefix(t),
		"no bos": load(t, folder(t, replaced(t, configFile, `"add_bos_token": true`,
			`"add_bos_token": false`))),
		"swapped":    load(t, folder(t, replaced(t, mergesFile, "h e\n", ""))),
		"no special": load(t, folder(t, map[string]string{configFile: "", specialFile: ""})),
	} {
		if other, ok := hashes[tok.SHA256()]; ok {
			t.Errorf("%s and %s have one hash", name, other)
		}
		hashes[tok.SHA256()] = name
	}
}

func TestParseErrors(t *testing.T) {
	doc := string(marshal(t, loadOPT(t)))
	for _, c := range []struct {
		name, old, with string
		kind            error
		want            []string
	}{
		{"format", "windrow byte-level bpe", "something else", ErrUnsupported, []string{"format"}},
		{"version", `"version":1`, `"version":2`, ErrUnsupported, []string{"version is 2"}},
		{"field missing", `"pad":1,`, ``, ErrFormat, []string{"10 of 11 fields"}},
		{"unknown field", `"pad":1,`, `"Pad":1,`, ErrFormat, []string{`unknown field "Pad"`}},
		{"duplicate field", `"pad":1,`, `"pad":1,"pad":1,`, ErrFormat, []string{"twice"}},
		{"duplicate token", `"!","\""`, `"!","!"`, ErrFormat, []string{"vocab[5]", "4 and 5"}},
		{"token no string", `"!",`, `4,`, ErrFormat, []string{"vocab[4]"}},
		{"bos outside", `"bos":2`, `"bos":1000`, ErrFormat, []string{"1000 is outside"}},
		{"special outside", `"control":[1,2]`, `"control":[1,2000]`, ErrFormat,
			[]string{"control[1]", "2000"}},
		{"special twice", `"control":[1,2]`, `"control":[1,1]`, ErrFormat, []string{"control[1]",
			"twice"}},
		{"no bos", `"bos":2`, `"bos":null`, ErrFormat, []string{"bos_token"}},
		{"merge", `"merges":["`, `"merges":["zz zz","`, ErrFormat, []string{"merges[0]", `"zz"`}},
		{"trailing", `{"format"`, `{} {"format"`, ErrFormat, []string{"after the end"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := strings.Replace(doc, c.old, c.with, 1)
			if bad == doc {
				t.Fatalf("the document does not contain %q", c.old)
			}
			_, err := Parse([]byte(bad))
			checkError(t, err, c.kind, c.want)
		})
	}
	for _, n := range []int{0, 1, 100, len(doc) - 1} {
		if _, err := Parse([]byte(doc[:n])); !errors.Is(err, ErrFormat) {
			t.Errorf("cut at %d bytes: error %v", n, err)
		}
	}
}

// FuzzParse checks that no document makes Parse panic, and that an accepted document is written and
// read back unchanged.
func FuzzParse(f *testing.F) {
	f.Add(marshal(f, loadOPT(f)))
	for _, name := range families(f) {
		f.Add(marshal(f, load(f, filepath.Join(familiesDir, name))))
	}
	f.Add([]byte(`{"format":"windrow byte-level bpe","version":1,"vocab":[],"merges":[["a","b"]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Parse(data)
		if err != nil {
			return
		}
		again, err := Parse(marshal(t, tok))
		if err != nil || again.SHA256() != tok.SHA256() {
			t.Errorf("read back: %v", err)
		}
	})
}
