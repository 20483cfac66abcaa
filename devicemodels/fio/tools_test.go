package fio

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// checkReads compares the cells of a result of another tool: engine, chunk, depth, threads, rate.
func checkReads(t *testing.T, f *File, wants []string) {
	t.Helper()
	cells, left := Cells([]*File{f})
	var got []string
	for _, c := range cells {
		got = append(got, fmt.Sprintf("%s %v %d/%d %d", c.FioEngine, c.Chunk, c.Depth, c.Threads,
			c.Rate))
	}
	if strings.Join(got, "\n") != strings.Join(wants, "\n") {
		t.Errorf("%s: cells\n%s\nwant\n%s\nleft out %v", f.Name, strings.Join(got, "\n"),
			strings.Join(wants, "\n"), left)
	}
	for i := range f.Entries {
		checkEntry(t, &f.Entries[i])
	}
	checkCells(t, f, cells, left)
}

// The rates of elbencho are those of its IOPS: it prints whole MiB/s. "First done" is the time in
// which all threads were at work.
func TestElbencho(t *testing.T) {
	f := load(t, "tools/elbencho.csv")
	checkReads(t, f, []string{"psync 4KiB 1/1 46284800", "psync 4KiB 4/4 180633600",
		"libaio 4KiB 16/1 655360000", "psync 64KiB 1/1 465305600", "libaio 64KiB 16/1 3997696000"})
	if f.Tool != "elbencho" || f.Version != "elbencho 3.1-1" || len(f.Entries) != 11 ||
		!says(f.Warnings, "1 phases without") {
		t.Errorf("%s %s, %d entries, %q", f.Tool, f.Version, len(f.Entries), f.Warnings)
	}
	for i, want := range map[int]string{0: "it is a write", 6: "buffered", 7: "sequential",
		8: "2 hosts", 9: "--limitread", 10: "also wrote"} {
		if got := f.Entries[i].Usable(); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", f.Entries[i].Job, got, want)
		}
	}
	if mean := f.Entries[1].Total.Mean; mean == nil || *mean != 87*units.Microsecond {
		t.Errorf("mean %s", show(mean))
	}
	d, err := Device([]*File{f}, DeviceOptions{Name: "drive", Cores: 4})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(d.Source, "fit of elbencho measurements") ||
		d.Fit.Mode != "elbencho psync, libaio direct" || len(d.Fit.Cells) != 5 ||
		!strings.Contains(d.Sources["flash"], "elbencho 3.1-1") {
		t.Errorf("%q, %q, %v", d.Source, d.Fit.Mode, d.Sources)
	}
	checkReads(t, load(t, "tools/elbencho.json"), []string{"psync 4KiB 1/1 46284800",
		"libaio 4KiB 16/2 659456000"})
}

func TestElbenchoRefusals(t *testing.T) {
	data, err := os.ReadFile("testdata/tools/elbencho.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	head, read := lines[0], lines[3]
	column := func(name, value string) string {
		fields := strings.Split(read, ",")
		for i, n := range strings.Split(head, ",") {
			if n == name {
				fields[i] = value
				return head + "\n" + strings.Join(fields, ",")
			}
		}
		t.Fatalf("no column %q", name)
		return ""
	}
	for text, want := range map[string]string{
		column("path type", "bucket"):                          "from a bucket",
		column("command", `"elbencho" "-r" "--mmap" "/x" `):    "page cache",
		column("command", `"elbencho" "-r" "--gpuids" "0" `):   "GPU",
		column("command", `"elbencho" "-r" "--strided" "/x" `): "strides",
		column("MiB/s [first]", "9"):                           "contradict each other",
		column("block size", "0"):                              "no rate",
		column("IO depth", ""):                                 "does not give ioengine",
		column("direct IO", ""):                                "whether the reads were direct",
		column("IOPS [first]", "300000"):                       "contradict each other",
	} {
		f := parse(t, text)
		if len(f.Entries) != 1 {
			t.Fatalf("%d entries of\n%s", len(f.Entries), text)
		}
		why := f.Entries[0].Usable()
		if !strings.Contains(why, want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
	unaligned := parse(t, column("random aligned", "0"))
	if !says(unaligned.Entries[0].Warnings, "norandalign") || unaligned.Entries[0].Usable() != "" {
		t.Errorf("%q", unaligned.Entries[0].Warnings)
	}
	for text, want := range map[string]string{
		head:                           "no phase",
		head + "\n" + read[:40]:        "line 2 of elbencho's CSV has",
		head + "\n" + lines[2]:         "no phase",
		`{"phase_type": "READ", "conf`: "cannot be read",
	} {
		if _, err := Parse("x", []byte(text)); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

// What KDiskMark calls MB/s is 1.024 times as much, as its IOPS show.
func TestDiskMark(t *testing.T) {
	f := load(t, "tools/kdiskmark.txt")
	checkReads(t, f, []string{"libaio 4KiB 32/1 614400000", "libaio 4KiB 1/1 46284800"})
	if f.Version != "KDiskMark 3.2.0 with fio-3.36" || !says(f.Warnings, "page cache") ||
		says(f.Warnings, "best of") {
		t.Errorf("%s, %q", f.Version, f.Warnings)
	}
	f = load(t, "tools/crystaldiskmark.txt")
	checkReads(t, f, []string{"windowsaio 4KiB 512/16 1638400000", "windowsaio 4KiB 1/1 46284800"})
	if f.Version != "CrystalDiskMark 8.0.4" || !says(f.Warnings, "best of 5") {
		t.Errorf("%s, %q", f.Version, f.Warnings)
	}
	checkReads(t, load(t, "tools/crystaldiskmark5.txt"), []string{
		"windowsaio 4KiB 32/1 614400000", "windowsaio 4KiB 1/1 46284800"})
	const head = "KDiskMark (3.2.0): x\n[Read]\n"
	for text, want := range map[string]string{
		head +
			"Random 4 KiB (Q= 1, T= 1): 45.2 MB/s [ 99999.0 IOPS] < 9.00 us>": "contradict",
		head +
			"Random 4 KiB (Q= 1, T= 1): 4000.0 MB/s [ 1000000.0 IOPS] < 0.99 us>": "page cache",
		head + "Random 4 KiB (Q= 1, T= 1): 45.2 MB/s [ 11300.0 IOPS] < 400.00 us>":     "in flight",
		"QDiskMark (1.0): x\n[Read]\nRandom 4 KiB (Q= 1, T= 1): 4 MB/s [ 1000.0 IOPS]": "ioengine",
	} {
		f := parse(t, text)
		if why := f.Entries[0].Usable(); !strings.Contains(why, want) {
			t.Errorf("%s: %q, want %q", text, why, want)
		}
	}
	if f := parse(t, "> "+strings.ReplaceAll(head+"Random 4 KiB (Q= 1, T= 1): 45.2 MB/s\n"+
		"Profile: Peak Performance\nTest: 16 MiB (x3)", "\n", "\n> ")); len(f.Entries) != 1 ||
		*f.Entries[0].Bandwidth != 46284800 || !says(f.Warnings, "best of 3") ||
		!says(f.Entries[0].Warnings, "spread over 16MiB") {
		t.Errorf("%+v", f)
	}
	if _, err := Parse("x", []byte(head)); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(), "without a test") {
		t.Error(err)
	}
}

// Other tools are refused by their names, with the commands of fio to run instead.
func TestForeignTools(t *testing.T) {
	for text, name := range map[string]string{
		"4 KiB <<< . (ext4 /dev/vda 252.0 GiB): request=2 time=426.5 us\n": "ioping",
		"\n--- . (ext4 /dev/vda 252.0 GiB) ioping statistics ---\n2 reque": "ioping",
		"sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning":     "sysbench",
		"16+0 records in\n16+0 records out\n16777216 bytes (17 MB) copied": "dd",
		"/dev/sda:\n Timing cached reads:   9 MB in  2.00 seconds = 4 MB":  "hdparm",
		"Version 2.00a       ------Sequential Output------ --Sequential":   "bonnie++",
		"1.98,2.00a,vm,1,1796087988,8M,,8192,5,640,22,+++++,+++":           "bonnie++",
		"\tIozone: Performance Test of File I/O\n\t        Version $Rev":   "IOzone",
		"Copyright\nVdbench distribution: vdbench50407\n":                  "vdbench",
		"\nCommand Line: diskspd.exe -b4K -d10 -o32 -r test.dat\n":         "DiskSpd",
		"IOR-3.3.0: MPI Coordinated Test of Parallel I/O\n":                "IOR",
		"-- started at --\n\nmdtest-3.4.0 was launched with 1 total":       "mdtest",
		"'Test Type,Test Description\n0,\n'Version\n1.1.0\n":               "Iometer",
		"Filebench Version 1.5-alpha3\n":                                   "Filebench",
		"OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\n":         "elbencho",
		"ISO date,Label,Phase,RuntimeMS,Rank\n":                            "elbencho",
		"[global]\nrw=randread\n":                                          "job file",
		"3;fio-3.33;a;0;0;13000;12987;3246;1001":                           "terse",
	} {
		_, err := Parse("out.txt", []byte(text))
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v, want %s", text, err, name)
			continue
		}
		if !strings.Contains(err.Error(), "fio --") && name != "elbencho" {
			t.Errorf("%q: no command in %v", text, err)
		}
	}
	for _, text := range []string{"hello\n", "500 records", "Version 2", "the terse output\n"} {
		if why := foreign([]byte(text)); why != "" {
			t.Errorf("%q: %s", text, why)
		}
	}
}
