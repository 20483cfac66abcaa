package reproduce

import "math"

// Replacement says which page leaves when a page cache is full.
type Replacement uint8

// The replacements. Linux keeps two clock lists with random-like victims once all pages of a file
// look alike; it is between the two.
const (
	LRU    Replacement = iota // the page that was used longest ago
	Random                    // any page with the same probability
)

// CyclicMiss is the share of its bytes that a program reads from flash which goes through all of
// size bytes in the same order again and again, like the weights of a model token by token, when
// capacity bytes of them fit into memory.
//
// LRU has every page leave just before it is wanted: all or nothing. With Random a page that came
// in survives the m·size/frame further replacements of one round with probability (1 −
// frame/capacity)^(m·size/frame), so that
//
//	m = 1 − exp(−m·size/capacity)
//
// which has one root above 0 when size > capacity.
func CyclicMiss(size, capacity float64, r Replacement) float64 {
	switch {
	case size <= capacity:
		return 0
	case r == LRU || capacity <= 0:
		return 1
	}
	// m ↦ 1 − exp(−m·ratio) − m is positive below the root and negative above it.
	ratio := size / capacity
	low, high := 0.0, 1.0
	for range 60 {
		mid := (low + high) / 2
		if 1-math.Exp(-mid*ratio) > mid {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}
