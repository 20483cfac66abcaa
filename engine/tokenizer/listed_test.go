package tokenizer

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listed returns a converter's output for a tokenizer of the tests.
func listed(t *testing.T, family string) Listed {
	t.Helper()
	l := Listed{File: "model.gguf", BOS: -1, EOS: -1, Padding: -1}
	tok := load(t, filepath.Join(familiesDir, family))
	if id, ok := tok.BOS(); ok {
		l.BOS = int64(id)
	}
	if id, ok := tok.EOS(); ok {
		l.EOS = int64(id)
	}
	adds := tok.AddsBOS()
	l.AddBOS = &adds
	data, err := os.ReadFile(filepath.Join(familiesDir, family, modelFile))
	if err == nil {
		p, err := readPieces(data)
		if err != nil {
			t.Fatal(err)
		}
		l.Model = ListedPieces
		for _, el := range p.pieces {
			l.Tokens, l.Types, l.Scores = append(l.Tokens, string(p.text(el))), append(l.Types,
				int32(el.kind)), append(l.Scores, el.score)
		}
		return l
	}
	l.Model, l.Merges = ListedBytes, mergeList(tok)
	for id := range uint32(tok.VocabSize()) {
		kinds := map[kind]int32{merged: pieceNormal, added: pieceUserDefined, control: pieceControl}
		l.Tokens, l.Types = append(l.Tokens, tok.Token(id)), append(l.Types, kinds[tok.kinds[id]])
	}
	return l
}

// TestListed compares the tokenizer of a list with the reference of the folder that it was made
// from.
func TestListed(t *testing.T) {
	texts := familyTexts(t)
	for family, pre := range map[string]string{"llama3": "llama-bpe", "phi": "phi-2",
		"sp_llama": "", "qwen2_5": "qwen2", "qwen35": "qwen35", "tekken": "tekken",
		"deepseek": "deepseek-v3", "falcon": "falcon"} {
		t.Run(family, func(t *testing.T) {
			l := listed(t, family)
			l.Pre = pre
			tok, err := FromList(l)
			if err != nil {
				t.Fatal(err)
			}
			checkFamily(t, tok, readFamily(t, family), texts)
			again, err := Parse(marshal(t, tok))
			if err != nil || again.SHA256() != tok.SHA256() {
				t.Errorf("the document changes when it is read and written: %v", err)
			}
		})
	}
}

func TestListedDefaults(t *testing.T) {
	for family, want := range map[string]bool{"llama3": true, "phi": false, "sp_llama": true} {
		l := listed(t, family)
		l.Pre = map[string]string{"llama3": "llama3", "phi": "gpt-2"}[family]
		l.AddBOS = nil
		if tok, err := FromList(l); err != nil || tok.AddsBOS() != want {
			t.Errorf("%s: BOS first %v, error %v", family, tok.AddsBOS(), err)
		}
		yes := true
		l.AddEOS = &yes
		tok, err := FromList(l)
		if err != nil {
			t.Fatal(err)
		}
		if ids := tok.Encode("a"); ids[len(ids)-1] != uint32(l.EOS) {
			t.Errorf("%s: %v does not end with %d", family, ids, l.EOS)
		}
	}
}

// TestListedFillers: converters fill the rows of an embedding beyond the tokens; a text never has
// one of them.
func TestListedFillers(t *testing.T) {
	for family, pre := range map[string]string{"llama3": "llama-bpe", "sp_llama": ""} {
		l := listed(t, family)
		l.Pre = pre
		want, err := FromList(l)
		if err != nil {
			t.Fatal(err)
		}
		l.Tokens, l.Types = append(l.Tokens, "ab[PAD]"), append(l.Types, pieceUnused)
		if l.Scores != nil {
			l.Scores = append(l.Scores, 0)
		}
		tok, err := FromList(l)
		if err != nil {
			t.Fatal(err)
		}
		const text = "ab[PAD] ab[PAD]"
		if got := tok.Encode(text); tok.VocabSize() != want.VocabSize()+1 ||
			len(got) != len(want.Encode(text)) ||
			tok.Decode(got) != want.Decode(want.Encode(text)) {
			t.Errorf("%s: %d tokens, %v", family, tok.VocabSize(), got)
		}
	}
}

// TestListedUnknownRows: converters call rows beyond the tokens unknown (Phi-3).
func TestListedUnknownRows(t *testing.T) {
	l := listed(t, "sp_llama")
	want, err := FromList(l)
	if err != nil {
		t.Fatal(err)
	}
	l.Tokens, l.Types, l.Scores = append(l.Tokens, "[PAD7]", "[PAD8]"), append(l.Types,
		pieceUnknown, pieceUnknown), append(l.Scores, 0, 0)
	got, err := FromList(l)
	if err != nil {
		t.Fatal(err)
	}
	const text = "a [PAD7] \U00013000"
	if ids := got.Encode(text); !slices.Equal(ids, want.Encode(text)) {
		t.Errorf("%v, want %v", ids, want.Encode(text))
	}
}

func TestListedErrors(t *testing.T) {
	for _, c := range []struct {
		name, family string
		change       func(*Listed)
		kind         error
		want         []string
	}{
		{"model", "llama3", func(l *Listed) { l.Model = "t5" }, ErrUnsupported,
			[]string{"model.gguf", "t5"}},
		{"cut", "llama3", func(l *Listed) { l.Pre = "kimi-k2" }, ErrUnsupported,
			[]string{"kimi-k2", "llama-bpe"}},
		{"no cut", "llama3", func(l *Listed) { l.Pre = "" }, ErrUnsupported,
			[]string{"converted again"}},
		{"types", "llama3", func(l *Listed) { l.Types = l.Types[1:] }, ErrFormat,
			[]string{"types"}},
		{"type", "llama3", func(l *Listed) { l.Types[7] = 9 }, ErrUnsupported, []string{"tokens[7]",
			"type 9"}},
		{"merge", "llama3", func(l *Listed) { l.Merges[3] = "abc" }, ErrFormat,
			[]string{"merges[3]"}},
		{"no merges", "llama3", func(l *Listed) { l.Merges = nil }, ErrFormat,
			[]string{"no merges"}},
		{"UTF-8", "llama3", func(l *Listed) { l.Tokens[3] = "\xff" }, ErrFormat,
			[]string{"tokens[3]", "UTF-8"}},
		{"twice", "llama3", func(l *Listed) { l.Tokens[3] = l.Tokens[4] }, ErrFormat,
			[]string{"tokens[4]", "twice"}},
		{"no BOS", "llama3", func(l *Listed) { l.BOS = -1 }, ErrFormat, []string{"bos_token"}},
		{"BOS outside", "llama3", func(l *Listed) { l.BOS = 1 << 30 }, ErrFormat,
			[]string{"outside"}},
		{"no EOS", "llama3", func(l *Listed) { yes := true; l.AddEOS, l.EOS = &yes, -1 }, ErrFormat,
			[]string{"eos_token_id"}},
		{"no scores", "sp_llama", func(l *Listed) { l.Scores = nil }, ErrFormat,
			[]string{"scores"}},
		{"score", "sp_llama", func(l *Listed) { l.Scores[5] = float32(math.NaN()) }, ErrFormat,
			[]string{"tokens[5]", "NaN"}},
		{"piece type", "sp_llama", func(l *Listed) { l.Types[5] = 0 }, ErrUnsupported,
			[]string{"tokens[5]", "type 0"}},
		{"second unknown", "sp_llama", func(l *Listed) {
			l.Types[300], l.Unknown = pieceUnknown, -1
		}, ErrFormat, []string{"pieces[300]", "second unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listed(t, c.family)
			l.Pre = "llama-bpe"
			c.change(&l)
			tok, err := FromList(l)
			if tok != nil || !errors.Is(err, c.kind) {
				t.Fatalf("error %v is not of the kind %q", err, c.kind)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}
