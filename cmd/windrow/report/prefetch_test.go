package report

import (
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// TestPrefetchesAreReported: with its numbers, and without a warning that reads were faster than
// the device, which wait less than they take.
func TestPrefetchesAreReported(t *testing.T) {
	run := makeRun(1, 10, 10, 4, true)
	d := &Data{Title: "t", Runs: []LabeledRun{{"", run}}}
	plain := render(t, writeTextOf, d)
	if strings.Contains(plain, "prefetches") {
		t.Errorf("a run on demand prefetches:\n%s", plain)
	}
	run.Meta.Prefetches = &traces.Prefetches{
		Schedule: "lookahead", Hidden: 25 * units.Millisecond, Slowed: units.Millisecond,
		Bytes: 40_000_000, Wasted: 2_000_000, Named: 90, Missed: 10, Submissions: 40,
	}
	parts := &run.Meta.Totals.PartNanos
	parts[traces.PartIO] = 15 * units.Millisecond
	total := units.Nanos(0)
	for _, part := range parts {
		total += part
	}
	want := "prefetches: lookahead; 2.50 ms/token of reads beside compute, which loses 0.100 " +
		"ms to them and to scattering their rows; 4.00 MB/token in 4.00 submissions/token, " +
		"0.200 MB of them not needed; 10.0 % of the loads were not predicted; the reader is busy " +
		Sig3(float64(100*40*units.Millisecond)/float64(total)) + " % of the time, compute " +
		Sig3(100-float64(100*15*units.Millisecond)/float64(total)) +
		" %"
	if text := strings.Join(strings.Fields(render(t, writeTextOf, d)), " "); !strings.Contains(text,
		want) {
		t.Errorf("no %q in\n%s", want, text)
	}

	const suspicion = "was the page cache cold"
	for i := range run.Rows {
		if run.Rows[i].Part == traces.PartIO {
			run.Rows[i].Dur = 0
		}
	}
	d.FlashRate = 6 * units.GBps
	if text := render(t, writeTextOf, d); strings.Contains(text, suspicion) {
		t.Errorf("hidden reads are suspicious:\n%s", text)
	}
	run.Meta.Prefetches.Hidden = 0
	if text := render(t, writeTextOf, d); !strings.Contains(text, suspicion) {
		t.Errorf("reads that take no time are not suspicious:\n%s", text)
	}
}
