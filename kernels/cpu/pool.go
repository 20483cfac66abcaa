package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/windrow-sim/windrow/kernels/ref"
)

// Pool runs loops over persistent workers. A Run costs a few microseconds and no allocation: one
// token is hundreds of small loops.
//
// A Run divides its range into a few pieces per worker, and each free worker takes the next piece.
// The caller starts at once. A worker that the operating system delays delays only its own piece.
// An idle worker polls for some microseconds and then sleeps.
//
// A Pool is safe for concurrent use. A Run on a busy pool, also one from inside another Run, works
// inline.
type Pool struct {
	busy    sync.Mutex // locked by the Run whose job this is
	workers []worker   // without the caller
	exited  sync.WaitGroup
	closed  bool // guarded by busy

	// The job. Written only while the gate is closed and no worker is inside.
	n, pieces int
	f         func(lo, hi int)
	next      atomic.Int64 // piece to take
	mv        matVecArgs
	matVec    func(lo, hi int) // over mv; made once, so that MatVec does not allocate

	gate     atomic.Uint64 // see the constants below
	epoch    atomic.Uint64 // number of jobs so far; grows after the gate has opened
	stopping atomic.Bool
	left     chan struct{} // the last worker to leave wakes a sleeping Run
}

// The gate counts the workers inside a job. Its flags say whether more may enter, and whether the
// Run sleeps until the last worker has left.
const (
	gateOpen    = 1 << 32
	gateWaiting = 1 << 33
	gateInside  = gateOpen - 1
)

type worker struct {
	asleep atomic.Bool
	wake   chan struct{}
	_      [48]byte // workers poll asleep: one cache line each
}

type matVecArgs struct {
	f    ref.Format
	w    []byte
	cols int
	x, y []float32
}

const (
	// piecesPerWorker trades balance against the cost of taking a piece.
	piecesPerWorker = 4
	// spinRounds bounds the search for work before sleeping, about 20 µs on an idle processor:
	// longer than the serial code between two mat-vecs of a layer, shorter than any flash read.
	spinRounds = 100
	// looksPerRound is the number of polls of a round, before the worker yields the processor.
	looksPerRound = 16
	// matVecGrain is the smallest piece of MatVec in bytes of weights: some microseconds of memory
	// time, as much as waking a worker takes.
	matVecGrain = 64 << 10
)

// NewPool returns a pool in which up to workers goroutines work on a Run, its caller included. With
// workers ≤ 1 everything runs inline. Close ends the goroutines.
func NewPool(workers int) *Pool {
	p := &Pool{left: make(chan struct{}, 1)}
	p.matVec = func(lo, hi int) {
		a := &p.mv
		size := a.f.Size(a.cols)
		matVecFormat(a.f, a.w[lo*size:hi*size], hi-lo, a.cols, a.x, a.y[lo:hi])
	}
	if workers > 1 {
		p.workers = make([]worker, workers-1)
	}
	for i := range p.workers {
		w := &p.workers[i]
		w.wake = make(chan struct{}, 1)
		p.exited.Add(1)
		go p.serve(w)
	}
	return p
}

// Workers returns how many goroutines can work on a Run, its caller included.
func (p *Pool) Workers() int { return len(p.workers) + 1 }

// Close ends the workers and returns when they are gone. A Run after Close works inline. Closing
// twice is harmless.
func (p *Pool) Close() {
	p.busy.Lock()
	defer p.busy.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	p.stopping.Store(true)
	p.epoch.Add(1)
	p.rouse(len(p.workers))
	p.exited.Wait()
}

// Run calls f for contiguous pieces [lo, hi) that cover [0, n) exactly once, concurrently and in
// any order, and returns when all calls have returned. No piece is shorter than grain (at least 1)
// unless n is. With n < 2·grain it makes one call. f must not panic.
func (p *Pool) Run(n, grain int, f func(lo, hi int)) {
	if n <= 0 {
		return
	}
	pieces := p.split(n, grain)
	if pieces < 2 || !p.acquire() {
		f(0, n)
		return
	}
	p.run(n, pieces, f)
	p.busy.Unlock()
}

// MatVec is the function MatVec with the rows divided among the workers. It gives the same bits for
// any number of them.
func (p *Pool) MatVec(w []uint16, rows, cols int, x, y []float32) {
	p.MatVecFormat(ref.F16, bytesOf(w), rows, cols, x, y)
}

// matVecBy is MatVecFormat in pieces of at least grain rows.
func (p *Pool) matVecBy(grain int, f ref.Format, w []byte, rows, cols int, x, y []float32) {
	// a wrong shape panics here, in the caller
	w, x, y = w[:rows*f.Size(cols):len(w)], x[:cols:len(x)], y[:rows:len(y)]
	pieces := p.split(rows, grain)
	if pieces < 2 || !p.acquire() {
		matVecFormat(f, w, rows, cols, x, y)
		return
	}
	p.mv = matVecArgs{f: f, w: w, cols: cols, x: x, y: y}
	p.run(rows, pieces, p.matVec)
	p.mv = matVecArgs{}
	p.busy.Unlock()
}

// split returns the number of pieces for n elements.
func (p *Pool) split(n, grain int) int {
	if len(p.workers) == 0 {
		return 1
	}
	return min(n/max(grain, 1), piecesPerWorker*p.Workers())
}

// acquire takes the pool for one job and says whether that succeeded.
func (p *Pool) acquire() bool {
	if !p.busy.TryLock() {
		return false
	}
	if p.closed {
		p.busy.Unlock()
		return false
	}
	return true
}

// run does one job; the caller holds busy.
func (p *Pool) run(n, pieces int, f func(lo, hi int)) {
	p.n, p.pieces, p.f = n, pieces, f
	p.next.Store(0)
	p.gate.Store(gateOpen)
	p.epoch.Add(1)
	p.rouse(min(pieces-1, len(p.workers)))
	p.work()
	p.shut()
	p.f = nil
}

// rouse wakes up to n sleeping workers. Workers that are awake see the epoch.
func (p *Pool) rouse(n int) {
	for i := range p.workers {
		if n == 0 {
			return
		}
		w := &p.workers[i]
		if w.asleep.Load() && w.asleep.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
		n--
	}
}

// work takes pieces until none is left.
func (p *Pool) work() {
	for {
		i := int(p.next.Add(1)) - 1
		if i >= p.pieces {
			return
		}
		p.f(bound(p.n, p.pieces, i), bound(p.n, p.pieces, i+1))
	}
}

// bound returns the start of piece i of n elements. Unlike i·n/pieces it cannot overflow.
func bound(n, pieces, i int) int {
	return n/pieces*i + min(i, n%pieces)
}

// shut closes the gate and returns when no worker is inside. Every piece is then done, and the job
// may be overwritten. A late worker finds the gate closed.
func (p *Pool) shut() {
	p.gate.And(^uint64(gateOpen))
	for range spinRounds {
		for range looksPerRound {
			if p.gate.Load() == 0 {
				return
			}
		}
		runtime.Gosched()
	}
	if p.gate.Or(gateWaiting)&gateInside != 0 {
		<-p.left
	}
	p.gate.Store(0)
}

// enter joins the job if there is one.
func (p *Pool) enter() bool {
	for {
		g := p.gate.Load()
		if g&gateOpen == 0 {
			return false
		}
		if p.gate.CompareAndSwap(g, g+1) {
			return true
		}
	}
}

// leave makes this worker's pieces visible to the Run.
func (p *Pool) leave() {
	if p.gate.Add(^uint64(0)) == gateWaiting {
		p.left <- struct{}{}
	}
}

// serve is the life of a worker.
func (p *Pool) serve(w *worker) {
	defer p.exited.Done()
	var seen uint64
	for {
		p.await(w, seen)
		seen = p.epoch.Load()
		if p.stopping.Load() {
			return
		}
		if p.enter() {
			p.work()
			p.leave()
		}
	}
}

// await returns when the epoch is beyond seen: it polls for a while, then sleeps.
func (p *Pool) await(w *worker, seen uint64) {
	for range spinRounds {
		for range looksPerRound {
			if p.epoch.Load() != seen {
				return
			}
		}
		runtime.Gosched()
	}
	w.asleep.Store(true)
	// A job that began before asleep was set has not roused this worker: look once more.
	if p.epoch.Load() != seen && w.asleep.CompareAndSwap(true, false) {
		return
	}
	<-w.wake
}
