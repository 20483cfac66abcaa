package input

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/windrow-sim/windrow/internal/refusal"
)

// File is an open regular file. Its methods are safe for concurrent use.
type File struct {
	ctx  context.Context // ends the reads
	f    *os.File
	size int64

	mu     sync.Mutex
	idle   []*worker
	closed bool
}

// Open opens a regular file to read at any position, until the context ends. Errors wrap ErrKind,
// the context's error, or are those of the file system.
func Open(ctx context.Context, path string) (*File, error) {
	var size int64
	f, err := Await(ctx, path, func() (*os.File, error) {
		f, info, err := openRegular(path)
		if err == nil {
			size = info.Size()
		}
		return f, err
	}, closeLate)
	if err != nil {
		return nil, err
	}
	return &File{ctx: ctx, f: f, size: size}, nil
}

// openRegular looks before it opens, because opening a pipe waits for its writer, and again
// afterwards, because the name may be another file's by then.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	info, err := stat(path)
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func regular(path string, info fs.FileInfo) error {
	if mode := info.Mode(); !mode.IsRegular() {
		return &refused{refusal.Input("%s is not a regular file (%v); copy what it gives into one",
			path, mode.Type()), ErrKind}
	}
	return nil
}

// Name is the path that the file was opened by.
func (f *File) Name() string { return f.f.Name() }

// Size is the length of the file in bytes when it was opened.
func (f *File) Size() int64 { return f.size }

// ReadAt implements io.ReaderAt. After an error of the context, p may still be written to.
func (f *File) ReadAt(p []byte, off int64) (n int, err error) {
	for first := true; first || n < len(p) && err == nil; first = false {
		var m int
		m, err = f.readAt(p[n:min(len(p), n+chunk)], off+int64(n))
		n += m
	}
	return n, err
}

func (f *File) readAt(p []byte, off int64) (int, error) {
	if f.ctx.Done() == nil { // a context that never ends
		return f.f.ReadAt(p, off)
	}
	if f.ctx.Err() != nil {
		return 0, ended(f.ctx, f.Name())
	}
	w := f.worker()
	w.jobs <- job{p, off}
	select {
	case r := <-w.done:
		f.release(w)
		return r.n, r.err
	case <-f.ctx.Done():
		close(w.jobs)
		return 0, ended(f.ctx, f.Name())
	}
}

// Close closes the file.
func (f *File) Close() error { return f.Take().Close() }

// Take hands the file itself over to a caller, who closes it. f is closed then.
func (f *File) Take() *os.File {
	f.mu.Lock()
	f.closed = true
	for _, w := range f.idle {
		close(w.jobs)
	}
	f.idle = nil
	f.mu.Unlock()
	return f.f
}

// worker reads on a goroutine of its own, so that its caller can go without the answer. It lives
// as long as the file: small reads are frequent, and a goroutine for each takes memory.
type worker struct {
	jobs chan job    // closed by the reader that is done
	done chan answer // holds one answer, so that the worker never blocks
}

type job struct {
	p   []byte
	off int64
}

type answer struct {
	n   int
	err error
}

// worker returns one that is idle.
func (f *File) worker() *worker {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := len(f.idle) - 1; last >= 0 {
		w := f.idle[last]
		f.idle = f.idle[:last]
		return w
	}
	w := &worker{make(chan job, 1), make(chan answer, 1)}
	go func() {
		for j := range w.jobs {
			n, err := f.f.ReadAt(j.p, j.off)
			w.done <- answer{n, err}
		}
	}()
	return w
}

// release makes a worker idle again.
func (f *File) release(w *worker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		close(w.jobs)
		return
	}
	f.idle = append(f.idle, w)
}
