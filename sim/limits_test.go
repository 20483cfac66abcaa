package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/sim/adaptive"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/sim/placement"
	"github.com/windrow-sim/windrow/sim/serving"
	"github.com/windrow-sim/windrow/sim/speculative"
	"github.com/windrow-sim/windrow/sim/sweep"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
	"github.com/windrow-sim/windrow/traces/synth"
)

// study is a study on a trace. run returns the numbers of its result, without the configuration.
type study struct {
	name    string // as errors begin
	run     func(src *traces.Memory, cfg sim.Config) (any, error)
	refuses []sim.Setting
}

func studies() []study {
	ctx := context.Background()
	sweeping := func(variant sweep.Variant) func(*traces.Memory, sim.Config) (any, error) {
		return func(src *traces.Memory, cfg sim.Config) (any, error) {
			var wall units.Nanos
			err := sweep.Run(ctx, sweep.FromSource(src, 0), sweep.List{{Config: cfg,
				Variant: variant}}, sweep.Options{Workers: 1}, func(r *sweep.Result) error {
				wall = r.Wall
				return nil
			})
			return wall, err
		}
	}
	return []study{
		{"sim", func(src *traces.Memory, cfg sim.Config) (any, error) {
			run, err := sim.Run(ctx, src, cfg)
			if err != nil {
				return nil, err
			}
			return run.Rows, nil
		}, nil},
		{"adaptive", func(src *traces.Memory, cfg sim.Config) (any, error) {
			r, err := adaptive.Run(ctx, src, adaptive.Config{Sim: cfg,
				Model:  answers.ModelOf(&src.Head),
				Budget: &adaptive.Schedule{Changes: []adaptive.Change{{Budget: 1 << 40}}},
				Bounds: policy.Bounds{Max: 4, Calm: 2}, Fraction: 0.8})
			if err != nil {
				return nil, err
			}
			return r.Outcomes, nil
		}, []sim.Setting{sim.SettingWindow, sim.SettingPolicy, sim.SettingMaxTokens,
			sim.SettingSchedule, sim.SettingBackend}},
		{"speculative", func(src *traces.Memory, cfg sim.Config) (any, error) {
			r, err := speculative.Run(ctx, src, speculative.Config{Sim: cfg, Draft: 2,
				Acceptance: 0.7})
			if err != nil {
				return nil, err
			}
			return r.Asked, nil
		}, []sim.Setting{sim.SettingPolicy, sim.SettingSchedule, sim.SettingBackend}},
		{"serving", func(src *traces.Memory, cfg sim.Config) (any, error) {
			s, err := serving.New(src, serving.Config{Sim: cfg, MaxBatch: 2, Chunk: 4,
				Events: true, Seed: 1})
			if err != nil {
				return nil, err
			}
			lengths, err := serving.NewLengths(4, 3, 0, 1)
			if err != nil {
				return nil, err
			}
			load, err := serving.NewShaped(lengths, serving.Shape{Requests: 3, Rate: math.Inf(1),
				Seed: 1})
			if err != nil {
				return nil, err
			}
			r, err := s.Run(ctx, load)
			if err != nil {
				return nil, err
			}
			return r.Duration, nil
		}, []sim.Setting{sim.SettingMaxTokens, sim.SettingPredictorRank, sim.SettingSchedule,
			sim.SettingBackend}},
		{"placement", func(src *traces.Memory, cfg sim.Config) (any, error) {
			r, err := placement.Run(ctx, src, placement.Config{Sim: cfg, Gaps: []int{0, 1}})
			if err != nil {
				return nil, err
			}
			return r.Rows, nil
		}, []sim.Setting{sim.SettingSchedule, sim.SettingGeometry, sim.SettingCoalesce,
			sim.SettingGap}},
		{"answers", func(src *traces.Memory, cfg sim.Config) (any, error) {
			stream, err := batch.NewStream(src)
			if err != nil {
				return nil, err
			}
			r, err := answers.SimulateBatches(ctx, stream, answers.BatchConfig{Sim: cfg,
				Sizes: []int{1, 2}, AtLeast: 1})
			if err != nil {
				return nil, err
			}
			return r.Rows, nil
		}, []sim.Setting{sim.SettingMaxTokens, sim.SettingSchedule, sim.SettingBackend}},
		{"sweep", sweeping(sweep.Variant{}), []sim.Setting{sim.SettingMaxTokens,
			sim.SettingSchedule}},
		{"sweep", sweeping(sweep.Variant{Batch: 2}), []sim.Setting{sim.SettingMaxTokens,
			sim.SettingSchedule, sim.SettingBackend}},
	}
}

// settings change a configuration in one setting each.
func settings(head *traces.Header) map[sim.Setting]func(*sim.Config) {
	return map[sim.Setting]func(*sim.Config){
		sim.SettingWindow: func(c *sim.Config) { c.Policy = policy.SlidingWindow(3) },
		sim.SettingPolicy: func(c *sim.Config) {
			c.Policy = policy.Spec{Kind: policy.KindLRU, Capacity: 16}
		},
		sim.SettingMaxTokens:     func(c *sim.Config) { c.MaxTokens = 12 },
		sim.SettingPredictorRank: func(c *sim.Config) { c.PredictorRank = 64 },
		sim.SettingBackend:       func(c *sim.Config) { c.Backend = sim.OnCUDA },
		sim.SettingSchedule: func(c *sim.Config) {
			c.Schedule = sim.Replayed(schedule.Spec{Kind: schedule.LookAhead})
		},
		sim.SettingGeometry: func(c *sim.Config) { // reads are rounded out to the alignment
			c.Geometry = layout.Uniform(head.Layers, head.Units, head.UnitBytes+512)
			c.Geometry.Record = head.UnitBytes
		},
		sim.SettingCoalesce: func(c *sim.Config) { c.Layout.Coalesce = true },
		sim.SettingGap:      func(c *sim.Config) { c.Layout.Gap, c.Layout.Coalesce = 2, true },
	}
}

// A study either refuses a setting by its name, or the setting changes its result.
func TestNoSettingIsIgnored(t *testing.T) {
	src, err := synth.Collect(t.Context(), synth.Options{Like: "opt-6.7b", Layers: 2, Units: 128,
		Tokens:    16,
		Sequences: 2, Seed: 42, Predicted: true, ActiveShare: 0.2})
	if err != nil {
		t.Fatal(err)
	}
	device, err := devicemodels.Load(t.Context(),
		"../devicemodels/testdata/made-up-gpu.device.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plain := sim.Config{Engine: "pread", Parallel: 4, Predicted: true, Device: device}
	for _, s := range studies() {
		base := result(t, s, src, plain)
		for setting, change := range settings(&src.Head) {
			cfg := plain
			change(&cfg)
			if !slices.Contains(s.refuses, setting) {
				if result(t, s, src, cfg) == base {
					t.Errorf("%s: %s changes nothing", s.name, setting)
				}
				continue
			}
			_, err := s.run(src, cfg)
			if !errors.Is(err, sim.ErrConfig) || !strings.HasPrefix(err.Error(),
				s.name+": "+string(setting)+" ") && !strings.HasPrefix(err.Error(),
				s.name+": "+string(sim.SettingCoalesce)+" ") {
				t.Errorf("%s: %s is refused with %v", s.name, setting, err)
			}
		}
	}
}

// result is the result of a study that must not refuse, as text.
func result(t *testing.T, s study, src *traces.Memory, cfg sim.Config) string {
	t.Helper()
	r, err := s.run(src, cfg)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A new field of a configuration is either a Setting, or one that every study takes.
func TestEveryFieldIsASetting(t *testing.T) {
	known := []string{"Engine", "Parallel", "Predicted", "Observed", "Layout", "Device", "Align",
		"MaxRequest"}
	for setting := range settings(&traces.Header{}) {
		known = append(known, string(setting))
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[sim.Config](),
		reflect.TypeFor[layout.Options]()} {
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; !slices.Contains(known, name) {
				t.Errorf("%s.%s: make it a Setting, and refuse it where a study ignores it", typ,
					name)
			}
		}
	}
}
