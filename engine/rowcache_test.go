package engine

import (
	"math/rand/v2"
	"testing"
)

func recordOf(unit uint32, size int) []byte {
	r := make([]byte, size)
	for i := range r {
		r[i] = byte(unit*31) + byte(i)
	}
	return r
}

// TestRowCacheAgainstMap inserts and deletes at random and finds every row as a map would have it.
func TestRowCacheAgainstMap(t *testing.T) {
	const units, capacity, size = 50, 20, 16
	c, err := newRowCache(units, capacity, size)
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint32]bool{}
	random := rand.New(rand.NewPCG(1, 1))
	for step := range 5000 {
		u := random.Uint32N(units)
		switch {
		case want[u]:
			before := c.slots.Len()
			last := c.slots.Unit(before - 1)
			if copied := c.Delete([]uint32{u}); (copied == 0) != (last == u) {
				t.Fatalf("step %d: %d rows copied when the last row was unit %d and %d left", step,
					copied, last, u)
			}
			delete(want, u)
		case len(want) == capacity:
			if err := c.insert(u, recordOf(u, size), 0); err == nil {
				t.Fatalf("step %d: a full cache took one more row", step)
			}
		default:
			if err := c.insert(u, recordOf(u, size), float32(u)); err != nil {
				t.Fatal(err)
			}
			want[u] = true
		}
		if c.slots.Len() != len(want) {
			t.Fatalf("step %d: %d rows, want %d", step, c.slots.Len(), len(want))
		}
		for v := range uint32(units) {
			row, bias, ok := c.row(v)
			if ok != want[v] || ok && (bias != float32(v) || row[3] != byte(v*31)+3) {
				t.Fatalf("step %d: unit %d: present %v, bias %v, row %v", step, v, ok, bias, row)
			}
		}
	}
}

func TestRowCacheRefuses(t *testing.T) {
	for _, c := range [][3]int{{0, 0, 2}, {4, 5, 2}, {4, -1, 2}, {4, 4, 0}} {
		if _, err := newRowCache(c[0], c[1], c[2]); err == nil {
			t.Errorf("newRowCache(%v) gave no error", c)
		}
	}
}
