package rng

import "testing"

func TestStreams(t *testing.T) {
	a, b, c := Stream(42, "a"), Stream(42, "b"), Stream(43, "a")
	x, y, z := a.Uint64(), b.Uint64(), c.Uint64()
	if x == y || x == z {
		t.Fatalf("streams collide: %d %d %d", x, y, z)
	}
	if again := Stream(42, "a").Uint64(); again != x {
		t.Fatalf("stream is not repeatable: %d then %d", x, again)
	}
	const pinned = 16074186485121768154
	if got := Stream(DefaultSeed, "pinned").Uint64(); got != pinned {
		t.Fatalf("Stream(42, pinned) = %d, want %d: a change here changes every seeded result", got,
			uint64(pinned))
	}
}
