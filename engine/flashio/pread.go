package flashio

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/windrow-sim/windrow/internal/ioengine"
)

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
	src     io.ReaderAt // the file; tests put faults here
	helpers int
	wake    chan struct{} // one value wakes one helper
	done    sync.WaitGroup

	// The current batch. Helpers touch it only between their wake-up and done.
	reqs   []Request
	next   atomic.Int64 // request to take next
	asleep atomic.Int64 // helpers not woken for this batch

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
	return openPread(base, base.f, threads), nil
}

func openPread(base file, src io.ReaderAt, threads int) *preadReader {
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
		// ReadAt continues after short reads and EINTR.
		started := p.start(int(i))
		if _, err := p.src.ReadAt(p.reqs[i].Buf, p.reqs[i].Offset); err != nil {
			p.fail(int(i), err)
			p.next.Store(n)
		}
		p.stop(int(i), started)
	}
}

func (p *preadReader) fail(i int, err error) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the size was checked: the file has shrunk
	}
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
	return p.f.Close()
}
