package validate

import (
	"context"
	"errors"
	"testing"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/units"
)

// shortCases are few; `make validate` runs all twelve of each suite (docs/validation.md).
func shortCases() []Case {
	return []Case{{Policy: policy.SlidingWindow(0), Parallel: 4, Chunk: 32 * units.KiB},
		{Policy: policy.SlidingWindow(4), Parallel: 16,
			Chunk: 8 * units.KiB}}
}

// TestEmulatedDevice runs the whole suite, calibration included, on a device a hundred times as
// fast as the suite's own.
func TestEmulatedDevice(t *testing.T) {
	spec := emulatedFlash()
	spec.LTFB /= 100
	spec.ServerRate *= 100
	spec.LinkRate *= 100
	for _, ahead := range []bool{false, true} {
		cases := shortCases()
		if ahead {
			cases = nil // all that prefetch
		}
		r, err := emulatedOn(context.Background(), shortSuite(t, cases, ahead), spec)
		checkSuite(t, r, err, ahead)
	}
}

// TestThrottledDisk reads a real file through a block-I/O limit, 16 times the suite's own. It needs
// root and a block-I/O control group.
func TestThrottledDisk(t *testing.T) {
	r, err := throttledTo(context.Background(), shortSuite(t, shortCases(), false),
		16*ThrottledRate)
	checkSuite(t, r, err, false)
}

func shortSuite(t *testing.T, cases []Case, ahead bool) SuiteOptions {
	return SuiteOptions{Dir: t.TempDir(), Seed: 42, Tokens: 18, Cases: cases, Prefetch: ahead,
		NoReference: true}
}

// checkSuite holds a suite to what does not depend on time: simulator and engine counted the same
// in every case, and the cases differ. How far the simulated times are off on a quiet machine is
// what `make validate` measures and judges; a test may run on a busy one.
func checkSuite(t *testing.T, r *SuiteResult, err error, ahead bool) {
	t.Helper()
	if errors.Is(err, flashio.ErrEnvironment) {
		t.Skipf("not on this host: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := len(shortCases())
	if ahead {
		want = len(prefetchCases(1024))
	}
	if len(r.Outcomes) != want || !r.Complete {
		t.Fatalf("%d outcomes of %d, complete: %v", len(r.Outcomes), want, r.Complete)
	}
	for _, o := range r.Outcomes {
		c := o.Comparison
		t.Logf("%v: measured %.3f tokens/s, simulated %.3f, error %+.2f %%", o.Case,
			c.MeasuredTokensPerS, c.SimulatedTokensPerS, c.ErrorPercent)
		if !c.CountersEqual || !c.BytesEqual {
			t.Errorf("%v: counters differ: %+v", o.Case, c.Differences)
		}
		if total := o.Measured.Meta.Totals; total.Misses == 0 || total.Bytes == 0 ||
			total.Requests == 0 {
			t.Errorf("%v: nothing was read: %+v", o.Case, total)
		}
	}
	// The configurations must differ, or agreeing on them says nothing.
	a, b := r.Outcomes[0].Measured.Meta.Totals, r.Outcomes[want-1].Measured.Meta.Totals
	if a.Misses == b.Misses || a.Requests == b.Requests || a.Bytes == b.Bytes {
		t.Errorf("too alike to tell anything: %+v and %+v", a, b)
	}
}

func TestGrid(t *testing.T) {
	cases := Grid([]int{0, 4}, []int{8}, []units.Bytes{4096, 8192, 0})
	if len(cases) != 6 || cases[5] != (Case{Policy: policy.SlidingWindow(4), Parallel: 8}) ||
		cases[0] != (Case{Policy: policy.SlidingWindow(0), Parallel: 8, Chunk: 4096}) {
		t.Fatalf("grid %v", cases)
	}
	if len(suiteCases(8192)) != 12 {
		t.Fatalf("the suite has %d cases, want 12", len(suiteCases(8192)))
	}
	for _, c := range suiteCases(8192) {
		if c == suiteCalibration(8192) {
			t.Fatalf("%v is both a case and the calibration", c)
		}
	}
}
