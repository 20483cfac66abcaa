package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/layout"
	"github.com/windrow-sim/windrow/engine/policy"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces/synth"
)

// ErrScenario is wrapped by every error about the contents of a scenario.
var ErrScenario = errors.New("not a usable scenario")

const (
	// maxScenario bounds a file of a few lines.
	maxScenario = 1 << 20
	// mostConfigurations bounds what the lists multiply to.
	mostConfigurations = 1_000_000
	mostParallel       = 4096
	mostGap            = 1 << 20
	mostTokens         = 1 << 30
)

// Scenario is a sweep with its lists written out. Configurations are in the order of its fields, the first changing slowest: masks, then
// Windows followed by Policies, then Gaps, …
type Scenario struct {
	Trace     TraceSpec     `json:"trace"`
	MaxTokens int           `json:"max_tokens"` // 0 = the whole trace
	Predicted []bool        `json:"predicted"`
	Rank      int           `json:"predictor_rank"` // of predicted masks
	Windows   []int         `json:"windows"`
	Policies  []policy.Spec `json:"policies"`
	Gaps      []int         `json:"gaps"`
	Coalesce  []bool        `json:"coalesce"`
	Chunks    []units.Bytes `json:"chunks"` // 0 = no limit
	Devices   []string      `json:"devices"`
	Engines   []string      `json:"engines"`
	Parallel  []int         `json:"parallel"` // 0 = the engine's own

	// Resolve fills Models with the devices of those names.
	Models []*devicemodels.Device `json:"device_models"`
}

// TraceSpec says what trace a scenario is for: a file, or one like a model.
type TraceSpec struct {
	File      string  `json:"file,omitempty"`
	Like      string  `json:"like,omitempty"`
	Layers    int     `json:"layers,omitempty"`
	Tokens    int     `json:"tokens,omitempty"`
	Prompt    int     `json:"prompt,omitempty"`
	Sequences int     `json:"sequences,omitempty"`
	Active    float64 `json:"active_share,omitempty"`
	Seed      uint64  `json:"seed,omitempty"`
}

// Options are those of the synthetic trace.
func (t *TraceSpec) Options(predicted bool) synth.Options {
	return synth.Options{
		Like: t.Like, Layers: t.Layers, Tokens: t.Tokens, Prompt: t.Prompt, Sequences: t.Sequences, ActiveShare: t.Active, Seed: t.Seed, Predicted: predicted,
	}
}

// ParseScenario reads a scenario; name stands for the file in errors. It is strict: an unknown key, a key given twice and a value that
// is out of range are errors with their lines.
func ParseScenario(name string, data []byte) (*Scenario, error) {
	if len(data) > maxScenario {
		return nil, fmt.Errorf("sweep: %s: larger than %d bytes: %w", name, maxScenario, ErrScenario)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("sweep: %s: is empty: %w", name, ErrScenario)
	} else if err != nil {
		return nil, fmt.Errorf("sweep: %s: %w: %w", name, err, ErrScenario)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("sweep: %s: holds more than one document; write one scenario per file: %w", name, ErrScenario)
	}
	r, s := &reader{name: name}, defaults()
	root := doc.Content[0]
	r.mapping(root, "scenario", s.keys(r))
	if r.err == nil {
		s.check(r, root)
	}
	return s, r.err
}

// defaults are what keys that are not given stand for.
func defaults() *Scenario {
	return &Scenario{
		Predicted: []bool{false}, Windows: []int{}, Policies: []policy.Spec{}, Gaps: []int{0}, Coalesce: []bool{true},
		Chunks: []units.Bytes{0}, Engines: []string{"auto"}, Parallel: []int{0},
	}
}

func (s *Scenario) keys(r *reader) []key {
	return []key{
		{"trace", func(n *yaml.Node, path string) { r.mapping(n, path, s.Trace.keys(r)) }},
		{"max_tokens", number(r, 1, mostTokens, &s.MaxTokens)},
		{"predicted", func(n *yaml.Node, path string) { s.Predicted = values(r, n, path, switches) }},
		{"predictor_rank", number(r, 1, 1<<20, &s.Rank)},
		{"windows", func(n *yaml.Node, path string) { s.Windows = values(r, n, path, numbers(0, longestWindow)) }},
		{"policies", func(n *yaml.Node, path string) { s.Policies = values(r, n, path, policies) }},
		{"gaps", func(n *yaml.Node, path string) { s.Gaps = values(r, n, path, numbers(0, mostGap)) }},
		{"coalesce", func(n *yaml.Node, path string) { s.Coalesce = values(r, n, path, switches) }},
		{"chunks", func(n *yaml.Node, path string) { s.Chunks = values(r, n, path, chunks) }},
		{"devices", func(n *yaml.Node, path string) { s.Devices = values(r, n, path, names) }},
		{"engines", func(n *yaml.Node, path string) { s.Engines = values(r, n, path, names) }},
		{"parallel", func(n *yaml.Node, path string) { s.Parallel = values(r, n, path, depths) }},
	}
}

func (t *TraceSpec) keys(r *reader) []key {
	return []key{
		{"file", func(n *yaml.Node, path string) { t.File = r.text(n, path) }},
		{"like", func(n *yaml.Node, path string) { t.Like = r.text(n, path) }},
		{"layers", number(r, 1, 1<<16, &t.Layers)},
		{"tokens", number(r, 1, mostTokens, &t.Tokens)},
		{"prompt", number(r, 0, mostTokens, &t.Prompt)},
		{"sequences", number(r, 1, 1<<20, &t.Sequences)},
		{"active", func(n *yaml.Node, path string) {
			var err error
			if t.Active, err = strconv.ParseFloat(r.text(n, path), 64); r.err == nil && (err != nil || !(t.Active > 0 && t.Active < 1)) {
				r.fail(n, path, "%q is not a share above 0 and below 1", n.Value)
			}
		}},
		{"seed", func(n *yaml.Node, path string) {
			var err error
			if t.Seed, err = strconv.ParseUint(r.text(n, path), 10, 64); r.err == nil && err != nil {
				r.fail(n, path, "%q is not a whole number", n.Value)
			}
		}},
	}
}

// check refuses what no single key shows, and fills in the trace's defaults.
func (s *Scenario) check(r *reader, root *yaml.Node) {
	t := &s.Trace
	made := *t
	made.File = ""
	switch {
	case t.File == "" && t.Like == "":
		r.fail(root, "trace", "is missing; give trace: {file: NAME.trace.arrow} or trace: {like: MODEL, tokens: N}")
	case t.File != "" && made != (TraceSpec{}):
		r.fail(root, "trace", "a file and how to make one are given; give one of them")
	case t.Like != "" && t.Tokens == 0:
		r.fail(root, "trace", "tokens: is missing")
	case len(s.Devices) == 0:
		r.fail(root, "devices", "is missing; name presets or files, \"windrow device list\" shows the presets")
	case len(s.Windows)+len(s.Policies) == 0:
		r.fail(root, "windows", "is missing; give windows: 1..64, or policies:")
	case s.Count() > mostConfigurations:
		r.fail(root, "scenario", "its lists multiply to %d configurations; at most %d", s.Count(), mostConfigurations)
	}
	if t.Like != "" {
		t.Sequences = max(t.Sequences, 1)
		if t.Seed == 0 {
			t.Seed = rng.DefaultSeed
		}
	}
}

// Count is the number of configurations.
func (s *Scenario) Count() int {
	n := 1
	for _, length := range []int{len(s.Predicted), len(s.Windows) + len(s.Policies), len(s.Gaps), len(s.Coalesce), len(s.Chunks), len(s.Devices), len(s.Engines), len(s.Parallel)} {
		if n *= length; n > mostConfigurations {
			return n
		}
	}
	return n
}

// Resolver finds what a scenario names.
type Resolver struct {
	Device   func(name string) (*devicemodels.Device, error)
	Engine   func(device *devicemodels.Device, name string) (string, error) // of a device, also for auto
	Parallel func(engine string) int                                        // of auto
}

// Configurations resolves the devices and returns the configurations in order.
func (s *Scenario) Configurations(find Resolver) ([]sim.Config, error) {
	s.Models = nil
	for _, name := range s.Devices {
		d, err := find.Device(name)
		if err != nil {
			return nil, err
		}
		s.Models = append(s.Models, d)
	}
	list := make([]sim.Config, 0, s.Count())
	for _, predicted := range s.Predicted {
		base := sim.Config{Predicted: predicted}
		if predicted {
			base.PredictorRank = s.Rank
		}
		for _, window := range s.Windows {
			cfg := base
			cfg.Window = window
			list = s.layouts(list, cfg)
		}
		for _, spec := range s.Policies {
			cfg := base
			cfg.Policy = spec
			list = s.layouts(list, cfg)
		}
	}
	return s.onDevices(list, find)
}

// layouts appends cfg with every layout.
func (s *Scenario) layouts(list []sim.Config, cfg sim.Config) []sim.Config {
	for _, gap := range s.Gaps {
		for _, coalesce := range s.Coalesce {
			for _, chunk := range s.Chunks {
				cfg.Layout = layout.Options{Gap: gap, Coalesce: coalesce, MaxRequest: chunk}
				list = append(list, cfg)
			}
		}
	}
	return list
}

// onDevices returns each of the configurations on every device, engine and depth.
func (s *Scenario) onDevices(list []sim.Config, find Resolver) ([]sim.Config, error) {
	var flashes []sim.Config
	for _, device := range s.Models {
		for _, name := range s.Engines {
			engine, err := find.Engine(device, name)
			if err != nil {
				return nil, err
			}
			for _, parallel := range s.Parallel {
				if parallel == 0 {
					parallel = find.Parallel(engine)
				}
				flashes = append(flashes, sim.Config{Device: device, Engine: engine, Parallel: parallel})
			}
		}
	}
	all := make([]sim.Config, 0, len(list)*len(flashes))
	for _, cfg := range list {
		for _, f := range flashes {
			cfg.Device, cfg.Engine, cfg.Parallel = f.Device, f.Engine, f.Parallel
			all = append(all, cfg)
		}
	}
	return all, nil
}
