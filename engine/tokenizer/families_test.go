package tokenizer

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	Mixed  [][]uint32 // by text of mixed.json; nil for families before it
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
	if v.Mixed != nil {
		checkMixed(t, tok, v.Mixed)
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

// checkMixed compares the ids of the mixed texts.
func checkMixed(t *testing.T, tok *Tokenizer, ids [][]uint32) {
	t.Helper()
	var texts []string
	readJSON(t, filepath.Join(familiesDir, "mixed.json"), &texts)
	if len(texts) < 600 || len(ids) != len(texts) {
		t.Fatalf("%d vectors for %d mixed texts", len(ids), len(texts))
	}
	for i, text := range texts {
		if got := tok.Encode(text); !slices.Equal(got, ids[i]) {
			t.Errorf("Encode(%q) = %v, reference %v", text, got, ids[i])
		}
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

// TestField_J7_PatternsAsAWhole compares every pattern with the reference's cuts of the reported
// texts and of the parts of the mixed ones. A pattern that is not known is refused, and quoted.
func TestField_J7_PatternsAsAWhole(t *testing.T) {
	var words map[string][][]string
	readJSON(t, filepath.Join(familiesDir, "words.json"), &words)
	if len(words) < 14 {
		t.Fatalf("%d patterns", len(words))
	}
	for pattern, cuts := range words {
		known, ok := scanners[pattern]
		if !ok {
			t.Errorf("no scanner for %q", pattern)
			continue
		}
		for _, want := range cuts {
			text := strings.Join(want, "")
			if pattern == patternBlankEnd && strings.Contains(text, "\n") {
				continue // the split before it has taken line ends out
			}
			var got []string
			for rest := text; rest != ""; {
				n := known.length(rest)
				got, rest = append(got, rest[:n]), rest[n:]
			}
			if !slices.Equal(got, want) {
				t.Errorf("%.40q cuts %q into %q, reference %q", pattern, text, got, want)
			}
		}
	}
	const other = `\p{N}{1,3}|[^\r\n\p{L}\p{N}]?\p{L}+`
	quoted, err := json.Marshal(other)
	if err != nil {
		t.Fatal(err)
	}
	_, err = changed(t, "llama3", map[string]string{"pre_tokenizer": `{"type":"Split",` +
		`"pattern":{"Regex":` + string(quoted) + `},"behavior":"Isolated","invert":false}`})
	checkError(t, err, ErrUnsupported, []string{strconv.Quote(other)})
}

// TestCaseClasses compares the classes of o200k's and DeepSeek's patterns with the reference's for
// every code point. Go's tables may be newer, never different.
func TestCaseClasses(t *testing.T) {
	var ref map[string][]rune
	readJSON(t, filepath.Join(familiesDir, "classes.json"), &ref)
	kind := func(want letterCase, table *unicode.RangeTable) func(rune) bool {
		return func(r rune) bool {
			k, _ := caseOf(string(r))
			return k == want && unicode.Is(table, r)
		}
	}
	newer := 0
	for name, is := range map[string]func(rune) bool{
		"mark":  func(r rune) bool { c, _ := classifyMarked(string(r)); return c == mark },
		"punct": unicode.IsPunct, "symbol": unicode.IsSymbol,
		"capital": kind(capital, unicode.L), "small": kind(small, unicode.L),
		"caseless": kind(caseless, unicode.L),
	} {
		in := make([]bool, unicode.MaxRune+1)
		for i := 0; i < len(ref[name]); i += 2 {
			for r := ref[name][i]; r <= ref[name][i+1]; r++ {
				in[r] = true
			}
		}
		for r := rune(1); r < 0xE0200; r++ { // beyond is private use
			if r == 0x32400 {
				r = 0xE0000 // nothing in between
			}
			switch got := is(r); {
			case got == in[r] || 0xD800 <= r && r < 0xE000:
			case got:
				newer++
			default:
				t.Errorf("%U: %s is %v, reference %v", r, name, got, in[r])
			}
		}
	}
	if unicode.Version == "15.0.0" && newer != 4442 {
		t.Errorf("%d code points are newer than the reference; doc.go says 4,442", newer)
	}
}

// TestConfigOfTransformers5 reads what transformers 5 writes beside the same tokenizer.json.
func TestConfigOfTransformers5(t *testing.T) {
	const saved = `"backend":"tokenizers","is_local":true,"local_files_only":false,` +
		`"model_max_length":1000000000000000019884624838656,`
	for family, config := range map[string]string{
		"qwen2_5": `{` + saved + `"add_prefix_space":false,"bos_token":null,"eos_token":` +
			`"<|im_end|>","errors":"replace","extra_special_tokens":["<|im_start|>",` +
			`"<|im_end|>"],"pad_token":"<|endoftext|>","split_special_tokens":false,` +
			`"tokenizer_class":"Qwen2Tokenizer","unk_token":null}`,
		"llama3": `{` + saved + `"bos_token":"<|begin_of_text|>","eos_token":` +
			`"<|end_of_text|>","model_input_names":["input_ids"],"tokenizer_class":` +
			`"TokenizersBackend"}`,
		"gemma": `{` + saved + `"bos_token":"<bos>","eos_token":"<eos>","pad_token":"<pad>",` +
			`"model_specific_special_tokens":{"image_token":"<start_of_turn>"},` +
			`"image_token":"<start_of_turn>","sp_model_kwargs":null,` +
			`"tokenizer_class":"GemmaTokenizer","unk_token":"<unk>"}`,
	} {
		dir := t.TempDir()
		if err := copyOver(dir, filepath.Join(familiesDir, family)); err != nil {
			t.Fatal(err)
		}
		write(t, dir, configFile, config)
		checkFamily(t, load(t, dir), readFamily(t, family), familyTexts(t))
	}
}

// TestVocabularyOfQwen reads Qwen's tokenizer from vocab.json and merges.txt: the class says how
// texts are normalized and cut.
func TestVocabularyOfQwen(t *testing.T) {
	const family = "qwen2_5"
	tok, dir := load(t, filepath.Join(familiesDir, family)), t.TempDir()
	if err := copyOver(dir, filepath.Join(familiesDir, family)); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Model struct{ Vocab json.RawMessage }
		Added []struct {
			ID      uint32
			Content string
		} `json:"added_tokens"`
	}
	readJSON(t, filepath.Join(dir, jsonForm), &doc)
	if err := os.Remove(filepath.Join(dir, jsonForm)); err != nil {
		t.Fatal(err)
	}
	write(t, dir, vocabFile, string(doc.Model.Vocab))
	write(t, dir, mergesFile, "#version: 0.2\n"+strings.Join(mergeList(tok), "\n")+"\n")
	ids := make(map[string]uint32)
	for _, a := range doc.Added {
		ids[a.Content] = a.ID
	}
	extra, err := json.Marshal(ids)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, addedFile, string(extra))
	v := readFamily(t, family)
	got := load(t, dir)
	for i, text := range familyTexts(t) {
		if ids := got.Encode(text); !slices.Equal(ids, v.IDs[i]) {
			t.Errorf("%q: %v, want %v", text, ids, v.IDs[i])
		}
	}
}

// TestBytesWithoutToken: a vocabulary trained on text lacks bytes that no text has (StarCoder,
// MPT), or control characters (Falcon). They vanish, as in the reference.
func TestBytesWithoutToken(t *testing.T) {
	var doc map[string]json.RawMessage
	readJSON(t, filepath.Join(familiesDir, "digits", jsonForm), &doc)
	var model struct {
		Vocab map[string]uint32
	}
	if err := json.Unmarshal(doc["model"], &model); err != nil {
		t.Fatal(err)
	}
	rename := func(from, to string) map[string]string {
		vocab := maps.Clone(model.Vocab)
		vocab[to] = vocab[from]
		delete(vocab, from)
		data, err := json.Marshal(vocab)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"model.vocab": string(data)}
	}
	tok, err := changed(t, "digits", rename(string(byteRune(3)), "[gone]"))
	if err != nil {
		t.Fatal(err)
	}
	want := load(t, filepath.Join(familiesDir, "digits"))
	for text, same := range map[string]string{"a\x03b": "ab", "\x03": "",
		"\x03\x03 x\x04": " x\x04"} {
		var plain []uint32
		for _, word := range strings.SplitAfter(same, "a") { // where the reference cuts
			plain = append(plain, want.EncodePlain(word)...)
		}
		if got := tok.EncodePlain(text); tok.Decode(got) != same || len(got) > len(plain) {
			t.Errorf("%q: %v, %q", text, got, tok.Decode(got))
		}
	}
	again, err := Parse(marshal(t, tok))
	if err != nil || again.SHA256() != tok.SHA256() {
		t.Errorf("the document changes: %v", err)
	}
	_, err = changed(t, "digits", rename(string(byteRune('\n')), "[gone]"))
	checkError(t, err, ErrUnsupported, []string{"0x0A", "byte-level"})
	change := rename(string(byteRune(3)), "[gone]")
	change["model.unk_token"] = `"a"`
	_, err = changed(t, "digits", change)
	checkError(t, err, ErrUnsupported, []string{"0x03", "unk_token"})
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
