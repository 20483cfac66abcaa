//go:build unix

package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// put returns a maker of an input from the text that would be there, for replaced.
func put(change func(text string) string) func(t testing.TB, path, instead string) {
	return func(t testing.TB, path, instead string) {
		t.Helper()
		text, err := os.ReadFile(instead)
		if err != nil {
			text = []byte("{}") // one that a folder may have
		}
		if err := os.WriteFile(path, []byte(change(string(text))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestField_A7_PackedInputs: every verb names the compression of every file that it reads, with the
// command that unpacks it.
func TestField_A7_PackedInputs(t *testing.T) {
	readerWorkspace(t)
	compress := put(func(text string) string { return "\x28\xb5\x2f\xfd" + text })
	for _, line := range readers {
		if strings.HasPrefix(line, "doctor ") || strings.HasPrefix(line, "probe ") {
			continue // these read any file's bytes
		}
		for i := range inBraces.FindAllString(line, -1) {
			line := replaced(t, line, i, compress)
			o := command(words(t, line)...)
			if o.code != exitInput || !strings.Contains(o.stderr, "zstd -dc") {
				t.Errorf("%s: exit %d\n%s", line, o.code, o.stderr)
			}
		}
	}
}

// TestField_N63_MarkedInputs: a byte order mark before a text that a verb reads changes nothing.
func TestField_N63_MarkedInputs(t *testing.T) {
	readerWorkspace(t)
	same := put(func(text string) string { return text })
	mark := put(func(text string) string { return "\xef\xbb\xbf" + text })
	// These measure, so that no two of their results are alike.
	measures := []string{"probe", "demo", "validate", "doctor"}
	text := func(input string) bool {
		return slices.ContainsFunc([]string{".json", ".yaml", ".csv", ".txt"},
			func(suffix string) bool { return strings.Contains(input, suffix) })
	}
	for _, line := range readers {
		verb, _, _ := strings.Cut(line, " ")
		for i, input := range inBraces.FindAllString(line, -1) {
			if !text(input) || slices.Contains(measures, verb) {
				continue
			}
			plain, marked := replaced(t, line, i, same), replaced(t, line, i, mark)
			want, got := command(words(t, plain)...), command(words(t, marked)...)
			if got.code != want.code {
				t.Errorf("%s: exit %d, without the mark %d\n%s%s", marked, got.code, want.code,
					got.stderr, want.stderr)
			}
		}
	}
}

// TestField_N63_F22_Texts: texts and prompts with a byte order mark give the same numbers and
// words. As text, the mark took perplexity from 12.25 to 248.5.
func TestField_N63_F22_Texts(t *testing.T) {
	workspace(t)
	const text = "Once upon a time there was a cat. The cat sat on the mat.\n"
	perplexity := regexp.MustCompile(`"perplexity": [0-9.]+`)
	var found [2]string
	for i, mark := range []string{"", "\xef\xbb\xbf"} {
		write(t, "text.txt", mark+text)
		found[i] = perplexity.FindString(must(t, "eval", "-m", "tales.flash.safetensors", "--text",
			"text.txt", "--json")) +
			must(t, "generate", "-m", "tales.flash.safetensors", "-n", "3", "--prompts", "text.txt")
	}
	if found[0] != found[1] || !strings.HasPrefix(found[0], `"perplexity"`) {
		t.Errorf("without and with the mark:\n%s\n%s", found[0], found[1])
	}
}
