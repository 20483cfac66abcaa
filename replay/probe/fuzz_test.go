package probe

import (
	"bytes"
	"context"
	"os"
	"reflect"
	"testing"

	"github.com/windrow-sim/windrow/internal/alloctest"
)

// FuzzSamples resumes from any file of samples behind the right header. That takes memory in
// proportion to the file. What is accepted are whole lines, which stay as they are and mean the
// same when they are read again, with numbers that a probe can find.
func FuzzSamples(f *testing.F) {
	cfg := sampled(f)
	fake := newFake(f, nvme())
	if _, err := run(context.Background(), cfg, fake.machine()); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(cfg.Samples)
	if err != nil {
		f.Fatal(err)
	}
	lines := bytes.SplitAfter(good, []byte("\n"))
	header := *linesOf(f, cfg.Samples)[0].Header
	kinds := map[string]bool{}
	for _, line := range lines[1:] {
		if kind, _, ok := bytes.Cut(line, []byte(":")); ok && !kinds[string(kind)] {
			kinds[string(kind)] = true
			f.Add(line)
		}
	}
	f.Add([]byte(`{"limit":{"limit":{"rate":"1MB/s"}}}` + "\n"))
	f.Add([]byte("{}\n{}\n{"))
	cfg.Resume = true
	f.Fuzz(func(t *testing.T, body []byte) {
		file := append(bytes.Clone(lines[0]), body...)
		if err := os.WriteFile(cfg.Samples, file, 0o600); err != nil {
			t.Fatal(err)
		}
		open := func() *samples {
			s, err := openSamples(cfg, header)
			if err != nil {
				return nil
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			return s
		}
		var s *samples
		// A line of three bytes has six pointers, and a line of a cell a histogram.
		if used := alloctest.Bytes(func() { s = open() }); used > uint64(
			4<<10*bytes.Count(file, []byte("\n"))+64*len(file)+1<<16) {
			t.Fatalf("%d bytes allocated for a file of %d", used, len(file))
		}
		if s == nil {
			return
		}
		left, err := os.ReadFile(cfg.Samples)
		if err != nil {
			t.Fatal(err)
		}
		if want := file[:bytes.LastIndexByte(file, '\n')+1]; !bytes.Equal(left, want) {
			t.Fatalf("%q is left of %q", left, file)
		}
		for l, list := range s.cells {
			for _, r := range list {
				if r.loop != l || r.Reads < 1 || !(r.Rate > 0) || r.Chunk < 1 || r.Depth < 1 ||
					r.CPUPerRead < 0 || r.RateLow > r.RateHigh {
					t.Fatalf("%+v", r)
				}
			}
		}
		for engine, cost := range s.costs {
			if cost < 0 {
				t.Fatalf("%s: %v", engine, cost)
			}
		}
		if again := open(); again == nil || !reflect.DeepEqual(again.cells, s.cells) ||
			!reflect.DeepEqual(again.lim, s.lim) || !reflect.DeepEqual(again.costs, s.costs) ||
			!reflect.DeepEqual(again.maps, s.maps) {
			t.Fatalf("read %+v, again %+v", s, again)
		}
	})
}
