package answers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/traces"
)

// Need is the value of one parameter that reaches the target, with all others unchanged. A value
// worse than the present one shows how much room there is.
type Need struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit"`
	Now    float64  `json:"now"`
	Needed *float64 `json:"needed"`      // nil = this parameter alone cannot reach the target
	Factor *float64 `json:"improvement"` // how many times as good; below 1 = room
	// Beyond says that even the worst value tried (mostFactor times as bad) is enough. Needed is
	// that value.
	Beyond bool `json:"even_worse_is_enough,omitempty"`
	// NeededEstimate is Needed with what it rests on. Where speeds are bounds from above, at least
	// so much is needed.
	NeededEstimate *document.Estimate `json:"needed_estimate"`
	// Ceiling is the speed at the best value tried, if the target is not reached, and
	// CeilingEstimate the same with its interval.
	Ceiling         *float64           `json:"ceiling_tokens_per_s,omitempty"`
	CeilingEstimate *document.Estimate `json:"ceiling_tokens_per_s_estimate,omitempty"`
}

// reached notes the value at which the target is reached, with the speed there.
func (n *Need) reached(needed, factor float64, rate document.Estimate, inverse bool) {
	n.Needed, n.Factor = &needed, &factor
	n.NeededEstimate = &document.Estimate{Value: needed, Basis: rate.Basis, Bound: rate.Bound,
		AtMost: inverse && rate.Bound}
}

// notReached notes the speed at the best value that was tried.
func (n *Need) notReached(rate document.Estimate) {
	n.Beyond, n.Ceiling, n.CeilingEstimate = false, &rate.Value, &rate
}

// Sensitivity is the elasticity of speed: its rise in percent per percent of a parameter, by
// central differences of logarithms.
type Sensitivity struct {
	Name       string  `json:"name"`
	Unit       string  `json:"unit"`
	Now        float64 `json:"now"`
	Elasticity float64 `json:"elasticity"` // d log(tokens/s) / d log(value)
	OneSided   bool    `json:"one_sided,omitempty"`
	// Basis is that of the two speeds; how far their difference is off is not known.
	Basis traces.Basis `json:"basis"`
}

// Purchase is another drive in the same machine.
type Purchase struct {
	Name       string  `json:"flash"`
	Engine     string  `json:"engine"`
	Parallel   int     `json:"parallel"`
	TokensPerS float64 `json:"tokens_per_s"`
	// Estimate is TokensPerS with its interval.
	Estimate document.Estimate `json:"tokens_per_s_estimate"`
	Ratio    float64           `json:"ratio"` // to the present drive
	Fitted   bool              `json:"fitted"`
}

const (
	mostFactor      = 1024 // largest change of a rate or a time, up or down
	mostServers     = 64
	needTolerance   = 0.005
	elasticityStep  = 0.05
	nameMemory      = "memory"
	nameActiveShare = "active share"
)

// needs finds the need of each lever, of the memory and of the active share.
func (p *planner) needs() ([]Need, error) {
	list := leversOf(p.Backend)
	progress := p.Tell.Stage("needed values")
	var out []Need
	for i := range list {
		progress(i, len(list)+2)
		l := &list[i]
		now := l.value(p.Device)
		if now == 0 {
			continue
		}
		n, err := p.needOf(l, now)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	for i, of := range []func() (Need, error){p.needOfMemory, p.needOfShare} {
		progress(len(list)+i, len(list)+2)
		n, err := of()
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// needOf finds the least improvement of a lever that reaches the target.
func (p *planner) needOf(l *lever, now float64) (Need, error) {
	out := Need{Name: l.name, Unit: l.unit, Now: now}
	direction := 1.0
	if l.inverse {
		direction = -1
	}
	// at the value that was tried last, and at the least that was enough
	var last, rate document.Estimate
	enough := func(better float64) (bool, error) {
		var err error
		last, _, err = p.simulate(p.prefix, l.moved(p.Device, math.Pow(better, direction)), p.best,
			0)
		if last.Value >= p.Target {
			rate = last
		}
		return last.Value >= p.Target, err
	}
	var better float64
	var found bool
	var err error
	if l.whole {
		var n int
		n, found, err = leastInt(1, int(now)*mostServers, func(n int) (bool, error) {
			return enough(float64(n) / now)
		})
		better = float64(n) / now
		out.Beyond = n == 1
	} else {
		better, found, err = least(1.0/mostFactor, mostFactor, needTolerance, enough)
		out.Beyond = better == 1.0/mostFactor
	}
	if err != nil {
		return out, err
	}
	if !found {
		out.notReached(last)
		return out, nil
	}
	out.reached(now*math.Pow(better, direction), better, rate, l.inverse)
	return out, nil
}

// needOfMemory finds the shortest window that reaches the target, whatever the budget.
func (p *planner) needOfMemory() (Need, error) {
	out := Need{Name: nameMemory, Unit: "B"}
	now, err := p.account(p.best.Window)
	if err != nil {
		return out, err
	}
	out.Now = float64(now.Total)
	var last, enough document.Estimate
	k, found, err := leastInt(0, p.windows[len(p.windows)-1], func(k int) (bool, error) {
		s := p.best
		s.Window = k
		var err error
		if last, _, err = p.simulate(p.prefix, p.Device, s, 0); last.Value >= p.Target {
			enough = last
		}
		return last.Value >= p.Target, err
	})
	if err != nil {
		return out, err
	}
	if !found {
		out.notReached(last)
		return out, nil
	}
	more, err := p.account(k)
	if err != nil {
		return out, err
	}
	needed := float64(more.Total)
	out.Beyond = k == 0
	out.reached(needed, needed/out.Now, enough, false)
	return out, nil
}

// needOfShare thins the trace until it reaches the target.
func (p *planner) needOfShare() (Need, error) {
	out := Need{Name: nameActiveShare, Unit: share, Now: activeShare(p.prefix, p.Predicted)}
	var last, enough document.Estimate
	better, found, err := least(1, mostFactor, needTolerance, func(better float64) (bool, error) {
		var err error
		last, _, err = p.simulate(thin(p.prefix, 1/better), p.Device, p.best, 0)
		if last.Value >= p.Target {
			enough = last
		}
		return last.Value >= p.Target, err
	})
	if err != nil {
		return out, err
	}
	if !found {
		out.notReached(last)
		return out, nil
	}
	out.Beyond = better == 1
	out.reached(out.Now/better, better, enough, true)
	return out, nil
}

// sensitivities differentiates the speed of the best setting and sorts by magnitude. Parameters
// without any effect are left out.
func (p *planner) sensitivities() ([]Sensitivity, error) {
	list := leversOf(p.Backend)
	progress := p.Tell.Stage("sensitivities")
	var out []Sensitivity
	add := func(s Sensitivity, low, high float64, slow, fast document.Estimate) {
		s.Basis = traces.Basis(slow.Basis).Weaker(traces.Basis(fast.Basis))
		if s.Elasticity = math.Log(fast.Value/slow.Value) / math.Log(high/low); s.Elasticity != 0 &&
			!math.IsNaN(s.Elasticity) && !math.IsInf(s.Elasticity, 0) {
			out = append(out, s)
		}
	}
	for i := range list {
		progress(i, len(list)+2)
		l := &list[i]
		now := l.value(p.Device)
		if now == 0 {
			continue
		}
		low, high := l.ends(now, elasticityStep)
		slow, _, err := p.simulate(p.prefix, l.moved(p.Device, low), p.best, 0)
		if err != nil {
			return nil, err
		}
		fast, _, err := p.simulate(p.prefix, l.moved(p.Device, high), p.best, 0)
		if err != nil {
			return nil, err
		}
		add(Sensitivity{Name: l.name, Unit: l.unit, Now: now, OneSided: low == 1}, low, high, slow,
			fast)
	}
	if err := p.otherSensitivities(add); err != nil {
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b Sensitivity) int {
		switch x, y := math.Abs(a.Elasticity), math.Abs(b.Elasticity); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// otherSensitivities are those of the memory and of the active share. The memory is moved by a
// window of one token more and one less. The active share can only be thinned: its difference is
// one-sided.
func (p *planner) otherSensitivities(add func(s Sensitivity, low, high float64,
	slow, fast document.Estimate)) error {
	at := func(k int) (memory float64, rate document.Estimate, err error) {
		s := p.best
		s.Window = k
		if rate, _, err = p.simulate(p.prefix, p.Device, s, 0); err != nil {
			return 0, rate, err
		}
		account, err := p.account(k)
		return float64(account.Total), rate, err
	}
	shorter, longer := max(p.best.Window-1, 0), min(p.best.Window+1, memory.LongestWindow)
	low, slow, err := at(shorter)
	if err != nil {
		return err
	}
	high, fast, err := at(longer)
	if err != nil {
		return err
	}
	now, own, err := at(p.best.Window)
	if err != nil {
		return err
	}
	add(Sensitivity{Name: nameMemory, Unit: "B", Now: now, OneSided: longer-shorter < 2}, low, high,
		slow, fast)
	const kept = 1 - 2*elasticityStep
	thinned := thin(p.prefix, kept)
	rate, _, err := p.simulate(thinned, p.Device, p.best, 0)
	if err != nil {
		return err
	}
	active := activeShare(p.prefix, p.Predicted)
	add(Sensitivity{Name: nameActiveShare, Unit: share, Now: active, OneSided: true},
		activeShare(thinned, p.Predicted), active, rate, own)
	return nil
}

// purchases simulates this machine with the flash of other devices, with the best engine and number
// of reads in flight for each.
func (p *planner) purchases() ([]Purchase, error) {
	progress := p.Tell.Stage("other drives")
	own, _, err := p.simulate(p.prefix, p.Device, p.best, 0)
	if err != nil {
		return nil, err
	}
	out := []Purchase{}
	for i, other := range p.Others {
		progress(i, len(p.Others))
		mixed := *p.Device
		mixed.Flash, mixed.Fit = other.Flash, other.Fit
		best := Purchase{Name: other.Name, Fitted: other.Fit != nil && other.Fit.IntervalPct != nil}
		for _, engine := range enginesOf(other) {
			for _, parallel := range p.Parallel {
				s := p.best
				s.Engine, s.Parallel = engine, parallel
				if align := max(other.Flash.Align, 1); s.Chunk%align != 0 {
					s.Chunk = 0
				}
				rate, _, err := p.simulate(p.prefix, &mixed, s, 0)
				if err != nil {
					return nil, err
				}
				if rate.Value > best.TokensPerS*(1+negligible) {
					best.Engine, best.Parallel = engine, parallel
					best.TokensPerS, best.Estimate = rate.Value, rate
				}
			}
		}
		if best.Engine != "" {
			best.Ratio = best.TokensPerS / own.Value
			out = append(out, best)
		}
	}
	slices.SortStableFunc(out, func(a, b Purchase) int {
		switch {
		case a.TokensPerS > b.TokensPerS:
			return -1
		case a.TokensPerS < b.TokensPerS:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// thin is a trace in which each unit is kept or dropped for all tokens, with a probability. Active
// share, misses and hits shrink in proportion, and the repetition from token to token stays. A
// larger probability keeps the units of a smaller one, and more.
func thin(m *traces.Memory, keep float64) *traces.Memory {
	kept := mask.NewLayers(m.Head.Layers, m.Head.Units)
	for l := range kept {
		random := rng.Stream(m.Head.Seed, fmt.Sprintf("answers/thin/%d", l))
		for u := range m.Head.Units {
			if random.Float64() < keep {
				kept[l].Set(uint32(u))
			}
		}
	}
	masked := func(masks []mask.Mask) []mask.Mask {
		if masks == nil {
			return nil
		}
		out := mask.NewLayers(len(masks), m.Head.Units)
		for l := range masks {
			copy(out[l], masks[l])
			out[l].And(kept[l])
		}
		return out
	}
	out := &traces.Memory{Head: m.Head, List: slices.Clone(m.List)}
	for i := range out.List {
		t := &out.List[i]
		t.Active, t.Predicted = masked(t.Active), masked(t.Predicted)
	}
	return out
}

// activeShare is the mean share of the units that a token needs.
func activeShare(m *traces.Memory, predicted bool) float64 {
	active := 0
	for i := range m.List {
		for _, need := range m.List[i].Masks(predicted) {
			active += need.Count()
		}
	}
	return float64(active) / float64(len(m.List)*m.Head.Layers*m.Head.Units)
}
