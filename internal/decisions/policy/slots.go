package policy

// Slots maps units to the rows of a preallocated row cache (pointer and num_rows of LLM in a flash,
// Figure 6). Rows 0…Len()−1 are in use. The last row overwrites a deleted one.
type Slots struct {
	row  []int32  // unit → row, −1 if absent
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

// Delete frees the row of a present unit. The last row fills the gap: the caller must copy row from
// into row to if they differ. If the unit had the last row, from == to.
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

// SlotMap maps units to slots that never move (the slot map S of NeuroPrefetcher). The next
// inserted unit takes a freed slot, so that Delete copies nothing and slots in use need not be
// neighbours. It has the same methods as Slots where they apply.
type SlotMap struct {
	slot []int32 // unit → slot, −1 if absent: the paper's S
	free []int32 // free slots below top; the last freed one is used first
	top  int     // slots used since Reset
}

// NewSlotMap returns an empty SlotMap for the given number of units.
func NewSlotMap(units int) *SlotMap {
	s := &SlotMap{slot: make([]int32, units)}
	s.Reset()
	return s
}

// Reset frees all slots.
func (s *SlotMap) Reset() {
	s.free, s.top = s.free[:0], 0
	for i := range s.slot {
		s.slot[i] = -1
	}
}

// Len is the number of slots in use.
func (s *SlotMap) Len() int { return s.top - len(s.free) }

// Top is one more than the highest slot used since Reset: the number of rows that memory must have.
func (s *SlotMap) Top() int { return s.top }

// Row returns the slot of a unit, or −1.
func (s *SlotMap) Row(unit uint32) int { return int(s.slot[unit]) }

// Insert gives an absent unit a free slot and returns it.
func (s *SlotMap) Insert(unit uint32) int {
	if n := len(s.free); n > 0 {
		s.slot[unit] = s.free[n-1]
		s.free = s.free[:n-1]
	} else {
		s.slot[unit] = int32(s.top)
		s.top++
	}
	return int(s.slot[unit])
}

// Delete frees the slot of a present unit. No row moves: from == to.
func (s *SlotMap) Delete(unit uint32) (from, to int) {
	slot := s.slot[unit]
	s.free = append(s.free, slot)
	s.slot[unit] = -1
	return int(slot), int(slot)
}
