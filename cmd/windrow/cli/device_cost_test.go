package cli

import (
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels/energy"
	"github.com/windrow-sim/windrow/devicemodels/wear"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/cost"
	"github.com/windrow-sim/windrow/traces"
)

// costOf runs a verb with --json and reads the document that it prints.
func costOf(t *testing.T, args ...string) costs {
	t.Helper()
	return resultOf[costs](t, must(t, append(args, "--json")...))
}

// costs are the results of both verbs.
type costs struct {
	Run    cost.Facts    `json:"run"`
	Energy energy.Report `json:"energy"`
	Wear   wear.Report   `json:"wear"`
	Drive  wear.Drive    `json:"drive"`
}

func TestDeviceEnergyByHand(t *testing.T) {
	workspace(t)
	run, err := traces.ReadRun(t.Context(), "tiny.run.arrow")
	if err != nil {
		t.Fatal(err)
	}
	doc := costOf(t, "device", "energy", "tiny.run.arrow", "-t", "tiny.trace.arrow",
		"--flash-energy",
		"100", "--dram-energy", "10", "--drive-idle", "0", "--compute-watts", "20..40",
		"--idle-watts",
		"5")
	total, tokens := run.Meta.Totals, float64(run.Meta.Totals.Tokens)
	if doc.Run.Kind != "simulated" || doc.Energy.LowerBound || doc.Energy.Tokens != 6 {
		t.Errorf("%+v", doc)
	}
	// OPT-6.7B: d_model 4096, 32 heads of 128, a vocabulary of 50,272; two layers of it, six tokens
	// at positions 0 to 5.
	const layers, record = 2, 2 * 4096 * 2
	dram := tokens * (layers*4*4096*4096*2 + 50272*4096*2) // resident weights
	// keys and values, read and written
	dram += layers * 2 * 4096 * 4 * (1 + 2 + 3 + 4 + 5 + 6 + 6)
	// reads landing, active rows
	dram += float64(total.Bytes) + float64(total.Hits+total.Misses)*record
	copied := 0.0 // row-cache copies
	for _, r := range run.Rows {
		if r.Part == traces.PartMemory {
			copied += float64(r.Bytes)
		}
	}
	dram += 2 * copied
	io := total.PartNanos[traces.PartIO].Seconds()
	busy := total.Wall.Seconds() - io
	for i, want := range []struct {
		amount, low, high float64
	}{
		{float64(total.Bytes), float64(total.Bytes) * 8 * 100e-12, float64(total.Bytes) * 8 *
			100e-12},
		{dram, dram * 8 * 10e-12, dram * 8 * 10e-12},
		{busy, busy * 20, busy * 40},
		{busy, 0, 0}, // the drive is idle while the host computes
		{io, io * 5, io * 5},
	} {
		p := doc.Energy.Parts[i]
		for _, c := range [][2]float64{{*p.Amount, want.amount}, {p.Joules.Low, want.low},
			{p.Joules.High, want.high}} {
			if math.Abs(c[0]*tokens-c[1]) > 1e-9*c[1] {
				t.Errorf("%s: %g for all tokens, want %g", p.Part, c[0]*tokens, c[1])
			}
		}
	}
}

func TestDeviceEnergySaysWhatItDoesNotKnow(t *testing.T) {
	workspace(t)
	doc := costOf(t, "device", "energy", "tiny.run.arrow")
	if !doc.Energy.LowerBound || strings.Join(doc.Energy.NotKnown, ", ") != "DRAM, compute, "+
		"host idle" {
		t.Errorf("%+v", doc.Energy)
	}
	text := must(t, "device", "energy", "tiny.run.arrow", "--format", "md")
	saysAll(t, text, "simulated: ", "known parts",
		"A lower bound: DRAM, compute, host idle not known", "189 pJ/bit", "hardwareluxx",
		"by convention")
	if text = must(t, "device", "energy", "tiny.run.arrow"); !strings.HasPrefix(text,
		"at least ") || !strings.Contains(text, " J/token (bound)") {
		t.Errorf("the first line is no bound:\n%s", text)
	}
	whole := must(t, "device", "energy", "tiny.run.arrow", "-t", "tiny.trace.arrow",
		"--compute-watts", "20", "--idle-watts", "2..5")
	if strings.Contains(whole, "ower bound") || strings.Contains(whole, energy.NotKnown) ||
		!strings.Contains(whole, "\ntotal ") {
		t.Errorf("everything is known, but:\n%s", whole)
	}
}

func TestDeviceWear(t *testing.T) {
	workspace(t)
	few := costOf(t, "device", "wear", "tiny.run.arrow", "--tokens-per-day", "1000", "--drive",
		"samsung 990 pro 2tb")
	many := costOf(t, "device", "wear", "tiny.run.arrow", "--tokens-per-day", "10000", "--drive",
		"samsung 990 pro 2tb")
	run, err := traces.ReadRun(t.Context(), "tiny.run.arrow")
	if err != nil {
		t.Fatal(err)
	}
	perToken := float64(run.Meta.Totals.Bytes / units.Bytes(run.Meta.Totals.Tokens))
	if few.Wear.BytesPerDay != 1000*perToken || few.Drive.Endurance != 1200e12 ||
		few.Drive.Data != 2*16384*16384 {
		t.Errorf("%g bytes a day, drive %+v", few.Wear.BytesPerDay, few.Drive)
	}
	if a, b := few.Wear.ToEndurance.Years, many.Wear.ToEndurance.Years; !(a.Low > b.Low &&
		a.High > b.High && b.Low > 0) {
		t.Errorf("1000 tokens a day: %+v years, 10,000: %+v", a, b)
	}
	saysAll(t, must(t, "device", "wear", "tiny.run.arrow", "--tokens-per-day", "1000", "--hot",
		"0.8:0.2", "--format", "md"), strings.ReplaceAll(wear.Explanation, "\n", " "),
		"the hot blocks", "worst case", energy.NotKnown, "hundreds of thousands to millions",
		"sim-default")
	if text := must(t, "device", "wear", "tiny.run.arrow", "--tokens-per-day", "0", "--tbw",
		"600TB"); !strings.Contains(text, "for ever") {
		t.Errorf("no use wears, it seems:\n%s", text)
	}
	if list := must(t, "device", "wear", "--drive", "list"); !strings.Contains(list,
		"Samsung 960 PRO 1TB\n") {
		t.Errorf("the drives are %s", list)
	}
}

// A measured run does not hold the size of the rows; its trace does.
func TestDeviceWearOfARunWithoutGeometry(t *testing.T) {
	workspace(t)
	run, err := traces.ReadRun(t.Context(), "tiny.run.arrow")
	if err != nil {
		t.Fatal(err)
	}
	run.Meta.Config = []byte(`{"window": 5}`)
	if err := traces.WriteRun("bare.run.arrow", run); err != nil {
		t.Fatal(err)
	}
	if o := command("device", "wear", "bare.run.arrow", "--tokens-per-day",
		"1"); o.code != exitUsage || !strings.Contains(o.stderr, "-t") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	with := costOf(t, "device", "wear", "bare.run.arrow", "--tokens-per-day", "1", "-t",
		"tiny.trace.arrow")
	without := costOf(t, "device", "wear", "tiny.run.arrow", "--tokens-per-day", "1")
	if with.Drive.Data != without.Drive.Data {
		t.Errorf("a region of %v by the trace, %v by the geometry", with.Drive.Data,
			without.Drive.Data)
	}
}

func TestDeviceCostRefusals(t *testing.T) {
	workspace(t)
	day := []string{"device", "wear", "tiny.run.arrow", "--tokens-per-day", "1"}
	joules := []string{"device", "energy", "tiny.run.arrow"}
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"device", "energy"}, exitUsage, "one run"},
		{[]string{"device", "energy", "missing"}, exitInput, "missing"},
		{[]string{"device", "energy", "cut.run.arrow"}, exitInput, "cut.run.arrow"},
		{append(joules, "-t", "tales.trace.arrow"), exitUsage, "not the trace"},
		{append(joules, "-t", "cut.trace.arrow"), exitInput, "cut.trace.arrow"},
		{append(joules, "--flash-energy", "ufs"), exitUsage, "nvme-ssd, nand, hbf"},
		{append(joules, "--dram-energy", "-1"), exitUsage, "--dram-energy"},
		{append(joules, "--drive-idle", "NaN"), exitUsage, "--drive-idle"},
		{append(joules, "--compute-watts", "fast"), exitUsage, "LOW..HIGH"},
		{append(joules, "--idle-watts", "3..1"), exitUsage, "--idle-watts"},
		{append(joules, "--compute-watts", "1e308..1e309"), exitUsage, "--compute-watts"},
		{[]string{"device", "wear", "tiny.run.arrow"}, exitUsage, "--tokens-per-day"},
		{[]string{"device", "wear", "tiny.run.arrow", "--tokens-per-day", "-1"}, exitUsage,
			"--tokens-per-day"},
		{[]string{"device", "wear", "tiny.run.arrow", "--tokens-per-day", "1e305"}, exitUsage,
			"beyond"},
		{append(day, "--drive", "floppy"), exitUsage, "Samsung 990 PRO 2TB"},
		{append(day, "--capacity", "1MiB"), exitUsage, "do not fit"},
		{append(day, "--tbw", "600"), exitUsage, "no unit"},
		{append(day, "--written-per-day", "much"), exitUsage, "--written-per-day"},
		{append(day, "--cycles", "gold"), exitUsage, "--cycles"},
		{append(day, "--read-disturb", "0"), exitUsage, "--read-disturb"},
		{append(day, "--read-disturb", "tlc-qlc"), exitUsage, "LOW..HIGH"},
		{append(day, "--hot", "0.8"), exitUsage, "--hot"},
		{append(day, "--hot", "0.2:0.8"), exitUsage, "hot"},
	} {
		if o := command(c.args...); o.code != c.code || o.stdout != "" ||
			!strings.Contains(o.stderr, c.text) {
			t.Errorf("%s: exit %d, want %d and %q: %s%s", strings.Join(c.args, " "), o.code, c.code,
				c.text, o.stderr, o.stdout)
		}
	}
}
