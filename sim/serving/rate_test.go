package serving

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces/arrivals"
)

// The rate found is good, and what was tried above it is not.
func TestFindRate(t *testing.T) {
	cfg := testConfig()
	cfg.TTFT, cfg.TPOT = units.Second, 100*ms
	s := newServer(t, testTrace(2, 200, 30, 50, 0.1), cfg)
	load := func(rate float64) (Source, error) { return randomLoad(t, 60, rate, 30, 10, 0.5), nil }
	a, err := s.FindRate(context.Background(), 0.9, load)
	if err != nil || a.PerSecond == nil || *a.PerSecond <= 0 || a.At == nil {
		t.Fatalf("%v, %+v", err, a)
	}
	if a.At.Attainment < 0.9 || a.At.Completed != 60 {
		t.Errorf("%+v", a.At)
	}
	bad := math.Inf(1)
	for _, trial := range a.Tried[1:] {
		if trial.Meets != (trial.PerSecond <= *a.PerSecond) ||
			trial.Meets != (trial.Attainment >= 0.9) {
			t.Errorf("%+v, though the answer is %g", trial, *a.PerSecond)
		}
		if !trial.Meets {
			bad = min(bad, trial.PerSecond)
		}
	}
	if bad > *a.PerSecond*precision {
		t.Errorf("%g is good and %g is bad: too far apart", *a.PerSecond, bad)
	}
	// what was given up would have been bad to its end
	whole := mustRun(t, s, randomLoad(t, 60, bad, 30, 10, 0.5))
	if whole.Attainment >= 0.9 {
		t.Errorf("at %g, %g of the requests are good", bad, whole.Attainment)
	}
}

// Objectives that are always or never met have no rate between.
func TestFindRateAtTheEnds(t *testing.T) {
	load := func(rate float64) (Source, error) { return randomLoad(t, 10, rate, 30, 10, 0.5), nil }
	for _, c := range []struct {
		ttft units.Nanos
		any  bool
	}{{units.Forever, true}, {1, false}} {
		cfg := testConfig()
		cfg.TTFT = c.ttft
		a, err := newServer(t, testTrace(2, 100, 10, 10, 0.1), cfg).FindRate(context.Background(),
			0.9, load)
		if err != nil || (a.PerSecond == nil) != c.any || !c.any && *a.PerSecond != 0 ||
			(a.At != nil) != c.any {
			t.Errorf("objective %v: %v, %+v", c.ttft, err, a)
		}
	}
	cfg := testConfig()
	cfg.TTFT = 1
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if a, err := newServer(t, testTrace(2, 100, 10, 10, 0.1), cfg).FindRate(ctx, 0.9,
		load); !errors.Is(err, context.Canceled) || a.Stopped != Interrupted || len(a.Tried) > 0 {
		t.Errorf("interrupted: %v, %+v", err, a)
	}
	s := newServer(t, testTrace(2, 100, 10, 10, 0.1), testConfig())
	if _, err := s.FindRate(context.Background(), 0.9, load); !errors.Is(err, ErrConfig) {
		t.Errorf("without an objective: %v", err)
	}
}

// The same requests come in the same rhythm at any rate, and in their own at a speed.
func TestShaped(t *testing.T) {
	read := func(src Source) (all []arrivals.Request) {
		var r arrivals.Request
		for {
			if err := src.Next(&r); err == io.EOF {
				return all
			} else if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
	}
	slow, fast := read(randomLoad(t, 400, 1, 100, 20, 0.7)), read(randomLoad(t, 400, 8, 100, 20,
		0.7))
	prompts := 0
	for i := range slow {
		if slow[i].Prompt != fast[i].Prompt || slow[i].Output != fast[i].Output ||
			math.Abs(float64(slow[i].At-8*fast[i].At)) > 8 {
			t.Fatalf("request %d: %+v and %+v", i, slow[i], fast[i])
		}
		prompts += slow[i].Prompt
	}
	if mean := slow[399].At.Seconds() / 399; slow[0].At != 0 || math.Abs(mean-1) > 0.15 ||
		math.Abs(float64(prompts)/400/100-1) > 0.1 {
		t.Errorf("gaps of %g s on average from %v, prompts of %d", mean, slow[0].At, prompts/400)
	}
	two := func() Source {
		return requests(arrivals.Request{At: 0, Prompt: 1, Output: 1}, arrivals.Request{At: 9 * ms,
			Prompt: 1, Output: 1})
	}
	for _, c := range []struct {
		shape Shape
		n     int
		last  units.Nanos
	}{{Shape{}, 2, 9 * ms}, {Shape{Speedup: 3}, 2, 3 * ms}, {Shape{Requests: 1}, 1, 0},
		{Shape{Rate: math.Inf(1)}, 2, 0}} {
		s, err := NewShaped(two(), c.shape)
		if err != nil {
			t.Fatal(err)
		}
		if all := read(s); len(all) != c.n || all[len(all)-1].At != c.last {
			t.Errorf("%+v: %+v", c.shape, all)
		}
	}
	for _, shape := range []Shape{{Rate: -1}, {Rate: math.NaN()}, {Speedup: -1},
		{Speedup: math.Inf(1)}, {Requests: -1}} {
		if _, err := NewShaped(two(), shape); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", shape, err)
		}
	}
	s, err := NewShaped(two(), Shape{Speedup: 1e-12})
	var r arrivals.Request
	if err != nil || s.Next(&r) != nil || !errors.Is(s.Next(&r), ErrConfig) {
		t.Errorf("a time beyond the clock: %v", err)
	}
	if _, err := NewLengths(0, 1, 0, 1); !errors.Is(err, ErrConfig) {
		t.Errorf("no prompt: %v", err)
	}
}
