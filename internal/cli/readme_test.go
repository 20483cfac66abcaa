package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeCommands runs the commands that the README shows under "By hand", in order, in one folder.
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
		if args[0] == "probe" { // as in the README, but in two seconds and on a disk of any temper
			args = append(args, "--budget", "2s", "--file-size", "64MiB", "--max-drift", "1000")
		}
		o := command(args...)
		if o.code == exitHost && args[0] == "probe" {
			t.Skipf("this host cannot measure its disk: %s", o.stderr)
		}
		if o.code != exitOK {
			t.Fatalf("bin/windrow %s: exit %d\n%s", line, o.code, o.stderr)
		}
		ran++
	}
	if ran < 8 {
		t.Errorf("only %d commands were found in the README", ran)
	}
}
