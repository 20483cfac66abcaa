package centroid

import (
	"context"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
)

// BenchmarkActive fills 31 layers of the published shape: 14336 units, K_max 5500 (the cost of a
// token after the network).
func BenchmarkActive(b *testing.B) {
	const units, kMax, layers = 14336, 5500, 31
	r := rng.Stream(1, "bench")
	gate, up, dst := random(units, 0.6, r), random(units, 0.6, r), mask.New(units)
	votes := make([]uint32, units)
	for u := range votes {
		votes[u] = r.Uint32()
	}
	order := byVotes(votes)
	for b.Loop() {
		for range layers {
			fill(gate, up, order, kMax, dst)
		}
	}
}

// BenchmarkCluster is one vocabulary of the published number of units; the time is that of seeding
// and two iterations.
func BenchmarkCluster(b *testing.B) {
	_, masks, _ := planted(14336, 16, 1000, 0.4, 0.1, 1)
	for b.Loop() {
		if _, err := Cluster(context.Background(), masks, ClusterOptions{Count: 64,
			Iterations: 2}); err != nil {
			b.Fatal(err)
		}
	}
}
