package probe

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/input/inputtest"
	"github.com/windrow-sim/windrow/internal/units"
)

// TestAbsurdNumbersOfSamples replaces each number of a file of samples with every kind of line. It
// is refused by file, line, field and value; a probe that goes on would put it into the device.
func TestAbsurdNumbersOfSamples(t *testing.T) {
	cfg := sampled(t)
	if _, err := run(context.Background(), cfg, newFake(t, nvme()).machine()); err != nil {
		t.Fatal(err)
	}
	lines := linesOf(t, cfg.Samples)
	header := *lines[0].Header
	kept := []sampleLine{lines[0],
		{Limit: &limitFound{Limit: &flash.Limit{Rate: 1000, IOPS: 2000,
			Interval: units.Second, Burst: 4096}}},
		{Mapped: &mappedFound{ReadAhead: 4096, HitFixed: 7, HitRate: 8000, Capacity: 9000,
			Gap:  coldResult{4096, 1, 4096, 9},
			Cold: []coldResult{{4096, 1, 4096, 9}, {8192, 2, 8192, 99}}}},
		{Cost: &sampleCost{Engine: "pread", Cost: 12}}}
	for _, kind := range []func(l sampleLine) bool{
		func(l sampleLine) bool { return l.Batch != nil },
		func(l sampleLine) bool { return l.Cell != nil },
	} {
		kept = append(kept, lines[slices.IndexFunc(lines, kind)])
	}
	cfg.Resume = true
	path := cfg.Samples
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s, err := openSamples(Config{Samples: path}, header)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range kept[1:] {
		if err := s.write(l, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, n := range inputtest.JSON(t, good) {
		for _, other := range inputtest.Absurd() {
			if n.Quoted {
				continue
			}
			if err := os.WriteFile(path, n.Replaced(good, other), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := openSamples(cfg, header)
			if err == nil {
				s.close()
				if slices.Contains(inputtest.Impossible(), other) {
					t.Errorf("line %d: %s = %s is accepted", n.Line, n.Path, other)
				}
				continue
			}
			refused++
			if missing := n.Missing(err, path, other); missing != "" {
				t.Errorf("line %d: %s = %s: without %s: %v", n.Line, n.Path, other, missing, err)
			}
		}
	}
	if refused < 200 {
		t.Errorf("%d numbers are refused", refused)
	}
}
