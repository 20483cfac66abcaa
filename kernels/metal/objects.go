package metal

import (
	"runtime"
	"unsafe"
)

// id is an object of Objective-C. 0 is none; messages to it do nothing.
type id = uintptr

// objects is the Objective-C runtime, as far as this package uses it. The tests have one of their own.
type objects interface {
	// class is a class, to send messages to.
	class(name string) id
	// send sends a message whose answer is an object, an integer or nothing. Arguments are integers, objects, booleans, pointers and structs.
	send(to id, message string, args ...any) id
	// float, memory and chars are send for answers of other kinds. chars is a copy of a C string.
	float(to id, message string) float64
	memory(to id, message string) unsafe.Pointer
	chars(to id, message string) string
	// utf8 is send with a C string as the argument.
	utf8(to id, message, text string) id
}

// messages is what one says often.
type messages struct{ objects }

// pooled runs f on one thread of the system with a pool that releases what methods return without being named new, alloc or copy. Those objects are
// gone after f unless they are retained.
func (m messages) pooled(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pool := m.send(m.class("NSAutoreleasePool"), "new")
	defer m.send(pool, "drain")
	return f()
}

// string is the content of an NSString; none has "".
func (m messages) string(s id) string {
	if s == 0 {
		return ""
	}
	return m.chars(s, "UTF8String")
}

// describe is the text of an NSError.
func (m messages) describe(e id) string {
	if e == 0 {
		return "no reason was given"
	}
	return m.string(m.send(e, "localizedDescription"))
}

// nsString makes an NSString, which lives as long as the pool.
func (m messages) nsString(s string) id {
	return m.utf8(m.class("NSString"), "stringWithUTF8String:", s)
}
