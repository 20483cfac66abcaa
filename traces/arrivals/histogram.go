package arrivals

import "math/bits"

// histogram counts numbers of tokens in bins. Bins are exact below 4,096; above, a bin is at most
// 1/2,048 as wide as its lower edge.
type histogram struct {
	bins     [exact + (valueBits-subBits-1)*subBins]int64
	count    int64
	total    int64
	min, max int
}

const (
	subBits   = 11
	subBins   = 1 << subBits
	exact     = 2 * subBins // below which a bin is one number
	valueBits = 31          // of MaxTokens
)

// bin returns the bin of a number of tokens.
func bin(v int) int {
	if v < exact {
		return v
	}
	octave := bits.Len(uint(v)) - 1 - subBits // 1 for [4096, 8192)
	return octave*subBins + v>>octave
}

// edges returns the smallest and the largest number of a bin.
func edges(bin int) (low, high int) {
	if bin < exact {
		return bin, bin
	}
	octave := bin/subBins - 1
	low = (bin - octave*subBins) << octave
	return low, low + 1<<octave - 1
}

func (h *histogram) add(v int) {
	if h.count == 0 || v < h.min {
		h.min = v
	}
	h.max = max(h.max, v)
	h.bins[bin(v)]++
	h.count++
	h.total += int64(v)
}

// percentile returns a number that at least p percent of the values do not exceed. It is within
// 0.025 % of the smallest such value; 0 if there are no values.
func (h *histogram) percentile(p int64) int {
	rank := (h.count*p + 99) / 100
	for b, n := range h.bins {
		if n > 0 && rank <= n {
			low, high := edges(b)
			return min(max((low+high+1)/2, h.min), h.max)
		}
		rank -= n
	}
	return 0
}
