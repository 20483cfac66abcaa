package emulated

import (
	"syscall"
	"time"
)

// pause sleeps for about t, a tenth of a millisecond late. It may end early.
func pause(t time.Duration) {
	if t <= 0 {
		return
	}
	ts := syscall.NsecToTimespec(int64(t))
	// only ever interrupted by a signal, and the caller looks at the time again
	_ = syscall.Nanosleep(&ts, nil)
}
