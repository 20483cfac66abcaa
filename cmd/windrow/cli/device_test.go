package cli

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/units"
)

func decode(t *testing.T, text string, v any) {
	t.Helper()
	doc := struct{ Result any }{v}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// TestDeviceCheckOfEveryPreset is the promise of the presets: a fit predicts the rows that it has
// not seen, or it is said why there is none.
func TestDeviceCheckOfEveryPreset(t *testing.T) {
	o := command("device", "show", "--all", "--residuals", "--leave-one-out")
	if o.code != exitOK {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	var checked struct{ Checks []devicemodels.CheckResult }
	decode(t, must(t, "device", "show", "--all", "--residuals", "--leave-one-out", "--json"),
		&checked)
	results := checked.Checks
	text := strings.Join(strings.Fields(must(t, "device", "show", "--all", "--residuals",
		"--leave-one-out", "--format", "csv")), " ")
	if len(results) != len(devicemodels.Presets()) {
		t.Errorf("%d presets are checked, there are %d", len(results), len(devicemodels.Presets()))
	}
	passed := 0
	for _, r := range results {
		if r.Verdict == devicemodels.CheckPass {
			passed++
		} else if !strings.Contains(text, r.Reason) {
			t.Errorf("%s is %s, and the text does not say why", r.Device, r.Verdict)
		}
		for _, c := range r.Cells {
			if !strings.Contains(text, c.Source) || !strings.Contains(text, c.Tainted) {
				t.Errorf("%s: the cell %v at %d is not in the text with its source", r.Device,
					c.Chunk, c.Depth)
			}
		}
	}
	if passed < 4 {
		t.Errorf("%d presets pass", passed)
	}
	var list struct{ Devices []deviceSummary }
	decode(t, must(t, "device", "list", "--json"), &list)
	for i, s := range list.Devices {
		fitted, passed := s.LeaveOneOutPct != nil, results[i].Verdict == devicemodels.CheckPass
		if fitted != passed || fitted == (s.Unfitted != "") {
			t.Errorf("%s: listed as %+v, checked as %s", s.Name, s, results[i].Verdict)
		}
	}
}

// TestDeviceCheckFails: a file whose numbers are not those of its cells.
func TestDeviceCheckFails(t *testing.T) {
	t.Chdir(t.TempDir())
	d, err := devicemodels.Preset("m1-max")
	if err != nil {
		t.Fatal(err)
	}
	d.Flash.LTFB *= 2
	if err := devicemodels.Save("slow.device.yaml", d); err != nil {
		t.Fatal(err)
	}
	o := command("device", "show", "slow.device.yaml", "--leave-one-out")
	if o.code != exitValidation || !strings.Contains(o.stdout, "fail") ||
		!strings.Contains(o.stderr, "m1-max: fit.cells[0] states") {
		t.Errorf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	if o := command("device", "show", "slow.device.yaml", "--residuals"); o.code != exitOK {
		t.Errorf("residuals alone judge: exit %d, %s", o.code, o.stderr)
	}
	var judged struct{ Checks []devicemodels.CheckResult }
	o = command("device", "show", "slow.device.yaml", "--leave-one-out", "--json")
	decode(t, o.stdout, &judged)
	if r := judged.Checks[0]; o.code != exitValidation || r.Verdict != devicemodels.CheckFail {
		t.Errorf("exit %d, %s", o.code, r.Verdict)
	}
}

func TestDeviceShowAll(t *testing.T) {
	var shown struct{ Devices []devicemodels.Device }
	decode(t, must(t, "device", "show", "--all", "--json"), &shown)
	devices := shown.Devices
	if len(devices) != len(devicemodels.Presets()) {
		t.Errorf("%d devices", len(devices))
	}
	documents := strings.Split(must(t, "device", "show", "--all"), "---\n")
	if len(documents) != len(devices) {
		t.Fatalf("%d documents for %d devices", len(documents), len(devices))
	}
	for i, text := range documents {
		if d, err := devicemodels.Parse("all", []byte(text)); err != nil ||
			d.Name != devices[i].Name {
			t.Errorf("document %d: %v", i, err)
		}
	}
}

func TestDeviceCompare(t *testing.T) {
	var cmp devicemodels.Comparison
	args := []string{"device", "compare", "m1-max", "samsung-860pro-sata", "--chunks",
		"16KiB,4KiB,16KiB", "--depths", "1,32,256"}
	decode(t, must(t, append(args, "--json")...), &cmp)
	if fmt.Sprint(cmp.Chunks, cmp.Depths) != "[4KiB 16KiB] [1 32 256]" || len(cmp.Devices) != 2 {
		t.Fatalf("%+v", cmp)
	}
	for i, name := range []string{"m1-max", "samsung-860pro-sata"} {
		d, err := devicemodels.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		for row, chunk := range cmp.Chunks {
			for column, depth := range cmp.Depths {
				p := cmp.Devices[i].Points[row][column]
				if want := d.Flash.Throughput(p.Engine, d.Host.Cores, chunk,
					depth); p.Rate != want {
					t.Errorf("%s: %v at %d: %v, want %v", name, chunk, depth, p.Rate, want)
				}
				if first := cmp.Devices[0].Points[row][column].Rate; p.Ratio != float64(
					p.Rate)/float64(first) {
					t.Errorf("%s: %v at %d: ratio %g", name, chunk, depth, p.Ratio)
				}
				// The M1 Max was measured with 8 to 35.5 KiB at depth 32, the 860 PRO with 4 KiB at
				// 1 to 64.
				covered := i == 0 && chunk == 16*units.KiB && depth == 32 || i == 1 &&
					chunk == 4*units.KiB && depth <= 64
				if p.Extrapolated == covered {
					t.Errorf("%s: %v at %d: extrapolated is %v", name, chunk, depth, p.Extrapolated)
				}
			}
		}
	}
	text := must(t, args...)
	for _, want := range []string{"samsung-860pro-sata / m1-max", "2.27 █ ",
		"~ outside the sizes and depths"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// TestDeviceCompareTakesTheBestEngine, and another when it is told to; a device without fit is said
// to be one.
func TestDeviceCompareTakesTheBestEngine(t *testing.T) {
	t.Chdir(t.TempDir())
	d, err := devicemodels.Preset("intel-p4610-pcie3")
	if err != nil {
		t.Fatal(err)
	}
	slow := d.Flash.Engines["uring"]
	slow.Submit, slow.Serial = 20*units.Microsecond, true
	d.Flash.Engines["uring"], d.Fit = slow, nil
	if err := devicemodels.Save("a.device.yaml", d); err != nil {
		t.Fatal(err)
	}
	engine := func(args ...string) string {
		var cmp devicemodels.Comparison
		decode(t, must(t, append([]string{"device", "compare", "a.device.yaml",
			"jetson-orin-990pro", "--chunks", "4KiB", "--depths", "64", "--json"}, args...)...),
			&cmp)
		if !cmp.Devices[0].Points[0][0].Extrapolated || cmp.Devices[1].Unfitted == "" {
			t.Errorf("%+v", cmp)
		}
		return cmp.Devices[0].Points[0][0].Engine
	}
	if best, told := engine(), engine("--io", "uring"); best != "pread" || told != "uring" {
		t.Errorf("the engines are %s and %s, want pread and uring", best, told)
	}
}

func TestDeviceCompareDraws(t *testing.T) {
	t.Chdir(t.TempDir())
	args := []string{"device", "compare", "m1-max", "emmc-64gb-sige5", "ufs40-8gen3", "--depths",
		"1,32", "--force", "-o", "a.svg"}
	first := must(t, args...)
	drawing, err := os.ReadFile("a.svg")
	if err != nil {
		t.Fatal(err)
	}
	if second := must(t, args...); second != first {
		t.Error("the same command line printed something else")
	}
	if again, _ := os.ReadFile("a.svg"); string(again) != string(drawing) {
		t.Error("the same command line drew something else")
	}
	counts := map[string]int{}
	dec := xml.NewDecoder(strings.NewReader(string(drawing)))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			counts[e.Name.Local]++
		}
	}
	if lines := 3 * 2; counts["svg"] != 1 || counts["polyline"] != lines ||
		counts["circle"] != lines*len(devicemodels.DefaultCompare().Chunks) {
		t.Errorf("elements: %v", counts)
	}
	for _, one := range [][]string{{"--chunks", "4KiB"}, {"--depths", "3"}} {
		must(t, append([]string{"device", "compare", "m1-max", "m1-max", "--force", "-o", "b.svg"},
			one...)...)
		if text, _ := os.ReadFile("b.svg"); strings.Contains(string(text), "NaN") ||
			strings.Contains(string(text), "Inf") {
			t.Errorf("%v is drawn as\n%s", one, text)
		}
	}
}

func TestDeviceRefusals(t *testing.T) {
	t.Chdir(t.TempDir())
	compare := []string{"device", "compare", "m1-max", "m2-ultra"}
	many := []string{"device", "compare"}
	for range devicemodels.MostCompared + 1 {
		many = append(many, "m1-max")
	}
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"device", "show"}, exitUsage, "--all"},
		{[]string{"device", "show", "--all", "m1-max"}, exitUsage, "m1-max"},
		{[]string{"device", "show", "missing.device.yaml", "--leave-one-out"}, exitInput,
			"missing.device.yaml"},
		{[]string{"device", "compare", "m1-max"}, exitUsage, "two or more"},
		{[]string{"device", "compare", "m1-max", "m3"}, exitUsage, "m3"},
		{append(compare, "--chunks", "4k"), exitUsage, "--chunks"},
		{append(compare, "--chunks", "0B"), exitUsage, "--chunks"},
		{append(compare, "--depths", "0"), exitUsage, "--depths"},
		{append(compare, "--depths", "100000"), exitUsage, "--depths"},
		{append(compare, "--io", "uring"), exitUsage, "--io uring"},
		{append(compare, "-o", "a.png"), exitUsage, ".svg"},
		{append(compare, "-o", "missing/a.svg"), exitUsage, "missing"},
		{many, exitUsage, "65 devices"},
	} {
		if o := command(c.args...); o.code != c.code || o.stdout != "" ||
			!strings.Contains(o.stderr, c.text) {
			t.Errorf("%s: exit %d, want %d and %q: %s%s", strings.Join(c.args, " "), o.code, c.code,
				c.text, o.stderr, o.stdout)
		}
	}
}
