package cpu

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// Every element is covered exactly once, by pieces of at least grain, for many shapes in a row on
// one pool.
func TestRunCoversTheRange(t *testing.T) {
	for _, workers := range []int{-1, 0, 1, 2, 3, 7} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			p := NewPool(workers)
			defer p.Close()
			for _, n := range []int{0, 1, 2, 3, 5, 16, 17, 100, 1001} {
				for _, grain := range []int{-1, 0, 1, 2, 7, 50, 51, 2000} {
					count := make([]atomic.Int32, n)
					var calls, short atomic.Int32
					p.Run(n, grain, func(lo, hi int) {
						calls.Add(1)
						if hi-lo < min(grain, n) || hi <= lo {
							short.Add(1)
						}
						for i := lo; i < hi; i++ {
							count[i].Add(1)
						}
					})
					for i := range count {
						if got := count[i].Load(); got != 1 {
							t.Fatalf("n=%d grain=%d: element %d was done %d times", n, grain, i,
								got)
						}
					}
					if short.Load() > 0 {
						t.Fatalf("n=%d grain=%d: %d pieces were too short", n, grain, short.Load())
					}
					if n > 0 && (workers <= 1 || n < 2*grain) && calls.Load() != 1 {
						t.Fatalf("n=%d grain=%d: %d calls, want one inline", n, grain, calls.Load())
					}
				}
			}
		})
	}
}

// The workers do take part: a piece that waits for another one would never end otherwise.
func TestRunIsConcurrent(t *testing.T) {
	const workers = 3
	p := NewPool(workers)
	defer p.Close()
	for range 20 {
		var all sync.WaitGroup
		all.Add(workers)
		p.Run(workers, 1, func(lo, hi int) {
			all.Done()
			all.Wait()
		})
	}
}

// Results of the workers are visible after Run, without further synchronisation, over many short
// jobs: workers fall asleep and are woken, are late, and meet the next job. The race detector
// watches this one.
func TestRunManyJobs(t *testing.T) {
	p := NewPool(4)
	defer p.Close()
	out := make([]int, 64)
	for job := range 3000 {
		n := 2 + job%63
		p.Run(n, 1, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				out[i] = job + i
			}
		})
		for i := range n {
			if out[i] != job+i {
				t.Fatalf("job %d: element %d is %d", job, i, out[i])
			}
		}
		if job%100 == 0 {
			for range 2 * spinRounds { // time for the workers to fall asleep
				runtime.Gosched()
			}
		}
	}
}

// A Run whose patience ends sleeps until the last worker has left, and lets no worker in any more.
// The test plays two workers, so that the order of events is fixed.
func TestShutSleepsUntilTheLastHasLeft(t *testing.T) {
	p := NewPool(1)
	p.gate.Store(gateOpen)
	for range 2 {
		if !p.enter() {
			t.Fatal("an open gate let nobody in")
		}
	}
	returned := make(chan struct{})
	go func() {
		p.shut()
		close(returned)
	}()
	still := func(when string) {
		select {
		case <-returned:
			t.Fatal("shut returned " + when)
		default:
		}
	}
	for p.gate.Load()&gateWaiting == 0 {
		still("with two workers inside")
		runtime.Gosched()
	}
	if p.enter() {
		t.Fatal("a closed gate let a worker in")
	}
	p.leave()
	still("with one worker inside")
	p.leave()
	<-returned
	if g := p.gate.Load(); g != 0 {
		t.Errorf("the gate is %#x afterwards, want 0", g)
	}
}

// Idle workers burn no processor: all of them fall asleep, and a job wakes them.
func TestIdleWorkersSleep(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	for range 3 {
		for i := range p.workers {
			w := &p.workers[i]
			// Asleep for good: a worker that only passes through that state is awake again within
			// these looks.
			for looks := 0; looks < 1000; looks++ {
				if !w.asleep.Load() {
					looks = 0
				}
				runtime.Gosched()
			}
		}
		var all sync.WaitGroup
		all.Add(3)
		p.Run(3, 1, func(lo, hi int) {
			all.Done()
			all.Wait()
		})
	}
}

func TestRunWithinRunIsInline(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var sum atomic.Int64
	p.Run(8, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			p.Run(10, 1, func(lo, hi int) { sum.Add(int64(hi - lo)) })
		}
	})
	if sum.Load() != 80 {
		t.Errorf("did %d of 80 elements", sum.Load())
	}
}

func TestRunFromManyGoroutines(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	var callers sync.WaitGroup
	var sum atomic.Int64
	for range 4 {
		callers.Go(func() {
			for range 200 {
				p.Run(9, 1, func(lo, hi int) { sum.Add(int64(hi - lo)) })
			}
		})
	}
	callers.Wait()
	if sum.Load() != 4*200*9 {
		t.Errorf("did %d of %d elements", sum.Load(), 4*200*9)
	}
}

func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	p := NewPool(4)
	if p.Workers() != 4 {
		t.Errorf("Workers() = %d, want 4", p.Workers())
	}
	p.Run(100, 1, func(lo, hi int) {})
	p.Close()
	p.Close()
	// A goroutine that has said that it is done may still be on its way out. One that stays would
	// let this loop run into the time limit of the test.
	for runtime.NumGoroutine() > before {
		runtime.Gosched()
	}
	calls := 0
	p.Run(100, 1, func(lo, hi int) { calls++ })
	if calls != 1 {
		t.Errorf("a Run after Close made %d calls, want one inline", calls)
	}
}

func TestPoolMatVecIsBitEqual(t *testing.T) {
	r := rng.Stream(rng.DefaultSeed, "pool")
	for _, workers := range []int{1, 2, 3, 5} {
		p := NewPool(workers)
		defer p.Close()
		for _, s := range append(shapes(), [2]int{300, 1000}) {
			rows, cols := s[0], s[1]
			w, x := halves(r, rows*cols), floats(r, cols)
			want, got := make([]float32, rows), floats(r, rows)
			MatVec(w, rows, cols, x, want)
			p.MatVec(w, rows, cols, x, got)
			if !slices.Equal(got, want) {
				t.Fatalf("%d workers, %d×%d: MatVec differs", workers, rows, cols)
			}
			clear(got)
			p.matVecBy(1, ref.F16, bytesOf(w), rows, cols, x, got)
			if !slices.Equal(got, want) {
				t.Fatalf("%d workers, %d×%d: MatVec in the smallest pieces differs", workers, rows,
					cols)
			}
		}
	}
}

func TestPoolDoesNotAllocate(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	w, x, y := make([]uint16, 512*256), make([]float32, 256), make([]float32, 512)
	var sink atomic.Int64
	f := func(lo, hi int) { sink.Add(int64(lo)) }
	if got := testing.AllocsPerRun(100, func() {
		p.Run(100, 1, f)
		p.MatVec(w, 512, 256, x, y)
	}); got != 0 {
		t.Errorf("%g allocations for a Run and a MatVec", got)
	}
}
