package cli

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func testApp() *env { return &env{stdout: io.Discard, stderr: io.Discard} }

func TestReorder(t *testing.T) {
	app := newApp(testApp())
	for _, c := range [][2]string{
		{"", ""},
		{"sim", "sim"},
		{"sim a --json", "sim --json -- a"},
		{"sim a --window 3 b", "sim --window 3 -- a b"},
		{"sim a -k=3 b", "sim -k=3 -- a b"},
		{"sim a --window -3", "sim --window -3 -- a"},
		{"trace cat a --count 2", "trace cat --count 2 -- a"},
		{"trace cat --count 2 cat", "trace cat --count 2 -- cat"},
		{"trace --quiet cat a", "--quiet trace cat -- a"},
		{"trace cat a --progress never -q", "--progress never -q trace cat -- a"},
		{"--progress always sim a", "--progress always sim -- a"},
		{"generate -- --json", "generate -- --json"},
		{"generate a -- --json -n 3", "generate -- a --json -n 3"},
		{"generate -- --", "generate -- --"},
		{"generate -", "generate -- -"},
		{"generate sim", "generate -- sim"},
		{"nonsense sim --json", "--json -- nonsense sim"},
		{"sim --nonsense a", "sim --nonsense -- a"},
	} {
		got, err := reorder(app, strings.Fields(c[0]))
		if err != nil || strings.Join(got, " ") != c[1] {
			t.Errorf("%q became %q (%v), want %q", c[0], got, err, c[1])
		}
	}
	for line, says := range map[string]string{
		"sim a --window":             `--window needs a value; see "windrow sim --help"`,
		"generate Once -m":           `-m needs a value; see "windrow generate --help"`,
		"trace cat a --count -- b":   `--count needs a value; see "windrow trace cat --help"`,
		"device show x --progress":   `--progress needs a value; see "windrow device show --help"`,
		"generate -n -- Once upon a": `-n needs a value; see "windrow generate --help"`,
	} {
		if got, err := reorder(app, strings.Fields(line)); err == nil || err.Error() != says {
			t.Errorf("%q became %q, error %v, want %s", line, got, err, says)
		}
	}
}

// FuzzReorder checks for any list of arguments that none is lost or made up, that a value stays
// behind its flag, that arguments keep their order, and that a second pass changes nothing.
func FuzzReorder(f *testing.F) {
	for _, seed := range []string{"sim a --window 3 b", "trace cat --count 2 x --units",
		"generate -m i -n=4 Once -- -x", "--quiet device show m1-max --json", "record --limit"} {
		f.Add(strings.ReplaceAll(seed, " ", "\n"))
	}
	app := newApp(testApp())
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\n")
		got, err := reorder(app, args)
		if err != nil {
			if !lacksValue(app.Flags, app.Commands, args) {
				t.Errorf("%q: %v", args, err)
			}
			return
		}
		a, b := slices.Sorted(slices.Values(args)), slices.Sorted(slices.Values(got))
		if a, b = without(a, "--"), without(b, "--"); !slices.Equal(a, b) {
			t.Fatalf("%q became %q", args, got)
		}
		if again, err := reorder(app, got); err != nil || !slices.Equal(again, got) {
			t.Errorf("%q became %q and then %q (%v)", args, got, again, err)
		}
		// Every flag with a value that the addressed verb knows is still followed by it.
		flags, commands := app.Flags, app.Commands
		for i := 0; i < len(args) && args[i] != "--"; i++ {
			if next := find(commands, args[i]); next != nil {
				flags, commands = next.Flags, next.Subcommands
				continue
			}
			if !strings.HasPrefix(args[i], "-") || args[i] == "-" {
				commands = nil
				continue
			}
			flag := findFlag(flags, args[i])
			if flag == nil {
				flag = findFlag(app.Flags, args[i])
			}
			if !takesValue(flag, args[i]) || i+1 == len(args) {
				continue
			}
			if !follows(got, args[i], args[i+1]) {
				t.Errorf("%q became %q: %q is no longer behind %q", args, got, args[i+1], args[i])
			}
			i++
		}
	})
}

// lacksValue reports whether some argument is a flag of any verb that wants a value and is last or
// before "--": only then may reorder refuse.
func lacksValue(flags []cli.Flag, commands []*cli.Command, args []string) bool {
	for i, arg := range args {
		if (i+1 == len(args) || args[i+1] == "--") && strings.HasPrefix(arg, "-") &&
			takesValue(findFlag(flags, arg), arg) {
			return true
		}
	}
	for _, c := range commands {
		if lacksValue(c.Flags, c.Subcommands, args) {
			return true
		}
	}
	return false
}

func without(list []string, word string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == word })
}

// follows reports whether b stands directly behind an a somewhere in list.
func follows(list []string, a, b string) bool {
	for i := range len(list) - 1 {
		if list[i] == a && list[i+1] == b {
			return true
		}
	}
	return false
}
