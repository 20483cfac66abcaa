// Package output writes files that appear whole or not at all. Everything that windrow writes for
// its users goes through it.
//
// A file is written beside its name as NAME.PID-N.partial, which is locked while its process
// lives. Commit syncs and closes it, gives it its name and syncs the folder; only then is it there.
// What a killed process left behind has no lock: the next writer of the same name, or Clean,
// removes it. A second writer of a name is refused at once and told who holds it.
//
// No lock file is needed, and none can be left behind: the lock is on the unfinished file itself.
package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
)

// Handle is an open file, as *os.File is one.
type Handle interface {
	io.Reader
	io.Writer
	io.Seeker
	Truncate(size int64) error
	Sync() error
	Close() error
	Stat() (fs.FileInfo, error)
}

// FS has the operations on files that this package needs. Tests replace it by disks that fail or
// lose power.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (Handle, error)
	Rename(from, to string) error
	Remove(name string) error
	// SyncDir makes the entries of a folder durable.
	SyncDir(dir string) error
}

// System is the file system of the operating system. Tests embed it in others.
type System struct{}

// OpenFile opens a file as os.OpenFile does.
func (System) OpenFile(name string, flag int, perm fs.FileMode) (Handle, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err // and not a Handle around a nil file
	}
	return f, nil
}

// Rename renames a file as os.Rename does.
func (System) Rename(from, to string) error { return os.Rename(from, to) }

// Remove removes a file as os.Remove does.
func (System) Remove(name string) error { return os.Remove(name) }

// SyncDir syncs a folder, where the file system can.
func (System) SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) &&
		!errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// files is the file system in use.
var files atomic.Pointer[FS]

func init() { Use(nil) }

// Use makes the package write to another file system, nil = that of the operating system, and
// returns a function that brings back the one before. Only tests use it.
func Use(other FS) (restore func()) {
	if other == nil {
		other = System{}
	}
	before := files.Swap(&other)
	return func() { files.Store(before) }
}

func disk() FS { return *files.Load() }

// explain adds the remedy to an error of the disk. The error names the file already, or path does.
func explain(doing, path string, err error) error {
	at := doing + " " + path + ": "
	if strings.Contains(err.Error(), path) {
		at = doing + ": "
	}
	remedy := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = "; free some space, or name a file on another disk"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		remedy = "; name a file in a folder that you may write to: " + filepath.Dir(path) +
			" is not one"
	case errors.Is(err, syscall.EIO):
		remedy = "; the disk fails: name a file on another one"
	case errors.Is(err, fs.ErrNotExist):
		remedy = "; make the folder " + filepath.Dir(path) + " first"
	case errors.Is(err, syscall.ENAMETOOLONG):
		remedy = "; name a file with a shorter name"
	}
	return fmt.Errorf("output: %s%w%s", at, err, remedy)
}
