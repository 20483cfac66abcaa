package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocCommandsParse checks that every command line in a code block of a document names verbs and
// flags that exist. Tutorials and the README are also run; studies take hours.
func TestDocCommandsParse(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range codeLines(string(text)) {
			checked++
			if why := wrongCommand(t, line); why != "" {
				t.Errorf("%s: %s\n\t%s", filepath.Base(path), why, line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 50 {
		t.Errorf("only %d commands were found in the documents", checked)
	}
	for _, bad := range []string{"sim --no-such-flag", "simulate -t x", "trace nothing x"} {
		if wrongCommand(t, bad) == "" {
			t.Errorf("%q is taken for a command", bad)
		}
	}
}

// codeLines returns the command lines of windrow in the code blocks of a document, without the
// program's name.
func codeLines(text string) (lines []string) {
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			inside = !inside
			continue
		}
		line = strings.TrimPrefix(line, "$ ")
		for _, name := range []string{"bin/windrow ", "windrow ", "./bin/windrow "} {
			if rest, ok := strings.CutPrefix(line, name); inside && ok {
				rest, _, _ = strings.Cut(rest, " #")
				for _, end := range []string{" > ", " | ", " && ", " \\"} {
					rest, _, _ = strings.Cut(rest, end)
				}
				lines = append(lines, strings.TrimSpace(rest))
			}
		}
	}
	return lines
}

// wrongCommand says what a command line names that does not exist; "" when it is right.
func wrongCommand(t *testing.T, line string) string {
	t.Helper()
	app := newApp(&env{})
	flags, commands := app.Flags, app.Commands
	for _, word := range words(t, line) {
		if word == "--" {
			return ""
		}
		if strings.HasPrefix(word, "-") && len(word) > 1 {
			if word != "--help" && word != "-h" && word != "--version" &&
				findFlag(append(flags, app.Flags...), word) == nil {
				return "unknown flag " + word
			}
			continue
		}
		if len(commands) > 0 {
			next := find(commands, word)
			if next == nil {
				return "unknown verb " + word
			}
			flags, commands = next.Flags, next.Subcommands
		}
	}
	return ""
}
