package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden files show a reviewer what changed; what must hold is in the tests beside them:
// TestHTMLTablesEqualJSON, TestTablesEqualComparison, TestTimelineGeometry.
func TestGolden(t *testing.T) {
	d := makeData(t, 16)
	page := parse(t, render(t, writeHTMLOf, d))
	var pieces bytes.Buffer
	for _, n := range append(find(page, "header"), find(page, "section")...) {
		if err := html.Render(&pieces, n); err != nil {
			t.Fatal(err)
		}
		pieces.WriteByte('\n')
	}
	for _, n := range find(page, "svg") {
		if attr(n, "class") == "timeline" {
			if err := html.Render(&pieces, n); err != nil {
				t.Fatal(err)
			}
			pieces.WriteByte('\n')
		}
	}
	for name, got := range map[string]string{
		"report.txt": render(t, writeTextOf, d), "report.md": render(t, writeMarkdownOf, d),
		"pieces.html": pieces.String(),
	} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got,
			"\n")); diff != "" {
			t.Errorf("%s differs; run the test with -update if it should:\n%s", name, diff)
		}
	}
}
