package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStreamHoldsBackUnfinishedCharacters(t *testing.T) {
	tok := loadOPT(t)
	s := tok.NewStream()
	var ids []uint32
	for i := range len("é€𝒳!") {
		ids = append(ids, tok.base["é€𝒳!"[i]])
	}
	var got []string
	for _, id := range ids {
		got = append(got, s.Next(id))
	}
	if want := "|é|||€||||𝒳|!"; strings.Join(got, "|") != want {
		t.Errorf("Next gave %q, want %q", strings.Join(got, "|"), want)
	}
	if rest := s.Flush(); rest != "" {
		t.Errorf("Flush gave %q with nothing pending", rest)
	}
	s.Next(ids[0])
	if got := s.Flush() + s.Next(ids[9]); got != replacement+"!" {
		t.Errorf("cut character gave %q", got)
	}
}

func TestControlTokens(t *testing.T) {
	tok := loadOPT(t)
	ids := tok.Encode("a<pad> </s>b<s>")
	if got := tok.Decode(ids); got != "</s>a<pad> </s>b<s>" {
		t.Errorf("Decode: %q", got)
	}
	if got := tok.DecodeText(ids); got != "a b<s>" {
		t.Errorf("DecodeText: %q (<s> is no special token of this folder)", got)
	}
	s := tok.NewStream()
	s.SkipControl = true
	var out strings.Builder
	for _, id := range ids {
		out.WriteString(s.Next(id))
	}
	if got := out.String() + s.Flush(); got != "a b<s>" {
		t.Errorf("Stream: %q", got)
	}
}

func TestDecodeUnknownID(t *testing.T) {
	tok := loadOPT(t)
	half := tok.base["é"[0]]
	if got := tok.Decode([]uint32{half, 1000, 1<<32 - 1}); got != strings.Repeat(replacement, 3) {
		t.Errorf("got %q", got)
	}
}

func FuzzStream(f *testing.F) {
	tok := loadOPT(f)
	f.Add([]byte("\xe2\x82\xac\xe2\x82x\xf0\x9f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var ids []uint32
		for i, b := range data {
			id := tok.base[b]
			if i%5 == 4 {
				id = uint32(b) * 4 // a token of the vocabulary, or one just beyond it
			}
			ids = append(ids, id)
		}
		s := tok.NewStream()
		var out strings.Builder
		for _, id := range ids {
			piece := s.Next(id)
			if !utf8.ValidString(piece) {
				t.Errorf("Next(%d) = %q: half a character", id, piece)
			}
			out.WriteString(piece)
		}
		if got, want := out.String()+s.Flush(), tok.Decode(ids); got != want {
			t.Errorf("stream %q, whole %q", got, want)
		}
	})
}
