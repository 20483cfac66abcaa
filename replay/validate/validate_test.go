package validate

import (
	"context"
	"errors"
	"testing"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// shortCases are few and quick; `make validate` runs all twelve at a tighter tolerance
// (docs/validation.md).
func shortCases() []Case {
	return []Case{{Window: 0, Parallel: 4, Chunk: 32 * units.KiB}, {Window: 4, Parallel: 16,
		Chunk: 8 * units.KiB}}
}

// shortTolerance never fails on a busy machine: the waits are of milliseconds, the late wake-ups of
// tens of microseconds.
const shortTolerance = 15

func TestEmulatedDevice(t *testing.T) {
	checkSuite(t, Emulated)
}

// TestThrottledDisk reads a real file through a block-I/O limit. It needs root and a block-I/O
// control group.
func TestThrottledDisk(t *testing.T) {
	checkSuite(t, Throttled)
}

func checkSuite(t *testing.T, suite func(context.Context, SuiteOptions) (*SuiteResult, error)) {
	t.Helper()
	r, err := suite(context.Background(), SuiteOptions{Dir: t.TempDir(), Seed: 42, Tokens: 18,
		Cases: shortCases(), Tolerance: shortTolerance, NoReference: true})
	if errors.Is(err, flashio.ErrEnvironment) {
		t.Skipf("not on this host: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Outcomes) != len(shortCases()) {
		t.Fatalf("%d outcomes, want %d", len(r.Outcomes), len(shortCases()))
	}
	for _, o := range r.Outcomes {
		c := o.Comparison
		t.Logf("%v: measured %.3f tokens/s, simulated %.3f, error %+.2f %%", o.Case,
			c.MeasuredTokensPerS, c.SimulatedTokensPerS, c.ErrorPercent)
		if !c.CountersEqual || !c.BytesEqual {
			t.Errorf("%v: counters differ: %+v", o.Case, c.Differences)
		}
		if e := c.ErrorPercent; e > shortTolerance || e < -shortTolerance {
			t.Errorf("%v: simulated tokens/s are off by %+.1f %%", o.Case, e)
		}
	}
	// The configurations must differ, or agreeing on them says nothing.
	a, b := r.Outcomes[0].Comparison.MeasuredTokensPerS, r.Outcomes[1].Comparison.MeasuredTokensPerS
	if a > 0.8*b && b > 0.8*a {
		t.Errorf("the two configurations run at %.3f and %.3f tokens/s: too alike to tell anything",
			a, b)
	}
}

func TestGrid(t *testing.T) {
	cases := Grid([]int{0, 4}, []int{8}, []units.Bytes{4096, 8192, 0})
	if len(cases) != 6 || cases[5] != (Case{Window: 4, Parallel: 8}) ||
		cases[0] != (Case{Window: 0, Parallel: 8, Chunk: 4096}) {
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
