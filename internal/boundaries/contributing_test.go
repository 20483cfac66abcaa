package boundaries

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestContributingIsTrue: the files and tests that CONTRIBUTING.md names exist. NAME and VERB stand
// for any file beside the others; a bare file name belongs to the folder named last.
func TestContributingIsTrue(t *testing.T) {
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	walkSources(t, func(_, file string) {
		src, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(src, -1) {
			tests[string(m[1])] = true
		}
	}, true)
	fileName := regexp.MustCompile(`\.(go|py|yaml|txt|args)$`)
	files, named, folder := 0, 0, "."
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(text), -1) {
		name := m[1]
		switch {
		case strings.HasPrefix(name, "Test"):
			if named++; !tests[name] {
				t.Errorf("there is no test %s", name)
			}
		case strings.ContainsAny(name, " :") || strings.HasPrefix(name, "-"):
			// a command or a flag
		case strings.Contains(name, "/") || fileName.MatchString(name):
			pattern := strings.NewReplacer("NAME", "*", "VERB", "*").Replace(name)
			if !strings.Contains(name, "/") {
				pattern = filepath.Join(folder, pattern)
			}
			found, err := filepath.Glob(filepath.Join("../..", pattern))
			if err != nil || len(found) == 0 {
				t.Errorf("there is no %s: %v", pattern, err)
				continue
			}
			files++
			if folder = pattern; filepath.Ext(name) != "" {
				folder = filepath.Dir(pattern)
			}
		}
	}
	if files < 30 || named < 15 {
		t.Errorf("only %d files and %d tests were found in the text", files, named)
	}
}
