package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// What is there is not replaced unasked, and the file stays as it was.
func TestForce(t *testing.T) {
	workspace(t)
	line := words(t, "sim -t tiny.trace.arrow -d m1-max -o a.run.arrow")
	must(t, line...)
	before := content(t, "a.run.arrow")
	o := command(append(line, "--window", "1")...)
	if o.code != exitUsage || !strings.Contains(o.stderr, "a.run.arrow is there already") ||
		!strings.Contains(o.stderr, "--force") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if string(content(t, "a.run.arrow")) != string(before) {
		t.Error("the file was changed")
	}
	must(t, append(line, "--window", "1", "--force")...)
	if string(content(t, "a.run.arrow")) == string(before) {
		t.Error("the file was not replaced")
	}
}

// clean removes what dead processes left, and nothing else.
func TestClean(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"x.4194305-0.partial", "results.jsonl.partial", "x",
		"a.partial.run.arrow"} {
		write(t, name, "text")
	}
	for _, dry := range []bool{true, false} {
		line := []string{"clean", "--json"}
		if dry {
			line = append(line, "--dry-run")
		}
		var doc struct{ Result cleaned }
		if err := json.Unmarshal([]byte(must(t, line...)), &doc); err != nil {
			t.Fatal(err)
		}
		r := doc.Result
		if r.Removed != 4 || r.DryRun != dry || len(r.Files) != 3 {
			t.Errorf("%+v", r)
		}
		if _, err := os.Stat("x.4194305-0.partial"); (err == nil) != dry {
			t.Errorf("dry run %v: %v", dry, err)
		}
	}
	for _, name := range []string{"results.jsonl.partial", "x", "a.partial.run.arrow"} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	if out := must(t, "clean"); !strings.Contains(out, "kept, to be gone on with") {
		t.Errorf("%s", out)
	}
	if o := command("clean", "missing"); o.code != exitInput ||
		!strings.Contains(o.stderr, "missing") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}
