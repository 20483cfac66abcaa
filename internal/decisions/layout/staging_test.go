package layout

import (
	"math/rand/v2"
	"testing"
)

// TestStagingNeverOverlaps places submissions of random sizes: those in the buffer at a time do not
// overlap.
func TestStagingNeverOverlaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s := Staging{Room: StagingAlign * (1 + rng.Int64N(40))}
		type room struct{ from, to int64 }
		var under []room
		placed, waited, both := 0, 0, 0
		for range 200 {
			size := Rounded(1 + rng.Int64N(s.Room))
			for {
				at, ok := s.Place(size)
				if ok {
					g := room{at, at + size}
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
				s.Release()
				under = under[1:]
				waited++
			}
			if len(under) > 0 && rng.IntN(3) == 0 {
				s.Release()
				under = under[1:]
			}
		}
		if placed != 200 || s.Room > 4*StagingAlign && (waited == 0 || both == 0) {
			t.Errorf("room %d: %d submissions, %d waits, %d side by side", s.Room, placed, waited,
				both)
		}
	}
	s := Staging{Room: 4 * StagingAlign}
	if _, ok := s.Place(5 * StagingAlign); ok {
		t.Error("a submission larger than the buffer has a place")
	}
}

func TestStagingTogether(t *testing.T) {
	s := Staging{Room: 9 * StagingAlign} // half: four
	large := Staging{Room: 4 * SmallSubmission}
	if n, _ := large.Together(4, func(int) (int64, int) { return SmallSubmission / 2, 1 }); n != 4 {
		t.Errorf("%d of four batches that are half of the buffer go together", n)
	}
	if n, _ := large.Together(5, func(int) (int64, int) { return SmallSubmission / 2, 1 }); n != 4 {
		t.Errorf("%d of five batches that fit go together: they are not small", n)
	}
	type batch struct {
		pages    int64
		requests int
	}
	for _, c := range []struct {
		batches []batch
		n       int
		pages   int64
	}{
		{nil, 0, 0},
		{[]batch{{9, 1000}, {1, 1}}, 1, 9},                  // the first, whatever it is
		{[]batch{{3, 10}, {3, 10}, {3, 10}}, 3, 9},          // all that waits
		{[]batch{{2, 10}, {2, 10}, {3, 10}, {3, 10}}, 2, 4}, // half
		{[]batch{{5, 10}, {3, 10}, {3, 10}}, 1, 5},
		{[]batch{{1, 200}, {1, 56}}, 2, 2},
		{[]batch{{1, 200}, {1, 56}, {1, 1}}, 2, 2},
		{[]batch{{1, 200}, {1, 57}}, 1, 1},
	} {
		n, size := s.Together(len(c.batches), func(i int) (int64, int) {
			return c.batches[i].pages*StagingAlign - 5, c.batches[i].requests
		})
		if n != c.n || size != c.pages*StagingAlign {
			t.Errorf("%v: %d batches of %d bytes", c.batches, n, size)
		}
	}
}
