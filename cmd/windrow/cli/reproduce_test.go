package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/sim/reproduce"
)

func TestReproduceTable(t *testing.T) {
	o := command("reproduce", "--check", "--table", "table2", "--inputs")
	if o.code != exitOK {
		t.Fatalf("exit %d\n%s", o.code, o.stderr)
	}
	for _, want := range []string{"Table 2", "naive: time (ms)", "2196", "calibrated",
		"simulated rows are within", "table2/naive/throughput)",
		"0 of all rows are"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in\n%s", want, o.stdout)
		}
	}
}

func TestReproduceJSONAndMarkdown(t *testing.T) {
	o := command("reproduce", "--table", "neuro", "--json")
	result := resultOf[reproduce.Result](t, o.stdout)
	if o.code != exitOK || len(result.Rows) < 25 {
		t.Fatalf("exit %d, %d rows\n%s", o.code, len(result.Rows), o.stderr)
	}
	for _, r := range result.Rows {
		if r.ID == "" || r.Published.Source == "" || r.Inputs == nil {
			t.Errorf("an incomplete row: %+v", r)
		}
	}
	if md := command("reproduce", "--table", "flash", "--format", "md"); md.code != exitOK ||
		!strings.Contains(md.stdout, "| M1 Max, 32 KiB, 32 threads (GB/s) |") {
		t.Errorf("exit %d\n%s%s", md.code, md.stdout, md.stderr)
	}
}

func TestReproduceUsage(t *testing.T) {
	for _, args := range [][]string{{"--table", "table9"}, {"--format", "xml"}, {"table2"}} {
		if o := command(append([]string{"reproduce"}, args...)...); o.code != exitUsage ||
			o.stdout != "" {
			t.Errorf("%v: exit %d\n%s%s", args, o.code, o.stdout, o.stderr)
		}
	}
}

// A row outside its tolerance fails the check, unless it is a known miss.
func TestReproduceCheck(t *testing.T) {
	row := reproduce.Row{ID: "table2/naive/io_latency", ErrorPercent: -12, TolerancePercent: 5,
		Kind: reproduce.Simulated}
	err := checkReproduction(&reproduce.Result{Rows: []reproduce.Row{row}})
	if err == nil {
		t.Fatal("12 % are within 5 %")
	}
	if code, text := classify(context.Background(), err); code != exitValidation ||
		!strings.Contains(text, "1 of 1 rows") || !strings.Contains(text, "-12.0 %") {
		t.Errorf("exit %d: %s", code, text)
	}
	row.Reason = "Tried: all."
	if err := checkReproduction(&reproduce.Result{Rows: []reproduce.Row{row}}); err != nil {
		t.Errorf("a known miss: %v", err)
	}
}
