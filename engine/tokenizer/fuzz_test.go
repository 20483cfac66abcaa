package tokenizer

import (
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
	"unicode/utf8"
)

// Loading may allocate this much: a token takes a few words in the tables for every byte or two that it takes in the
// shortest file that has it.
const (
	allocPerByte = 400
	allocFixed   = 4 << 20
)

// allocated returns the bytes that have been allocated on the heap so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// checkLoaded checks what a hostile file gave: little memory, and a tokenizer that works and can be stored.
func checkLoaded(t *testing.T, size int, loadIt func() (*Tokenizer, error)) {
	t.Helper()
	before := allocated()
	tok, err := loadIt()
	if used := allocated() - before; used > uint64(size)*allocPerByte+allocFixed {
		t.Errorf("%d bytes allocated for a file of %d", used, size)
	}
	if err != nil {
		return
	}
	doc := marshal(t, tok)
	again, err := Parse(doc)
	if err != nil {
		t.Fatalf("read back: %v", err)
	}
	if again.SHA256() != tok.SHA256() {
		t.Error("the document changes when it is read and written")
	}
	const text = " a <s>b水\xff  12''s\n\n x</s>"
	ids := tok.Encode(text)
	checkStream(t, tok, ids)
	if got, want := again.Decode(again.Encode(text)), tok.Decode(ids); got != want {
		t.Errorf("%q, and read back %q", want, got)
	}
}

// FuzzTokenizerJSON checks that no tokenizer.json makes Load panic or take memory out of proportion.
func FuzzTokenizerJSON(f *testing.F) {
	for _, name := range families(f) {
		if data, err := os.ReadFile(filepath.Join(familiesDir, name, jsonForm)); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte(`{"decoder":{"type":"Fuse"},"model":{"type":"Unigram","unk_id":0,"vocab":[["a",-1],["b",-2]]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkLoaded(t, len(data), func() (*Tokenizer, error) {
			set, src := newSettings(), source{name: "fuzz"}
			set.form = jsonForm
			if err := readTokenizerJSON(&src, set, data); err != nil {
				return nil, err
			}
			if err := set.apply(&src); err != nil {
				return nil, err
			}
			return build(src)
		})
	})
}

// FuzzSentencePiece does the same for tokenizer.model.
func FuzzSentencePiece(f *testing.F) {
	for _, name := range families(f) {
		if data, err := os.ReadFile(filepath.Join(familiesDir, name, modelFile)); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte(smallModel()))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkLoaded(t, len(data), func() (*Tokenizer, error) {
			set, src := newSettings(), source{name: "fuzz"}
			set.form = modelFile
			if err := set.readModel(&src, data); err != nil {
				return nil, err
			}
			if err := set.apply(&src); err != nil {
				return nil, err
			}
			return build(src)
		})
	})
}

// lossless are the families whose Decode is the inverse of EncodePlain, but for the texts that spoil refuses.
func lossless(t testing.TB) map[string]*Tokenizer {
	t.Helper()
	out := make(map[string]*Tokenizer)
	for _, name := range []string{"llama3", "qwen2", "falcon", "phi", "digits", "llama2", "sp_llama"} {
		out[name] = load(t, filepath.Join(familiesDir, name))
	}
	return out
}

// spoil reports whether a text has what SentencePiece's spelling cannot tell apart: its own mark, or a special token,
// after which comes one more blank.
func spoil(tok *Tokenizer, text string) bool {
	if tok.spec.byteLevel() {
		return false
	}
	_, found := tok.cuts[0].find(text, 0, 0)
	return found || strings.Contains(text, spaceMark)
}

func FuzzEncodeRoundTrip(f *testing.F) {
	toks := lossless(f)
	for _, text := range familyTexts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, tok := range toks {
			ids := tok.EncodePlain(text)
			got := tok.Decode(ids)
			if utf8.ValidString(text) && !spoil(tok, text) && got != text {
				t.Errorf("%s: %q came back as %q", name, text, got)
			}
			checkStream(t, tok, ids)
		}
	})
}

// TestLongRuns encodes what could take time that grows with the square of its length: with the half of it, this test
// would not end.
func TestLongRuns(t *testing.T) {
	const size = 1 << 14
	for _, name := range families(t) {
		tok := load(t, filepath.Join(familiesDir, name))
		for _, unit := range []string{"a", " ", "\n", " \n", "水", "1", "<", "!", "\u00a0", "cat", "\t\t", "▁", "é\xff"} {
			text := strings.Repeat(unit, size/len(unit))
			if ids := tok.EncodePlain(text); len(ids) > 4*size { // one token per byte, at most, and blanks
				t.Errorf("%s: %q gave %d ids", name, unit, len(ids))
			}
		}
	}
}
