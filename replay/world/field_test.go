package world

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay"
)

// V1: a goroutine that waits for a mutex is not durably blocked. A demand read that meets a
// prefetch waits for it, and virtual time must go on meanwhile.
func TestField_V1_NoLockIsHeldAcrossARead(t *testing.T) {
	c := draw(0)
	*c = Case{Seed: 1, Model: 0, Policy: c.Policy, Layout: c.Layout, Threads: 1, Parallel: 2,
		Flash: c.Flash, Script: Script{Masks: Random, Share: .5, Sequences: 1, Batch: 1, Steps: 1}}
	c.Flash.Limit, c.Flash.Sustained, c.Flash.Background = nil, nil, nil
	w, err := c.world()
	if err != nil {
		t.Fatal(err)
	}
	dog := time.AfterFunc(limit, func() { panic("virtual time stands still") })
	defer dog.Stop()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := w.open(); err != nil {
			t.Fatal(err)
		}
		rows, _, err := replay.NewFlash(w.trace, 1, w.w.model, w.w.geo, w.reader,
			w.replayConfig())
		if err != nil {
			t.Fatal(err)
		}
		need := w.steps[0].need
		if err := rows.Prefetch(1, 2, []mask.Mask{nil, need[1], nil}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Nanosecond) // the prefetch is being read
		now := func() units.Nanos { return units.Nanos(time.Since(began)) }
		var ev engine.LayerEvent
		for l := range 2 {
			if _, err := rows.Layer(l, need[l], now, &ev); err != nil {
				t.Fatal(err)
			}
		}
		if now() < 2*c.Flash.LTFB || w.reader.begun() != 2 {
			t.Errorf("%d batches in %v: one after the other they take two latencies of %v",
				w.reader.begun(), now(), c.Flash.LTFB)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	})
	if found := append(w.reader.wrong, w.disk.wrong...); len(found) > 0 {
		t.Fatal(found)
	}
}

// V1: a bubble finds a goroutine that is left behind. It does not find a lock that is held while
// its holder sleeps: the limit of real time does.
func TestField_V1_ABubbleFindsWhatIsLeft(t *testing.T) {
	var found any
	t.Run("bubble", func(t *testing.T) {
		defer func() { found = recover() }()
		synctest.Test(t, func(t *testing.T) {
			d := &disk{calls: make(chan *call, 1)}
			_, err := flashio.NewPool(d, flashio.SourceOptions{Path: diskPath, Size: 1, Align: 1,
				Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
		})
	})
	if text, ok := found.(error); !ok || !strings.Contains(text.Error(), "blocked") {
		t.Fatalf("a pool that was not closed gave %v", found)
	}
}
