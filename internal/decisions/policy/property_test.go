package policy

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

// checker follows one policy with sets, with Slots and with a SlotMap, and checks the invariants of
// the package documentation.
type checker struct {
	spec    Spec
	units   int
	memory  map[uint32]bool
	slots   *Slots
	slotMap *SlotMap
}

func newChecker(spec Spec, units int) *checker {
	return &checker{spec: spec, units: units, memory: map[uint32]bool{}, slots: NewSlots(units),
		slotMap: NewSlotMap(units)}
}

func (c *checker) step(need mask.Mask, d *Decision) error {
	if everything(c.spec) {
		need = full(c.units)
	}
	needed := need.Count()
	if d.Hits+len(d.Load)-d.Ahead != needed {
		return fmt.Errorf("%d hits and %d loads, %d of them ahead, for %d needed units", d.Hits,
			len(d.Load), d.Ahead, needed)
	}
	if !ascending(d.Load) || !ascending(d.Evict) {
		return fmt.Errorf("not ascending: load %v evict %v", d.Load, d.Evict)
	}
	used := slices.Clone(need) // needed or loaded
	used.SetList(d.Load)
	evictedUsed := 0
	for _, u := range d.Evict {
		if !used.Has(u) { // invariant 5: freed before the reads
			c.slotMap.Delete(u)
		} else {
			evictedUsed++
		}
	}
	ahead := 0
	for _, u := range d.Load {
		if c.memory[u] || int(u) >= c.units {
			return fmt.Errorf("unit %d is loaded; in memory %v", u, c.memory[u])
		}
		if !need.Has(u) {
			ahead++
		}
		c.memory[u] = true
		c.slots.Insert(u)
		c.slotMap.Insert(u)
	}
	if ahead != d.Ahead || ahead != 0 && c.spec.Kind != KindPages {
		return fmt.Errorf("%d loaded units are not needed, counted as %d", ahead, d.Ahead)
	}
	if rows := c.spec.Kept(c.units) + evictedUsed; c.slotMap.Len() > rows {
		return fmt.Errorf("%d rows while the layer computes, more than the %d kept and the %d "+
			"used ones that leave", c.slotMap.Len(), c.spec.Kept(c.units), evictedUsed)
	}
	for _, u := range need.AppendUnits(nil) {
		if !c.memory[u] {
			return fmt.Errorf("unit %d is needed but not in memory", u)
		}
	}
	return c.leave(used, d)
}

func (c *checker) leave(used mask.Mask, d *Decision) error {
	overflow := 0
	for _, u := range d.Evict {
		if !c.memory[u] {
			return fmt.Errorf("unit %d is evicted but not in memory", u)
		}
		delete(c.memory, u)
		c.slots.Delete(u)
		if used.Has(u) {
			c.slotMap.Delete(u)
		}
		if _, loaded := slices.BinarySearch(d.Load, u); loaded && limited(c.spec) {
			overflow++
		}
	}
	if d.Overflow != overflow {
		return fmt.Errorf("overflow %d, but %d units are loaded for this token only", d.Overflow,
			overflow)
	}
	if kept := c.spec.Kept(c.units); len(c.memory) > kept {
		return fmt.Errorf("%d units in memory, more than %d", len(c.memory), kept)
	}
	return c.checkRows()
}

// checkRows checks that Slots uses rows 0…Len−1 for what is in memory, and SlotMap one slot each.
func (c *checker) checkRows() error {
	if c.slots.Len() != len(c.memory) || c.slotMap.Len() != len(c.memory) {
		return fmt.Errorf("%d rows and %d slots for %d units", c.slots.Len(), c.slotMap.Len(),
			len(c.memory))
	}
	taken := map[int]bool{}
	for row := range c.slots.Len() {
		u := c.slots.Unit(row)
		slot := c.slotMap.Row(u)
		if c.slots.Row(u) != row || !c.memory[u] || slot < 0 || slot >= c.slotMap.Top() ||
			taken[slot] {
			return fmt.Errorf("row %d holds unit %d: row %d, slot %d, in memory %v", row, u,
				c.slots.Row(u), slot, c.memory[u])
		}
		taken[slot] = true
	}
	return nil
}

func ascending(list []uint32) bool {
	for i := 1; i < len(list); i++ {
		if list[i-1] >= list[i] {
			return false
		}
	}
	return true
}

// run returns the decisions of a policy on a trace.
func run(p Policy, masks []mask.Mask) []Decision {
	list := make([]Decision, len(masks))
	for i, mask := range masks {
		p.Step(mask, &list[i])
	}
	return list
}

func loads(decisions []Decision) (n int) {
	for i := range decisions {
		n += len(decisions[i].Load)
	}
	return n
}

// eachTrace runs a test on every source of masks.
func eachTrace(t *testing.T, units, tokens int, test func(t *testing.T, r *rand.Rand,
	masks []mask.Mask)) {
	for _, src := range sources() {
		t.Run(src.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 6))
			test(t, r, masksOf(units, src.tokens(r, units, tokens)))
		})
	}
}

// No policy that keeps as many units between tokens loads less than Belady's.
func TestBeladyIsTheBound(t *testing.T) {
	const units = 130
	eachTrace(t, units, 120, func(t *testing.T, r *rand.Rand, masks []mask.Mask) {
		opt := Options{Hot: ranking(r, units), Future: slices.Values(masks)}
		strict := 0
		for _, spec := range specs(units) {
			kept := spec.Kept(units)
			if spec.Kind == KindWindow && spec.Capacity == 0 {
				kept = mostKept(mustNew(t, spec, units, opt), masks)
			}
			bound := loads(run(mustNew(t, Spec{Kind: KindBelady, Capacity: kept}, units, opt),
				masks))
			got := loads(run(mustNew(t, spec, units, opt), masks))
			if got < bound {
				t.Errorf("%v loads %d units, less than the bound %d of %d kept units", spec, got,
					bound, kept)
			}
			if got > bound {
				strict++
			}
		}
		if strict == 0 {
			t.Error("no policy loads more than the bound: the test says nothing")
		}
	})
}

// mostKept is the largest number of units that a policy keeps between two tokens of a trace.
func mostKept(p Policy, masks []mask.Mask) (most int) {
	kept := 0
	for _, d := range run(p, masks) {
		kept += len(d.Load) - len(d.Evict)
		most = max(most, kept)
	}
	return most
}

// The dense pass through a page cache decides as a list of units does that is gone through unit by
// unit.
func TestCyclicUnitByUnit(t *testing.T) {
	const units, tokens = 12, 5
	for capacity := range units + 3 {
		p := mustNew(t, Spec{Kind: KindCyclic, Capacity: capacity}, units, Options{})
		var cached []uint32 // from the unit used longest ago to the last one
		for token := range tokens {
			hits := 0
			for u := range uint32(units) {
				if i := slices.Index(cached, u); i >= 0 {
					hits++
					cached = slices.Delete(cached, i, i+1)
				}
				cached = append(cached, u)
				cached = cached[max(0, len(cached)-capacity):]
			}
			var d Decision
			if p.Step(make([]uint64, 1), &d); d.Hits != hits || len(d.Load) != units-hits {
				t.Fatalf("capacity %d, token %d: %d hits and %d loads, unit by unit %d hits",
					capacity, token, d.Hits, len(d.Load), hits)
			}
		}
	}
}

// Neighbours that come along turn misses into hits where the tokens need neighbours, and cost loads
// where they do not.
func TestReadAheadHelpsNeighboursOnly(t *testing.T) {
	const units = 256
	count := func(ahead int, need func(token int) []uint32) (misses, loads int) {
		p := mustNew(t, Spec{Kind: KindPages, Capacity: 64, Ahead: ahead}, units, Options{})
		for token := range 32 {
			var d Decision
			p.Step(maskOf(units, need(token)), &d)
			misses, loads = misses+len(d.Load)-d.Ahead, loads+len(d.Load)
		}
		return misses, loads
	}
	row := func(token int) []uint32 { return []uint32{uint32(token)} }
	apart := func(token int) []uint32 { return []uint32{uint32(token * 97 % units)} }
	if misses, loads := count(8, row); misses != 4 || loads != 32 {
		t.Errorf("32 neighbours in groups of 8: %d misses and %d loads, want 4 and 32", misses,
			loads)
	}
	misses, loads := count(8, apart)
	alone, _ := count(1, apart)
	if loads < 5*alone || misses > alone {
		t.Errorf("units apart: %d misses and %d loads with read-ahead, %d without", misses, loads,
			alone)
	}
}

// Belady's loads are the fewest possible: on small traces all choices of what to keep are tried.
func TestBeladyAgainstAllChoices(t *testing.T) {
	const units, tokens = 5, 9
	r := rand.New(rand.NewPCG(7, 8))
	for range 60 {
		masks := make([]mask.Mask, tokens)
		for i := range masks {
			masks[i] = []uint64{r.Uint64N(1<<units) & r.Uint64N(1<<units)}
		}
		for capacity := range units + 1 {
			p := mustNew(t, Spec{Kind: KindBelady, Capacity: capacity}, units,
				Options{Future: slices.Values(masks)})
			if got, want := loads(run(p, masks)), fewestLoads(masks, capacity); got != want {
				t.Fatalf("capacity %d, masks %b: %d loads, the fewest are %d", capacity, masks, got,
					want)
			}
		}
	}
}

// fewestLoads is the least number of loads over all ways to keep at most capacity units, by dynamic
// programming over sets.
func fewestLoads(masks []mask.Mask, capacity int) int {
	best := map[uint64]int{0: 0} // memory → loads so far
	for _, mask := range masks {
		next := map[uint64]int{}
		for memory, cost := range best {
			cost += bits.OnesCount64(mask[0] &^ memory)
			all := memory | mask[0]
			for keep := all; ; keep = (keep - 1) & all {
				if old, seen := next[keep]; bits.OnesCount64(keep) <= capacity &&
					(!seen || cost < old) {
					next[keep] = cost
				}
				if keep == 0 {
					break
				}
			}
		}
		best = next
	}
	fewest := -1
	for _, cost := range best {
		if fewest < 0 || cost < fewest {
			fewest = cost
		}
	}
	return fewest
}

// With a future that is not the trace's, Belady still decides by the rules and says that its loads
// are no bound.
func TestBeladyInAnotherFuture(t *testing.T) {
	const units = 70
	eachTrace(t, units, 40, func(t *testing.T, r *rand.Rand, masks []mask.Mask) {
		spec := Spec{Kind: KindBelady, Capacity: 9}
		other := slices.Clone(masks[:30])
		slices.Reverse(other)
		p := mustNew(t, spec, units, Options{Future: slices.Values(other)})
		check := newChecker(spec, units)
		var d Decision
		for i, mask := range masks {
			p.Step(mask, &d)
			if err := check.step(mask, &d); err != nil {
				t.Fatalf("token %d: %v", i, err)
			}
		}
		if p.(*Belady).Unforeseen() == 0 {
			t.Error("every use was foreseen in the wrong future")
		}
	})
}

// A longer window never loads what a shorter one has, token by token; a larger lru cache neither;
// and so their loads nest.
func TestLoadsNest(t *testing.T) {
	const units = 130
	eachTrace(t, units, 80, func(t *testing.T, r *rand.Rand, masks []mask.Mask) {
		nest := func(what string, spec func(n int) Spec, sizes ...int) {
			var smaller []Decision
			for _, n := range sizes {
				decisions := run(mustNew(t, spec(n), units, Options{}), masks)
				for i := range smaller {
					for _, u := range decisions[i].Load {
						if _, loaded := slices.BinarySearch(smaller[i].Load, u); !loaded {
							t.Fatalf("%s %d, token %d: loads unit %d, which a smaller one has",
								what, n, i, u)
						}
					}
				}
				smaller = decisions
			}
		}
		nest("window", func(n int) Spec { return Spec{Kind: KindWindow, Window: n} }, 0, 1, 2, 3, 4,
			5, 6, 7, 8, 16, 64)
		nest("lru", func(n int) Spec { return Spec{Kind: KindLRU, Capacity: n} }, 0, 1, 2, 5, 13,
			40, 65, 129, 130)
	})
}

// Policies that are special cases of each other decide the same.
func TestSpecialCases(t *testing.T) {
	const units = 130
	eachTrace(t, units, 80, func(t *testing.T, r *rand.Rand, masks []mask.Mask) {
		opt := Options{Hot: ranking(r, units)}
		for _, pair := range [][2]string{
			{"none", "window:0"},
			{"all", "hybrid:0"},
			{"delta:130", "window:1"},
			{"delta:20", "window:1,capacity:20"},
			{"window:5,capacity:130", "window:5"},
			{"lru:130", "window:1000"},
			{"lfu:130", "lru:130"},
			{"hot:0+20", "lru:20"},
			{"hot:130+0", "lru:130"},
			{"pages:20,ahead:1", "lru:20"},
			{"pages:130,ahead:1", "window:1000"},
			{"tensors:0", "all"},
			{"tensors:1", "hybrid:130"},
			{"cyclic:130", "hybrid:130"},
		} {
			var texts [2]string
			for side, text := range pair {
				s, err := Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range run(mustNew(t, s, units, opt), masks) {
					texts[side] += show(&d) + "\n"
				}
			}
			if texts[0] != texts[1] {
				t.Errorf("%s and %s do not decide the same", pair[0], pair[1])
			}
		}
	})
}

// Reset makes a policy as new: it decides as one that has never seen a token.
func TestResetIsFresh(t *testing.T) {
	const units = 130
	eachTrace(t, units, 60, func(t *testing.T, r *rand.Rand, masks []mask.Mask) {
		opt := Options{Hot: ranking(r, units), Future: slices.Values(slices.Concat(masks, masks))}
		for _, spec := range specs(units) {
			used := mustNew(t, spec, units, opt)
			first := run(used, masks)
			used.Reset()
			for i, d := range run(used, masks) {
				if spec.Kind != KindBelady && show(&d) != show(&first[i]) {
					t.Fatalf("%v, token %d after Reset: %s, want %s", spec, i, show(&d),
						show(&first[i]))
				}
			}
			// its future has the trace twice
			if b, ok := used.(*Belady); ok && b.Unforeseen() != 0 {
				t.Fatalf("%v: %d uses were not foreseen", spec, b.Unforeseen())
			}
		}
	})
}

// The more sequences a batch joins, the more units a token needs and a window keeps.
func TestUnionIsMonotone(t *testing.T) {
	const units, tokens = 130, 40
	for _, src := range sources() {
		r := rand.New(rand.NewPCG(9, 10))
		union := masksOf(units, make([][]uint32, tokens))
		needed, kept := make([]int, tokens), make([]int, tokens)
		for batch := 1; batch <= 6; batch++ {
			for i, list := range src.tokens(r, units, tokens) {
				union[i].SetList(list)
			}
			inMemory := 0
			for i, d := range run(NewWindow(units, 3), union) {
				inMemory += len(d.Load) - len(d.Evict)
				need := d.Hits + len(d.Load)
				if need < needed[i] || inMemory < kept[i] {
					t.Fatalf("%s, batch of %d, token %d: needs %d after %d, keeps %d after %d",
						src.name, batch, i, need, needed[i], inMemory, kept[i])
				}
				needed[i], kept[i] = need, inMemory
			}
		}
	}
}

// A window longer than any trace keeps everything and costs no more memory than the trace.
func TestEndlessWindow(t *testing.T) {
	w := NewWindow(128, 1<<40)
	var d Decision
	for range 3 {
		for token := range uint32(100) {
			if w.Step(maskOf(128, []uint32{token}), &d); len(d.Evict) != 0 || len(d.Load) != 1 {
				t.Fatalf("token %d: %+v", token, d)
			}
		}
		w.Reset()
	}
}
