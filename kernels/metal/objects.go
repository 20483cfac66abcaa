package metal

import (
	"runtime"
	"structs"
	"unsafe"
)

// ID is an object of Objective-C. 0 is none; messages to it do nothing.
type ID = uintptr

// Objects is the Objective-C runtime, as far as this package uses it. Package standin has its own.
// Safe for concurrent use.
type Objects interface {
	// Class is a class, to send messages to.
	Class(name string) ID
	// Send sends a message that returns an object, an integer or nothing. Arguments are integers,
	// objects, booleans, pointers, Size and Range.
	Send(to ID, message string, args ...any) ID
	// Float, Pointer and Text are Send for answers of other kinds. Text is a copy of a C string.
	Float(to ID, message string) float64
	Pointer(to ID, message string) unsafe.Pointer
	Text(to ID, message string) string
	// SendText is Send with a C string as the argument.
	SendText(to ID, message, text string) ID
}

// Size is an MTLSize.
type Size struct {
	_       structs.HostLayout
	X, Y, Z uint64
}

// Range is an NSRange, in bytes.
type Range struct {
	_          structs.HostLayout
	From, Size uint64
}

// messages adds short forms of frequent messages.
type messages struct{ Objects }

// pooled runs f on one thread of the system with an autorelease pool. The pool releases the objects
// of methods other than new, alloc and copy after f, unless they are retained.
func (m messages) pooled(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pool := m.Send(m.Class("NSAutoreleasePool"), "new")
	defer m.Send(pool, "drain")
	return f()
}

// string is the content of an NSString; none has "".
func (m messages) string(s ID) string {
	if s == 0 {
		return ""
	}
	return m.Text(s, "UTF8String")
}

// describe is the text of an NSError.
func (m messages) describe(e ID) string {
	if e == 0 {
		return "no reason was given"
	}
	return m.string(m.Send(e, "localizedDescription"))
}

// nsString makes an NSString, which lives as long as the pool.
func (m messages) nsString(s string) ID {
	return m.SendText(m.Class("NSString"), "stringWithUTF8String:", s)
}
