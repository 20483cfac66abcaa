package stats

import (
	"math/bits"

	"github.com/windrow-sim/windrow/internal/mask"
)

const (
	// farGap is the bucket of gaps above MaxWindow and of first uses: misses in every window.
	farGap = MaxWindow + 1
	// powerBuckets holds gaps above 64 up to 2³¹, the largest token index.
	powerBuckets = 25
)

// layerPass is the state of the pass over one layer. A token is its index in the trace, counted
// from 1. 0 means "never", so that nothing is cleared between sequences.
type layerPass struct {
	last     []int32 // by unit: the last token that needed it, 0 = none
	seqStart int32   // first token of the current sequence
	now      int32   // the token last stepped

	// D_t(k) of the current sequence; of all its tokens while it has fewer than k
	distinct [MaxWindow + 1]int64

	gaps     [farGap + 1]int64 // all accesses by gap; farGap: beyond and first uses
	above    [powerBuckets]int64
	firstUse int64

	sumDistinct [MaxWindow + 1]int64 // Σ D_t(k) over full windows
	sumNew      [MaxWindow + 1]int64 // Σ M_t(k) over tokens with k tokens before them

	accesses, minActive, maxActive int64
	trueActive, predicted, both    int64 // units that are active, predicted, and both
}

func newLayerPass(units int) *layerPass {
	return &layerPass{last: make([]int32, units)}
}

// step advances by one token that needs the units of a mask.
func (p *layerPass) step(need mask.Mask, startsSequence bool) {
	p.now++
	if startsSequence {
		p.seqStart = p.now
		p.distinct = [MaxWindow + 1]int64{}
	}
	row := p.count(need)
	p.addRow(&row)
}

// count records the accesses of one token and returns their number by gap.
func (p *layerPass) count(need mask.Mask) (row [farGap + 1]uint32) {
	last, now, start := p.last, p.now, p.seqStart
	for u := range need.Each {
		before := last[u]
		last[u] = now
		if gap := uint32(now - before); gap <= MaxWindow && before >= start {
			row[gap]++
			continue
		}
		row[farGap]++
		p.countFar(before)
	}
	return row
}

// countFar counts an access whose unit was last needed more than MaxWindow tokens ago, or not in
// this sequence.
func (p *layerPass) countFar(before int32) {
	if before < p.seqStart {
		p.firstUse++
		return
	}
	// A gap in (2^(6+i), 2^(7+i)] has gap−1 of 7+i bits.
	p.above[bits.Len32(uint32(p.now-before-1))-7]++
}

// addRow adds one token's histogram of gaps to the sums of all windows; see the package
// documentation.
func (p *layerPass) addRow(row *[farGap + 1]uint32) {
	active := int64(0)
	for gap, n := range row {
		p.gaps[gap] += int64(n)
		active += int64(n)
	}
	p.accesses += active
	p.maxActive = max(p.maxActive, active)
	if p.now == 1 || active < p.minActive {
		p.minActive = active
	}
	before := int(p.now - p.seqStart) // tokens before this one in its sequence
	missing := active                 // M_t(k), starting with k = 0
	shorter := p.distinct[0]          // D_{t−1}(k)
	for k := 0; ; k++ {
		if k <= before {
			p.sumNew[k] += missing
		}
		if k == MaxWindow {
			return
		}
		shorter, p.distinct[k+1] = p.distinct[k+1], shorter+missing
		if k <= before {
			p.sumDistinct[k+1] += p.distinct[k+1]
		}
		missing -= int64(row[k+1])
	}
}

// compare counts the units of a predicted mask, of the true one, and of both.
func (p *layerPass) compare(active, predicted mask.Mask) {
	p.trueActive += int64(active.Count())
	p.predicted += int64(predicted.Count())
	p.both += int64(active.CountAnd(predicted))
}

// part returns the result of one layer. full[k] is the number of full windows of k tokens in the
// trace.
func (p *layerPass) part(units, tokens int, full *[MaxWindow + 2]int64, compared bool) Part {
	never := 0
	for _, t := range p.last[:units] {
		if t == 0 {
			never++
		}
	}
	perUnit := 1 / float64(units)
	part := Part{
		Accesses:    p.accesses,
		NeverActive: float64(never) * perUnit,
		Active: Spread{
			Mean: ratio(p.accesses, int64(tokens)) * perUnit,
			Min:  float64(p.minActive) * perUnit,
			Max:  float64(p.maxActive) * perUnit,
		},
		Window: p.windows(full),
		Reuse:  Reuse{Exact: append([]int64(nil), p.gaps[1:farGap]...), FirstUse: p.firstUse},
	}
	filled := powerBuckets
	for filled > 0 && p.above[filled-1] == 0 {
		filled--
	}
	part.Reuse.Above64 = append([]int64{}, p.above[:filled]...)
	if compared {
		part.Predictor = predictorOf(p.trueActive, p.predicted, p.both, int64(units)*int64(tokens))
	}
	return part
}

func (p *layerPass) windows(full *[MaxWindow + 2]int64) Windows {
	w := newWindows()
	hits := int64(0)
	for k := range MaxWindow + 1 {
		w.Full[k] = full[k]
		if k > 0 {
			hits += p.gaps[k]
			w.SAgg[k] = ratio(p.sumDistinct[k], full[k])
		}
		w.Delta[k] = ratio(p.sumNew[k], full[k+1]) // a token with k before it ends a window of k+1
		w.Hits[k], w.Misses[k] = hits, p.accesses-hits
	}
	return w
}

func newWindows() Windows {
	return Windows{
		SAgg: make([]float64, MaxWindow+1), Full: make([]int64, MaxWindow+1), Delta: make([]float64,
			MaxWindow+1),
		Hits: make([]int64, MaxWindow+1), Misses: make([]int64, MaxWindow+1),
	}
}

// predictorOf compares predicted with true masks, from the numbers of active, predicted, both, and
// all (unit, token) pairs.
func predictorOf(active, predicted, both, all int64) *Predictor {
	return &Predictor{
		TrueShare:      ratio(active, all),
		PredictedShare: ratio(predicted, all),
		Recall:         ratio(both, active),
		Precision:      ratio(both, predicted),
		FalsePositive:  ratio(predicted-both, all-active),
		Ratio:          ratio(predicted, active),
	}
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
