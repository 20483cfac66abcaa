package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/sim/placement"
)

func layoutOf(t *testing.T, args ...string) placement.Result {
	t.Helper()
	return resultOf[placement.Result](t, must(t, append([]string{"layout", "--json"}, args...)...))
}

func TestLayout(t *testing.T) {
	workspace(t)
	doc := layoutOf(t, "-t", "tiny.trace.arrow", "-d", "m1-max", "--window", "0", "--gaps",
		"0..2,4", "--friends", "2")
	if doc.Engine != "pread" || doc.Depth != 32 || !doc.Synthetic || doc.Train+doc.Test != 6 ||
		len(doc.Sweeps) != 4 {
		t.Fatalf("%+v", doc)
	}
	for _, s := range doc.Sweeps {
		var gaps []int
		for _, row := range s.Rows {
			gaps = append(gaps, row.Gap)
		}
		if !slices.Equal(gaps, []int{0, 1, 2, 4}) || !slices.Contains(gaps, s.Best) {
			t.Errorf("%s: gaps %v, best %d", s.Layout, gaps, s.Best)
		}
	}
	// What sim says of the same tokens: without a window, units are those of the masks, and bundles
	// are read one by one.
	for _, row := range doc.Rows {
		if row.Layout == "bundled" && !row.Joined && (row.Reads != doc.Loads ||
			row.Bytes != doc.Loads*16384) {
			t.Errorf("%+v for %g units", row, doc.Loads)
		}
		for _, e := range []document.Estimate{row.IOEstimate, row.TokenEstimate} {
			if e.Low == nil || !(*e.Low < e.Value && e.Value < *e.High) || e.Basis != row.Basis {
				t.Errorf("%s: %+v", row.Layout, e)
			}
		}
		if c := row.Copies; c != nil && row.Flash != 3*doc.Rows[0].Flash {
			t.Errorf("two friends beside each unit take %v", row.Flash)
		}
	}
	if predicted := layoutOf(t, "-t", "tiny.trace.arrow", "-d", "m1-max", "--predicted", "--gaps",
		"0", "--max-tokens", "4"); predicted.Mask != "predicted" || predicted.Test != 2 {
		t.Errorf("%+v", predicted)
	}
}

func TestLayoutText(t *testing.T) {
	workspace(t)
	text := must(t, "layout", "-t", "tales.trace.arrow", "-d", "ufs40-8gen3", "--gaps", "0..1",
		"--align", "1B")
	saysAll(t, text, "I/O of at least ", "model: tales, true masks", "device: ufs40-8gen3 (uring ×256)",
		"window: 5 tokens", "trace: training split of ", "I/O time by gap", "The gap that pays",
		"Records per token with copies of friends")
	if strings.Contains(text, "Synthetic") {
		t.Errorf("the trace was recorded:\n%s", text)
	}
	line := []string{"layout", "-t", "tiny.trace.arrow", "-d", "m1-max", "--gaps", "0", "--format"}
	saysAll(t, must(t, append(line, "md")...), "| split |", "| linear, oracle |",
		"| friends, each once |", "Synthetic: units share nothing")
	if text := must(t, append(line, "csv")...); !strings.HasPrefix(text,
		"layout,neighbours,flash_bytes,") || strings.Contains(text, "\n\n") ||
		strings.Count(text, "\n") != 1+9 {
		t.Errorf("csv:\n%s", text)
	}
}

func TestLayoutRefuses(t *testing.T) {
	workspace(t)
	for _, args := range [][]string{
		{"--gaps", "1..4"}, {"--gaps", "0..x"}, {"--gaps", "4..0"}, {"--gaps", "0,0"},
		{"--gaps", ""}, {"--gaps", "0..9999"}, {"--gaps", "0,-1"},
		{"--friends", "0"}, {"--friends", "9"}, {"--max-tokens", "1"}, {"--max-tokens", "-1"},
		{"--format", "xml"}, {"--align", "0B"}, {"--align", "x"},
		{"--io", "uring"}, {"--window", "-1"}, {"--chunk", "5000B"},
	} {
		o := command(append([]string{"layout", "-t", "tiny.trace.arrow", "-d", "m1-max"},
			args...)...)
		if o.code != exitUsage || o.stdout != "" {
			t.Errorf("%v: exit %d\n%s%s", args, o.code, o.stderr, o.stdout)
		}
	}
	if o := command("layout", "-t", "tales.trace.arrow", "-d", "m1-max",
		"--predicted"); o.code != exitUsage {
		t.Errorf("no predicted masks: exit %d\n%s", o.code, o.stderr)
	}
}
