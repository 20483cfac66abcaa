package replay

import (
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Memory is what a flash-resident run of a trace needs with a window, part by part. The program
// itself, a few tens of MiB, and pages of the mapped trace come on top.
type Memory struct {
	Window int           `json:"window"`
	Parts  []engine.Part `json:"parts"`
	Total  units.Bytes   `json:"total_bytes"`
}

// String names the parts.
func (m Memory) String() string {
	var b strings.Builder
	for i, p := range m.Parts {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %v", p.Name, p.Bytes)
	}
	return b.String()
}

// MemoryOf accounts for the first tokens of a trace under a configuration.
func MemoryOf(src traces.Source, tokens int, w *model.Weights, geo layout.Geometry,
	cfg Config) (Memory, error) {
	n, err := requirements(src, tokens, geo, cfg)
	if err != nil {
		return Memory{}, err
	}
	parts := append(engine.Memory(w, engine.Config{Context: n.positions}), engine.FlashMemory(geo,
		n.rows[cfg.Schedule.Dense:], n.staging)...)
	if d := cfg.Schedule.Dense; d > 0 {
		parts = append(parts, engine.Part{Name: "dense prefix", Bytes: units.Bytes(d*geo.Units) *
			geo.Stride})
	}
	if cfg.Schedule.Kind != OnDemand { // announced reads have a buffer of their own
		parts = append(parts, engine.Part{Name: "staging buffer of reads ahead",
			Bytes: max(cfg.Schedule.Staging, units.Bytes(n.staging))})
	}
	return Memory{Window: cfg.Window, Parts: parts, Total: engine.Sum(parts)}, nil
}

// longestWindow is where the search for the largest window ends: by then a layer holds most of what
// a text ever needs.
const longestWindow = 256

// LargestWindow finds the largest window, at most 256 tokens, with which a run of a trace fits into
// a budget of memory. Below what a window of 0 needs it is an ErrMismatch that names this floor and
// its parts.
func LargestWindow(src traces.Source, tokens int, w *model.Weights, geo layout.Geometry, cfg Config,
	budget units.Bytes) (Memory, error) {
	cfg.Window = 0
	best, err := MemoryOf(src, tokens, w, geo, cfg)
	if err != nil {
		return Memory{}, err
	}
	if best.Total > budget {
		return best, fmt.Errorf("replay: a budget of %v: with nothing kept between tokens this "+
			"run needs %v (%s); give it that much, or use fewer positions: %w",
			budget, best.Total, best, ErrMismatch)
	}
	// A longer window never needs less: rows of a shorter one are among its rows.
	low, high := 0, longestWindow
	for low < high {
		cfg.Window = (low + high + 1) / 2
		m, err := MemoryOf(src, tokens, w, geo, cfg)
		if err != nil {
			return Memory{}, err
		}
		if m.Total <= budget {
			low, best = cfg.Window, m
		} else {
			high = cfg.Window - 1
		}
	}
	return best, nil
}
