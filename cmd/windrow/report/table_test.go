package report

import (
	"encoding/csv"
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

// A cell may hold anything; it must not steer a terminal or break out of its cell.
func TestHostileCells(t *testing.T) {
	in := &document.Table{Columns: []document.Column{{Name: "a\x1b[2J"}}}
	in.Add("x\x1b]0;title\x07\r\n| b |\u202e")
	for _, format := range []string{"text", "md"} {
		out, err := written(format, in)
		if err != nil || strings.ContainsAny(out, "\x1b\x07\r\u202e") ||
			strings.Count(out, "\n") != 3 {
			t.Errorf("%s: %q, %v", format, out, err)
		}
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
