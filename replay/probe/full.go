package probe

import (
	"container/heap"
	"slices"

	"github.com/windrow-sim/windrow/internal/units"
)

// A batch ends when the last of its reads does, and until then ever fewer are in flight: at great
// depths that is a good part of it. A cell is a loop that is always full. fullLoop returns how long
// reads like those of a batch take in such a loop.
//
// Every thread (or place in the ring) takes the next read when its last is complete, so that the
// times of the reads in their order say when each began and ended. What counts is from when each
// thread has had a few reads (queues at single dies grow for some rounds) to when the last read
// begins. Between reads the threads lose a little time, which the batch's own time shows; it is
// spread over all reads. Without enough reads in that stretch the result is the batch's own time.
func fullLoop(times []units.Nanos, depth int, took units.Nanos) units.Nanos {
	n := len(times)
	if n < fullRounds*depth {
		return took
	}
	threads := make(threadHeap, depth)
	ends := make([]units.Nanos, n)
	var last units.Nanos // when the last read begins
	for i, t := range times {
		last = threads[0]
		threads[0] += t
		ends[i] = threads[0]
		heap.Fix(&threads, 0)
	}
	slices.Sort(ends)
	warm := min(n/4, warmReads*depth)
	first := ends[warm-1]
	counted := 0
	for _, at := range ends[warm:] {
		if at > last {
			break
		}
		if at > first {
			counted++
		}
	}
	all := ends[n-1]
	if counted < depth || last <= first || all <= 0 {
		return took
	}
	lost := max(float64(took)/float64(all), 1)
	if lost > mostLost {
		return took // the threads did not all read all the time
	}
	return units.Nanos(float64(last-first) * lost * float64(n) / float64(counted))
}

// mostLost is how much longer than its reads a batch may be to be taken for a loop whose threads
// are all at work.
const mostLost = 1.1

// fullRounds is the least number of reads per thread for which a full stretch is looked for;
// warmReads of them do not count, or a quarter.
const (
	fullRounds = 4
	warmReads  = 4
)

// threadHeap holds when each thread is free, earliest first.
type threadHeap []units.Nanos

func (h threadHeap) Len() int           { return len(h) }
func (h threadHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h threadHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *threadHeap) Push(x any)        { *h = append(*h, x.(units.Nanos)) }
func (h *threadHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
