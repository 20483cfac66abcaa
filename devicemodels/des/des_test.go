package des

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

type recorder struct{ events []Event }

func (r *recorder) Handle(_ *Kernel, e Event) error {
	r.events = append(r.events, e)
	return nil
}

func TestTotalOrder(t *testing.T) {
	var k Kernel
	// Same time: done before arrive before plan, then the order of scheduling.
	k.Schedule(5, ClassPlan, 0, 1)
	k.Schedule(5, ClassArrive, 0, 2)
	k.Schedule(5, ClassDone, 0, 3)
	k.Schedule(4, ClassPlan, 0, 4)
	k.Schedule(5, ClassDone, 0, 5)
	var r recorder
	if err := k.Run(&r); err != nil {
		t.Fatal(err)
	}
	var got []int32
	for _, e := range r.events {
		got = append(got, e.Arg)
	}
	if want := []int32{4, 3, 5, 2, 1}; !slices.Equal(got, want) {
		t.Fatalf("order %v, want %v", got, want)
	}
}

func TestQueueSortsLikeASort(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		var k Kernel
		n := random.IntN(300)
		for i := range n {
			k.Schedule(units.Nanos(random.IntN(50)), Class(random.IntN(3)), 0, int32(i))
		}
		want := slices.Clone(k.heap)
		slices.SortFunc(want, func(a, b Event) int {
			if a.before(&b) {
				return -1
			}
			return 1
		})
		var r recorder
		if err := k.Run(&r); err != nil || k.Pending() != 0 {
			t.Fatal(err, k.Pending())
		}
		if !slices.Equal(r.events, want) {
			t.Fatalf("popped %v, want %v", r.events, want)
		}
	}
}

type failing struct{ calls int }

func (f *failing) Handle(*Kernel, Event) error {
	f.calls++
	return errors.New("stop here")
}

func TestErrorsStopTheRun(t *testing.T) {
	var k Kernel
	k.Schedule(1, ClassPlan, 0, 0)
	k.Schedule(2, ClassPlan, 0, 0)
	f := &failing{}
	if err := k.Run(f); err == nil || f.calls != 1 {
		t.Fatalf("err %v after %d calls, want an error after 1", err, f.calls)
	}
}

func TestClockNeverGoesBack(t *testing.T) {
	var k Kernel
	if err := k.Advance(10); err != nil {
		t.Fatal(err)
	}
	k.Schedule(3, ClassPlan, 0, 0)
	var r recorder
	if err := k.Run(&r); err != nil || r.events[0].At != 10 || k.Now() != 10 {
		t.Fatalf("event at %v, now %v, err %v; want 10", r.events[0].At, k.Now(), err)
	}
	k.Schedule(20, ClassPlan, 0, 0)
	if err := k.Advance(21); !errors.Is(err, ErrInvariant) {
		t.Fatalf("advancing over an event gave %v", err)
	}
}

// TestStationAgainstEvents compares Station with a queue of customers served one event at a time.
func TestStationAgainstEvents(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		servers := 1 + random.IntN(5)
		s := NewStation(servers)
		busyUntil := make([]units.Nanos, servers)
		var at, total units.Nanos
		for range 50 {
			at += units.Nanos(random.IntN(20))
			service := units.Nanos(random.IntN(60))
			total += service
			slices.Sort(busyUntil)
			wantStart := max(at, busyUntil[0])
			busyUntil[0] = wantStart + service
			start, end := s.Serve(at, service)
			if start != wantStart || end != wantStart+service {
				t.Fatalf("served %v..%v, want from %v for %v", start, end, wantStart, service)
			}
		}
		if s.Busy() != total || !s.IdleAt(slices.Max(busyUntil)) || servers == 1 &&
			s.IdleAt(busyUntil[0]-1) && busyUntil[0] > 0 {
			t.Fatalf("busy %v, want %v; idle at the end %v", s.Busy(), total,
				s.IdleAt(slices.Max(busyUntil)))
		}
	}
}

// hold is the classic "hold" model: every handled event schedules one more, so the queue stays at a
// fixed length.
type hold struct {
	left   int
	deltas [1024]units.Nanos
}

func (h *hold) Handle(k *Kernel, e Event) error {
	if h.left > 0 {
		h.left--
		k.Schedule(k.Now()+h.deltas[h.left&1023], Class(h.left&1), e.Kind, e.Arg)
	}
	return nil
}

func BenchmarkEvent(b *testing.B) {
	for _, pending := range []int{1, 8, 64} {
		b.Run("pending="+map[int]string{1: "1", 8: "8", 64: "64"}[pending], func(b *testing.B) {
			h := &hold{}
			random := rand.New(rand.NewPCG(11, 12))
			for i := range h.deltas {
				h.deltas[i] = units.Nanos(random.IntN(100_000))
			}
			var k Kernel
			for i := range pending {
				k.Schedule(h.deltas[i], ClassPlan, 0, int32(i))
			}
			h.left = b.N
			b.ReportAllocs()
			b.ResetTimer()
			if err := k.Run(h); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// TestClock: an event that is later than the clock counts, or a sum of times that overflowed, ends
// the run with an error.
func TestClock(t *testing.T) {
	for at, want := range map[units.Nanos]error{0: nil, Last: nil, Last + 1: ErrClock,
		units.Forever: ErrClock, -units.Forever: ErrClock} {
		var k Kernel
		var r recorder
		k.Schedule(at, ClassDone, 1, 0)
		if err := k.Run(&r); !errors.Is(err, want) || want != nil && !errors.Is(err,
			refusal.ErrConfig) {
			t.Errorf("an event at %d: %v, want %v", at, err, want)
		}
	}
}
