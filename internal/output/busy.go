package output

import "sync/atomic"

// working counts the operations on files that are under way.
var working atomic.Int64

// Busy reports whether a result is being written right now: an interrupted verb may still be saving
// what it has.
func Busy() bool { return working.Load() > 0 }

// busy is called when an operation begins; what it returns, when it ends.
func busy() (done func()) {
	working.Add(1)
	return func() { working.Add(-1) }
}
