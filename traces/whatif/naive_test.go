package whatif

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/traces"
)

// access is a unit that could be chosen, with its score.
type access struct {
	token, unit int
	score       uint32
}

// naive is the plain twin of the rules: it writes down every unit of a layer that could be chosen
// over the whole trace, sorts them by score and takes the first, whole groups of equal scores at a
// time, as long as that comes nearer to want.
func naive(src *traces.Memory, l int, method string, seed uint64, want int) map[[2]int]bool {
	use := method
	if method == byMagnitude {
		use = thin
	}
	r := rng.Stream(seed, "whatif/"+use+"/layer/"+string(rune('0'+l)))
	heldKey, fastKey, phaseKey := r.Uint64(), r.Uint64(), r.Uint64()
	hot := naiveRanks(src, l, phaseKey)
	var list []access
	for i, t := range src.List {
		code := 0
		for u := range src.Head.Units {
			active := t.Active[l][u/64]>>(u%64)&1 == 1
			if active == (method == thicken) {
				continue
			}
			stretch := (uint64(t.Pos) + mix(phaseKey^uint64(u/4))%64) / 64
			held := uint32(mix(mix(heldKey^uint64(t.Seq)<<32^stretch)+uint64(
				u/4))>>(16*(u%4))) % 65536
			fast := uint32(mix(mix(fastKey^uint64(t.Seq)<<32^uint64(t.Pos))+uint64(
				u/4))>>(16*(u%4))) % 65536
			score := (held + fast) / 2
			switch method {
			case thicken:
				score = (3*hot[u] + 6*held + 7*fast) / 16
			case byMagnitude:
				score = uint32(t.Magnitude[l][code])*256 + score/256
				code++
			}
			list = append(list, access{i, u, score})
		}
	}
	slices.SortStableFunc(list, func(a, b access) int { return cmp.Compare(b.score, a.score) })
	chosen := map[[2]int]bool{}
	for from := 0; from < len(list); {
		to := from
		for to < len(list) && list[to].score == list[from].score {
			to++
		}
		if to > want && to-want > want-from {
			break
		}
		for _, a := range list[from:to] {
			chosen[[2]int{a.token, a.unit}] = true
		}
		if from = to; from >= want {
			break
		}
	}
	return chosen
}

// naiveRanks counts for each unit how many come before it.
func naiveRanks(src *traces.Memory, l int, key uint64) []uint32 {
	n := src.Head.Units
	counts := make([]int, n)
	for _, t := range src.List {
		for u := range n {
			counts[u] += int(t.Active[l][u/64] >> (u % 64) & 1)
		}
	}
	rank := make([]uint32, n)
	for u := range n {
		before := 0
		for v := range n {
			if counts[v] < counts[u] || counts[v] == counts[u] &&
				mix(key^uint64(v)) < mix(key^uint64(u)) {
				before++
			}
		}
		rank[u] = uint32((2*before + 1) * 65536 / (2 * n))
	}
	return rank
}

func TestRulesAgreeWithPlainTwin(t *testing.T) {
	for _, magnitudes := range []bool{false, true} {
		src := small(magnitudes)
		src.List = src.List[:150]
		for _, share := range []float64{0.01, 0.06, 0.12, 0.3} {
			opt := Options{LayerShare: share, Seed: 11}
			out, rep := apply(t, src, opt)
			got := collect(t, out)
			for l := range src.Head.Layers {
				want := int(math.Round(share * float64(len(src.List)*src.Head.Units)))
				own := 0
				for _, k := range src.List {
					own += k.Active[l].Count()
				}
				method := rep.Layers[l].Method
				if (want > own) != (method == thicken) || want == own {
					t.Fatalf("share %g, layer %d: %d units become %d by method %s", share, l, own,
						want, method)
				}
				if method == thicken {
					want -= own
				}
				chosen := naive(src, l, method, opt.Seed, want)
				for i, k := range got.List {
					for u := range src.Head.Units {
						was, is := src.List[i].Active[l][u/64]>>(u%64)&1 == 1,
							k.Active[l][u/64]>>(u%64)&1 == 1
						if is != (chosen[[2]int{i, u}] || was && method == thicken) {
							t.Fatalf("magnitudes %t, share %g, layer %d (%s), token %d, unit "+
								"%d: active %t, the plain twin disagrees", magnitudes, share, l,
								method, i, u, is)
						}
					}
				}
			}
		}
	}
}
