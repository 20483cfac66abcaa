package layout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// TestBatchesByHand cuts loads of records of 3 KiB, which begin at multiples of 3 KiB, read in
// blocks of 4 KiB: four records fill three blocks.
func TestBatchesByHand(t *testing.T) {
	geo := Uniform(1, 64, 3*units.KiB)
	for _, c := range []struct {
		room int64 // KiB of staging buffer
		load []uint32
		want string // units of each batch, and the KiB that it reads
	}{
		{0, []uint32{0, 1, 2, 3, 4, 5, 6, 7}, "[0 1 2 3 4 5 6 7] 24"},
		{48, []uint32{0, 1, 2, 3, 4, 5, 6, 7}, "[0 1 2 3 4 5 6 7] 24"},
		// Half of 24 KiB has room for four records, which end with a block.
		{24, []uint32{0, 1, 2, 3, 4, 5, 6, 7}, "[0 1 2 3] 12, [4 5 6 7] 12"},
		// Half of 32 KiB has room for five, but the fifth begins at a block: cut there, it is not
		// read twice, and the second batch begins where it would have begun anyway.
		{32, []uint32{0, 1, 2, 3, 4, 5, 6, 7}, "[0 1 2 3] 12, [4 5 6 7] 12"},
		// Half of 16 KiB has room for two. The cut splits a block, which both batches read.
		{16, []uint32{0, 1, 2, 3, 4, 5}, "[0 1] 8, [2 3] 8, [4 5] 8"},
		// The extents of 0, of 8 to 10 and of 20: the second would not fit beside the first.
		{24, []uint32{0, 8, 9, 10, 20}, "[0] 4, [8 9 10] 12, [20] 4"},
		{32, []uint32{0, 8, 9, 10, 20}, "[0 8 9 10] 16, [20] 4"},
		// Half of 12 KiB is a block; record 1 needs two: the whole buffer is used.
		{12, []uint32{0, 1, 4, 5, 6, 7}, "[0 1] 8, [4 5 6 7] 12"},
		{24, nil, ""},
	} {
		p, err := NewPlanner(geo, Options{Align: 4096, Coalesce: true})
		if err != nil {
			t.Fatal(err)
		}
		limit, err := p.BatchLimit(c.room << 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range p.Batches(0, c.load, limit, nil) {
			got = append(got, fmt.Sprint(b.Units, " ", b.Plan.Staging>>10))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("a buffer of %d KiB: %s, want %s", c.room, text, c.want)
		}
	}
}

// TestBatchLimit: half of the buffer, all of it, or an error that names the size needed.
func TestBatchLimit(t *testing.T) {
	bundled, split := Uniform(2, 64, 5000), Uniform(2, 64, 10_000)
	split.Split = 2
	for _, c := range []struct {
		geo   Geometry
		align units.Bytes
		gap   int
		room  int64
		limit int64 // 0 with a room: refused
		need  string
	}{
		{bundled, 1, 0, 0, 0, ""},
		{bundled, 1, 0, 8191, 0, "8KiB"}, // reads begin at pages of the buffer
		{bundled, 1, 0, 8192, 8192, ""},
		{bundled, 1, 0, 16_383, 12_288, ""},
		{bundled, 1, 0, 16_384, 8192, ""},
		{bundled, 512, 0, 8191, 0, "8KiB"},
		// A record may begin 8 bytes before the end of a block and reach into two more.
		{bundled, 4096, 0, 12_287, 0, "12KiB"},
		{bundled, 4096, 0, 12_288, 12_288, ""},
		{split, 4096, 0, 24_575, 0, "24KiB"}, // two parts
		// The gap joins the parts of a record: 64 parts of 5000 bytes lie between.
		{split, 4096, 63, 24_576, 0, "324KiB"},
		{split, 4096, 63, 1 << 20, 1 << 19, ""},
	} {
		p, err := NewPlanner(c.geo, Options{Align: c.align, Coalesce: true, Gap: c.gap})
		if err != nil {
			t.Fatal(err)
		}
		limit, err := p.BatchLimit(c.room)
		refused := err != nil && strings.Contains(err.Error(), "at least "+c.need)
		if limit != c.limit || refused != (c.need != "") {
			t.Errorf("align %d, gap %d, a buffer of %d: %d, %v; want %d %s", c.align, c.gap, c.room,
				limit, err, c.limit, c.need)
		}
	}
}

// FuzzBatches: every load is in one batch, no batch exceeds the buffer, the reads of a batch are
// those of Plan for its units, and little is read twice.
func FuzzBatches(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 2))
		geo, opt := randomLayout(t, random)
		p, err := NewPlanner(geo, opt)
		if err != nil {
			t.Fatal(err)
		}
		layer, load := random.IntN(len(geo.Base)), someOf(random, geo.Units, 1+random.IntN(5))
		room := 1 + random.Int64N(2*p.footprint()+random.Int64N(100_000))
		limit, err := p.BatchLimit(room)
		if err != nil {
			room = Rounded(p.footprint())
			if limit, err = p.BatchLimit(room); err != nil {
				t.Fatalf("the size that is needed is refused: %v", err)
			}
		}
		if limit <= 0 || Rounded(limit) > room {
			t.Fatalf("a limit of %d with a buffer of %d", limit, room)
		}
		used := make([]Batch, 2, 4) // of other loads
		p.Plan(0, someOf(random, geo.Units, 2), &used[0].Plan)
		batches := p.Batches(layer, load, limit, used[:0])
		checkBatches(t, p, layer, load, limit, batches)

		var whole Plan
		p.Plan(layer, load, &whole)
		for _, enough := range []int64{0, whole.Staging} {
			one := p.Batches(layer, load, enough, nil)
			if len(load) == 0 && len(one) == 0 {
				continue
			}
			if len(one) != 1 || !slices.Equal(one[0].Units, load) ||
				!slices.Equal(one[0].Plan.Requests, whole.Requests) ||
				!slices.Equal(one[0].Plan.Records, whole.Records) {
				t.Fatalf("room for all, in a limit of %d: %d batches", enough, len(one))
			}
		}
	})
}

// checkBatches checks the batches of a layer's load.
func checkBatches(t *testing.T, p *Planner, layer int, load []uint32, limit int64,
	batches []Batch) {
	t.Helper()
	opt, parts := p.opt, int64(p.geo.parts())
	var all []uint32
	var bytes int64
	for i := range batches {
		b := &batches[i]
		var plan Plan
		p.Plan(layer, b.Units, &plan)
		switch {
		case len(b.Units) == 0 || !slices.IsSorted(b.Units):
			t.Fatalf("batch %d has the units %v", i, b.Units)
		case !slices.Equal(b.Plan.Requests, plan.Requests) ||
			!slices.Equal(b.Plan.Records, plan.Records) || b.Plan.Staging != plan.Staging:
			t.Fatalf("batch %d reads %v, Plan says %v", i, b.Plan.Requests, plan.Requests)
		case plan.Staging > limit:
			t.Fatalf("batch %d takes %d bytes, the limit is %d; %+v, %+v", i, plan.Staging, limit,
				p.geo, opt)
		case i > 0 && opt.Gap == 0 && batches[i-1].Plan.Staging+plan.Staging <= limit:
			t.Fatalf("batches %d and %d of %d and %d bytes fit into one of %d", i-1, i,
				batches[i-1].Plan.Staging, plan.Staging, limit)
		}
		all = append(all, b.Units...)
		bytes += int64(plan.Bytes)
	}
	slices.Sort(all)
	if !slices.Equal(all, load) {
		t.Fatalf("the batches read %v, of a load of %v", all, load)
	}
	var whole Plan
	p.Plan(layer, load, &whole)
	// A block for each cut, and one where a layer's first parts end near its second ones.
	twice := (int64(max(len(batches)-1, 0))*parts + parts - 1) * int64(opt.Align)
	if opt.Coalesce && (parts == 1 || opt.Gap == 0) && bytes > int64(whole.Bytes)+twice {
		t.Fatalf("%d batches read %d bytes, one would read %d; %+v, %+v, limit %d", len(batches),
			bytes, whole.Bytes, p.geo, opt, limit)
	}
	if !opt.Coalesce && bytes != int64(whole.Bytes) {
		t.Fatalf("units that are read one by one take %d bytes, in batches %d", whole.Bytes, bytes)
	}
	// Only an extent that is longer than the limit is cut.
	if longest(p, layer, load) <= limit && parts == 1 && bytes != int64(whole.Bytes) {
		t.Fatalf("extents of up to %d bytes fit into %d and are cut: %d bytes instead of %d",
			longest(p, layer, load), limit, bytes, whole.Bytes)
	}
}

// longest is the size of the longest extent of a load, bundled.
func longest(p *Planner, layer int, load []uint32) (most int64) {
	opt := p.opt
	opt.MaxRequest = 0
	unsplit := &Planner{p.geo, opt}
	var plan Plan
	unsplit.Plan(layer, load, &plan)
	for _, r := range plan.Requests {
		most = max(most, r.Length)
	}
	return most
}
