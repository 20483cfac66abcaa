package cuda_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/cuda/standin"
)

// session uses all operations of a device once and closes it. It returns the first error, joined
// with those of Close.
func session(library *standin.Library) (err error) {
	driver, err := openDriver(library.Path())
	if err != nil {
		return err
	}
	d, err := cuda.Open(driver, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	k, err := cuda.NewKernels(d)
	if err != nil {
		return err
	}
	s, err := d.NewStream()
	if err != nil {
		return err
	}
	e, err := d.NewEvent(false)
	if err != nil {
		return err
	}
	host, err := d.HostAlloc(64, false)
	if err != nil {
		return err
	}
	mapped, err := d.Mapped(host)
	if err != nil {
		return err
	}
	m, err := d.Alloc(64)
	if err != nil {
		return err
	}
	if err := d.Fill(m.Ptr, 0, 64, s); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return d.ToDevice(m.Ptr, host, s) },
		func() error { return k.Add(s, m, mapped, 16) },
		func() error { return d.OnDevice(m.Ptr, m.Ptr+32, 32, s) },
		func() error { return d.Record(e, s) },
		func() error { return d.Wait(s, e) },
		func() error { return d.SyncEvent(e) },
		func() error { return d.ToHost(host, m.Ptr, s) },
		func() error { return d.SyncStream(s) },
		func() error { return d.Synchronize() },
		func() error { return second(k, d.Free(m)) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// calls are the calls of session that can fail; the test fails if one is not made.
func calls() []string {
	return []string{
		"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
		"cuDeviceTotalMem_v2", "cuDeviceGetAttribute",
		"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuModuleLoadDataEx", "cuModuleGetFunction",
		"cuStreamCreate", "cuEventCreate",
		"cuMemHostAlloc", "cuMemHostGetDevicePointer_v2", "cuMemAlloc_v2", "cuMemsetD8Async",
		"cuMemcpyHtoDAsync_v2", "cuLaunchKernel",
		"cuMemcpyDtoDAsync_v2", "cuEventRecord", "cuStreamWaitEvent", "cuEventSynchronize",
		"cuMemcpyDtoHAsync_v2", "cuStreamSynchronize",
		"cuCtxSynchronize",
	}
}

// TestEveryCallFails: whichever call fails, the error names it and its code, and Close leaves
// nothing behind.
func TestEveryCallFails(t *testing.T) {
	for _, call := range calls() {
		t.Run(call, func(t *testing.T) {
			library := standin.Open(t)
			const code = 999
			library.Fail(call, 1, code, false)
			err := session(library)
			var failed *cuda.Error
			if !errors.As(err, &failed) || failed.Call != call || failed.Code != code ||
				!strings.Contains(err.Error(), "CUDA_ERROR_UNKNOWN (999)") {
				t.Errorf("%v: want %s and its code", err, call)
			}
			if library.Calls(call) == 0 {
				t.Errorf("%s is not called at all", call)
			}
		})
	}
}

// TestDeviceLost: from any call on nothing works; all that was made is given back all the same.
func TestDeviceLost(t *testing.T) {
	for _, call := range calls()[9:] { // those after the context is made
		t.Run(call, func(t *testing.T) {
			library := standin.Open(t)
			library.Fail(call, 1, 719, true)
			err := session(library)
			if !errors.Is(err, cuda.ErrLost) || !strings.Contains(err.Error(),
				call+": CUDA_ERROR_LAUNCH_FAILED (719)") || !strings.Contains(err.Error(), "Xid") {
				t.Errorf("%v: want ErrLost, the call and what to do", err)
			}
		})
	}
}

// TestFreesFail: an error of freeing is not lost. Memory that could not be freed stays until the
// process ends.
func TestFreesFail(t *testing.T) {
	for _, call := range []string{"cuMemFree_v2", "cuMemFreeHost", "cuStreamDestroy_v2",
		"cuEventDestroy_v2", "cuModuleUnload"} {
		t.Run(call, func(t *testing.T) {
			library := standin.Open(t)
			library.Fail(call, 1, 1, false)
			var failed *cuda.Error
			if err := session(library); !errors.As(err, &failed) || failed.Call != call {
				t.Errorf("%v: want %s", err, call)
			}
			if library.Left() == "" {
				t.Error("nothing is left, so nothing was tested")
			}
			library.Forget()
		})
	}
}

func TestSessionWithoutFaults(t *testing.T) {
	library := standin.Open(t)
	if err := session(library); err != nil {
		t.Fatal(err)
	}
}

// TestOutOfMemory: an allocation that does not fit is refused by name, and existing memory stays
// usable.
func TestOutOfMemory(t *testing.T) {
	d, library := emulated(t)
	library.Limit(1 << 20)
	m, err := d.Alloc(1 << 19)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Alloc(1<<19 + 1)
	if !errors.Is(err, cuda.ErrMemory) || !strings.Contains(err.Error(),
		"cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): 512") {
		t.Errorf("%v: want ErrMemory, the call and the size", err)
	}
	if free, _, err := d.MemInfo(); err != nil || free != 1<<19 {
		t.Errorf("%v are free, %v", free, err)
	}
	if err := d.Fill(m.Ptr, 0, m.Size, 0); err != nil {
		t.Error(err)
	}
}
