package cli

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fioFixture is a file of the tests of devicemodels/fio.
func fioFixture(t *testing.T, name string) string {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "devicemodels/fio/testdata", name)
}

// linkFixture makes a file of the repository a file of the working folder.
func linkFixture(t *testing.T, from, to string) {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, from))
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(data))
}

func TestImportFioJSON(t *testing.T) {
	var list []map[string]any
	read := func(names ...string) {
		t.Helper()
		args := []string{"device", "import-fio", "--json"}
		for _, name := range names {
			args = append(args, fioFixture(t, name))
		}
		list = resultOf[struct{ Entries []map[string]any }](t, must(t, args...)).Entries
	}
	read("v2.1.4.json", "v2.17.json", "gtod_reduce.json", "jsonplus.json")
	if len(list) != 6 {
		t.Fatalf("%d entries, want 6", len(list))
	}
	keys := []string{"bandwidth_Bps", "block_bytes", "bytes", "clat_p50_ns", "depth", "direction",
		"file", "group", "host", "iops", "ios", "job", "jobs", "lat_mean_ns", "rw", "warnings"}
	for _, entry := range list {
		if got := slices.Sorted(maps.Keys(entry)); !slices.Equal(got, keys) {
			t.Errorf("keys %v, want %v", got, keys)
		}
		if _, ok := entry["warnings"].([]any); !ok {
			t.Errorf("warnings are %v, want a list", entry["warnings"])
		}
	}
	want := map[string]any{"job": "r16k", "direction": "read", "block_bytes": 16384.0, "depth": 8.0,
		"jobs": nil, "ios": 80000.0, "bytes": 1310720000.0,
		"iops": 8000.0, "bandwidth_Bps": 131072000.0, "lat_mean_ns": 994875.0,
		"clat_p50_ns": 980000.0}
	for key, value := range want {
		if got := list[2][key]; !reflect.DeepEqual(got, value) {
			t.Errorf("%s: %v, want %v", key, got, value)
		}
	}
	for _, key := range []string{"block_bytes", "depth", "jobs", "ios"} {
		if list[0][key] != nil {
			t.Errorf("fio 2.1.4 does not say %s, but here it is %v", key, list[0][key])
		}
	}
	if list[3]["lat_mean_ns"] != nil || list[3]["clat_p50_ns"] != nil {
		t.Errorf("a latency that was not taken: %v, %v", list[3]["lat_mean_ns"],
			list[3]["clat_p50_ns"])
	}
	read("clients.out")
	if len(list) != 2 {
		t.Errorf("%d entries of 2 clients", len(list))
	}
}

func TestImportFioText(t *testing.T) {
	files := []string{fioFixture(t, "grouped.out"), fioFixture(t, "unified.out"),
		fioFixture(t, "v2.1.4.json")}
	table := must(t, append([]string{"device", "import-fio", "--format", "csv"}, files...)...)
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 5 {
		t.Fatalf("%d lines, want a head and 4 entries:\n%s", len(lines), table)
	}
	for i, use := range []string{"yes", "yes", "no", "no"} {
		if !strings.HasSuffix(lines[i+1], ","+use) {
			t.Errorf("entry %d: %q, want %s", i, lines[i+1], use)
		}
	}
	text := strings.Join(strings.Fields(must(t, append([]string{"device", "import-fio"},
		files...)...)), " ")
	for _, want := range []string{"iodepth=32 has no effect", "text after the JSON",
		"not for a fit: ", "the file does not give rw"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if o := command("device", "import-fio", "--quiet",
		fioFixture(t, "grouped.out")); o.stderr != "" || o.stdout == "" {
		t.Errorf("--quiet: %q", o.stderr)
	}
}

// TestField_F9_NothingLeft: a file without JSON and one of failed jobs alone are bad input; one of
// writes is not.
func TestField_F9_NothingLeft(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "write.json", `{"jobs": [{"jobname": "w", "write": {"total_ios": 5}}]}`)
	write(t, "empty.json", `{"jobs": []}`)
	for _, c := range []struct {
		file   string
		code   int
		stdout bool
		want   string
	}{
		{fioFixture(t, "no-json.out"), exitInput, false, "engine libaio not loadable"},
		{fioFixture(t, "error22.out"), exitInput, true, "error 22"},
		{"none.json", exitInput, false, "none.json"},
		{".", exitInput, false, "is a folder"},
		{"empty.json", exitInput, true, "no jobs"},
		{"write.json", exitOK, true, "nothing here can be used for a device fit"},
	} {
		o := command("device", "import-fio", c.file)
		if o.code != c.code || (o.stdout != "") != c.stdout || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%s: exit %d, want %d\n%s%s", c.file, o.code, c.code, o.stdout, o.stderr)
		}
	}
	o := command("device", "import-fio", fioFixture(t, "error22.out"), "--json")
	list := resultOf[struct{ Entries []fioEntry }](t, o.stdout).Entries
	if len(list) != 1 || o.code != exitInput {
		t.Errorf("exit %d, %s", o.code, o.stdout)
	}
	if o := command("device", "import-fio", fioFixture(t, "error22.out"),
		fioFixture(t, "grouped.out")); o.code != exitOK {
		t.Errorf("a failed job beside a good one: exit %d", o.code)
	}
	if o := command("device", "import-fio"); o.code != exitUsage {
		t.Errorf("no file: exit %d", o.code)
	}
}

func TestFioJob(t *testing.T) {
	text := must(t, "device", "fio-job", "--file", "/data/fio.bin")
	if text != must(t, "device", "fio-job", "--file", "/data/fio.bin", "--size", "8GiB", "--seed",
		"42", "--runtime", "4s", "--chunks", "4KiB,16KiB,64KiB,256KiB,1MiB",
		"--depths", "1,4,16,64,256", "--engines", "io_uring,psync") {
		t.Error("the defaults are not those of the help")
	}
	if n := strings.Count(text, "\nstonewall\n"); n != 5*5*2+8 {
		t.Errorf("%d jobs, want 50 cells and 8 references", n)
	}
	small := must(t, "device", "fio-job", "--file", "x", "--size", "64MiB", "--chunks", "4KiB",
		"--depths", "2,3", "--engines", "libaio", "--runtime", "1500ms", "--seed", "9")
	for _, want := range []string{"filename=x\n", "size=67108864\n", "runtime=1500ms\n",
		"randseed=9\n", "iodepth=2\n", "iodepth=3\n", "ioengine=libaio\nbs=4096\n"} {
		if !strings.Contains(small, want) {
			t.Errorf("no %q in\n%s", want, small)
		}
	}
	for _, args := range [][]string{
		{}, {"--file", "x", "--size", "8"}, {"--file", "x", "--runtime", "5"}, {"--file", "x",
			"--chunks", "4k"}, {"--file", "x", "--depths", "0"},
		{"--file", "x", "--engines", "mmap"}, {"--file", "a\nb"}, {"--file", "x", "more"},
		{"--file", "x", "--chunks", "1GiB", "--size", "1MiB"},
	} {
		if o := command(append([]string{"device", "fio-job"}, args...)...); o.code != exitUsage ||
			o.stdout != "" {
			t.Errorf("%q: exit %d, %s", args, o.code, o.stdout)
		}
	}
}

// Field case N28: the JSON says of whom and of what an entry is.
func TestField_N28_WhoAndWhat(t *testing.T) {
	list := resultOf[struct{ Entries []map[string]any }](t, must(t, "device", "import-fio",
		"--json",
		fioFixture(t, "clients.out"), fioFixture(t, "v2.1.4.json"))).Entries
	for i, want := range []map[string]any{
		{"host": "alpha:8765", "rw": "randread", "group": 0.0},
		{"host": "beta:8765", "rw": "randread", "group": 0.0},
		{"host": nil, "rw": nil, "group": 0.0},
	} {
		for key, value := range want {
			if got := list[i][key]; got != value {
				t.Errorf("entry %d: %s is %v, want %v", i, key, got, value)
			}
		}
	}
}

// Field case F10: a log is shown as plateaus, and a fit warns of its cliff.
func TestField_F10_Log(t *testing.T) {
	log := fioFixture(t, "field/F10_bw.log")
	logs := resultOf[struct{ Logs []fioLog }](t, must(t, "device", "import-fio", "--json",
		log)).Logs
	if len(logs) != 1 || len(logs[0].Plateaus) != 2 || logs[0].Plateaus[0] != (fioPlateau{0,
		44_500_000_000, 2_457_600_000}) {
		t.Errorf("%+v", logs)
	}
	text := strings.Join(strings.Fields(must(t, "device", "import-fio", log)), " ")
	for _, want := range []string{"1 bandwidth logs", "after 44.5s", "factor: 0.0833",
		"Bandwidth over time"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	t.Chdir(t.TempDir())
	if o := command("device", "fit", fioFixture(t, "grid.json"), log, "-o",
		"a.device.yaml"); o.code != exitOK || !strings.Contains(strings.Join(strings.Fields(
		o.stdout), " "), "after 44.5s") {
		t.Errorf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
}

// Results of other tools fit a device; those that are not read are refused with commands to run.
func TestOtherStorageTests(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "device", "fit", fioFixture(t, "tools/elbencho.csv"), "-o", "a.device.yaml")
	o := command("device", "fit", fioFixture(t, "tools/kdiskmark.txt"), "-o", "b.device.yaml")
	if o.code == exitOK || !strings.Contains(o.stderr, "cells") {
		t.Errorf("exit %d of one size at two depths: %s", o.code, o.stderr)
	}
	write(t, "dd.txt", "16+0 records in\n16+0 records out\n")
	for _, verb := range [][]string{{"import-fio", "dd.txt"}, {"fit", "dd.txt", "-o",
		"c.device.yaml"}} {
		o := command(append([]string{"device"}, verb...)...)
		if o.code != exitInput || o.stdout != "" || !strings.Contains(o.stderr, "output of dd") ||
			!strings.Contains(o.stderr, "windrow device fio-job --file FILE > device.fio") {
			t.Errorf("%v: exit %d\n%s%s", verb, o.code, o.stdout, o.stderr)
		}
	}
}
