package memory

import (
	"sort"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// LongestWindow is the longest window that is considered, in tokens: with it a layer holds most of
// the rows that a document ever needs.
const LongestWindow = 256

// LayerRows is how many rows of one layer are in memory under a window of k tokens, k = 0 …
// LongestWindow: those of the k tokens before and those of the token that computes.
type LayerRows struct {
	// over the tokens with k tokens before them in their sequence; over all tokens where there is
	// none
	Mean  []float64
	Max   []int
	Loads []int // the most rows that one token reads
}

// Windows holds the demand of a trace under every window, from one pass. It is not safe for
// concurrent use.
type Windows struct {
	Layers    []LayerRows
	Positions int // of the longest sequence
	Tokens    int

	trace   Trace
	reads   Reads
	staging map[int]units.Bytes // by window; each costs a pass, made on demand
}

// WindowsOf measures all windows of a trace. With M(k) the units of a token that none of the k
// tokens before it needed, the rows in use are D_t(k+1) = D_{t−1}(k) + M_t(k). progress may be nil.
func WindowsOf(t Trace, reads Reads, progress func(done, total int)) (*Windows, error) {
	layers := make([]rowPass, t.Layers)
	for l := range layers {
		layers[l].last = make([]int, t.Units)
	}
	w := &Windows{Tokens: t.Tokens, trace: t, reads: reads, staging: map[int]units.Bytes{}}
	start := 0
	err := t.each(func(i int, begins bool, token *Token) error {
		if begins {
			start = i
		}
		w.Positions = max(w.Positions, int(token.Pos)+1)
		for l := range layers {
			layers[l].step(token.Masks[l], i, start)
		}
		if progress != nil {
			progress(i+1, t.Tokens)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for l := range layers {
		w.Layers = append(w.Layers, layers[l].result(t.Tokens))
	}
	return w, nil
}

// Need is what a window of k tokens, 0 … LongestWindow, asks for: NeedOf the same window.
func (w *Windows) Need(k int) (*Need, error) {
	n := w.rows(k)
	staging, known := w.staging[k]
	if !known {
		exact, err := NeedOf(w.trace, w.reads, policy.SlidingWindow(k))
		if err != nil {
			return nil, err
		}
		staging = exact.Staging
		w.staging[k] = staging
	}
	n.Staging = staging
	return n, nil
}

// rows returns the need without the staging buffer.
func (w *Windows) rows(k int) *Need {
	n := &Need{Rows: make([]int, len(w.Layers)), Positions: w.Positions}
	for l := min(w.reads.Dense, len(n.Rows)); l < len(n.Rows); l++ {
		n.Rows[l] = w.Layers[l].Max[k]
	}
	return n
}

// Account is the memory of a model with a window of k tokens. Of c, the policy, the rows and the
// staging buffer are the window's; positions that are 0 are the trace's.
func (w *Windows) Account(m Model, c Config, k int) (Memory, error) {
	n, err := w.Need(k)
	if err != nil {
		return Memory{}, err
	}
	return w.account(m, c, k, n), nil
}

func (w *Windows) account(m Model, c Config, k int, n *Need) Memory {
	c.Policy, c.Dense = policy.SlidingWindow(k), w.reads.Dense
	return Account(m, n.Config(c))
}

// Largest is the account of the longest window that a budget has room for; see Account for c. The
// error for a budget below the account of a window of 0 tokens is a *BudgetError, and the account
// is that floor.
//
// Rows grow with the window and the staging buffer shrinks. The rows of a window with the buffer of
// the longest window are therefore a lower bound that grows with the window. Largest makes the pass
// for the exact buffer only where the bound fits.
func (w *Windows) Largest(m Model, c Config, budget units.Bytes) (Memory, error) {
	least, err := w.Need(LongestWindow)
	if err != nil {
		return Memory{}, err
	}
	beyond := sort.Search(LongestWindow+1, func(k int) bool {
		bound := w.rows(k)
		bound.Staging = least.Staging
		return w.account(m, c, k, bound).Total > budget
	})
	for k := beyond - 1; k >= 0; k-- {
		exact, err := w.Account(m, c, k)
		if err != nil || exact.Total <= budget {
			return exact, err
		}
	}
	floor, err := w.Account(m, c, 0)
	if err != nil {
		return Memory{}, err
	}
	return floor, floor.Check(budget)
}

// rowPass is the pass over one layer.
type rowPass struct {
	// token of the last use of each unit, plus one; at or below the start of a sequence = not in it
	last     []int
	held     [LongestWindow + 2]int // D(k) at the token before
	sum      [LongestWindow + 1]int // of rows in use, all tokens
	fullSum  [LongestWindow + 1]int // of tokens that end a full window
	full     [LongestWindow + 1]int
	most     [LongestWindow + 1]int
	mostLoad [LongestWindow + 1]int
}

// step adds token i of a sequence that began with token start.
func (p *rowPass) step(need mask.Mask, i, start int) {
	const far = LongestWindow + 1 // a longer gap, or none
	var gaps [far + 1]int
	for u := range need.Each {
		gap := far
		if p.last[u] > start {
			gap = min(i+1-p.last[u], far)
		}
		gaps[gap]++
		p.last[u] = i + 1
	}
	if i == start {
		clear(p.held[:])
	}
	loads := 0
	for k := LongestWindow; k >= 0; k-- {
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
	r := LayerRows{Mean: make([]float64, LongestWindow+1), Max: p.most[:], Loads: p.mostLoad[:]}
	for k := range r.Mean {
		r.Mean[k] = float64(p.sum[k]) / float64(tokens)
		if p.full[k] > 0 {
			r.Mean[k] = float64(p.fullSum[k]) / float64(p.full[k])
		}
	}
	return r
}
