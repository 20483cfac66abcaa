package layout

import (
	"math/rand/v2"
	"testing"
)

// TestStagingNeverOverlaps places groups of random sizes, as a reader and a mover would: those
// under way lie beside each other within the buffer.
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

func TestStagingTogether(t *testing.T) {
	s := Staging{Room: 9 * StagingAlign} // half: four
	large := Staging{Room: 4 * SmallGroup}
	if n, _ := large.Together(4, func(int) (int64, int) { return SmallGroup / 2, 1 }); n != 4 {
		t.Errorf("%d of four pieces that are half of the buffer go together", n)
	}
	if n, _ := large.Together(5, func(int) (int64, int) { return SmallGroup / 2, 1 }); n != 4 {
		t.Errorf("%d of five pieces that fit go together: they are not small", n)
	}
	type piece struct {
		pages    int64
		requests int
	}
	for _, c := range []struct {
		pieces []piece
		n      int
		pages  int64
	}{
		{nil, 0, 0},
		{[]piece{{9, 1000}, {1, 1}}, 1, 9},                  // the first, whatever it is
		{[]piece{{3, 10}, {3, 10}, {3, 10}}, 3, 9},          // all that waits
		{[]piece{{2, 10}, {2, 10}, {3, 10}, {3, 10}}, 2, 4}, // half
		{[]piece{{5, 10}, {3, 10}, {3, 10}}, 1, 5},
		{[]piece{{1, 200}, {1, 56}}, 2, 2},
		{[]piece{{1, 200}, {1, 56}, {1, 1}}, 2, 2},
		{[]piece{{1, 200}, {1, 57}}, 1, 1},
	} {
		n, size := s.Together(len(c.pieces), func(i int) (int64, int) {
			return c.pieces[i].pages*StagingAlign - 5, c.pieces[i].requests
		})
		if n != c.n || size != c.pages*StagingAlign {
			t.Errorf("%v: %d pieces of %d bytes", c.pieces, n, size)
		}
	}
}
