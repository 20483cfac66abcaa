package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// changed loads a family's tokenizer.json with its parts replaced: "part" or "model.part", each by
// JSON or, where it is "", by nothing.
func changed(t testing.TB, family string, change map[string]string) (*Tokenizer, error) {
	t.Helper()
	dir := t.TempDir()
	from := filepath.Join(familiesDir, family)
	var doc map[string]json.RawMessage
	readJSON(t, filepath.Join(from, jsonForm), &doc)
	var model map[string]json.RawMessage
	if err := json.Unmarshal(doc["model"], &model); err != nil {
		t.Fatal(err)
	}
	for path, raw := range change {
		into, key := doc, path
		if rest, ok := strings.CutPrefix(path, "model."); ok {
			into, key = model, rest
		}
		if delete(into, key); raw != "" {
			into[key] = json.RawMessage(raw)
		}
	}
	data, err := json.Marshal(model)
	if err == nil {
		doc["model"] = data
		data, err = json.Marshal(doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, jsonForm, string(data))
	config, err := os.ReadFile(filepath.Join(from, configFile))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, configFile, string(config))
	return Load(t.Context(), dir)
}

func TestUnknownComponentsAreRefused(t *testing.T) {
	for _, c := range []struct {
		family, part, with string
		want               []string
	}{
		{"llama2", "normalizer", `{"type":"Nmt"}`, []string{"normalizer", "Nmt"}},
		{"llama2", "normalizer", `{"type":"Sequence","normalizers":[{"type":"Lowercase"}]}`,
			[]string{"normalizer", "Lowercase"}},
		{"llama2", "normalizer", `{"type":"Replace","pattern":{"Regex":" {3,}"},"content":"▁"}`,
			[]string{"normalizer", " {3,}"}},
		{"llama2", "normalizer", `{"type":"Prepend","prepend":""}`, []string{"normalizer",
			"empty"}},
		{"llama2", "normalizer", `{"type":"Prepend","prepend":"▁","novel":1}`,
			[]string{"normalizer", "novel"}},
		{"llama2", "normalizer", `{"type":"Sequence","normalizers":[` +
			strings.Repeat(`{"type":"Prepend","prepend":"▁"},`, 20) +
			`{"type":"Prepend","prepend":"▁"}]}`, []string{"more than 16 steps"}},
		{"llama2", "normalizer", strings.Repeat(`{"type":"Sequence","normalizers":[`, 9) +
			strings.Repeat(`]}`, 9), []string{"normalizer", "Sequences in each other"}},
		{"llama3", "pre_tokenizer", `{"type":"BertPreTokenizer"}`, []string{"pre_tokenizer",
			"BertPreTokenizer"}},
		{"llama3", "pre_tokenizer",
			`{"type":"Split","pattern":{"Regex":"\\w+(?!x)"},"behavior":"Isolated","invert":false}`,
			[]string{"Split", `\\w+(?!x)`}},
		{"llama3", "pre_tokenizer",
			`{"type":"Split","pattern":{"String":" "},"behavior":"Isolated","invert":false}`,
			[]string{"Split", `" "`}},
		{"llama3", "pre_tokenizer",
			`{"type":"Split","pattern":{"Regex":"[0-9][0-9][0-9]"},"behavior":"Removed","invert":false}`, []string{"behavior", "Removed"}},
		{"llama3", "pre_tokenizer",
			`{"type":"Split","pattern":{"Regex":"[0-9][0-9][0-9]"},"behavior":"Isolated","invert":true}`, []string{"invert"}},
		{"llama3", "pre_tokenizer",
			`{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"ByteLevel"}]}`,
			[]string{"ByteLevel after ByteLevel"}},
		{"llama3", "pre_tokenizer",
			`{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Metaspace"}]}`,
			[]string{"Metaspace after ByteLevel"}},
		{"llama3", "pre_tokenizer",
			`{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Split","pattern":{"Regex":"` + strings.ReplaceAll(patternLlama3, `\`, `\\`) + `"},"behavior":"Isolated","invert":false}]}`, []string{"Split", "no scanner"}},
		{"llama3", "pre_tokenizer", `{"type":"Punctuation","behavior":"MergedWithNext"}`,
			[]string{"behavior", "MergedWithNext"}},
		{"llama_first", "pre_tokenizer",
			`{"type":"Metaspace","replacement":"▁","prepend_scheme":"sometimes"}`,
			[]string{"prepend_scheme", "sometimes"}},
		{"llama_first", "pre_tokenizer", `{"type":"Metaspace","replacement":"ab"}`,
			[]string{"one character"}},
		{"llama2", "post_processor", `{"type":"RobertaProcessing"}`, []string{"post_processor",
			"RobertaProcessing"}},
		{"llama2", "post_processor",
			`{"type":"Sequence","processors":[{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}}]},{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}}]}]}`, []string{"two templates"}},
		{"llama2", "decoder", `null`, []string{"decoder", "null"}},
		{"llama2", "decoder", `{"type":"WordPiece"}`, []string{"decoder", "WordPiece"}},
		{"llama2", "decoder", `{"type":"Strip","content":" ","start":1,"stop":0}`, []string{"Strip",
			"after Fuse"}},
		{"llama2", "decoder",
			`{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"Replace","pattern":{"String":"▁"},"content":" "}]}`, []string{"Replace", "after"}},
		{"llama2", "decoder", `{"type":"ByteLevel"}`, []string{"ByteLevel and the other is not"}},
		{"llama2", "decoder", `{"type":"Replace","pattern":{"String":"▁"},"content":"much longer"}`,
			[]string{"decoder", "longer"}},
		{"llama2", "model.type", `"WordLevel"`, []string{"model", "WordLevel"}},
		{"llama2", "model.dropout", `0.1`, []string{"dropout", "0.1"}},
		{"llama2", "model.end_of_word_suffix", `"</w>"`, []string{"end_of_word_suffix"}},
		{"metaspace", "model.unk_token", `null`, []string{"would vanish"}},
		{"unigram_words", "model.byte_fallback", `true`, []string{"byte_fallback", "<0x00>"}},
		{"persimmon", "model.unk_id", `null`, []string{"without an unknown token"}},
	} {
		_, err := changed(t, c.family, map[string]string{c.part: c.with})
		t.Run(c.part+"/"+c.want[len(c.want)-1], func(t *testing.T) {
			checkError(t, err,
				ErrUnsupported, c.want)
		})
	}
}

func TestMalformedComponents(t *testing.T) {
	for _, c := range []struct {
		family, part, with string
		want               []string
	}{
		{"llama2", "normalizer", `{"prepend":"▁"}`, []string{"normalizer has no type"}},
		{"llama2", "normalizer", `{"type":1}`, []string{"type", "not a string"}},
		{"llama_first", "pre_tokenizer", `{"type":"Metaspace","add_prefix_space":false}`,
			[]string{"add_prefix_space is false", "always"}},
		{"llama_first", "pre_tokenizer", `{"type":"Metaspace","str_rep":"_"}`, []string{"str_rep"}},
		{"unigram_words", "post_processor",
			`{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<nowhere>"}},{"Sequence":{"id":"A"}}]}`, []string{"<nowhere>", "no token"}},
		{"unigram_words", "post_processor",
			`{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"ids":[70000]}}}`, []string{"70000", "outside"}},
		{"metaspace", "model.unk_token", `"<nowhere>"`, []string{"unk_token", "<nowhere>"}},
		{"persimmon", "model.unk_id", `70000`, []string{"70000", "outside"}},
		{"persimmon", "model.vocab", `[["a",0,1]]`, []string{"vocab[0]",
			"no token with its score"}},
		{"persimmon", "model.vocab", `[["a","b"]]`, []string{"not a score"}},
		{"persimmon", "model.vocab", `[["a",1e999]]`, []string{"not a score"}},
		{"persimmon", "model.vocab", `[]`, []string{"no vocabulary"}},
	} {
		_, err := changed(t, c.family, map[string]string{c.part: c.with})
		t.Run(c.part+"/"+c.want[0], func(t *testing.T) { checkError(t, err, ErrFormat, c.want) })
	}
}

// TestField_T2_MergesAsPairsOrStringsWithoutByteLevel is T2 for a Llama file.
func TestField_T2_MergesAsPairsOrStringsWithoutByteLevel(t *testing.T) {
	want := load(t, filepath.Join(familiesDir, "llama2"))
	var asText, asPairs []string
	for _, p := range want.merges.pairs {
		left, right := want.Token(p.left), want.Token(p.right)
		text, _ := json.Marshal(left + " " + right)
		pair, _ := json.Marshal([]string{left, right})
		asText, asPairs = append(asText, string(text)), append(asPairs, string(pair))
	}
	for name, list := range map[string][]string{"text": asText, "pairs": asPairs} {
		got, err := changed(t, "llama2", map[string]string{"model.merges": "[" + strings.Join(list,
			",") + "]"})
		if err != nil {
			t.Fatal(err)
		}
		if got.SHA256() != want.SHA256() {
			t.Errorf("merges as %s give another tokenizer", name)
		}
	}
	_, err := changed(t, "llama2", map[string]string{"model.merges": "[]"})
	checkError(t, err, ErrFormat, []string{"no merges"})
}

// TestField_T1_ChatPattern is T1 for Llama 3's pattern.
func TestField_T1_ChatPattern(t *testing.T) {
	for text, want := range map[string]string{
		"a  b": "a| | b", "\n\n x": "\n\n| x", "\t\tx": "\t|\tx", "\u3000\u3000x": "\u3000|\u3000x",
		"a\r\n\r\n  b": "a|\r\n\r\n| | b",
		"x \n":         "x| \n", "1234567": "123|456|7", " 12": " |12", "!a": "!a", "!!a": "!!|a",
		"a!\n\n": "a|!\n\n", "DON'T": "DON|'T", "'ſs": "'ſ|s", "'": "'",
	} {
		var got []string
		for rest := text; rest != ""; {
			n := chatLen(rest, 3)
			got, rest = append(got, rest[:n]), rest[n:]
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q is cut into %q, want %q", text, s, want)
		}
	}
}

// TestRemovedInverted: the same split in the other spelling that files have.
func TestRemovedInverted(t *testing.T) {
	got, err := changed(t, "llama3", map[string]string{
		"pre_tokenizer": `{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"` +
			strings.ReplaceAll(patternLlama3, `\`, `\\`) +
			`"},"behavior":"Removed","invert":true},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]}`})
	if err != nil {
		t.Fatal(err)
	}
	if got.SHA256() != load(t, familiesDir+"/llama3").SHA256() {
		t.Error("another tokenizer")
	}
}

// TestAlphabet compares with GPT-2's own construction, and both directions with each other.
func TestAlphabet(t *testing.T) {
	next := rune(0x100)
	for b := range 256 {
		want := rune(b)
		if printable := '!' <= want && want <= '~' || 0xA1 <= want && want <= 0xAC ||
			0xAE <= want && want <= 0xFF; !printable {
			want = next
			next++
		}
		if got := byteRune(byte(b)); got != want {
			t.Errorf("byte 0x%02X: %q, want %q", b, got, want)
		}
		if back, ok := runeByte(want); !ok || int(back) != b {
			t.Errorf("%q: 0x%02X %v, want 0x%02X", want, back, ok, b)
		}
	}
	for _, r := range []rune{-1, 0, ' ', 0x7F, 0xA0, 0xAD, next, 0x2581, utf8.MaxRune} {
		if b, ok := runeByte(r); ok {
			t.Errorf("%q: 0x%02X, want none", r, b)
		}
	}
}

func TestScoreIsReadAsTheLibraryDoes(t *testing.T) {
	for raw, want := range map[string]float64{
		"0": 0, "-0.5": -0.5, "-12": -12, "1e3": 1000, "2.5E-1": 0.25, "-3.75e+1": -37.5,
		"123456789012345678901234567890": 1.2345678901234567e29, "1e-320": 1e-320,
	} {
		if got, err := (value{raw: []byte(raw)}).score(); err != nil || got != want {
			t.Errorf("%s: %v, error %v", raw, got, err)
		}
	}
}

func TestTokenizerJSONComesFirst(t *testing.T) {
	dir := t.TempDir()
	// the last has the configuration
	for _, from := range []string{"testdata/opt", familiesDir + "/sp_llama", familiesDir +
		"/llama2"} {
		if err := copyOver(dir, from); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, specialFile)); err != nil {
		t.Fatal(err)
	}
	if got, want := load(t, dir).SHA256(), load(t, familiesDir+"/llama2").SHA256(); got != want {
		t.Error("not tokenizer.json, which was there")
	}
}

// copyOver copies the files of a folder, over existing ones.
func copyOver(dir, from string) error {
	list, err := os.ReadDir(from)
	for _, e := range list {
		var data []byte
		if data, err = os.ReadFile(filepath.Join(from, e.Name())); err != nil {
			return err
		}
		if err = os.WriteFile(filepath.Join(dir, e.Name()), data, 0o600); err != nil {
			return err
		}
	}
	return err
}

// TestEncodeOfInvalidUTF8 holds that nothing gets lost where there are tokens for bytes.
func TestEncodeOfInvalidUTF8(t *testing.T) {
	for name, want := range map[string][]string{
		"llama2": {"▁a", "<0xFF>", "<0xE6>", "<0xB0>", "b"}, "persimmon": {"▁", "a", "<0xFF>",
			"<0xE6>", "<0xB0>", "b"}, "sp_llama": {"▁a", "<0xFF>", "<0xE6>", "<0xB0>", "b"},
		"metaspace": {"▁a", "<unk>", "<unk>", "<unk>", "b"}, "llama3": {"a", "ÿ", "æ", "°", "b"},
	} {
		tok := load(t, filepath.Join(familiesDir, name))
		if got := spell(tok, tok.EncodePlain("a\xff\xe6\xb0b")); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
