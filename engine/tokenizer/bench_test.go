package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchText is the prompts of examples/prompts, about 9 KB.
func benchText(b *testing.B) string {
	b.Helper()
	names, err := filepath.Glob("../../examples/prompts/*.txt")
	if err != nil || len(names) == 0 {
		b.Fatalf("no prompts: %v", err)
	}
	var all strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

func BenchmarkEncode(b *testing.B) {
	text := benchText(b)
	for _, cached := range []bool{true, false} {
		b.Run(fmt.Sprintf("cached=%v", cached), func(b *testing.B) {
			tok := loadOPT(b)
			var ids []uint32
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if !cached {
					tok.bpe.words = nil
				}
				ids = tok.appendText(ids[:0], text)
			}
		})
	}
}

// BenchmarkFamilies gives the speed of each kind, with the cache of words full. Vocabularies of a
// few hundred tokens make more tokens and more merges of a text than real ones, so these are lower
// ends.
func BenchmarkFamilies(b *testing.B) {
	text := benchText(b)
	for _, name := range families(b) {
		tok := load(b, filepath.Join(familiesDir, name))
		ids := tok.EncodePlain(text)
		b.Run(name+"/encode", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				ids = tok.appendText(ids[:0], text)
			}
		})
		b.Run(name+"/decode", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.Decode(ids)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	text := benchText(b)
	tok := loadOPT(b)
	ids := tok.EncodePlain(text)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.Decode(ids)
	}
}

func BenchmarkScan(b *testing.B) {
	text := benchText(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for rest := text; rest != ""; {
			rest = rest[wordLen(rest):]
		}
	}
}

// BenchmarkMerge shows where mergeLong overtakes mergeShort: the reason of shortWord.
func BenchmarkMerge(b *testing.B) {
	tok := loadOPT(b)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{4, 8, 16, 24, 32, 64, 256} {
		var word []uint32
		for range n {
			word = append(word, tok.base["etaoinshrdlu"[rng.IntN(12)]])
		}
		for name, merge := range map[string]func([]uint32) []uint32{"short": tok.mergeShort,
			"long": tok.mergeLong} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				buf := make([]uint32, n)
				b.SetBytes(int64(n))
				for b.Loop() {
					copy(buf, word)
					merge(buf)
				}
			})
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		loadOPT(b)
	}
}
