package probe

import (
	"math/rand/v2"
	"slices"
)

// maxPositions bounds the memory for positions in a large file.
const maxPositions = 1 << 20

// places returns n different places of the file in ascending order, in units of chunks: in one
// stretch of the span's size (or twice the reads, if that is more), or anywhere. For the effect of
// the span it is the same stretch every time.
func (p *prober) places(l loop, n int) []int64 {
	total := int64(p.t.size / l.Chunk)
	span := p.span
	switch l.Kind {
	case kindNarrow:
		span = narrowSpan
	case kindWide:
		span = 0
	}
	list := make([]int64, n)
	if within := max(int64(span/l.Chunk), 2*int64(n)); span > 0 && within < total {
		first := int64(0)
		if l.Kind != kindNarrow {
			first = p.random.Int64N(total - within + 1)
		}
		for i, at := range someOf(within, n, p.random) {
			list[i] = first + at
		}
	} else {
		at := p.order[l.Chunk]
		if at == nil {
			at = newPositions(total, p.random)
			p.order[l.Chunk] = at
		}
		for i := range list {
			list[i] = at.next(n - i)
		}
	}
	slices.Sort(list)
	return list
}

// someOf draws n different numbers below total, at a cost that does not depend on total (R. Floyd:
// Bentley, Programming Pearls, Communications of the ACM 30(9), 1987).
func someOf(total int64, n int, random *rand.Rand) []int64 {
	list := make([]int64, 0, n)
	drawn := make(map[int64]bool, n)
	for most := total - int64(n); most < total; most++ {
		at := random.Int64N(most + 1)
		if drawn[at] {
			at = most
		}
		drawn[at] = true
		list = append(list, at)
	}
	return list
}

// positions hands out the places of a file in a random order, each once before any comes again. A
// file with more places than maxPositions is cut into that many equal parts, and one random place
// stands for each. The order is drawn as it is used.
type positions struct {
	order  []int64 // those before used were handed out
	used   int
	random *rand.Rand
}

func newPositions(places int64, random *rand.Rand) *positions {
	n := min(places, maxPositions)
	p := &positions{order: make([]int64, n), random: random}
	for i := range p.order {
		lo, hi := places/n*int64(i)+min(int64(i), places%n), places/n*int64(i+1)+min(int64(i+1),
			places%n)
		p.order[i] = lo
		if hi-lo > 1 {
			p.order[i] += random.Int64N(hi - lo)
		}
	}
	return p
}

// next returns the next place. A batch that needs more places than are left before the end of the
// order starts it anew, so that no place is in one batch twice; need is how many places the batch
// still takes.
func (p *positions) next(need int) int64 {
	if p.used+min(need, len(p.order)) > len(p.order) {
		p.used = 0
	}
	at := p.used + p.random.IntN(len(p.order)-p.used)
	p.order[p.used], p.order[at] = p.order[at], p.order[p.used]
	p.used++
	return p.order[p.used-1]
}
