// Package rng derives independent random streams from one seed, one per named consumer. A new
// consumer does not change the numbers of the others. It is a leaf.
package rng

import (
	"hash/fnv"
	"math/rand/v2"
)

// DefaultSeed is the seed if none is given.
const DefaultSeed = 42

// Stream returns the stream of a name under a seed. The same arguments give the same numbers on
// every machine and in every release. Names are paths such as "synth/layer/7".
func Stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
