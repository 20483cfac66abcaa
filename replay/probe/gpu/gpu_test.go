package gpu

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/cuda/standin"
)

// madeUp is a driver of a device that computes nothing and whose times follow from these numbers,
// in nanoseconds and bytes per nanosecond.
type madeUp struct {
	names      []string
	host, busy float64 // clocks of the host and of the one stream
	events     []float64
	jitter     int
	failAfter  int // launches; 0 = never
	cancel     func()
	launches   int
	allocated  int64
	noClock    bool
	slowGate   float64
}

// The made-up device: what the fit has to find.
const (
	transferRate, transferFixed = 25.0, 7000
	scatterRate, scatterFixed   = 20.0, 6000
	moveRate, moveFixed         = 400.0, 3000
	denseRate, denseFixed       = 800.0, 4000
	rowRate, rowFixed           = 600.0, 9000
	kvRate, kvFixed             = 500.0, 5000
	kernelFixed                 = 2000
	launchFixed, syncFixed      = 3500, 8000
)

func (m *madeUp) work(fixed, bytes, rate float64) {
	m.host += launchFixed
	m.jitter++
	if m.jitter%10 == 0 { // one in ten is late, as on a real one
		fixed *= 1.01
	}
	m.busy = max(m.busy, m.host) + fixed + bytes/rate
}

func (m *madeUp) Launch(f cuda.Function, g cuda.Grid, _ int, _ cuda.Stream, a []cuda.Arg) error {
	m.launches++
	if m.launches == m.failAfter {
		m.cancel()
	}
	number := func(i int) float64 { return float64(a[i].Bits()) }
	name := m.names[f-1]
	weight := map[string]float64{"f16": 2, "bf16": 2, "f32": 4, "q8": 34.0 /
		32}[name[strings.LastIndex(name, "_")+1:]]
	switch {
	case strings.HasPrefix(name, "matvec"):
		m.work(denseFixed, number(4)*number(5)*weight, denseRate)
	case strings.HasPrefix(name, "ffn_values"):
		kinds := 2.0
		if a[1].Bits() != 0 {
			kinds = 3
		}
		m.work(rowFixed/2, number(9)*number(10)*weight*kinds, rowRate)
	case strings.HasPrefix(name, "ffn"):
		m.work(rowFixed/4, 0, 1)
	case name == "attend_f32":
		m.work(kvFixed/2, 2*4*number(8)*number(6)*float64(m.positions(g)), kvRate)
	case name == "attend_join":
		m.work(kvFixed/2, 0, 1)
	case name == "scatter":
		m.work(scatterFixed, float64(g.X*g.Y)*number(6), scatterRate)
	case name == "row_move":
		m.work(moveFixed, float64(g.X*g.Y)*number(5), moveRate)
	default:
		m.work(kernelFixed, 0, 1)
	}
	return nil
}

// positions are those of a whole number of parts of 128.
func (m *madeUp) positions(g cuda.Grid) int { return g.Y * 128 }

func (m *madeUp) ToDevice(_ cuda.Ptr, from []byte, _ cuda.Stream) error {
	m.work(transferFixed, float64(len(from)), transferRate)
	return nil
}

func (m *madeUp) OnDevice(_, _ cuda.Ptr, size int64, _ cuda.Stream) error {
	m.work(kernelFixed, float64(size)*m.slowGate, 1000)
	return nil
}

func (m *madeUp) Record(e cuda.Event, _ cuda.Stream) error {
	m.events[e-1] = max(m.busy, m.host)
	return nil
}

func (m *madeUp) Elapsed(from, to cuda.Event) (units.Nanos, error) {
	if m.noClock {
		return 0, &cuda.Error{Call: "cuEventElapsedTime", Code: notSupported}
	}
	return units.Nanos(math.Round(m.events[to-1] - m.events[from-1])), nil
}

func (m *madeUp) SyncStream(cuda.Stream) error {
	m.host = max(m.host, m.busy) +
		syncFixed
	return nil
}
func (m *madeUp) SyncEvent(cuda.Event) error { return m.SyncStream(0) }
func (m *madeUp) Synchronize() error         { return m.SyncStream(0) }

func (m *madeUp) NewEvent(bool) (cuda.Event, error) {
	m.events = append(m.events, 0)
	return cuda.Event(len(m.events)), nil
}

func (m *madeUp) Alloc(size int64) (cuda.Ptr, error) {
	m.allocated += (size + 255) / 256 * 256
	return cuda.Ptr(1<<40 + m.allocated), nil
}

func (m *madeUp) Function(_ cuda.Module, name string) (cuda.Function, error) {
	m.names = append(m.names, name)
	return cuda.Function(len(m.names)), nil
}

func (m *madeUp) Version() (int, error)                      { return 12040, nil }
func (m *madeUp) Devices() (int, error)                      { return 1, nil }
func (m *madeUp) Name(int) (string, error)                   { return "made up", nil }
func (m *madeUp) Memory(int) (units.Bytes, error)            { return 24 * units.GiB, nil }
func (m *madeUp) Attribute(int, cuda.Attribute) (int, error) { return 8, nil }
func (m *madeUp) Use(int) error                              { return nil }
func (m *madeUp) Release() error                             { return nil }
func (m *madeUp) MemInfo() (free, total units.Bytes, err error) {
	return 24 * units.GiB, 24 * units.GiB, nil
}
func (m *madeUp) Load(string) (cuda.Module, error)              { return 1, nil }
func (m *madeUp) Unload(cuda.Module) error                      { return nil }
func (m *madeUp) Free(cuda.Ptr) error                           { return nil }
func (m *madeUp) HostAlloc(size int64, _ bool) ([]byte, error)  { return make([]byte, size), nil }
func (m *madeUp) HostFree([]byte) error                         { return nil }
func (m *madeUp) HostRegister([]byte) error                     { return nil }
func (m *madeUp) HostUnregister([]byte) error                   { return nil }
func (m *madeUp) HostPointer([]byte) (cuda.Ptr, error)          { return 1 << 41, nil }
func (m *madeUp) ToHost([]byte, cuda.Ptr, cuda.Stream) error    { return nil }
func (m *madeUp) Fill(cuda.Ptr, byte, int64, cuda.Stream) error { return nil }
func (m *madeUp) NewStream() (cuda.Stream, error)               { return 1, nil }
func (m *madeUp) DestroyStream(cuda.Stream) error               { return nil }
func (m *madeUp) Wait(cuda.Stream, cuda.Event) error            { return nil }
func (m *madeUp) DestroyEvent(cuda.Event) error                 { return nil }
func (m *madeUp) Close() error                                  { return nil }

func (m *madeUp) open(t *testing.T) (*cuda.Device, Options) {
	t.Helper()
	d, err := cuda.Open(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d, Options{now: func() time.Duration { return time.Duration(m.host) }}
}

// near says whether two numbers are within percent.
func near(got, want, percent float64) bool { return math.Abs(got/want-1) <= percent/100 }

// TestMeasureFinds: what the device is made of comes out, although it is faster than the host can
// ask: small matrices take less than their launch.
func TestMeasureFinds(t *testing.T) {
	m := &madeUp{slowGate: 1}
	d, opt := m.open(t)
	seen := 0
	opt.Progress = func(done, total int) { seen = total - done }
	g, err := Measure(t.Context(), d, opt)
	if err != nil {
		t.Fatal(err)
	}
	if g.Model != "made up" || g.Memory != 24*units.GiB || seen != 0 {
		t.Errorf("%q with %v, progress ended %d before the end", g.Model, g.Memory, seen)
	}
	for _, c := range []struct {
		name               string
		got, want, percent float64
	}{
		{"transfer_rate", float64(g.TransferRate), 25e9, 1}, {"scatter_rate",
			float64(g.ScatterRate), 20e9, 1}, {"move_rate", float64(g.MoveRate), 400e9, 1},
		{"dense_rate", float64(g.DenseRate), 800e9, 1}, {"row_rate", float64(g.RowRate), 600e9, 1},
		{"kv_rate", float64(g.KVRate), 500e9, 1},
		{"transfer_fixed", float64(g.TransferFixed), transferFixed, 2}, {"scatter_fixed",
			float64(g.ScatterFixed), scatterFixed, 2},
		{"move_fixed", float64(g.MoveFixed), moveFixed, 2}, {"dense_fixed", float64(g.DenseFixed),
			denseFixed, 2}, {"row_fixed", float64(g.RowFixed), rowFixed, 2},
		{"kv_fixed", float64(g.KVFixed), kvFixed, 2}, {"kernel_fixed", float64(g.KernelFixed),
			kernelFixed, 2},
		{"launch_fixed", float64(g.LaunchFixed), launchFixed, 1}, {"sync_fixed",
			float64(g.SyncFixed), syncFixed, 2},
		{"bf16 dense", float64(g.Precisions["bf16"].DenseRate), 800e9, 2},
		{"q8 rows", float64(g.Precisions["q8"].RowRate), 600e9, 2},
		{"f32 rows", float64(g.Precisions["f32"].RowRate), 600e9, 2},
	} {
		if !near(c.got, c.want, c.percent) {
			t.Errorf("%s is %g, want %g", c.name, c.got, c.want)
		}
	}
	if off, s := Worst(g); off > 2 {
		t.Errorf("%s %s: the model is off by %.3g %%", s.Of, s.Shape, off)
	}
	for _, of := range devicemodels.GPUTerms() {
		if !slices.ContainsFunc(g.Samples, func(s devicemodels.GPUSample) bool {
			return s.Of == of && s.Kind == devicemodels.SampleMeasured && s.Runs == defaultRuns
		}) {
			t.Errorf("nothing was measured of %s", of)
		}
	}
	device := &devicemodels.Device{Version: "1", Name: "x", Source: "test",
		Sources: map[string]string{"gpu": "test"}, GPU: g}
	if err := device.Validate(); err == nil || strings.Contains(err.Error(), "gpu") {
		t.Errorf("the flash is missing and nothing else: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestStreamIsHeld: a device whose copies are over at once lets the stream run dry, and then
// nothing is returned.
func TestStreamIsHeld(t *testing.T) {
	m := &madeUp{slowGate: 0}
	d, opt := m.open(t)
	if _, err := Measure(t.Context(), d, opt); err == nil || !strings.Contains(err.Error(),
		"holds its stream") {
		t.Errorf("got %v", err)
	}
}

func TestNoClockNoNumbers(t *testing.T) {
	m := &madeUp{noClock: true, slowGate: 1}
	d, opt := m.open(t)
	if g, err := Measure(t.Context(), d, opt); g != nil || !errors.Is(err, ErrNoClock) ||
		!errors.Is(err, cuda.ErrEnvironment) {
		t.Errorf("got %v, %v", g, err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &madeUp{slowGate: 1, failAfter: 100, cancel: cancel}
	d, opt := m.open(t)
	if g, err := Measure(ctx, d, opt); g != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", g, err)
	}
}

// TestStandin makes every call on the stand-in: shapes and addresses are right, and there are no
// times.
func TestStandin(t *testing.T) {
	library := os.Getenv("WINDROW_CUDA_LIBRARY")
	if library != "" {
		t.Skip("a real device is measured by windrow probe --backend cuda")
	}
	driver, err := cuda.OpenLibrary(standin.Open(t).Path())
	if err != nil {
		t.Fatal(err)
	}
	d, err := cuda.Open(driver, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := Measure(t.Context(), d, Options{}); !errors.Is(err, ErrNoClock) {
		t.Errorf("a stand-in was measured: %v", err)
	}
	if n, err := Check(t.Context(), d); err != nil || n < 20 {
		t.Errorf("%d calls, %v", n, err)
	}
}

// TestLineByHand: 100 bytes in 30 ns and 300 bytes in 50 ns are 20 ns and 10 bytes per ns.
func TestLineByHand(t *testing.T) {
	at := func(bytes units.Bytes, took units.Nanos) sample {
		return sample{of: "dense",
			bytes: bytes, took: took}
	}
	fixed, rate, err := lineOver([]sample{at(100, 30), at(300, 50), {of: "rows", bytes: 1, took: 1},
		{of: "dense", precision: "q8", bytes: 1, took: 1}}, "dense")
	if err != nil || fixed != 20 || rate != 10*units.GBps {
		t.Errorf("%v and %v, %v", fixed, rate, err)
	}
	// Through (100, 5) and (300, 45) a line would begin below zero: it goes through the origin.
	if fixed, _, err := lineOver([]sample{at(100, 5), at(300, 45)}, "dense"); err != nil ||
		fixed != 0 {
		t.Errorf("%v, %v", fixed, err)
	}
	if _, _, err := lineOver([]sample{at(100, 50), at(300, 30)}, "dense"); err == nil {
		t.Error("more bytes take less, and no error")
	}
	if _, _, err := lineOver([]sample{at(100, 50)}, "dense"); err == nil {
		t.Error("a line through one point")
	}
}

func TestMedianAndSpread(t *testing.T) {
	median, spread := medianOf([]float64{100, 104, 96, 100, 102, 98, 1000, 100})
	// Quartiles 100 and 104 (of 96 98 100 100 100 102 104 1000, entries 2 and 6): 4 % ·
	// 1.645/1.349.
	if median != 100 || spread != 4.88 {
		t.Errorf("median %g, spread %g %%", median, spread)
	}
}
