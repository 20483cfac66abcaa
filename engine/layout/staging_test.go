package layout

import (
	"math/rand/v2"
	"testing"
)

// TestStagingNeverOverlaps places groups of random sizes, as a reader and a mover would: those under way lie beside each other within the buffer.
func TestStagingNeverOverlaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s := Staging{Room: StagingAlign * (1 + rng.Int64N(40))}
		type group struct{ from, to int64 }
		var under []group
		placed, waited, both := 0, 0, 0
		for range 200 {
			size := Rounded(1 + rng.Int64N(s.Room))
			for {
				at, ok := s.Place(size)
				if ok {
					g := group{at, at + size}
					if g.from < 0 || g.to > s.Room {
						t.Fatalf("%+v in a buffer of %d", g, s.Room)
					}
					for _, other := range under {
						if g.from < other.to && other.from < g.to {
							t.Fatalf("%+v over %+v", g, other)
						}
					}
					under = append(under, g)
					placed++
					both += len(under) - 1
					break
				}
				if len(under) == 0 {
					t.Fatalf("%d bytes have no place in an empty buffer of %d", size, s.Room)
				}
				s.Moved()
				under = under[1:]
				waited++
			}
			if len(under) > 0 && rng.IntN(3) == 0 {
				s.Moved()
				under = under[1:]
			}
		}
		if placed != 200 || s.Room > 4*StagingAlign && (waited == 0 || both == 0) {
			t.Errorf("room %d: %d groups, %d waits, %d side by side", s.Room, placed, waited, both)
		}
	}
	s := Staging{Room: 4 * StagingAlign}
	if _, ok := s.Place(5 * StagingAlign); ok {
		t.Error("a group larger than the buffer has a place")
	}
}

func TestStagingJoins(t *testing.T) {
	s := Staging{Room: 9 * StagingAlign} // half: four
	for _, c := range []struct {
		fill     int64
		requests int
		size     int64
		more     int
		want     bool
	}{
		{0, 0, 100, 1000, true}, // the first, whatever it is
		{2, 10, 2, 10, true},
		{2, 10, 3, 10, false},
		{1, 200, 1, 56, true},
		{1, 200, 1, 57, false},
	} {
		if got := s.Joins(c.fill*StagingAlign, c.requests, c.size*StagingAlign, c.more); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
