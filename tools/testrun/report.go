package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is a line of "go test -json" (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string // empty for what is of the package
	Output  string
}

// report prints events as "go test" without -v does: of packages that pass one line, of others the
// output of their failed tests.
type report struct {
	w        io.Writer
	packages map[string]*pkg
	tests    int
	skipped  map[string]int // by reason
}

// pkg is a package whose tests are running.
type pkg struct {
	own   []string            // lines of no test
	tests map[string][]string // lines of tests that have not ended
	order []string            // their names
	fails []string            // lines of failed tests
}

func newReport(w io.Writer) *report {
	return &report{w: w, packages: map[string]*pkg{}, skipped: map[string]int{}}
}

// read takes events until their end. What is no event is printed as it is.
func (r *report) read(events io.Reader) error {
	in := bufio.NewReader(events)
	for {
		line, err := in.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil || e.Action == "":
			r.w.Write(line)
		default:
			r.take(&e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e *event) {
	if e.Action == "build-output" { // of no package in particular
		io.WriteString(r.w, e.Output)
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &pkg{tests: map[string][]string{}}
		r.packages[e.Package] = p
	}
	if e.Test == "" {
		r.ofPackage(p, e)
		return
	}
	switch e.Action {
	case "run":
		p.order = append(p.order, e.Test)
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") {
			p.tests[e.Test] = append(p.tests[e.Test], e.Output)
		}
	case "pass", "fail", "skip":
		r.tests++
		switch lines := p.tests[e.Test]; e.Action {
		case "fail":
			p.fails = append(p.fails, lines...)
		case "skip":
			r.skipped[reason(lines)]++
		}
		delete(p.tests, e.Test)
	}
}

// ofPackage takes an event of no test. The last one of a package prints it.
func (r *report) ofPackage(p *pkg, e *event) {
	switch e.Action {
	case "output":
		p.own = append(p.own, e.Output)
	case "pass", "skip":
		// Other lines were written to stdout by the tests themselves.
		for _, line := range p.own {
			if strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t") {
				io.WriteString(r.w, line)
			}
		}
		delete(r.packages, e.Package)
	case "fail":
		r.failed(p)
		delete(r.packages, e.Package)
	}
}

// failed prints the failed tests of a package, and those that had not ended: after a panic nothing
// else tells what it was.
func (r *report) failed(p *pkg) {
	lines := p.fails
	for _, name := range p.order {
		lines = append(lines, p.tests[name]...)
	}
	for _, line := range append(lines, p.own...) {
		io.WriteString(r.w, line)
	}
}

// end prints packages that have not ended, as after an interrupt, and the last line.
func (r *report) end() {
	for _, name := range sortedKeys(r.packages) {
		r.failed(r.packages[name])
	}
	total := 0
	for _, n := range r.skipped {
		total += n
	}
	if total == 0 {
		fmt.Fprintf(r.w, "%d tests ran, none was skipped\n", r.tests)
		return
	}
	reasons := sortedKeys(r.skipped)
	slices.SortStableFunc(reasons, func(a, b string) int { return r.skipped[b] - r.skipped[a] })
	for i, text := range reasons {
		reasons[i] = fmt.Sprintf("%s (%d)", text, r.skipped[text])
	}
	fmt.Fprintf(r.w, "%d of %d tests were skipped: %s\n", total, r.tests, strings.Join(reasons,
		" | "))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// logged is a line of t.Log, t.Skip and so on.
var logged = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)`)

// reason is the last text that a skipped test logged, on one line.
func reason(lines []string) string {
	var words []string
	for _, line := range lines {
		if m := logged.FindStringSubmatch(line); m != nil {
			words = strings.Fields(m[1])
		} else if words != nil && !strings.Contains(line, "--- SKIP: ") {
			words = append(words, strings.Fields(line)...) // a second line of the text
		}
	}
	if len(words) == 0 {
		return "no reason given"
	}
	return strings.Join(words, " ")
}
