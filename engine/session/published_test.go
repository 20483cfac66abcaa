//go:build published

package session

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/tokenizer"
)

var vocabularies = flag.String("vocabularies", "", "folder models of llama.cpp")

// TestPublishedVocabularies compares the tokenizers of llama.cpp's files without weights with the
// ids beside them, which are those of the originals. The files are not ours: `make published`
// fetches them.
func TestPublishedVocabularies(t *testing.T) {
	list, err := filepath.Glob(filepath.Join(*vocabularies, "*.gguf.inp"))
	if err != nil || len(list) < 10 {
		t.Fatalf("%d files in %q, error %v", len(list), *vocabularies, err)
	}
	for _, path := range list {
		path = strings.TrimSuffix(path, ".inp")
		t.Run(filepath.Base(path), func(t *testing.T) {
			tok, err := loadListed(t.Context(), path)
			if errors.Is(err, tokenizer.ErrUnsupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			texts, err := os.ReadFile(path + ".inp")
			if err != nil {
				t.Fatal(err)
			}
			ids, err := os.ReadFile(path + ".out")
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(string(ids), "\n"), "\n")
			const separator = "\n__ggml_vocab_test__\n"
			n := 0
			for i, text := range strings.Split(strings.TrimSuffix(string(texts), separator),
				separator) {
				var want []uint32
				for field := range strings.FieldsSeq(lines[i]) {
					id, err := strconv.ParseUint(field, 10, 32)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, uint32(id))
				}
				if strings.ContainsAny(text, "\u0300\u0301") {
					continue // llama.cpp does not normalize, the original does
				}
				if got := tok.EncodePlain(text); !slices.Equal(got, want) {
					t.Errorf("%q: %v, want %v", text, got, want)
				}
				n++
			}
			t.Logf("%d texts", n)
		})
	}
}
