package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// clock is a time that the test moves.
type clock struct{ t time.Time }

func (c *clock) now() time.Time          { return c.t }
func (c *clock) advance(d time.Duration) { c.t = c.t.Add(d) }

func fakeProgress(mode string, quiet bool) (*progress, *clock, *bytes.Buffer) {
	var out bytes.Buffer
	c := &clock{time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}
	e := &env{stderr: &out, stdout: failingStdout{}, now: c.now, progress: mode, quiet: quiet}
	return e.startProgress("work (tokens)"), c, &out
}

// failingStdout is for code that must not print there.
type failingStdout struct{}

func (failingStdout) Write(b []byte) (int, error) { panic(fmt.Sprintf("%q on stdout", b)) }

func TestProgressLines(t *testing.T) {
	p, c, out := fakeProgress("auto", false)
	for i := range 99 { // 9.9 seconds
		c.advance(100 * time.Millisecond)
		p.update(i+1, 400)
	}
	if out.Len() > 0 {
		t.Errorf("within 10 s: %q", out)
	}
	c.advance(100 * time.Millisecond)
	p.update(100, 400)
	if got, want := out.String(), "work (tokens) 100/400  10/s  ETA 30s\n"; got != want {
		t.Errorf("after 10 s: %q, want %q", got, want)
	}
	out.Reset()
	c.advance(9 * time.Second)
	p.update(150, 400)
	if out.Len() > 0 {
		t.Errorf("9 s after a line: %q", out)
	}
	c.advance(time.Second)
	p.update(200, 400)
	if got, want := out.String(), "work (tokens) 200/400  10/s  ETA 20s\n"; got != want {
		t.Errorf("after 20 s: %q, want %q", got, want)
	}
	out.Reset()
	p.update(210, 400) // not shown, but known to the final line
	p.done()
	if got, want := out.String(), "work (tokens) 210/400 in 20s\n"; got != want {
		t.Errorf("at the end: %q, want %q", got, want)
	}
}

func TestProgressAlways(t *testing.T) {
	p, c, out := fakeProgress("always", false)
	p.update(0, 8) // no time and nothing done: neither rate nor division by zero
	if got, want := out.String(), "work (tokens) 0/8\n"; got != want {
		t.Errorf("first line: %q, want %q", got, want)
	}
	out.Reset()
	c.advance(time.Second)
	p.update(1, 8)
	if out.Len() > 0 {
		t.Errorf("a second after a line: %q", out)
	}
	p, _, out = fakeProgress("always", false)
	p.update(3, 0) // no total is known
	if got, want := out.String(), "work (tokens) 3/0\n"; got != want {
		t.Errorf("no total: %q, want %q", got, want)
	}
	p, _, out = fakeProgress("always", false)
	p.update(8, 8)
	if strings.Contains(out.String(), "Inf") || strings.Contains(out.String(), "NaN") {
		t.Errorf("in no time: %q", out)
	}
}

func TestProgressSilent(t *testing.T) {
	for _, c := range []struct {
		mode  string
		quiet bool
	}{{"never", false}, {"auto", true}, {"always", true}} {
		p, clock, out := fakeProgress(c.mode, c.quiet)
		clock.advance(time.Hour)
		p.update(1, 2)
		p.done()
		if out.Len() > 0 {
			t.Errorf("%+v: %q", c, out)
		}
	}
}

func TestProgressBar(t *testing.T) {
	p, c, out := fakeProgress("auto", false)
	p.bar = true // as on a terminal
	c.advance(50 * time.Millisecond)
	p.update(1, 4)
	if out.Len() > 0 {
		t.Errorf("within 0.1 s: %q", out)
	}
	c.advance(450 * time.Millisecond)
	p.update(1, 4)
	if got, want := out.String(), "\r[======                  ] work (tokens) 1/4  2/s  ETA "+
		"2s\x1b[K"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.advance(time.Second)
	p.update(9, 4) // more than promised must not break the bar
	if !strings.Contains(out.String(), "["+strings.Repeat("=", 24)+"]") {
		t.Errorf("%q", out)
	}
	out.Reset()
	p.done()
	if got, want := out.String(), "\r\x1b[Kwork (tokens) 9/4 in 1.5s\n"; got != want {
		t.Errorf("at the end: %q, want %q", got, want)
	}
	p, _, out = fakeProgress("auto", false)
	p.bar = true
	p.done()
	if out.Len() > 0 {
		t.Errorf("a bar that was never drawn was wiped: %q", out)
	}
}

// stdout is the same with and without progress and notes, which are on stderr or nowhere.
func TestProgressStaysOutOfStdout(t *testing.T) {
	workspace(t)
	for _, line := range []string{
		"trace stats tiny.trace.arrow", "trace stats tiny.trace.arrow --json",
		"record -m tales.flash.safetensors --prompts words.txt -n 2 -o x.trace.arrow",
		"pack examples/models/tales -o y.flash.safetensors",
		"synth model --like opt-125m --layers 1 -o z.flash.safetensors",
	} {
		loud := command(append([]string{"--progress", "always"}, words(t, line)...)...)
		silent := command(append([]string{"--quiet"}, forced(words(t, line))...)...)
		if loud.code != exitOK || loud.stdout != silent.stdout {
			t.Errorf("%s: exit %d; stdout changes with progress", line, loud.code)
		}
		if loud.stderr == "" {
			t.Errorf("%s: --progress always shows nothing", line)
		}
		if silent.stderr != "" {
			t.Errorf("%s: --quiet shows %q", line, silent.stderr)
		}
	}
}
