package replay

import (
	"errors"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
)

// TestLargestWindow tries every budget between the floor and what a long window needs: the window
// grows with it, what it needs fits, and one token more does not unless the reads in between need a
// larger buffer.
func TestLargestWindow(t *testing.T) {
	src, image, w := syntheticTrace(t)
	cfg := Config{Layout: layout.Options{Align: 512, Coalesce: true}}
	need := func(k int) memory.Memory {
		cfg.Policy = policy.SlidingWindow(k)
		m, err := MemoryOf(src, src.Tokens(), w, image.Geometry(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	floor, most := need(0), need(memory.LongestWindow)
	if floor.Total >= most.Total {
		t.Fatalf("a window of %d needs %v, none %v", memory.LongestWindow, most.Total, floor.Total)
	}
	last := 0
	for budget := floor.Total; budget <= most.Total; budget += (most.Total-floor.Total)/40 + 1 {
		got, err := LargestWindow(src, src.Tokens(), w, image.Geometry(), cfg, budget)
		if err != nil {
			t.Fatal(err)
		}
		if got.Total > budget || got.Window < last || need(got.Window).Total != got.Total {
			t.Errorf("budget %v: window %d needs %v, with less it was %d", budget, got.Window,
				got.Total, last)
		}
		if more := need(got.Window + 1); got.Window < memory.LongestWindow && more.Total <= budget {
			t.Errorf("budget %v: window %d, but %d needs %v", budget, got.Window, got.Window+1,
				more.Total)
		}
		last = got.Window
	}
	_, err := LargestWindow(src, src.Tokens(), w, image.Geometry(), cfg, floor.Total-1)
	var below *memory.BudgetError
	if !errors.Is(err, memory.ErrBudget) || !errors.As(err, &below) ||
		below.Floor.Total != floor.Total ||
		!strings.Contains(err.Error(), floor.Total.String()) ||
		!strings.Contains(err.Error(), memory.PartRowCache) {
		t.Errorf("below the floor of %v: %v", floor.Total, err)
	}
}
