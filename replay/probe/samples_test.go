package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// interrupted runs a probe that is cancelled a few batches after its fourth loop.
func interrupted(t *testing.T, cfg Config) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f := newFake(t, nvme())
	stop := -1
	cfg.Progress = func(stage string, done, _ int) {
		if stage == "flash" && done == 4 {
			stop = f.batches + 3
		}
	}
	f.onBatch = func() error {
		if f.batches == stop {
			cancel()
		}
		return nil
	}
	if _, err := run(ctx, cfg, f.machine()); !errors.Is(err, context.Canceled) {
		t.Fatalf("error = %v", err)
	}
}

// linesOf returns the whole lines of a file of samples.
func linesOf(t testing.TB, path string) (list []sampleLine) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text := range bytes.Lines(data) {
		var l sampleLine
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatalf("line %q: %v", text, err)
		}
		list = append(list, l)
	}
	return list
}

// cells returns the loops of the cells in a file of samples, in order of time.
func cells(t *testing.T, path string) (list []loop) {
	for _, l := range linesOf(t, path) {
		if l.Cell != nil && l.Cell.Kind == kindCell {
			list = append(list, l.Cell.loop)
		}
	}
	return list
}

func sampled(t testing.TB) Config {
	cfg := config(t)
	cfg.Samples = filepath.Join(t.TempDir(), "probe.samples.jsonl")
	return cfg
}

func TestSamplesHoldEveryBatch(t *testing.T) {
	f, cfg := newFake(t, nvme()), sampled(t)
	d, err := run(context.Background(), cfg, f.machine())
	if err != nil {
		t.Fatal(err)
	}
	list := linesOf(t, cfg.Samples)
	if h := list[0].Header; h == nil || h.Path != cfg.Path || h.Seed != cfg.Seed ||
		h.Size != 64*units.MiB || h.Mode != "pread direct ext4" {
		t.Errorf("header %+v", list[0].Header)
	}
	reads, sum := map[loop]int{}, map[loop]units.Nanos{}
	measured := 0
	for _, l := range list[1:] {
		switch {
		case l.Batch != nil:
			b := l.Batch
			if b.Took <= 0 || b.Served != int64(b.Reads)*int64(b.Chunk) ||
				b.CPU != units.Nanos(b.Reads)*2*units.Microsecond {
				t.Errorf("batch %+v", *b)
			}
			reads[b.loop] += b.Reads
			sum[b.loop] += b.Took
		case l.Cell != nil && l.Cell.Kind == kindCell:
			c := l.Cell
			measured++
			if c.Reads != reads[c.loop] || c.Times.Total() != int64(c.Reads) {
				t.Errorf("%+v: %d reads in batches, %d timed", c.loop, reads[c.loop],
					c.Times.Total())
			}
			// Steady on a machine of clockwork: the rate is that of the batches, but for their
			// beginnings and ends.
			if mean := (units.Bytes(c.Reads) * c.Chunk).Over(sum[c.loop]); math.Abs(
				float64(c.Rate)/float64(mean)-1) > 0.02 {
				t.Errorf("%+v: %v in batches, %v in the cell", c.loop, mean, c.Rate)
			}
		}
	}
	if measured != len(d.Fit.Cells) {
		t.Errorf("%d cells in the samples, %d in the device", measured, len(d.Fit.Cells))
	}
}

func TestInterruptedProbeGoesOn(t *testing.T) {
	cfg := sampled(t)
	interrupted(t, cfg)
	before := cells(t, cfg.Samples)
	if len(before) == 0 || len(before) >= 9 {
		t.Fatalf("%d cells before the interruption", len(before))
	}
	// A power cut leaves half a line.
	f, err := os.OpenFile(cfg.Samples, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"cell":{"kind":"cell","eng`)
	f.Close()

	cfg.Resume = true
	again := newFake(t, nvme())
	d, err := run(context.Background(), cfg, again.machine())
	if err != nil {
		t.Fatal(err)
	}
	after := cells(t, cfg.Samples) // every line is whole again
	if len(after) != 9 || len(d.Fit.Cells) != 9 || !slices.Equal(after[:len(before)], before) {
		t.Errorf("cells %v, then %v", before, after)
	}
	seen := map[loop]bool{}
	for _, l := range after {
		if seen[l] {
			t.Errorf("%+v was measured twice", l)
		}
		seen[l] = true
	}
	// All is there now: a third run measures the host, and of the flash only whether it is one.
	third := newFake(t, nvme())
	whole, err := run(context.Background(), cfg, third.machine())
	if err != nil {
		t.Fatal(err)
	}
	if third.batches > 1 || whole.Flash.LTFB != d.Flash.LTFB ||
		whole.Flash.Engines["pread"] != d.Flash.Engines["pread"] {
		t.Errorf("%d batches although all was measured; %+v, then %+v", third.batches, d.Flash,
			whole.Flash)
	}
}

func TestSamplesAreNotOverwritten(t *testing.T) {
	cfg := sampled(t)
	if err := os.WriteFile(cfg.Samples, []byte("my thesis\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, resume := range []bool{false, true} {
		cfg.Resume = resume
		_, err := run(context.Background(), cfg, newFake(t, nvme()).machine())
		want := "exists already"
		if resume {
			want = "line 1"
		}
		if err == nil || !strings.Contains(err.Error(), want) || !resume &&
			!errors.Is(err, fs.ErrExist) {
			t.Errorf("resume %v: %v", resume, err)
		}
	}
	if data, _ := os.ReadFile(cfg.Samples); string(data) != "my thesis\n" {
		t.Errorf("the file became %q", data)
	}
}

func TestSamplesOfAnotherProbeAreRefused(t *testing.T) {
	cfg := sampled(t)
	interrupted(t, cfg)
	before, err := os.ReadFile(cfg.Samples)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Resume = true
	for what, change := range map[string]func(*Config){
		"seed":    func(c *Config) { c.Seed++ },
		"depths":  func(c *Config) { c.Depths = []int{1, 2} },
		"engines": func(c *Config) { c.Engines = []flashio.Engine{flashio.EngineUring} },
		"file":    func(c *Config) { c.Path = image(t, 64<<20) },
	} {
		other := cfg
		change(&other)
		if _, err := run(context.Background(), other, newFake(t, nvme()).machine()); err == nil ||
			!strings.Contains(err.Error(), "probe as before") {
			t.Errorf("another %s: %v", what, err)
		}
	}
	if after, _ := os.ReadFile(cfg.Samples); !bytes.Equal(before, after) {
		t.Error("a refused file was changed")
	}
	// A line in the middle that is none is no accident of the end.
	broken := append(bytes.Clone(before[:len(before)/2]), "}{\n"...)
	if err := os.WriteFile(cfg.Samples, append(broken, before[len(before)/2:]...),
		0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := run(context.Background(), cfg, newFake(t, nvme()).machine()); err == nil ||
		!strings.Contains(err.Error(), ": line ") {
		t.Errorf("a broken line: %v", err)
	}
}

// TestSamplesOfNoProbe: numbers that no probe finds are refused, with the line. A resumed probe
// would put them into the device.
func TestSamplesOfNoProbe(t *testing.T) {
	cfg := sampled(t)
	interrupted(t, cfg)
	whole := linesOf(t, cfg.Samples)
	at := slices.IndexFunc(whole, func(l sampleLine) bool { return l.Cell != nil })
	if at < 0 {
		t.Fatal("no cell was measured")
	}
	cell := *whole[at].Cell
	changed := func(change func(r *result)) sampleLine {
		r := cell
		change(&r)
		return sampleLine{Cell: &r}
	}
	cfg.Resume = true
	for i, bad := range []sampleLine{
		changed(func(r *result) { r.Rate = -1 }), changed(func(r *result) { r.Rate = 0 }),
		changed(func(r *result) { r.Reads = 0 }), changed(func(r *result) { r.Depth = -4 }),
		changed(func(r *result) { r.RateLow = r.RateHigh + 1 }),
		{Cost: &sampleCost{Engine: "pread", Cost: -1}},
		{Limit: &limitFound{Limit: &flash.Limit{IOPS: -1}}},
		{Mapped: &mappedFound{Cold: []coldResult{{Took: -1}}}},
	} {
		text, err := json.Marshal(bad)
		if err != nil {
			t.Fatal(err)
		}
		head, err := json.Marshal(whole[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cfg.Samples, []byte(string(head)+"\n"+string(text)+"\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openSamples(cfg, *whole[0].Header); err == nil ||
			!strings.Contains(err.Error(), "line 2") {
			t.Errorf("line %d, %s: %v", i, text, err)
		}
	}
}
