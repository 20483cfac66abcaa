package serving

import (
	"math/bits"

	"github.com/windrow-sim/windrow/internal/units"
)

// histogram counts durations in bins. Bins are exact below 2,048 ns. Above, they are at most
// 1/1,024 as wide as their lower edge: the middle of a bin is within 0.05 % of its values. The zero
// value is empty.
type histogram struct {
	bins     []int64 // up to the last that is not empty
	count    int64
	sum      float64
	min, max units.Nanos
}

const (
	subBits = 10
	subBins = 1 << subBits
)

func binOf(v units.Nanos) int {
	if v < 2*subBins {
		return int(v)
	}
	octave := bits.Len64(uint64(v)) - 1 - subBits // 1 for [2048, 4096)
	return octave*subBins + int(v>>octave)
}

// middleOf returns the middle of a bin.
func middleOf(bin int) units.Nanos {
	if bin < 2*subBins {
		return units.Nanos(bin)
	}
	octave := bin/subBins - 1
	return units.Nanos(bin-octave*subBins)<<octave + units.Nanos(1)<<octave/2
}

// add counts a duration of 0 or more n times.
func (h *histogram) add(v units.Nanos, n int64) {
	if h.count == 0 || v < h.min {
		h.min = v
	}
	h.max = max(h.max, v)
	bin := binOf(v)
	if bin >= len(h.bins) {
		h.bins = append(h.bins, make([]int64, bin+1-len(h.bins))...)
	}
	h.bins[bin] += n
	h.count += n
	h.sum += float64(v) * float64(n)
}

// percentile returns the nearest rank; 0 if the histogram is empty.
func (h *histogram) percentile(p int64) units.Nanos {
	rank := (h.count*p + 99) / 100
	for b, n := range h.bins {
		if n > 0 && rank <= n {
			return min(max(middleOf(b), h.min), h.max)
		}
		rank -= n
	}
	return 0
}
