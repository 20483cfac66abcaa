package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// optSettings are a tokenizer_config.json as the first OPT checkpoints had it, without
// added_tokens_decoder.
const optSettings = `{"errors": "replace", "unk_token": {"content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": true, "__type": "AddedToken"},
 "bos_token": {"content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": true, "__type": "AddedToken"},
 "eos_token": "</s>", "pad_token": "<pad>", "add_prefix_space": false, "add_bos_token": true, "special_tokens_map_file": null,
 "name_or_path": "x", "tokenizer_class": "GPT2Tokenizer"}`

func TestField_T4_BOSFirst(t *testing.T) {
	// as in OPT
	first := map[int]string{0: "<s>", 1: "<pad>", 2: "</s>", 3: "<unk>", 4: ".", 47: "Ġyou",
		100: "I", 101: "Ġlike"}
	rest := []string{"Ġy", "ou", "Ġl", "ik", "ike"}
	for _, text := range byteTokens() {
		if text != "I" && text != "." {
			rest = append(rest, text)
		}
	}
	var tokens []string
	for len(rest) > 0 {
		text, ok := first[len(tokens)]
		if !ok {
			text, rest = rest[0], rest[1:]
		}
		tokens = append(tokens, text)
	}
	dir := t.TempDir()
	writeModel(t, dir, tokens, "#version: 0.2\no u\nĠ y\nĠy ou\ni k\nik e\nĠ l\nĠl ike\n")
	write(t, dir, configFile, optSettings)
	tok := load(t, dir)
	if got, want := tok.Encode("I like you."), []uint32{2, 100, 101, 47, 4}; !slices.Equal(got,
		want) {
		t.Errorf("Encode: %v, want %v", got, want)
	}
	if got, want := tok.EncodePlain("I like you."), []uint32{100, 101, 47, 4}; !slices.Equal(got,
		want) {
		t.Errorf("EncodePlain: %v, want %v", got, want)
	}
	if got, want := tok.Encode(""), []uint32{2}; !slices.Equal(got, want) {
		t.Errorf("empty text: %v, want %v", got, want)
	}
}

func TestField_T2_MergesAsPairsOrStrings(t *testing.T) {
	want := loadOPT(t)
	list := readVectors(t).Opt
	for name, pairs := range map[string]bool{"strings": false, "pairs": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, jsonForm, tokenizerJSON(t, want, pairs, nil))
			write(t, dir, configFile, read(t, "opt/"+configFile))
			got := load(t, dir)
			checkVectors(t, got, list)
			if got.SHA256() != want.SHA256() {
				t.Error("the one-file form gives another tokenizer than vocab.json and merges.txt")
			}
		})
	}
}

func TestField_G5_NoMerges(t *testing.T) {
	for name, content := range map[string]string{"missing": "", "version only": "#version: 0.2\n",
		"blank": "\n"} {
		_, err := Load(t.Context(), folder(t, map[string]string{mergesFile: content}))
		if err == nil || !strings.Contains(err.Error(), "merges.txt") ||
			!strings.Contains(err.Error(), "single bytes") {
			t.Errorf("%s: error %v", name, err)
		}
		if name == "missing" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v does not wrap fs.ErrNotExist", err)
		}
	}
	dir := t.TempDir()
	write(t, dir, jsonForm, tokenizerJSON(t, loadOPT(t), false, func(m map[string]any) {
		m["model"].(map[string]any)["merges"] = []string{}
	}))
	if _, err := Load(t.Context(), dir); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(),
			"no merges") {
		t.Errorf("tokenizer.json: error %v", err)
	}
}

func TestMergesWithWindowsLineEnds(t *testing.T) {
	crlf := strings.ReplaceAll(read(t, "opt/"+mergesFile), "\n", "\r\n")
	if got, want := load(t, folder(t, map[string]string{mergesFile: crlf})).SHA256(),
		loadOPT(t).SHA256(); got != want {
		t.Error("another tokenizer with CRLF")
	}
}

func TestDefaultsWithoutSettings(t *testing.T) {
	tok := load(t, folder(t, map[string]string{configFile: "", specialFile: ""}))
	if _, ok := tok.BOS(); ok || tok.AddsBOS() || tok.IsSpecial(2) {
		t.Error("special tokens without a file that names them")
	}
	tok = load(t, folder(t, map[string]string{configFile: "", specialFile: "",
		addedFile: `{"<|endoftext|>": 1000}`}))
	bos, okBOS := tok.BOS()
	eos, okEOS := tok.EOS()
	if !okBOS || !okEOS || bos != 1000 || eos != 1000 {
		t.Errorf("GPT-2's default: bos %d %v, eos %d %v", bos, okBOS, eos, okEOS)
	}
}

func TestLoadOldOPTFolder(t *testing.T) {
	tok := load(t, folder(t, map[string]string{configFile: optSettings,
		specialFile: `{"bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>", "pad_token": "<pad>"}`}))
	if tok.SHA256() != loadOPT(t).SHA256() {
		t.Error("the old spelling of the settings gives another tokenizer")
	}
}

func TestOverlappingSpecialTokens(t *testing.T) {
	tok := load(t, folder(t, map[string]string{
		addedFile: `{"<x": 1000, "<x>": 1001, "x>y": 1002}`}))
	if got, want := tok.EncodePlain("<x><xx>y<x>y"), []uint32{1001, 1000, 1002, 1001,
		tok.base['y']}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: the leftmost, then the longest", got, want)
	}
}

func TestControlInOneFileAddedInAnother(t *testing.T) {
	change := replaced(t, configFile, `"1": {`,
		`"1000": {"content": "<x>", "special": true}, "1001": {"content": "<y>", "special": false}, "1": {`)
	change[addedFile] = `{"<x>": 1000, "<y>": 1001}`
	tok := load(t, folder(t, change))
	if got := tok.DecodeText(tok.Encode("<x>a<y>")); got != "a<y>" {
		t.Errorf("DecodeText = %q: <x> is a control token, <y> a word", got)
	}
}

// replaced returns a file of testdata/opt with one text replaced, which must be there.
func replaced(t *testing.T, name, old, with string) map[string]string {
	t.Helper()
	content := read(t, "opt/"+name)
	if !strings.Contains(content, old) {
		t.Fatalf("%s does not contain %q", name, old)
	}
	return map[string]string{name: strings.Replace(content, old, with, 1)}
}

func TestLoadErrors(t *testing.T) {
	vocab := func(old, with string) map[string]string { return replaced(t, vocabFile, old, with) }
	config := func(member string) map[string]string {
		return replaced(t, configFile, "{\n",
			"{\n"+member+",\n")
	}
	for _, c := range []struct {
		name   string
		change map[string]string
		kind   error
		want   []string
	}{
		{"duplicate key", vocab(`"!": 4,`, `"!": 4, "!": 5,`), ErrFormat, []string{"vocab.json:2:",
			`"!" occurs twice`}},
		{"one id twice", vocab(`"!": 4,`, `"!": 5,`), ErrFormat, []string{"vocab.json:", `"!"`,
			"one id, 5"}},
		{"hole", vocab(`"!": 4,`, `"!": 4000,`), ErrFormat, []string{"vocab.json:2:", "4000",
			"0 to 999"}},
		{"negative id", vocab(`"!": 4,`, `"!": -4,`), ErrFormat, []string{"vocab.json:2:",
			"-4, not a token id"}},
		{"fraction", vocab(`"!": 4,`, `"!": 4.5,`), ErrFormat, []string{"vocab.json:2:"}},
		{"null id", vocab(`"!": 4,`, `"!": null,`), ErrFormat, []string{"vocab.json:2:", "null"}},
		{"huge id", vocab(`"!": 4,`, `"!": 4294967300,`), ErrFormat, []string{"vocab.json:2:"}},
		{"empty token", vocab(`"!": 4,`, `"": 4,`), ErrFormat, []string{"vocab.json:2:", "empty"}},
		{"missing byte", vocab(`"!": 4,`, `"no-byte": 4,`), ErrUnsupported, []string{"0x21"}},
		{"not UTF-8", vocab(`"!": 4,`, "\"\xff\": 4,"), ErrFormat, []string{"vocab.json:2:",
			"not UTF-8"}},
		{"list", map[string]string{vocabFile: `["a"]`}, ErrFormat, []string{"vocab.json:1:",
			"not an object"}},
		{"cut", map[string]string{vocabFile: `{"a": 1,`}, ErrFormat, []string{"vocab.json:1:",
			"ends too early"}},
		{"trailing", map[string]string{vocabFile: `{} {}`}, ErrFormat, []string{"vocab.json:1:",
			"after the end"}},
		{"syntax", vocab(`"!": 4,`, `"!" 4,`), ErrFormat, []string{"vocab.json:",
			"not valid JSON"}},
		{"unknown left", map[string]string{mergesFile: "#version: 0.2\nh e\nqqq e\n"}, ErrFormat,
			[]string{"merges.txt:3:", `"qqq" is not in the vocabulary`}},
		{"unknown product", map[string]string{mergesFile: "h e\nQ Z\n"}, ErrFormat,
			[]string{"merges.txt:2:", `"QZ" is not in the vocabulary`}},
		{"three parts", map[string]string{mergesFile: "h e l\n"}, ErrFormat,
			[]string{"merges.txt:1:", "two tokens"}},
		{"blank line", map[string]string{mergesFile: "h e\n\nt h\n"}, ErrFormat,
			[]string{"merges.txt:2:"}},
		{"merge twice", map[string]string{mergesFile: "h e\nh e\n"}, ErrFormat,
			[]string{"merges.txt:2:", "first at merges.txt:1"}},
		{"merge of a special token", map[string]string{mergesFile: "< /s>\n"}, ErrFormat,
			[]string{"merges.txt:1:"}},
		{"unknown settings", config(`"lower": true, "nfkc": 1`), ErrUnsupported,
			[]string{"tokenizer_config.json", "lower, nfkc"}},
		{"other class", replaced(t, configFile, "GPT2Tokenizer", "LlamaTokenizer"), ErrUnsupported,
			[]string{"tokenizer_class", "LlamaTokenizer"}},
		{"other decoding", replaced(t, configFile, `"errors": "replace"`, `"errors": "strict"`),
			ErrUnsupported, []string{"errors", "strict"}},
		{"eos added", config(`"add_eos_token": true`), ErrUnsupported,
			[]string{"tokenizer_config.json:2:", "add_eos_token"}},
		{"setting twice", config(`"add_bos_token": false`), ErrFormat, []string{"add_bos_token",
			"twice"}},
		{"flag as a string", replaced(t, configFile, `"add_bos_token": true`,
			`"add_bos_token": "true"`), ErrFormat, []string{"add_bos_token", "true or false"}},
		{"flag of a token", replaced(t, configFile, `"lstrip": false`, `"lstrip": 1`), ErrFormat,
			[]string{"tokenizer_config.json:7:", "lstrip"}},
		{"id of an added token", replaced(t, configFile, `"1": {`, `"-1": {`), ErrFormat,
			[]string{`"-1" is not a token id`}},
		{"two ids", replaced(t, configFile, `"1": {`, `"7": {`), ErrFormat,
			[]string{`"<pad>" has the ids 1 and 7`}},
		{"files disagree", replaced(t, configFile, `"eos_token": "</s>"`, `"eos_token": "<pad>"`),
			ErrFormat, []string{"special_tokens_map.json", "eos_token", "tokenizer_config.json"}},
		{"token without id", map[string]string{specialFile: `{"mask_token": "<mask>"}`}, ErrFormat,
			[]string{"special_tokens_map.json:1:", `"<mask>" has no id`}},
		{"added with a hole", map[string]string{addedFile: `{"<x>": 1001}`}, ErrFormat,
			[]string{"added_tokens.json:1:", "1001"}},
		{"no BOS to add", map[string]string{configFile: `{"add_bos_token": true}`,
			specialFile: `{}`}, ErrFormat, []string{"bos_token"}},
		{"unknown role", map[string]string{specialFile: `{"thought_token": "</s>"}`},
			ErrUnsupported, []string{"thought_token"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(t.Context(), folder(t, c.change))
			checkError(t, err, c.kind, c.want)
		})
	}
}

func checkError(t *testing.T, err, kind error, want []string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error %v is not of the kind %q", err, kind)
	}
	for _, w := range append(want, "tokenizer: ") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func TestLoadEmptyFolder(t *testing.T) {
	if _, err := Load(t.Context(), t.TempDir()); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "neither tokenizer.json, vocab.json nor tokenizer.model") {
		t.Errorf("error %v", err)
	}
}

func TestTokenizerJSONErrors(t *testing.T) {
	base := loadOPT(t)
	model := func(key string, v any) func(map[string]any) {
		return func(m map[string]any) { m["model"].(map[string]any)[key] = v }
	}
	part := func(key string, v any) func(map[string]any) {
		return func(m map[string]any) {
			m[key] = v
		}
	}
	for _, c := range []struct {
		name   string
		change func(map[string]any)
		kind   error
		want   []string
	}{
		{"normalizer", part("normalizer", map[string]any{"type": "Nmt"}), ErrUnsupported,
			[]string{"normalizer", "Nmt"}},
		{"truncation", part("truncation", map[string]any{"max_length": 5}), ErrUnsupported,
			[]string{"truncation"}},
		{"pre-tokenizer", part("pre_tokenizer", map[string]any{"type": "Metaspace",
			"prepend_scheme": "never"}), ErrUnsupported,
			[]string{"one of pre_tokenizer and decoder is ByteLevel"}},
		{"use_regex", part("pre_tokenizer", map[string]any{"type": "ByteLevel", "use_regex": "no"}),
			ErrFormat, []string{"use_regex"}},
		{"decoder", part("decoder", nil), ErrUnsupported, []string{"decoder", "null"}},
		{"template", part("post_processor",
			json.RawMessage(
				`{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}},{"Sequence":{"id":"A"}}]}`)), ErrUnsupported, []string{"template"}},
		{"empty template", part("post_processor",
			json.RawMessage(`{"type":"TemplateProcessing","single":[]}`)), ErrFormat,
			[]string{"no place for the text"}},
		{"unknown part", part("extension", 1), ErrUnsupported, []string{"extension"}},
		{"no model", func(m map[string]any) { delete(m, "model") }, ErrFormat,
			[]string{"no vocabulary"}},
		{"model", model("type", "WordPiece"), ErrUnsupported, []string{"WordPiece"}},
		{"byte fallback", model("byte_fallback", 1), ErrFormat, []string{"byte_fallback"}},
		{"model setting", model("novel", true), ErrUnsupported, []string{"novel"}},
		{"triple", model("merges", [][]string{{"h", "e", "l"}}), ErrFormat,
			[]string{"tokenizer.json:merges[0]"}},
		{"unknown in pair", model("merges", [][]string{{"h", "e"}, {"zz", "zz"}}), ErrFormat,
			[]string{"tokenizer.json:merges[1]", `"zz"`}},
		{"settings disagree", part("pre_tokenizer", map[string]any{"type": "ByteLevel",
			"add_prefix_space": true}), ErrFormat, []string{"tokenizer_config.json",
			"add_prefix_space", "opposite"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, jsonForm, tokenizerJSON(t, base, true, c.change))
			write(t, dir, configFile, read(t, "opt/"+configFile))
			_, err := Load(t.Context(), dir)
			checkError(t, err, c.kind, c.want)
		})
	}
}

func TestTokenizerJSONTemplateAddsBOS(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, jsonForm, tokenizerJSON(t, loadOPT(t), true, func(m map[string]any) {
		m["post_processor"] = json.RawMessage(
			`{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"</s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{}}`)
	}))
	tok := load(t, dir)
	checkVectors(t, tok, readVectors(t).Opt)
}

// tokenizerJSON writes a tokenizer in the one-file form of the tokenizers library.
func tokenizerJSON(t *testing.T, tok *Tokenizer, pairs bool, change func(map[string]any)) string {
	t.Helper()
	vocab := make(map[string]int)
	for id := range tok.VocabSize() {
		vocab[tok.Token(uint32(id))] = id
	}
	list := mergeList(tok)
	merges := make([]any, len(list))
	for i, m := range list {
		merges[i] = m
		if pairs {
			merges[i] = strings.Split(m, " ")
		}
	}
	var added []map[string]any
	for _, sp := range tok.specials {
		added = append(added, map[string]any{"id": sp.id, "content": tok.Token(sp.id),
			"special": true, "normalized": true, "lstrip": false, "rstrip": false,
			"single_word": false})
	}
	level := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
		"use_regex": true}
	doc := map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added,
		"normalizer":    nil,
		"pre_tokenizer": level, "post_processor": level, "decoder": level,
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": "",
			"end_of_word_suffix": "",
			"fuse_unk":           false, "byte_fallback": false, "ignore_merges": false,
			"vocab":  vocab,
			"merges": merges,
		},
	}
	if change != nil {
		change(doc)
	}
	data, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// writeModel writes vocab.json, the tokens by id, and merges.txt.
func writeModel(t testing.TB, dir string, tokens []string, merges string) {
	t.Helper()
	var lines []string
	for id, text := range tokens {
		key, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s: %d", key, id))
	}
	write(t, dir, vocabFile, "{"+strings.Join(lines, ",\n")+"}")
	write(t, dir, mergesFile, merges)
}

func write(t testing.TB, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
