package fio

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// FuzzParse: for any bytes there is no panic, the same File twice, and no impossible number.
func FuzzParse(f *testing.F) {
	var seeds []string
	for _, pattern := range []string{"*.[jo]*", "field/*", "tools/*", "real/*/*.[lo]*"} {
		list, err := filepath.Glob("testdata/" + pattern)
		if err != nil || len(list) < 4 {
			f.Fatalf("%s: %d seeds: %v", pattern, len(list), err)
		}
		seeds = append(seeds, list...)
	}
	for _, name := range seeds {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(
		[]byte(
			`{"jobs": [{"read": {"iops": -nan, "clat_ns": {"mean": 1e308, "bins": {"1e9": 3}}}}]}`))
	f.Add([]byte("<h> note\n<h> {\"client_stats\": [{\"jobname\": \"All clients\"}, {}]}"))
	f.Add([]byte(statusReport(101, 1, 10) + statusReport(102, 2, 20)))
	f.Fuzz(func(t *testing.T, data []byte) {
		const name = "x_bw.1.log" // a name of logs, which other files may have
		file, err := Parse(name, data)
		again, errAgain := Parse(name, data)
		if (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() ||
			!reflect.DeepEqual(file, again) {
			t.Fatalf("two results of the same bytes: %+v %v, %+v %v", file, err, again, errAgain)
		}
		if err != nil {
			return
		}
		for i := range file.Entries {
			checkEntry(t, &file.Entries[i])
		}
		if file.Log != nil {
			checkLog(t, file.Log)
		}
		cells, leftOut := Cells([]*File{file})
		checkCells(t, file, cells, leftOut)
		if moreCells, moreLeft := Cells([]*File{file}); !reflect.DeepEqual(cells, moreCells) ||
			!reflect.DeepEqual(leftOut, moreLeft) {
			t.Fatal("two results of the same file")
		}
	})
}

// checkEntry is invariant 2 of the package.
func checkEntry(t *testing.T, e *Entry) {
	t.Helper()
	for _, n := range []*int64{e.Short, e.Dropped, e.IOs, (*int64)(e.Bytes),
		(*int64)(e.Bandwidth)} {
		if n != nil && *n < 0 {
			t.Fatalf("negative: %+v", e)
		}
	}
	if e.IOPS != nil && !(*e.IOPS >= 0 && *e.IOPS <= math.MaxFloat64) || e.Runtime != nil &&
		*e.Runtime <= 0 || e.Block != nil && *e.Block <= 0 {
		t.Fatalf("out of range: %+v", e)
	}
	if e.Depth != nil && *e.Depth < 1 || e.Jobs != nil && *e.Jobs < 1 {
		t.Fatalf("out of range: %+v", e)
	}
	for _, l := range []*Latency{&e.Submit, &e.Complete, &e.Total} {
		if l.Mean != nil && *l.Mean <= 0 || l.Mean == nil && (l.Percentiles != nil ||
			l.Bins != nil) {
			t.Fatalf("latency %+v", l)
		}
		rising := slices.IsSortedFunc(l.Percentiles, func(a, b Percentile) int {
			return compare(a.P,
				b.P)
		}) &&
			slices.IsSortedFunc(l.Bins, func(a, b Bin) int {
				return compare(float64(a.At),
					float64(b.At))
			})
		if !rising {
			t.Fatalf("not sorted: %+v", l)
		}
		for _, p := range l.Percentiles {
			if !(p.P > 0 && p.P <= 100) || p.At <= 0 {
				t.Fatalf("percentile %+v", p)
			}
		}
		for _, b := range l.Bins {
			if b.At <= 0 || b.Count <= 0 {
				t.Fatalf("bin %+v", b)
			}
		}
	}
}

// checkLog: plateaus follow each other, at rates that are none below zero.
func checkLog(t *testing.T, l *Log) {
	t.Helper()
	if len(l.Plateaus) == 0 || len(l.Plateaus) > maxPlateaus {
		t.Fatalf("%d plateaus", len(l.Plateaus))
	}
	for i, p := range l.Plateaus {
		if p.Rate < 0 || p.From < 0 || p.To <= p.From || i > 0 && p.From != l.Plateaus[i-1].To {
			t.Fatalf("%+v", l.Plateaus)
		}
	}
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// checkCells is invariant 3 of the package, and checks the required fields of a cell.
func checkCells(t *testing.T, f *File, cells []Cell, leftOut []LeftOut) {
	t.Helper()
	seen := map[*Entry]int{}
	for _, c := range cells {
		if c.Chunk <= 0 || c.Depth < 1 || c.Threads < 1 || c.Rate <= 0 || c.Engine == "" ||
			c.IOs != nil && *c.IOs <= 0 {
			t.Fatalf("%+v", c)
		}
		for _, v := range []*units.Nanos{c.LatMean, c.P50, c.P99} {
			if v != nil && *v <= 0 {
				t.Fatalf("%+v", c)
			}
		}
		for _, e := range c.Entries {
			seen[e]++
		}
	}
	for _, l := range leftOut {
		if l.Why == "" {
			t.Fatalf("left out without a reason: %+v", l.Entry)
		}
		seen[l.Entry]++
	}
	for i := range f.Entries {
		want := 1
		if f.Entries[i].twice {
			want = 0
		}
		if e := &f.Entries[i]; seen[e] != want {
			t.Fatalf("told %d times: %+v", seen[e], e)
		}
	}
}
