package fio

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

func gridFile(t *testing.T) *File {
	t.Helper()
	f, err := Read(t.Context(), "testdata/grid.json")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestDeviceFromGrid fits six cells, one of them measured repeatedly.
func TestDeviceFromGrid(t *testing.T) {
	d, err := Device([]*File{gridFile(t)}, DeviceOptions{Name: "drive", Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	fit := d.Fit
	if fit.LeaveOneOutPct == nil || fit.IntervalPct == nil ||
		*fit.IntervalPct < *fit.LeaveOneOutPct {
		t.Errorf("leave-one-out %v, interval %v: the interval of single predictions is wider "+
			"than the mean error", fit.LeaveOneOutPct, fit.IntervalPct)
	}
	if d.Flash.LTFBShape.IsZero() {
		t.Error("the histogram at depth 1 gave no distribution")
	}
	if fit.DriftPct <= 0 {
		t.Errorf("drift %v of a cell that was repeated", fit.DriftPct)
	}
	seen := map[units.Bytes]bool{}
	for _, c := range fit.Cells {
		if c.Engine != "uring" || c.Reads == 0 || c.P50 == 0 || c.Source == "" {
			t.Errorf("cell %+v", c)
		}
		seen[c.Chunk] = true
	}
	if len(fit.Cells) != 6 || !seen[4*units.KiB] || !seen[64*units.KiB] {
		t.Errorf("%d cells: %v", len(fit.Cells), fit.Cells)
	}
	if e, ok := d.Flash.Engines["uring"]; !ok || !e.Serial {
		t.Errorf("engines %+v", d.Flash.Engines)
	}
}

// TestDeviceKeepsWhatIsFixed: cells below a rate from a data sheet do not change that rate.
func TestDeviceKeepsWhatIsFixed(t *testing.T) {
	d, err := Device([]*File{gridFile(t)}, DeviceOptions{Name: "drive", Known: &flash.Spec{
		LinkRate: 7 * units.GBps}, Fixed: []string{"flash.link_rate"}})
	if err != nil {
		t.Fatal(err)
	}
	if d.Flash.LinkRate != 7*units.GBps {
		t.Errorf("link rate %v, fixed at 7 GB/s", d.Flash.LinkRate)
	}
}

// TestTooLittleNamesWhatToAdd: a fit of one cell is refused, and the refusal says which measurement
// is missing.
func TestTooLittleNamesWhatToAdd(t *testing.T) {
	whole := gridFile(t)
	keep := func(want func(e *Entry) bool) *File {
		f := *whole
		f.Entries = nil
		for _, e := range whole.Entries {
			if want(&e) {
				f.Entries = append(f.Entries, e)
			}
		}
		return &f
	}
	for name, tt := range map[string]struct {
		file *File
		want string
	}{
		"one chunk": {keep(func(e *Entry) bool { return *e.Block == 4096 }),
			"add one with reads of 128 KiB"},
		"one depth": {keep(func(e *Entry) bool {
			return *e.Depth == 8 || *e.Block == 16384 &&
				*e.Depth == 8
		}), "usable cells"},
		"nothing": {&File{Name: "empty"}, "0 of 3 usable cells"},
	} {
		_, err := Device([]*File{tt.file}, DeviceOptions{Name: "drive"})
		if !errors.Is(err, devicemodels.ErrFit) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, tt.want)
		}
	}
}

// TestFewCellsAreUncertain: three cells give a device with a wide interval.
func TestFewCellsAreUncertain(t *testing.T) {
	f := gridFile(t)
	few := *f
	few.Entries = nil
	for _, e := range f.Entries {
		small := *e.Block == 4096 && (*e.Depth == 1 || *e.Depth == 32)
		if small || *e.Block == 65536 && *e.Depth == 32 {
			few.Entries = append(few.Entries, e)
		}
	}
	wide, err := Device([]*File{&few}, DeviceOptions{Name: "few"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := Device([]*File{f}, DeviceOptions{Name: "all"})
	if err != nil {
		t.Fatal(err)
	}
	if !(*wide.Fit.IntervalPct > 2**all.Fit.IntervalPct) || math.IsInf(*wide.Fit.IntervalPct, 0) {
		t.Errorf("three cells are within %v %%, all within %v %%", *wide.Fit.IntervalPct,
			*all.Fit.IntervalPct)
	}
}
