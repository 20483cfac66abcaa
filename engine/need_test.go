package engine

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// told is a perfect predictor: it predicts recorded masks, token by token.
type told struct {
	masks [][]mask.Mask
	pos   int
	ahead int // it predicts the masks of so many layers later
}

func (p *told) Predict(layer int, _ []float32, need mask.Mask) error {
	copy(need, p.masks[p.pos][layer+p.ahead])
	return nil
}

func (p *told) PredictToken(_ []float32, masks []mask.Mask) error {
	for l := 1; l < len(masks); l++ {
		copy(masks[l], p.masks[p.pos][l])
	}
	return nil
}

// TestPredictorsDriveTheEngine lets predictors that know name the rows, from flash and in memory,
// under every schedule: the bits of the dense run.
func TestPredictorsDriveTheEngine(t *testing.T) {
	want := recordDense(t, 1, 12)
	image := packTales(t)
	w, bundles, geo := tales(t)
	for _, when := range []schedule.Kind{schedule.Demand, schedule.LookAhead, schedule.Token} {
		for _, flash := range []bool{false, true} {
			dense := 1
			var rows Rows
			var err error
			if flash {
				reader, err := flashio.Open(image.Path, flashio.Options{Engine: flashio.EngineMem})
				if err != nil {
					t.Fatal(err)
				}
				rows, err = NewFlash(w, image.Geometry(), reader, FlashConfig{
					Policy: policy.SlidingWindow(2),
					Layout: layout.Options{Coalesce: true}, Dense: bundles[:dense]})
				if err != nil {
					t.Fatal(err)
				}
			} else if rows, err = NewResident(w, bundles, geo); err != nil {
				t.Fatal(err)
			}
			now, next := &told{masks: want.masks}, &told{masks: want.masks, ahead: 1}
			check, err := NewResident(w, bundles, geo)
			if err != nil {
				t.Fatal(err)
			}
			seen := &truths{}
			e, err := New(w, rows, Config{Threads: 1, Context: 16, Schedule: when, Check: check,
				Observer: seen, Predictors: func(*cpu.Pool) (Predictors, error) {
					switch when {
					case schedule.LookAhead:
						return Predictors{Layer: now, LookAhead: next}, nil
					case schedule.Token:
						return Predictors{Layer: now, Token: now}, nil
					}
					return Predictors{Layer: now}, nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			for pos := range want.logits {
				now.pos, next.pos = pos, pos
				logits, err := e.Forward(Token{Pos: pos, ID: want.ids[pos]})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(logits, want.logits[pos]) {
					t.Fatalf("schedule %v, from flash %v: position %d has other logits", when,
						flash, pos)
				}
			}
			if seen.wrong != 0 || seen.layers != len(want.logits)*len(w.Layers) {
				t.Errorf("schedule %v, from flash %v: %d of %d true masks are wrong", when,
					flash, seen.wrong, seen.layers)
			}
			e.Close()
			rows.Close()
		}
	}
}

// truths compares Check's true masks with the active units, which are the same with perfect
// predictors.
type truths struct{ layers, wrong int }

func (c *truths) Layer(ev *LayerEvent) error {
	c.layers++
	if !slices.Equal(ev.True, ev.Active) {
		c.wrong++
	}
	return nil
}

func (c *truths) Token(*TokenEvent) error { return nil }

// crowd counts needed, dropped and active units.
type crowd struct {
	most, dropped, missing int
}

func (c *crowd) Layer(ev *LayerEvent) error {
	n := 0
	for j, word := range ev.Need {
		n += bits.OnesCount64(word)
		c.missing += bits.OnesCount64(ev.True[j] &^ word)
	}
	c.most, c.dropped = max(c.most, n), c.dropped+ev.Dropped
	return nil
}

func (c *crowd) Token(*TokenEvent) error { return nil }

// TestRoomIsNotExceeded limits the units that a layer may need at once. The caches have room for
// them and for the policy's units. Units beyond the room are counted, and are exactly those that
// the true masks have in addition.
func TestRoomIsNotExceeded(t *testing.T) {
	want := recordDense(t, 1, 12)
	image := packTales(t)
	w, bundles, geo := tales(t)
	check, err := NewResident(w, bundles, geo)
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []schedule.Kind{schedule.Demand, schedule.LookAhead, schedule.Token} {
		for _, room := range []int{1, 20, 60, 1024} {
			const kept = 50
			capacity := make([]int, len(w.Layers))
			for l := range capacity {
				capacity[l] = min(kept+room, geo.Units)
			}
			reader, err := flashio.Open(image.Path, flashio.Options{Engine: flashio.EngineMem})
			if err != nil {
				t.Fatal(err)
			}
			spec := policy.Spec{Kind: policy.KindWindow, Window: 5, Capacity: kept}
			rows, err := NewFlash(w, image.Geometry(), reader, FlashConfig{Policy: spec,
				Layout: layout.Options{Coalesce: true}, Capacity: capacity, Room: room})
			if err != nil {
				t.Fatal(err)
			}
			seen := &crowd{}
			e, err := New(w, rows, Config{Threads: 1, Context: 16, Schedule: when, Check: check,
				Observer: seen})
			if err != nil {
				t.Fatal(err)
			}
			for pos := range want.logits {
				if _, err := e.Forward(Token{Pos: pos, ID: want.ids[pos],
					Masks: want.masks[pos]}); err != nil {
					t.Fatal(err)
				}
			}
			if seen.most > room || (room == 1024) != (seen.dropped == 0) || seen.dropped > 0 &&
				seen.missing == 0 {
				t.Errorf("schedule %v, room for %d: at most %d needed, %d left out, %d active "+
					"units missing", when, room, seen.most, seen.dropped, seen.missing)
			}
			e.Close()
			rows.Close()
		}
	}
}
