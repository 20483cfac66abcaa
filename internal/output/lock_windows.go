package output

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks a file until it is closed or the process ends. It reports false if the file is
// locked already.
func tryLock(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{OffsetHigh: 1 << 30}) // far behind the data, which stays readable
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// lockFolder does nothing: folders cannot be locked there. Two processes that begin in the same
// moment may both be refused, and no file is lost.
func lockFolder(string) (unlock func()) { return func() {} }

// beforeRename gives up the lock, because an open file cannot be renamed there.
func (f *File) beforeRename() { f.unlock() }
