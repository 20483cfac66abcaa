package devicemodels

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

// sample is a device with every field set, so that a round trip shows every lost field.
func sample() *Device {
	return &Device{
		Version: "1", Name: "bench", Source: "made up", Sources: map[string]string{
			"flash.ltfb": "made up", "host": "made up", "gpu": "made up",
			"gpu.dense_rate": "made up"},
		Flash: known(),
		Host: Host{
			Cores: 2, Precision: "f16", ResidentRows: true, Accelerator: true,
			MemoryRate: 20_123_456_789, DenseRate: 16 * units.GBps, DenseFixed: 3 *
				units.Microsecond,
			RowRate: 12 * units.GBps, RowFixed: 1234, CopyRate: 8 * units.GBps, CopyFixed: 55,
			KVRate:     9 * units.GBps,
			LayerFixed: 10 * units.Microsecond, TokenFixed: 1 * units.Millisecond,
			DecideFixed: 700, DecideUnit: 9,
			Precisions: map[string]Precision{"f32": {DenseRate: 18 * units.GBps, RowRate: 13 *
				units.GBps}, "q8": {RowRate: 7_654_321_000}},
			ComputeGFLOPS: 123.5, PredictorRate: 14 * units.GBps, TransferRate: 25 * units.GBps,
			TransferFixed: 8 * units.Microsecond,
			SyncFixed:     4321, HeldRate: 900 * units.GBps, IOContention: 1.75,
		},
		GPU:        sampleGPU(),
		Calibrated: []Calibration{{Term: "host.copy_rate", Rows: []string{"a", "b"}}},
		Fit: &Fit{
			When: "2025-03-01T12:00:00Z", Mode: "pread direct ext4", ChunkMin: 4096,
			ChunkMax: 262144, DepthMin: 1, DepthMax: 32,
			MeanAbsPct: 1.25, WorstAbsPct: 4.5, DriftPct: 0.125, Warnings: []string{"one: two"},
			Cells: []Cell{{Engine: "pread", Chunk: 4096, Depth: 1, Reads: 10, Rate: 41_234_567,
				Model: 41 * units.MBps,
				P50:   98_765, P99: 1_234_567, Tainted: "page cache"}},
		},
	}
}

const minimal = `version: "1"
name: tiny
source: test
flash:
  servers: 1
  ltfb: 80us
  server_rate: 0B/s
  link_rate: 7.0GB/s
  align: 4KiB
  engines:
    pread: {batch: 0ns, submit: 1us, complete: 1us}
`

func TestSaveThenLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench.device.yaml")
	want := sample()
	if err := Save(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the device changed on its way through the file (-saved +loaded):\n%s", diff)
	}
	a, _ := Marshal(want)
	b, _ := Marshal(got)
	if !bytes.Equal(a, b) {
		t.Error("equal devices have different files")
	}
}

func TestSaveLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "bench.device.yaml")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := sample()
	broken.Flash.Servers = 0
	if err := Save(path, broken); !errors.Is(err, ErrFormat) {
		t.Errorf("an invalid device was saved: %v", err)
	}
	if old, _ := os.ReadFile(path); string(old) != "old" {
		t.Errorf("a failed save changed the file to %q", old)
	}
	if err := Save(path, sample()); err != nil {
		t.Fatal(err)
	}
	// To rename a file over a folder fails after all other steps succeeded.
	if err := Save(dir, sample()); err == nil {
		t.Error("saving over a folder succeeded")
	}
	parent, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".device-*"))
	inside, _ := os.ReadDir(dir)
	if len(parent) != 0 || len(inside) != 1 {
		t.Errorf("temporary files are left: %v %v", parent, inside)
	}
}

func TestParseRefuses(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(minimal, old) {
			t.Fatalf("%q is not in the sample", old)
		}
		return strings.Replace(minimal, old, new, 1)
	}
	tests := []struct {
		name, data string
		want       []string
	}{
		{"empty", "", []string{"is empty"}},
		{"not YAML", "a: [", []string{"line 1"}},
		{"a list", "- 1\n", []string{"x.yaml:1", "not a mapping"}},
		{"two documents", minimal + "---\n" + minimal, []string{"more than one document"}},
		{"misspelt key", replace("ltfb", "ltbf"), []string{"x.yaml:6", "flash",
			`unknown key "ltbf"`, `"ltfb"`}},
		{"key of nothing", replace("name: tiny", "name: tiny\ncolour: red"), []string{"x.yaml:3",
			`"colour"`, "known keys are version, name"}},
		{"case differs", replace("name:", "Name:"), []string{`unknown key "Name"`, `"name"`}},
		{"key twice", replace("align: 4KiB", "align: 4KiB\n  servers: 2"), []string{"x.yaml:10",
			`"servers" is already given on line 5`}},
		{"engine twice", minimal + "    pread: {batch: 0ns, submit: 1us, complete: 1us}\n",
			[]string{"x.yaml:12", "already given on line 11"}},
		{"no such unit", replace("80us", "80 parsecs"), []string{"x.yaml:6", "flash.ltfb",
			"80 parsecs"}},
		{"wrong unit", replace("80us", "80MB/s"), []string{"x.yaml:6", "flash.ltfb"}},
		{"null", replace("80us", ""), []string{"x.yaml:6", "flash.ltfb"}},
		{"text for a number", replace("servers: 1", "servers: many"), []string{"x.yaml:5",
			"flash.servers", "many"}},
		{"a list for a value", replace("80us", "[80us]"), []string{"x.yaml:6", "flash.ltfb",
			"one value"}},
		{"a value for a mapping", replace("{batch: 0ns, submit: 1us, complete: 1us}", "1us"),
			[]string{"x.yaml:11", "flash.engines.pread"}},
		{"an alias", replace("name: tiny", "name: &n tiny"), []string{"x.yaml:2", "aliases"}},
		{"other version", replace(`"1"`, `"2"`), []string{`version: "2"`, "reads 1"}},
		{"no servers", replace("servers: 1", "servers: 0"), []string{"flash.servers: 0"}},
		{"odd alignment", replace("4KiB", "4000B"), []string{"flash.align", "power of two"}},
		{"source of nothing", replace("source: test", "source: test\nsources: {flash.ltbf: x}"),
			[]string{"flash.ltbf", `"ltfb"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(tt.data))
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v is not ErrFormat", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
	if _, err := Parse("x.yaml", []byte(minimal)); err != nil {
		t.Errorf("the unchanged sample is refused: %v", err)
	}
}

// TestField_H5_UnitsAreMandatory: 7000 could be GB, GiB or Gbit, and GB and GiB differ by 7 %.
func TestField_H5_UnitsAreMandatory(t *testing.T) {
	rates := map[string]units.Rate{}
	for _, text := range []string{"7.0GB/s", "7.0GiB/s", "7Gb/s"} {
		d, err := Parse("x.yaml", []byte(strings.Replace(minimal, "7.0GB/s", text, 1)))
		if err != nil {
			t.Fatal(err)
		}
		rates[text] = d.Flash.LinkRate
	}
	if rates["7.0GB/s"] != 7e9 || rates["7.0GiB/s"] != 7<<30 || rates["7Gb/s"] != 875e6 {
		t.Errorf("rates = %v", rates)
	}
	if rates["7.0GB/s"].String() == rates["7.0GiB/s"].String() {
		t.Errorf("GB and GiB print alike: %v", rates["7.0GB/s"])
	}
	for _, bare := range []string{"7000", "7e9", "0", "7000000000"} {
		_, err := Parse("x.yaml", []byte(strings.Replace(minimal, "7.0GB/s", bare, 1)))
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(),
			"x.yaml:8: flash.link_rate") || !strings.Contains(err.Error(), "no unit") {
			t.Errorf("%q: error %v, want one that names line 8, the field and the missing unit",
				bare, err)
		}
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	d := sample()
	d.Name, d.Flash.LTFB, d.Flash.Align = "", -5, 3
	d.Flash.Engines["pread"] = flash.EngineCost{Submit: -1}
	d.Host.Cores, d.Host.KVRate = 0, -1
	d.Fit.When, d.Fit.ChunkMax, d.Fit.Cells[0].Depth = "yesterday", 1, 0
	err := d.Validate()
	if !errors.Is(err, ErrFormat) {
		t.Fatalf("error %v is not ErrFormat", err)
	}
	for _, want := range []string{
		`name: ""`, "flash.ltfb: -5ns", "flash.align: 3B", "flash.engines.pread.submit: -1ns",
		"host.cores: 0",
		"host.kv_rate: -1B/s", `fit.when: "yesterday"`, "fit.chunk_max: 1B",
		"fit.cells[0].depth: 0",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 9 {
		t.Errorf("%d faults are reported, 9 were made:\n%v", n, err)
	}
}

func TestLoadOfAMissingFile(t *testing.T) {
	_, err := Load(t.Context(), filepath.Join(t.TempDir(), "none.yaml"))
	if !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrFormat) {
		t.Errorf("error = %v", err)
	}
}

// FuzzParse: no input panics, and accepted input survives a round trip.
func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	if full, err := Marshal(sample()); err == nil {
		f.Add(full)
	}
	for _, seed := range []string{"", "{}", "a: &a [*a]", "flash: {engines: {'': {}}}",
		"version: 1\nfit: ~", "fit: {mean_abs_percent: .nan}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse("x.yaml", data)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		text, err := Marshal(d)
		if err != nil {
			t.Fatalf("a parsed device cannot be written: %v", err)
		}
		again, err := Parse("again.yaml", text)
		if err != nil {
			t.Fatalf("a written device cannot be read: %v\n%s", err, text)
		}
		a, _ := Marshal(again)
		if !bytes.Equal(a, text) {
			t.Fatalf("the second file differs:\n%s\n%s", text, a)
		}
	})
}

func TestFieldType(t *testing.T) {
	device := reflect.TypeFor[Device]()
	for path, want := range map[string]bool{
		"flash": true, "flash.ltfb": true, "flash.engines.any name.submit": true,
		"fit.drift_percent": true,
		"flash.LTFB":        false, "name.x": false, "": false, "flash.": false,
	} {
		if got, _, _ := fieldType(device, path); (got != nil) != want {
			t.Errorf("fieldType(%q) = %v", path, got)
		}
	}
}

// known is a device with every part that a file can hold.
func known() flash.Spec {
	f := flash.Spec{
		Servers: 8, Placement: flash.PlaceByAddress, Stripe: 16 * units.KiB,
		LTFB: 80 * units.Microsecond, ServerRate: 400 * units.MBps, LinkRate: 2 * units.GBps,
		MaxIOPS: 90_000, QueueDepth: 32, Align: 4096, Page: 4096, MaxTransfer: 128 * units.KiB,
		Limit: &flash.Limit{Rate: 200 * units.MBps, IOPS: 3000, Interval: 100 *
			units.Millisecond, Burst: 20 * units.MiB},
		Spans: []flash.Span{{Within: 128 * units.MiB, MaxIOPS: 240_000}, {MaxIOPS: 110_000,
			ExtraLTFB: 4 * units.Microsecond}},
		Sustained: &flash.Sustained{Cliff: 60 * units.Second, Factor: 0.6, Cool: 120 *
			units.Second},
		Background: &flash.Background{Rate: 10 * units.MBps, Chunk: 64 * units.KiB},
		PageCache: &flash.PageCache{Capacity: units.GiB, ReadAhead: 128 * units.KiB, Fault: 3 *
			units.Microsecond, HitRate: 8 * units.GBps, Advice: flash.AdviseSequential, Threads: 4,
			Map: 700, ReclaimRate: 5 * units.GBps},
		Engines: map[string]flash.EngineCost{
			"pread": {Submit: 4 * units.Microsecond, Complete: 6 * units.Microsecond},
			"uring": {Submit: 1 * units.Microsecond, Complete: 1 * units.Microsecond, Serial: true},
			"mmap":  {Submit: 500, Cached: true},
		},
	}
	for _, at := range []units.Nanos{60_000, 75_000, 80_000, 300_000} {
		f.LTFBShape.Add(at, 3)
	}
	return f
}
