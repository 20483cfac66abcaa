package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// TestHelpFits: every help text names every flag with its default and fits 80 columns, examples
// included.
func TestHelpFits(t *testing.T) {
	verbs := 0
	var walk func(commands []*cli.Command, path []string)
	walk = func(commands []*cli.Command, path []string) {
		for _, c := range commands {
			full := append(path[:len(path):len(path)], c.Name)
			text := must(t, append(full, "--help")...)
			verbs++
			for line := range strings.Lines(text) {
				line = strings.TrimRight(line, "\n")
				if utf8.RuneCountInString(line) > helpWidth {
					t.Errorf("%s: a line of more than %d columns: %s", c.Name, helpWidth, line)
				}
			}
			for _, f := range c.Flags {
				v, ok := f.(cli.VisibleFlag)
				if ok && v.IsVisible() && !strings.Contains(text, dashed(f.Names()[0])) {
					t.Errorf("%s: the help does not name --%s", c.Name, f.Names()[0])
				}
			}
			if c.Category == "" && len(path) == 0 {
				t.Errorf("%s stands under no heading", c.Name)
			}
			walk(c.Subcommands, full)
		}
	}
	walk(commandsOf(), nil)
	if verbs < 40 {
		t.Errorf("only %d verbs were found", verbs)
	}
}

func TestNearMissesAreSuggested(t *testing.T) {
	workspace(t)
	for line, says := range map[string]string{
		"smi -t x":                         "did you mean sim?",
		"trace inof x":                     "did you mean info?",
		"sim --windw 3":                    "did you mean --window?",
		"sim -t tiny.trace.arrow -d m1-mx": "did you mean m1-max?",
		"completion fihs":                  "did you mean fish?",
		"plan -t tiny.trace.arrow -d m1-max --dram 6G": "did you mean 6GiB or 6GB?",
		"replay -t x -m x --chunk 64kb":                "",
		"sim -t x -d m1-max --format htm":              "did you mean html?",
		"abracadabra":                                  "unknown verb",
		"sim --no-flag-is-called-like-this": "unknown flag " +
			"--no-flag-is-called-like-this",
	} {
		if o := command(words(t, line)...); o.code == exitOK || !strings.Contains(o.stderr, says) {
			t.Errorf("%s: exit %d, %q, want %q", line, o.code, o.stderr, says)
		}
	}
}

// A file of another kind is called what it is, with the verb that takes it.
func TestWrongKindsOfFilesAreNamed(t *testing.T) {
	workspace(t)
	linkFixture(t, "devicemodels/fio/testdata/grid.json", "grid.json")
	must(t, "device", "show", "m1-max") // a device file to get wrong
	write(t, "m1.device.yaml", must(t, "device", "show", "m1-max"))
	for line, says := range map[string]string{
		"sim -t tales.flash.safetensors -d m1-max": "is a flash image, not " +
			"an activation trace",
		"sim -t tiny.run.arrow -d m1-max": "is a Run, not an " +
			"activation trace",
		"sim -t m1.device.yaml -d m1-max": "is a device model, not " +
			"an activation trace",
		"sim -t tiny.trace.arrow -d tales.flash.safetensors": "is a flash image, not a " +
			"device model",
		"sim -t tiny.trace.arrow -d grid.json": "is an output of fio, " +
			"not a device model",
		"report tiny.trace.arrow": "is an activation trace, " +
			"not a Run",
		"generate -m tiny.trace.arrow Once": "is an activation trace, " +
			"not a flash image",
		"trace info tales.flash.safetensors": "is a flash image, not " +
			"an activation trace",
		"sweep tiny.trace.arrow -o x.jsonl": "is an activation trace, " +
			"not a scenario",
		"generate -m m1.device.yaml Once": "is a device model, not " +
			"a flash image",
		"replay -t tiny.trace.arrow -m tiny.run.arrow": "is a Run, not a flash " +
			"image",
		"device show tales.trace.arrow": "is an activation trace, " +
			"not a device model",
		"generate -m tales.flash.safetensors --oracle tiny.run.arrow": "is a Run, not an " +
			"activation trace",
	} {
		o := command(words(t, line)...)
		if o.code != exitInput || !strings.Contains(o.stderr, says) {
			t.Errorf("%s: exit %d, %q, want %q", line, o.code, o.stderr, says)
		}
	}
}

// TestCompletion asks the program for the words that may follow, as the scripts of shells do, and
// runs the script of bash.
func TestCompletion(t *testing.T) {
	ask := func(args ...string) string {
		t.Helper()
		c := exec.Command(os.Args[0], append(args, completing)...)
		c.Env = append(os.Environ(), asProgram+"=1")
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return string(out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "breakeven"}, {[]string{"trace"}, "whatif"}, {[]string{"sim", "--pre"},
			"--predicted"},
	} {
		if got := ask(c.args...); !strings.Contains(got, c.want) {
			t.Errorf("%v: %q is not among %q", c.args, c.want, got)
		}
	}
	for shell, says := range map[string]string{"bash": "complete -o default -F _windrow windrow",
		"zsh": "bashcompinit", "fish": "complete -c windrow"} {
		if script := must(t, "completion", shell); !strings.Contains(script, says) {
			t.Errorf("%s: no %q in\n%s", shell, says, script)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this host")
	}
	script := must(t, "completion", "bash") + `
windrow() { ` + asProgram + `=1 "$PROGRAM" "$@"; }
COMP_WORDS=(windrow break); COMP_CWORD=1; _windrow; echo "${COMPREPLY[@]}"
`
	c := exec.Command(bash, "-c", script)
	c.Env = append(os.Environ(), "PROGRAM="+os.Args[0])
	out, err := c.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "breakeven" {
		t.Errorf("bash completes break to %q, %v", out, err)
	}
}

func TestManualPage(t *testing.T) {
	page := must(t, "man")
	for _, says := range []string{".TH", "windrow", "breakeven", "overfetch"} {
		if !strings.Contains(page, says) {
			t.Errorf("no %q in the manual page", says)
		}
	}
}

// TestContinuedExamplesAreTheSame: a shell joins a broken example to the words it was made of.
func TestContinuedExamplesAreTheSame(t *testing.T) {
	list, _ := allExamples(commandsOf(), "windrow")
	broken := 0
	for _, e := range list {
		text := continued(e.line)
		if !strings.Contains(text, "\n") {
			continue
		}
		broken++
		joined := strings.Join(words(t, strings.ReplaceAll(text, "\\\n", "")), "|")
		if want := strings.Join(words(t, e.line), "|"); joined != want {
			t.Errorf("%s becomes %s", want, joined)
		}
	}
	if broken == 0 {
		t.Error("no example was broken")
	}
}
