package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/windrow-sim/windrow/internal/alloctest"
)

// Loading a file of n bytes may allocate this much in all, the n bytes of the file among them.
const (
	allocPerByte      = 4       // tokenizer.json
	allocPerByteModel = 8       // tokenizer.model, whose shortest entry has six bytes
	allocFixed        = 1 << 18 // buffers of the reader and writer, components of the pipeline
)

// checkLoaded checks the result of a hostile file: little memory, and a tokenizer that works and
// can be stored.
func checkLoaded(t *testing.T, size, perByte int, loadIt func() (*Tokenizer, error)) {
	t.Helper()
	var tok *Tokenizer
	var err error
	if used := alloctest.Bytes(func() { tok, err = loadIt() }) +
		uint64(size); used > uint64(size*perByte+allocFixed) {
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

// FuzzTokenizerJSON checks that no tokenizer.json makes Load panic or take memory out of
// proportion.
func FuzzTokenizerJSON(f *testing.F) {
	for _, name := range families(f) {
		if data, err := os.ReadFile(filepath.Join(familiesDir, name, jsonForm)); err == nil {
			f.Add(data)
		}
	}
	f.Add(
		[]byte(
			`{"decoder":{"type":"Fuse"},"model":{"type":"Unigram","unk_id":0,"vocab":[["a",-1],["b",-2]]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkLoaded(t, len(data), allocPerByte, func() (*Tokenizer, error) {
			return loadJSON(data)
		})
	})
}

// loadJSON is Load of a folder with nothing but tokenizer.json, without the file.
func loadJSON(data []byte) (*Tokenizer, error) {
	set, src := newSettings(), source{name: "test"}
	set.form = jsonForm
	if err := readTokenizerJSON(&src, set, data); err != nil {
		return nil, err
	}
	if err := set.apply(&src); err != nil {
		return nil, err
	}
	return build(src)
}

// TestLoadingTakesMemoryInProportion loads files that hold as many tokens, merges, scores and added
// tokens in their bytes as JSON can.
func TestLoadingTakesMemoryInProportion(t *testing.T) {
	const n = 1 << 17
	word := func(i int) string { return strconv.FormatInt(int64(i), 36) }
	list := func(n int, element func(i int) string) string {
		var out strings.Builder
		for i := range n {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(element(i))
		}
		return out.String()
	}
	bpe := func(vocab, merges, rest string) string {
		return `{"decoder":{"type":"Fuse"},"model":{"type":"BPE","byte_fallback":false,"unk_token":"0","vocab":{"0":0,` + vocab + `},"merges":[` + merges + `]}` + rest + `}`
	}
	vocab := list(n-1, func(i int) string { return fmt.Sprintf(`"%s":%d`, word(i+1), i+1) })
	reversed := list(n-1, func(i int) string { return fmt.Sprintf(`"%s":%d`, word(i+1), n-1-i) })
	splits := func(format string) string { // every way to make a word of two or three
		var all []string
		for i := 36; i < n; i++ {
			w := word(i)
			for cut := 1; cut < len(w); cut++ {
				if w[cut] != '0' || cut == len(w)-1 {
					all = append(all, fmt.Sprintf(format, w[:cut], w[cut:]))
				}
			}
		}
		return strings.Join(all, ",")
	}
	extra := list(n, func(i int) string {
		return fmt.Sprintf(`{"id":%d,"content":"%s"}`, i,
			word(i))
	})
	outside := list(n, func(i int) string {
		return fmt.Sprintf(`{"id":%d,"content":"+%s"}`, n+i,
			word(i))
	})
	table := binary.LittleEndian.AppendUint32(nil, 8*n)
	table = append(append(table, make([]byte, 8*n)...), "a\x00"...)
	longer := `{"type":"Replace","pattern":{"String":"a"},"content":"` + strings.Repeat("a",
		maxStep) + `"}`
	for name, c := range map[string]struct{ doc, refusal string }{
		"vocabulary": {bpe(vocab, `"1 0"`, ""), ""},
		"order":      {bpe(reversed, `"1 0"`, ""), ""},
		"merges":     {bpe(vocab, splits(`"%s %s"`), ""), ""},
		"pairs":      {bpe(vocab, splits(`["%s","%s"]`), ""), ""},
		"added": {bpe(`"00":`+strconv.Itoa(n), `"0 0"`, `,"added_tokens":[`+extra+`]`),
			""},
		"added twice":   {bpe(vocab, `"1 0"`, `,"added_tokens":[`+extra+`]`), ""},
		"added outside": {bpe(vocab, `"1 0"`, `,"added_tokens":[`+outside+`]`), ""},
		"added mark": {bpe(vocab, `"1 0"`,
			`,"normalizer":{"type":"Prepend","prepend":"▁"},"added_tokens":[`+outside+`]`), ""},
		"order, outside": {bpe(reversed, `"1 0"`, `,"added_tokens":[`+outside+`]`), ""},
		"scores": {
			`{"decoder":{"type":"Fuse"},"model":{"type":"Unigram","unk_id":0,"vocab":[` + list(n,
				func(i int) string { return fmt.Sprintf(`["%s",%d]`, word(i), i%10) }) + `]}}`, ""},
		"escapes": {bpe(`"00":1,`+list(n-2, func(i int) string {
			return fmt.Sprintf(`"\u%04x\u%04x":%d`, 0x100+i%0x400, 0x100+i/0x400, i+2)
		}), `"0 0"`, ""), ""},
		"one token": {bpe(`"00":1,"`+strings.Repeat("ab ", n)+`":2`, `"0 0"`, ""), ""},
		"components": {`{"normalizer":{"type":"Sequence","normalizers":[` + list(n,
			func(int) string { return `{"type":"Prepend","prepend":"a"}` }) + `]}}`,
			"normalizers with more than 32"},
		"table": {bpe(`"1":1,"10":2`, `"1 0"`, `,"normalizer":{"type":"Precompiled",`+
			`"precompiled_charsmap":"`+base64.StdEncoding.EncodeToString(table)+`"}`), ""},
		"settings": {`{"normalizer":{` + list(n, func(i int) string {
			return `"` + word(i) +
				`":0`
		}) + `}}`, "normalizer with more than 256"},
		"growth": {bpe(vocab, `"1 0"`,
			`,"normalizer":{"type":"Sequence","normalizers":[`+list(4, func(int) string {
				return longer
			})+`]}`), "times as long"},
		"template": {`{"post_processor":{"type":"TemplateProcessing","single":[` + list(n,
			func(int) string { return `{"Sequence":{"id":"A"}}` }) + `]}}`,
			"single with more than 32"},
	} {
		t.Run(name, func(t *testing.T) {
			data := []byte(c.doc)
			alloctest.InProportion(t, len(data), allocPerByte, len(data), c.refusal, func() error {
				_, err := loadJSON(data)
				return err
			})
		})
	}
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
		checkLoaded(t, len(data), allocPerByteModel, func() (*Tokenizer, error) {
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

// lossless are the families whose Decode is the inverse of EncodePlain, but for the texts that
// spoil refuses.
func lossless(t testing.TB) map[string]*Tokenizer {
	t.Helper()
	out := make(map[string]*Tokenizer)
	for _, name := range []string{"llama3", "qwen2", "falcon", "phi", "digits", "llama2",
		"sp_llama"} {
		out[name] = load(t, filepath.Join(familiesDir, name))
	}
	return out
}

// spoil reports whether a text contains something that SentencePiece's spelling cannot distinguish:
// its own mark, or a special token, after which there is one more blank.
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

// TestLongRuns encodes long runs of one text. With an algorithm of quadratic time the test would
// not end.
func TestLongRuns(t *testing.T) {
	const size = 1 << 14
	for _, name := range families(t) {
		tok := load(t, filepath.Join(familiesDir, name))
		for _, unit := range []string{"a", " ", "\n", " \n", "水", "1", "<", "!", "\u00a0", "cat",
			"\t\t", "▁", "é\xff"} {
			text := strings.Repeat(unit, size/len(unit))
			// one token per byte, at most, and blanks
			if ids := tok.EncodePlain(text); len(ids) > 4*size {
				t.Errorf("%s: %q gave %d ids", name, unit, len(ids))
			}
		}
	}
}
