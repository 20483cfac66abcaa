package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeCommands runs the commands that the README shows under "By hand", in order, in one
// folder.
func TestReadmeCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("measures this machine's disk for some seconds")
	}
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "## By hand")
	if !ok {
		t.Fatal("README.md has no section \"By hand\"")
	}
	t.Setenv(asProgram, "1")
	t.Chdir(t.TempDir())
	linkExamples(t)
	ran := 0
	for line := range strings.Lines(section) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "bin/windrow ")
		if !ok {
			continue
		}
		args := words(t, line)
		if args[0] == "probe" { // as in the README, but in a second and on a restless disk
			args = append(args, "--budget", "1s", "--max-drift", "1000")
		}
		measuring(t, command(args...), args)
		ran++
	}
	if ran < 8 {
		t.Errorf("only %d commands were found in the README", ran)
	}
}

// TestDocLinks checks that every relative link of the README and the documents leads to a file.
func TestDocLinks(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	studies, err := filepath.Glob(filepath.Join(root, "docs", "studies", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	docs = append(docs, studies...)
	links := regexp.MustCompile(`\]\(([^)#]+)\)`)
	checked := 0
	for _, name := range []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md",
		"examples/models/tales/README.md"} {
		docs = append(docs, filepath.Join(root, name))
	}
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range links.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			checked++
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s: link to %s: %v", filepath.Base(doc), m[1], err)
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d links were found", checked)
	}
}
