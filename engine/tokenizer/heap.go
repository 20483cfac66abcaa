package tokenizer

// linked is the state of mergeLong: which symbols are left, and the pairs that may merge.
type linked struct {
	// of position i; -1 before the first, n after the last, next is gone for a removed symbol
	prev, next []int32
	heap       []candidate
}

// gone marks a symbol that has been merged into its left neighbour.
const gone = -2

// candidate is a pair that could merge when it was pushed.
type candidate struct {
	rank uint32
	at   int32 // position of the left symbol
	id   uint32
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.at < d.at
}

// reset makes a list of n symbols, none removed, and an empty heap.
func (l *linked) reset(n int) {
	l.prev, l.next, l.heap = l.prev[:0], l.next[:0], l.heap[:0]
	for i := range int32(n) {
		l.prev = append(l.prev, i-1)
		l.next = append(l.next, i+1)
	}
}

// remove takes a symbol, not the first, out of the list.
func (l *linked) remove(i int32) {
	before, after := l.prev[i], l.next[i]
	l.next[before] = after
	if int(after) < len(l.prev) {
		l.prev[after] = before
	}
	l.next[i] = gone
}

// push adds a candidate. The heap is written out for its type: container/heap would box every
// candidate.
func (l *linked) push(c candidate) {
	l.heap = append(l.heap, c)
	i := len(l.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.before(l.heap[up]) {
			break
		}
		l.heap[i] = l.heap[up]
		i = up
	}
	l.heap[i] = c
}

// pop takes the first candidate by (rank, position).
func (l *linked) pop() candidate {
	h := l.heap
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	l.heap = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(last) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
	return top
}
