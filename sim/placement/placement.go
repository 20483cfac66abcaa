package placement

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// ErrConfig marks a question that cannot be answered.
var ErrConfig = refusal.Kind(refusal.ErrConfig, "placement: the layouts cannot be compared")

// MaxGap is the widest gap of a Config, in records.
const MaxGap = 1024

// MaxFriends is the largest number of friends beside a unit.
const MaxFriends = 8

// Config says what to compare.
type Config struct {
	// Sim is the configuration apart from the layout. Its Schedule, its Geometry, and Coalesce and
	// Gap of its Layout must be empty.
	Sim sim.Config
	// Gaps are the gaps to compare, in records, ascending from 0.
	Gaps []int
	// Friends is the number of closest friends whose records follow each unit's record; 0 stands
	// for 1.
	Friends int
	Workers int // 0 = one for each processor
	// Progress, if not nil, is called with the number of steps done and the number of all.
	Progress func(done, total int)
}

// Row has the costs of one layout, as means over the tokens of the test split.
type Row struct {
	Layout string `json:"layout"`
	Joined bool   `json:"joined"`      // neighbours are one read
	Gap    int    `json:"gap_records"` // over-read between two wanted records
	// Flash is the size of the layout on the device.
	Flash units.Bytes `json:"flash_bytes"`
	Reads float64     `json:"reads_per_token"`
	Bytes float64     `json:"bytes_per_token"`
	// bytes beyond one copy of every needed record
	Wasted float64 `json:"wasted_bytes_per_token"`
	// below 1 if a unit takes several reads
	Run   float64     `json:"needed_units_per_read"`
	Read  float64     `json:"mean_read_bytes"` // of one request
	IO    units.Nanos `json:"io_ns"`           // per token
	Token units.Nanos `json:"token_ns"`        // per token, all parts
	// IO and Token with their intervals
	IOEstimate    document.Estimate `json:"io_estimate_ms"`
	TokenEstimate document.Estimate `json:"token_estimate_ms"`

	Basis  string  `json:"basis"`                      // of the simulation: traces.Basis
	IOGain float64 `json:"io_speedup_over_bundled"`    // of bundles read one by one
	Gain   float64 `json:"token_speedup_over_bundled"` // likewise

	Copies *Copies `json:"copies,omitempty"` // of friends

	prediction *traces.Prediction
}

// Copies counts the records that reads of bundles with friends fetch, per token.
type Copies struct {
	Fetched  float64 `json:"brought_per_token"`  // = needed + repeated + not needed
	Needed   float64 `json:"needed_per_token"`   // each once
	Repeated float64 `json:"repeated_per_token"` // further copies of needed ones
	// not needed: in memory already, or not active
	Unneeded float64 `json:"not_needed_per_token"`
	// Hottest is the mean number of times that a token fetches a unit of the hottest 1 % of its
	// layer. HottestLoads is the mean number of times that it needs one.
	Hottest      float64 `json:"hottest_percent_brought_per_token"`
	HottestLoads float64 `json:"hottest_percent_loads_per_token"`
}

// Sweep is one order with every gap.
type Sweep struct {
	Layout string `json:"layout"`
	Rows   []Row  `json:"gaps"`
	Best   int    `json:"best_gap_records"` // the least I/O time; the narrowest of equals
	// Closed is the gap with the least time by the closed form of the flash, for reads of the mean
	// size at full depth.
	Closed int `json:"closed_form_gap_records"`
	// Pair is the rule of thumb: the widest g for which one request of two mean extents and g
	// records between them takes less time than two requests of one extent each; at most the widest
	// of Gaps. It ignores that reads overlap. If requests are the limit and the link is not,
	// over-reading costs nothing until the link is busy too.
	Pair int `json:"pair_rule_gap_records"`
}

// Result compares layouts.
type Result struct {
	Model     string `json:"model"`
	Device    string `json:"device"`
	Engine    string `json:"engine"`
	Depth     int    `json:"parallel"`
	Window    int    `json:"window_tokens"`
	Synthetic bool   `json:"synthetic"`

	Mask  string `json:"mask"` // "true" or "predicted"
	Train int    `json:"learned_tokens_count"`
	Test  int    `json:"judged_tokens_count"`
	Apart bool   `json:"no_sequence_in_both"`
	// co-activation is counted over one in so many tokens of the training split, in the layer with
	// the most pairs
	Sampled   int     `json:"pairs_of_one_in_tokens"`
	Loads     float64 `json:"loads_per_token"` // needed units that are not in memory
	Hottest   float64 `json:"hottest_percent_loads_per_token"`
	Companion Friends `json:"friends"`
	Rows      []Row   `json:"layouts"`
	Sweeps    []Sweep `json:"sweeps"`
	// Warnings are those of the simulations of bundles, read one by one and joined.
	Warnings []string `json:"warnings"`
}

// Run learns from the training split of src and measures on the test split. Token of src must be
// safe for concurrent use, with a traces.Token for each call, as in *traces.Reader and
// *traces.Memory. Errors about the configuration are of kind ErrConfig or sim.ErrConfig.
func Run(ctx context.Context, src traces.Source, cfg Config) (*Result, error) {
	if err := check(src, &cfg); err != nil {
		return nil, err
	}
	tokens := src.Tokens()
	if most := cfg.Sim.MaxTokens; most > 0 {
		tokens = min(tokens, most)
	}
	cfg.Sim.MaxTokens = 0
	train, test, apart, err := halves(src, tokens)
	if err != nil {
		return nil, err
	}
	c := &comparison{ctx: ctx, cfg: cfg, head: src.Header(), train: train, test: test}
	c.total = 2*c.head.Layers + len(c.singles()) + len(c.orders())*len(cfg.Gaps) + 2
	if err := c.trainAll(); err != nil {
		return nil, err
	}
	r := &Result{Model: c.head.Model, Device: cfg.Sim.Device.Name, Engine: cfg.Sim.Engine,
		Depth: cfg.Sim.Parallel, Window: cfg.Sim.Policy.Window, Synthetic: c.head.Synthetic,
		Warnings: []string{}, Mask: "true", Train: train.count, Test: test.count, Apart: apart,
		Sampled: c.sampled, Companion: c.companion()}
	if cfg.Sim.Predicted {
		r.Mask = "predicted"
	}
	if err := c.evaluateAll(r); err != nil {
		return nil, err
	}
	return r, nil
}

func check(src traces.Source, cfg *Config) error {
	head := src.Header()
	if cfg.Friends == 0 {
		cfg.Friends = 1
	}
	if cfg.Workers <= 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	switch {
	case cfg.Friends < 0 || cfg.Friends > MaxFriends:
		return fmt.Errorf("placement: %d friends of a unit: give 1 to %d: %w", cfg.Friends,
			MaxFriends, ErrConfig)
	case len(cfg.Gaps) == 0 || cfg.Gaps[0] != 0:
		return fmt.Errorf("placement: gaps of %v records: they must begin with 0: %w", cfg.Gaps,
			ErrConfig)
	case head.Units < 2:
		return fmt.Errorf("placement: layers of %d units: there is nothing to place: %w",
			head.Units, ErrConfig)
	}
	for i, g := range cfg.Gaps {
		if g > MaxGap || i > 0 && g <= cfg.Gaps[i-1] {
			return fmt.Errorf("placement: gaps of %v records: they must ascend, up to %d: %w",
				cfg.Gaps, MaxGap, ErrConfig)
		}
	}
	if err := cfg.Sim.Refuse("placement", limits()...); err != nil {
		return err
	}
	return cfg.Sim.Check(head)
}

// limits are the settings of Config.Sim that are refused.
func limits() []sim.Limit {
	return []sim.Limit{
		{Setting: sim.SettingGeometry, Why: "geometries are compared; leave it out"},
		{Setting: sim.SettingCoalesce, Why: "layouts are compared joined and not; leave it out"},
		{Setting: sim.SettingGap, Why: "layouts are compared under the gaps of the comparison; " +
			"leave it out"},
		{Setting: sim.SettingSchedule, Why: "layouts are compared on demand, where the reads " +
			"are all that differs"},
	}
}

// comparison is the state of a Run.
type comparison struct {
	ctx         context.Context // of the Run
	cfg         Config          // checked; the geometry of Sim is that of bundles
	head        *traces.Header
	train, test *part
	sampled     int

	hot, linear, oracle *layout.Order
	// mask of the hottest 1 % of each layer's units, by the needs of tokens
	hottest []mask.Mask
	friends [][]friend // by layer: kept friends of each unit
	shares  []friendSums

	mutex       sync.Mutex
	done, total int
}

// kept is the number of closest friends that are found for every unit.
const kept = MaxFriends

// trainAll computes the orders and the friends, layer by layer.
func (c *comparison) trainAll() error {
	first, err := newLearner(c.train, &c.cfg.Sim)
	if err != nil {
		return err
	}
	second, err := newLearner(c.test, &c.cfg.Sim)
	if err != nil {
		return err
	}
	n := c.head.Layers
	hot, chained, future := make([][]uint32, n), make([][]uint32, n), make([][]uint32, n)
	c.hottest, c.friends = make([]mask.Mask, n), make([][]friend, n)
	c.shares = make([]friendSums, n)
	sampled := make([]int, n)
	err = c.parallel(n, func(l int) error {
		known, err := first.layer(l)
		if err != nil {
			return err
		}
		hot[l], chained[l] = hotFirst(&known.read), linear(&known.read)
		c.hottest[l] = topPercent(&known.needed)
		c.friends[l] = known.needed.closest(kept, nil)
		c.shares[l] = known.needed.shares(c.friends[l])
		sampled[l] = max(known.needed.every, known.read.every)
		c.step()
		if known, err = second.layer(l); err != nil {
			return err
		}
		future[l] = linear(&known.read)
		c.step()
		return nil
	})
	if err != nil {
		return err
	}
	for _, every := range sampled {
		c.sampled = max(c.sampled, every)
	}
	for _, o := range []struct {
		to   **layout.Order
		name string
		list [][]uint32
	}{{&c.hot, hotName, hot}, {&c.linear, linearName, chained}, {&c.oracle, oracleName,
		future}} {
		if *o.to, err = layout.NewOrder(o.name, o.list); err != nil {
			return err
		}
	}
	return nil
}

// topPercent is the mask of the 1 % of the units, at least one, that are in the most sets.
func topPercent(s *sets) mask.Mask {
	top := mask.New(s.units)
	top.SetList(hotFirst(s)[:max(s.units/100, 1)])
	return top
}

// parallel calls do for 0 … n−1 and returns the first error in that order.
func (c *comparison) parallel(n int, do func(i int) error) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	failed := make([]error, n)
	for range min(c.cfg.Workers, n) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if failed[i] = c.ctx.Err(); failed[i] != nil {
					return
				}
				failed[i] = do(i)
			}
		})
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// step reports one more step to Progress.
func (c *comparison) step() {
	if c.cfg.Progress == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.done++
	c.cfg.Progress(c.done, c.total)
}
