//go:build linux

package main

import (
	"math"
	"math/rand/v2"
)

// walk returns the pages that a case touches, in order. The same seed gives the same walk, so that
// the process in the control group and the model touch the same pages.
func walk(kind string, pages int) []int32 {
	random := rand.New(rand.NewPCG(1, 2))
	var out []int32
	switch kind {
	case "cyclic":
		for i := range 3 * pages {
			out = append(out, int32(i%pages))
		}
	case "zipf":
		draw, place := zipf(random, pages, 0.9), random.Perm(pages)
		for range 120_000 {
			out = append(out, int32(place[draw()]))
		}
	case "experts":
		// Layers of experts of 16 pages. A layer uses two experts of a token, of which one was used
		// by the token before in three cases of ten.
		const size, each = 16, 32
		layers := max(pages/size/each, 1)
		draw, last := zipf(random, each, 0.6), make([]int, layers)
		for len(out) < 120_000 {
			for l := range layers {
				first, second := draw(), draw()
				if random.Float64() < 0.3 {
					first = last[l]
				}
				last[l] = second
				for _, e := range []int{first, second} {
					for p := range size {
						out = append(out, int32(((l*each+(e+7*l)%each)*size+p)%pages))
					}
				}
			}
		}
	}
	return out
}

// zipf returns draws of 0 to n-1 by Zipf's law.
func zipf(random *rand.Rand, n int, exponent float64) func() int {
	sum, total := make([]float64, n), 0.0
	for i := range sum {
		total += math.Pow(float64(i+1), -exponent)
		sum[i] = total
	}
	return func() int {
		u, low, high := random.Float64()*total, 0, n-1
		for low < high {
			if mid := (low + high) / 2; sum[mid] < u {
				low = mid + 1
			} else {
				high = mid
			}
		}
		return low
	}
}
