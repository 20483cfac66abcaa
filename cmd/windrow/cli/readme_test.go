package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReadmeCommands runs the commands that the README shows, in order, in one folder.
func TestReadmeCommands(t *testing.T) {
	if ran := runDocument(t, "README.md", command); ran < 10 {
		t.Errorf("only %d commands were found in the README", ran)
	}
}

// TestTutorialsRun runs the commands of every tutorial, each in a folder of its own.
func TestTutorialsRun(t *testing.T) {
	for _, name := range []string{"planner", "researcher", "validator"} {
		t.Run(name, func(t *testing.T) {
			if ran := runDocument(t, "docs/tutorials/"+name+".md", command); ran < 6 {
				t.Errorf("only %d commands were found", ran)
			}
		})
	}
}

// TestTutorialOnADiskThatCannotBeMeasured runs a tutorial where every probe is refused.
func TestTutorialOnADiskThatCannotBeMeasured(t *testing.T) {
	refused := 0
	runDocument(t, "docs/tutorials/validator.md", func(args ...string) outcome {
		if args[0] == "probe" {
			refused++
			return outcome{code: exitHost}
		}
		return command(args...)
	})
	if refused == 0 {
		t.Error("the tutorial measures no disk")
	}
}

// runDocument runs the commands in the code blocks of a document, as a reader would, and returns
// how many there are. A command that reads what a refused probe did not write is given another
// device.
func runDocument(t *testing.T, name string, run func(args ...string) outcome) (ran int) {
	t.Helper()
	if testing.Short() {
		t.Skip("measures this machine's disk for some seconds")
	}
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asProgram, "1")
	t.Chdir(t.TempDir())
	linkExamples(t)
	linkFixture(t, "devicemodels/fio/testdata/grid.json", "grid.json")
	for _, line := range codeLines(string(text)) {
		args := words(t, line)
		if args[0] == "probe" { // as in the document, but in a second and on a restless disk
			args = append(args, "--budget", "1s", "--max-drift", "1000")
		}
		measuring(t, run(args...), args)
		ran++
	}
	return ran
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
	tutorials, err := filepath.Glob(filepath.Join(root, "docs", "tutorials", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	docs = slices.Concat(docs, studies, tutorials)
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
