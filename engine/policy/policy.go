// Package policy decides which units (neurons, experts) are in memory: pure state machines without clock or I/O, a leaf,
// used unchanged by the engine and by the simulator, so that a simulation can only be wrong about time.
//
// Start with Policy and Window; Slots keeps track of which row of the row cache holds which unit.
package policy

import "math/bits"

// Decision is what a Policy decides for one layer of one token. Load and Evict are ascending and are reused by the next
// Step into the same Decision.
type Decision struct {
	Hits  int      // units that were needed and in memory
	Load  []uint32 // needed and not in memory: read before the layer computes
	Evict []uint32 // leave memory after the layer has computed
}

// Policy is one layer's residency policy. It is not safe for concurrent use.
type Policy interface {
	// Step advances by one token that needs the units whose bits are set in need (⌈units/64⌉ words; bits beyond the
	// number of units must be clear) and fills d.
	Step(need []uint64, d *Decision)
	// Reset forgets everything: the next token finds nothing in memory. A new sequence starts so.
	Reset()
}

// Window keeps the units active in the last K tokens (LLM in a flash, section 3.1): before token t memory holds the units
// active in tokens t−K…t−1; t loads what it needs beyond them, then the units not active in t−K+1…t leave. K = 0 keeps
// nothing from one token to the next.
//
// lastActive is the paper's last_k_active: eviction looks only at the units that were active K tokens ago, so a step costs
// O(active), not O(units).
type Window struct {
	k          int
	now        int32
	resident   []uint64
	lastActive []int32
	ring       [][]uint64 // masks of the last K tokens, by token index mod K; grows with the first K tokens
}

// NewWindow returns a Window of k ≥ 0 tokens over the given number of units.
func NewWindow(units, k int) *Window {
	w := &Window{k: k}
	words := (units + 63) / 64
	w.resident = make([]uint64, words)
	w.lastActive = make([]int32, units)
	w.Reset()
	return w
}

// Reset empties the window.
func (w *Window) Reset() {
	w.now = 0
	clear(w.resident)
	for i := range w.lastActive {
		w.lastActive[i] = -1
	}
	w.ring = w.ring[:0]
}

// Step implements Policy.
func (w *Window) Step(need []uint64, d *Decision) {
	d.Hits, d.Load, d.Evict = 0, d.Load[:0], d.Evict[:0]
	for i, word := range need {
		d.Hits += bits.OnesCount64(word & w.resident[i])
		d.Load = appendBits(d.Load, i, word&^w.resident[i])
		w.resident[i] |= word
		for rest := word; rest != 0; rest &= rest - 1 {
			w.lastActive[i*64+bits.TrailingZeros64(rest)] = w.now
		}
	}
	for i, word := range w.leaving(need) {
		for rest := word; rest != 0; rest &= rest - 1 {
			u := i*64 + bits.TrailingZeros64(rest)
			if w.lastActive[u] == w.now-int32(w.k) {
				d.Evict = append(d.Evict, uint32(u))
				w.resident[i] &^= rest & -rest
			}
		}
	}
	if w.k > 0 {
		copy(w.ring[int(w.now)%w.k], need)
	}
	w.now++
}

// leaving returns the mask of token now−K, whose units may leave: the oldest of the ring, which the current one will
// replace. During the first K tokens there is none, and the ring gets one more place.
func (w *Window) leaving(need []uint64) []uint64 {
	switch {
	case w.k == 0:
		return need
	case int(w.now) >= w.k:
		return w.ring[int(w.now)%w.k]
	case len(w.ring) < cap(w.ring): // of a sequence before
		w.ring = w.ring[:len(w.ring)+1]
	default:
		w.ring = append(w.ring, nil)
	}
	if last := &w.ring[len(w.ring)-1]; *last == nil {
		*last = make([]uint64, len(w.resident))
	}
	return nil
}

func appendBits(dst []uint32, wordIndex int, word uint64) []uint32 {
	for ; word != 0; word &= word - 1 {
		dst = append(dst, uint32(wordIndex*64+bits.TrailingZeros64(word)))
	}
	return dst
}

// Slots maps units to the rows of a preallocated row cache (pointer and num_rows of LLM in a flash, Figure 6): rows
// 0…Len()−1 are in use; a deleted row is overwritten by the last one.
type Slots struct {
	row  []int32  // unit → row, −1 when absent
	unit []uint32 // row → unit: the paper's pointer
}

// NewSlots returns empty Slots for the given number of units.
func NewSlots(units int) *Slots {
	s := &Slots{row: make([]int32, units), unit: make([]uint32, 0, units)}
	s.Reset()
	return s
}

// Reset empties the cache.
func (s *Slots) Reset() {
	s.unit = s.unit[:0]
	for i := range s.row {
		s.row[i] = -1
	}
}

// Len is the number of rows in use: the paper's num_rows.
func (s *Slots) Len() int { return len(s.unit) }

// Row returns the row of a unit, or −1.
func (s *Slots) Row(unit uint32) int { return int(s.row[unit]) }

// Unit returns the unit in a row below Len.
func (s *Slots) Unit(row int) uint32 { return s.unit[row] }

// Insert gives an absent unit the next free row and returns it.
func (s *Slots) Insert(unit uint32) int {
	row := len(s.unit)
	s.row[unit] = int32(row)
	s.unit = append(s.unit, unit)
	return row
}

// Delete frees the row of a present unit. The caller must copy row from into row to when they differ (the last row
// fills the gap); when the unit held the last row, from == to and nothing moves.
func (s *Slots) Delete(unit uint32) (from, to int) {
	to = int(s.row[unit])
	from = len(s.unit) - 1
	last := s.unit[from]
	s.unit[to] = last
	s.row[last] = int32(to)
	s.row[unit] = -1
	s.unit = s.unit[:from]
	return from, to
}
