//go:build unix

package cli

import (
	"golang.org/x/sys/unix"

	"github.com/windrow-sim/windrow/internal/units"
)

// writable reports whether files can be made in a folder.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }

// freeSpace is what an unprivileged user can still write to the file system of dir.
func freeSpace(dir string) (units.Bytes, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return units.Bytes(uint64(s.Bavail) * uint64(s.Bsize)), true
}
