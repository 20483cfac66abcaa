package wear

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/reference"
	"github.com/windrow-sim/windrow/internal/units"
)

func TestPublishedConstants(t *testing.T) {
	for _, w := range []struct {
		name      string
		low, high float64
		values    int
	}{{ReadDisturb, 50_000, 1_000_000, 4}, {CyclesTLC, 300, 3000, 1}, {CyclesMLC, 10_000, 100_000,
		2}} {
		c, err := Published(w.name)
		if err != nil || c.Interval.Low != w.low || c.Interval.High != w.high ||
			len(c.Values) != w.values || !c.Interval.positive() || c.Rule == "" {
			t.Errorf("%s: %+v, %v", w.name, c, err)
		}
	}
	c, err := Published(ReadDisturb)
	if want := (100_000 + 316_227.766016838) / 2; err != nil || !near(c.Interval.Mid, want) {
		t.Errorf("the median of 50,000, 100,000 and twice √(1e5 · 1e6) is %g, want %g",
			c.Interval.Mid, want)
	}
	if _, err := Published("tape"); !errors.Is(err, ErrInput) {
		t.Errorf("an unknown constant: %v", err)
	}
	page, block, source, err := Geometry()
	if err != nil || page != 8*units.KiB || block != 2*units.MiB || !strings.Contains(source,
		"sim-default") {
		t.Errorf("geometry: %v, %v, %q, %v", page, block, source, err)
	}
}

func TestDrives(t *testing.T) {
	names := Drives()
	if len(names) < 13 {
		t.Fatalf("%d drives; the table was cut", len(names))
	}
	for _, n := range names {
		d, err := LookupDrive(n)
		if err != nil || d.Capacity <= 0 || d.Endurance < d.Capacity || d.Source == "" ||
			d.Quality == "" {
			t.Errorf("%s: %+v, %v", n, d, err)
		}
		if _, err := Estimate(Use{TokensPerDay: 1, BytesPerToken: 1, ReadsPerToken: 1}, withData(d),
			Hot{}); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
	d, err := LookupDrive(" samsung 990 pro 2tb ")
	if err != nil || d.Endurance != 1200e12 || d.Capacity != 2e12 || d.Cycles == nil ||
		d.Cycles.Name != CyclesTLC {
		t.Errorf("%+v, %v; want 1200 TBW and the cycles of TLC", d, err)
	}
	if d, err = LookupDrive("Samsung 960 PRO 1TB"); err != nil || d.Cycles != nil {
		t.Errorf("a consumer's MLC drive: %+v, %v; no cycles are published for its kind", d, err)
	}
	if _, err := LookupDrive("Samsung 990 PRO"); !errors.Is(err, ErrInput) ||
		!strings.Contains(err.Error(), "Samsung 990 PRO 2TB") {
		t.Errorf("a drive without its size: %v", err)
	}
}

func withData(d Drive) Drive {
	d.Data = units.MiB
	return d
}

func TestGivenIsStrict(t *testing.T) {
	for _, bad := range [][2]float64{{0, 1}, {-1, 1}, {2, 1}, {math.NaN(), 1}, {1, math.NaN()},
		{1, math.Inf(1)}} {
		if c, err := Given(bad[0], bad[1]); !errors.Is(err, ErrInput) {
			t.Errorf("Given(%g, %g) = %+v, %v", bad[0], bad[1], c, err)
		}
	}
	if c, err := Given(4, 9); err != nil || !near(c.Interval.Mid, 6) {
		t.Errorf("Given(4, 9) = %+v, %v", c, err)
	}
}

func TestParseIsStrict(t *testing.T) {
	head := strings.Join(columns, ",") + "\n"
	for name, text := range map[string]string{
		"no lines":      "",
		"other columns": "quantity,value\n",
		"short line":    head + "x,item,1\n",
		"no number":     head + "x,item,many,many,2,u,s,q,\n",
		"turned range":  head + "x,item,2-1,2,1,u,s,q,\n",
		"zero":          head + "x,item,0,0,0,u,s,q,\n",
		"NaN":           head + "x,item,1,NaN,NaN,u,s,q,\n",
		"infinite":      head + "x,item,1,1,+Inf,u,s,q,\n",
		"no source":     head + "x,item,1,1,1,u,,q,\n",
		"no quality":    head + "x,item,1,1,1,u,s,,\n",
		"no text":       head + "x,item,,1,1,u,s,q,\n",
	} {
		if all, err := parse(text); err == nil || !strings.HasPrefix(err.Error(),
			"wear: wear.csv") {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
	if all, err := parse(head + "x,item,1 to 2,1,2,u,s,q,\n"); err != nil || len(all["x"]) != 1 {
		t.Errorf("a good row: %v, %v", all, err)
	}
}

// Where the collection of published numbers is available, the tables are copies of its rows.
func TestTablesAreCopies(t *testing.T) {
	endurance := append(reference.Table(t, "devices", "endurance_read_disturb.csv"),
		reference.Table(t, "devices", "nand_sim_defaults.csv")...)
	for _, p := range endurance { // the collection names a commentary by its file
		p[3] = strings.Replace(p[3], "llm-in-a-flash.txt section",
			"a commentary on LLM in a flash, section", 1)
	}
	lines, err := records("wear.csv", table, columns)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		copied := []string{l[1], l[2], l[5], l[6], l[7], l[8]}
		if !slices.ContainsFunc(endurance, func(p []string) bool {
			return slices.Equal(p,
				copied)
		}) {
			t.Errorf("not published as it is here: %q", copied)
		}
	}
	specs := reference.Table(t, "devices", "device_specs.csv")
	if lines, err = records("drives.csv", driveTable, driveColumns); err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if !slices.ContainsFunc(specs, func(p []string) bool {
			return slices.Equal([]string{p[0], p[2], p[3], p[10], p[11], p[12]}, []string{l[0],
				l[1], l[2], l[3], l[5], l[6]})
		}) {
			t.Errorf("not published as it is here: %q", l)
		}
	}
}
