package probe

import (
	"testing"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

func TestPositionsComeOnceBeforeAnyComesAgain(t *testing.T) {
	for _, places := range []int64{1, 7, 1000, 3*maxPositions + 17} {
		p := newPositions(places, rng.Stream(1, "positions"))
		n := min(places, maxPositions)
		seen := make(map[int64]bool, n)
		for range n {
			at := p.next(1)
			if at < 0 || at >= places || seen[at] {
				t.Fatalf("%d places: place %d is outside or came twice", places, at)
			}
			seen[at] = true
		}
		if at := p.next(1); !seen[at] {
			t.Errorf("%d places: the second round brings the new place %d", places, at)
		}
	}
}

func TestPositionsOfOneBatchDiffer(t *testing.T) {
	p := newPositions(10, rng.Stream(1, "positions"))
	for range 100 {
		seen := map[int64]bool{}
		for i := range 7 {
			at := p.next(7 - i)
			if seen[at] {
				t.Fatal("one place came twice in one batch")
			}
			seen[at] = true
		}
	}
}

// TestSomeOf: the numbers differ, are below the total, and each is as likely as any other.
func TestSomeOf(t *testing.T) {
	random := rng.Stream(1, "some")
	const total, n, rounds = 20, 7, 20_000
	var count [total]int
	for range rounds {
		seen := map[int64]bool{}
		for _, at := range someOf(total, n, random) {
			if at < 0 || at >= total || seen[at] {
				t.Fatalf("%d is outside or came twice", at)
			}
			seen[at] = true
			count[at]++
		}
		if len(seen) != n {
			t.Fatalf("%d numbers, want %d", len(seen), n)
		}
	}
	for at, c := range count {
		if share := float64(c) / (rounds * n / total); share < 0.95 || share > 1.05 {
			t.Errorf("%d came %.3f times as often as it should", at, share)
		}
	}
	if all := someOf(n, n, random); len(all) != n {
		t.Errorf("all of %d: %v", n, all)
	}
}

func TestLine(t *testing.T) {
	tests := []struct {
		what         string
		small, large units.Nanos
		fixed        units.Nanos
		rate         units.Rate
	}{
		{"a cost and a rate", 5000 + 100_000, 5000 + 800_000, 5000, 10 * units.GBps},
		{"a rate alone", 100_000, 800_000, 0, 10 * units.GBps},
		{"caches make the small one faster than a line allows", 10_000, 800_000, 0,
			10 * units.GBps},
		{"noise makes the large one faster", 900_000, 800_000, 0, 10 * units.GBps},
	}
	for _, tt := range tests {
		fixed, rate := line(1_000_000, tt.small, 8_000_000, tt.large)
		if fixed != tt.fixed || rate != tt.rate {
			t.Errorf("%s: %v, %v; want %v, %v", tt.what, fixed, rate, tt.fixed, tt.rate)
		}
	}
}

func TestScheduleMeasuresEveryCellOnce(t *testing.T) {
	pl := &plan{
		engines: []flashio.Engine{flashio.EnginePread, flashio.EngineUring}, chunks: []units.Bytes{
			4096, 65536}, depths: []int{1, 16, 64}, exact: true,
		reference: loop{Kind: kindReference, Engine: flashio.EnginePread, Chunk: 65536, Depth: 16},
	}
	loops := pl.schedule()
	count := map[loop]int{}
	for _, l := range loops {
		count[l]++
	}
	for _, engine := range pl.engines {
		for _, chunk := range pl.chunks {
			for _, depth := range pl.depths {
				if n := count[loop{kindCell, engine, chunk, depth}]; n != 1 {
					t.Errorf("%s %v depth %d is measured %d times", engine, chunk, depth, n)
				}
			}
		}
	}
	if n := count[pl.reference]; n != 3 || loops[len(loops)-1] != pl.reference || len(count) != 13 {
		t.Errorf("the reference is measured %d times, last comes %+v, %d loops", n,
			loops[len(loops)-1], len(count))
	}
}

// TestKernelsDoTheirWork runs every real timed work once: a shape that is wrong panics in the
// kernels.
func TestKernelsDoTheirWork(t *testing.T) {
	if testing.Short() {
		t.Skip("fills 190 MiB")
	}
	w, err := newKernels(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, part := range []timed{w.memory, w.dense, w.rows, w.copies, w.kv} {
		if part.large.bytes <= part.small.bytes || part.large.calls < 1 {
			t.Errorf("%s: %v is not larger than %v", part.name, part.large.bytes, part.small.bytes)
		}
		for _, work := range []func(){part.small.run, part.large.run} {
			// often enough to come round to the start of the memory
			for n := 0; work != nil && n < 40; n++ {
				if part.name == "memory" && n > 0 {
					break
				}
				work()
			}
		}
	}
	if _, err := newKernels(0, 1); err == nil {
		t.Error("a host without cores was accepted")
	}
}
