package report

import (
	"fmt"
	"io"
	"strings"
)

// WriteText writes the short form for a terminal: verdict, warnings, facts, the summary tables and
// the caller's own.
func WriteText(w io.Writer, d *Data) error {
	c, err := d.Contents()
	if err != nil {
		return err
	}
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(printable(fmt.Sprintf(format, args...)) + "\n")
	}
	line("%s", d.Title)
	for _, s := range []string{d.Tool, d.Generated} {
		if s != "" {
			line("%s", s)
		}
	}
	if c.Verdict != "" {
		line("verdict: %s", c.Verdict)
	}
	for _, r := range c.Reasons {
		line("  because: %s", r)
	}
	for _, s := range c.Warnings {
		line("warning: %s", s)
	}
	for _, f := range c.Facts {
		line("%s: %s", f.Key, f.Value)
	}
	for _, s := range append(c.Summary[:len(c.Summary):len(c.Summary)], d.Tables...) {
		b.WriteByte('\n')
		line("%s", s.Title)
		if err := s.Table.Text(&b); err != nil {
			return err
		}
	}
	if len(c.Sanity) > 0 {
		b.WriteByte('\n')
	}
	for _, s := range c.Sanity {
		line("%s", s)
	}
	_, err = io.WriteString(w, b.String())
	return err
}
