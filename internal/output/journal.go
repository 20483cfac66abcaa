package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Journal is a file that a process appends to and a later one may go on with. It lies under a name
// of its own until Publish gives it another one, or for good. One process at a time has it.
type Journal struct {
	Handle
	path string
	lock *os.File
}

// OpenJournal begins a journal, or goes on with one that is there. fresh refuses one that is there
// with fs.ErrExist.
func OpenJournal(path string, fresh bool) (*Journal, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	if err := regular(path); err != nil {
		return nil, err
	}
	flags := os.O_RDWR | os.O_CREATE
	if fresh {
		flags |= os.O_EXCL
	}
	h, err := disk().OpenFile(path, flags, 0o666)
	if err != nil {
		return nil, explain("open", path, err)
	}
	j := &Journal{Handle: h, path: path}
	if j.lock, err = OpenRegular(path); err != nil {
		return nil, errors.Join(explain("open", path, err), h.Close())
	}
	taken, err := tryLock(j.lock)
	if !taken && err == nil { // without locks, a second process is not noticed
		return nil, errors.Join(fmt.Errorf("%w: another process appends to %s; wait for it, or "+
			"name another file", ErrBusy, path), j.Close())
	}
	return j, nil
}

// Write implements io.Writer.
func (j *Journal) Write(p []byte) (int, error) {
	n, err := j.Handle.Write(p)
	if err != nil {
		err = explain("write", j.path, err)
	}
	return n, err
}

// Truncate cuts the file.
func (j *Journal) Truncate(size int64) error {
	if err := j.Handle.Truncate(size); err != nil {
		return explain("write", j.path, err)
	}
	return nil
}

// Close closes the file and ends its lock.
func (j *Journal) Close() error {
	defer busy()()
	err := j.Handle.Close()
	if j.lock != nil {
		j.lock.Close()
		j.lock = nil
	}
	if err != nil {
		return explain("write", j.path, err)
	}
	return nil
}

// Publish syncs and closes the journal and gives it its final name. After an error it lies where it
// was.
func (j *Journal) Publish(path string) error {
	defer busy()()
	if err := j.Sync(); err != nil {
		return errors.Join(explain("write", j.path, err), j.Close())
	}
	if err := j.Close(); err != nil {
		return err
	}
	if err := disk().Rename(j.path, path); err != nil {
		return explain("write", path, err)
	}
	if err := disk().SyncDir(filepath.Dir(path)); err != nil {
		return explain("sync the folder of", path, err)
	}
	return nil
}

// Discard closes and removes the journal.
func (j *Journal) Discard() error {
	err := j.Close()
	if gone := disk().Remove(j.path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, explain("remove", j.path, gone))
	}
	return err
}
