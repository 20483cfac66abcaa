package policy

import "testing"

func TestSlotsDeleteMovesTheLastRow(t *testing.T) {
	s := NewSlots(10)
	for _, u := range []uint32{7, 2, 9} {
		s.Insert(u)
	}
	if from, to := s.Delete(7); from != 2 || to != 0 || s.Unit(0) != 9 || s.Row(9) != 0 ||
		s.Row(7) != -1 {
		t.Fatalf("Delete(7) moved row %d to %d, units %v", from, to, s.unit)
	}
	if from, to := s.Delete(2); from != to {
		t.Fatalf("deleting the last row moved %d to %d", from, to)
	}
}

func TestSlotMapReusesFreedSlots(t *testing.T) {
	s := NewSlotMap(10)
	for _, u := range []uint32{7, 2, 9} {
		s.Insert(u)
	}
	if from, to := s.Delete(2); from != 1 || to != 1 || s.Row(2) != -1 || s.Row(9) != 2 ||
		s.Len() != 2 {
		t.Fatalf("Delete(2) moved slot %d to %d; unit 9 in slot %d, %d in use", from, to, s.Row(9),
			s.Len())
	}
	if slot := s.Insert(5); slot != 1 || s.Top() != 3 {
		t.Fatalf("the freed slot 1 is not reused: unit 5 in slot %d, %d slots", slot, s.Top())
	}
	s.Reset()
	if slot := s.Insert(5); slot != 0 || s.Len() != 1 || s.Row(7) != -1 {
		t.Fatalf("after Reset unit 5 is in slot %d of %d", slot, s.Len())
	}
}

// With a fixed number of slots, delta needs no more rows than slots and overflow, because outgoing
// rows free theirs first.
func TestDeltaStaysInItsSlots(t *testing.T) {
	const units, slots = 64, 4
	p, m := newDelta(units, slots), NewSlotMap(units)
	var d Decision
	for token := range uint32(20) { // four units, one of them new with each token
		p.Step(maskOf(units, []uint32{token, token + 1, token + 2, token + 3}), &d)
		for _, u := range d.Evict {
			m.Delete(u)
		}
		for _, u := range d.Load {
			m.Insert(u)
		}
		if d.Overflow != 0 || m.Len() != slots || m.Top() != slots {
			t.Fatalf("token %d: overflow %d, %d slots in use, %d in all", token, d.Overflow,
				m.Len(), m.Top())
		}
	}
}
