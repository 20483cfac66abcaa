package outputtest

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/windrow-sim/windrow/internal/output"
)

// Recorder is a disk that remembers what is done to one folder, so that a power cut after each
// operation can be played.
type Recorder struct {
	dir string

	mu    sync.Mutex
	steps []step
	files int
}

// step is one operation.
type step struct {
	kind     string // create, open, write, truncate, sync, rename, remove, folder
	name, to string // in the folder
	file     int    // the file it is done to, by number
	at       int64
	data     []byte
}

// Record begins to remember what is done to dir, which must have no folders.
func Record(dir string) *Recorder { return &Recorder{dir: dir} }

func (r *Recorder) add(s step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
}

func (r *Recorder) in(name string) bool {
	return filepath.Clean(filepath.Dir(name)) == filepath.Clean(r.dir)
}

// OpenFile implements output.FS.
func (r *Recorder) OpenFile(name string, flag int, perm fs.FileMode) (output.Handle, error) {
	_, missing := os.Stat(name)
	h, err := output.System{}.OpenFile(name, flag, perm)
	if err != nil || !r.in(name) {
		return h, err
	}
	r.mu.Lock()
	r.files++
	id := r.files
	r.mu.Unlock()
	kind := "open"
	if missing != nil {
		kind = "create"
	}
	r.add(step{kind: kind, name: filepath.Base(name), file: id})
	return &recorded{h, r, id}, nil
}

// Rename implements output.FS.
func (r *Recorder) Rename(from, to string) error {
	err := output.System{}.Rename(from, to)
	if err == nil && r.in(to) {
		r.add(step{kind: "rename", name: filepath.Base(from), to: filepath.Base(to)})
	}
	return err
}

// Remove implements output.FS.
func (r *Recorder) Remove(name string) error {
	err := output.System{}.Remove(name)
	if err == nil && r.in(name) {
		r.add(step{kind: "remove", name: filepath.Base(name)})
	}
	return err
}

// SyncDir implements output.FS.
func (r *Recorder) SyncDir(dir string) error {
	err := output.System{}.SyncDir(dir)
	if err == nil && filepath.Clean(dir) == filepath.Clean(r.dir) {
		r.add(step{kind: "folder"})
	}
	return err
}

// recorded is a file on such a disk.
type recorded struct {
	output.Handle
	disk *Recorder
	id   int
}

func (f *recorded) Write(p []byte) (int, error) {
	at, err := f.Handle.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	n, err := f.Handle.Write(p)
	f.disk.add(step{kind: "write", file: f.id, at: at, data: slices.Clone(p[:n])})
	return n, err
}

func (f *recorded) Truncate(size int64) error {
	err := f.Handle.Truncate(size)
	if err == nil {
		f.disk.add(step{kind: "truncate", file: f.id, at: size})
	}
	return err
}

func (f *recorded) Sync() error {
	err := f.Handle.Sync()
	if err == nil {
		f.disk.add(step{kind: "sync", file: f.id})
	}
	return err
}

// content is a file's bytes, as they are and as they are on the disk for certain.
type content struct{ now, durable []byte }

// lost says what a power cut does to bytes that were not synced.
type lost int

const (
	keepsAll  lost = iota // they had reached the disk by chance
	loseAll               // the file is as it was when it was synced last
	zerosOnly             // its length is there, and zeros for bytes
)

// Cuts plays a power cut after every operation. For each state that the folder may then be in it
// makes a folder with those files and calls check with it and with a description of the cut.
// before are the files that were there, by name. Entries that were not made durable are lost or
// kept in every combination, up to 6 of them; more are lost in order. Of writes to one file behind
// each other the first and the last are cut.
func (r *Recorder) Cuts(t *testing.T, before map[string][]byte, check func(dir, cut string)) {
	t.Helper()
	scratch := t.TempDir()
	seen := map[string]bool{}
	for cut := 0; cut <= len(r.steps); cut++ {
		if r.within(cut) {
			continue
		}
		for state := range r.states(before, r.steps[:cut]) {
			key := keyOf(state)
			if seen[key] {
				continue
			}
			seen[key] = true
			dir := filepath.Join(scratch, fmt.Sprint(len(seen)))
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, data := range state {
				if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			check(dir, r.describe(cut))
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(seen) < 2 {
		t.Error("nothing was written")
	}
}

// within reports whether a cut is between two writes to a file, behind the first.
func (r *Recorder) within(cut int) bool {
	if cut < 2 || cut == len(r.steps) {
		return false
	}
	before, last, next := r.steps[cut-2], r.steps[cut-1], r.steps[cut]
	same := func(a, b step) bool {
		return a.kind == "write" && b.kind == "write" && a.file == b.file
	}
	return same(before, last) && same(last, next)
}

// keyOf is the hash of a folder.
func keyOf(state map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(state)) {
		fmt.Fprintf(h, "%q %d\n", name, len(state[name]))
		h.Write(state[name])
	}
	return string(h.Sum(nil))
}

func (r *Recorder) describe(cut int) string {
	if cut == 0 {
		return "before the first operation"
	}
	s := r.steps[cut-1]
	return fmt.Sprintf("after operation %d of %d, %s %s", cut, len(r.steps), s.kind, s.name)
}

// states yields the folders that a cut after the steps may leave.
func (r *Recorder) states(before map[string][]byte, steps []step) iter.Seq[map[string][]byte] {
	files := map[int]*content{}
	entries := map[string]int{} // what the process sees
	durable := map[string]int{} // what a cut leaves for certain
	next := -1
	for name, data := range before {
		files[next] = &content{data, data}
		entries[name], durable[name] = next, next
		next--
	}
	opened := map[int]int{} // handle to file
	var pending []step      // entries changed since the folder was synced
	for _, s := range steps {
		f := files[opened[s.file]]
		switch s.kind {
		case "create":
			opened[s.file] = s.file
			files[s.file] = &content{}
			entries[s.name] = s.file
			pending = append(pending, s)
		case "open":
			opened[s.file] = entries[s.name]
		case "write":
			if int(s.at) == len(f.now) { // what is durable is before it and stays
				f.now = append(f.now, s.data...)
				continue
			}
			f.now = append(slices.Clone(f.now), make([]byte, max(0,
				int(s.at)+len(s.data)-len(f.now)))...)
			copy(f.now[s.at:], s.data)
		case "truncate":
			grown := make([]byte, max(0, int(s.at)-len(f.now)))
			f.now = append(slices.Clone(f.now), grown...)[:s.at]
		case "sync":
			f.durable = f.now
		case "rename":
			s.file = entries[s.name]
			entries[s.to] = s.file
			delete(entries, s.name)
			pending = append(pending, s)
		case "remove":
			delete(entries, s.name)
			pending = append(pending, s)
		case "folder":
			durable, pending = maps.Clone(entries), nil
		}
	}
	return func(yield func(map[string][]byte) bool) {
		for _, kept := range subsets(pending) {
			names := maps.Clone(durable)
			for _, s := range kept {
				switch s.kind {
				case "create":
					names[s.name] = s.file
				case "rename":
					names[s.to] = s.file
					delete(names, s.name)
				case "remove":
					delete(names, s.name)
				}
			}
			for _, how := range []lost{keepsAll, loseAll, zerosOnly} {
				state := map[string][]byte{}
				for name, id := range names {
					state[name] = files[id].after(how)
				}
				if !yield(state) {
					return
				}
			}
		}
	}
}

func (c *content) after(how lost) []byte {
	switch how {
	case loseAll:
		return c.durable
	case zerosOnly:
		if len(c.now) > len(c.durable) {
			return append(slices.Clone(c.durable), make([]byte, len(c.now)-len(c.durable))...)
		}
		return c.durable
	}
	return c.now
}

// subsets returns the combinations of steps that may have reached the disk.
func subsets(steps []step) (all [][]step) {
	const most = 6
	first := max(0, len(steps)-most)
	for n := range first {
		all = append(all, steps[:n])
	}
	rest := steps[first:]
	for set := range 1 << len(rest) {
		kept := slices.Clone(steps[:first])
		for i, s := range rest {
			if set>>i&1 == 1 {
				kept = append(kept, s)
			}
		}
		all = append(all, kept)
	}
	return all
}
