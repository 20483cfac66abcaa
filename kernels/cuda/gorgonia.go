//go:build cuda && cgo && linux

package cuda

// #cgo LDFLAGS: -lcuda
// #include <cuda.h>
import "C"

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/units"
	"gorgonia.org/cu"
)

// linked is the Driver over gorgonia.org/cu. It is linked to the driver library, so it needs CUDA's
// headers to build and a device to start: cu's init ends the process without one. The calls that cu
// lacks are made here. Handles are the driver's own; cu keeps each as the one field of a struct.
type linked struct {
	device  cu.Device
	context cu.CUContext
	used    bool
}

// OpenDriver opens the driver of this build, the linked one.
func OpenDriver() (Driver, error) { return OpenLinked() }

// OpenLinked returns the driver that the program is linked to.
func OpenLinked() (Driver, error) {
	return &linked{}, own("cuInit", C.cuInit(0))
}

// own is the error of a call that is made here.
func own(call string, code C.CUresult) error {
	if code == 0 {
		return nil
	}
	return &Error{Call: call, Code: Result(code)}
}

// theirs converts the error of a call that cu makes; its type is an unexported int.
func theirs(call string, err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.CanInt() {
		return &Error{Call: call, Code: Result(v.Int())}
	}
	return fmt.Errorf("cuda: %s: %w", call, err)
}

// within calls f in the device's context, on one thread of the system.
func (l *linked) within(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.SetCurrentContext(l.context); err != nil {
		return theirs("cuCtxSetCurrent", err)
	}
	return f()
}

// freeing is within for calls that give something back, which are made on a lost device too.
func (l *linked) freeing(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = cu.SetCurrentContext(l.context) // f reports the error
	return f()
}

// handle converts a handle of one library into the other's.
func handle[H, C any](h H) C { return *(*C)(unsafe.Pointer(&h)) }

func (l *linked) Version() (int, error) {
	var v C.int
	err := own("cuDriverGetVersion", C.cuDriverGetVersion(&v))
	return int(v), err
}

func (l *linked) Devices() (int, error) {
	n, err := cu.NumDevices()
	return n, theirs("cuDeviceGetCount", err)
}

func (l *linked) Name(device int) (string, error) {
	d, err := cu.GetDevice(device)
	if err != nil {
		return "", theirs("cuDeviceGet", err)
	}
	name, err := d.Name()
	return name, theirs("cuDeviceGetName", err)
}

func (l *linked) Memory(device int) (units.Bytes, error) {
	d, err := cu.GetDevice(device)
	if err != nil {
		return 0, theirs("cuDeviceGet", err)
	}
	size, err := d.TotalMem()
	return units.Bytes(size), theirs("cuDeviceTotalMem_v2", err)
}

func (l *linked) Attribute(device int, a Attribute) (int, error) {
	d, err := cu.GetDevice(device)
	if err != nil {
		return 0, theirs("cuDeviceGet", err)
	}
	v, err := d.Attribute(cu.DeviceAttribute(a))
	return v, theirs("cuDeviceGetAttribute", err)
}

func (l *linked) Use(device int) error {
	if l.used {
		return fmt.Errorf("cuda: device %v is in use; Release it first", l.device)
	}
	d, err := cu.GetDevice(device)
	if err != nil {
		return theirs("cuDeviceGet", err)
	}
	context, err := d.RetainPrimaryCtx()
	if err != nil {
		return theirs("cuDevicePrimaryCtxRetain", err)
	}
	l.device, l.context, l.used = d, context, true
	return nil
}

func (l *linked) Release() error {
	if !l.used {
		return nil
	}
	l.context, l.used = cu.CUContext{}, false
	return theirs("cuDevicePrimaryCtxRelease_v2", l.device.ReleasePrimaryCtx())
}

func (l *linked) Synchronize() error {
	return l.within(func() error { return theirs("cuCtxSynchronize", cu.Synchronize()) })
}

func (l *linked) MemInfo() (free, total units.Bytes, err error) {
	err = l.within(func() error {
		f, t, err := cu.MemInfo()
		free, total = units.Bytes(f), units.Bytes(t)
		return theirs("cuMemGetInfo_v2", err)
	})
	return free, total, err
}

func (l *linked) Load(ptx string) (m Module, err error) {
	err = l.within(func() error {
		got, err := cu.LoadDataEx(ptx)
		m = handle[cu.Module, Module](got)
		return theirs("cuModuleLoadDataEx", err)
	})
	return m, err
}

func (l *linked) Unload(m Module) error {
	return l.freeing(func() error {
		return theirs("cuModuleUnload", handle[Module,
			cu.Module](m).Unload())
	})
}

func (l *linked) Function(m Module, name string) (f Function, err error) {
	err = l.within(func() error {
		got, err := handle[Module, cu.Module](m).Function(name)
		f = handle[cu.Function, Function](got)
		return noted(theirs("cuModuleGetFunction", err), name)
	})
	return f, err
}

func (l *linked) Alloc(size int64) (p Ptr, err error) {
	err = l.within(func() error {
		got, err := cu.MemAlloc(size)
		p = Ptr(got)
		return noted(theirs("cuMemAlloc_v2", err), units.Bytes(size).String())
	})
	return p, err
}

func (l *linked) Free(p Ptr) error {
	return l.freeing(func() error { return theirs("cuMemFree_v2", cu.MemFree(cu.DevicePtr(p))) })
}

func (l *linked) HostAlloc(size int64, combined bool) (b []byte, err error) {
	flags := C.uint(C.CU_MEMHOSTALLOC_PORTABLE | C.CU_MEMHOSTALLOC_DEVICEMAP)
	if combined {
		flags |= C.CU_MEMHOSTALLOC_WRITECOMBINED
	}
	var p unsafe.Pointer
	err = l.within(func() error {
		return noted(own("cuMemHostAlloc", C.cuMemHostAlloc(&p, C.size_t(size), flags)),
			units.Bytes(size).String())
	})
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), size), nil
}

func (l *linked) HostFree(b []byte) error {
	return l.freeing(func() error {
		return theirs("cuMemFreeHost",
			cu.MemFreeHost(unsafe.Pointer(unsafe.SliceData(b))))
	})
}

func (l *linked) HostRegister(b []byte) error {
	const flags = C.CU_MEMHOSTREGISTER_PORTABLE | C.CU_MEMHOSTREGISTER_DEVICEMAP
	return l.within(func() error {
		code := C.cuMemHostRegister(unsafe.Pointer(unsafe.SliceData(b)), C.size_t(len(b)), flags)
		return noted(own("cuMemHostRegister_v2", code), units.Bytes(len(b)).String())
	})
}

func (l *linked) HostUnregister(b []byte) error {
	return l.freeing(func() error {
		return own("cuMemHostUnregister",
			C.cuMemHostUnregister(unsafe.Pointer(unsafe.SliceData(b))))
	})
}

func (l *linked) HostPointer(b []byte) (Ptr, error) {
	var p C.CUdeviceptr
	err := l.within(func() error {
		return own("cuMemHostGetDevicePointer_v2", C.cuMemHostGetDevicePointer(&p,
			unsafe.Pointer(unsafe.SliceData(b)), 0))
	})
	return Ptr(p), err
}

func (l *linked) ToDevice(to Ptr, from []byte, s Stream) error {
	return l.within(func() error {
		err := cu.MemcpyHtoDAsync(cu.DevicePtr(to), unsafe.Pointer(unsafe.SliceData(from)),
			int64(len(from)), handle[Stream, cu.Stream](s))
		return theirs("cuMemcpyHtoDAsync_v2", err)
	})
}

func (l *linked) ToHost(to []byte, from Ptr, s Stream) error {
	return l.within(func() error {
		err := cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(to)), cu.DevicePtr(from),
			int64(len(to)), handle[Stream, cu.Stream](s))
		return theirs("cuMemcpyDtoHAsync_v2", err)
	})
}

func (l *linked) OnDevice(to, from Ptr, size int64, s Stream) error {
	return l.within(func() error {
		err := cu.MemcpyDtoDAsync(cu.DevicePtr(to), cu.DevicePtr(from), size, handle[Stream,
			cu.Stream](s))
		return theirs("cuMemcpyDtoDAsync_v2", err)
	})
}

func (l *linked) Fill(to Ptr, value byte, size int64, s Stream) error {
	return l.within(func() error {
		return theirs("cuMemsetD8Async", cu.MemsetD8Async(cu.DevicePtr(to), value, size,
			handle[Stream, cu.Stream](s)))
	})
}

func (l *linked) NewStream() (s Stream, err error) {
	err = l.within(func() error {
		got, err := cu.MakeStream(cu.NonBlocking)
		s = handle[cu.Stream, Stream](got)
		return theirs("cuStreamCreate", err)
	})
	return s, err
}

func (l *linked) DestroyStream(s Stream) error {
	return l.freeing(func() error {
		stream := handle[Stream, cu.Stream](s)
		return theirs("cuStreamDestroy_v2", stream.Destroy())
	})
}

func (l *linked) SyncStream(s Stream) error {
	return l.within(func() error {
		return theirs("cuStreamSynchronize", handle[Stream,
			cu.Stream](s).Synchronize())
	})
}

func (l *linked) Wait(s Stream, e Event) error {
	return l.within(func() error {
		return theirs("cuStreamWaitEvent", handle[Stream, cu.Stream](s).Wait(handle[Event,
			cu.Event](e), 0))
	})
}

func (l *linked) NewEvent(timed bool) (e Event, err error) {
	flags := cu.DisableTiming
	if timed {
		flags = cu.DefaultEvent
	}
	err = l.within(func() error {
		got, err := cu.MakeEvent(flags)
		e = handle[cu.Event, Event](got)
		return theirs("cuEventCreate", err)
	})
	return e, err
}

func (l *linked) DestroyEvent(e Event) error {
	return l.freeing(func() error {
		event := handle[Event, cu.Event](e)
		return theirs("cuEventDestroy_v2", cu.DestroyEvent(&event))
	})
}

func (l *linked) Record(e Event, s Stream) error {
	return l.within(func() error {
		return theirs("cuEventRecord", handle[Event, cu.Event](e).Record(handle[Stream,
			cu.Stream](s)))
	})
}

func (l *linked) SyncEvent(e Event) error {
	return l.within(func() error {
		return theirs("cuEventSynchronize",
			handle[Event, cu.Event](e).Synchronize())
	})
}

func (l *linked) Elapsed(from, to Event) (took units.Nanos, err error) {
	err = l.within(func() error {
		ms, err := handle[Event, cu.Event](from).Elapsed(handle[Event, cu.Event](to))
		took = units.Nanos(math.Round(ms * 1e6))
		return theirs("cuEventElapsedTime", err)
	})
	return took, err
}

// Launch passes cu the address of each argument's 8 bytes. cu copies them whatever their type.
func (l *linked) Launch(f Function, g Grid, threads int, s Stream, args []Arg) error {
	bits, where := make([]uint64, len(args)), make([]unsafe.Pointer, len(args))
	for i, a := range args {
		bits[i] = a.bits
		where[i] = unsafe.Pointer(&bits[i])
	}
	return l.within(func() error {
		err := handle[Function, cu.Function](f).Launch(g.X, g.Y, g.Z, threads, 1, 1, 0,
			handle[Stream, cu.Stream](s), where)
		return theirs("cuLaunchKernel", err)
	})
}

// Close releases the device. The library stays linked.
func (l *linked) Close() error { return l.Release() }
