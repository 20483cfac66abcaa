package flashio

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windrow-sim/windrow/engine/flashio/uring"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
)

// Source is an open file as the pool of threads reads it: one system call at a time.
type Source interface {
	// Pread reads once, as pread(2) does. It may read fewer bytes than the buffer has, reads 0
	// bytes at the end of the file, and may fail with an errno. Reads run side by side.
	Pread(buf []byte, offset int64) (int, error)
	Close() error
}

// SourceOptions describe a Source.
type SourceOptions struct {
	Path    string // for errors
	Size    int64  // in bytes
	Align   units.Bytes
	Threads int // of the pool, or the depth of a ring; at least 1
}

// NewPool returns a Reader of src through the pool of engine pread, and owns src from then on. It
// is for files that only a program knows, as a test's own. With an alignment above 1 the reads are
// direct.
func NewPool(src Source, opt SourceOptions) (Reader, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	return openPread(opt.file(), src, opt.Threads), nil
}

// check refuses what neither a pool nor a ring can have.
func (o *SourceOptions) check() error {
	if o.Threads < 1 || o.Threads > ioengine.MaxThreads || o.Align < 1 || o.Size < 0 {
		return fmt.Errorf("flashio: source %s: %d threads, alignment %d, %d bytes: give 1 to %d "+
			"threads and an alignment of 1 or more", o.Path, o.Threads, o.Align, o.Size,
			ioengine.MaxThreads)
	}
	return nil
}

func (o *SourceOptions) file() file {
	return file{path: o.Path, size: o.Size, mode: Mode{Requested: EnginePread,
		Direct: o.Align > 1, WantDirect: o.Align > 1, Align: o.Align, FileSystem: "source"}}
}

// preadReader reads with a pool of threads: the caller and threads-1 helpers take the requests of a
// batch one by one.
//
// The helpers are goroutines that block in pread, so each holds an OS thread while it reads. They
// are not locked to the thread: that would only make waking slower. Helpers wake each other: a
// helper that takes a request while others wait wakes one more. So a batch served from memory wakes
// few helpers and a batch from flash wakes all.
//
// The Go runtime takes a processor back from a thread that blocks in a system call only when its
// monitor looks, every 20 µs at best. With a GOMAXPROCS of 2 this limits the pool, not the drive:
// 32 threads made 28,000 direct reads of 16 KiB a second where GOMAXPROCS=8 made 41,000 (medians of
// three; 2 virtual processors, Linux 6.18, ext4). io_uring needs one call for many reads and has no
// such limit.
type preadReader struct {
	file
	stopwatch
	src     Source
	helpers int
	wake    chan struct{} // one value wakes one helper
	done    sync.WaitGroup

	// The current batch. Helpers touch it only between their wake-up and done.
	reqs   []Request
	next   atomic.Int64 // request to take next
	asleep atomic.Int64 // helpers not woken for this batch

	starved atomic.Int64 // calls that failed with ENOMEM

	mu     sync.Mutex
	failed int // lowest index that failed; len(reqs) when none
	err    error
}

// openPool opens a file with a pool of threads.
func openPool(_ host, base file, opt Options) (Reader, error) {
	threads := opt.Parallel
	if threads == 0 {
		threads = ioengine.DefaultParallel(ioengine.Pread)
	}
	return openPread(base, fileSource{base.f}, threads), nil
}

func openPread(base file, src Source, threads int) *preadReader {
	base.mode.Engine, base.mode.Parallel = EnginePread, threads
	p := &preadReader{file: base, src: src, helpers: threads - 1, wake: make(chan struct{},
		threads)}
	for range p.helpers {
		go p.help()
	}
	return p
}

func (p *preadReader) help() {
	for range p.wake {
		p.work()
		p.done.Done()
	}
	p.done.Done() // for Close
}

// ReadBatch implements Reader.
func (p *preadReader) ReadBatch(reqs []Request) error {
	if err := p.check(reqs); err != nil {
		return err
	}
	p.reqs, p.failed, p.err = reqs, len(reqs), nil
	p.next.Store(0)
	p.asleep.Store(int64(p.helpers))
	p.work()
	p.done.Wait()
	p.reqs = nil
	if p.err != nil {
		return requestError(EnginePread, p.path, reqs[p.failed], p.err)
	}
	return nil
}

// work takes requests until none is left. Requests are taken in order. So when one fails, all
// before it have been taken, and jumping to the end leaves the first error in request order.
func (p *preadReader) work() {
	n := int64(len(p.reqs))
	for {
		i := p.next.Add(1) - 1
		if i >= n {
			return
		}
		if i+1 < n && p.asleep.Load() > 0 && p.asleep.Add(-1) >= 0 {
			p.done.Add(1)
			p.wake <- struct{}{}
		}
		started := p.start(int(i))
		if err := p.read(&p.reqs[i]); err != nil {
			p.fail(int(i), err)
			p.next.Store(n)
		}
		p.stop(int(i), started)
	}
}

// read fills the buffer of a request. It goes on after short reads and repeats calls that fail for
// a moment.
func (p *preadReader) read(r *Request) error {
	done, tries, there := 0, 0, present(r, p.size)
	for done < there {
		rest := r.Buf[done:]
		n, err := p.src.Pread(rest[:min(len(rest), uring.MaxPiece)], r.Offset+int64(done))
		if err != nil && !errors.Is(err, io.EOF) && !uring.Transient(err) {
			return err
		}
		next := uring.Continue(done, n, there, int(p.mode.Align))
		switch {
		case next > done:
			done, tries = next, 0
		case n == 0 && (err == nil || errors.Is(err, io.EOF)):
			return io.ErrUnexpectedEOF // the size was checked: the file has shrunk
		default:
			most := uring.MaxTries
			if uring.Starved(err) {
				most = uring.MaxStarved
				p.starved.Add(1)
				time.Sleep(uring.Backoff(tries))
			}
			if tries++; tries > most {
				return uring.GaveUp(tries, err)
			}
		}
	}
	clear(r.Buf[there:])
	return nil
}

// present is the number of bytes of a request that the file has: all, or fewer where a direct read
// is rounded up beyond the end of the file.
func present(r *Request, size int64) int { return int(min(int64(len(r.Buf)), size-r.Offset)) }

func (p *preadReader) fail(i int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i < p.failed {
		p.failed, p.err = i, err
	}
}

// Close implements Reader.
func (p *preadReader) Close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	p.done.Add(p.helpers)
	close(p.wake)
	p.done.Wait()
	return p.src.Close()
}
