package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// plainMerge is BPE on strings, without ids, tables or lists: the specification of mergeShort and
// mergeLong.
func plainMerge(t *Tokenizer, word string) []string {
	merges := mergeList(t)
	var parts []string
	for i := range len(word) {
		parts = append(parts, string(byteRune(word[i])))
	}
	for {
		best, at := len(merges), -1
		for i := 1; i < len(parts); i++ {
			if r := slices.Index(merges, parts[i-1]+" "+parts[i]); r >= 0 && r < best {
				best, at = r, i-1
			}
		}
		if at < 0 {
			return parts
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
}

// mergeList returns the merges in the form of merges.txt.
func mergeList(t *Tokenizer) []string {
	var out []string
	for _, p := range t.merges.pairs {
		out = append(out, t.Token(p.left)+" "+t.Token(p.right))
	}
	return out
}

// spell returns the spelling of ids.
func spell(t *Tokenizer, ids []uint32) []string {
	var out []string
	for _, id := range ids {
		out = append(out, t.Token(id))
	}
	return out
}

// checkMerge compares both loops with the plain one.
func checkMerge(t *testing.T, tok *Tokenizer, word string) {
	t.Helper()
	want := plainMerge(tok, word)
	for name, merge := range map[string]func([]uint32) []uint32{"mergeShort": tok.mergeShort,
		"mergeLong": tok.mergeLong} {
		var symbols []uint32
		for i := range len(word) {
			symbols = append(symbols, tok.base[word[i]])
		}
		if got := spell(tok, merge(symbols)); !slices.Equal(got, want) {
			t.Errorf("%s(%q) = %q, want %q", name, word, got, want)
		}
	}
}

// tangled is a vocabulary over a and b whose merges are in an order that no training gives:
// products before the pairs that make them, and several ways to one product.
func tangled(t testing.TB) *Tokenizer {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	tokens, known := byteTokens(), []string{"a", "b"}
	var merges []string
	for len(merges) < 60 {
		left, right := known[rng.IntN(len(known))], known[rng.IntN(len(known))]
		text := left + right
		if slices.Contains(merges, left+" "+right) || len(text) > 9 {
			continue
		}
		merges = append(merges, left+" "+right)
		if !slices.Contains(known, text) {
			known = append(known, text)
			tokens = append(tokens, text)
		}
	}
	rng.Shuffle(len(merges), func(i, j int) { merges[i], merges[j] = merges[j], merges[i] })
	dir := t.TempDir()
	writeModel(t, dir, tokens, strings.Join(merges, "\n"))
	return load(t, dir)
}

// byteTokens are the 256 bytes.
func byteTokens() []string {
	var out []string
	for b := range 256 {
		out = append(out, string(byteRune(byte(b))))
	}
	return out
}

func TestMergeLoopsAgreeOnTangledMerges(t *testing.T) {
	tok := tangled(t)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		word := make([]byte, 1+rng.IntN(40))
		for i := range word {
			word[i] = "ab"[rng.IntN(2)]
		}
		checkMerge(t, tok, string(word))
	}
}

func TestMergeLoopsAgreeOnVectors(t *testing.T) {
	tok := loadOPT(t)
	seen := make(map[string]bool)
	for _, v := range readVectors(t).Opt {
		for _, w := range words(v.Text) {
			if !seen[w] {
				seen[w] = true
				checkMerge(t, tok, w)
			}
		}
	}
}

func FuzzMerge(f *testing.F) {
	tok, odd := loadOPT(f), tangled(f)
	f.Add("the miller's daughter")
	f.Add("abbabaababbabaababbabaababba")
	f.Fuzz(func(t *testing.T, word string) {
		if len(word) == 0 || len(word) > 200 {
			return
		}
		checkMerge(t, tok, word)
		checkMerge(t, odd, word)
	})
}

func FuzzRoundTrip(f *testing.F) {
	tok := loadOPT(f)
	for _, v := range readVectors(f).Opt {
		f.Add(v.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids := tok.EncodePlain(text)
		got := tok.Decode(ids)
		if utf8.ValidString(text) && got != text {
			t.Errorf("%q came back as %q", text, got)
		}
		if !utf8.ValidString(got) {
			t.Errorf("%q came back as %q, which is not UTF-8", text, got)
		}
		if again := tok.EncodePlain(text); !slices.Equal(again, ids) {
			t.Errorf("%q: %v, then %v from the cache", text, ids, again)
		}
	})
}

// TestCacheIsBounded encodes more words than the cache holds and checks that the first ones still
// come out right.
func TestCacheIsBounded(t *testing.T) {
	tok := loadOPT(t)
	rng := rand.New(rand.NewPCG(5, 6))
	var text strings.Builder
	for range 2 * cachedWords {
		text.WriteByte(' ')
		for range 6 {
			text.WriteByte(byte('a' + rng.IntN(26)))
		}
	}
	ids := tok.EncodePlain(text.String())
	if n := len(tok.bpe.words); n > cachedWords || n == 0 {
		t.Errorf("the cache holds %d words, the limit is %d", n, cachedWords)
	}
	used := 0
	for _, at := range tok.bpe.words {
		used += int(at.to - at.from)
	}
	if used != len(tok.bpe.arena) {
		t.Errorf("the arena holds %d ids, the words in the cache have %d", len(tok.bpe.arena), used)
	}
	if got := tok.Decode(ids); got != text.String() {
		t.Error("the text did not come back")
	}
	if got, want := tok.Encode("I like you."), loadOPT(t).Encode("I like you."); !slices.Equal(got,
		want) {
		t.Errorf("%v with a full cache, %v with an empty one", got, want)
	}
}

func TestConcurrentEncode(t *testing.T) {
	tok := loadOPT(t)
	list := readVectors(t).Opt
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { checkVectors(t, tok, list) })
	}
	wg.Wait()
}
