package flashio

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/windrow-sim/windrow/internal/units"
)

func describeFile(f *os.File) (FileInfo, error) {
	info, err := describePlain(f)
	if err != nil {
		return info, err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err == nil {
		info.FileSystem = unix.ByteSliceToString(fs.Fstypename[:])
		info.MemoryBacked = isMemoryFileSystem(info.FileSystem)
	}
	return info, nil
}

// setDirect makes reads bypass the cache as far as the system allows.
func setDirect(f *os.File) (note string, err error) {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_NOCACHE, 1); err != nil {
		return "", err
	}
	return "F_NOCACHE is set, but pages that are cached already are still served from the " +
		"cache; empty it with `sudo purge` before measuring", nil
}

func memlockLimit() (units.Bytes, bool) { return 0, false }

// DropCache cannot drop the cache of one file on this system.
func DropCache(path string) error {
	return fmt.Errorf("flashio: drop cache: %w: no call drops the cache of %s alone; run `sudo "+
		"purge`", ErrEnvironment, path)
}
