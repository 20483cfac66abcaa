package fio

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// testJob is a job as fio would report it.
type testJob struct {
	name, options string // options without direct and rw
	group         int
	ios, block    int64
	iops, mean    float64 // mean in ns; 0 = not taken
	runtime       int     // ms; 0 = 1000
	extra         string  // further members of the reads
}

func (j testJob) String() string {
	if j.runtime == 0 {
		j.runtime = 1000
	}
	lat := ""
	if j.mean > 0 {
		lat = fmt.Sprintf(`, "lat_ns": {"mean": %g, "N": %d}`, j.mean, j.ios)
	}
	return fmt.Sprintf(
		`{"jobname": %q, "groupid": %d, "error": 0, "job options": {"direct": "1", "rw": "randread"%s},
		"read": {"total_ios": %d, "io_bytes": %d, "io_kbytes": 1, "bw_bytes": %.0f, "iops": %g, "runtime": %d%s%s}}`,
		j.name, j.group, j.options, j.ios, j.ios*j.block, j.iops*float64(j.block), j.iops,
		j.runtime, lat, j.extra)
}

func parseJobs(t *testing.T, list ...testJob) *File {
	t.Helper()
	var text []string
	for _, j := range list {
		text = append(text, j.String())
	}
	return parse(t, `{"jobs": [`+strings.Join(text, ",\n")+`]}`)
}

const aio4k = `, "ioengine": "libaio", "bs": "4k", "iodepth": "8"`

func TestCellsOfFixtures(t *testing.T) {
	for _, c := range []struct {
		file, engine, fio string
		threads, depth    int
		chunk             units.Bytes
		mean, p50         units.Nanos // 0 = nil
		of                string
	}{
		{"v2.17.json", "libaio", "libaio", 1, 8, 16384, 994875, 980000, "clat"},
		{"v3.1.json", "libaio", "libaio", 1, 32, 4096, 2394001, 2375680, "clat"},
		{"jsonplus.json", "uring", "io_uring", 1, 1, 4096, 98000, 97792, "lat"},
		{"unified.out", "uring", "io_uring", 1, 4, 32768, 990001, 987136, "lat"},
		{"gtod_reduce.json", "libaio", "libaio", 1, 64, 4096, 0, 0, ""},
		{"grouped.out", "pread", "psync", 4, 4, 16384, 198100, 197632, "clat"},
	} {
		cells, left := Cells([]*File{load(t, c.file)})
		if len(cells) == 0 || len(left) != 0 {
			t.Errorf("%s: %d cells, left out %v", c.file, len(cells), left)
			continue
		}
		got := cells[0]
		if got.Engine != c.engine || got.FioEngine != c.fio || got.Threads != c.threads ||
			got.Depth != c.depth || got.Chunk != c.chunk || got.PercentilesOf != c.of {
			t.Errorf("%s: %+v", c.file, got)
		}
		for what, v := range map[string][2]*units.Nanos{"mean": {got.LatMean, &c.mean},
			"P50": {got.P50, &c.p50}} {
			if have, want := v[0], *v[1]; (have == nil) != (want == 0) || have != nil &&
				*have != want {
				t.Errorf("%s: %s %s, want %v", c.file, what, show(have), want)
			}
		}
	}
	if cells, _ := Cells([]*File{load(t, "grouped.out")}); !strings.Contains(
		strings.Join(cells[0].Warnings, ""), "iodepth=32 has no effect") {
		t.Errorf("%q", cells[0].Warnings)
	}
	if cells, left := Cells([]*File{load(t, "v2.1.4.json")}); len(cells) != 0 || len(left) != 2 ||
		!strings.Contains(left[1].String(), "v2.1.4.json: rand: the file does not give rw") {
		t.Errorf("%d cells, left out %v", len(cells), left)
	}
}

// TestJobsOfOneGroupAddUp: the same four jobs, as one entry with group_reporting and as four
// without, are the same cell.
func TestJobsOfOneGroupAddUp(t *testing.T) {
	const options = `, "ioengine": "psync", "bs": "16k", "numjobs": "4"`
	one := testJob{name: "g", options: options, ios: 4000, block: 16384, iops: 4000, mean: 990_000}
	quarter := one
	quarter.ios, quarter.iops = 1000, 1000
	grouped, left := Cells([]*File{parseJobs(t, one)})
	apart, left2 := Cells([]*File{parseJobs(t, quarter, quarter, quarter, quarter)})
	if len(grouped) != 1 || len(apart) != 1 {
		t.Fatalf("%d and %d cells, left out %v %v", len(grouped), len(apart), left, left2)
	}
	if len(apart[0].Entries) != 4 {
		t.Errorf("%d entries", len(apart[0].Entries))
	}
	grouped[0].Entries, apart[0].Entries = nil, nil
	if !reflect.DeepEqual(grouped, apart) {
		t.Errorf("%+v\n%+v", grouped[0], apart[0])
	}
	if c := grouped[0]; c.Depth != 4 || c.Threads != 4 || c.Rate != 4000*16384 || *c.IOs != 4000 ||
		*c.LatMean != 990_000 {
		t.Errorf("%+v", c)
	}
}

// TestDifferentSectionsOfOneGroup: without stonewall two sections run together; the mean latency is
// that of all requests.
func TestDifferentSectionsOfOneGroup(t *testing.T) {
	bins := func(text string) string {
		return `, "clat_ns": {"mean": 1, "N": 1, "bins": {` + text +
			`}}`
	}
	a := testJob{name: "a", options: aio4k, ios: 8000, block: 4096, iops: 8000, mean: 1_000_000,
		extra: bins(`"10": 50, "30": 1`)}
	b := testJob{name: "b", options: aio4k, ios: 2000, block: 4096, iops: 2000, mean: 3_500_000,
		extra: bins(`"20": 50`)}
	cells, left := Cells([]*File{parseJobs(t, a, b)})
	if len(cells) != 1 {
		t.Fatalf("left out %v", left)
	}
	c := cells[0]
	if c.Depth != 16 || c.Threads != 2 || c.Rate != 10_000*4096 || *c.IOs != 10_000 ||
		*c.LatMean != 1_500_000 {
		t.Errorf("%+v, mean %v", c, show(c.LatMean))
	}
	if want := []Bin{{10, 50}, {20, 50}, {30, 1}}; !reflect.DeepEqual(c.Bins, want) ||
		*c.P50 != 20 || *c.P99 != 20 || c.PercentilesOf != "clat" {
		t.Errorf("bins %v, P50 %v, P99 %v of %q", c.Bins, show(c.P50), show(c.P99), c.PercentilesOf)
	}
	a.extra = ""
	if cells, _ := Cells([]*File{parseJobs(t, a, b)}); cells[0].P50 != nil || cells[0].Bins != nil {
		t.Error("percentiles were made of a part of the requests")
	}
	b.group = 1
	if cells, _ := Cells([]*File{parseJobs(t, a, b)}); len(cells) != 2 {
		t.Errorf("%d cells of two groups", len(cells))
	}
	// The same group number in two files is two groups.
	if cells, _ := Cells([]*File{parseJobs(t, a), parseJobs(t, a)}); len(cells) != 2 {
		t.Errorf("%d cells of two files", len(cells))
	}
}

func TestLeftOut(t *testing.T) {
	fine := testJob{name: "a", options: aio4k, ios: 8000, block: 4096, iops: 8000, mean: 990_000}
	with := func(change func(*testJob)) testJob {
		j := fine
		change(&j)
		return j
	}
	opt := func(s string) testJob { return with(func(j *testJob) { j.options = s }) }
	for _, c := range []struct {
		want string
		jobs []testJob
	}{
		{"", []testJob{fine}},
		{"", []testJob{opt(aio4k + `, "rate": "0"`)}},
		{"", []testJob{opt(aio4k + `, "rw": "randread:1"`)}},
		{"up to 2 blocks one after the other", []testJob{opt(aio4k + `, "rw": "randread:2"`)}},
		{"sequential", []testJob{opt(aio4k + `, "rw": "read"`)}},
		{"rw=randrw", []testJob{opt(aio4k + `, "rw": "randrw"`)}},
		{"rate_iops=100 limits", []testJob{opt(aio4k + `, "rate_iops": "100"`)}},
		{"thinktime=5 limits", []testJob{opt(aio4k + `, "thinktime": "5"`)}},
		{"not known to read a device",
			[]testJob{opt(`, "ioengine": "null", "bs": "4k", "iodepth": "8"`)}},
		{"no one block size", []testJob{
			opt(`, "ioengine": "libaio", "bsrange": "4k-8k", "iodepth": "8"`)}},
		{"does not give iodepth",
			[]testJob{opt(`, "ioengine": "libaio", "bs": "4k", "iodepth": "x"`)}},
		{"no requests", []testJob{with(func(j *testJob) { j.ios, j.iops = 0, 0 })}},
		{"no rate", []testJob{with(func(j *testJob) { j.iops = 0 })}},
		{"8192 bytes on average, but its options say 4096",
			[]testJob{with(func(j *testJob) { j.block = 8192 })}},
		{"16 requests were in flight on average",
			[]testJob{with(func(j *testJob) { j.mean = 2_000_000 })}},
		{"requests were in flight on average", []testJob{with(func(j *testJob) {
			j.options = aio4k +
				`, "numjobs": "2"`
			j.mean = 1_900_000
		}),
			with(func(j *testJob) { j.options = aio4k + `, "numjobs": "2"`; j.mean = 1_900_000 })}},
		{"2 of the 3 jobs", []testJob{opt(aio4k + `, "numjobs": "3"`),
			opt(aio4k + `, "numjobs": "3"`)}},
		{"other engines or block sizes", []testJob{fine,
			with(func(j *testJob) {
				j.options = `, "ioengine": "psync", "bs": "4k"`
				j.mean = 100_000
			})}},
		{"ran for 1s to 2s", []testJob{fine, with(func(j *testJob) { j.runtime = 2000 })}},
	} {
		f := parseJobs(t, c.jobs...)
		cells, left := Cells([]*File{f})
		if c.want == "" && (len(cells) != 1 || len(left) != 0) {
			t.Errorf("%v: left out %v", c.jobs, left)
		}
		if c.want != "" && (len(cells) != 0 || len(left) != len(c.jobs) ||
			!strings.Contains(left[0].Why, c.want)) {
			t.Errorf("%v: %d cells, left out %v, want %q", c.jobs, len(cells), left, c.want)
		}
	}
	written := parse(t,
		`{"jobs": [`+fine.String()+`, {"jobname": "w", "write": {"total_ios": 5}}]}`)
	if cells, left := Cells([]*File{written}); len(cells) != 0 || len(left) != 2 ||
		!strings.Contains(left[0].Why, `ran beside "w", which cannot be used: it is a write`) {
		t.Errorf("%d cells, left out %v", len(cells), left)
	}
}

// TestDefaultsOfFio: in a file with options, an unlisted option has fio's default, with a warning.
func TestDefaultsOfFio(t *testing.T) {
	j := testJob{name: "a", options: "", ios: 10_000, block: 4096, iops: 10_000, mean: 98_000}
	cells, left := Cells([]*File{parseJobs(t, j)})
	if len(cells) != 1 {
		t.Fatalf("left out %v", left)
	}
	c := cells[0]
	if c.Engine != "pread" || c.Depth != 1 || c.Chunk != 4096 || len(c.Warnings) != 2 {
		t.Errorf("%+v", c)
	}
	j.options = `, "ioengine": "io_uring"`
	if cells, _ := Cells([]*File{parseJobs(t, j)}); len(cells) != 1 || cells[0].Depth != 1 ||
		!strings.Contains(strings.Join(cells[0].Warnings, ""), "iodepth is not given") {
		t.Errorf("%+v", cells)
	}
	// A client does not report the options of jobs under group_reporting.
	f := parse(t,
		`{"global options": {"direct": "1", "rw": "randread", "bs": "4k"}, "client_stats": [{"jobname": "a", "read": {"total_ios": 100, "bw_bytes": 409600, "iops": 100}}]}`)
	if cells, left := Cells([]*File{f}); len(cells) != 0 || !strings.Contains(left[0].Why,
		"ioengine") {
		t.Errorf("%d cells, left out %v", len(cells), left)
	}
}

// TestHalfEmptyQueueIsSaid: too few requests in flight are no error, but a warning: the device was
// not the limit.
func TestHalfEmptyQueueIsSaid(t *testing.T) {
	j := testJob{name: "a", options: aio4k, ios: 8000, block: 4096, iops: 8000, mean: 300_000}
	cells, _ := Cells([]*File{parseJobs(t, j)})
	if len(cells) != 1 || !strings.Contains(strings.Join(cells[0].Warnings, ""),
		"only 2.4 of 8 requests") {
		t.Errorf("%+v", cells)
	}
}

func TestDrift(t *testing.T) {
	cells := []Cell{{Chunk: 1, Depth: 1, Rate: 100}, {Chunk: 1, Depth: 2, Rate: 900},
		{Chunk: 1, Depth: 1, Rate: 110}, {Chunk: 1, Depth: 1, Rate: 105}}
	if pct, n := Drift(cells); math.Abs(pct-10) > 1e-9 || n != 3 {
		t.Errorf("%g %% of %d", pct, n)
	}
	if pct, n := Drift(cells[:2]); pct != 0 || n != 1 {
		t.Errorf("%g %% of %d", pct, n)
	}
	if pct, n := Drift(nil); pct != 0 || n != 0 {
		t.Errorf("%g %% of %d", pct, n)
	}
}

func TestSumsDoNotOverflow(t *testing.T) {
	var jobs []string
	for range 2000 {
		jobs = append(jobs,
			`{"jobname": "a", "job options": {"direct": "1", "rw": "randread", "iodepth": "1048576", "numjobs": "2000", "ioengine": "libaio"},
			"read": {"bw_bytes": 9007199254740992, "total_ios": 2199023255552, "clat_ns": {"mean": 1, "bins": {"1": 9007199254740992}}}}`)
	}
	cells, left := Cells([]*File{parse(t, `{"jobs": [`+strings.Join(jobs, ",")+`]}`)})
	if len(cells) != 1 {
		t.Fatalf("left out %v", left[0])
	}
	if c := cells[0]; c.Rate != maxSum || *c.IOs != 2000<<41 || c.Bins[0].Count != maxSum ||
		c.Depth != 2000<<20 {
		t.Errorf("%+v", c)
	}
}
