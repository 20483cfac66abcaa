package fio

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

func smallGrid() Grid {
	return Grid{File: "/data/a b:c.bin", Size: 64 * units.MiB, Chunks: []units.Bytes{4096, 65536,
		16384}, Depths: []int{1, 16, 4},
		Engines: []string{"io_uring", "psync", "libaio"}, Runtime: units.Second, Ramp: 100 *
			units.Millisecond, Seed: 7}
}

func jobFile(t *testing.T, g Grid) string {
	t.Helper()
	var b strings.Builder
	if err := WriteJob(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// section is one section of a job file.
type section struct {
	name    string
	options map[string]string
}

func sections(t *testing.T, text string) []section {
	t.Helper()
	var list []section
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			list = append(list, section{strings.Trim(line, "[]"), map[string]string{}})
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		list[len(list)-1].options[name] = value
	}
	return list
}

// pretend is fio's output of a job file, with the parts that an importer reads.
func pretend(t *testing.T, text string) string {
	t.Helper()
	list := sections(t, text)
	object := func(o map[string]string) string {
		var parts []string
		for name, value := range o {
			if value != "" { // fio does not list options without a value
				parts = append(parts, fmt.Sprintf("%q: %q", name, value))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	var jobs []string
	group := -1
	for _, s := range list[1:] {
		if _, wall := s.options["stonewall"]; wall {
			group++
		}
		bs, depth, n := atoi(t, s.options["bs"]), atoi(t, s.options["iodepth"]),
			atoi(t, s.options["numjobs"])
		const iops = 1000
		jobs = append(jobs, fmt.Sprintf(
			`{"jobname": %q, "groupid": %d, "error": 0, "job options": %s, "read": {"total_ios": %d, "io_bytes": %d, "io_kbytes": 1,
			"bw_bytes": %d, "iops": %d, "runtime": 1000, "lat_ns": {"mean": %d, "N": %d}}}`,
			s.name, group, object(s.options), iops, iops*bs, iops*bs, iops, depth*n*1_000_000,
			iops))
	}
	return fmt.Sprintf(`{"fio version": "fio-3.33", "global options": %s, "jobs": [%s]}`,
		object(list[0].options), strings.Join(jobs, ","))
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestJobFileGivesItsGrid: the output of the job file has every cell of the grid once, and the
// reference cell repeatedly.
func TestJobFileGivesItsGrid(t *testing.T) {
	for _, g := range []Grid{smallGrid(), DefaultGrid("/dev/nvme0n1")} {
		cells, left := Cells([]*File{parse(t, pretend(t, jobFile(t, g)))})
		if len(left) != 0 {
			t.Fatalf("left out %v", left)
		}
		type point struct {
			engine string
			chunk  units.Bytes
			depth  int
		}
		got := map[point]int{}
		references := map[point]int{}
		for _, c := range cells {
			p := point{c.FioEngine, c.Chunk, c.Depth}
			if c.Reference {
				references[p]++
				continue
			}
			got[p]++
		}
		for _, engine := range g.Engines {
			for _, chunk := range g.Chunks {
				for _, depth := range g.Depths {
					p := point{engine, chunk, depth}
					if got[p] != 1 {
						t.Errorf("%v is measured %d times", p, got[p])
					}
					delete(got, p)
				}
			}
		}
		if len(got) != 0 {
			t.Errorf("also measured: %v", got)
		}
		if n := references[point{g.Engines[0], 16384, 16}]; len(references) != 1 || n < 3 {
			t.Errorf("references %v", references)
		}
		if first, last := cells[0], cells[len(cells)-1]; !first.Reference || !last.Reference {
			t.Error("the reference cell is not measured first and last")
		}
		if _, n := Drift(cells); n < 4 {
			t.Errorf("drift of %d measurements", n)
		}
	}
}

func TestJobFileOnlyReads(t *testing.T) {
	text := jobFile(t, smallGrid())
	list := sections(t, text)
	g := list[0].options
	for name, want := range map[string]string{"rw": "randread", "direct": "1", "size": "67108864",
		"filename": `/data/a b\:c.bin`, "runtime": "1000ms", "ramp_time": "100ms",
		"randseed": "7", "group_reporting": "1", "time_based": "1", "norandommap": "0"} {
		if g[name] != want {
			t.Errorf("%s=%s, want %s", name, g[name], want)
		}
	}
	names := map[string]bool{}
	for _, s := range list[1:] {
		if _, ok := s.options["stonewall"]; !ok || s.options["rw"] != "" || names[s.name] {
			t.Errorf("[%s] %v", s.name, s.options)
		}
		names[s.name] = true
		if s.options["ioengine"] == "psync" && s.options["iodepth"] != "1" ||
			s.options["ioengine"] != "psync" && s.options["numjobs"] != "1" {
			t.Errorf("[%s] %v", s.name, s.options)
		}
	}
	for _, want := range []string{"--readonly", "--output-format=json+", "WRITES",
		`--filename='/data/a b\:c.bin' --size=67108864`} {
		if !strings.Contains(text, want) {
			t.Errorf("the comment does not say %s", want)
		}
	}
	if text := jobFile(t, DefaultGrid("/dev/sdx")); strings.Contains(text, "--rw=write") {
		t.Error("the comment advises to overwrite a device")
	}
}

func TestJobFileOrder(t *testing.T) {
	g := smallGrid()
	first, again := jobFile(t, g), jobFile(t, g)
	if first != again {
		t.Error("the same grid gives two job files")
	}
	order := func(g Grid) (names []string) {
		for _, p := range g.plans() {
			names = append(names, p.name)
		}
		return names
	}
	other := g
	other.Seed++
	if strings.Join(order(g), " ") == strings.Join(order(other), " ") {
		t.Error("the seed does not change the order")
	}
	twice := g
	twice.Chunks = append(twice.Chunks, twice.Chunks...)
	if first != jobFile(t, twice) {
		t.Error("a chunk that is given twice is measured twice")
	}
}

func TestGridsThatFioCannotRun(t *testing.T) {
	for want, change := range map[string]func(*Grid){
		"no file":          func(g *Grid) { g.File = "" },
		"control":          func(g *Grid) { g.File = "a\nrw=write" },
		"with $":           func(g *Grid) { g.File = "$HOME/x" },
		"blanks":           func(g *Grid) { g.File = " x" },
		"no chunks":        func(g *Grid) { g.Chunks = nil },
		"no depths":        func(g *Grid) { g.Depths = nil },
		"512 B to 1 GiB":   func(g *Grid) { g.Chunks = []units.Bytes{0} },
		"whole sectors":    func(g *Grid) { g.Chunks = []units.Bytes{5000} },
		"depth 0":          func(g *Grid) { g.Depths = []int{0, 4} },
		"holds no chunk":   func(g *Grid) { g.Size = 4096 },
		"a millisecond":    func(g *Grid) { g.Runtime = 1 },
		`engine "mmap"`:    func(g *Grid) { g.Engines = []string{"mmap"} },
		`engine "rbd"`:     func(g *Grid) { g.Engines = []string{"psync", "rbd"} },
		"fio runs at most": func(g *Grid) { g.Depths = []int{2048} },
		"is too large":     func(g *Grid) { g.Depths = []int{1 << 40} },
	} {
		g := smallGrid()
		change(&g)
		var b strings.Builder
		if err := WriteJob(&b, g); !errors.Is(err, ErrGrid) || !strings.Contains(err.Error(),
			want) || b.Len() != 0 {
			t.Errorf("want %q: %v, %d bytes written", want, err, b.Len())
		}
	}
}

// TestFioTakesTheJobFile lets fio parse the job file, where fio is installed.
func TestFioTakesTheJobFile(t *testing.T) {
	program, err := exec.LookPath("fio")
	if err != nil {
		t.Skip("no fio here")
	}
	for i, g := range []Grid{smallGrid(), DefaultGrid("/data/fio.bin")} {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.fio", i))
		if err := os.WriteFile(path, []byte(jobFile(t, g)), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program, "--parse-only", "--readonly",
			path).CombinedOutput(); err != nil || strings.Contains(string(out), "fio:") {
			t.Errorf("%v\n%s", err, out)
		}
	}
}
