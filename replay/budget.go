package replay

import (
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// MemoryOf accounts for the first tokens of a trace under a configuration.
func MemoryOf(src traces.Source, tokens int, w *model.Weights, geo layout.Geometry,
	cfg Config) (memory.Memory, error) {
	n, err := cfg.need(src, tokens, geo)
	if err != nil {
		return memory.Memory{}, err
	}
	return memory.Account(engine.MemoryModel(w, geo), n.Config(cfg.memory())), nil
}

// memory describes a configuration to the account of memory, without the need of a trace.
func (c *Config) memory() memory.Config {
	return memory.Config{Policy: c.Policy, Dense: c.Schedule.Dense,
		Prefetch: c.Schedule.Kind != schedule.Demand, PrefetchLimit: c.Schedule.Staging}
}

// need is the memory demand of the first tokens of a trace.
func (c *Config) need(src traces.Source, tokens int, geo layout.Geometry) (*memory.Need, error) {
	n, err := memory.NeedOf(traces.MaskTrace(src, tokens, c.Predicted), c.reads(geo), c.Policy)
	if errors.Is(err, policy.ErrSpec) {
		err = refusal.Config("replay: %w", err)
	}
	return n, err
}

// reads describes the reads of a configuration.
func (c *Config) reads(geo layout.Geometry) memory.Reads {
	return memory.Reads{Geometry: geo, Layout: c.Layout, Dense: c.Schedule.Dense}
}

// LargestWindow finds the largest window, at most memory.LongestWindow tokens, with which a run of
// a trace fits into a budget of memory. The policy of the configuration is not used. Below what a
// window of 0 needs the error is a *memory.BudgetError that names this floor and its parts.
func LargestWindow(src traces.Source, tokens int, w *model.Weights, geo layout.Geometry, cfg Config,
	budget units.Bytes) (memory.Memory, error) {
	windows, err := memory.WindowsOf(traces.MaskTrace(src, tokens, cfg.Predicted), cfg.reads(geo),
		nil)
	if err != nil {
		return memory.Memory{}, err
	}
	best, err := windows.Largest(engine.MemoryModel(w, geo), cfg.memory(), budget)
	if errors.Is(err, memory.ErrBudget) {
		err = fmt.Errorf("replay: %w", err)
	}
	return best, err
}
