package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/windrow-sim/windrow/internal/plain"
	"github.com/windrow-sim/windrow/internal/tell"
)

// progress shows how far long work is: a bar with rate and ETA on a terminal, a plain line every
// ten seconds elsewhere.
type progress struct {
	w         io.Writer
	label     string
	bar       bool // redraw one line
	off       bool
	begin     time.Time
	last      time.Time
	now       func() time.Time
	drawn     bool
	shown     bool // at least one line was printed
	at, total int  // of the last update
}

const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 10 * time.Second
)

// startProgress begins a stage of work.
func (e *env) startProgress(label string) *progress {
	p := &progress{w: e.stderr, label: plain.Line(label), now: e.now}
	p.begin = p.now()
	p.last = p.begin
	f, ok := e.stderr.(*os.File)
	terminal := ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	p.bar = terminal
	p.off = e.quiet || e.progress == "never"
	if e.progress == "always" && !terminal {
		p.last = p.begin.Add(-lineEvery) // the first line comes at once
	}
	return p
}

// update tells how much is done.
func (p *progress) update(done, total int) {
	if p.off {
		return
	}
	every := lineEvery
	if p.bar {
		every = barEvery
	}
	p.at, p.total = done, total
	now := p.now()
	if now.Sub(p.last) < every {
		return
	}
	p.last, p.shown = now, true
	line := p.line(done, total, now)
	if !p.bar {
		fmt.Fprintln(p.w, line)
		return
	}
	fmt.Fprintf(p.w, "\r%s\x1b[K", line)
	p.drawn = true
}

func (p *progress) line(done, total int, now time.Time) string {
	spent := now.Sub(p.begin)
	text := fmt.Sprintf("%s %d/%d", p.label, done, total)
	if done > 0 && total > 0 {
		left := time.Duration(float64(spent) / float64(done) * float64(total-done))
		if spent > 0 {
			text += fmt.Sprintf("  %.3g/s", float64(done)/spent.Seconds())
		}
		text += fmt.Sprintf("  ETA %s", left.Round(time.Second))
	}
	if p.bar && total > 0 {
		const width = 24
		full := min(width*done/total, width)
		text = fmt.Sprintf("[%s%s] %s", strings.Repeat("=", full), strings.Repeat(" ", width-full),
			text)
	}
	return text
}

// done ends the stage, with its total when something was shown of it.
func (p *progress) done() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	if p.shown {
		fmt.Fprintf(p.w, "%s %d/%d in %s\n", p.label, p.at, p.total,
			p.now().Sub(p.begin).Round(10*time.Millisecond))
	}
}

// tell is what a library is given to speak to; done ends its last stage.
func (e *env) tell() (t tell.Tell, done func()) {
	t = tell.Tell{Note: e.remark, Field: flagOf}
	t.Progress, done = e.stages()
	return t, done
}

// stages shows the progress of work that names its stages, as tell.Tell does. done ends the last
// one.
func (e *env) stages() (update func(stage string, at, total int), done func()) {
	var p *progress
	done = func() {
		if p != nil {
			p.done()
		}
	}
	update = func(stage string, at, total int) {
		if p == nil || at == 0 && (stage != p.label || p.at > 0) {
			done()
			if p = e.startProgress(stage); at == 0 {
				return // nothing to show yet
			}
		}
		p.label = stage
		p.update(at, total)
	}
	return update, done
}
