package flash

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// oneByOne serves a read in 100 ns, one after the other.
func oneByOne() Spec {
	return Spec{Servers: 1, LTFB: 100, Align: 1, Engines: map[string]EngineCost{"pread": {},
		"slow": {Batch: 30, Submit: 5, Complete: 7}}}
}

// TestDemandFirstByHand: each group is submitted at its time on the clock.
func TestDemandFirstByHand(t *testing.T) {
	type submission struct {
		at    units.Nanos
		class Class
		reads int
		end   units.Nanos
	}
	const ahead, now = Speculative, Demand
	for _, c := range []struct {
		name     string
		engine   string
		parallel int
		groups   []submission
	}{
		{"one after the other", "pread", 1, []submission{{0, ahead, 3, 300}, {350, now, 1, 450}}},
		{"the read under way goes on, the next is the demand", "pread", 1, []submission{
			{0, ahead, 3, 400}, {150, now, 1, 300}}},
		{"two of demand", "pread", 1, []submission{{0, ahead, 3, 500}, {50, now, 1, 200},
			{60, now, 1, 300}}},
		// Both slots have their read in the device by then: of four, two are ahead of the demand.
		{"as many as there are slots", "pread", 2, []submission{{0, ahead, 4, 500},
			{50, now, 1, 300}}},
		{"slots for all", "pread", 8, []submission{{0, ahead, 4, 400}, {50, now, 1, 500}}},
		{"demand is not overtaken", "pread", 1, []submission{{0, now, 2, 200}, {50, ahead, 2,
			400}}},
		{"nothing takes no time", "pread", 1, []submission{{0, ahead, 1, 100}, {40, now, 0, 40}}},
		// 30 to begin, 5 to submit, 100, 7 to complete; the demand may be taken from 90 on, and is
		// at 142.
		{"the engine's costs", "slow", 1, []submission{{0, ahead, 2, 366}, {60, now, 1, 254}}},
	} {
		s := mustStation(t, oneByOne(), Config{Engine: c.engine, Parallel: c.parallel, Cores: 1})
		var list []Group
		for _, g := range c.groups {
			id, err := s.Submit(g.at, g.class, make([]Read, g.reads))
			if err != nil {
				t.Fatal(err)
			}
			if s.Now() != g.at {
				t.Errorf("%s: the clock stands at %v after a submission at %v", c.name, s.Now(),
					g.at)
			}
			list = append(list, id)
		}
		if err := s.Advance(units.Second); err != nil || s.Now() != units.Second {
			t.Fatal(err, s.Now())
		}
		for i, g := range c.groups {
			if b, err := s.Take(list[i]); err != nil || b.End != g.end {
				t.Errorf("%s: group %d ends at %v (%v), want %v", c.name, i, b.End, err, g.end)
			}
		}
		if err := s.Drained(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestNextStopsAtCompletions and nowhere else before its time.
func TestNextStopsAtCompletions(t *testing.T) {
	s := mustStation(t, oneByOne(), Config{Engine: "pread", Parallel: 1, Cores: 1})
	a, errA := s.Submit(0, Speculative, make([]Read, 2))
	b, errB := s.Submit(0, Speculative, make([]Read, 1))
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	for _, step := range []struct {
		to, now units.Nanos
		early   bool
	}{{150, 150, false}, {150, 150, false}, {1000, 200, true}, {250, 250, false}, {units.Forever,
		300, true}, {units.Forever, 300, false}, {900, 900, false}} {
		if early, err := s.Next(step.to); err != nil || early != step.early || s.Now() != step.now {
			t.Errorf("to %v: early %v at %v (%v), want %v at %v", step.to, early, s.Now(), err,
				step.early, step.now)
		}
		if s.Done(a) != (s.Now() >= 200) || s.Done(b) != (s.Now() >= 300) {
			t.Errorf("at %v: done %v and %v", s.Now(), s.Done(a), s.Done(b))
		}
	}
}

// TestLittlesLawOfGroups: with many groups in flight, of both classes and with batches between
// them, every byte completes, and the integral of the number in flight is the sum of the latencies.
func TestLittlesLawOfGroups(t *testing.T) {
	run := func(engine string, placement Placement) (ends []units.Nanos) {
		spec := full()
		spec.Placement = placement
		s := mustStation(t, spec, Config{Engine: engine, Parallel: 8, Cores: 2, Seed: 4})
		random := rand.New(rand.NewPCG(3, 8))
		var now, sojourn units.Nanos
		var moved units.Bytes
		var open []Group
		add := func(b BatchResult, err error) {
			if err != nil {
				t.Fatal(err)
			}
			sojourn, moved, ends = sojourn+b.Sojourn, moved+b.Moved, append(ends, b.End)
		}
		for range 60 {
			now += units.Nanos(random.IntN(3e6))
			if random.IntN(4) == 0 {
				b, err := s.Batch(now, randomReads(random, 1+random.IntN(20)))
				add(b, err)
				now = b.End
			} else {
				g, err := s.Submit(now, Class(random.IntN(2)), randomReads(random, random.IntN(40)))
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, g)
			}
			open = slices.DeleteFunc(open, func(g Group) bool {
				done := s.Done(g)
				if done {
					add(s.Take(g))
				}
				return done
			})
		}
		if len(open) == 0 {
			t.Fatal("nothing is open: the test tests nothing")
		}
		if _, err := s.Next(units.Forever); err != nil {
			t.Fatal(err)
		}
		if err := s.Advance(now + 100*units.Second); err != nil {
			t.Fatal(err)
		}
		for _, g := range open {
			add(s.Take(g))
		}
		if p := s.Progress(); p.Area != sojourn || p.Moved != moved || p.Busy <= 0 ||
			p.Busy > slices.Max(ends) || p.Area > 8*p.Busy {
			t.Errorf("%s: %+v; latencies add up to %v, bytes to %v", engine, p, sojourn, moved)
		}
		if err := s.Drained(); err != nil {
			t.Error(err)
		}
		return ends
	}
	for engine := range full().Engines {
		for _, placement := range []Placement{PlaceAny, PlaceByAddress, PlaceInRounds} {
			if !slices.Equal(run(engine, placement), run(engine, placement)) {
				t.Errorf("%s, %s: two runs differ", engine, placement)
			}
		}
	}
}

// TestProgressInBetween: reads are counted while they are in flight, not when they end.
func TestProgressInBetween(t *testing.T) {
	s := mustStation(t, oneByOne(), Config{Engine: "pread", Parallel: 2, Cores: 1})
	if _, err := s.Submit(1000, Speculative, []Read{{0, 10}, {0, 20}, {0, 40}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		at units.Nanos
		Progress
	}{{1050, Progress{Busy: 50, Area: 100}}, {1150, Progress{Moved: 10, Busy: 150, Area: 300}},
		{2000, Progress{Moved: 70, Busy: 300, Area: 500}}} {
		if err := s.Advance(want.at); err != nil || s.Progress() != want.Progress {
			t.Errorf("at %v: %+v (%v), want %+v", want.at, s.Progress(), err, want.Progress)
		}
	}
}

func TestGroupsAreCheckedForConservation(t *testing.T) {
	s := mustStation(t, oneByOne(), Config{Engine: "pread", Parallel: 1, Cores: 1})
	g, err := s.Submit(0, Demand, make([]Read, 2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take(g); !errors.Is(err, ErrInvariant) {
		t.Errorf("taking an incomplete group: %v", err)
	}
	if err := s.Drained(); !errors.Is(err, ErrInvariant) {
		t.Errorf("drained with reads under way: %v", err)
	}
}
