package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces/synth"
	"github.com/windrow-sim/windrow/traces/whatif"
)

// ErrScenario marks a scenario whose contents cannot be used.
var ErrScenario = errors.New("not a usable scenario")

const (
	// maxScenario bounds a file of a few lines.
	maxScenario = 1 << 20
	// mostConfigurations bounds the product of the lists.
	mostConfigurations = 1_000_000
	mostParallel       = ioengine.MaxThreads
	mostBatch          = 1024
	maxShare           = 0.9 // beyond it a model is dense
	mostTokens         = 1 << 30
)

// Scenario is a sweep with its lists written out. Configurations are in the order of the fields,
// and the first field changes slowest: Shares, predictors, Batches, masks, Windows and then
// Policies, Gaps, …
type Scenario struct {
	Trace     TraceSpec `json:"trace"`
	MaxTokens int       `json:"max_tokens"` // or steps of a batch; 0 = the whole trace
	Image     string    `json:"image,omitempty"`
	Shares    []float64 `json:"shares,omitempty"` // of active units; none = the trace's own
	// FalseNegatives and FalsePositives are shares of a what-if predictor; both empty = the trace's
	// own predicted masks.
	FalseNegatives []float64 `json:"false_negatives,omitempty"`
	FalsePositives []float64 `json:"false_positives,omitempty"`
	// none = the trace as it is, token by token
	Batches   []int         `json:"batches,omitempty"`
	Predicted []bool        `json:"predicted"`
	Rank      int           `json:"predictor_rank"` // of predicted masks
	Windows   []int         `json:"windows"`
	Policies  []policy.Spec `json:"policies"`
	Gaps      []int         `json:"gaps"`
	Coalesce  []bool        `json:"coalesce"`
	Chunks    []units.Bytes `json:"chunks"` // 0 = no limit
	Devices   []string      `json:"devices"`
	Backends  []sim.Backend `json:"backends,omitempty"` // none = the host
	Engines   []string      `json:"engines"`
	Parallel  []int         `json:"parallel"` // 0 = the engine's own
	Headroom  bool          `json:"headroom,omitempty"`

	// Configurations fills these: the devices of those names, and the geometry of the image.
	Models   []*devicemodels.Device `json:"device_models"`
	Geometry *layout.Geometry       `json:"geometry,omitempty"`
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
		Like: t.Like, Layers: t.Layers, Tokens: t.Tokens, Prompt: t.Prompt, Sequences: t.Sequences,
		ActiveShare: t.Active, Seed: t.Seed, Predicted: predicted,
	}
}

// ReadScenario reads the scenario of a file. Errors are those of package input or of ParseScenario.
func ReadScenario(ctx context.Context, path string) (*Scenario, error) {
	data, err := input.ReadDocument(ctx, path, input.Limit{Most: maxScenario})
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	return ParseScenario(path, data)
}

// ParseScenario reads a scenario; name stands for the file in errors. It is strict: an unknown key,
// a key given twice and a value that is out of range are errors with their lines.
func ParseScenario(name string, data []byte) (*Scenario, error) {
	if len(data) > maxScenario {
		return nil, fmt.Errorf("sweep: %s: larger than %d bytes: %w", name, maxScenario,
			ErrScenario)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("sweep: %s: is empty: %w", name, ErrScenario)
	} else if err != nil {
		return nil, fmt.Errorf("sweep: %s: %w: %w", name, err, ErrScenario)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("sweep: %s: holds more than one document; write one scenario per "+
			"file: %w", name, ErrScenario)
	}
	r, s := &reader{name: name}, defaults()
	root := doc.Content[0]
	r.mapping(root, "scenario", s.keys(r))
	if r.err == nil {
		s.check(r, root)
	}
	return s, r.err
}

// defaults are the values of keys that are not given.
func defaults() *Scenario {
	return &Scenario{
		Predicted: []bool{false}, Windows: []int{}, Policies: []policy.Spec{}, Gaps: []int{0},
		Coalesce: []bool{true},
		Chunks:   []units.Bytes{0}, Engines: []string{"auto"}, Parallel: []int{0},
	}
}

// keys are the keys of a scenario, in the order of Describe.
func (s *Scenario) keys(r *reader) []key {
	return []key{
		{"trace", "the trace: {file: NAME.trace.arrow}, or {like: MODEL, tokens: N} for a " +
			"synthetic one", func(n *yaml.Node, path string) {
			r.mapping(n, path,
				s.Trace.keys(r))
		}},
		{"max_tokens", "stop after so many tokens (of batches: steps)", number(r, 1, mostTokens,
			&s.MaxTokens)},
		{"image", "flash image whose layout to use; without it, units lie without gaps",
			func(n *yaml.Node, path string) { s.Image = r.text(n, path) }},
		{"shares", "what-if share of active units, such as 2%; a file is thinned or " +
			"thickened, a synthetic trace is generated with it", func(n *yaml.Node, path string) {
			s.Shares = values(r, n, path, shares(1e-6, maxShare))
		}},
		{"false_negatives", "what-if predictor: share of the active units that it misses; of a " +
			"file only", func(n *yaml.Node, path string) {
			s.FalseNegatives = values(r, n, path,
				shares(0, 1))
		}},
		{"false_positives", "what-if predictor: share of the inactive units that it names; of a " +
			"file only", func(n *yaml.Node, path string) {
			s.FalsePositives = values(r, n, path,
				shares(0, 1))
		}},
		{"batches", "batch sizes; a step needs the union of the masks of its sequences; " +
			"without it, the trace token by token", func(n *yaml.Node, path string) {
			s.Batches = values(r, n, path, numbers(1, mostBatch))
		}},
		{"predicted", "load by the predicted masks, true or false", func(n *yaml.Node,
			path string) {
			s.Predicted = values(r, n, path, switches)
		}},
		{"predictor_rank", "inner dimension of the low-rank predictor that is charged for " +
			"predicted masks", number(r, 1, 1<<20, &s.Rank)},
		{"windows", "tokens (of batches: steps) whose rows stay in memory", func(n *yaml.Node,
			path string) {
			s.Windows = values(r, n, path, numbers(0, longestWindow))
		}},
		{"policies", "other policies, as sim --policy names them: \"lru:2000\"", func(n *yaml.Node,
			path string) {
			s.Policies = values(r, n, path, policies)
		}},
		{"gaps", "largest number of records read and discarded between two wanted ones",
			func(n *yaml.Node, path string) {
				s.Gaps = values(r, n, path, numbers(0, layout.MostGap))
			}},
		{"coalesce", "neighbours in one request, true or false", func(n *yaml.Node, path string) {
			s.Coalesce = values(r, n, path, switches)
		}},
		{"chunks", "largest request, a size or none", func(n *yaml.Node, path string) {
			s.Chunks = values(r, n, path, chunks)
		}},
		{"devices", "presets, or device files beside the scenario", func(n *yaml.Node,
			path string) {
			s.Devices = values(r, n, path, names)
		}},
		{"backends", "cpu, or cuda for the GPU of the device models",
			func(n *yaml.Node, path string) { s.Backends = values(r, n, path, backends) }},
		{"engines", "I/O engines of the devices, or auto", func(n *yaml.Node, path string) {
			s.Engines = values(r, n, path, names)
		}},
		{"parallel", "threads or queue depth, or auto for the engine's own", func(n *yaml.Node,
			path string) {
			s.Parallel = values(r, n, path, depths)
		}},
		{"headroom", "true: beside the misses of every policy, the fewest that any could have " +
			"with as much memory", r.toggle(&s.Headroom)},
	}
}

func (t *TraceSpec) keys(r *reader) []key {
	return []key{
		{"file", "a trace, beside the scenario", func(n *yaml.Node, path string) {
			t.File = r.text(n, path)
		}},
		{"like", "or a model that a synthetic trace is like", func(n *yaml.Node, path string) {
			t.Like = r.text(n, path)
		}},
		{"layers", "fewer than the model's", number(r, 1, 1<<16, &t.Layers)},
		{"tokens", "of each sequence, its prompt among them", number(r, 1, mostTokens, &t.Tokens)},
		{"prompt", "how many of them are the prompt", number(r, 0, mostTokens, &t.Prompt)},
		{"sequences", "one after the other; not with batches, whose size is the number of " +
			"sequences",
			number(r, 1, 1<<20, &t.Sequences)},
		{"active", "mean share of active units in place of the published one", func(n *yaml.Node,
			path string) {
			var err error
			if t.Active, err = strconv.ParseFloat(r.text(n, path), 64); r.err == nil &&
				(err != nil || !(t.Active > 0 && t.Active < 1)) {
				r.fail(n, path, "%q is not a share above 0 and below 1", n.Value)
			}
		}},
		{"seed", "of its random numbers", func(n *yaml.Node, path string) {
			var err error
			if t.Seed, err = strconv.ParseUint(r.text(n, path), 10, 64); r.err == nil &&
				err != nil {
				r.fail(n, path, "%q is not a whole number", n.Value)
			}
		}},
	}
}

// Describe lists all keys of a scenario with their meanings, one line each.
func Describe() string {
	var text strings.Builder
	s := defaults()
	for _, k := range s.keys(nil) {
		fmt.Fprintf(&text, "  %-15s %s\n", k.name, k.about)
		if k.name == "trace" {
			for _, t := range s.Trace.keys(nil) {
				fmt.Fprintf(&text, "    %-13s %s\n", t.name, t.about)
			}
		}
	}
	return text.String()
}

// check refuses combinations of keys that cannot be used, and fills in the trace's defaults.
func (s *Scenario) check(r *reader, root *yaml.Node) {
	t := &s.Trace
	made := *t
	made.File = ""
	switch {
	case t.File == "" && t.Like == "":
		r.fail(root, "trace", "is missing; give trace: {file: NAME.trace.arrow} or trace: "+
			"{like: MODEL, tokens: N}")
	case t.File != "" && made != (TraceSpec{}):
		r.fail(root, "trace", "a file and a synthetic trace are given; give one of them")
	case t.Like != "" && t.Tokens == 0:
		r.fail(root, "trace", "tokens: is missing")
	case len(s.Devices) == 0:
		r.fail(root, "devices", "is missing; name presets or files, \"windrow device list\" "+
			"shows the presets")
	case t.Sequences > 1 && len(s.Batches) > 0:
		r.fail(root, "trace", "sequences: and batches: are given; the size of a synthetic batch "+
			"is its number of sequences, so give no sequences")
	case t.Active > 0 && len(s.Shares) > 0:
		r.fail(root, "shares", "active: of the trace is given, too; give one of them")
	case s.predictors() && t.Like != "":
		r.fail(root, "false_negatives", "a synthetic trace has the predictor that it is generated "+
			"with; write it with \"windrow synth trace\" and name the file")
	case s.predictors() && !slices.Contains(s.Predicted, true):
		r.fail(root, "false_negatives", "a predictor is described, but no predicted masks are "+
			"used; add predicted: true")
	case len(s.Windows)+len(s.Policies) == 0:
		r.fail(root, "windows", "is missing; give windows: 1..64, or policies:")
	case s.Count() > mostConfigurations:
		r.fail(root, "scenario", "its lists multiply to %d configurations; at most %d", s.Count(),
			mostConfigurations)
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
	lengths := []int{
		max(len(s.Shares), 1), max(len(s.FalseNegatives), 1), max(len(s.FalsePositives), 1),
		max(len(s.Batches), 1), len(s.Predicted),
		len(s.Windows) + len(s.Policies), len(s.Gaps), len(s.Coalesce), len(s.Chunks),
		len(s.Devices), max(len(s.Backends), 1), len(s.Engines), len(s.Parallel),
	}
	for _, length := range lengths {
		if n *= length; n > mostConfigurations {
			return n
		}
	}
	return n
}

// Resolver finds the devices, engines and image that a scenario names.
type Resolver struct {
	Device func(name string) (*devicemodels.Device, error)
	// of a device, also for auto
	Engine   func(device *devicemodels.Device, name string) (string, error)
	Parallel func(engine string) int                    // of auto
	Image    func(name string) (layout.Geometry, error) // of a flash image
}

// Configurations are those of a sweep, by number. They are made when they are asked for, so that
// their number takes no memory.
type Configurations interface {
	Len() int
	// At returns a configuration whose defaults are not filled in. It is safe for concurrent use.
	At(i int) Config
}

// List is Configurations in memory.
type List []Config

// Len implements Configurations.
func (l List) Len() int { return len(l) }

// At implements Configurations.
func (l List) At(i int) Config { return l[i] }

// Between is the configurations from one number to below another.
func Between(all Configurations, from, to int) Configurations { return &someOf{all, from, to} }

type someOf struct {
	all      Configurations
	from, to int
}

func (b *someOf) Len() int { return b.to - b.from }

func (b *someOf) At(i int) Config { return b.all.At(b.from + i) }

// product is the Configurations of a scenario: one of each of its lists, the last list changing
// first.
type product struct {
	s        *Scenario
	machines []machine // of a device, a backend and an engine
}

// machine runs configurations, with every depth of the scenario.
type machine struct {
	device   *devicemodels.Device
	backend  sim.Backend
	engine   string
	parallel int // where the scenario says auto
}

// Configurations resolves the devices and the image, and returns the configurations in order.
func (s *Scenario) Configurations(find Resolver) (Configurations, error) {
	s.Models = nil
	for _, name := range s.Devices {
		d, err := find.Device(name)
		if err != nil {
			return nil, err
		}
		s.Models = append(s.Models, d)
	}
	if s.Image != "" {
		geometry, err := find.Image(s.Image)
		if err != nil {
			return nil, err
		}
		s.Geometry = &geometry
	}
	backends := s.Backends
	if len(backends) == 0 {
		backends = []sim.Backend{sim.OnHost}
	}
	p := &product{s: s}
	for _, device := range s.Models {
		for _, backend := range backends {
			for _, name := range s.Engines {
				engine, err := find.Engine(device, name)
				if err != nil {
					return nil, err
				}
				p.machines = append(p.machines, machine{device, backend, engine,
					find.Parallel(engine)})
			}
		}
	}
	return p, nil
}

// Len implements Configurations.
func (p *product) Len() int { return p.s.Count() }

// At implements Configurations.
func (p *product) At(i int) (cfg Config) {
	s := p.s
	pick := func(n int) int { // from a list of n, an empty one standing for one zero
		n = max(n, 1)
		at := i % n
		i /= n
		return at
	}
	parallel := s.Parallel[pick(len(s.Parallel))]
	m := &p.machines[pick(len(p.machines))]
	chunk := s.Chunks[pick(len(s.Chunks))]
	coalesce := s.Coalesce[pick(len(s.Coalesce))]
	gap := s.Gaps[pick(len(s.Gaps))]
	if at := pick(len(s.Windows) + len(s.Policies)); at < len(s.Windows) {
		cfg.Policy = policy.SlidingWindow(s.Windows[at])
	} else {
		cfg.Policy = s.Policies[at-len(s.Windows)]
	}
	cfg.Predicted = s.Predicted[pick(len(s.Predicted))]
	cfg.Batch = orZero(s.Batches, pick(len(s.Batches)))
	cfg.WhatIf = whatif.Options{Predictor: s.predictors(),
		FalsePositives: orZero(s.FalsePositives, pick(len(s.FalsePositives)))}
	cfg.WhatIf.FalseNegatives = orZero(s.FalseNegatives, pick(len(s.FalseNegatives)))
	cfg.WhatIf.Share = orZero(s.Shares, pick(len(s.Shares)))
	if cfg.Predicted {
		cfg.PredictorRank = s.Rank
	}
	if s.Geometry != nil {
		cfg.Geometry = *s.Geometry
	}
	cfg.Layout = layout.Options{Gap: gap, Coalesce: coalesce, MaxRequest: chunk}
	cfg.Device, cfg.Backend, cfg.Engine, cfg.Parallel = m.device, m.backend, m.engine, parallel
	if parallel == 0 {
		cfg.Parallel = m.parallel
	}
	return cfg
}

// predictors reports whether the scenario describes a what-if predictor.
func (s *Scenario) predictors() bool { return len(s.FalseNegatives)+len(s.FalsePositives) > 0 }

// orZero is an item of a list, or zero if the list is empty.
func orZero[T int | float64](list []T, at int) (v T) {
	if len(list) > 0 {
		v = list[at]
	}
	return v
}
