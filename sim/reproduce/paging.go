package reproduce

import "math"

// Replacement says which page is evicted when a page cache is full.
type Replacement uint8

// The replacement policies. Linux keeps two clock lists. Their victims are nearly random once all
// pages of a file look alike: Linux is between the two policies.
const (
	LRU    Replacement = iota // the least recently used page
	Random                    // any page with the same probability
)

// CyclicMiss is the miss ratio of a cyclic access: a program reads size bytes in the same order
// again and again, and capacity bytes fit into memory. The weights of a model are read so, token by
// token.
//
// LRU evicts every page just before its next use: all pages miss, or none. With Random, a page
// survives the m·size/frame further replacements of one round with probability (1 −
// frame/capacity)^(m·size/frame). Hence
//
//	m = 1 − exp(−m·size/capacity)
//
// which has one root above 0 if size > capacity.
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
