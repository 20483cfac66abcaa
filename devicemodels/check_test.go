package devicemodels

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

// fitted is a device as written by a probe, from cells with noise.
func fitted(t *testing.T, noise float64, opt FitOptions) *Device {
	t.Helper()
	truth := truths()["nvme"]
	up := false
	cells := grid(&truth, 2, func() float64 {
		up = !up
		if up {
			return 1 + noise
		}
		return 1 - noise
	})
	spec, fit, err := FitFlash(cells, 2, opt)
	if err != nil {
		t.Fatal(err)
	}
	return &Device{Version: FormatVersion, Name: "bench", Source: "test", Flash: spec,
		Host: Host{Cores: 2}, Fit: &fit}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*Device)
		verdict CheckVerdict
		reason  string
	}{
		{"as fitted", func(*Device) {}, CheckPass, ""},
		{"another flash", func(d *Device) { d.Flash.LTFB *= 2 }, CheckFail, "fit.cells[0] states"},
		{"another model", func(d *Device) { d.Fit.Cells[3].Model += d.Fit.Cells[3].Model / 100 },
			CheckFail, "fit.cells[3] states"},
		{"another error", func(d *Device) { d.Fit.MeanAbsPct = 0 }, CheckFail,
			"states errors of 0 %"},
		{"another measurement", func(d *Device) { d.Fit.Cells[3].Rate *= 2 }, CheckFail,
			"states errors"},
		{"not fitted", func(d *Device) { d.Fit.Unfitted = "read off a data sheet" }, CheckNotJudged,
			"data sheet"},
		{"no fit", func(d *Device) { d.Fit = nil }, CheckNotJudged, "holds no fit"},
		{"few cells", func(d *Device) {
			d.Fit.Cells = d.Fit.Cells[:2]
			d.Fit.MeanAbsPct, d.Fit.WorstAbsPct = cleanErrors(d.Fit.Cells)
		}, CheckNotJudged, "2 clean cells"},
		{"cells of one size", func(d *Device) {
			d.Fit.Cells = d.Fit.Cells[:4]
			d.Fit.MeanAbsPct, d.Fit.WorstAbsPct = cleanErrors(d.Fit.Cells)
		}, CheckNotJudged, "1 of 2 chunk sizes"},
	}
	whole := fitted(t, 0.005, FitOptions{})
	copied := func() *Device {
		d, fit := *whole, *whole.Fit
		fit.Cells = slices.Clone(fit.Cells)
		d.Fit = &fit
		return &d
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := copied()
			tt.change(d)
			r, err := Check(d)
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != tt.verdict || !strings.Contains(r.Reason, tt.reason) ||
				(r.Reason == "") != (r.Verdict == CheckPass) {
				t.Errorf("%s: %q, want %s and %q", r.Verdict, r.Reason, tt.verdict, tt.reason)
			}
		})
	}
	d := copied()
	d.Flash.Servers = 0
	if _, err := Check(d); !errors.Is(err, ErrFormat) {
		t.Errorf("an invalid device was checked: %v", err)
	}
}

// TestCheckFailsACrookedDevice: cells of no possible device have errors above the limit.
func TestCheckFailsACrookedDevice(t *testing.T) {
	d := fitted(t, 0.08, FitOptions{})
	r, err := Check(d)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != CheckFail || !(*r.LeaveOneOutPct > CheckLimitPct) || !strings.Contains(r.Reason,
		"fits without them") {
		t.Errorf("cells 8 %% off in turn: %s, %s", r.Verdict, r.Reason)
	}
	if len(r.Cells) != 16 || r.Clean != 16 || math.Abs(*r.MeanAbsPct-d.Fit.MeanAbsPct) > 1e-3 ||
		*r.WorstAbsPct < *r.MeanAbsPct {
		t.Errorf("%+v", r)
	}
}

// TestCheckShowsTaintedCells: tainted cells have an error that no mean contains.
func TestCheckShowsTaintedCells(t *testing.T) {
	d := fitted(t, 0, FitOptions{})
	cached := Cell{Engine: "pread", Chunk: units.MiB, Depth: 4, Rate: 44 * units.GBps,
		Tainted: "page cache"}
	cached.Model = d.Flash.Throughput("pread", 2, cached.Chunk, cached.Depth)
	lost := cached
	lost.Rate = 0
	before, _ := Check(d)
	d.Fit.Cells = append(d.Fit.Cells, cached, lost)
	r, err := Check(d)
	if err != nil {
		t.Fatal(err)
	}
	if r.Tainted != 2 || r.Clean != before.Clean || *r.LeaveOneOutPct != *before.LeaveOneOutPct ||
		*r.MeanAbsPct != *before.MeanAbsPct {
		t.Errorf("tainted cells moved the result from %+v to %+v", before, r)
	}
	if last := r.Cells[len(r.Cells)-2:]; last[0].ErrorPct == nil || *last[0].ErrorPct > -80 ||
		last[1].ErrorPct != nil {
		t.Errorf("tainted cells: %+v", last)
	}
}

// TestLeaveOneOutForgetsTheCell: a single cell shows the link. A fit without that cell cannot know
// the link and must be wrong about it.
func TestLeaveOneOutForgetsTheCell(t *testing.T) {
	truth := flash.Spec{Servers: 16, LTFB: 100 * units.Microsecond, LinkRate: 6 * units.GBps,
		Align: 4096, Engines: map[string]flash.EngineCost{"pread": {}}}
	var cells []Cell
	for _, c := range []struct {
		chunk units.Bytes
		depth int
	}{{4096, 1}, {4096, 8}, {4096, 32}, {8192, 32}, {units.MiB, 32}} {
		cells = append(cells, Cell{Engine: "pread", Chunk: c.chunk, Depth: c.depth,
			Rate: truth.Throughput("pread", 2, c.chunk, c.depth)})
	}
	_, fit, err := FitFlash(cells, 2, FitOptions{HostCost: map[string]units.Nanos{"pread": 0}})
	if err != nil {
		t.Fatal(err)
	}
	fastest := max(cells[2].Rate, cells[3].Rate)
	least := 100 * (1 - float64(fastest)/float64(cells[4].Rate)) / float64(len(cells))
	if *fit.LeaveOneOutPct < 0.8*least {
		t.Errorf("leave-one-out error %.3g %%; the cell of the link alone must add %.3g %%",
			*fit.LeaveOneOutPct, least)
	}
}

// TestFixedFieldsStay: the result of a fit has the fixed fields, digit for digit, and names them,
// so that the fit can be repeated from the file.
func TestFixedFieldsStay(t *testing.T) {
	known := &flash.Spec{LTFB: 71_234, LinkRate: 3_456_789_012, MaxIOPS: 1_234_567,
		Placement: flash.PlaceAny,
		Engines: map[string]flash.EngineCost{"pread": {Batch: 7, Submit: 300, Complete: 1700,
			Serial: true}}}
	fixed := []string{"flash.ltfb", "flash.link_rate", "flash.max_iops", "flash.placement",
		"flash.engines.pread"}
	d := fitted(t, 0.01, FitOptions{Known: known, Fixed: fixed})
	f := &d.Flash
	if f.LTFB != known.LTFB || f.LinkRate != known.LinkRate || f.MaxIOPS != known.MaxIOPS ||
		f.Placement != known.Placement || f.Engines["pread"] != known.Engines["pread"] {
		t.Errorf("given %+v, got %+v", known, f)
	}
	measured := fitted(t, 0.01, FitOptions{HostCost: map[string]units.Nanos{"pread": 2 *
		units.Microsecond}})
	if want := []string{"flash.engines.pread"}; !slices.Equal(measured.Fit.Fixed, want) {
		t.Errorf("the fit names %v as given, want %v", measured.Fit.Fixed, want)
	}
	for _, d := range []*Device{d, measured} {
		spec, fit, err := refit(d)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*d, Device{Version: d.Version, Name: d.Name, Source: d.Source,
			Flash: spec, Host: d.Host, Fit: &fit}); diff != "" {
			t.Errorf("the fit of the file is another (-file +again):\n%s", diff)
		}
	}
	truth := truths()["nvme"]
	if _, _, err := FitFlash(grid(&truth, 2, func() float64 { return 1 }), 2,
		FitOptions{Fixed: []string{"flash.engines.uring"}}); !errors.Is(err, ErrFit) {
		t.Errorf("an engine without a cost was taken as given: %v", err)
	}
}

// TestFitOfReadsSpreadWide: the cells are of reads over the whole device, and the fit uses the
// file's span for such reads.
func TestFitOfReadsSpreadWide(t *testing.T) {
	truth := truths()["nvme"]
	truth.Spans = []flash.Span{{Within: units.GiB, MaxIOPS: 900_000}, {MaxIOPS: 150_000,
		ExtraLTFB: 30 * units.Microsecond}}
	spec, fit, err := FitFlash(grid(&truth, 2, func() float64 { return 1 }), 2,
		FitOptions{Known: &flash.Spec{Spans: truth.Spans}, HostCost: map[string]units.Nanos{
			"pread": 2 * units.Microsecond}})
	if err != nil {
		t.Fatal(err)
	}
	if fit.WorstAbsPct > 2 || math.Abs(float64(spec.LTFB)/float64(truth.LTFB)-1) > 0.05 ||
		spec.MaxIOPS != 0 {
		t.Errorf("%.3g %% off at worst; true %+v, fitted %+v", fit.WorstAbsPct, truth, spec)
	}
}
