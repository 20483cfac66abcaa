package output

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// File is a file that is being written. It is not safe for concurrent use.
type File struct {
	path    string // the name it will have, symbolic links followed
	partial string // the name it has; "" for a device or a pipe, which has one name only
	out     Handle
	lock    *os.File
	size    int64 // bytes written
	err     error // the first error, or what ended the writing
	ended   bool  // it has its name, or is removed
	stale   []string
}

// errDone ends a file that was committed or aborted.
var errDone = errors.New("output: already written, or given up")

// ErrExists: there is a file of this name, and it may not be replaced.
var ErrExists = errors.New("output: the file exists")

// ErrBusy: another process is writing this file.
var ErrBusy = errors.New("output: the file is being written")

// Create begins the file of a name and takes over a claim on it. An existing file stays until
// Commit replaces it. A device or a pipe is written to as it is.
func Create(path string) (*File, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	if f := unpark(path); f != nil {
		return f, nil
	}
	return create(path)
}

// Claim takes a name before the work whose result it will be: it refuses a file that is there
// already, unless it may be replaced, one that another process is writing, and a folder that cannot
// be written to. Create then goes on with it. Release gives up a claim that was not taken; stale
// names what dead processes had left behind under this name, which is removed.
func Claim(path string, replace bool) (release func(), stale []string, err error) {
	to, err := resolve(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(to); err == nil && info.Mode().IsRegular() && !replace {
		return nil, nil, fmt.Errorf("%w: %s; write to another name, or say --force to replace it",
			ErrExists, path)
	}
	f, err := create(to)
	if err != nil {
		return nil, nil, err
	}
	park(f)
	return func() {
		if unpark(f.path) == f {
			f.Abort()
		}
	}, f.stale, nil
}

// parked holds the files that are claimed and not yet created, by name. As the lock, a claim
// belongs to the process.
var parked struct {
	sync.Mutex
	files map[string]*File
}

func park(f *File) {
	parked.Lock()
	defer parked.Unlock()
	if parked.files == nil {
		parked.files = map[string]*File{}
	}
	parked.files[f.path] = f
}

func unpark(path string) *File {
	parked.Lock()
	defer parked.Unlock()
	f := parked.files[path]
	delete(parked.files, path)
	return f
}

// resolve follows symbolic links, so that the file that a link names is replaced and not the link.
func resolve(path string) (string, error) {
	const most = 40 // as the kernel's
	for range most {
		to, err := os.Readlink(path)
		if err != nil {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", explain("create", path, err)
			}
			return filepath.Join(dir, filepath.Base(path)), nil
		}
		if _, err := os.Stat(to); err != nil && strings.HasPrefix(path, "/proc/") {
			return path, nil // its text is no path: "pipe:[123]"
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", fmt.Errorf("output: create %s: more than %d symbolic links; name the file itself",
		path, most)
}

// create begins a file under a resolved name.
func create(path string) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("output: create %s: it is a folder; name a file", path)
	case err == nil && !info.Mode().IsRegular():
		out, err := disk().OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, explain("create", path, err)
		}
		return &File{path: path, out: out}, nil
	}
	unlock := lockFolder(filepath.Dir(path))
	defer unlock()
	stale, err := sweepStale(path)
	if err != nil {
		return nil, err
	}
	f, err := newPartial(path)
	if err != nil {
		return nil, explain("create", path, err)
	}
	f.stale = stale
	return f, nil
}

// newPartial makes an unfinished file with a name that is free, and locks it.
func newPartial(path string) (*File, error) {
	var err error
	for n := range 1000 {
		f := &File{path: path, partial: partialName(path, n)}
		f.out, err = disk().OpenFile(f.partial, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if ok := f.takeLock(); ok {
			return f, nil
		}
		// Someone took it for a dead one before it was locked.
		f.out.Close()
	}
	return nil, err
}

// takeLock locks the unfinished file through a second opening of it, which stays open when the file
// is closed before its renaming. It reports false if the name is another file by now. A file system
// without locks gives none.
func (f *File) takeLock() bool {
	lock, err := OpenRegular(f.partial)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		return true // such as one that its user may write but not read
	}
	if taken, err := tryLock(lock); err != nil || !taken {
		lock.Close()
		return err != nil
	}
	now, err := os.Stat(f.partial)
	mine, err2 := lock.Stat()
	if err != nil || err2 != nil || !os.SameFile(now, mine) {
		lock.Close()
		return false
	}
	f.lock = lock
	return true
}

// suffix ends the name of every file that is being written.
const suffix = ".partial"

func partialName(path string, n int) string {
	return fmt.Sprintf("%s.%d-%d%s", path, os.Getpid(), n, suffix)
}

// partialForm matches the names that partialName makes.
var partialForm = regexp.MustCompile(`^(.+)\.([0-9]+)-[0-9]+\.partial$`)

// parsePartial returns the name that an unfinished file will have, and its process.
func parsePartial(name string) (base string, pid int, ok bool) {
	m := partialForm.FindStringSubmatch(name)
	if m == nil {
		return "", 0, false
	}
	pid, err := strconv.Atoi(m[2])
	return m[1], pid, err == nil
}

// sweepStale removes the unfinished files of dead processes for one name, and refuses a name that a
// living one is writing.
func sweepStale(path string) (removed []string, err error) {
	dir, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		// A folder that may be written and not listed has no news; one that is missing has.
		if errors.Is(err, fs.ErrPermission) {
			return nil, nil
		}
		return nil, explain("create", path, err)
	}
	for _, e := range entries {
		base, pid, ok := parsePartial(e.Name())
		if !ok || base != name || !e.Type().IsRegular() {
			continue
		}
		switch dead, err := removeDead(dir + e.Name()); {
		case err != nil:
			return removed, explain("remove", dir+e.Name(), err)
		case dead:
			removed = append(removed, dir+e.Name())
		default:
			return removed, fmt.Errorf("%w: process %d writes %s (%s); wait for it, or write to "+
				"another name", ErrBusy, pid, path, e.Name())
		}
	}
	return removed, nil
}

// removeDead removes an unfinished file that is not locked. It reports false for a locked one, and
// on a file system without locks.
func removeDead(name string) (bool, error) {
	f, err := OpenRegular(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // its writer has just finished
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	taken, err := tryLock(f)
	if err != nil || !taken {
		return false, nil
	}
	// The lock is held while the name is removed, so that no second reader removes a new one.
	if now, err := os.Stat(name); err != nil {
		return errors.Is(err, fs.ErrNotExist), nil
	} else if mine, err := f.Stat(); err != nil || !os.SameFile(now, mine) {
		return false, err
	}
	if err := disk().Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}

// Path is the name that the file will have.
func (f *File) Path() string { return f.path }

// Size is the number of bytes written.
func (f *File) Size() int64 { return f.size }

// Write implements io.Writer. The first error is final: every later call returns it, and Commit
// does.
func (f *File) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.out.Write(p)
	f.size += int64(n)
	if err == nil && n < len(p) {
		err = errors.New("the disk took fewer bytes than it got")
	}
	if err != nil {
		f.err = explain("write", f.path, err)
	}
	return n, f.err
}

// Commit syncs the file and gives it its name. On an error nothing is left of it, and an older file
// of the name stays; only if syncing the folder fails, the new file is there, whole, though a power
// cut may bring the older one back. There is no second try after a sync that failed: the kernel
// then takes lost pages for written ones.
func (f *File) Commit() error { return f.CommitAs(f.path) }

// CommitAs is Commit under another name in the same folder.
func (f *File) CommitAs(path string) error {
	defer busy()()
	if err := f.Seal(); err != nil {
		return err
	}
	to, err := resolve(path)
	if err != nil {
		f.Abort()
		return err
	}
	return f.rename(to)
}

// Name is the name of the unfinished file, for one that is not meant to stay.
func (f *File) Name() string { return f.partial }

// Seal makes the bytes durable and closes the file under its unfinished name, which stays locked.
// On an error the file is removed. Commit seals by itself.
func (f *File) Seal() error {
	defer busy()()
	if f.out == nil && f.err == nil {
		return nil
	}
	if f.err == nil {
		err := f.flush()
		if closing := f.out.Close(); err == nil {
			err = closing
		}
		f.out = nil
		if err == nil {
			return nil
		}
		f.err = explain("write", f.path, err)
	}
	err := f.err
	f.Abort()
	return err
}

// flush syncs the file and compares its size with the bytes written.
func (f *File) flush() error {
	if f.partial == "" {
		return nil // a pipe has nothing to sync
	}
	if err := f.out.Sync(); err != nil {
		return err
	}
	info, err := f.out.Stat()
	if err == nil && info.Size() != f.size {
		err = fmt.Errorf("the disk holds %d bytes of %d", info.Size(), f.size)
	}
	return err
}

// rename gives a sealed file its name.
func (f *File) rename(path string) error {
	if f.partial == "" {
		f.err, f.ended = errDone, true
		return nil
	}
	f.beforeRename()
	if err := disk().Rename(f.partial, path); err != nil {
		f.err = explain("write", path, err)
		f.Abort()
		return f.err
	}
	f.err, f.ended = errDone, true
	f.unlock()
	if err := disk().SyncDir(filepath.Dir(path)); err != nil {
		return explain("sync the folder of", path, err)
	}
	return nil
}

// Abort gives the file up and removes what was written. After Commit it does nothing, so it can be
// deferred.
func (f *File) Abort() {
	if f.ended {
		return
	}
	f.ended = true
	if f.out != nil {
		f.out.Close() // its error does not matter: the file is removed
		f.out = nil
	}
	if f.err == nil {
		f.err = errDone
	}
	if f.partial != "" {
		_ = disk().Remove(f.partial) // if it stays, it is a dead one's
	}
	f.unlock()
}

func (f *File) unlock() {
	if f.lock != nil {
		f.lock.Close()
		f.lock = nil
	}
}

// CommitPair gives two files their names, the second of which describes the first. At no moment, a
// power cut included, does a description lie beside a file that it does not describe: an older
// description goes first, then the file comes, then its description. Other names in the same folder
// may be given; "" means their own.
func CommitPair(file, about *File, path, aboutPath string) error {
	defer file.Abort()
	defer about.Abort()
	if err := errors.Join(file.Seal(), about.Seal()); err != nil {
		return err
	}
	to, err := resolve(cmp.Or(path, file.path))
	if err != nil {
		return err
	}
	aboutTo, err := resolve(cmp.Or(aboutPath, about.path))
	if err != nil {
		return err
	}
	err = disk().Remove(aboutTo)
	if err == nil {
		err = disk().SyncDir(filepath.Dir(aboutTo))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain("replace", aboutTo, err)
	}
	if err := file.rename(to); err != nil {
		return err
	}
	return about.rename(aboutTo)
}

// Write writes a whole file by a function.
func Write(path string, write func(f *File) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}
