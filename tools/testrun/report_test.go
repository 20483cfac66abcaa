package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// source is a module with a test of every outcome, in packages that pass, fail, panic, have no
// tests and do not compile.
var source = map[string]string{
	"go.mod": "module m\n\ngo 1.24\n",
	"good/a_test.go": `package good
import ("fmt"; "testing")
func TestPasses(t *testing.T) { fmt.Println("noise"); t.Log("not shown") }
func TestSkips(t *testing.T) { t.Skip("no fio here") }
func TestSkipsToo(t *testing.T) { t.Log("before"); t.Skip("no fio here") }
func TestParts(t *testing.T) {
	t.Run("one", func(t *testing.T) { t.Skipf("two\nlines") })
	t.Run("two", func(t *testing.T) { t.SkipNow() })
}`,
	"bad/a_test.go": `package bad
import "testing"
func TestPasses(t *testing.T) { t.Log("not shown") }
func TestFails(t *testing.T) { t.Error("one is not two") }
func TestPartFails(t *testing.T) {
	t.Run("good", func(t *testing.T) {})
	t.Run("bad", func(t *testing.T) { t.Error("a part") })
}`,
	"panics/a_test.go": `package panics
import "testing"
func TestPanics(t *testing.T) { panic("the sky falls") }`,
	"exits/a_test.go": `package exits
import ("os"; "testing")
func TestExits(t *testing.T) { os.Exit(7) }`,
	"none/a.go":        "package none\n",
	"broken/a_test.go": "package broken\nvar x int = \"text\"\n",
}

// ran runs the tests of packages of the module.
func ran(t *testing.T, packages ...string) (code int, output string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range source {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "")
	var out, errs bytes.Buffer
	code = run(append([]string{"go", "test"}, packages...), &out, &errs)
	return code, out.String() + errs.String()
}

// withoutTimes makes the output of two runs comparable.
func withoutTimes(text string) string {
	return regexp.MustCompile(`\d+\.\d+s|\(cached\)|0x[0-9a-f]+`).ReplaceAllString(text, "TIME")
}

func TestGoodPackages(t *testing.T) {
	code, output := ran(t, "./good", "./none")
	lines := strings.SplitAfter(withoutTimes(output), "\n")
	slices.Sort(lines[:2]) // packages are printed as they end
	want := "?   \tm/none\t[no test files]\nok  \tm/good\tTIME\n" +
		"4 of 6 tests were skipped: no fio here (2) | no reason given (1) | two lines (1)\n"
	if got := strings.Join(lines, ""); code != 0 || got != want {
		t.Errorf("exit %d\n%s\nwant\n%s", code, got, want)
	}
}

// TestBadPackages: failures are shown with what "go test" shows of them, and its exit code.
func TestBadPackages(t *testing.T) {
	for name, c := range map[string]struct {
		says, not []string
	}{
		"bad": {[]string{"--- FAIL: TestFails", "a_test.go:4: one is not two", "FAIL\tm/bad",
			"--- FAIL: TestPartFails/bad", "a_test.go:7: a part",
			"5 tests ran, none was skipped"}, []string{"not shown", "=== RUN", "--- PASS"}},
		"panics": {[]string{"panic: the sky falls", "goroutine ", "FAIL\tm/panics"}, nil},
		"exits":  {[]string{"FAIL\tm/exits"}, nil},
		"broken": {[]string{"cannot use \"text\"", "FAIL\tm/broken"}, nil},
		"absent": {[]string{"absent"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			code, output := ran(t, "./"+name)
			if code != 1 {
				t.Errorf("exit %d\n%s", code, output)
			}
			for _, says := range c.says {
				if !strings.Contains(output, says) {
					t.Errorf("%q is not in\n%s", says, output)
				}
			}
			for _, not := range c.not {
				if strings.Contains(output, not) {
					t.Errorf("%q is in\n%s", not, output)
				}
			}
		})
	}
}

// TestInterruptedTests: tests that had not ended when the events end are shown.
func TestInterruptedTests(t *testing.T) {
	var events, out bytes.Buffer
	enc := json.NewEncoder(&events)
	for _, e := range []event{{"run", "m", "TestSlow", ""},
		{"output", "m", "TestSlow", "    a_test.go:3: as far as this\n"}} {
		if err := enc.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	events.WriteString("no event\n{\"half\":")
	r := newReport(&out)
	if err := r.read(&events); err != nil {
		t.Fatal(err)
	}
	r.end()
	want := "no event\n{\"half\":    a_test.go:3: as far as this\n0 tests ran, none was skipped\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestCommandThatIsNotThere(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"no such command", "test"}, &out, &errs); code != 1 ||
		!strings.Contains(errs.String(), "no such command") {
		t.Errorf("exit %d, %q", code, errs.String())
	}
}
