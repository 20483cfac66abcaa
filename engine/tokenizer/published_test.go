//go:build published

package tokenizer

import (
	"flag"
	"path/filepath"
	"testing"
)

var publishedDir = flag.String("published", "", "folder of tools/tokenizer_vectors/published.py")

// TestPublished compares published tokenizers with their reference. Their files are not ours:
// `make published` fetches them.
func TestPublished(t *testing.T) {
	list, err := filepath.Glob(filepath.Join(*publishedDir, "*", "vectors.json"))
	if err != nil || len(list) < 6 {
		t.Fatalf("%d tokenizers in %q, error %v", len(list), *publishedDir, err)
	}
	texts := familyTexts(t)
	for _, path := range list {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var v familyVectors
			readJSON(t, path, &v)
			if v.Mixed == nil {
				t.Fatal("no mixed texts")
			}
			tok := load(t, dir)
			checkFamily(t, tok, v, texts)
			t.Logf("%d tokens, class %s, %d and %d texts, %d lists of ids", tok.VocabSize(),
				v.Class, len(v.IDs), len(v.Mixed), len(v.Decode))
		})
	}
}
