package policy

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

// plain is every policy once more, as the documentation says it, with sets and sorting and no
// thought of speed: after each token the rule of the policy says which of the units in memory or
// needed are kept.
type plain struct {
	spec    Spec
	units   int
	hot     []uint32
	future  [][]uint32 // by token
	now     int
	memory  map[uint32]bool
	last    map[uint32]int // twice the token that used the unit last, and 1 more when it needed it
	uses    map[uint32]int // tokens that used it since it was loaded
	history [][]uint32     // since Reset
}

func (p *plain) reset() {
	p.memory, p.last, p.uses, p.history = map[uint32]bool{}, map[uint32]int{}, map[uint32]int{}, nil
}

func (p *plain) step(need []uint32) (d Decision) {
	if everything(p.spec) {
		need = nil
		for u := range uint32(p.units) {
			need = append(need, u)
		}
	}
	p.history = append(p.history, need)
	var hits []uint32
	for _, u := range need {
		if p.memory[u] {
			hits = append(hits, u)
			p.uses[u]++
		} else {
			d.Load = append(d.Load, u)
			p.uses[u] = 1
		}
		p.last[u] = 2*p.now + 1
	}
	d.Hits = len(hits)
	along := p.along(need, d.Load)
	for _, u := range along {
		p.last[u] = 2 * p.now
	}
	d.Ahead = len(along)
	keep := map[uint32]bool{}
	for _, u := range p.keep(hits, d.Load, along) {
		keep[u] = true
	}
	d.Load = append(d.Load, along...)
	slices.Sort(d.Load)
	for _, u := range d.Load {
		p.memory[u] = true
		if limited(p.spec) && !keep[u] {
			d.Overflow++
		}
	}
	for u := range p.memory {
		if !keep[u] {
			d.Evict = append(d.Evict, u)
			delete(p.memory, u)
		}
	}
	slices.Sort(d.Evict)
	p.now++
	return d
}

// along is what a page cache reads with the missing units: those in a group with one of them,
// neither needed nor in memory.
func (p *plain) along(need, missing []uint32) (list []uint32) {
	if p.spec.Kind != KindPages {
		return nil
	}
	for u := range uint32(p.units) {
		near := slices.ContainsFunc(missing, func(m uint32) bool {
			return int(m)/p.spec.Ahead == int(u)/p.spec.Ahead
		})
		if near && !p.memory[u] && !slices.Contains(need, u) {
			list = append(list, u)
		}
	}
	return list
}

// everything says whether every unit is needed, whatever the token needs.
func everything(s Spec) bool {
	return slices.Contains([]string{KindAll, KindHybrid, KindTensors, KindCyclic}, s.Kind)
}

// limited says whether Overflow counts for the policy.
func limited(s Spec) bool {
	switch s.Kind {
	case KindDelta, KindLRU, KindLFU, KindHot, KindBelady, KindPages, KindCyclic:
		return true
	}
	return s.Kind == KindWindow && s.Capacity > 0
}

// keep is the rule of each policy; memory still is what it was before the token.
func (p *plain) keep(hits, load, along []uint32) (keep []uint32) {
	var idle []uint32 // in memory and not needed
	for u := range p.memory {
		if !slices.Contains(hits, u) {
			idle = append(idle, u)
		}
	}
	room := func(capacity int) int { return max(0, capacity-len(keep)) }
	switch p.spec.Kind {
	case KindNone, KindAll:
	case KindHybrid:
		for u := range uint32(min(p.units, p.spec.Capacity)) {
			keep = append(keep, u)
		}
	case KindTensors:
		if testLayer < p.spec.Layers {
			keep = slices.Concat(hits, load)
		}
	case KindCyclic:
		if p.spec.Capacity >= p.units {
			keep = slices.Concat(hits, load)
		}
	case KindWindow:
		young := map[uint32]bool{}
		for i := max(0, len(p.history)-p.spec.Window); i < len(p.history); i++ {
			for _, u := range p.history[i] {
				young[u] = true
			}
		}
		if p.spec.Capacity == 0 {
			return slices.Collect(maps.Keys(young))
		}
		keep = append(keep, hits...)
		for _, u := range idle {
			if young[u] {
				keep = append(keep, u)
			}
		}
		keep = append(keep, first(load, room(p.spec.Capacity))...)
	case KindDelta:
		keep = append(keep, hits...)
		keep = append(keep, first(load, room(p.spec.Capacity))...)
	case KindLRU, KindLFU, KindPages:
		p.worstFirst(idle)
		keep = append(keep, hits...)
		keep = append(keep, first(load, room(p.spec.Capacity))...)
		keep = append(keep, first(along, room(p.spec.Capacity))...)
		keep = append(keep, idle[len(idle)-min(len(idle), room(p.spec.Capacity)):]...)
	case KindHot:
		pinned := p.hot[:p.spec.Pinned]
		hot := func(u uint32) bool { return slices.Contains(pinned, u) }
		rest := *p
		rest.spec = Spec{Kind: KindLRU, Capacity: p.spec.Capacity}
		rest.memory = maps.Clone(p.memory)
		maps.DeleteFunc(rest.memory, func(u uint32, _ bool) bool { return hot(u) })
		keep = rest.keep(slices.DeleteFunc(slices.Clone(hits), hot),
			slices.DeleteFunc(slices.Clone(load), hot), nil)
		return append(keep, pinned...)
	case KindBelady:
		all := slices.Concat(hits, load, idle)
		p.worstFirst(all)
		keep = all[len(all)-min(len(all), p.spec.Capacity):]
	default:
		panic(p.spec.Kind)
	}
	return keep
}

func first(list []uint32, n int) []uint32 { return list[:min(n, len(list))] }

// worstFirst sorts units by who leaves first.
func (p *plain) worstFirst(list []uint32) {
	slices.SortFunc(list, func(a, b uint32) int {
		order := 0
		switch p.spec.Kind {
		case KindLFU:
			order = cmp.Compare(p.uses[a], p.uses[b])
		case KindBelady:
			order = cmp.Compare(p.next(b), p.next(a))
		}
		return cmp.Or(order, cmp.Compare(p.last[a], p.last[b]), cmp.Compare(a, b))
	})
}

func (p *plain) next(u uint32) int {
	for t := p.now + 1; t < len(p.future); t++ {
		if slices.Contains(p.future[t], u) {
			return t
		}
	}
	return len(p.future)
}

// A source of masks: how the tokens of a test look.
type source struct {
	name string
	mask func(r *rand.Rand, units int, before []uint32) []uint32
}

func sources() []source {
	random := func(share float64) func(*rand.Rand, int, []uint32) []uint32 {
		return func(r *rand.Rand, units int, _ []uint32) (list []uint32) {
			for u := range uint32(units) {
				if r.Float64() < share {
					list = append(list, u)
				}
			}
			return list
		}
	}
	return []source{
		{"independent", random(0.1)},
		{"dense", random(0.7)},
		// a unit stays active with 3 in 4, some are hot
		{"correlated", func(r *rand.Rand, units int, before []uint32) (list []uint32) {
			for u := range uint32(units) {
				p := 0.03 + 0.3/float64(1+u)
				if slices.Contains(before, u) {
					p = 0.75
				}
				if r.Float64() < p {
					list = append(list, u)
				}
			}
			return list
		}},
		// nothing, everything, or a few
		{"bursts", func(r *rand.Rand, units int, _ []uint32) []uint32 {
			switch r.IntN(6) {
			case 0:
				return nil
			case 1:
				return full(units).AppendUnits(nil)
			}
			return random(0.05)(r, units, nil)
		}},
	}
}

func full(units int) mask.Mask {
	m := mask.New(units)
	m.Fill(units)
	return m
}

func (s source) tokens(r *rand.Rand, units, n int) [][]uint32 {
	list := make([][]uint32, n)
	var before []uint32
	for i := range list {
		before = s.mask(r, units, before)
		list[i] = before
	}
	return list
}

func masksOf(units int, tokens [][]uint32) []mask.Mask {
	masks := make([]mask.Mask, len(tokens))
	for i, list := range tokens {
		masks[i] = maskOf(units, list)
	}
	return masks
}

// testLayer is the layer that every test's policy is of.
const testLayer = 3

// specs are all kinds with numbers around the edges of so many units.
func specs(units int) []Spec {
	list := []Spec{{}, {Kind: KindNone}, {Kind: KindAll}, {Kind: KindTensors}, {Kind: KindTensors,
		Layers: testLayer}, {Kind: KindTensors, Layers: testLayer + 1}}
	for _, k := range []int{0, 1, 2, 3, 5, 17, 64} {
		list = append(list, Spec{Kind: KindWindow, Window: k})
	}
	for _, c := range []int{0, 1, 2, units / 4, units / 2, units - 1, units, units + 7} {
		for _, ahead := range []int{1, 3, units + 1} {
			list = append(list, Spec{Kind: KindPages, Capacity: c, Ahead: ahead})
		}
		for _, kind := range []string{KindHybrid, KindCyclic, KindDelta, KindLRU, KindLFU,
			KindBelady} {
			list = append(list, Spec{Kind: kind, Capacity: c})
		}
		list = append(list, Spec{Kind: KindHot, Pinned: units / 3, Capacity: c}, Spec{Kind: KindHot,
			Capacity: c})
		if c > 0 {
			list = append(list, Spec{Kind: KindWindow, Window: 1, Capacity: c},
				Spec{Kind: KindWindow, Window: 4, Capacity: c})
		}
	}
	return list
}

// ranking is any order of the units.
func ranking(r *rand.Rand, units int) []uint32 {
	list := full(units).AppendUnits(nil)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func mustNew(t testing.TB, s Spec, units int, opt Options) Policy {
	t.Helper()
	p, err := New(s, units, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Every policy decides what its plain twin decides, and every step keeps the invariants of the
// package.
func TestAgainstPlain(t *testing.T) {
	for _, src := range sources() {
		for _, units := range []int{1, 63, 64, 65, 100} {
			r := rand.New(rand.NewPCG(1, uint64(units)))
			trace := src.tokens(r, units, 40)
			hot := ranking(r, units)
			for _, spec := range specs(units) {
				againstPlain(t, src.name, spec, units, hot, trace)
			}
		}
	}
}

// Long traces: counts and next uses far beyond one word of the mask of the lists in use.
func TestLongTracesAgainstPlain(t *testing.T) {
	const units = 9
	for _, src := range sources() {
		r := rand.New(rand.NewPCG(2, 3))
		trace := src.tokens(r, units, 700)
		hot := ranking(r, units)
		for _, spec := range specs(units) {
			againstPlain(t, src.name, spec, units, hot, trace)
		}
	}
}

// againstPlain runs a trace in two sequences, the second one shorter.
func againstPlain(t *testing.T, source string, spec Spec, units int, hot []uint32,
	trace [][]uint32) {
	t.Helper()
	masks := masksOf(units, trace)
	p, twin := mustNew(t, spec, units, Options{Layer: testLayer, Hot: hot,
		Future: slices.Values(masks)}), &plain{spec: spec, units: units, hot: hot, future: trace}
	if spec.Kind == "" {
		twin.spec.Kind = KindNone
	}
	twin.reset()
	check := newChecker(spec, units)
	var d Decision
	for i, mask := range masks {
		if i == len(masks)*5/8 {
			p.Reset()
			twin.reset()
			check = newChecker(spec, units)
		}
		p.Step(mask, &d)
		want := twin.step(trace[i])
		if got, want := show(&d), show(&want); got != want {
			t.Fatalf("%s, %d units, %v, token %d: need %v: got %s, want %s", source, units, spec, i,
				trace[i], got, want)
		}
		if err := check.step(mask, &d); err != nil {
			t.Fatalf("%s, %d units, %v, token %d: %v", source, units, spec, i, err)
		}
	}
	if b, ok := p.(*Belady); ok && b.Unforeseen() != 0 {
		t.Fatalf("%s, %d units, %v: %d uses were not foreseen", source, units, spec, b.Unforeseen())
	}
}
