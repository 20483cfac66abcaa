//go:build unix

package output

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tryLock locks a file until it is closed or the process ends. It reports false if the file is
// locked already, and returns an error if the file system has no locks.
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

// lockFolder serialises the search for other writers and the creation of an unfinished file. A
// folder that stays locked, or cannot be locked, is left unlocked: then two processes that begin in
// the same moment may both be refused, and no file is lost.
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
