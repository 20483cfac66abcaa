package fio

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/reference"
	"github.com/windrow-sim/windrow/internal/units"
)

// load parses a valid fixture.
func load(t *testing.T, name string) *File {
	t.Helper()
	f, err := Read(t.Context(), filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// parse parses a valid text.
func parse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("x.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestExpected(t *testing.T) { checkExpected(t, "testdata", 14) }

// TestSamples compares outputs of fio 2.1.4 to 3.33, where they are available, with the results of
// an independent script.
func TestSamples(t *testing.T) {
	checkExpected(t, reference.Path(t, "fio"), 19)
}

// checkExpected compares every cell of expected.csv with the files beside it.
func checkExpected(t *testing.T, dir string, rows int) {
	r, err := os.Open(filepath.Join(dir, "expected.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != rows+1 {
		t.Errorf("%d rows, want %d", len(lines)-1, rows)
	}
	entries := map[string]int{}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		f, err := Read(t.Context(), filepath.Join(dir, row["file"]))
		if row["entry_index"] == "" {
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "no JSON object") {
				t.Errorf("%s: %v, want no JSON object", row["file"], err)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if entries[row["file"]]++; entries[row["file"]] > len(f.Entries) {
			t.Errorf("%s: %d entries, want more", row["file"], len(f.Entries))
			continue
		}
		checkRow(t, row, f)
	}
	for name, want := range entries {
		if f, err := Read(t.Context(), filepath.Join(dir, name)); err != nil ||
			len(f.Entries) != want {
			t.Errorf("%s: %d entries, want %d", name, len(f.Entries), want)
		}
	}
}

// checkRow compares one row with its entry. fio prints a mean of 0.0 for an unmeasured time, which
// is nil here.
func checkRow(t *testing.T, row map[string]string, f *File) {
	t.Helper()
	index, err := strconv.Atoi(row["entry_index"])
	if err != nil {
		t.Fatal(err)
	}
	e := f.Entries[index]
	thousandths := func(v float64) string {
		return strconv.FormatFloat(math.Round(v*1e3)/1e3, 'f',
			-1, 64)
	}
	micros := func(v *units.Nanos) string {
		if v == nil {
			return ""
		}
		return thousandths(float64(*v) / 1e3)
	}
	note := ""
	if e.Error != 0 {
		note = fmt.Sprintf("error %d", e.Error)
	}
	got := map[string]string{
		"fio_version": f.Version, "jobname": e.Job, "direction": e.Direction, "rw": e.RW,
		"note": note,
		"bs":   show(e.Block), "iodepth": show(e.Depth), "numjobs": show(e.Jobs),
		"total_ios": show(e.IOs), "bytes": show(e.Bytes),
		"iops": thousandths(*e.IOPS), "bw_KiBps": strconv.FormatInt(int64(*e.Bandwidth)/1024, 10),
		"lat_mean_us": micros(e.Total.Mean), "clat_p50_us": micros(e.Complete.Percentile(50)),
	}
	for name, have := range got {
		want := row[name]
		switch name {
		case "bs":
			if k, ok := strings.CutSuffix(want, "k"); ok {
				want = k + "KiB"
			} else if m, ok := strings.CutSuffix(want, "m"); ok {
				want = m + "MiB"
			}
		case "iops", "lat_mean_us", "clat_p50_us":
			if want = strings.TrimSuffix(want, ".0"); want == "0" && name == "lat_mean_us" {
				want = ""
			}
		}
		if have != want {
			t.Errorf("%s, entry %d: %s is %q, want %q", row["file"], index, name, have, want)
		}
	}
}

func show[T any](v *T) string {
	if v == nil {
		return ""
	}
	if b, ok := any(*v).(units.Bytes); ok && b%1024 != 0 {
		return strconv.FormatInt(int64(b), 10)
	} else if ok && b <= units.MiB && b > 0 {
		return b.String()
	} else if ok {
		return strconv.FormatInt(int64(b), 10)
	}
	return fmt.Sprint(*v)
}

func TestRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "no JSON object",
		"fio: x\n":                         `it says "fio: x"`,
		"[1]\n":                            "no JSON object",
		"{\"a\": 1}\n":                     "no JSON object",
		"{\"jobs\": [{\"jobname\": \"a\",": "cut off",
		"{\"jobs\": [,]}":                  "line 1",
		"\xff\xfe{\x00":                    "UTF-16",
		"{\"jobs\":[{\"job options\":{" + strings.Repeat(`"a":1,`, maxKeys) +
			`"b":1}}]}`: "more than",
		"  {\"jobs\": []}":                                    "no JSON object",
		strings.Repeat("{\"a\":[\n", 20_000):                  "cannot be read",
		strings.Repeat("{\"jobs\":", 2000000):                 "cannot be read",
		"{\"jobs\":[" + strings.Repeat("0,", maxJobs) + "0]}": "more than",
	} {
		if _, err := Parse("x", []byte(text)); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %q", text, err, want)
		}
	}
	if _, err := Read(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestOddValues: an odd field loses that field, without a panic and without the loss of the file.
func TestOddValues(t *testing.T) {
	f := parse(t,
		"\xef\xbb\xbf"+`{"fio version": 3.33, "jobs": [{"jobname": ["x"], "groupid": "7", "error": null, "job options": {"iodepth": 4, "numjobs": "many", "bs": {}},
		"read": {"total_ios": -5, "io_bytes": "4096", "io_kbytes": 4, "iops": nan, "bw": -inf, "bw_bytes": 1e300, "runtime": [1],
			"clat_ns": {"mean": 5, "N": 1, "percentile": {"50.0": -nan, "99.0": 7, "101.0": 8, "-1": 9, "0.00": 0, "x": 1}, "bins": [1]}, "lat_ns": 3}, "write": 5}]}`)
	e := f.Entries[0]
	if f.Version != "3.33" || e.Job != "" || e.Group != 7 || e.Error != 0 || *e.Depth != 4 ||
		e.Jobs != nil || e.Block != nil {
		t.Errorf("%+v", e)
	}
	if e.IOs != nil || *e.Bytes != 4096 || e.IOPS != nil || e.Bandwidth != nil ||
		e.Runtime != nil || e.Total.Mean != nil {
		t.Errorf("%+v", e)
	}
	if want := (Latency{Mean: ptr(units.Nanos(5)), Samples: ptr(int64(1)),
		Percentiles: []Percentile{{99, 7}}}); !reflect.DeepEqual(e.Complete, want) {
		t.Errorf("clat %+v", e.Complete)
	}
	// numjobs is no number, bs is no size
	if len(e.Warnings) != 2 || !strings.Contains(e.Usable(), "rw") {
		t.Errorf("warnings %q", e.Warnings)
	}
}

func TestNaNOnlyOutsideOfStrings(t *testing.T) {
	f := parse(t,
		`{"jobs": [{"jobname": "nan \" inf", "read": {"total_ios": 1, "iops": -nan}}, {"jobname": "b", "read": {"iops": inf , "total_ios": 2}}]}`)
	if len(f.Entries) != 2 || f.Entries[0].Job != `nan " inf` || f.Entries[0].IOPS != nil ||
		*f.Entries[1].IOs != 2 {
		t.Errorf("%+v", f.Entries)
	}
}

// statusReport is one report of a run that began at second 100.
func statusReport(timestamp, elapsed, ios int) string {
	return fmt.Sprintf(
		`{"timestamp": %d, "jobs": [{"jobname": "a", "elapsed": %d, "read": {"total_ios": %d}}]}`+"\n", timestamp, elapsed, ios)
}

func TestSeveralDocuments(t *testing.T) {
	f := parse(t, statusReport(101, 1, 10)+statusReport(102, 2, 20)+statusReport(102, 3, 30))
	if len(f.Entries) != 1 || *f.Entries[0].IOs != 30 || len(f.Warnings) != 1 ||
		!strings.Contains(f.Warnings[0], "2 intermediate reports") {
		t.Errorf("status reports: %d entries, %q", len(f.Entries), f.Warnings)
	}
	f = parse(t, statusReport(105, 5, 10)+statusReport(110, 5, 20))
	if len(f.Entries) != 2 || f.Entries[0].run == f.Entries[1].run {
		t.Errorf("two runs in one file: %+v", f.Entries)
	}
}

func TestEntriesOfDirections(t *testing.T) {
	f := parse(t, `{"jobs": [
		{"jobname": "rw", "job options": {"rw": "randrw", "bs": "8k,32k"}, "read": {"total_ios": 3}, "write": {"total_ios": 4}, "trim": {"total_ios": 0}},
		{"jobname": "both", "job options": {"rw": "randread"}, "read": {"total_ios": 3}, "mixed": {"total_ios": 3}},
		{"jobname": "idle", "job options": {}, "write": {"total_ios": 0}},
		{"jobname": "empty"}]}`)
	var got []string
	for _, e := range f.Entries {
		got = append(got, e.Job+" "+e.Direction+" "+show(e.Block))
	}
	if want := []string{"rw read 8KiB", "rw write 32KiB", "both read ", "both mixed ",
		"idle write ", "empty read "}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if f.Entries[0].Usable() == "" || !f.Entries[3].twice || f.Entries[2].twice {
		t.Error("what ran beside or is told twice is not known")
	}
	if cells, left := Cells([]*File{f}); len(cells) != 0 || len(left) != 5 {
		t.Errorf("%d cells, left out %v", len(cells), left)
	}
}

// TestClients: every client is a separate machine with its own global options. Their sum is not
// another machine.
func TestClients(t *testing.T) {
	f := load(t, "clients.out")
	cells, left := Cells([]*File{f})
	if len(cells) != 2 || len(left) != 0 {
		t.Fatalf("%d cells, left out %v", len(cells), left)
	}
	for i, want := range []struct {
		host  string
		chunk units.Bytes
	}{{"alpha:8765", 4096}, {"beta:8765", 8192}} {
		if c := cells[i]; c.Entries[0].Host != want.host || c.Chunk != want.chunk || c.Depth != 4 ||
			c.Rate != 81920000 {
			t.Errorf("cell %d: %+v", i, c)
		}
	}
	if !strings.Contains(strings.Join(f.Warnings, "\n"), allClients) {
		t.Errorf("the sum was left out in silence: %q", f.Warnings)
	}
	data, err := os.ReadFile("testdata/jsonplus.json")
	if err != nil {
		t.Fatal(err)
	}
	if f := parse(t, "<h> note: x\n<h> "+strings.ReplaceAll(string(data), "\n",
		"\n<h> ")); len(f.Entries) != 2 {
		t.Errorf("JSON behind the name of a host: %+v", f)
	}
}

func TestBytesOrKiB(t *testing.T) {
	for text, want := range map[string]units.Bytes{
		`"io_bytes": 1000, "bw": 100, "runtime": 10000, "clat": {"mean": 1}`:                     1024000,
		`"io_bytes": 1024000, "bw": 100, "runtime": 10000, "clat": {"mean": 1}`:                  1024000,
		`"io_bytes": 1024000, "bw": 100, "runtime": 10000, "clat_ns": {"mean": 1}`:               1024000,
		`"io_bytes": 1000, "bw": 100, "runtime": 10000, "clat_ns": {"mean": 1}`:                  1024000,
		`"io_bytes": 1024000, "io_kbytes": 1000, "bw": 9, "runtime": 10000, "clat": {"mean": 1}`: 1024000,
		`"io_bytes": 1000, "clat": {"mean": 1}`:                                                  1024000,
		`"io_bytes": 1024000, "lat_ns": {"mean": 1}`:                                             1024000,
	} {
		if e := parse(t, `{"jobs": [{"read": {`+text+`}}]}`).Entries[0]; e.Bytes == nil ||
			*e.Bytes != want {
			t.Errorf("%s: %v", text, show(e.Bytes))
		}
	}
}
