package cuda

import (
	"math"

	"github.com/windrow-sim/windrow/internal/units"
)

// Handles of the driver. Zero is none.
type (
	Ptr      uint64  // an address in device memory, or the device's address of host memory
	Module   uintptr // compiled kernels
	Function uintptr // a kernel of a module
	Stream   uintptr // a queue of work; 0 is the default stream, which waits for all others
	Event    uintptr // a point in a stream
)

// Driver has the calls of the CUDA driver that this package needs, for one device, with the names
// of cuda.h. All methods are safe for concurrent use. Work on a stream is asynchronous; a later
// call returns its error. Sizes are in bytes.
type Driver interface {
	// Version is the newest CUDA that the driver supports: 12040 is 12.4.
	Version() (int, error)
	// Devices is the number of devices.
	Devices() (int, error)
	// Name, Memory and Attribute describe a device.
	Name(device int) (string, error)
	Memory(device int) (units.Bytes, error)
	Attribute(device int, a Attribute) (int, error)

	// Use selects the device of all calls below, until Release.
	Use(device int) error
	Release() error
	// Synchronize waits for all work.
	Synchronize() error
	// MemInfo is the device memory that is free, and all.
	MemInfo() (free, total units.Bytes, err error)

	// Load compiles PTX for the device.
	Load(ptx string) (Module, error)
	Unload(m Module) error
	Function(m Module, name string) (Function, error)

	// Alloc reserves device memory with undefined content.
	Alloc(size int64) (Ptr, error)
	Free(p Ptr) error
	// HostAlloc allocates pinned host memory that the device can use, with undefined content. With
	// combined, host writes are fast and host reads slow.
	HostAlloc(size int64, combined bool) ([]byte, error)
	HostFree(b []byte) error
	// HostRegister pins memory outside Go's heap. HostPointer returns the device's address of it,
	// or of memory from HostAlloc.
	HostRegister(b []byte) error
	HostUnregister(b []byte) error
	HostPointer(b []byte) (Ptr, error)

	// Copies between host and device overlap with the host only if the host's memory is pinned.
	// That memory must not change until they are done.
	ToDevice(to Ptr, from []byte, s Stream) error
	ToHost(to []byte, from Ptr, s Stream) error
	OnDevice(to, from Ptr, size int64, s Stream) error
	Fill(to Ptr, value byte, size int64, s Stream) error

	// NewStream makes a stream that waits for no other.
	NewStream() (Stream, error)
	DestroyStream(s Stream) error
	SyncStream(s Stream) error
	// Wait makes a stream wait for the work that an event has marked so far.
	Wait(s Stream, e Event) error

	// NewEvent makes an event; timed is needed for Elapsed.
	NewEvent(timed bool) (Event, error)
	DestroyEvent(e Event) error
	Record(e Event, s Stream) error
	SyncEvent(e Event) error
	// Elapsed is the time between two events that have happened, to about half a microsecond.
	Elapsed(from, to Event) (units.Nanos, error)

	// Launch runs a function on a grid of blocks of threads.
	Launch(f Function, grid Grid, threads int, s Stream, args []Arg) error

	// Close unloads the driver library. The Driver is of no use then.
	Close() error
}

// Grid is the number of blocks in three dimensions, at most 2³¹−1, 65535 and 65535, none of them 0.
type Grid struct{ X, Y, Z int }

// Attribute is a fact about a device, numbered as in cuda.h (CUdevice_attribute).
type Attribute int32

// The attributes that this program asks for.
const (
	MaxThreads       Attribute = 1  // of a block
	WarpSize         Attribute = 10 // threads
	Processors       Attribute = 16 // multiprocessors
	Integrated       Attribute = 18 // 0 or 1: the host's memory is the device's
	MapsHostMemory   Attribute = 19 // 0 or 1
	CopyEngines      Attribute = 40
	UnifiedAddresses Attribute = 41 // 0 or 1
	ComputeMajor     Attribute = 75 // compute capability
	ComputeMinor     Attribute = 76
)

// Arg is an argument of a kernel.
type Arg struct {
	bits uint64
	kind ArgKind
}

// ArgKind is the type of an argument, named as in PTX.
type ArgKind string

// The kinds of arguments. PTX does not distinguish signed from unsigned here.
const (
	Word64  ArgKind = "u64"
	Word32  ArgKind = "u32"
	Float32 ArgKind = "f32"
)

// Bits returns the argument as the device gets it, in the lower bytes.
func (a Arg) Bits() uint64 { return a.bits }

// Kind returns the argument's type.
func (a Arg) Kind() ArgKind { return a.kind }

// PointerArg is an address.
func PointerArg(p Ptr) Arg { return Arg{uint64(p), Word64} }

// LongArg is a number of 64 bits.
func LongArg(n int64) Arg { return Arg{uint64(n), Word64} }

// IntArg is a number of 32 bits.
func IntArg(n int) Arg { return Arg{uint64(uint32(int32(n))), Word32} }

// FloatArg is a float32.
func FloatArg(f float32) Arg { return Arg{uint64(math.Float32bits(f)), Float32} }

// boolArg is 0 or 1.
func boolArg(b bool) Arg {
	if b {
		return IntArg(1)
	}
	return IntArg(0)
}
