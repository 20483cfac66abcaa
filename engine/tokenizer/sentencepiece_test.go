package tokenizer

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"
)

// protoField appends a field of Protocol Buffers: a uint64, a float32 or bytes.
func protoField(dst []byte, number uint64, v any) []byte {
	switch v := v.(type) {
	case int:
		return binary.AppendUvarint(binary.AppendUvarint(dst, number<<3|wireVarint), uint64(v))
	case float32:
		return binary.LittleEndian.AppendUint32(binary.AppendUvarint(dst, number<<3|wireFixed32),
			math.Float32bits(v))
	case string:
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, number<<3|wireBytes), uint64(len(v)))
		return append(dst, v...)
	}
	panic("no such field")
}

// protoPiece is a piece as a field of the model.
func protoPiece(text string, score float32, kind int) []byte {
	return protoField(nil, 1, string(protoField(protoField(protoField(nil, 1, text), 2, score), 3,
		kind)))
}

// smallModel is a BPE model over a, b and the blank; more is appended to its fields.
func smallModel(more ...[]byte) string {
	var out []byte
	for _, p := range [][]byte{
		protoPiece("<unk>", 0, pieceUnknown), protoPiece("<s>", 0, pieceControl), protoPiece("</s>",
			0, pieceControl),
		protoPiece("a", -3, pieceNormal), protoPiece("b", -4, pieceNormal), protoPiece("▁", -5,
			pieceNormal),
		protoPiece("ab", 0, pieceNormal), protoPiece("ba", 0, pieceNormal), protoPiece("▁a", -1,
			pieceNormal),
		protoField(nil, 2, string(protoField(nil, 3, typeBPE))),
	} {
		out = append(out, p...)
	}
	for _, m := range more {
		out = append(out, m...)
	}
	return string(out)
}

func loadModel(t testing.TB, data, config string) (*Tokenizer, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, modelFile, data)
	if config != "" {
		write(t, dir, configFile, config)
	}
	return Load(t.Context(), dir)
}

func TestSentencePieceErrors(t *testing.T) {
	spec := func(number uint64, v any) []byte {
		return protoField(nil, 3,
			string(protoField(nil, number, v)))
	}
	trainer := func(number uint64, v any) []byte {
		return protoField(nil, 2,
			string(protoField(nil, number, v)))
	}
	for _, c := range []struct {
		name, data, config string
		kind               error
		want               []string
	}{
		{"empty", "", "", ErrFormat, []string{"tokenizer.model", "no pieces"}},
		{"table", smallModel(spec(1, "nmt_nfkc"), spec(2, "\x00\x01")), "", ErrFormat,
			[]string{"precompiled_charsmap", "2 bytes"}},
		{"table back", smallModel(protoField(nil, 5, string(protoField(nil, 2, "x")))), "",
			ErrUnsupported, []string{"table of 1 bytes"}},
		{"suffix", smallModel(trainer(24, 1)), "", ErrUnsupported,
			[]string{"treat_whitespace_as_suffix"}},
		{"blanks as they are", smallModel(spec(5, 0)), "", ErrUnsupported,
			[]string{"escape_whitespaces"}},
		{"words", smallModel(trainer(3, 3)), "", ErrUnsupported, []string{"model type 3"}},
		{"no bytes", smallModel(trainer(35, 1)), "", ErrUnsupported, []string{"byte_fallback",
			"<0x00>"}},
		{"legacy", smallModel(), `{"legacy": false}`, ErrUnsupported, []string{"legacy"}},
		{"no blank", smallModel(), `{"add_prefix_space": false}`, ErrUnsupported,
			[]string{"add_prefix_space"}},
		{"class", smallModel(), `{"tokenizer_class": "T5Tokenizer"}`, ErrUnsupported,
			[]string{"T5Tokenizer"}},
		{"single word", smallModel(), `{"pad_token": {"content": "<s>", "single_word": true}}`,
			ErrUnsupported, []string{"single_word"}},
		{"second unknown", smallModel(protoPiece("<u>", 0, pieceUnknown)), "", ErrFormat,
			[]string{"pieces[9]", "second unknown"}},
		{"unused", smallModel(protoPiece("u", 0, 5)), "", ErrUnsupported, []string{"pieces[9]",
			"kind 5"}},
		{"twice", smallModel(protoPiece("ab", 0, pieceNormal)), "", ErrFormat, []string{`"ab"`}},
		{"blanks removed", smallModel(protoPiece("a  b", 0, pieceUserDefined)), "", ErrUnsupported,
			[]string{"two spaces"}},
		{"not UTF-8", smallModel(protoPiece("\xff", 0, pieceNormal)), "", ErrFormat,
			[]string{"not UTF-8"}},
		{"score", smallModel(protoPiece("c", float32(math.NaN()), pieceNormal)), "", ErrFormat,
			[]string{"score NaN"}},
		{"wire type", smallModel(protoField(nil, 1, 7)), "", ErrFormat,
			[]string{"field 1 has wire type 0"}},
		{"group", smallModel([]byte{7<<3 | 3}), "", ErrFormat, []string{"wire type 3"}},
		{"long field", smallModel([]byte{1<<3 | 2, 0x7f}), "", ErrFormat,
			[]string{"127 bytes, but only 0"}},
		{"long number", smallModel([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")), "",
			ErrFormat, []string{"64 bits"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := loadModel(t, c.data, c.config)
			checkError(t, err, c.kind, c.want)
		})
	}
}

// TestSentencePieceTies: of two pieces with one score the leftmost pair merges first, as in
// SentencePiece; with ranks of their own one of them would always win.
func TestSentencePieceTies(t *testing.T) {
	tok, err := loadModel(t, smallModel(), "")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(marshal(t, tok))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"bab": "▁ ba b", "abab": "▁ ab ab", "baba": "▁ ba ba",
		"aba": "▁ ab a"} {
		for _, tok := range []*Tokenizer{tok, again} {
			got := ""
			for _, s := range spell(tok, tok.EncodePlain(text)) {
				got += " " + s
			}
			if got[1:] != want {
				t.Errorf("%q: %s, want %s", text, got[1:], want)
			}
		}
	}
}

func TestSentencePieceDefaults(t *testing.T) {
	tok, err := loadModel(t, smallModel(), "")
	if err != nil {
		t.Fatal(err)
	}
	bos, okBOS := tok.BOS()
	eos, okEOS := tok.EOS()
	if !okBOS || !okEOS || bos != 1 || eos != 2 || !tok.AddsBOS() || tok.VocabSize() != 9 {
		t.Errorf("a folder with nothing else is Llama's: bos %d, eos %d, put first: %v, %d tokens",
			bos, eos, tok.AddsBOS(), tok.VocabSize())
	}
	if got := tok.DecodeText(tok.Encode("a <s>b</s>")); got != "a b" {
		t.Errorf("control tokens: %q", got)
	}
}

// TestByteRunsDecodeAsTheReferences holds the two answers to bytes that are no text.
func TestByteRunsDecodeAsTheReferences(t *testing.T) {
	for name, want := range map[string]string{"llama2": "\uFFFD\uFFFD\uFFFDa",
		"sp_llama": "é\uFFFDa"} {
		tok := load(t, filepath.Join(familiesDir, name))
		ids := []uint32{tok.base[0xC3], tok.base[0xA9], tok.base[0xE2], tok.EncodePlain("a")[0]}
		if got := tok.Decode(ids); got != want && got != want[:len(want)-1]+" a" {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		checkStream(t, tok, ids)
	}
}
