//go:build unix

package output

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock of a file, which ends with its closing or its process. It reports false if
// somebody else has it, and an error if there are no locks here.
func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

// lockFolder lets one process at a time look for other writers and add itself. A folder that
// somebody else keeps locked, or that cannot be locked, is done without: then two processes that
// begin in the same moment may both be refused, and no file is lost.
func lockFolder(dir string) (unlock func()) {
	d, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	const patience = 100
	for range patience {
		taken, err := tryLock(d)
		if taken {
			return func() { d.Close() }
		}
		if err != nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	d.Close()
	return func() {}
}

// beforeRename does nothing: the lock is kept until the file has its name.
func (f *File) beforeRename() {}
