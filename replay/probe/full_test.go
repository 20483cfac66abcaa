package probe

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

// TestFullLoopLeavesTheEndsOut compares with the event model of a drive whose reads wait for busy
// dies: a batch of a few rounds at a great depth spends much of its time running dry.
func TestFullLoopLeavesTheEndsOut(t *testing.T) {
	spec := flash.Spec{Servers: 12, Placement: flash.PlaceByAddress, LTFB: 2 * units.Millisecond,
		Align: 512, Engines: map[string]flash.EngineCost{"pread": {}}}
	const depth, n, chunk = 64, 64 * 32, 4096
	want, err := flash.Measure(spec, flash.Config{Engine: "pread", Cores: 1, Parallel: depth},
		chunk, units.GiB, 50_000)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var plain, full units.Nanos
	const batches = 40
	for range batches {
		took, times := dies(random, spec.Servers, depth, n, spec.LTFB)
		plain += took
		full += fullLoop(times, depth, took)
	}
	off := func(total units.Nanos) float64 {
		return math.Abs(float64(units.Bytes(batches*n*chunk).Over(total))/float64(want) - 1)
	}
	if off(full) > 0.02 || off(plain) < 0.03 {
		t.Errorf("the full loop is %.1f %% off, the whole batches %.1f %%; want at most 2 and "+
			"above 3", 100*off(full), 100*off(plain))
	}
}

// dies runs a batch through first-come-first-served dies chosen at random and returns its time and
// those of its reads.
func dies(random *rand.Rand, servers, depth, n int, service units.Nanos) (took units.Nanos,
	times []units.Nanos) {
	threads, free := make([]units.Nanos, depth), make([]units.Nanos, servers)
	for range n {
		first := 0
		for i := range threads {
			if threads[i] < threads[first] {
				first = i
			}
		}
		die := random.IntN(servers)
		end := max(threads[first], free[die]) + service
		times = append(times, end-threads[first])
		threads[first], free[die] = end, end
		took = max(took, end)
	}
	return took, times
}

func TestFullLoopOfConstantReads(t *testing.T) {
	times := make([]units.Nanos, 40)
	for i := range times {
		times[i] = 100
	}
	// Ten rounds of four reads of 100; the threads lose a tenth of the time between reads.
	if got := fullLoop(times, 4, 1100); got != 1100 {
		t.Errorf("constant reads take %v in a full loop, want 1.1 us", got)
	}
	if got := fullLoop(times[:8], 4, 230); got != 230 {
		t.Errorf("two rounds: %v, want the batch's own 230 ns", got)
	}
	if got := fullLoop(nil, 4, 7); got != 7 {
		t.Errorf("no times: %v, want 7 ns", got)
	}
}
