package engine

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
)

// counted records the events of a run, without times.
type counted struct{ list []LayerEvent }

func (c *counted) Layer(ev *LayerEvent) error {
	e := *ev
	e.Active, e.Values, e.Feature = nil, nil, nil
	e.Attention, e.Predict, e.IO, e.Memory, e.FFN, e.Prefetch, e.Wait = Span{}, Span{}, Span{},
		Span{},
		Span{}, 0, DeviceTimes{}
	c.list = append(c.list, e)
	return nil
}

func (c *counted) Token(*TokenEvent) error { return nil }

// TestPrefetchesChangeNothingButTime runs recorded tokens under every schedule, policy, dense
// prefix and staging size: the bits of a dense run, and on layers from flash the counters of reads
// on demand.
func TestPrefetchesChangeNothingButTime(t *testing.T) {
	want := recordDense(t, 1, 30)
	image := packTales(t)
	w, err := image.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var bundles [][]byte
	for l := range w.Layers {
		data := make([]byte, image.LayerBytes())
		if err := image.Bundles(l, data); err != nil {
			t.Fatal(err)
		}
		bundles = append(bundles, data)
	}
	run := func(when schedule.Kind, dense int, spec policy.Spec, staging int64) []LayerEvent {
		t.Helper()
		// The reads of other engines are the same; that of one case really come from the disk.
		io := flashio.Options{Engine: flashio.EngineMem}
		if dense == 1 && staging == 8192 {
			io = flashio.Options{Engine: flashio.EnginePread, Parallel: 4}
		}
		reader, err := flashio.Open(image.Path, io)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := NewFlash(w, image.Geometry(), reader, FlashConfig{Policy: spec,
			Layout: layout.Options{Coalesce: true}, Prefetch: staging, Dense: bundles[:dense]})
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		events := &counted{}
		e, err := New(w, rows, Config{Threads: 2, Context: len(want.logits), Schedule: when,
			Observer: events})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for round := range 2 { // the second after a reset
			e.Reset()
			for pos := range want.logits {
				logits, err := e.Forward(Token{Pos: pos, ID: want.ids[pos], Masks: want.masks[pos]})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(logits, want.logits[pos]) {
					t.Fatalf("schedule %v, dense prefix %d, policy %s, staging %d: position %d "+
						"of round %d has other logits", when, dense, spec, staging, pos, round)
				}
			}
		}
		return events.list
	}
	for _, text := range []string{"window:3", "delta:60", "lru:200", "none"} {
		spec, err := policy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, dense := range []int{0, 1, 3, len(w.Layers)} {
			demand := run(schedule.Demand, dense, spec, 0)
			for _, when := range []schedule.Kind{schedule.LookAhead, schedule.Token} {
				for _, staging := range []int64{0, 8192, 200_000} {
					got := run(when, dense, spec, staging)
					for i := range got {
						if staging > 0 { // batches have requests of their own
							got[i].Requests, got[i].Bytes = demand[i].Requests, demand[i].Bytes
						}
						if fmt.Sprint(got[i]) != fmt.Sprint(demand[i]) {
							t.Fatalf("schedule %v, dense prefix %d, policy %s, staging %d, "+
								"event %d: %+v, on demand %+v", when, dense, text, staging, i,
								got[i], demand[i])
						}
					}
				}
			}
		}
	}
}

// failing is a reader whose n-th batch fails.
type failing struct {
	flashio.Reader
	left int
}

var errBroken = errors.New("broken")

func (f *failing) ReadBatch(reqs []flashio.Request) error {
	if f.left--; f.left < 0 {
		return errBroken
	}
	return f.Reader.ReadBatch(reqs)
}

// TestPrefetchesThatFail end the token with the reader's error, and nothing hangs.
func TestPrefetchesThatFail(t *testing.T) {
	want := recordDense(t, 1, 6)
	image := packTales(t)
	w, err := image.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []schedule.Kind{schedule.LookAhead, schedule.Token} {
		for n := range 12 {
			reader, err := flashio.Open(image.Path, flashio.Options{Engine: flashio.EnginePread,
				Parallel: 2})
			if err != nil {
				t.Fatal(err)
			}
			rows, err := NewFlash(w, image.Geometry(), &failing{reader, n}, FlashConfig{
				Policy: policy.SlidingWindow(2),
				Layout: layout.Options{Coalesce: true}, Prefetch: 1 << 16})
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(w, rows, Config{Threads: 1, Context: 8, Schedule: when})
			if err != nil {
				t.Fatal(err)
			}
			var failed error
			for pos := 0; pos < len(want.logits) && failed == nil; pos++ {
				_, failed = e.Forward(Token{Pos: pos, ID: want.ids[pos], Masks: want.masks[pos]})
			}
			if !errors.Is(failed, errBroken) {
				t.Errorf("schedule %v, batch %d fails: %v", when, n, failed)
			}
			e.Close()
			if err := rows.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
