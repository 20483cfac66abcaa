package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/traces"
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
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "# ") {
				list = append(list, example{full, line})
			}
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
	for _, e := range list {
		if done[e.line] {
			continue
		}
		done[e.line] = true
		args := words(t, e.line)[1:]
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			measuring(t, command(args...), args)
		})
	}
}

// measuring checks the outcome of a command line that may measure this machine. A disk is as steady
// as it is, so that the verbs that describe one may say that this host cannot be measured (exit 4,
// with the reason). What follows in the test must not depend on that: a device file that was not
// written becomes the preset's, and a Run that was measured one of a steady disk.
func measuring(t *testing.T, o outcome, args []string) {
	t.Helper()
	out := ""
	if i := slices.Index(args, "-o"); i >= 0 {
		out = args[i+1]
	}
	switch {
	case o.code == exitHost && args[0] == "probe":
		t.Logf("this host cannot measure its disk: %s", o.stderr)
		if _, err := os.Stat(out); !os.IsNotExist(err) {
			t.Errorf("a refused probe left %s: %v", out, err)
		}
		write(t, out, standInDevice(t, args[1]))
	case o.code == exitValidation && args[0] == "validate":
		// How far times are off depends on this machine; decisions do not.
		if !strings.Contains(o.stdout, "Equal for every token and layer.") {
			t.Errorf("windrow %s: counters differ\n%s", strings.Join(args, " "), o.stdout)
		}
	case o.code == exitHost && args[0] == "demo":
		t.Logf("this host cannot measure its disk: %s", o.stderr)
	case o.code != exitOK:
		t.Errorf("windrow %s: exit %d\n%s", strings.Join(args, " "), o.code, o.stderr)
	case args[0] == "replay" && out != "":
		run, err := traces.ReadRun(t.Context(), out)
		if err != nil {
			t.Fatal(err)
		}
		if run.Meta.DriftPercent == nil {
			t.Fatalf("%s does not say how far the disk drifted", out)
		}
		*run.Meta.DriftPercent = steadyDrift
		if err := traces.WriteRun(out, run); err != nil {
			t.Fatal(err)
		}
	}
}

// standInDevice is the preset m1-max with the alignment that direct reads of a file have here, so
// that simulator and engine make the same requests on it.
func standInDevice(t *testing.T, path string) string {
	t.Helper()
	text := must(t, "device", "show", "m1-max")
	reader, err := flashio.Open(path, flashio.Options{})
	if err != nil { // a folder: nothing is read from it
		return text
	}
	defer reader.Close()
	const align = "align: 4KiB\n"
	if !strings.Contains(text, align) {
		t.Fatalf("the preset has another alignment:\n%s", text)
	}
	return strings.Replace(text, align, fmt.Sprintf("align: %v\n", max(reader.Mode().Align, 1)), 1)
}

// steadyDrift is that of a steady disk, in percent.
const steadyDrift = 2

// TestNoisyDisk: a verdict on a measurement during which the disk drifted by more than the limit is
// neither pass nor failure of the simulator, and a drift within the limit is none.
func TestNoisyDisk(t *testing.T) {
	workspace(t)
	run, err := traces.ReadRun(t.Context(), "tiny.run.arrow")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		drift float64
		limit string
		code  int
	}{{246, "100", exitValidation}, {11, "10", exitValidation}, {steadyDrift, "10", exitOK},
		{246, "300", exitOK}} {
		run.Meta.DriftPercent = &c.drift
		if err := traces.WriteRun("drifted.run.arrow", run); err != nil {
			t.Fatal(err)
		}
		o := command("validate", "tiny.run.arrow", "drifted.run.arrow", "--max-drift", c.limit)
		noisy := strings.Contains(o.stderr, "device too noisy: the device drifted by") &&
			strings.Contains(o.stderr, "measure again on an idle machine")
		if o.code != c.code || noisy != (c.code != exitOK) {
			t.Errorf("drift %g %% of %s %%: exit %d, want %d:\n%s", c.drift, c.limit, o.code,
				c.code,
				o.stderr)
		}
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
