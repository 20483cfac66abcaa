package devicemodels

import (
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

func TestPresets(t *testing.T) {
	names := Presets()
	for _, want := range []string{
		"emmc-64gb-sige5", "intel-p4610-pcie3", "intel-p5800x-pcie4", "jetson-orin-990pro", "m1-max",
		"rtx4090-linux", "samsung-860pro-sata", "ufs40-8gen3",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("no preset %q in %v", want, names)
		}
	}
	for _, name := range names {
		d, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		if d.Name != name {
			t.Errorf("preset %q is named %q", name, d.Name)
		}
		sourced(t, d)
		again, _ := Preset(name)
		again.Flash.Servers++
		if d.Flash.Servers == again.Flash.Servers {
			t.Errorf("two copies of %q share memory", name)
		}
	}
}

// sourced fails when a number of a preset that is not 0 has no source of its own.
func sourced(t *testing.T, d *Device) {
	t.Helper()
	given := map[string]bool{
		"flash.servers": true, "flash.ltfb": d.Flash.LTFB > 0, "flash.server_rate": d.Flash.ServerRate > 0,
		"flash.link_rate": d.Flash.LinkRate > 0, "flash.max_iops": d.Flash.MaxIOPS > 0,
		"host.cores": d.Host.Cores > 0, "host.memory_rate": d.Host.MemoryRate > 0, "host.dense_rate": d.Host.DenseRate > 0,
		"host.row_rate": d.Host.RowRate > 0, "host.copy_rate": d.Host.CopyRate > 0, "host.kv_rate": d.Host.KVRate > 0,
	}
	for field, set := range given {
		if set && d.Sources[field] == "" {
			t.Errorf("%s: %s has no source", d.Name, field)
		}
	}
}

// TestPresetsReproduceTheirPoints holds every preset to the error it states, on the published points in testdata/points.csv.
func TestPresetsReproduceTheirPoints(t *testing.T) {
	off := pointErrors(t)
	for _, name := range Presets() {
		d, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(off[name]) == 0 {
			t.Errorf("%s has no points", name)
			continue
		}
		var mean, worst float64
		for _, percent := range off[name] {
			mean += percent / float64(len(off[name]))
			worst = max(worst, percent)
		}
		if math.Abs(mean-d.Fit.MeanAbsPct) > 0.05 || math.Abs(worst-d.Fit.WorstAbsPct) > 0.05 {
			t.Errorf("%s is %.3f %% off its points, %.3f %% at worst, but states %.3f and %.3f",
				name, mean, worst, d.Fit.MeanAbsPct, d.Fit.WorstAbsPct)
		}
		if worst > 30 {
			t.Errorf("%s is %.3g %% off one of its points", name, worst)
		}
	}
}

func pointErrors(t *testing.T) map[string][]float64 {
	t.Helper()
	file, err := os.Open("testdata/points.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	off := map[string][]float64{}
	for _, row := range rows[1:] {
		d, err := Preset(row[0])
		if err != nil {
			t.Fatal(err)
		}
		chunk, errChunk := strconv.ParseInt(row[2], 10, 64)
		depth, errDepth := strconv.Atoi(row[3])
		want, errRate := strconv.ParseFloat(row[4], 64)
		if errChunk != nil || errDepth != nil || errRate != nil {
			t.Fatalf("bad row %v", row)
		}
		if units.Bytes(chunk) < d.Fit.ChunkMin || units.Bytes(chunk) > d.Fit.ChunkMax || depth < d.Fit.DepthMin || depth > d.Fit.DepthMax {
			t.Errorf("%s states a range that leaves out its own point %v", row[0], row)
		}
		got := float64(d.Flash.Throughput(row[1], d.Host.Cores, units.Bytes(chunk), depth)) / 1e6
		off[row[0]] = append(off[row[0]], 100*math.Abs(got/want-1))
	}
	return off
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
