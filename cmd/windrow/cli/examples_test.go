package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// example is one line of a verb's help.
type example struct {
	verb, line string
}

// allExamples collects the examples of every verb in the order of the program's help, and the verbs
// without one.
func allExamples(commands []*cli.Command, path string) (list []example, without []string) {
	for _, c := range commands {
		full := path + " " + c.Name
		if len(c.Subcommands) > 0 {
			l, w := allExamples(c.Subcommands, full)
			list, without = append(list, l...), append(without, w...)
			continue
		}
		_, text, ok := strings.Cut(c.Description, "Examples:\n")
		if !ok {
			without = append(without, full)
			continue
		}
		for line := range strings.Lines(text) {
			list = append(list, example{full, strings.TrimSpace(line)})
		}
	}
	return list, without
}

func commandsOf() []*cli.Command {
	return newApp(&env{stdout: io.Discard, stderr: io.Discard}).Commands
}

func TestEveryVerbHasExamples(t *testing.T) {
	list, without := allExamples(commandsOf(), "windrow")
	if len(without) > 0 {
		t.Errorf("no examples: %s", strings.Join(without, ", "))
	}
	used := map[string]bool{}
	for _, e := range list {
		if !strings.HasPrefix(e.line, "windrow ") {
			t.Errorf("%s: the example %q does not start with the program's name", e.verb, e.line)
		}
		for _, f := range list {
			used[e.verb] = used[e.verb] || strings.HasPrefix(f.line+" ", e.verb+" ")
		}
		if !used[e.verb] {
			t.Errorf("%s: no example uses it", e.verb)
		}
	}
}

// TestExamplesRun runs every example of the help, in the order of the help, in one folder, as a
// reader would.
func TestExamplesRun(t *testing.T) {
	if testing.Short() {
		t.Skip("measures this machine's disk for some seconds")
	}
	t.Setenv(asProgram, "1") // of the children that "trace check" starts
	t.Chdir(t.TempDir())
	linkExamples(t)
	linkFixture(t, "devicemodels/fio/testdata/jsonplus.json", "device.json")
	linkFixture(t, "devicemodels/fio/testdata/grid.json", "grid.json")
	linkFixture(t, "traces/arrivals/testdata/azure-2024.csv", "azure.csv")
	linkFixture(t, "traces/arrivals/testdata/sharegpt.json", "chats.json")
	list, _ := allExamples(commandsOf(), "windrow")
	done := map[string]bool{} // several verbs show the same line
	noDirect := ""
	for _, e := range list {
		if done[e.line] {
			continue
		}
		done[e.line] = true
		args := words(t, e.line)[1:]
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if noDirect != "" && strings.Contains(e.verb+e.line, "here.device.yaml") {
				t.Skip("the probe before it was skipped: " + noDirect)
			}
			o := command(args...)
			if o.code == exitHost && (args[0] == "probe" || args[0] == "demo") {
				if args[0] == "probe" {
					noDirect = o.stderr
				}
				t.Skipf("this host cannot measure its disk: %s", o.stderr)
			}
			if o.code != exitOK {
				t.Errorf("%s: exit %d\n%s", e.line, o.code, o.stderr)
			}
		})
	}
}

// words splits a line as a shell would, knowing spaces and double quotes.
func words(t *testing.T, line string) []string {
	t.Helper()
	var list []string
	var word strings.Builder
	quoted, open := false, false
	for _, r := range line {
		switch {
		case r == '"':
			quoted, open = !quoted, true
		case r == ' ' && !quoted:
			if open {
				list = append(list, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		list = append(list, word.String())
	}
	if quoted {
		t.Fatalf("%q: a quote stays open", line)
	}
	return list
}
