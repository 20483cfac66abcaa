//go:build unix

package flashio

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is the time all threads of this process have spent on processors, in and out of the
// kernel.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
