package sim

import (
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// TestResidentRows: an engine that multiplies all rows in memory pays for them, needed or not.
func TestResidentRows(t *testing.T) {
	head := &traces.Header{DType: "f32", UnitBytes: 1000,
		Shape: traces.Shape{DModel: 8, Rows: 2, DTypeSize: 4}}
	device := &devicemodels.Device{Host: devicemodels.Host{Cores: 1, Precision: "f32",
		RowRate: units.GBps}}
	w := &Work{Need: 10, Hits: 7, Loads: 3, Resident: 30}
	needed := NewHost(device, head, 0).Layer(0, w)
	device.Host.ResidentRows = true
	all := NewHost(device, head, 0).Layer(0, w)
	if needed.FFN != 10*units.Microsecond || all.FFN != 30*units.Microsecond {
		t.Errorf("10 needed rows take %v and 30 in memory %v, want 10us and 30us", needed.FFN,
			all.FFN)
	}
	if all.Traffic-needed.Traffic != 20*head.UnitBytes {
		t.Errorf("20 rows more are %v of traffic, want 20 kB", all.Traffic-needed.Traffic)
	}
}

// TestAcceleratorLosesNothing: reads take cores from a host that computes, and none from an
// accelerator.
func TestAcceleratorLosesNothing(t *testing.T) {
	head := &traces.Header{DType: "f16", Shape: traces.Shape{DTypeSize: 2}}
	device := &devicemodels.Device{Host: devicemodels.Host{Cores: 1, DenseRate: units.GBps}}
	beside := flash.Progress{Host: units.Millisecond}
	const computing = 4 * units.Millisecond
	own := NewHost(device, head, 0).lost(computing, 0, beside, 0)
	device.Host.Accelerator = true
	apart := NewHost(device, head, 0).lost(computing, 0, beside, 0)
	if own != units.Millisecond || apart != 0 {
		t.Errorf("a millisecond of the host for reads costs compute %v, an accelerator %v; want "+
			"1ms and 0", own, apart)
	}
}
