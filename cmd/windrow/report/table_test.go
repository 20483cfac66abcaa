package report

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/internal/units"
)

func sample() *Table {
	t := &Table{Columns: []Column{{Name: "name"}, {"rate", "MB/s", Right}, {Name: "note"}}}
	t.Add("a", "7.00", "")
	t.Add("größer", "6100", "x|y *b* <i> & [l](u)")
	return t
}

func TestTableText(t *testing.T) {
	var b strings.Builder
	if err := sample().Text(&b); err != nil {
		t.Fatal(err)
	}
	want := "name    rate (MB/s)  note\n" +
		"------  -----------  --------------------\n" +
		"a              7.00\n" +
		"größer         6100  x|y *b* <i> & [l](u)\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTableMarkdown(t *testing.T) {
	var b strings.Builder
	if err := sample().Markdown(&b); err != nil {
		t.Fatal(err)
	}
	want := "| name | rate (MB/s) | note |\n| --- | ---: | --- |\n| a | 7.00 |  |\n" +
		`| größer | 6100 | x\|y \*b\* &lt;i&gt; &amp; \[l\](u) |` + "\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTableCSV(t *testing.T) {
	in := sample()
	in.Add("line\nbreak", `"quoted"`, ",")
	var b strings.Builder
	if err := in.CSV(&b); err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
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
	in := &Table{Columns: []Column{{Name: "a\x1b[2J"}}}
	in.Add("x\x1b]0;title\x07\r\n| b |\u202e")
	for name, write := range map[string]func() string{
		"text":     func() string { var b strings.Builder; in.Text(&b); return b.String() },
		"markdown": func() string { var b strings.Builder; in.Markdown(&b); return b.String() },
	} {
		out := write()
		if strings.ContainsAny(out, "\x1b\x07\r\u202e") || strings.Count(out, "\n") != 3 {
			t.Errorf("%s: %q", name, out)
		}
	}
}

func TestRaggedTableIsRefused(t *testing.T) {
	in := sample()
	in.Add("only one")
	var b strings.Builder
	for name, err := range map[string]error{"text": in.Text(&b), "markdown": in.Markdown(&b),
		"csv": in.CSV(&b)} {
		if err == nil || !strings.Contains(err.Error(), "row 2 has 1 cells for 3 columns") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b.Len() > 0 {
		t.Error("half a table was written")
	}
}

func TestSig3(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1.00", -1.234: "-1.23", 9.996: "10.0", 0.012345: "0.0123", 0.09996: "0.100",
		99.96: "100", 123.4: "123", 999.4: "999",
		999.6: "1000", 12345.6: "12346", 0.0000012: "0.00000120", 1e-9: "1e-09", 1e18: "1e+18",
	} {
		if got := Sig3(v); got != want {
			t.Errorf("Sig3(%v) = %q, want %q", v, got, want)
		}
	}
}

// 7 GB/s and 7 GiB differ by 7 %: they must not print alike.
func TestField_H5_DecimalAndBinaryPrintDifferently(t *testing.T) {
	if got := SI(7e9, "B/s"); got != "7.00 GB/s" {
		t.Error(got)
	}
	if got := SI(7*float64(units.GiB), "B/s"); got != "7.52 GB/s" {
		t.Error(got)
	}
	if got := IEC(7 * units.GiB); got != "7.00 GiB" {
		t.Error(got)
	}
	if got := IEC(7_000_000_000); got != "6.52 GiB" {
		t.Error(got)
	}
	if got := IEC(1023); got != "1023 B" {
		t.Error(got)
	}
	if got := SI(12, "B/s"); got != "12.0 B/s" {
		t.Error(got)
	}
}
