package mask_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

func of(units int, list ...uint32) mask.Mask {
	m := mask.New(units)
	m.SetList(list)
	return m
}

func TestWords(t *testing.T) {
	for units, want := range map[int]int{0: 0, 1: 1, 63: 1, 64: 1, 65: 2, 128: 2, 129: 3} {
		if got := mask.Words(units); got != want || len(mask.New(units)) != want {
			t.Errorf("%d units: %d words, New has %d, want %d", units, got, len(mask.New(units)),
				want)
		}
	}
}

// The order of bits is the file format's: unit u is bit u%64 of word u/64.
func TestBitOrder(t *testing.T) {
	m := of(130, 0, 3, 63, 64, 129)
	if want := (mask.Mask{1 | 1<<3 | 1<<63, 1, 2}); !slices.Equal(m, want) {
		t.Fatalf("%b, want %b", m, want)
	}
	m.Clear(63)
	m.Clear(129)
	m.Clear(100) // absent
	if want := (mask.Mask{1 | 1<<3, 1, 0}); !slices.Equal(m, want) {
		t.Errorf("%b, want %b", m, want)
	}
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		m     mask.Mask
		units int
		want  bool
	}{
		{nil, 0, true}, {nil, 1, false}, {mask.Mask{1}, 0, false},
		{mask.Mask{0b111}, 3, true}, {mask.Mask{0b1000}, 3, false},
		{mask.Mask{^uint64(0)}, 64, true}, {mask.Mask{^uint64(0)}, 63, false},
		{mask.Mask{^uint64(0), 1}, 65, true}, {mask.Mask{0, 2}, 65, false},
		{mask.Mask{0}, 65, false}, {mask.Mask{0, 0, 0}, 65, false},
	} {
		if got := c.m.Fits(c.units); got != c.want {
			t.Errorf("%b of %d units: %v", c.m, c.units, got)
		}
		if len(c.m) == mask.Words(c.units) && c.m.Padded(c.units) != c.want {
			t.Errorf("%b of %d units: Padded is not %v", c.m, c.units, c.want)
		}
	}
}

// The masks of layers share a block and nothing else: an append to one leaves the next alone.
func TestNewLayers(t *testing.T) {
	list := mask.NewLayers(3, 70)
	if len(list) != 3 {
		t.Fatalf("%d layers", len(list))
	}
	list[0].Fill(70)
	_ = append(list[0], 1)
	if list[1].Any() || list[2].Any() || list[0].Count() != 70 {
		t.Errorf("%b", list)
	}
}

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		m    mask.Mask
		want int
	}{
		{nil, 0}, {of(200), 0}, {of(200, 5), 1}, {of(200, 1, 2, 3, 7), 2},
		{of(200, 63, 64), 1}, // across a word
		{of(200, 63, 65, 127, 128), 3},
		{of(64, 0, 63), 2},
	} {
		if got := c.m.Runs(); got != c.want {
			t.Errorf("%v: %d runs, want %d", c.m.AppendUnits(nil), got, c.want)
		}
	}
}

// A loop may change the mask that it goes over, and may end early.
func TestEachWhileChanging(t *testing.T) {
	m := of(200, 1, 2, 70, 150)
	var seen []uint32
	for u := range m.Each {
		seen = append(seen, u)
		m.Clear(u)
	}
	if want := []uint32{1, 2, 70, 150}; !slices.Equal(seen, want) || m.Any() {
		t.Errorf("saw %v, left %v", seen, m.AppendUnits(nil))
	}
	seen = seen[:0]
	for u := range of(200, 1, 2, 70, 150).Each {
		if u == 70 {
			break
		}
		seen = append(seen, u)
	}
	if want := []uint32{1, 2}; !slices.Equal(seen, want) {
		t.Errorf("a loop that ends at 70 saw %v", seen)
	}
}

func TestShorterArgumentPanics(t *testing.T) {
	long, short := mask.New(200), mask.New(100)
	for name, f := range map[string]func(){
		"Or": func() { long.Or(short) }, "And": func() { long.And(short) },
		"AndNot":      func() { long.AndNot(short) },
		"CountAnd":    func() { long.CountAnd(short[:2:2]) },
		"CountAndNot": func() { long.CountAndNot(short[:2:2]) },
		"Append":      func() { long.AppendAndNot(nil, short[:2:2]) },
		"Has":         func() { short.Has(128) }, "Set": func() { short.Set(128) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			f()
		}()
	}
}

// plain is a set of units as anyone would write it.
type plain map[uint32]bool

func (p plain) list() []uint32 { return slices.Sorted(maps.Keys(p)) }

// keep returns the units for which f holds.
func (p plain) keep(f func(u uint32) bool) plain {
	out := plain{}
	for u := range p {
		if f(u) {
			out[u] = true
		}
	}
	return out
}

// check compares all that a mask says with a plain set.
func (p plain) check(t *testing.T, what string, m mask.Mask, units int) {
	t.Helper()
	want := p.list()
	var each []uint32
	for u := range m.Each {
		each = append(each, u)
	}
	if !slices.Equal(each, want) || !slices.Equal(m.AppendUnits(nil), want) {
		t.Fatalf("%s: %v, want %v", what, each, want)
	}
	if m.Count() != len(want) || m.Any() != (len(want) > 0) || !m.Fits(units) {
		t.Fatalf("%s: count %d, any %v, fits %v; want %d units", what, m.Count(), m.Any(),
			m.Fits(units), len(want))
	}
	runs := len(p.keep(func(u uint32) bool { return !p[u-1] }))
	if m.Runs() != runs {
		t.Fatalf("%s: %d runs, want %d", what, m.Runs(), runs)
	}
	for u := range uint32(units) {
		if m.Has(u) != p[u] {
			t.Fatalf("%s: Has(%d) = %v", what, u, m.Has(u))
		}
	}
}

// checkPair holds two sets against plain ones: as they are, and under each operation.
func checkPair(t *testing.T, units int, a, b mask.Mask, pa, pb plain, keep int) {
	t.Helper()
	pa.check(t, "a", a, units)
	pb.check(t, "b", b, units)
	inB := func(u uint32) bool { return pb[u] }
	notInB := func(u uint32) bool { return !pb[u] }
	both, rest := pa.keep(inB), pa.keep(notInB)
	if a.CountAnd(b) != len(both) || a.CountAndNot(b) != len(rest) {
		t.Fatalf("CountAnd %d, CountAndNot %d; want %d, %d", a.CountAnd(b), a.CountAndNot(b),
			len(both), len(rest))
	}
	if got := a.AppendAndNot([]uint32{7}, b); !slices.Equal(got, append([]uint32{7},
		rest.list()...)) {
		t.Fatalf("AppendAndNot %v, want 7 and %v", got, rest.list())
	}
	apply := func(name string, f func(m mask.Mask), want plain) {
		m := slices.Clone(a)
		f(m)
		want.check(t, name, m, units)
	}
	union := maps.Clone(pa)
	maps.Copy(union, pb)
	all := plain{}
	for u := range uint32(units) {
		all[u] = true
	}
	lowest := plain{}
	for _, u := range pa.list()[:min(max(keep, 0), len(pa))] {
		lowest[u] = true
	}
	apply("Or", func(m mask.Mask) { m.Or(b) }, union)
	apply("And", func(m mask.Mask) { m.And(b) }, both)
	apply("AndNot", func(m mask.Mask) { m.AndNot(b) }, rest)
	apply("KeepLowest", func(m mask.Mask) { m.KeepLowest(keep) }, lowest)
	apply("Fill", func(m mask.Mask) { m.Fill(units) }, all)
	apply("clear", func(m mask.Mask) { clear(m) }, plain{})
	apply("AndNot itself", func(m mask.Mask) { m.AndNot(m) }, plain{})
	apply("Or itself", func(m mask.Mask) { m.Or(m) }, pa)
	pb.check(t, "b after all", b, units)
}

func TestAgainstPlainSets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		units := 1 + random.IntN(300)
		share := random.Float64()
		a, b, pa, pb := mask.New(units), mask.New(units), plain{}, plain{}
		for u := range uint32(units) {
			if random.Float64() < share {
				a.Set(u)
				pa[u] = true
			}
			if random.Float64() < share/2 {
				b.Set(u)
				pb[u] = true
			}
		}
		checkPair(t, units, a, b, pa, pb, random.IntN(units+10)-5)
	}
}

// FuzzMask sets and clears the units that the bytes name, in a mask and in a plain set.
func FuzzMask(f *testing.F) {
	f.Add(uint16(70), []byte{1, 2, 63, 64, 69}, []byte{2, 64, 0}, int16(3))
	f.Add(uint16(64), []byte{0, 0, 63}, []byte{}, int16(-1))
	f.Add(uint16(1), []byte{0}, []byte{0, 128}, int16(1))
	f.Fuzz(func(t *testing.T, n uint16, first, second []byte, keep int16) {
		units := 1 + int(n)%300
		made := func(steps []byte) (mask.Mask, plain) {
			m, p := mask.New(units), plain{}
			for i, b := range steps {
				u := (uint32(b) + 256*uint32(i%2)) % uint32(units)
				if i%5 == 4 {
					m.Clear(u)
					delete(p, u)
					continue
				}
				m.Set(u)
				p[u] = true
			}
			return m, p
		}
		a, pa := made(first)
		b, pb := made(second)
		checkPair(t, units, a, b, pa, pb, int(keep))
	})
}

// benchMask is a layer of OPT-6.7B of which 3.3 % is active.
func benchMask() (m mask.Mask, units int) {
	random := rand.New(rand.NewPCG(3, 4))
	units = 16384
	m = mask.New(units)
	for u := range uint32(units) {
		if random.Float64() < 0.033 {
			m.Set(u)
		}
	}
	return m, units
}

// BenchmarkEach marks the active units of a layer: the loop of a residency pass.
func BenchmarkEach(b *testing.B) {
	m, units := benchMask()
	last := make([]int32, units)
	now := int32(0)
	for b.Loop() {
		now++
		for u := range m.Each {
			last[u] = now
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*m.Count()), "ns/unit")
}

func TestEachDoesNotAllocate(t *testing.T) {
	m, units := benchMask()
	last := make([]int32, units)
	if n := testing.AllocsPerRun(10, func() {
		for u := range m.Each {
			last[u]++
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
