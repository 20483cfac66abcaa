package layout

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
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
		var record, align, chunk units.Bytes
		var coalesce bool
		var gap int
		if _, err := fmt.Sscanf(setup, "record=%d align=%d chunk=%d coalesce=%t gap=%d", &record, &align, &chunk, &coalesce, &gap); err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
		var set []uint32
		for _, f := range strings.Fields(list) {
			var u uint32
			fmt.Sscan(f, &u)
			set = append(set, u)
		}
		p, err := NewPlanner(Uniform(1, 64, record), Options{Align: align, MaxRequest: chunk, Coalesce: coalesce, Gap: gap})
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

// TestPlanBringsEveryRecord reads a fake file by random plans and finds every record where the plan says it is.
func TestPlanBringsEveryRecord(t *testing.T) {
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
		align := units.Bytes(1) << random.IntN(13)
		opt := Options{Align: align, Coalesce: random.IntN(2) == 0, Gap: random.IntN(4), MaxRequest: align * units.Bytes(random.IntN(20))}
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

func checkPlan(t *testing.T, geo Geometry, opt Options, plan *Plan, file []byte, layer int, set []uint32) {
	t.Helper()
	staging := make([]byte, plan.Staging)
	var total, last int64
	for _, r := range plan.Requests {
		if r.Length <= 0 || r.Offset%int64(opt.Align) != 0 || r.Length%int64(opt.Align) != 0 || r.Buf%int64(opt.Align) != 0 {
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
	if total != int64(plan.Bytes) || len(plan.Records) != len(set) {
		t.Fatalf("plan says %d bytes, %d records; requests have %d, want %d records", plan.Bytes, len(plan.Records), total, len(set))
	}
	for i, u := range set {
		at := geo.Base[layer] + int64(u)*int64(geo.Stride)
		if !bytes.Equal(staging[plan.Records[i]:plan.Records[i]+int64(geo.Record)], file[at:at+int64(geo.Record)]) {
			t.Fatalf("record of unit %d is not at staging offset %d", u, plan.Records[i])
		}
	}
}

func TestNewPlannerRefuses(t *testing.T) {
	good := Uniform(1, 8, 100)
	for name, c := range map[string]struct {
		geo Geometry
		opt Options
	}{
		"stride below record":       {Geometry{Base: []int64{0}, Units: 8, Record: 100, Stride: 99}, Options{}},
		"no units":                  {Geometry{Base: []int64{0}, Record: 100, Stride: 100}, Options{}},
		"chunk not aligned":         {good, Options{Align: 512, MaxRequest: 1000}},
		"negative gap":              {good, Options{Gap: -1}},
		"negative chunk is refused": {good, Options{MaxRequest: -512}},
	} {
		if _, err := NewPlanner(c.geo, c.opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
