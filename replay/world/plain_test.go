package world

import (
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
)

// plainWindow keeps the units that the last k tokens needed, as the paper says. It shares no code
// with package policy, which decides for engine and simulator.
type plainWindow struct {
	k    int
	last []mask.Mask // the oldest first
}

// plainOf returns the plain windows of a policy's layers; nil for another policy.
func plainOf(spec policy.Spec, layers int) []plainWindow {
	if !spec.PlainWindow() {
		return nil
	}
	list := make([]plainWindow, layers)
	for l := range list {
		list[l].k = spec.Window
	}
	return list
}

// step returns the units that are read for a token, and how many are in memory already and how many
// leave after it.
func (p *plainWindow) step(need mask.Mask, units int) (load []uint32, hits, evictions int) {
	in := p.union(units)
	for u := range uint32(units) {
		switch {
		case !need.Has(u):
		case in.Has(u):
			hits++
		default:
			load = append(load, u)
		}
	}
	in.Or(need)
	p.last = append(p.last, need)
	if len(p.last) > p.k {
		p.last = p.last[1:]
	}
	return load, hits, in.Count() - p.union(units).Count()
}

func (p *plainWindow) union(units int) mask.Mask {
	in := mask.New(units)
	for _, m := range p.last {
		in.Or(m)
	}
	return in
}
