package answers

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/stats"
)

// MaxWindow is the longest window that is considered, in tokens.
const MaxWindow = stats.MaxWindow

// LayerRows is how many rows of one layer are in memory under a window of k tokens, k = 0 …
// MaxWindow: those of the k tokens before and those of the token that computes.
type LayerRows struct {
	// over the tokens with k tokens before them in their sequence; over all tokens where there is
	// none
	Mean  []float64
	Max   []int
	Loads []int // the most rows that one token reads
}

// Rows is what the windows of a trace keep in memory.
type Rows struct {
	Layers    []LayerRows
	Positions int // of the longest sequence
	Tokens    int
}

// RowsOf measures all windows of a trace in one pass, in the terms of package stats: with M(k) the
// units of a token that none of the k tokens before it needed, the rows in use are D_t(k+1) =
// D_{t−1}(k) + M_t(k). Tokens must be ordered by sequence, each of which starts empty.
func RowsOf(ctx context.Context, src traces.Source, predicted bool, progress func(done,
	total int)) (*Rows, error) {
	head, total := src.Header(), src.Tokens()
	if predicted && !head.HasPredicted {
		return nil, fmt.Errorf("answers: the trace of %s holds no predicted masks; ask about "+
			"the true ones: %w", head.Model, ErrInput)
	}
	if total == 0 {
		return nil, fmt.Errorf("answers: the trace of %s holds no tokens: %w", head.Model, ErrInput)
	}
	layers := make([]rowPass, head.Layers)
	for l := range layers {
		layers[l].last = make([]int, head.Units)
	}
	rows := &Rows{Tokens: total}
	var t traces.Token
	seq, start := uint32(0), 0
	for i := range total {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := src.Token(i, &t); err != nil {
			return nil, fmt.Errorf("answers: token %d: %w", i, err)
		}
		if i > 0 && t.Seq != seq {
			start = i
		}
		seq = t.Seq
		rows.Positions = max(rows.Positions, int(t.Pos)+1)
		masks := t.Active
		if predicted {
			masks = t.Predicted
		}
		for l := range layers {
			layers[l].step(masks[l], i, start)
		}
		if progress != nil {
			progress(i+1, total)
		}
	}
	for l := range layers {
		rows.Layers = append(rows.Layers, layers[l].result(total))
	}
	return rows, nil
}

// rowPass is the pass over one layer.
type rowPass struct {
	// token of the last use of each unit, plus one; at or below the start of a sequence = not in it
	last     []int
	held     [MaxWindow + 2]int // D(k) at the token before
	sum      [MaxWindow + 1]int // of rows in use, all tokens
	fullSum  [MaxWindow + 1]int // of tokens that end a full window
	full     [MaxWindow + 1]int
	most     [MaxWindow + 1]int
	mostLoad [MaxWindow + 1]int
}

// step adds token i of a sequence that began with token start.
func (p *rowPass) step(need []uint64, i, start int) {
	const far = MaxWindow + 1 // a longer gap, or none
	var gaps [far + 1]int
	for w, word := range need {
		for ; word != 0; word &= word - 1 {
			u := w*64 + bits.TrailingZeros64(word)
			gap := far
			if p.last[u] > start {
				gap = min(i+1-p.last[u], far)
			}
			gaps[gap]++
			p.last[u] = i + 1
		}
	}
	if i == start {
		clear(p.held[:])
	}
	loads := 0
	for k := MaxWindow; k >= 0; k-- {
		loads += gaps[k+1]
		held := p.held[k] + loads
		p.held[k+1] = held
		p.sum[k] += held
		p.most[k], p.mostLoad[k] = max(p.most[k], held), max(p.mostLoad[k], loads)
		if i-start >= k {
			p.fullSum[k] += held
			p.full[k]++
		}
	}
}

func (p *rowPass) result(tokens int) LayerRows {
	r := LayerRows{Mean: make([]float64, MaxWindow+1), Max: p.most[:], Loads: p.mostLoad[:]}
	for k := range r.Mean {
		r.Mean[k] = float64(p.sum[k]) / float64(tokens)
		if p.full[k] > 0 {
			r.Mean[k] = float64(p.fullSum[k]) / float64(p.full[k])
		}
	}
	return r
}
