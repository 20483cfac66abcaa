package tokenizer

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/input/inputtest"
)

// TestAbsurdNumbersOfTokenizers replaces numbers of every family's tokenizer.json by absurd ones:
// all but those of the vocabulary, of which it takes the first and the last. It is refused by the
// file's name, or the tokenizer gives back what it reads, by ids that it has.
func TestAbsurdNumbersOfTokenizers(t *testing.T) {
	paths, err := filepath.Glob("testdata/families/*/tokenizer.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no tokenizers: %v", err)
	}
	scores := regexp.MustCompile(`^model\.vocab\[[0-9]+\]\[1\]$`)
	dir := t.TempDir()
	refused, taken := 0, 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		config, err := os.ReadFile(filepath.Join(filepath.Dir(path), "tokenizer_config.json"))
		if err != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), config,
			0o600); err != nil {
			t.Fatal(err)
		}
		all := inputtest.JSON(t, text)
		vocabulary := func(n inputtest.Number) bool {
			return strings.HasPrefix(n.Path, "model.vocab") || n.Quoted
		}
		numbers := slices.DeleteFunc(slices.Clone(all), vocabulary)
		for _, n := range []inputtest.Number{all[0], all[len(all)-1], all[len(all)/2]} {
			if vocabulary(n) {
				numbers = append(numbers, n)
			}
		}
		for _, n := range numbers {
			for _, absurd := range inputtest.Absurd() {
				name := path + ": " + n.Path + " = " + absurd
				if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"),
					n.Replaced(text, absurd), 0o600); err != nil {
					t.Fatal(err)
				}
				tok, err := Load(t.Context(), dir)
				if err != nil {
					refused++
					if !strings.Contains(err.Error(), "tokenizer") || !errors.Is(err,
						ErrFormat) && !errors.Is(err, ErrUnsupported) {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				taken++
				// Types of sequences are of pairs of texts, which no one asks for, and the file's
				// version is not read. A score may be any number.
				free := strings.HasSuffix(n.Path, "type_id") || n.Path == "version" ||
					scores.MatchString(n.Path)
				if !free && slices.Contains(inputtest.Impossible(), absurd) {
					t.Errorf("%s: is accepted", name)
				}
				ids := tok.Encode("a b")
				for _, id := range ids {
					if int(id) >= tok.VocabSize() {
						t.Errorf("%s: id %d of %d", name, id, tok.VocabSize())
					}
				}
				tok.Decode(ids)
			}
		}
	}
	if refused < 500 {
		t.Errorf("%d refused, %d taken", refused, taken)
	}
}
