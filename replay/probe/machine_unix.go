//go:build linux || darwin

package probe

import (
	"golang.org/x/sys/unix"

	"github.com/windrow-sim/windrow/internal/units"
)

func processTime() (units.Nanos, bool) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return units.Nanos(u.Utime.Nano() + u.Stime.Nano()), true
}

func freeSpace(dir string) (units.Bytes, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return units.Bytes(s.Bavail) * units.Bytes(s.Bsize), true
}
