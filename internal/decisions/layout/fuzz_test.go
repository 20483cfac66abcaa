package layout

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// plain is Plan again, written from the comments of Geometry and Options: every part is an interval
// of the file; intervals are sorted, joined and cut. It returns the requests and where every part
// is in the staging buffer, part by part.
func plain(geo *Geometry, opt Options, layer int, set []uint32) (requests []Request,
	records []int64) {
	type part struct{ start, index int64 }
	var parts []part
	for r := range geo.parts() {
		for _, u := range set {
			parts = append(parts, part{partAt(geo, layer, r, u), int64(len(parts))})
		}
	}
	sort.Slice(parts, func(i, j int) bool { return parts[i].start < parts[j].start })
	n, stride := int64(geo.Record)/int64(geo.parts()), int64(geo.Stride)/int64(geo.parts())
	down := func(at int64) int64 { return at - at%int64(opt.Align) }
	up := func(at int64) int64 {
		for end := at; ; end++ {
			if end%int64(opt.Align) == 0 || end == geo.Size {
				return end
			}
		}
	}
	type extent struct {
		from, to int64
		parts    []part
	}
	var extents []extent
	for i, p := range parts {
		if i > 0 && opt.Coalesce {
			last := &extents[len(extents)-1]
			between := (p.start - parts[i-1].start) / stride // 1 for neighbours
			if between-1 <= int64(opt.Gap) || down(p.start) <= last.to {
				last.to = up(p.start + n)
				last.parts = append(last.parts, p)
				continue
			}
		}
		extents = append(extents, extent{down(p.start), up(p.start + n), []part{p}})
	}
	records = make([]int64, len(parts))
	buf := int64(0)
	for _, s := range extents {
		for _, p := range s.parts {
			records[p.index] = buf + p.start - s.from
		}
		for at := s.from; at < s.to; {
			length := s.to - at
			if most := int64(opt.MaxRequest); most > 0 {
				length = min(length, most)
			}
			requests = append(requests, Request{Offset: at, Length: length, Buf: buf})
			at, buf = at+length, buf+length
		}
	}
	return requests, records
}

// FuzzPlan holds the planner against its plain twin.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		geo, opt := randomLayout(t, random)
		p, err := NewPlanner(geo, opt)
		if err != nil {
			t.Fatal(err)
		}
		layer, set := random.IntN(len(geo.Base)), someOf(random, geo.Units, 1+random.IntN(5))
		var plan Plan
		p.Plan(layer, set, &plan)
		requests, records := plain(&geo, opt, layer, set)
		if !slices.Equal(plan.Requests, requests) {
			t.Fatalf("units %v of %+v, %+v:\n%v, the plain twin says\n%v", set, geo, opt,
				plan.Requests, requests)
		}
		if !slices.Equal(plan.Records, records) {
			t.Fatalf("records at %v, the plain twin says %v", plan.Records, records)
		}
	})
}

// randomLayout draws a geometry of up to three layers of up to 100 units, and options.
func randomLayout(t *testing.T, random *rand.Rand) (geo Geometry, opt Options) {
	t.Helper()
	layers, perLayer := 1+random.IntN(3), 1+random.IntN(100)
	geo = Uniform(layers, perLayer, units.Bytes(1+random.IntN(2000)))
	geo.Split = random.IntN(4)
	geo.Record *= units.Bytes(geo.parts())
	geo.Stride = geo.Record + units.Bytes(random.IntN(100)*geo.parts())
	for l := range geo.Base {
		geo.Base[l] = int64(l)*int64(perLayer)*int64(geo.Stride) + int64(random.IntN(3))*4096
		geo.Size = geo.Base[l] + int64(perLayer)*int64(geo.Stride)
	}
	if random.IntN(2) == 0 {
		geo.Order = shuffled(t, random, layers, perLayer)
	}
	align := units.Bytes(1) << random.IntN(12)
	opt = Options{Align: align, MaxRequest: align * units.Bytes(random.IntN(10)),
		Coalesce: random.IntN(3) > 0, Gap: random.IntN(5)}
	return geo, opt
}
