//go:build (linux || windows) && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/windrow-sim/windrow/internal/units"
)

// native is the Driver over the machine's own library, called through purego: it needs neither cgo
// nor CUDA's headers.
type native struct {
	library uintptr
	entries [entries]uintptr
	device  int32
	context uintptr // 0 = Use was not called
}

// OpenLibrary opens a driver library by file name; an empty name is the system's own (libcuda.so.1,
// nvcuda.dll). Without a driver or a device the error is ErrEnvironment, with the remedy.
func OpenLibrary(name string) (Driver, error) {
	if name == "" {
		name = systemLibrary
	}
	n := &native{}
	var err error
	if n.library, err = openLibrary(name); err != nil {
		return nil, environment("%s cannot be loaded (%v); %s", name, err, driverRemedy)
	}
	for e := range n.entries {
		if n.entries[e], err = findSymbol(n.library, entry(e).symbol()); err != nil {
			closeLibrary(n.library)
			return nil, environment("%s has no %s: the driver is too old; %s", name,
				entry(e).symbol(), driverRemedy)
		}
	}
	if err := n.bare(cuInit, 0); err != nil {
		closeLibrary(n.library)
		return nil, err
	}
	return n, nil
}

// bare makes a call that needs no context. Pointers among the arguments must be converted in the
// call itself: that keeps the memory they point to alive and in place.
//
//go:uintptrescapes
func (n *native) bare(e entry, args ...uintptr) error {
	code, _, _ := purego.SyscallN(n.entries[e], args...)
	return failed(e, int32(code))
}

// call makes a call in the device's context. A context belongs to a thread of the system, and
// goroutines move between threads. So call sets the context each time, which takes about a quarter
// of a microsecond and makes calls safe for all goroutines.
//
//go:uintptrescapes
func (n *native) call(e entry, args ...uintptr) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	code, _, _ := purego.SyscallN(n.entries[cuCtxSetCurrent], n.context)
	if int32(code) != 0 && !n.frees(e) {
		return failed(cuCtxSetCurrent, int32(code))
	}
	code, _, _ = purego.SyscallN(n.entries[e], args...)
	return failed(e, int32(code))
}

// frees reports whether a call frees something. Such calls are made on a lost device too.
func (n *native) frees(e entry) bool {
	switch e {
	case cuMemFree, cuMemFreeHost, cuMemHostUnregister, cuStreamDestroy, cuEventDestroy,
		cuModuleUnload:
		return true
	}
	return false
}

func failed(e entry, code int32) error {
	if code == 0 {
		return nil
	}
	return &Error{Call: e.symbol(), Code: Result(code)}
}

func (n *native) Version() (int, error) {
	var v int32
	err := n.bare(cuDriverGetVersion, uintptr(unsafe.Pointer(&v)))
	return int(v), err
}

func (n *native) Devices() (int, error) {
	var count int32
	err := n.bare(cuDeviceGetCount, uintptr(unsafe.Pointer(&count)))
	return int(count), err
}

// handle is the driver's name for a device.
func (n *native) handle(device int) (int32, error) {
	var h int32
	err := n.bare(cuDeviceGet, uintptr(unsafe.Pointer(&h)), uintptr(device))
	return h, err
}

func (n *native) Name(device int) (string, error) {
	h, err := n.handle(device)
	if err != nil {
		return "", err
	}
	name := make([]byte, 256)
	err = n.bare(cuDeviceGetName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), uintptr(h))
	return cString(name), err
}

func (n *native) Memory(device int) (units.Bytes, error) {
	h, err := n.handle(device)
	if err != nil {
		return 0, err
	}
	var size uint64
	err = n.bare(cuDeviceTotalMem, uintptr(unsafe.Pointer(&size)), uintptr(h))
	return units.Bytes(size), err
}

func (n *native) Attribute(device int, a Attribute) (int, error) {
	h, err := n.handle(device)
	if err != nil {
		return 0, err
	}
	var value int32
	err = n.bare(cuDeviceGetAttribute, uintptr(unsafe.Pointer(&value)), uintptr(a), uintptr(h))
	return int(value), err
}

func (n *native) Use(device int) error {
	if n.context != 0 {
		return fmt.Errorf("cuda: device %d is in use; Release it first", n.device)
	}
	h, err := n.handle(device)
	if err != nil {
		return err
	}
	var context uintptr
	if err := n.bare(cuDevicePrimaryCtxRetain, uintptr(unsafe.Pointer(&context)),
		uintptr(h)); err != nil {
		return err
	}
	n.device, n.context = h, context
	return nil
}

func (n *native) Release() error {
	if n.context == 0 {
		return nil
	}
	n.context = 0
	return n.bare(cuDevicePrimaryCtxRelease, uintptr(n.device))
}

func (n *native) Synchronize() error { return n.call(cuCtxSynchronize) }

func (n *native) MemInfo() (free, total units.Bytes, err error) {
	var f, t uint64
	err = n.call(cuMemGetInfo, uintptr(unsafe.Pointer(&f)), uintptr(unsafe.Pointer(&t)))
	return units.Bytes(f), units.Bytes(t), err
}

// Load adds the compiler's log to an error. The options are numbered as in cuda.h (CUjit_option).
func (n *native) Load(ptx string) (Module, error) {
	const errorLog, errorLogSize = 5, 6
	text, log := append([]byte(ptx), 0), make([]byte, 4096)
	options := [2]int32{errorLog, errorLogSize}
	values := [2]unsafe.Pointer{unsafe.Pointer(&log[0])}
	*(*uintptr)(unsafe.Pointer(&values[1])) = uintptr(len(log))
	var m uintptr
	err := n.call(cuModuleLoadDataEx, uintptr(unsafe.Pointer(&m)),
		uintptr(unsafe.Pointer(&text[0])), uintptr(len(options)),
		uintptr(unsafe.Pointer(&options)), uintptr(unsafe.Pointer(&values)))
	runtime.KeepAlive(log)
	return Module(m), noted(err, cString(log))
}

func (n *native) Unload(m Module) error { return n.call(cuModuleUnload, uintptr(m)) }

func (n *native) Function(m Module, name string) (Function, error) {
	text := append([]byte(name), 0)
	var f uintptr
	err := n.call(cuModuleGetFunction, uintptr(unsafe.Pointer(&f)), uintptr(m),
		uintptr(unsafe.Pointer(&text[0])))
	return Function(f), noted(err, name)
}

func (n *native) Alloc(size int64) (Ptr, error) {
	var p uint64
	err := n.call(cuMemAlloc, uintptr(unsafe.Pointer(&p)), uintptr(size))
	return Ptr(p), noted(err, units.Bytes(size).String())
}

func (n *native) Free(p Ptr) error { return n.call(cuMemFree, uintptr(p)) }

func (n *native) HostAlloc(size int64, combined bool) ([]byte, error) {
	const portable, mapped, writeCombined = 1, 2, 4 // CU_MEMHOSTALLOC_*
	flags := portable | mapped
	if combined {
		flags |= writeCombined
	}
	var p unsafe.Pointer
	if err := n.call(cuMemHostAlloc, uintptr(unsafe.Pointer(&p)), uintptr(size),
		uintptr(flags)); err != nil {
		return nil, noted(err, units.Bytes(size).String())
	}
	return unsafe.Slice((*byte)(p), size), nil
}

func (n *native) HostFree(b []byte) error { return n.call(cuMemFreeHost, address(b)) }

func (n *native) HostRegister(b []byte) error {
	const portable, mapped = 1, 2 // CU_MEMHOSTREGISTER_*
	return noted(n.call(cuMemHostRegister, address(b), uintptr(len(b)), portable|mapped),
		units.Bytes(len(b)).String())
}

func (n *native) HostUnregister(b []byte) error { return n.call(cuMemHostUnregister, address(b)) }

func (n *native) HostPointer(b []byte) (Ptr, error) {
	var p uint64
	err := n.call(cuMemHostGetDevicePointer, uintptr(unsafe.Pointer(&p)), address(b), 0)
	return Ptr(p), err
}

func (n *native) ToDevice(to Ptr, from []byte, s Stream) error {
	return n.call(cuMemcpyHtoDAsync, uintptr(to), uintptr(unsafe.Pointer(unsafe.SliceData(from))),
		uintptr(len(from)), uintptr(s))
}

func (n *native) ToHost(to []byte, from Ptr, s Stream) error {
	return n.call(cuMemcpyDtoHAsync, uintptr(unsafe.Pointer(unsafe.SliceData(to))), uintptr(from),
		uintptr(len(to)), uintptr(s))
}

func (n *native) OnDevice(to, from Ptr, size int64, s Stream) error {
	return n.call(cuMemcpyDtoDAsync, uintptr(to), uintptr(from), uintptr(size), uintptr(s))
}

func (n *native) Fill(to Ptr, value byte, size int64, s Stream) error {
	return n.call(cuMemsetD8Async, uintptr(to), uintptr(value), uintptr(size), uintptr(s))
}

func (n *native) NewStream() (Stream, error) {
	const nonBlocking = 1 // CU_STREAM_NON_BLOCKING
	var s uintptr
	err := n.call(cuStreamCreate, uintptr(unsafe.Pointer(&s)), nonBlocking)
	return Stream(s), err
}

func (n *native) DestroyStream(s Stream) error { return n.call(cuStreamDestroy, uintptr(s)) }

func (n *native) SyncStream(s Stream) error { return n.call(cuStreamSynchronize, uintptr(s)) }

func (n *native) Wait(s Stream, e Event) error {
	return n.call(cuStreamWaitEvent, uintptr(s), uintptr(e), 0)
}

func (n *native) NewEvent(timed bool) (Event, error) {
	const disableTiming = 2 // CU_EVENT_DISABLE_TIMING
	flags := disableTiming
	if timed {
		flags = 0
	}
	var e uintptr
	err := n.call(cuEventCreate, uintptr(unsafe.Pointer(&e)), uintptr(flags))
	return Event(e), err
}

func (n *native) DestroyEvent(e Event) error { return n.call(cuEventDestroy, uintptr(e)) }

func (n *native) Record(e Event, s Stream) error {
	return n.call(cuEventRecord, uintptr(e), uintptr(s))
}

func (n *native) SyncEvent(e Event) error { return n.call(cuEventSynchronize, uintptr(e)) }

func (n *native) Elapsed(from, to Event) (units.Nanos, error) {
	var ms float32
	err := n.call(cuEventElapsedTime, uintptr(unsafe.Pointer(&ms)), uintptr(from), uintptr(to))
	return units.Nanos(math.Round(float64(ms) * 1e6)), err
}

// mostArgs is how many arguments the largest kernel may have.
const mostArgs = 24

// packed holds a call's arguments as the driver wants them: the address of each.
type packed struct {
	bits  [mostArgs]uint64
	where [mostArgs]unsafe.Pointer
}

func (n *native) Launch(f Function, g Grid, threads int, s Stream, args []Arg) error {
	if len(args) > mostArgs {
		return fmt.Errorf("cuda: a kernel with %d arguments: at most %d are possible", len(args),
			mostArgs)
	}
	p := new(packed)
	for i, a := range args {
		// a 32-bit argument is in the first 4 bytes: all these machines are little-endian
		p.bits[i] = a.bits
		p.where[i] = unsafe.Pointer(&p.bits[i])
	}
	return n.call(cuLaunchKernel, uintptr(f), uintptr(g.X), uintptr(g.Y), uintptr(g.Z),
		uintptr(threads), 1, 1, 0, uintptr(s),
		uintptr(unsafe.Pointer(&p.where)), 0)
}

func (n *native) Close() error {
	err := n.Release()
	closeLibrary(n.library)
	return err
}

// noted adds a note to an error of the driver.
func noted(err error, note string) error {
	if e, ok := err.(*Error); ok {
		e.Note = note
	}
	return err
}

// cString is a C string's text.
func cString(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(bytes.TrimSpace(text))
}

// address returns the address of memory outside Go's heap.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
