package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/arrivals"
)

const ms = units.Millisecond

// list is a source of given requests.
type list []arrivals.Request

func (l *list) Next(r *arrivals.Request) error {
	if len(*l) == 0 {
		return io.EOF
	}
	*r, *l = (*l)[0], (*l)[1:]
	return nil
}

func requests(rs ...arrivals.Request) *list { l := list(rs); return &l }

// testDevice is busy with everything that a host can be.
func testDevice() *devicemodels.Device {
	return &devicemodels.Device{
		Version: "1", Name: "test", Source: "made up for tests",
		Flash: flash.Spec{
			Servers: 8, LTFB: 90 * units.Microsecond, ServerRate: 400 * units.MBps, LinkRate: 2 *
				units.GBps, Align: 4096,
			Engines: map[string]flash.EngineCost{"pread": {Batch: 5000, Submit: 4000,
				Complete: 2000}},
		},
		Host: devicemodels.Host{
			Cores: 4, MemoryRate: 20 * units.GBps, DenseRate: 15 * units.GBps, DenseFixed: 2000,
			RowRate: 10 * units.GBps, RowFixed: 1000,
			CopyRate: 8 * units.GBps, CopyFixed: 100, KVRate: 10 * units.GBps, LayerFixed: 3000,
			TokenFixed: 10000, DecideFixed: 500, DecideUnit: 10,
		},
	}
}

// constantDevice takes a millisecond for every layer of every step and nothing for anything else.
func constantDevice() *devicemodels.Device {
	d := testDevice()
	d.Host = devicemodels.Host{Cores: 1, LayerFixed: ms}
	return d
}

// testTrace has a sequence of prompt tokens followed by generated ones, with masks that change
// slowly. A share of 0 leaves them empty.
func testTrace(layers, perLayer, prompt, decode int, share float64) *traces.Memory {
	random := rand.New(rand.NewPCG(21, 22))
	m := &traces.Memory{Head: traces.Header{
		SchemaVersion: traces.SchemaVersion, UnitKind: traces.Neuron, Layers: layers,
		Units: perLayer, UnitBytes: 8192, Model: "test",
		Shape: traces.Shape{DModel: 2048, Layers: layers, DFFN: perLayer, Heads: 32, KVHeads: 32,
			HeadDim: 64, Vocab: 1000, MaxPos: 512, Rows: 2, DTypeSize: 2},
	}}
	on := make([][]bool, layers)
	for l := range on {
		on[l] = make([]bool, perLayer)
	}
	for i := range prompt + decode {
		t := traces.Token{Pos: uint32(i), ID: uint32(i), Phase: traces.PhaseOf(i < prompt)}
		for l := range on {
			mask := make([]uint64, (perLayer+63)/64)
			for u := range on[l] {
				if random.Float64() < 0.3 {
					on[l][u] = random.Float64() < share
				}
				if on[l][u] {
					mask[u/64] |= 1 << (u % 64)
				}
			}
			t.Active = append(t.Active, mask)
		}
		m.List = append(m.List, t)
	}
	return m
}

func testConfig() Config {
	return Config{
		Sim: sim.Config{Policy: policy.SlidingWindow(3), Engine: "pread", Parallel: 16,
			Device: testDevice(),
			Layout: layout.Options{Coalesce: true}},
		MaxBatch: 4, Chunk: 8, Events: true, Seed: 1,
	}
}

func newServer(t *testing.T, src traces.Source, cfg Config) *Server {
	t.Helper()
	s, err := New(src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustRun(t *testing.T, s *Server, src Source) *Result {
	t.Helper()
	r, err := s.Run(context.Background(), src)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// randomLoad is n requests of a Poisson process.
func randomLoad(t *testing.T, n int64, rate float64, prompt, output int, spread float64) Source {
	t.Helper()
	lengths, err := NewLengths(prompt, output, spread, 7)
	if err != nil {
		t.Fatal(err)
	}
	load, err := NewShaped(lengths, Shape{Requests: n, Rate: rate, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	return load
}

// Two requests on a device whose steps all take 2 ms, at two prompt tokens a step:
//
//	0 to 2 ms  two prompt tokens of the first; the second comes at 1 ms
//	2 to 4 ms  its last one, and the first of the second
//	4 to 6 ms  an output token of the first, and the last prompt token of the second
func TestByHand(t *testing.T) {
	cfg := testConfig()
	cfg.Sim.Device, cfg.Chunk, cfg.Compute, cfg.TTFT, cfg.TPOT = constantDevice(), 2, Once, 4*ms,
		2*ms
	s := newServer(t, testTrace(2, 64, 4, 4, 0), cfg)
	r := mustRun(t, s, requests(arrivals.Request{Prompt: 3, Output: 2}, arrivals.Request{At: ms,
		Prompt: 2, Output: 1}))
	one := func(v ...units.Nanos) Latency {
		var h histogram
		for _, v := range v {
			h.add(v, 1)
		}
		return h.latency()
	}
	for _, c := range []struct {
		name      string
		got, want Latency
	}{
		{"TTFT", r.TTFT, one(4*ms, 5*ms)}, {"TPOT", r.TPOT, one(2 * ms)}, {"ITL", r.ITL,
			one(2 * ms)},
		{"E2EL", r.E2E, one(6*ms, 5*ms)}, {"queueing", r.Queueing, one(0, ms)},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, c.got, c.want)
		}
	}
	if r.Arrived != 2 || r.Completed != 2 || r.Single != 1 || r.Good != 1 || r.Steps != 3 ||
		r.Duration != 6*ms || r.Busy != 6*ms || r.PeakBatch != 2 {
		t.Errorf("%+v", r)
	}
	if r.Input != 5 || r.Decode != 1 || r.Output != 3 || r.Attainment != 0.5 ||
		math.Abs(r.RequestGoodput-1/0.006) > 1e-9 || r.Utilisation != 1 {
		t.Errorf("%+v", r)
	}
	// After the second step the first has 3 positions and the second 1; after the third 4 and 2.
	if want := 6 * 2 * s.head.Shape.KVBytes(); r.PeakKV != want {
		t.Errorf("keys and values: %v, want %v", r.PeakKV, want)
	}
}

// Field case W3: a request that fails has its prompt computed, keeps others waiting and has no
// latency. On a device whose steps take 2 ms, at two prompt tokens a step:
//
//	0 to 4 ms  three prompt tokens, of a request that fails
//	4 to 6 ms  the prompt of the second, which came at 1 ms
func TestField_W3_FailedRequests(t *testing.T) {
	cfg := testConfig()
	cfg.Sim.Device, cfg.Chunk, cfg.Compute, cfg.MaxBatch = constantDevice(), 2, Once, 1
	cfg.TTFT = 5 * ms
	s := newServer(t, testTrace(2, 64, 4, 4, 0), cfg)
	r := mustRun(t, s, requests(arrivals.Request{Prompt: 3}, arrivals.Request{At: ms, Prompt: 2,
		Output: 1}))
	if r.Arrived != 2 || r.Completed != 1 || r.Failed != 1 || r.Good != 1 || r.Attainment != 1 ||
		r.Unfinished.Total() != 0 || r.Steps != 3 || r.Input != 5 || r.Output != 1 {
		t.Errorf("%+v", r)
	}
	if r.TTFT.Count != 1 || r.TTFT.Max != 5*ms || r.E2E.Count != 1 || r.Queueing.Max != 3*ms {
		t.Errorf("TTFT %+v, E2EL %+v, queueing %+v", r.TTFT, r.E2E, r.Queueing)
	}
	// The keys and values of its prompt are in memory meanwhile, and given back.
	if want := 3 * 2 * s.head.Shape.KVBytes(); r.PeakKV != want {
		t.Errorf("keys and values: %v, want %v", r.PeakKV, want)
	}
}

// With one request at a time, a token takes what sim.Run charges for a token with these masks.
func TestAloneIsSim(t *testing.T) {
	const prompt, decode = 5, 9
	src := testTrace(3, 300, prompt, decode, 0.1)
	cfg := testConfig()
	cfg.Chunk = 1
	for seed := uint64(0); ; seed++ { // until the request begins where the trace does
		cfg.Seed = seed
		s := newServer(t, src, cfg)
		if p, d := s.place(0); p != 0 || d != 0 {
			continue
		}
		run, err := sim.Run(t.Context(), src, cfg.Sim)
		if err != nil {
			t.Fatal(err)
		}
		var ends [prompt + decode]units.Nanos
		for _, row := range run.Rows {
			ends[row.Token] = row.Start + row.Dur
		}
		r := mustRun(t, s, requests(arrivals.Request{Prompt: prompt, Output: decode + 1}))
		if want := ends[prompt-1]; r.TTFT.Max != want {
			t.Errorf("TTFT %v, want %v", r.TTFT.Max, want)
		}
		if want := (ends[prompt+decode-1] - ends[prompt-1]) / decode; r.TPOT.Max != want {
			t.Errorf("TPOT %v, want %v", r.TPOT.Max, want)
		}
		got := [traces.Parts]units.Nanos{r.Parts.Attention, r.Parts.Decide, r.Parts.IO,
			r.Parts.Memory, r.Parts.FFN, r.Parts.Other}
		if got != run.Meta.Totals.PartNanos || r.Bytes != run.Meta.Totals.Bytes ||
			r.HitRatio != run.Meta.Totals.HitRatio {
			t.Errorf("%+v, %v, want %+v", r.Parts, r.Bytes, run.Meta.Totals)
		}
		if r.Basis != run.Meta.Prediction.Basis {
			t.Errorf("basis %s, want %s", r.Basis, run.Meta.Prediction.Basis)
		}
		return
	}
}

// The ways to charge arithmetic are in their order, and alike for a single token.
func TestComputeIsOrdered(t *testing.T) {
	src := testTrace(2, 300, 40, 40, 0.1)
	duration := func(c Compute, gflops float64, chunk int) units.Nanos {
		cfg := testConfig()
		cfg.Sim.Device.Host.ComputeGFLOPS, cfg.Compute, cfg.Chunk = gflops, c, chunk
		return mustRun(t, newServer(t, src, cfg), randomLoad(t, 6, math.Inf(1), 20, 5, 0)).Busy
	}
	once, fast, slow, each := duration(Once, 0, 8), duration(Peak, 1000, 8), duration(Peak, 20, 8),
		duration(Auto, 0, 8)
	if !(once <= fast && fast < slow && slow < each) {
		t.Errorf("once %v, fast arithmetic %v, slow %v, each alone %v", once, fast, slow, each)
	}
	cfg := testConfig()
	cfg.Sim.Device.Host.ComputeGFLOPS = 20
	if got := newServer(t, src, cfg).Compute(); got != Peak {
		t.Errorf("a device with a peak is charged %q", got)
	}
}

// Every token of every admitted request is computed once, whatever the load, the policy and where
// it stops; and what arrived is finished, unfinished or refused.
func TestConservation(t *testing.T) {
	src := testTrace(2, 200, 30, 50, 0.1)
	for i, change := range []func(*Config){
		func(*Config) {},
		func(c *Config) { c.MaxBatch, c.Chunk = 1, 1 },
		func(c *Config) {
			c.Sim.Policy = policy.Spec{Kind: policy.KindLRU,
				Capacity: 50}
		},
		func(c *Config) {
			c.Sim.Policy = policy.Spec{Kind: policy.KindHybrid,
				Capacity: 50}
		},
		func(c *Config) {
			c.Sim.Policy = policy.Spec{Kind: policy.KindHot, Pinned: 20,
				Capacity: 50}
		},
		func(c *Config) { c.KV = 150 * 2 * 16 * units.KiB }, // 150 positions in two layers
		func(c *Config) { c.Events = false },
		func(c *Config) { c.Deadline = 300 * ms },
	} {
		cfg := testConfig()
		change(&cfg)
		s := newServer(t, src, cfg)
		for _, rate := range []float64{1, 30, math.Inf(1)} {
			name := fmt.Sprintf("change %d at %g per second", i, rate)
			r := mustRun(t, s, randomLoad(t, 40, rate, 60, 12, 1.2))
			if r.Completed+r.Unfinished.Total() != r.Arrived || r.Arrived > 40 ||
				cfg.Deadline == 0 && r.Arrived != 40 {
				t.Errorf("%s: arrived %d, finished %d, not %+v", name, r.Arrived, r.Completed,
					r.Unfinished)
			}
			if r.TTFT.Count < r.Completed || r.E2E.Count != r.Completed ||
				r.TPOT.Count+r.Single != r.Completed || r.ITL.Count != r.Decode {
				t.Errorf("%s: %+v", name, r)
			}
			// each output token but the first comes of a computed one
			if r.Decode != r.Output-r.TTFT.Count {
				t.Errorf("%s: %d tokens computed for %d outputs of %d requests", name, r.Decode,
					r.Output, r.TTFT.Count)
			}
			if cfg.KV > 0 && (r.PeakKV > cfg.KV || r.Unfinished.TooLarge == 0) {
				t.Errorf("%s: keys and values of %v, %+v", name, r.PeakKV, r.Unfinished)
			}
			if cfg.Deadline > 0 && (r.Stopped != Deadline || rate > 1 &&
				r.Unfinished.Running == 0) {
				t.Errorf("%s: stopped %q, %+v", name, r.Stopped, r.Unfinished)
			}
			if cfg.Deadline > 0 {
				continue
			}
			prompts, outputs := served(t, randomLoad(t, 40, rate, 60, 12, 1.2), s)
			if r.Input != prompts || r.Output != outputs {
				t.Errorf("%s: %d prompt and %d output tokens, want %d and %d", name, r.Input,
					r.Output, prompts, outputs)
			}
			p := r.Parts
			sum := p.Attention + p.Decide + p.IO + p.Memory + p.FFN + p.Other
			if sum != r.Busy || r.Busy > r.Duration {
				t.Errorf("%s: %+v do not add up to %v", name, p, r.Busy)
			}
		}
	}
}

// served adds up the tokens of the requests that a server does not refuse.
func served(t *testing.T, src Source, s *Server) (prompts, outputs int64) {
	t.Helper()
	var r arrivals.Request
	for {
		err := src.Next(&r)
		if err == io.EOF {
			return prompts, outputs
		}
		if err != nil {
			t.Fatal(err)
		}
		n := r.Prompt + r.Output - 1
		if n <= s.head.Shape.MaxPos && (s.cfg.KV == 0 ||
			units.Bytes(n)*s.positionBytes() <= s.cfg.KV) {
			prompts, outputs = prompts+int64(r.Prompt), outputs+int64(r.Output)
		}
	}
}

// One more sequence never makes a step cheaper: its masks only add to the union. Requests are not
// joined here, since a neuron between two others can join their reads into one.
func TestLargerStepsAreNotCheaper(t *testing.T) {
	src := testTrace(2, 300, 40, 60, 0.1)
	for _, compute := range []Compute{Once, Peak, Each} {
		cfg := testConfig()
		cfg.MaxBatch, cfg.Chunk, cfg.Compute, cfg.Sim.Policy, cfg.Sim.Layout = 16, 16, compute,
			policy.Spec{},
			layout.Options{}
		cfg.Sim.Device.Host.ComputeGFLOPS = 20
		s := newServer(t, src, cfg)
		last, lastNeeded := units.Nanos(0), 0.0
		for n := 1; n <= 16; n++ {
			r, err := s.begin(nil, -1)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				q := sequence{prompt: 10 + i, output: 9, computed: 10 + i, delivered: 1}
				if i%3 == 2 {
					q.computed, q.delivered = 6, 0 // still at its prompt
				}
				q.promptAt, q.decodeAt = s.place(int64(i))
				r.running = append(r.running, q)
			}
			r.compose()
			took, err := r.execute()
			if err != nil {
				t.Fatal(err)
			}
			if needed := float64(r.sum.Loads); took < last || needed < lastNeeded {
				t.Errorf("%s: a step of %d sequences takes %v for %g units, one less %v for %g",
					compute, n, took, needed, last, lastNeeded)
			} else {
				last, lastNeeded = took, needed
			}
		}
	}
}

// Where the steps are all alike, waiting grows with the rate of the same requests.
func TestHigherRatesWaitLonger(t *testing.T) {
	cfg := testConfig()
	s := newServer(t, testTrace(2, 200, 30, 50, 0.1), cfg)
	last := &Result{}
	for _, rate := range []float64{0.5, 4, 32, 256} {
		r := mustRun(t, s, randomLoad(t, 60, rate, 30, 10, 0.5))
		if r.TTFT.P99 < last.TTFT.P99 || r.Queueing.Mean < last.Queueing.Mean ||
			r.PeakBatch > cfg.MaxBatch {
			t.Errorf("at %g per second: TTFT %+v, before %+v", rate, r.TTFT, last.TTFT)
		}
		if r.ITL.Max < r.TPOT.Max || r.E2E.Max < r.TTFT.Max {
			t.Errorf("a mean of gaps exceeds the longest gap: %+v, %+v", r.TPOT, r.ITL)
		}
		last = r
	}
}

// The same seed gives the same bytes, on one server and on two; another seed other masks.
func TestSameSeedSameBytes(t *testing.T) {
	src := testTrace(2, 300, 30, 50, 0.1)
	text := func(s *Server) string {
		b, err := json.Marshal(mustRun(t, s, randomLoad(t, 20, 20, 30, 10, 0.5)))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	cfg := testConfig()
	s := newServer(t, src, cfg)
	first := text(s)
	if again, other := text(s), text(newServer(t, src, cfg)); first != again || first != other {
		t.Error("two runs differ")
	}
	if cfg.Seed++; text(newServer(t, src, cfg)) == first {
		t.Error("the seed changes nothing")
	}
}

// Times from a table are those of the events within a hundredth.
func TestTableIsNearEvents(t *testing.T) {
	src := testTrace(2, 300, 30, 50, 0.1)
	cfg := testConfig()
	events := mustRun(t, newServer(t, src, cfg), randomLoad(t, 20, 20, 30, 10, 0.5))
	cfg.Events = false
	table := mustRun(t, newServer(t, src, cfg), randomLoad(t, 20, 20, 30, 10, 0.5))
	if events.Reads != "events" || table.Reads != "table" || events.Bytes == 0 {
		t.Fatalf("%q, %q", events.Reads, table.Reads)
	}
	if off := float64(table.Parts.IO)/float64(events.Parts.IO) - 1; math.Abs(off) > 0.01 {
		t.Errorf("reads take %v by the table, %v as events", table.Parts.IO, events.Parts.IO)
	}
}

// An ended context gives what was done and says why it ended.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cfg := testConfig()
	cfg.Progress = func(done int64) {
		if done == 3 {
			cancel()
		}
	}
	r, err := newServer(t, testTrace(2, 100, 10, 10, 0.1), cfg).Run(ctx, randomLoad(t, 1000,
		math.Inf(1), 5, 5, 0.5))
	if !errors.Is(err, context.Canceled) || r == nil || r.Stopped != Interrupted ||
		r.Completed < 3 || r.Unfinished.Running == 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	if r.Completed+r.Unfinished.Total() != r.Arrived {
		t.Errorf("arrived %d, finished %d, not %+v", r.Arrived, r.Completed, r.Unfinished)
	}
}

// counted counts what is read of a source.
type counted struct {
	Source
	read int64
}

func (c *counted) Next(r *arrivals.Request) error {
	err := c.Source.Next(r)
	if err == nil {
		c.read++
	}
	return err
}

// Requests that wait stay in the source, so that memory does not grow with them.
func TestReadsNoFurtherThanNeeded(t *testing.T) {
	cfg := testConfig()
	src := &counted{Source: randomLoad(t, 300, math.Inf(1), 5, 3, 0.5)}
	cfg.Progress = func(done int64) {
		if ahead := src.read - done; ahead > int64(cfg.MaxBatch)+1 {
			t.Errorf("%d requests were read and %d are done", src.read, done)
		}
	}
	if r := mustRun(t, newServer(t, testTrace(1, 100, 10, 10, 0.1), cfg),
		src); r.Completed != 300 || src.read != 300 {
		t.Errorf("%d of %d finished", r.Completed, src.read)
	}
}

func TestRefusals(t *testing.T) {
	src := testTrace(2, 100, 4, 4, 0.1)
	for says, change := range map[string]func(*Config){
		"batches of 0 sequences":    func(c *Config) { c.MaxBatch = 0 },
		"0 prompt tokens in a step": func(c *Config) { c.Chunk = 0 },
		"none may be below 0":       func(c *Config) { c.KV = -1 },
		"MaxTokens 3":               func(c *Config) { c.Sim.MaxTokens = 3 },
		"PredictorRank 8":           func(c *Config) { c.Sim.PredictorRank = 8 },
		"the policy belady:9": func(c *Config) {
			c.Sim.Policy = policy.Spec{Kind: policy.KindBelady, Capacity: 9}
		},
		`compute "abacus"`:              func(c *Config) { c.Compute = "abacus" },
		"the device states none":        func(c *Config) { c.Compute = Peak },
		"window:-1":                     func(c *Config) { c.Sim.Policy.Window = -1 },
		"holds no predicted masks":      func(c *Config) { c.Sim.Predicted = true },
		"no costs for I/O engine \"x\"": func(c *Config) { c.Sim.Engine = "x" },
	} {
		cfg := testConfig()
		change(&cfg)
		_, err := New(src, cfg)
		if err == nil || !strings.Contains(err.Error(), says) || !errors.Is(err, ErrConfig) &&
			!errors.Is(err, sim.ErrConfig) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	s := newServer(t, src, testConfig())
	for says, src := range map[string]Source{
		"at least one token": requests(arrivals.Request{Prompt: 0, Output: 1}),
		"after one at 5ns": requests(arrivals.Request{At: 5, Prompt: 1, Output: 1},
			arrivals.Request{At: 4, Prompt: 1, Output: 1}),
	} {
		if r, err := s.Run(context.Background(), src); r != nil || !errors.Is(err, ErrConfig) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
