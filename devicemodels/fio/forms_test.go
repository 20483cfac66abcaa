package fio

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// one returns the only entry of a fixture.
func one(t *testing.T, name string) *Entry {
	t.Helper()
	f := load(t, name)
	if len(f.Entries) != 1 {
		t.Fatalf("%s: %d entries", name, len(f.Entries))
	}
	return &f.Entries[0]
}

// says reports whether one of the texts contains a part.
func says(list []string, part string) bool {
	return strings.Contains(strings.Join(list, "\n"), part)
}

// Field case F2: of several reports of one run the last whole one counts, wherever it begins, and
// one that is cut off is told.
func TestField_F2_LastWholeReport(t *testing.T) {
	for _, c := range []struct {
		file string
		iops float64
		want string
	}{
		{"field/F2-back-to-back.out", 90000, "1 intermediate reports"},
		{"field/F2-one-line.out", 90000, "1 intermediate reports"},
		{"field/F2-truncated-last.out", 100000, "the last report is cut off"},
	} {
		f := load(t, c.file)
		if len(f.Entries) != 1 || *f.Entries[0].IOPS != c.iops || f.HasErrors() ||
			!says(f.Warnings, c.want) {
			t.Errorf("%s: %d entries, errors %q, warnings %q", c.file, len(f.Entries), f.Errors,
				f.Warnings)
		}
		if cells, left := Cells([]*File{f}); len(cells) != 1 {
			t.Errorf("%s: left out %v", c.file, left)
		}
	}
	whole := `{"fio version": "fio-3.36", "jobs": [{"jobname": "a", "read": {"total_ios": 7}}]}`
	for text, want := range map[string]int{
		whole + whole: 2, whole + " " + whole: 2, "x" + whole + "y" + whole: 2,
		whole[:30] + "\n" + whole:               1, // killed, and run again
		"[\n" + whole + ",\n" + whole + "\n]":   2, // jq -s
		`{"a": {"fio": ` + whole + `, "b": 1}}`: 1, // within another document
		whole[:len(whole)-1]:                    0,
	} {
		f, err := Parse("x", []byte(text))
		if want == 0 {
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "cut off") {
				t.Errorf("%s: %v", text, err)
			}
		} else if err != nil || len(f.Entries) != want || f.HasErrors() {
			t.Errorf("%s: %+v, %v; want %d entries", text, f, err, want)
		}
	}
}

// Objects that are not fio's are not tried without end.
func TestTriesAreBounded(t *testing.T) {
	other := strings.Repeat("{\"a\": 1}\n", maxTries-1)
	whole := `{"jobs": [{"jobname": "a"}]}`
	if f := parse(t, other+whole); len(f.Entries) != 1 {
		t.Errorf("%d entries after %d other objects", len(f.Entries), maxTries-1)
	}
	if _, err := Parse("x", []byte(other+other+whole)); !errors.Is(err, ErrFormat) {
		t.Errorf("%v", err)
	}
}

// Field case F4: the unit of io_bytes is that which agrees with the number of requests, whatever
// the keys are. Bytes that agree with nothing are a contradiction.
func TestField_F4_UnitOfBytes(t *testing.T) {
	e := one(t, "field/F4-bytes.json")
	if e.Bytes == nil || *e.Bytes != 80891*16384 || !says(e.Warnings, "as bytes") {
		t.Errorf("%s, %q", show(e.Bytes), e.Warnings)
	}
	for _, file := range []string{"field/F4-neither.json", "field/F4-neither-bw.json"} {
		e := one(t, file)
		why := e.contradiction(shape{block: 16384, depth: 1, jobs: 2})
		if e.Bytes != nil || !strings.Contains(why, "io_bytes is 13253181") ||
			!strings.Contains(why, "1325318144 bytes") || !strings.Contains(why, "80891 requests") {
			t.Errorf("%s: %s, %q", file, show(e.Bytes), why)
		}
		if cells, left := Cells([]*File{load(t, file)}); len(cells) != 0 || len(left) != 1 {
			t.Errorf("%s: %d cells", file, len(cells))
		}
	}
	for text, want := range map[string]string{
		// new keys, old unit
		`"io_bytes": 4000, "total_ios": 1000, "lat_ns": {"mean": 9}`: "4096000",
		// in bytes, by bandwidth and runtime alone
		`"io_bytes": 4096000, "bw": 4000, "runtime": 1000, "lat": {"mean": 9}`: "4096000",
		`"io_bytes": 4000, "bw": 4000, "runtime": 1000, "lat": {"mean": 9}`:    "4096000",
		// nothing shows the unit
		`"io_bytes": 4000, "lat": {"mean": 9}`:    "4096000",
		`"io_bytes": 4000, "lat_ns": {"mean": 9}`: "4000",
	} {
		options := ""
		if strings.Contains(text, "total_ios") {
			options = `"job options": {"bs": "4k"}, `
		}
		e := parse(t, `{"jobs": [{`+options+`"read": {`+text+`}}]}`).Entries[0]
		if got := show(e.Bytes); got != want {
			t.Errorf("%s: %s, want %s; %q", text, got, want, e.Warnings)
		}
	}
}

// Field case F10: a log has the two rates and the time between them. Samples that show two rates
// in the JSON are told, and a fit passes that on.
func TestField_F10_Cliff(t *testing.T) {
	f := load(t, "field/F10_bw.log")
	want := []Plateau{{0, 44_500_000_000, 2400000 * 1024}, {44_500_000_000, 60_000_000_000,
		200000 * 1024}}
	if f.Log == nil || !slices.Equal(f.Log.Plateaus, want) {
		t.Fatalf("%+v, want %+v", f.Log, want)
	}
	if !says(f.Warnings, "fell from 2.46GB/s to 205MB/s after 44.5s") {
		t.Errorf("%q", f.Warnings)
	}
	e := one(t, "field/F10-cliff.json")
	if !says(e.Warnings, "205MB/s to 2.5GB/s in samples, mean 1.93GB/s, deviation 52 %") {
		t.Errorf("%q", e.Warnings)
	}
	log := f
	d, err := Device([]*File{gridFile(t), load(t, "field/F10-cliff.json"), log}, DeviceOptions{
		Name: "drive", Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"was not steady", "after 44.5s"} {
		if !says(d.Fit.Warnings, want) {
			t.Errorf("the fit does not warn %q: %q", want, d.Fit.Warnings)
		}
	}
	for dev, warns := range map[int]bool{100: false, 240: false, 260: true} {
		e := parse(t, fmt.Sprintf(`{"jobs": [{"read": {"total_ios": 9, "bw_min": 1, "bw_max": 2000,
			"bw_mean": 1000, "bw_dev": %d, "bw_samples": 4}}]}`, dev)).Entries[0]
		if says(e.Warnings, "not steady") != warns {
			t.Errorf("deviation %d of 1000: %q", dev, e.Warnings)
		}
	}
}

// Field case N03: the JSON follows a progress bar without a line break.
func TestField_N03_AfterProgress(t *testing.T) {
	e := one(t, "field/N03-progress.out")
	if *e.IOPS != 100000 || e.Usable() != "" {
		t.Errorf("%+v: %s", e, e.Usable())
	}
	for _, text := range []string{"bar\r{\"jobs\": [{}]}",
		"bar {\"fio version\": \"fio-4\", \"jobs\": [{}]}",
		"bar\x1b[K{\r\n\t\"fio version\" : \"fio-4\", \"jobs\": [{}]}"} {
		if f := parse(t, text); len(f.Entries) != 1 {
			t.Errorf("%q: %d entries", text, len(f.Entries))
		}
	}
}

// Field case N09: pass-through commands do not know the page cache.
func TestField_N09_PassThrough(t *testing.T) {
	e := one(t, "field/N09-uring-cmd.json")
	if e.Direct != nil || e.Usable() != "" {
		t.Errorf("direct %v: %s", e.Direct, e.Usable())
	}
	cells, _ := Cells([]*File{load(t, "field/N09-uring-cmd.json")})
	if len(cells) != 1 || cells[0].Engine != "io_uring_cmd" || cells[0].Depth != 32 {
		t.Errorf("%+v", cells)
	}
}

// Field cases N10 and N11, and more of their kind: options under which rw=randread does not read at
// random, or not as fast as the device.
func TestField_N10_NotAllRandom(t *testing.T) {
	if e := one(t, "field/N10-percentage.json"); !strings.Contains(e.Usable(),
		"percentage_random=0") {
		t.Errorf("%q", e.Usable())
	}
	checkOptions(t, map[string]string{
		`"percentage_random": "100"`: "", `"percentage_random": "100,0"`: "",
		`"percentage_random": "50"`:   "percentage_random=50",
		`"percentage_random": "0,99"`: "percentage_random=0",
		`"read_iolog": "a.log"`:       "read_iolog",
		`"verify": "crc32c"`:          "verify=crc32c", `"verify": "0"`: "",
		`"flow": "3"`: "flow=3", `"rate": "0,5m"`: "",
	})
}

func TestField_N11_RunsOfReads(t *testing.T) {
	if e := one(t, "field/N11-runs.json"); !strings.Contains(e.Usable(), "up to 8 blocks") {
		t.Errorf("%q", e.Usable())
	}
	checkOptions(t, map[string]string{
		`"rw": "randread:1"`: "", `"rw": "randread:8"`: "up to 8 blocks",
		`"rw": "randread:x"`: "up to x blocks", `"readwrite": "randread:2"`: "up to 2 blocks",
	})
}

// checkOptions compares, for more options of a good job, the reason why it cannot be used.
func checkOptions(t *testing.T, wants map[string]string) {
	t.Helper()
	for option, want := range wants {
		text := `{"jobs": [{` + good(`"read": {"short_ios": 0`) + `}]}`
		text = strings.Replace(text, `"direct"`, option+`, "direct"`, 1)
		if strings.HasPrefix(option, `"rw"`) || strings.HasPrefix(option, `"readwrite"`) {
			text = strings.Replace(text, `"rw": "randread", `, "", 1)
		}
		if got := parse(t, text).Entries[0].Usable(); (want == "") != (got == "") ||
			!strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", option, got, want)
		}
	}
}

// Field case N12, and more of its kind: options under which a device looks faster or slower than
// spread reads at the depth of the job are used with a warning, which a fit passes on.
func TestField_N12_HotReads(t *testing.T) {
	f := load(t, "field/N12-zipf.json")
	cells, _ := Cells([]*File{f})
	if len(cells) != 1 || !says(cells[0].Warnings, "zipf:1.2") {
		t.Errorf("%+v", cells)
	}
	d, err := Device([]*File{gridFile(t), f}, DeviceOptions{Name: "drive", Cores: 2})
	if err != nil || !says(d.Fit.Warnings, "random_distribution=zipf:1.2") {
		t.Errorf("%v, %+v", err, d)
	}
	for option, want := range map[string]string{
		`"random_distribution": "random"`:            "",
		`"random_distribution": "zoned:60/10:40/90"`: "again and again",
		`"random_distribution": "normal:20"`:         "again and again",
		`"zonemode": "strided", "zonesize": "1m"`:    "one zone",
		`"zonemode": "zbd", "zonesize": "1m"`:        "",
		`"iodepth_batch_complete_min": "4"`:          "fewer than iodepth=4",
		`"iodepth_batch_complete_min": "1"`:          "",
		`"iodepth_low": "2"`:                         "fewer than iodepth=4",
		`"iodepth_low": "4"`:                         "",
		`"size": "16m"`:                              "spread over 16MiB",
		`"size": "8g"`:                               "",
		`"size": "100%"`:                             "",
	} {
		text := `{"jobs": [{` + good(`"read": {"short_ios": 0`) + `}]}`
		e := parse(t, strings.Replace(text, `"direct"`, option+`, "direct"`, 1)).Entries[0]
		if e.Usable() != "" || (want == "") != (e.Warnings == nil) || !says(e.Warnings, want) {
			t.Errorf("%s: %q, %q, want %q", option, e.Usable(), e.Warnings, want)
		}
	}
	text := `{"jobs": [{"steadystate": {"ss": "iops:1%", "attained": 0}, "read": {"total_ios": 5}}]}`
	if e := parse(t, text).Entries[0]; !says(e.Warnings, "steadystate=iops:1%") ||
		!says(e.Warnings, "only 5 requests") {
		t.Errorf("%q", e.Warnings)
	}
}

// Field case N16: a compressed output is named, with the command.
func TestField_N16_Gzip(t *testing.T) {
	_, err := Read(t.Context(), "testdata/field/N16-fio.json.gz")
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "gzip -dc testdata/field/"+
		"N16-fio.json.gz > testdata/field/N16-fio.json") {
		t.Error(err)
	}
}

// Requests that failed in a job that went on are no measurement.
func TestContinueOnError(t *testing.T) {
	f := parse(t, `{"jobs": [{"total_err": 3, "first_error": 5, `+good(
		`"error": 0, "read": {"short_ios": 0`)+`}]}`)
	if why := f.Entries[0].Usable(); !strings.Contains(why, "3 requests failed") || !f.HasErrors() {
		t.Errorf("%q", why)
	}
}

// reports is the client_stats of a client with --status-interval.
func reports(list ...string) string {
	return `{"fio version": "fio-3.33", "client_stats": [` + strings.Join(list, ",") + `]}`
}

func clientJob(host, name string, jobs, ios, runtime int) string {
	return fmt.Sprintf(`{"jobname": %q, "hostname": %q, "port": 8765, "job options": {"numjobs":
		"%d"}, "read": {"total_ios": %d, "runtime": %d, "clat_ns": {"mean": %d}}}`, name, host,
		jobs, ios, runtime, ios+runtime)
}

// Field case N25: a client lists all reports of a host one after the other; the last one counts.
func TestField_N25_ClientReports(t *testing.T) {
	for _, version := range versionsOfFixtures(t) {
		f := load(t, "real/"+version+"/client-status.out")
		var got []string
		for i := range f.Entries {
			e := &f.Entries[i]
			got = append(got, e.Job)
			// the jobs ran for 1.1 s
			if e.Runtime == nil || e.Runtime.Seconds() < 1.05 || e.Usable() != "" {
				t.Errorf("%s: %s ran for %s: %s", version, e.Job, show(e.Runtime), e.Usable())
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, []string{"c", "c", "d"}) || !says(f.Warnings, "intermediate") {
			t.Errorf("%s: entries %q, %q", version, got, f.Warnings)
		}
	}
	for name, c := range map[string]struct {
		text string
		want []int64 // requests of the entries that are left
	}{
		"two hosts": {reports(clientJob("h", "a", 1, 10, 100), clientJob("i", "a", 1, 20, 100),
			clientJob("h", "a", 1, 30, 200), clientJob("i", "a", 1, 40, 200)), []int64{30, 40}},
		"a report of each job": {reports(clientJob("h", "a", 2, 10, 100),
			clientJob("h", "a", 2, 11, 100), clientJob("h", "a", 2, 20, 200),
			clientJob("h", "a", 2, 21, 200)), []int64{20, 21}},
		"a report of both jobs": {reports(clientJob("h", "a", 2, 10, 100),
			clientJob("h", "a", 2, 20, 200)), []int64{20}},
		"the last report twice": {reports(clientJob("h", "a", 2, 10, 100),
			clientJob("h", "a", 2, 20, 200), clientJob("h", "a", 2, 20, 200)), []int64{20}},
		"no report but the last": {reports(clientJob("h", "a", 2, 10, 100),
			clientJob("h", "a", 2, 11, 101)), []int64{10, 11}},
	} {
		var got []int64
		for _, e := range parse(t, c.text).Entries {
			got = append(got, *e.IOs)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Jobs of one group that did not run together, and groups that did.
func TestTogether(t *testing.T) {
	job := func(name string, group int, start, runtime int, options string) string {
		return fmt.Sprintf(
			`{"jobname": %q, "groupid": %d, "job_start": %d, "job options": {"direct":
			"1", "ioengine": "libaio", "iodepth": "4", "rw": "randread", "bs": "4k"%s}, "read":
			{"total_ios": 1000, "io_bytes": 4096000, "io_kbytes": 4000, "bw_bytes": 4096000,
			"iops": 1000, "runtime": %d}}`, name, group, start, options, runtime)
	}
	const t0 = 1_700_000_000_000
	for name, c := range map[string]struct {
		jobs  []string
		cells int
		want  string
	}{
		"together": {[]string{job("a", 0, t0, 1000, ""), job("b", 0, t0+3, 1000, "")}, 1, ""},
		"started apart": {[]string{job("a", 0, t0, 1000, ""), job("b", 0, t0+900, 1000, "")}, 0,
			"0.9 s apart"},
		"no start": {[]string{job("a", 0, 0, 1000, ""), job("b", 0, t0, 1000, "")}, 1, ""},
		"delayed": {[]string{job("a", 0, 0, 1000, ""), job("b", 0, 0, 1000,
			`, "startdelay": "1"`)}, 0, "startdelay"},
		"waiting": {[]string{job("a", 0, 0, 1000, ""), job("b", 0, 0, 1000,
			`, "wait_for": "a"`)}, 0, "wait_for"},
		"in order": {[]string{job("a", 0, t0, 1000, ""), job("b", 1, t0+1001, 1000, "")}, 2, ""},
		"new group": {[]string{job("a", 0, t0, 1000, ""), job("b", 1, t0+5, 1000, ""),
			job("c", 2, t0+2000, 1000, "")}, 1, "at the same time as"},
		"within another": {[]string{job("a", 0, t0, 9000, ""), job("b", 1, t0+100, 1000, ""),
			job("c", 2, t0+3000, 1000, "")}, 0, "at the same time as"},
	} {
		f := parse(t, `{"jobs": [`+strings.Join(c.jobs, ",")+`]}`)
		cells, left := Cells([]*File{f})
		if len(cells) != c.cells || c.want != "" && (len(left) == 0 ||
			!strings.Contains(left[0].Why, c.want)) {
			t.Errorf("%s: %d cells, left out %v", name, len(cells), left)
		}
	}
}

// versionsOfFixtures are the folders of testdata/real.
func versionsOfFixtures(t *testing.T) []string {
	t.Helper()
	list, err := os.ReadDir("testdata/real")
	if err != nil || len(list) < 2 {
		t.Fatalf("%d versions: %v", len(list), err)
	}
	var names []string
	for _, d := range list {
		names = append(names, d.Name())
	}
	return names
}

// TestRealForms reads what fio itself wrote: two versions, every form (tools/fio_fixtures).
func TestRealForms(t *testing.T) {
	for _, version := range versionsOfFixtures(t) {
		read := func(name string) *File { t.Helper(); return load(t, "real/"+version+"/"+name) }
		newer := version != "fio-3.33" // says when jobs started
		for _, c := range []struct {
			file    string
			cells   []string // engine, depth, number of jobs
			left    string   // part of the reason of the first entry that is left out
			warning string
		}{
			{"grouped.json", []string{"psync 2 2", "libaio 4 1"}, "", ""},
			{"ungrouped.json", []string{"libaio 4 2"}, "", ""},
			{"no-percentiles.json", []string{"libaio 2 1"}, "", ""},
			{"lat-histogram.json", []string{"psync 1 1"}, "", ""},
			{"mixed.json", nil, "also wrote", ""},
			{"steady.json", []string{"psync 1 1"}, "", "steadystate=iops:0.010000%"},
			{"start-delay.json", nil, "startdelay", ""},
			{"kdiskmark.json", []string{"libaio 32 1"}, "", ""},
			{"status.out", []string{"psync 1 1"}, "", ""},
			{"progress.out", []string{"psync 1 1"}, "", ""},
		} {
			f := read(c.file)
			if f.Version != version || f.HasErrors() {
				t.Errorf("%s %s: version %s, errors %q", version, c.file, f.Version, f.Errors)
			}
			cells, left := Cells([]*File{f})
			var got []string
			for _, cell := range cells {
				got = append(got, fmt.Sprint(cell.FioEngine, " ", cell.Depth, " ", cell.Threads))
				if !says(cell.Warnings, c.warning) || cell.Chunk != 4096 || cell.LatMean == nil {
					t.Errorf("%s %s: %+v", version, c.file, cell)
				}
			}
			if !slices.Equal(got, c.cells) || c.left != "" && (len(left) == 0 ||
				!strings.Contains(left[0].Why, c.left)) {
				t.Errorf("%s %s: cells %q, want %q; left out %v", version, c.file, got, c.cells,
					left)
			}
		}
		checkDoubtful(t, read("doubtful.json"))
		// A known gap: older versions do not say that groups ran at the same time.
		if cells, _ := Cells([]*File{read("new-group.json")}); (len(cells) == 0) != newer {
			t.Errorf("%s: %d cells of groups that ran at the same time", version, len(cells))
		}
		if e := read("no-percentiles.json").Entries[0]; e.Complete.Percentiles != nil ||
			e.Submit.Mean != nil {
			t.Errorf("%s: latencies that were not measured: %+v", version, e)
		}
		if e := read("lat-histogram.json").Entries[0]; e.Total.Bins == nil ||
			e.Total.Percentile(50) == nil {
			t.Errorf("%s: no histogram of lat: %+v", version, e.Total)
		}
		if f := read("status.out"); !says(f.Warnings, "intermediate reports") {
			t.Errorf("%s: %q", version, f.Warnings)
		}
		for _, name := range []string{"terse.out", "normal.out"} {
			_, err := Read(t.Context(), filepath.Join("testdata/real", version, name))
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(),
				"--output-format=json+") {
				t.Errorf("%s %s: %v", version, name, err)
			}
		}
		checkLogs(t, version)
	}
}

// checkDoubtful looks at jobs of which each is doubtful for one reason.
func checkDoubtful(t *testing.T, f *File) {
	t.Helper()
	for i, want := range []string{"percentage_random=0", "up to 8 blocks", "zipf:1.2",
		"zoned:60/10:40/90", "rate_iops=200", "iodepth_batch_complete_min=4"} {
		e := &f.Entries[i]
		refused := i < 2 || i == 4
		if (e.Usable() != "") != refused || !says(append(e.Warnings, e.Usable()), want) {
			t.Errorf("%s %s: %q, %q", f.Version, e.Job, e.Usable(), e.Warnings)
		}
	}
}

// checkLogs looks at logs of 2 s and 0.6 s: averaged, and of single requests.
func checkLogs(t *testing.T, version string) {
	t.Helper()
	for name, seconds := range map[string]float64{"mean_bw.1.log": 2, "each_bw.1.log": 0.6,
		"each_lat.1.log": 0.6} {
		f := load(t, "real/"+version+"/"+name)
		if f.Log == nil || len(f.Entries) != 0 {
			t.Fatalf("%s %s: %+v", version, name, f)
		}
		list := f.Log.Plateaus
		for _, p := range list {
			// 500 requests of 4 KiB a second
			if seconds < 1 && (p.Rate < 1_700_000 || p.Rate > 2_300_000) || p.Rate < 1_000_000 ||
				p.To <= p.From {
				t.Errorf("%s %s: %+v", version, name, p)
			}
		}
		if last := list[len(list)-1].To.Seconds(); last < 0.8*seconds || last > 1.1*seconds {
			t.Errorf("%s %s: ends at %v s", version, name, last)
		}
	}
}

// Logs of other forms: of several jobs, without reads, without a rate, and rates that do not fall.
func TestLog(t *testing.T) {
	rows := func(n int, row func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(row(i) + "\n")
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		file, text, want string
	}{
		"two jobs": {"x_bw.log", rows(20, func(i int) string {
			return fmt.Sprintf("%d, 1000, 0, 0, 0", 500*(i/2))
		}), "several jobs"},
		"writes": {"x_bw.1.log", "500, 1000, 1, 0, 0\n1000, 1000, 1, 0, 0\n",
			"without a read"},
		"one moment":    {"x_bw.1.log", "500, 1000, 0, 0, 0\n", "one moment"},
		"iops averaged": {"x_iops.1.log", "500, 10, 0, 0\n1000, 10, 0, 0\n", "write_bw_log"},
		"no name":       {"log.txt", "500, 10, 0, 0\n1000, 10, 0, 0\n", "name it as fio does"},
		"rubbish":       {"x_bw.log", "500, 10, 0, 0\n1000, 10\n", "line 2 of the log"},
		"huge":          {"x_bw.log", "1, 1, 0, 0\n99999999999999999999, 1, 0, 0\n", "line 2"},
	} {
		_, err := Parse(c.file, []byte(c.text))
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		rate func(i int) int
		want []units.Rate
	}{
		"steady":  {func(i int) int { return 1000 }, []units.Rate{1024_000}},
		"noise":   {func(i int) int { return 1000 + 300*(i%2) }, []units.Rate{1177_600}},
		"rising":  {func(i int) int { return 500 + i/50*500 }, []units.Rate{512_000, 1024_000}},
		"small":   {func(i int) int { return 1000 - i/50*100 }, []units.Rate{972_800}},
		"nothing": {func(i int) int { return 0 }, []units.Rate{0}},
		"bursts": {func(i int) int { return 1000 + i/25%2*1000 }, []units.Rate{1024_000, 2048_000,
			1024_000, 2048_000}},
	} {
		f, err := Parse("x_bw.1.log", []byte(rows(100, func(i int) string {
			return fmt.Sprintf("%d, %d, 0, 0, 0, 0", 500*(i+1), c.rate(i))
		})))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []units.Rate
		for _, p := range f.Log.Plateaus {
			got = append(got, p.Rate)
		}
		_, _, falls := f.Log.Falls()
		if !slices.Equal(got, c.want) || falls != (name == "bursts") ||
			falls != (f.Warnings != nil) {
			t.Errorf("%s: %v, want %v; %q", name, got, c.want, f.Warnings)
		}
	}
}
