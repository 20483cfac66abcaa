package report

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/internal/document"
)

func sample() *document.Table {
	t := &document.Table{Columns: []document.Column{{Name: "name"}, document.Number("rate", "MB/s"),
		{Name: "note"}}}
	t.Add("a", "7.00", "")
	t.Add("größer", "6100", "x|y *b* <i> & [l](u)")
	return t
}

// written is a document of one table in a format, on lines of any width.
func written(format string, t *document.Table) (string, error) {
	var b strings.Builder
	err := Write(&b, &document.Document{Title: "t", Sections: []document.Section{{Table: *t}}},
		Options{Format: format, Width: 1000})
	// Above the table of Markdown is the title.
	return strings.TrimPrefix(b.String(), "# t\n\n"), err
}

func TestTableText(t *testing.T) {
	got, err := written("text", sample())
	if err != nil {
		t.Fatal(err)
	}
	want := "name    rate (MB/s)  note\n" +
		"------  -----------  --------------------\n" +
		"a              7.00\n" +
		"größer         6100  x|y *b* <i> & [l](u)\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTableMarkdown(t *testing.T) {
	got, err := written("md", sample())
	if err != nil {
		t.Fatal(err)
	}
	want := "| name | rate (MB/s) | note |\n| --- | ---: | --- |\n| a | 7.00 |  |\n" +
		`| größer | 6100 | x\|y \*b\* &lt;i&gt; &amp; \[l\](u) |` + "\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTableCSV(t *testing.T) {
	in := sample()
	in.Add("line\nbreak", `"quoted"`, ",")
	text, err := written("csv", in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append([][]string{{"name", "rate_mb_per_s", "note"}}, in.Rows...),
		got); diff != "" {
		t.Error(diff)
	}
}

func TestSnake(t *testing.T) {
	for in, want := range map[string]string{"rate (tokens/s)": "rate_tokens_per_s",
		"error (%)": "error_percent", "s_agg(k) (units)": "s_agg_k_units", "P99 (ms)": "p99_ms"} {
		if got := snake(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// A cell may hold anything; it must not steer a terminal, break out of its cell or be computed.
func TestHostileCells(t *testing.T) {
	in := &document.Table{Columns: []document.Column{{Name: "a\x1b[2J"}}}
	in.Add("x\x1b]0;title\x07\r\n| b |\u202e\u009b31m")
	in.Add("=1+1")
	for format, cell := range map[string]string{
		"text": `x\x1b]0;title\x07\r\n| b |\u202e\u009b31m`,
		"md":   `| x\\x1b\]0;title\\x07\\r<br>\| b \|\\u202e\\u009b31m |`,
		"csv":  `"x\x1b]0;title\x07\r` + "\n" + `| b |\u202e\u009b31m"` + "\n'=1+1",
	} {
		out, err := written(format, in)
		if err != nil || strings.ContainsAny(out, "\x1b\x07\r\u202e\u009b") ||
			!strings.Contains(out, cell) {
			t.Errorf("%s: %q, %v, want %q", format, out, err, cell)
		}
	}
}

// Nothing of a document steers a terminal or a browser's text, in any format.
func TestHostileDocument(t *testing.T) {
	const bad = "x\x1b[31m\u009b2J\u202e\x00\xff\x7f"
	d := &document.Document{Name: "sim", Title: bad, Headline: bad + "\n" + bad,
		Verdict:  &document.Verdict{Text: bad, Class: "pass", Reasons: []string{bad}},
		Warnings: []string{bad}, Notes: []string{bad},
		Facts:   []document.Fact{{Key: bad, Value: bad}},
		Figures: []document.Figure{{Title: bad, Note: bad, Legend: []document.Key{{Text: bad}}}},
		Result:  map[string]string{bad: bad}}
	table := document.NewTable(document.Text(bad), document.Number(bad, bad))
	table.Add(bad, bad)
	d.Add(bad, bad, *table)
	for _, format := range Formats() {
		var out strings.Builder
		err := Write(&out, d, Options{Format: format, Origin: Origin{Command: bad,
			Inputs: map[string]string{bad: bad}}})
		text := out.String()
		if err != nil || !utf8.ValidString(text) ||
			strings.ContainsAny(text, "\x1b\u009b\u202e\x00\x7f") {
			t.Errorf("%s: %v, %q", format, err, text)
		}
		if format == "json" && !json.Valid([]byte(text)) {
			t.Errorf("not JSON: %s", text)
		}
	}
	if d.Facts[0].Key != bad || d.Sections[0].Table.Rows[0][0] != bad ||
		d.Sections[0].Table.Columns[0].Name != bad {
		t.Error("writing a document changed it")
	}
}

func TestRaggedTableIsRefused(t *testing.T) {
	in := sample()
	in.Add("only one")
	for _, format := range Formats() {
		out, err := written(format, in)
		if err == nil || !strings.Contains(err.Error(), "row 2 has 1 cells for 3 columns") ||
			out != "" {
			t.Errorf("%s: %q, %v", format, out, err)
		}
	}
}

// TestTextFits: no line of a table is wider than asked for, whatever it holds, but for a hash at
// its end, which stays whole to be copied; all cells are there.
func TestTextFits(t *testing.T) {
	in := document.NewTable(document.Text("name"), document.Number("a long head of a column", "ms"),
		document.Text("words"), document.Number("b", ""), document.Number("c", "tokens/s"),
		document.Text("hash"))
	hash := strings.Repeat("0123456789abcdef", 4)
	in.Add("größer", "12345678", strings.Repeat("many words ", 9), "1", "2", hash)
	in.Add("x", "1", "few", "1000000", "2", hash)
	for _, width := range []int{60, 80, 160, 400} {
		var letters strings.Builder
		for line := range strings.Lines(textTable(in, width)) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(line); n > width &&
				(width > 80 || !strings.HasSuffix(line, " "+hash)) {
				t.Errorf("width %d: a line of %d columns: %s", width, n, line)
			}
			letters.WriteString(strings.Join(strings.Fields(line), ""))
		}
		for _, want := range []string{"12345678", "1000000", hash} {
			if !strings.Contains(letters.String(), want) {
				t.Errorf("width %d: %s is lost", width, want)
			}
		}
	}
}
