// Package outputtest has disks that fail, fill up or lose power, for package output. Only tests
// import it.
package outputtest

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"

	"github.com/windrow-sim/windrow/internal/output"
)

// Use puts a disk in place of that of the operating system until the test ends. Tests that use it
// must not be parallel.
func Use(t testing.TB, disk output.FS) { t.Cleanup(output.Use(disk)) }

// Faults is a disk one of whose operations fails. It counts the operations from 1; those that do
// not change anything, such as a Stat, are not counted.
type Faults struct {
	At     int   // the operation that fails, 0 = none
	Err    error // what it fails with
	Sticky bool  // all later operations fail too, as on a disk that is broken or full
	// Short makes a failing write take half of its bytes and report no error.
	Short bool

	mu    sync.Mutex
	count int
	fired string
}

// Count returns the number of operations so far.
func (d *Faults) Count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// Fired describes the first operation that failed, as in "sync x.partial"; "" if none did.
func (d *Faults) Fired() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fired
}

// step counts an operation and returns the error it fails with. Removing is counted and never
// fails first: nothing depends on it.
func (d *Faults) step(what, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	if d.At == 0 || d.count < d.At || d.count > d.At && !d.Sticky {
		return nil
	}
	if d.fired == "" {
		d.fired = what + " " + filepath.Base(name)
	}
	return &fs.PathError{Op: what, Path: name, Err: d.Err}
}

// OpenFile implements output.FS.
func (d *Faults) OpenFile(name string, flag int, perm fs.FileMode) (output.Handle, error) {
	if err := d.step("open", name); err != nil {
		return nil, err
	}
	h, err := output.System{}.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faulty{h, d, name}, nil
}

// Rename implements output.FS.
func (d *Faults) Rename(from, to string) error {
	if err := d.step("rename", from); err != nil {
		return err
	}
	return output.System{}.Rename(from, to)
}

// Remove implements output.FS.
func (d *Faults) Remove(name string) error {
	if err := d.step("remove", name); err != nil {
		return err
	}
	return output.System{}.Remove(name)
}

// SyncDir implements output.FS.
func (d *Faults) SyncDir(dir string) error {
	if err := d.step("sync", dir); err != nil {
		return err
	}
	return output.System{}.SyncDir(dir)
}

// faulty is a file on a disk that fails.
type faulty struct {
	output.Handle
	disk *Faults
	name string
}

func (f *faulty) Write(p []byte) (int, error) {
	if err := f.disk.step("write", f.name); err != nil {
		n, _ := f.Handle.Write(p[:len(p)/2])
		if f.disk.Short {
			return n, nil
		}
		return n, err
	}
	return f.Handle.Write(p)
}

func (f *faulty) Truncate(size int64) error {
	if err := f.disk.step("truncate", f.name); err != nil {
		return err
	}
	return f.Handle.Truncate(size)
}

func (f *faulty) Sync() error {
	if err := f.disk.step("sync", f.name); err != nil {
		return err
	}
	return f.Handle.Sync()
}

func (f *faulty) Close() error {
	err := f.disk.step("close", f.name)
	if closing := f.Handle.Close(); err == nil {
		err = closing
	}
	return err
}

// Full is a disk with room for some bytes.
type Full struct {
	output.System
	Room int64
	Err  error // what a write fails with that does not fit

	mu sync.Mutex
}

// OpenFile implements output.FS.
func (d *Full) OpenFile(name string, flag int, perm fs.FileMode) (output.Handle, error) {
	h, err := d.System.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &filling{h, d, name}, nil
}

// filling is a file on a disk that fills up.
type filling struct {
	output.Handle
	disk *Full
	name string
}

func (f *filling) Write(p []byte) (int, error) {
	f.disk.mu.Lock()
	fits := min(int64(len(p)), f.disk.Room)
	f.disk.Room -= fits
	f.disk.mu.Unlock()
	n, err := f.Handle.Write(p[:fits])
	if err == nil && n < len(p) {
		err = &fs.PathError{Op: "write", Path: f.name, Err: f.disk.Err}
	}
	return n, err
}

// Each runs do on disks whose first, second, … operation fails with err, until none fails any
// more. It calls check after each run, with what failed and the error of do.
func Each(t *testing.T, err error, do func() error, check func(fired string, got error)) {
	t.Helper()
	const most = 10000
	for at := 1; at <= most; at++ {
		disk := &Faults{At: at, Err: err}
		restore := output.Use(disk)
		got := do()
		restore()
		if disk.Fired() == "" {
			if got != nil {
				t.Errorf("on a good disk: %v", got)
			}
			if at == 1 {
				t.Error("nothing was written")
			}
			return
		}
		check(fmt.Sprintf("operation %d, %s", at, disk.Fired()), got)
	}
	t.Errorf("more than %d operations", most)
}
