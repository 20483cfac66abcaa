package layout

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// TestPlanText reads cases of the form "key=value ... | units => requests" (see testdata/plan.txt).
func TestPlanText(t *testing.T) {
	data, err := os.ReadFile("testdata/plan.txt")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for n, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		left, want, _ := strings.Cut(line, "=>")
		setup, list, _ := strings.Cut(left, "|")
		geo, opt := setupOf(t, setup)
		var set []uint32
		for _, f := range strings.Fields(list) {
			var u uint32
			fmt.Sscan(f, &u)
			set = append(set, u)
		}
		p, err := NewPlanner(geo, opt)
		if err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
		var plan Plan
		p.Plan(0, set, &plan)
		var got []string
		for _, r := range plan.Requests {
			got = append(got, fmt.Sprintf("%d+%d", r.Offset, r.Length))
		}
		if g, w := strings.Join(got, " "), strings.TrimSpace(want); g != w {
			t.Errorf("testdata/plan.txt:%d: got %q, want %q", n+1, g, w)
		}
		checked++
	}
	if checked == 0 {
		t.Fatal("no cases")
	}
}

// setupOf reads "key=value ..." of a layer of 64 units. first=4,2,0 is an order that begins with
// these units; the others follow by number.
func setupOf(t *testing.T, text string) (Geometry, Options) {
	t.Helper()
	value := map[string]int{}
	var first []uint32
	for _, f := range strings.Fields(text) {
		key, v, _ := strings.Cut(f, "=")
		var err error
		switch key {
		case "first":
			for u := range strings.SplitSeq(v, ",") {
				n, err := strconv.ParseUint(u, 10, 32)
				if err != nil {
					t.Fatalf("%s: %v", f, err)
				}
				first = append(first, uint32(n))
			}
		case "record", "align", "chunk", "gap", "split":
			value[key], err = strconv.Atoi(v)
		case "coalesce":
			if v == "true" {
				value[key] = 1
			}
		default:
			t.Fatalf("unknown %s", f)
		}
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
	}
	const perLayer = 64
	geo := Uniform(1, perLayer, units.Bytes(value["record"]))
	geo.Split = value["split"]
	if first != nil {
		for u := range uint32(perLayer) {
			if !slices.Contains(first, u) {
				first = append(first, u)
			}
		}
		var err error
		if geo.Order, err = NewOrder("text", [][]uint32{first}); err != nil {
			t.Fatal(err)
		}
	}
	return geo, Options{
		Align: units.Bytes(value["align"]), MaxRequest: units.Bytes(value["chunk"]),
		Coalesce: value["coalesce"] == 1, Gap: value["gap"],
	}
}

// shuffled is an order at random.
func shuffled(t *testing.T, random *rand.Rand, layers, perLayer int) *Order {
	t.Helper()
	lists := make([][]uint32, layers)
	for l := range lists {
		for _, u := range random.Perm(perLayer) {
			lists[l] = append(lists[l], uint32(u))
		}
	}
	o, err := NewOrder("shuffled", lists)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestPlanReadsEveryRecord reads a fake file by random plans and finds every record where the plan
// says it is.
func TestPlanReadsEveryRecord(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const layers, perLayer = 3, 200
	for range 300 {
		record := units.Bytes(1 + random.IntN(9000))
		geo := Uniform(layers, perLayer, record)
		if random.IntN(2) == 0 {
			geo.Stride += units.Bytes(random.IntN(300))
			geo.Size = 0
			for l := range geo.Base {
				geo.Base[l] = geo.Size + 4096
				geo.Size = geo.Base[l] + int64(perLayer)*int64(geo.Stride)
			}
			geo.Size = (geo.Size + 4095) / 4096 * 4096
		}
		if n := 1 + random.IntN(3); geo.Record%units.Bytes(n) == 0 &&
			geo.Stride%units.Bytes(n) == 0 {
			geo.Split = n
		}
		if random.IntN(2) == 0 {
			geo.Order = shuffled(t, random, layers, perLayer)
		}
		align := units.Bytes(1) << random.IntN(13)
		opt := Options{Align: align, Coalesce: random.IntN(2) == 0, Gap: random.IntN(4),
			MaxRequest: align * units.Bytes(random.IntN(20))}
		p, err := NewPlanner(geo, opt)
		if err != nil {
			t.Fatal(err)
		}
		file := make([]byte, geo.Size)
		for i := range file {
			file[i] = byte(i*7 + i>>8)
		}
		var set []uint32
		for u := range uint32(perLayer) {
			if random.IntN(4) == 0 {
				set = append(set, u)
			}
		}
		layer := random.IntN(layers)
		var plan Plan
		p.Plan(layer, set, &plan)
		checkPlan(t, geo, opt, &plan, file, layer, set)
	}
}

func checkPlan(t *testing.T, geo Geometry, opt Options, plan *Plan, file []byte, layer int,
	set []uint32) {
	t.Helper()
	staging := make([]byte, plan.Staging)
	var total, last int64
	for _, r := range plan.Requests {
		if r.Length <= 0 || r.Offset%int64(opt.Align) != 0 || r.Length%int64(opt.Align) != 0 ||
			r.Buf%int64(opt.Align) != 0 {
			t.Fatalf("request %+v is not aligned to %d", r, opt.Align)
		}
		if opt.MaxRequest > 0 && r.Length > int64(opt.MaxRequest) {
			t.Fatalf("request %+v is over the chunk %d", r, opt.MaxRequest)
		}
		if opt.Coalesce && r.Offset < last {
			t.Fatalf("request %+v overlaps the one before, which ends at %d", r, last)
		}
		last = r.Offset + r.Length
		copy(staging[r.Buf:r.Buf+r.Length], file[r.Offset:])
		total += r.Length
	}
	parts := geo.parts()
	if total != int64(plan.Bytes) || len(plan.Records) != len(set)*parts {
		t.Fatalf("plan says %d bytes, %d records; requests have %d, want %d records of %d parts",
			plan.Bytes, len(plan.Records), total, len(set), parts)
	}
	for r := range parts {
		for i, u := range set {
			at := partAt(&geo, layer, r, u)
			got, n := plan.Records[r*len(set)+i], int64(geo.Record)/int64(parts)
			if !bytes.Equal(staging[got:got+n], file[at:at+n]) {
				t.Fatalf("part %d of the record of unit %d is not at staging offset %d", r, u, got)
			}
		}
	}
}

// partAt is where a part of a record lies in the file, in the words of Geometry.
func partAt(geo *Geometry, layer, part int, unit uint32) int64 {
	place := int64(unit)
	if geo.Order != nil {
		place = int64(geo.Order.places[layer][unit])
	}
	return geo.Base[layer] + (int64(part)*int64(geo.Units)+place)*(int64(geo.Stride)/int64(
		geo.parts()))
}

func TestNewPlannerRefuses(t *testing.T) {
	good := Uniform(1, 8, 100)
	with := func(change func(*Geometry)) Geometry {
		g := Uniform(1, 8, 100)
		change(&g)
		return g
	}
	order := shuffled(t, rand.New(rand.NewPCG(1, 1)), 1, 9)
	for name, c := range map[string]struct {
		geo Geometry
		opt Options
	}{
		"stride below record": {Geometry{Base: []int64{0}, Units: 8, Record: 100, Stride: 99},
			Options{}},
		"no units": {Geometry{Base: []int64{0}, Record: 100, Stride: 100},
			Options{}},
		"chunk not aligned":         {good, Options{Align: 512, MaxRequest: 1000}},
		"negative gap":              {good, Options{Gap: -1}},
		"negative chunk is refused": {good, Options{MaxRequest: -512}},
		"parts that differ":         {with(func(g *Geometry) { g.Split = 3 }), Options{}},
		"stride of uneven parts": {with(func(g *Geometry) { g.Split, g.Stride = 2, 101 }),
			Options{}},
		"negative split": {with(func(g *Geometry) { g.Split = -2 }), Options{}},
		"too many parts": {with(func(g *Geometry) { g.Split, g.Units = 4, 1<<30 }),
			Options{}},
		"order of another layer": {with(func(g *Geometry) { g.Order = order }), Options{}},
		"order without places": {
			with(func(g *Geometry) { g.Order = &Order{Name: "of a result"} }), Options{}},
	} {
		if _, err := NewPlanner(c.geo, c.opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
