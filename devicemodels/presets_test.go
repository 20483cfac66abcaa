package devicemodels

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/reference"
	"github.com/windrow-sim/windrow/internal/units"
)

var update = flag.Bool("update", false, "rewrite the fitted numbers of the presets")

func TestPresets(t *testing.T) {
	want := []string{
		"crucial-t700-pcie5", "emmc-64gb-sige5", "h200-host", "intel-p4610-pcie3",
		"intel-p5800x-pcie4", "jetson-orin-990pro", "m1-max", "m1-max-metal",
		"m2-ultra",
		"rtx4090-linux", "samsung-860pro-sata", "ufs31-8plusgen1", "ufs40-8gen3",
	}
	names := Presets()
	if !slices.Equal(names, want) {
		t.Errorf("presets are %v, want %v", names, want)
	}
	for _, name := range names {
		d := preset(t, name)
		if d.Name != name {
			t.Errorf("preset %q is named %q", name, d.Name)
		}
		sourced(t, d)
		for name, cost := range d.Flash.Engines {
			row, known := ioengine.Find(name)
			if !known || cost.Submit > 0 && cost.Serial != row.Serial || cost.Cached != row.Cached {
				t.Errorf("preset %q: engine %s with %+v, the table has %+v", d.Name, name, cost,
					row)
			}
		}
		again := preset(t, name)
		again.Flash.Servers++
		if d.Flash.Servers == again.Flash.Servers {
			t.Errorf("two copies of %q share memory", name)
		}
	}
}

func preset(t *testing.T, name string) *Device {
	t.Helper()
	d, err := Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sourced fails when a nonzero number of a preset, or a cell, has no source of its own.
func sourced(t *testing.T, d *Device) {
	t.Helper()
	f, h := &d.Flash, &d.Host
	given := map[string]bool{
		"flash.servers": true, "flash.ltfb": f.LTFB > 0, "flash.server_rate": true,
		"flash.link_rate": f.LinkRate > 0, "flash.align": true,
		"flash.max_iops": f.MaxIOPS > 0, "flash.placement": f.Placement != "",
		"flash.max_transfer": f.MaxTransfer > 0,
		"flash.queue_depth":  f.QueueDepth > 0, "flash.spans": len(f.Spans) > 0,
		"host.cores": h.Cores > 0, "host.memory_rate": h.MemoryRate > 0,
		"host.dense_rate": h.DenseRate > 0,
		"host.row_rate":   h.RowRate > 0, "host.copy_rate": h.CopyRate > 0,
		"host.kv_rate": h.KVRate > 0, "host.copy_fixed": h.CopyFixed > 0,
		"host.precision": h.Precision != "", "host.resident_rows": h.ResidentRows,
		"host.accelerator": h.Accelerator,
	}
	for name := range f.Engines {
		given["flash.engines."+name] = d.Sources["flash.engines"] == ""
	}
	for field, set := range given {
		if set && d.Sources[field] == "" {
			t.Errorf("%s: %s has no source", d.Name, field)
		}
	}
	for i, c := range d.Fit.Cells {
		if c.Source == "" || c.Quality == "" {
			t.Errorf("%s: fit.cells[%d] has no source or no quality", d.Name, i)
		}
	}
	if d.Fit.Unfitted == "" && (d.Fit.LeaveOneOutPct == nil || d.Fit.IntervalPct == nil) {
		t.Errorf("%s: a fit without a leave-one-out error or an interval", d.Name)
	}
	if d.Fit.Unfitted != "" && d.Fit.LeaveOneOutPct != nil {
		t.Errorf("%s: is not fitted, but states how good its fit is", d.Name)
	}
	if d.Fit.Unfitted != "" && d.Fit.IntervalPct != nil && d.Sources["fit.interval_percent"] == "" {
		t.Errorf("%s: is not fitted, and its interval has no source", d.Name)
	}
	if d.Fit.HostPct != nil && d.Sources["fit.host_interval_percent"] == "" {
		t.Errorf("%s: the interval of the host has no source", d.Name)
	}
}

// TestPresetsAreFitsOfTheirCells repeats every fit, and every model of a cell, and compares them
// with the files. With -update it rewrites their numbers and nothing else.
func TestPresetsAreFitsOfTheirCells(t *testing.T) {
	for _, name := range Presets() {
		t.Run(name, func(t *testing.T) {
			d := preset(t, name)
			want := *d
			if d.Fit.Unfitted == "" {
				spec, fit, err := refit(d)
				if err != nil {
					t.Fatal(err)
				}
				want.Flash, want.Fit = spec, &fit
			} else {
				fit := *d.Fit
				fit.Cells = slices.Clone(fit.Cells)
				for i := range fit.Cells {
					c := &fit.Cells[i]
					c.Model = d.Flash.Throughput(c.Engine, d.Host.Cores, c.Chunk, c.Depth)
				}
				fit.MeanAbsPct, fit.WorstAbsPct = cleanErrors(fit.Cells)
				want.Fit = &fit
			}
			want.Fit.Warnings = d.Fit.Warnings // those of the files say more
			want.Fit.HostPct = d.Fit.HostPct   // no cell is of the host
			if *update {
				rewrite(t, name, &want)
				return
			}
			// Another processor may round the last digit of a fit otherwise.
			near := cmp.Comparer(func(a, b float64) bool {
				return math.Abs(a-b) <= 1e-3*max(math.Abs(a), math.Abs(b))+2e-3
			})
			rates := cmp.Comparer(func(a, b units.Rate) bool {
				return math.Abs(float64(a-b)) <= 1e-3*float64(max(a, b))
			})
			times := cmp.Comparer(func(a, b units.Nanos) bool {
				return math.Abs(float64(a-b)) <= 1e-3*float64(max(a, b))
			})
			if diff := cmp.Diff(d, &want, near, rates, times); diff != "" {
				t.Errorf("the file is not what its cells give (-file +fit); go test "+
					"./devicemodels -run FitsOfTheirCells -update writes it:\n%s", diff)
			}
		})
	}
}

// cleanErrors returns the mean and the largest error of the cells that are not tainted.
func cleanErrors(cells []Cell) (mean, worst float64) {
	n := 0
	for _, c := range cells {
		if c.Tainted == "" {
			off := 100 * math.Abs(float64(c.Model)/float64(c.Rate)-1)
			mean, worst, n = mean+off, max(worst, off), n+1
		}
	}
	return round3(mean / float64(max(n, 1))), round3(worst)
}

// rewrite puts the numbers of d into the file of a preset and changes nothing else.
func rewrite(t *testing.T, name string, d *Device) {
	t.Helper()
	path := filepath.Join(presetFolder, name+".yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	text := func(v interface{ MarshalText() ([]byte, error) }) string {
		s, _ := v.MarshalText() // cannot fail
		return string(s)
	}
	f, fit := &d.Flash, d.Fit
	place := func(p flash.Placement) string {
		if p == "" {
			return string(flash.PlaceAny)
		}
		return string(p)
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	values := map[string]string{"fit.mean_abs_percent": number(fit.MeanAbsPct),
		"fit.worst_abs_percent": number(fit.WorstAbsPct)}
	for i, c := range fit.Cells {
		values[fmt.Sprintf("fit.cells.%d.model", i)] = text(units.Rate(digits4(float64(c.Model))))
	}
	if fit.Unfitted == "" {
		for path, value := range map[string]string{
			"flash.servers": strconv.Itoa(f.Servers), "flash.placement": place(f.Placement),
			"flash.ltfb":        text(f.LTFB),
			"flash.server_rate": text(f.ServerRate), "flash.link_rate": text(f.LinkRate),
			"fit.chunk_min": text(fit.ChunkMin), "fit.chunk_max": text(fit.ChunkMax),
			"fit.depth_min":             strconv.Itoa(fit.DepthMin),
			"fit.depth_max":             strconv.Itoa(fit.DepthMax),
			"fit.leave_one_out_percent": number(*fit.LeaveOneOutPct),
			"fit.interval_percent":      number(*fit.IntervalPct),
		} {
			values[path] = value
		}
		if f.MaxIOPS != 0 || find(doc.Content[0], "flash.max_iops") != nil {
			values["flash.max_iops"] = strconv.FormatInt(f.MaxIOPS, 10)
		}
	}
	lines := bytes.Split(data, []byte("\n"))
	for path, value := range values {
		n := find(doc.Content[0], path)
		if n == nil {
			t.Fatalf("%s: give %s a value, for example %s", name, path, value)
		}
		line, at := lines[n.Line-1], n.Column-1
		lines[n.Line-1] = slices.Concat(line[:at], []byte(value), line[at+len(n.Value):])
		shift(&doc, n, len(value)-len(n.Value))
	}
	if err := os.WriteFile(path, bytes.Join(lines, []byte("\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// find returns the node under a dotted path; nil when there is none.
func find(n *yaml.Node, path string) *yaml.Node {
	for key := range strings.SplitSeq(path, ".") {
		var next *yaml.Node
		if i, err := strconv.Atoi(key); err == nil && n.Kind == yaml.SequenceNode {
			next = n.Content[i]
		}
		for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				next = n.Content[i+1]
			}
		}
		if next == nil {
			return nil
		}
		n = next
	}
	return n
}

// shift moves the nodes behind a rewritten node of the same line.
func shift(n, rewritten *yaml.Node, by int) {
	if n.Line == rewritten.Line && n.Column > rewritten.Column {
		n.Column += by
	}
	for _, child := range n.Content {
		shift(child, rewritten, by)
	}
}

// TestPresetsPassTheirCheck does the check of "windrow device show --all --check": a fit predicts
// unseen rows within 4 % on average, and a preset without a fit gives the reason.
func TestPresetsPassTheirCheck(t *testing.T) {
	fitted := []string{"intel-p4610-pcie3", "intel-p5800x-pcie4", "m1-max", "m1-max-metal",
		"samsung-860pro-sata"}
	for _, name := range Presets() {
		r, err := Check(preset(t, name))
		if err != nil {
			t.Fatal(err)
		}
		want := CheckNotJudged
		if slices.Contains(fitted, name) {
			want = CheckPass
		}
		if r.Verdict != want {
			t.Errorf("%s: %s, want %s: %s", name, r.Verdict, want, r.Reason)
		}
		if want == CheckPass && (r.Clean < 4 || !(*r.LeaveOneOutPct > 0 &&
			*r.LeaveOneOutPct <= 4)) {
			t.Errorf("%s passes with %d cells and %.3g %%", name, r.Clean, *r.LeaveOneOutPct)
		}
		if want == CheckNotJudged && r.Reason == "" {
			t.Errorf("%s is not judged, without a reason", name)
		}
	}
}

// TestM1Max compares the preset of the paper's main machine with the paper's rates.
func TestM1Max(t *testing.T) {
	d := preset(t, "m1-max")
	tests := []struct {
		name  string
		chunk units.Bytes
		depth int
		want  float64 // GB/s
	}{
		{"rows", 8 * units.KiB, 32, 1.25},
		{"bundles", 16 * units.KiB, 32, 2.25},
		{"bundles of Falcon-7B in fp32", 36352, 32, 4.07},
		{"sequential, one thread", units.GiB, 1, 6.10},
		{"sequential, all threads", units.GiB, 32, 6.10},
	}
	for _, tt := range tests {
		got := float64(d.Flash.Throughput("pread", d.Host.Cores, tt.chunk, tt.depth)) / 1e9
		if math.Abs(got/tt.want-1) > 0.05 {
			t.Errorf("%s: %v at depth %d is %.3g GB/s, published %.3g", tt.name, tt.chunk, tt.depth,
				got, tt.want)
		}
	}
}

// The presets from rows of testdata/random_read.csv, a part of the published table, by the
// beginning of the rows' device names.
var presetRows = map[string]string{
	"emmc-64gb-sige5": "eMMC 64GB", "intel-p4610-pcie3": "Intel P4610",
	"intel-p5800x-pcie4": "Intel Optane P5800X", "m1-max": "Apple M1 Max",
	"m2-ultra": "Apple M2 Ultra", "samsung-860pro-sata": "Samsung 860 PRO",
	"ufs40-8gen3": "UFS 4.0 (Snapdragon",
}

// TestPresetsHoldAllPublishedRows: every row of a device is a cell of its preset, with the
// published rate, size, quality and, where it is stated, depth. No row is left out for a bad fit.
func TestPresetsHoldAllPublishedRows(t *testing.T) {
	rows := readRows(t, "testdata/random_read.csv")
	total := 0
	for name, device := range presetRows {
		cells := preset(t, name).Fit.Cells
		for _, row := range rows {
			if !strings.HasPrefix(row["device"], device) {
				continue
			}
			total++
			rate, err := strconv.ParseFloat(row["throughput_MBps"], 64)
			if err != nil {
				t.Fatal(err)
			}
			depth := atoi(t, row["queue_depth"], 0) * atoi(t, row["jobs_or_threads"], 1)
			i := slices.IndexFunc(cells, func(c Cell) bool {
				return math.Abs(float64(c.Rate)-rate*1e6) < 1 && (row["block_bytes"] == "" ||
					atoi(t, row["block_bytes"], 0) == int(c.Chunk)) &&
					(depth == 0 || depth == c.Depth) && c.Quality == row["quality"]
			})
			if i < 0 {
				t.Errorf("%s: no cell for the row %v", name, row)
				continue
			}
			cells = slices.Delete(slices.Clone(cells), i, i+1)
		}
	}
	if total != len(rows) {
		t.Errorf("%d of %d rows belong to a preset", total, len(rows))
	}
}

// TestRowsAreThePublishedOnes compares the fixture with the whole table, where it is available.
func TestRowsAreThePublishedOnes(t *testing.T) {
	whole, err := os.ReadFile(reference.Path(t, "devices", "random_read.csv"))
	if err != nil {
		t.Fatal(err)
	}
	part, err := os.ReadFile("testdata/random_read.csv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(part)) {
		if !strings.Contains(string(whole), line) {
			t.Errorf("not a line of the table: %s", line)
		}
	}
}

func readRows(t *testing.T, path string) (rows []map[string]string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range all[1:] {
		row := map[string]string{}
		for i, key := range all[0] {
			row[key] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func atoi(t *testing.T, s string, empty int) int {
	t.Helper()
	if s == "" {
		return empty
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestUnknownPresetNamesTheNearest(t *testing.T) {
	_, err := Preset("m1max")
	if err == nil || !strings.Contains(err.Error(), `"m1-max"`) {
		t.Errorf("error %v does not suggest m1-max", err)
	}
	if _, err := Preset("../device"); err == nil {
		t.Error("a preset outside the folder was read")
	}
}
