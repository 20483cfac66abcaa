package cuda

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	kernels "github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/cuda/standin"
	"github.com/windrow-sim/windrow/kernels/metal"
	metalstandin "github.com/windrow-sim/windrow/kernels/metal/standin"
)

// LibraryVariable names a real driver library (libcuda.so.1) to run these tests on, instead of the
// stand-ins.
const LibraryVariable = "WINDROW_CUDA_LIBRARY"

// TestDriver is a kind of device that the tests run on.
type TestDriver struct {
	Open func() (*kernels.Device, error)
	// StandIn, Faults and Launch describe an emulated device: its name, its calls that can fail,
	// and the call that launches.
	StandIn interface {
		Calls(call string) int
		Left() string
		Forget()
	}
	Faults []TestFault
	Launch TestFault
}

// TestFault is a call that fails when it is made for the nth time from now, and with lose from then
// on.
type TestFault struct {
	Call string
	Kind error  // of kernels/cuda, or nil
	Text string // part of the error's text
	Fail func(nth int, lose bool)
}

// Emulated says that the devices of EachDriver are the host's CPU.
func Emulated() bool { return os.Getenv(LibraryVariable) == "" && runtime.GOOS == "linux" }

// EachDriver runs a test on a device of each kind: a real one if there is one, else the stand-ins.
func EachDriver(t *testing.T, test func(t *testing.T, on *TestDriver)) {
	if library := os.Getenv(LibraryVariable); library != "" || runtime.GOOS != "darwin" {
		t.Run("cuda", func(t *testing.T) { test(t, cudaDriver(t, library)) })
	}
	if os.Getenv(LibraryVariable) == "" {
		t.Run("metal", func(t *testing.T) { test(t, metalDriver(t)) })
	}
}

// Device takes a device into use.
func (on *TestDriver) Device(t testing.TB) *kernels.Device {
	t.Helper()
	d, err := on.Open()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func cudaDriver(t *testing.T, path string) *TestDriver {
	t.Helper()
	on := &TestDriver{}
	if path == "" {
		library := standin.Open(t)
		path, on.StandIn = library.Path(), library
		fault := func(call string, code kernels.Result, kind error) TestFault {
			return TestFault{call, kind, fmt.Sprintf("%s: %v", call, code),
				func(nth int, lose bool) { library.Fail(call, nth, code, lose) }}
		}
		const out, unknown = 2, 999
		on.Launch = fault("cuLaunchKernel", 701, nil)
		on.Faults = []TestFault{
			fault("cuMemAlloc_v2", out, kernels.ErrMemory), fault("cuMemHostAlloc", out,
				kernels.ErrMemory), fault("cuModuleLoadDataEx", 218, nil),
			fault("cuStreamCreate", out, kernels.ErrMemory), fault("cuEventCreate", out,
				kernels.ErrMemory), on.Launch,
			fault("cuMemcpyHtoDAsync_v2", unknown, kernels.ErrLost), fault("cuMemcpyDtoHAsync_v2",
				unknown, kernels.ErrLost),
			fault("cuMemcpyDtoDAsync_v2", unknown, kernels.ErrLost), fault("cuStreamSynchronize",
				719, kernels.ErrLost),
			fault("cuStreamWaitEvent", unknown, kernels.ErrLost), fault("cuEventRecord", unknown,
				kernels.ErrLost), fault("cuMemHostGetDevicePointer_v2", 1, nil),
		}
	}
	on.Open = func() (*kernels.Device, error) {
		driver, err := kernels.OpenLibrary(path)
		if err != nil {
			return nil, err
		}
		return kernels.Open(driver, 0)
	}
	return on
}

func metalDriver(t *testing.T) *TestDriver {
	t.Helper()
	if runtime.GOOS == "darwin" {
		d, err := metal.Open()
		if errors.Is(err, metal.ErrEnvironment) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		return &TestDriver{Open: metal.Open}
	}
	r := metalstandin.Open(t)
	fault := func(message string, kind error) TestFault {
		return TestFault{message, kind, "metal: " + message, func(nth int, lose bool) {
			r.Fail(message, nth, "not today", lose)
		}}
	}
	lost := fault(metalstandin.Execution, kernels.ErrLost)
	lost.Text = "metal: commit: device lost: not today"
	launch := fault("computeCommandEncoder", kernels.ErrMemory)
	return &TestDriver{
		Open: func() (*kernels.Device, error) {
			driver, err := r.Driver()
			if err != nil {
				return nil, err
			}
			return kernels.Open(driver, 0)
		},
		StandIn: r, Launch: launch,
		Faults: []TestFault{
			fault("newBufferWithLength:options:", kernels.ErrMemory),
			fault("newLibraryWithSource:options:error:", nil),
			fault("newComputePipelineStateWithFunction:error:", nil), fault("newCommandQueue",
				kernels.ErrMemory), fault("newEvent", kernels.ErrMemory),
			fault("commandBuffer", kernels.ErrMemory), launch, fault("blitCommandEncoder",
				kernels.ErrMemory), lost,
		},
	}
}
