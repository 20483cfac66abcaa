// Package rng turns one seed into independent random streams, one for each named consumer, so that
// a new consumer shifts nobody else's numbers. It is a leaf.
package rng

import (
	"hash/fnv"
	"math/rand/v2"
)

// DefaultSeed is used wherever no seed is given.
const DefaultSeed = 42

// Stream returns the stream of name under seed: the same arguments give the same numbers on every
// machine and in every release. Names are paths such as "synth/layer/7".
func Stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
