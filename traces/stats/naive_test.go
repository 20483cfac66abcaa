package stats_test

import (
	"math/bits"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/stats"
)

// naive is the plain version of the pass: it looks at every window of every length on its own. It
// returns the windows and the reuse histogram of one layer.
func naive(m *traces.Memory, layer int, predicted bool) (stats.Windows, stats.Reuse) {
	var sequences [][]mask.Mask // (sequence, token, word)
	for i, t := range m.List {
		mask := t.Active[layer]
		if predicted {
			mask = t.Predicted[layer]
		}
		if i == 0 || t.Seq != m.List[i-1].Seq {
			sequences = append(sequences, nil)
		}
		last := len(sequences) - 1
		sequences[last] = append(sequences[last], mask)
	}
	w := stats.Windows{}
	for k := range stats.MaxWindow + 1 {
		sagg, full := meanDistinct(sequences, k)
		delta, misses, accesses := missing(sequences, k, m.Head.Words())
		w.SAgg, w.Full, w.Delta = append(w.SAgg, sagg), append(w.Full, full), append(w.Delta, delta)
		w.Misses, w.Hits = append(w.Misses, misses), append(w.Hits, accesses-misses)
	}
	return w, gaps(sequences, m.Head.Units)
}

// meanDistinct is the mean size of the union of k consecutive masks, and how many such windows
// there are.
func meanDistinct(sequences [][]mask.Mask, k int) (mean float64, windows int64) {
	sum := 0
	for _, s := range sequences {
		for from := 0; from+k <= len(s) && (k > 0 || from < len(s)); from++ {
			sum += count(union(s[from:from+k], nil))
			windows++
		}
	}
	if windows == 0 {
		return 0, 0
	}
	return float64(sum) / float64(windows), windows
}

// missing is the mean number of units that a token with k tokens before it needs beyond them, and
// the number of units that all tokens need beyond the up to k tokens before them.
func missing(sequences [][]mask.Mask, k, words int) (delta float64, misses, accesses int64) {
	sum, tokens := 0, 0
	for _, s := range sequences {
		for t, need := range s {
			before := union(s[max(0, t-k):t], make([]uint64, words))
			n := 0
			for i := range need {
				n += bits.OnesCount64(need[i] &^ before[i])
			}
			misses += int64(n)
			accesses += int64(count(need))
			if t >= k {
				sum += n
				tokens++
			}
		}
	}
	if tokens > 0 {
		delta = float64(sum) / float64(tokens)
	}
	return delta, misses, accesses
}

// gaps looks back from every access to the one before.
func gaps(sequences [][]mask.Mask, units int) stats.Reuse {
	r := stats.Reuse{Exact: make([]int64, stats.MaxWindow), Above64: []int64{}}
	for _, s := range sequences {
		for u := range units {
			for t := range s {
				if !has(s[t], u) {
					continue
				}
				back := 1
				for back <= t && !has(s[t-back], u) {
					back++
				}
				switch {
				case back > t:
					r.FirstUse++
				case back <= stats.MaxWindow:
					r.Exact[back-1]++
				default:
					bucket, limit := 0, 128
					for back > limit {
						bucket, limit = bucket+1, limit*2
					}
					for len(r.Above64) <= bucket {
						r.Above64 = append(r.Above64, 0)
					}
					r.Above64[bucket]++
				}
			}
		}
	}
	return r
}

func has(mask []uint64, u int) bool { return mask[u/64]>>(u%64)&1 == 1 }

func union(masks []mask.Mask, into []uint64) []uint64 {
	for _, m := range masks {
		if into == nil {
			into = make([]uint64, len(m))
		}
		for i := range m {
			into[i] |= m[i]
		}
	}
	return into
}

func count(mask []uint64) (n int) {
	for _, w := range mask {
		n += bits.OnesCount64(w)
	}
	return n
}
