package fio

import (
	"fmt"
	"strings"
	"testing"
)

// Field case F1: messages before and after the JSON. They are kept, and one that reports an error
// marks the file.
func TestField_F1_NoiseAroundJSON(t *testing.T) {
	f := load(t, "noise.out")
	if len(f.Entries) != 1 || *f.Entries[0].IOs != 10000 {
		t.Fatalf("entries %+v", f.Entries)
	}
	all := strings.Join(f.Warnings, "\n")
	for _, want := range []string{"before the JSON reports an error", "io_u error on file /dev/sdb",
		"cpuload=10", "after the JSON", "Run status group 0"} {
		if !strings.Contains(all, want) {
			t.Errorf("the warnings do not say %q:\n%s", want, all)
		}
	}
	if !f.HasErrors() || len(f.Errors) != 1 {
		t.Errorf("the error is not marked: %q", f.Errors)
	}
	if f := load(t, "unified.out"); f.HasErrors() || len(f.Warnings) != 2 {
		t.Errorf("fio's normal text is taken for an error: %q, %q", f.Errors, f.Warnings)
	}
	if f := load(t, "jsonplus.json"); f.HasErrors() || len(f.Warnings) != 0 {
		t.Errorf("%q", f.Warnings)
	}
	// Braces in the messages are not the JSON.
	if f := parse(t, "{not json\n{\"other\": 1}\n{\"jobs\": [{\"jobname\": \"a\"}]} tail"); len(
		f.Entries) != 1 || f.Entries[0].Job != "a" || len(f.Warnings) != 2 {
		t.Errorf("%+v", f)
	}
}

// Field case F3: the key decides between microseconds and nanoseconds, for any version.
func TestField_F3_UnitsByKey(t *testing.T) {
	for _, c := range []struct {
		key  string
		want int64
	}{{"", 98_250}, {"_ns", 98}} {
		for _, version := range []string{"fio-2.1.4", "fio-3.33", ""} {
			text := fmt.Sprintf(`{"fio version": %q, "jobs": [{"read": {"total_ios": 1, "iops": 133,
				"clat%[2]s": {"mean": 98.25, "percentile": {"50.0": 98.25}}, "lat%[2]s": {"mean": 98.25}}}]}`, version, c.key)
			f := parse(t, text)
			e := f.Entries[0]
			if f.Version != version || int64(*e.Total.Mean) != c.want ||
				int64(*e.Complete.Percentile(50)) != c.want || *e.IOPS != 133 {
				t.Errorf("%s: mean %v, P50 %v, %v IOPS", text, show(e.Total.Mean),
					show(e.Complete.Percentile(50)), show(e.IOPS))
			}
			if said := strings.Contains(strings.Join(f.Warnings, ""),
				"microseconds"); said != (c.key == "") {
				t.Errorf("%s: warnings %q", text, f.Warnings)
			}
		}
	}
}

// Field case F5: repeated keys in one object. The last one counts; slots that fio 2 did not fill do
// not count.
func TestField_F5_DuplicateKeys(t *testing.T) {
	f := parse(t,
		`{"jobs": [{"jobname": "a", "jobname": "b", "job options": {"filename": "x", "filename": "y", "bs": "4k", "bs": "8k"},
		"read": {"total_ios": 1, "total_ios": 2, "clat": {"mean": 1, "percentile": {"1.0": 1, "0.00": 0, "0.00": 0, "1.00": 3}}}}]}`)
	e := f.Entries[0]
	if e.Job != "b" || e.given["filename"] != "y" || show(e.Block) != "8KiB" || *e.IOs != 2 {
		t.Errorf("%+v", e)
	}
	if p := e.Complete.Percentiles; len(p) != 1 || p[0] != (Percentile{1, 3000}) {
		t.Errorf("percentiles %v", p)
	}
	if n := strings.Count(strings.Join(f.Warnings, "\n"), "percentiles named 0"); n != 1 {
		t.Errorf("said %d times: %q", n, f.Warnings)
	}
	if f := load(t, "v2.1.4.json"); strings.Count(strings.Join(f.Warnings, "\n"),
		"percentiles named 0") != 1 {
		t.Errorf("%q", f.Warnings)
	}
}

// Field case F6: an unmeasured latency is not 0 ns. The rate is still usable.
func TestField_F6_NoLatencyIsNotZero(t *testing.T) {
	f := load(t, "gtod_reduce.json")
	e := f.Entries[0]
	for _, l := range []Latency{e.Submit, e.Complete, e.Total} {
		if l.Mean != nil || l.Percentile(50) != nil || l.Bins != nil {
			t.Errorf("%+v", l)
		}
	}
	cells, left := Cells([]*File{f})
	if len(cells) != 1 || cells[0].LatMean != nil || cells[0].P50 != nil ||
		cells[0].Rate != 204929024 || !strings.Contains(strings.Join(cells[0].Warnings, ""),
		"no mean latency") {
		t.Errorf("%+v, left out %v", cells, left)
	}
	// a mean alone gives no percentile
	e = parse(t,
		`{"jobs": [{"read": {"total_ios": 9, "lat_ns": {"mean": 70.2, "N": 9}, "clat_ns": {"mean": 60.0, "N": 9}}}]}`).Entries[0]
	if *e.Total.Mean != 70 || e.Total.Percentile(50) != nil || e.Complete.Percentile(50) != nil {
		t.Errorf("%+v", e)
	}
	// Percentiles of the total latency under the name of the completion's.
	e = parse(t,
		`{"jobs": [{"job options": {"lat_percentiles": "1"}, "read": {"total_ios": 900, "lat_ns": {"mean": 70, "N": 9}, "clat_ns": {"mean": 60, "N": 9, "percentile": {"50.0": 69}}}}]}`).Entries[0]
	if e.Complete.Percentile(50) != nil || e.Total.Percentile(50) == nil ||
		*e.Total.Percentile(50) != 69 || len(e.Warnings) != 1 {
		t.Errorf("%+v", e)
	}
}

// Field case F7: sizes follow fio's rule, not that of this program. For "1mi" the documentation and
// fio 3.33 differ. The measured bytes decide, and without them the documentation.
func TestField_F7_SizesByFioRule(t *testing.T) {
	for _, c := range []struct {
		bs, base string
		ios      int
		bytes    int64
		want     string
	}{
		{"1m", "", 0, 0, "1MiB"}, {"1mi", "", 0, 0, "1000000"}, {"1mib", "", 0, 0, "1000000"},
		{"4k", "", 0, 0, "4KiB"}, {"4kb", "", 0, 0, "4KiB"},
		{"1m", "1000", 0, 0, "1000000"}, {"1mi", "1000", 0, 0, "1MiB"}, {"1mib", "1000", 0, 0,
			"1MiB"}, {"4k", "1000", 0, 0, "4000"},
		{"1mi", "", 10, 10_000_000, "1000000"}, {"1mi", "", 10, 10 << 20, "1MiB"},
	} {
		e := parse(t, fmt.Sprintf(
			`{"jobs": [{"job options": {"bs": %q, "kb_base": %q}, "read": {"total_ios": %d, "io_bytes": %d, "io_kbytes": 1}}]}`,
			c.bs, c.base, c.ios, c.bytes)).Entries[0]
		if got := show(e.Block); got != c.want {
			t.Errorf("bs=%s with kb_base %q and %d bytes in %d requests: %s, want %s", c.bs, c.base,
				c.bytes, c.ios, got, c.want)
		}
	}
}

// Field case F9: a failed job, or a job with failed requests, is no measurement, and neither are
// simultaneous jobs.
func TestField_F9_FailedJobsAreLeftOut(t *testing.T) {
	for what, want := range map[string]string{
		`"error": 5, "read": {"short_ios": 0`: "error 5",
		`"error": 0, "read": {"short_ios": 3`: "3 requests were short",
		`"error": 0, "read": {"drop_ios": 2`:  "2 requests were dropped",
	} {
		f := parse(t, `{"jobs": [{"jobname": "a", `+good(
			`"error": 0, "read": {"short_ios": 0`)+`}, {"jobname": "b", `+good(
			what)+`}, {"jobname": "c", "groupid": 1, `+good(
			`"error": 0, "read": {"short_ios": 0`)+`}]}`)
		cells, left := Cells([]*File{f})
		if len(cells) != 1 || cells[0].Entries[0].Job != "c" {
			t.Errorf("%s: %d cells", what, len(cells))
		}
		if len(left) != 2 || !strings.Contains(left[1].Why, want) || !strings.Contains(left[0].Why,
			`it ran beside "b"`) {
			t.Errorf("%s: left out %v", what, left)
		}
	}
	f := load(t, "error22.out")
	if cells, left := Cells([]*File{f}); len(cells) != 0 || len(left) != 1 || !f.HasErrors() ||
		f.Entries[0].Failed() != "the job failed with error 22" {
		t.Errorf("%d cells, left out %v", len(cells), left)
	}
}

// Field case O7: reads that the page cache may have served measure memory, at any speed.
func TestField_O7_BufferedReadsAreLeftOut(t *testing.T) {
	for options, want := range map[string]string{
		`"direct": "1"`: "", `"buffered": "0"`: "",
		`"direct": "0"`: "buffered", `"buffered": "1"`: "buffered", `"invalidate": "1"`: "buffered",
		`"direct": "1", "ioengine": "mmap"`: "page cache",
	} {
		f := parse(t,
			`{"jobs": [{"jobname": "a", "job options": {"ioengine": "psync", "rw": "randread", "bs": "4k", `+options+`},
			"read": {"total_ios": 1000, "io_bytes": 4096000, "io_kbytes": 4000, "bw_bytes": 4096000, "iops": 1000}}]}`)
		if got := f.Entries[0].Usable(); (want == "") != (got == "") ||
			!strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", options, got, want)
		}
	}
}

// good completes a job whose error and first field of its reads are given.
func good(start string) string {
	return `"job options": {"direct": "1", "ioengine": "libaio", "iodepth": "4", "rw": "randread", "bs": "4k"}, ` + start +
		`, "total_ios": 1000, "io_bytes": 4096000, "io_kbytes": 4000, "bw_bytes": 4096000, "iops": 1000, "runtime": 1000, "lat_ns": {"mean": 3900000, "N": 1000}}`
}
