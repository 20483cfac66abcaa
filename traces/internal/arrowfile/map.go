package arrowfile

import (
	"runtime/debug"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/refusal"
)

// Errors of End.
var (
	ErrChanged = refusal.Kind(refusal.ErrInput, "the file was truncated or written to while it "+
		"was read; start again, and let nothing write to it")
	ErrFault = refusal.Kind(refusal.ErrInput, "the mapped file cannot be read: its drive failed")
)

// A Mapping is safe against a file that shrinks. A page without data behind it is a fault that
// would end the process. It becomes an error in code that runs between Begin and a deferred End:
//
//	defer m.End(m.Begin(), &err)
//
// End also compares the file with what it was when it was mapped. The rest of the last page of a
// truncated file reads as zeros, without a fault. What leaves such code must be copied.

// Begin turns faults of this goroutine into panics and returns what they were before, for End.
func (m *Mapping) Begin() (before bool) { return debug.SetPanicOnFault(true) }

// End must be deferred. It turns a fault in the mapping into *err, and sets *err when the file has
// changed since it was mapped.
func (m *Mapping) End(before bool, err *error) {
	debug.SetPanicOnFault(before)
	fault := recover()
	if fault != nil && !m.owns(fault) {
		panic(fault)
	}
	switch {
	case m.changed():
		*err = ErrChanged
	case fault != nil:
		*err = ErrFault
	}
}

// owns reports whether a panic is a fault in the mapping.
func (m *Mapping) owns(fault any) bool {
	at, ok := fault.(interface{ Addr() uintptr })
	if !ok || len(m.data) == 0 {
		return false
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
	return at.Addr() >= first && at.Addr()-first < uintptr(len(m.data))
}

// Data is the whole file. It must not be changed.
func (m *Mapping) Data() []byte { return m.data }
