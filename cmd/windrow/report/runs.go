package report

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

var errNoRuns = errors.New("report: no runs to write")

// Short names for the number formats, which nearly every line here uses.
var (
	Sig3 = document.Sig3
	SI   = document.SI
)

// ms formats nanoseconds in milliseconds.
func ms(ns float64) string { return Sig3(ns / 1e6) }

// signed formats a percentage with its sign; zero has none.
func signed(p compare.Stat) string { return document.Signed(float64(p)) }

func count(n int64) string { return document.Count(n) }

// Document describes the Runs of d.
func (d *Data) Document() (*document.Document, error) {
	runs, err := d.series()
	if err != nil {
		return nil, err
	}
	c := d.contents(runs)
	doc := &document.Document{Name: d.Name, Title: d.Title, Headline: d.headline(runs),
		Verdict: c.Verdict, Warnings: c.Warnings, Facts: c.Facts, Figures: d.figures(runs),
		Notes: c.Sanity, Result: d.exact(runs, c), Rows: rowsOf(runs)}
	if d.Generated != "" {
		doc.Facts = append([]document.Fact{{Key: "generated", Value: d.Generated}}, doc.Facts...)
	}
	doc.Sections = append(append(doc.Sections, c.Summary...), c.Details...)
	if len(runs) > 0 {
		doc.Sections = append(doc.Sections, *tokensSection(runs))
	}
	return doc, nil
}

// headline is the answer: the rate of every run, and their distance.
func (d *Data) headline(runs []series) string {
	var text string
	for i := range runs {
		s := &runs[i]
		t := sum(s.tokens, d.warmUp(s))
		rate := s.estimate(t.rate())
		switch {
		case s.run.Meta.Prediction != nil || s.run.Meta.Simulated:
			text += rate.Text("tokens/s")
		default:
			text += fmt.Sprintf("%s tokens/s (%s)", rate.Cell(), s.kind)
		}
		if len(runs) > 1 {
			text += ": " + s.label
		}
		if i+1 < len(runs) {
			text += "; "
		}
	}
	if d.Comparison != nil {
		text += fmt.Sprintf("; error %s %%", signed(compare.Stat(d.Comparison.ErrorPercent)))
	} else if len(runs) == 1 {
		text += fmt.Sprintf(": %s on %s", runs[0].run.Meta.Model, runs[0].run.Meta.Device)
	}
	return text
}

// Write writes the Runs of d in any format: those of a document, and those of other tools.
func (d *Data) Write(w io.Writer, o Options) error {
	switch o.Format {
	case "perfetto":
		return WritePerfetto(w, d.Runs...)
	case "go-bench":
		for _, r := range d.Runs {
			if err := WriteGoBench(w, r.Run); err != nil {
				return err
			}
		}
		return nil
	}
	doc, err := d.Document()
	if err != nil {
		return err
	}
	return Write(w, doc, o)
}

// RunFormats are the formats of Data.Write.
func RunFormats() []string { return append(Formats(), "perfetto", "go-bench") }

// rowsOf is one row per run and token, in nanoseconds and bytes, for notebooks and spreadsheets.
// The columns at the end repeat what the whole run's rate rests on.
func rowsOf(runs []series) *document.Table {
	if len(runs) == 0 {
		return nil
	}
	t := document.NewTable(document.Text("run"), document.Text("kind"), document.Number("token",
		""),
		document.Number("seq", ""), document.Number("pos", ""), document.Text("phase"),
		document.Number("latency", "ns"))
	for p := range traces.Part(traces.Parts) {
		t.Columns = append(t.Columns, document.Number(p.String(), "ns"))
	}
	for _, name := range []string{"flash_bytes", "requests", "hits", "misses", "evictions",
		"queue_depth"} {
		t.Columns = append(t.Columns, document.Number(name, ""))
	}
	t.Columns = append(t.Columns, document.Text("rate_basis"),
		document.Number("rate_interval", "tokens/s"))
	for i := range runs {
		runs[i].rows(t)
	}
	return t
}

func (s *series) rows(t *document.Table) {
	rate := s.estimate(s.run.Meta.Totals.TokensPerS)
	text := interval(s, rate)
	if rate.Bound {
		text = rate.Text("tokens/s")
	}
	for _, k := range s.tokens {
		row := []string{s.label, s.kind, count(int64(k.Index)), count(int64(k.Seq)),
			count(int64(k.Pos)), phaseName(k.Phase), count(int64(k.Latency))}
		for _, p := range k.Parts {
			row = append(row, count(int64(p)))
		}
		t.Add(append(row, count(int64(k.Bytes)), count(k.Requests), count(k.Hits),
			count(k.Misses), count(k.Evictions), strconv.FormatFloat(k.Depth, 'g', -1, 32),
			rate.Basis, text)...)
	}
}

func phaseName(p traces.Phase) string {
	if p == traces.Decode {
		return "decode"
	}
	return "prefill"
}

// tokensSection lists the latency and the reads of every token. Runs of one report that are not of
// the same tokens are listed by their place.
func tokensSection(runs []series) *document.Section {
	t := document.NewTable(document.Number("token", ""), document.Text("phase"))
	n := 0
	for _, s := range runs {
		t.Columns = append(t.Columns, document.Number("latency, "+s.name(), "ms"),
			document.Number("flash, "+s.name(), "MB"))
		n = max(n, len(s.tokens))
	}
	for i := range min(n, maxTokenRows) {
		row := []string{"", ""}
		for _, s := range runs {
			if i >= len(s.tokens) {
				row = append(row, "", "")
				continue
			}
			k := &s.tokens[i]
			row[0], row[1] = count(int64(k.Index)), phaseName(k.Phase)
			row = append(row, s.time(float64(k.Latency)), Sig3(float64(k.Bytes)/1e6))
		}
		t.Add(row...)
	}
	note := ""
	if n > maxTokenRows {
		note = fmt.Sprintf("The first %d of %d tokens; the CSV and JSON forms have all.",
			maxTokenRows, n)
	}
	return &document.Section{Title: "Tokens", Note: note, Table: *t, Place: document.Listing}
}

// maxTokenRows is how many tokens the page lists; the JSON and CSV forms have all.
const maxTokenRows = 512

func verdictClass(c *compare.Comparison) string {
	switch {
	case c == nil:
		return ""
	case c.Verdict == compare.Pass:
		return "pass"
	case c.Verdict == compare.Noisy:
		return "noisy"
	}
	return "outside"
}
