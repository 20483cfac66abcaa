package replay

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/clock"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
	"github.com/windrow-sim/windrow/traces/synth"
)

// memoryTrace collects what a Recorder appends.
type memoryTrace struct{ traces.Memory }

func (m *memoryTrace) Append(t *traces.Token) error {
	c := *t
	c.Active = make([]mask.Mask, len(t.Active))
	for l := range t.Active {
		c.Active[l] = slices.Clone(t.Active[l])
	}
	m.List = append(m.List, c)
	return nil
}

// talesTrace records two sequences of the shipped model and packs it.
func talesTrace(t *testing.T, tokens int) (traces.Source, *model.Image, *model.Weights) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tales.flash.safetensors")
	if _, err := model.Pack(context.Background(), "../examples/models/tales", path,
		model.PackOptions{}); err != nil {
		t.Fatal(err)
	}
	image, w := openImage(t, path)
	bundles := make([][]byte, image.Shape.Layers)
	for l := range bundles {
		bundles[l] = make([]byte, image.LayerBytes())
		if err := image.Bundles(l, bundles[l]); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := engine.NewResident(w, bundles, image.Geometry())
	if err != nil {
		t.Fatal(err)
	}
	m := &memoryTrace{traces.Memory{Head: headerOf(image)}}
	e, err := engine.New(w, rows, engine.Config{Observer: record.New(m, image.Shape.Layers,
		m.Head.Words())})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for seq, prompt := range [][]uint32{{2, 100, 200, 300}, {2, 400}} {
		opt := engine.GenerateOptions{Seq: seq, MaxTokens: tokens, Sampling: engine.Sampling{
			Temperature: 1, TopP: 0.9, Seed: 1}}
		if _, err := e.Generate(context.Background(), prompt, opt, func(uint32) error {
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return &m.Memory, image, w
}

func openImage(t *testing.T, path string) (*model.Image, *model.Weights) {
	t.Helper()
	image, err := model.OpenImage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { image.Close() })
	w, err := image.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return image, w
}

func headerOf(image *model.Image) traces.Header {
	s := image.Shape
	return traces.Header{
		SchemaVersion: traces.SchemaVersion, UnitKind: traces.Neuron, Layers: s.Layers,
		Units: s.DFFN, UnitBytes: image.RecordBytes(),
		Model: image.Name, ModelSHA256: image.Hash, Shape: traces.Shape(s),
	}
}

// syntheticTrace is a small random model with a generated trace. Its records of 768 bytes fit no
// block.
func syntheticTrace(t *testing.T) (traces.Source, *model.Image, *model.Weights) {
	t.Helper()
	shape := model.Shape{DModel: 192, Layers: 3, DFFN: 640, Heads: 3, KVHeads: 3, HeadDim: 64,
		Vocab: 96, MaxPos: 64, Rows: 2, DTypeSize: 2}
	path := filepath.Join(t.TempDir(), "synth.flash.safetensors")
	if err := model.Synth(context.Background(), shape, "synthetic", 3, path,
		model.SynthOptions{}); err != nil {
		t.Fatal(err)
	}
	trace, err := synth.Collect(t.Context(), synth.Options{Like: "opt-6.7b",
		Shape:  traces.Shape(shape),
		Tokens: 20, Sequences: 2, Seed: 5, ActiveShare: 0.1, Predicted: true})
	if err != nil {
		t.Fatal(err)
	}
	image, w := openImage(t, path)
	return trace, image, w
}

func anyDevice() *devicemodels.Device {
	return &devicemodels.Device{
		Version: "1", Name: "any", Source: "made up for tests",
		Flash: flash.Spec{Servers: 4, LTFB: 100 * units.Microsecond, ServerRate: 200 * units.MBps,
			LinkRate: units.GBps, Align: 1,
			Engines: map[string]flash.EngineCost{"pread": {Submit: 1000}, "uring": {Submit: 500,
				Serial: true}, "mem": {}, "mmap": {}}},
		Host: devicemodels.Host{Cores: 2, MemoryRate: 10 * units.GBps, DenseRate: 8 * units.GBps,
			RowRate: 6 * units.GBps, CopyRate: 6 * units.GBps, KVRate: 6 * units.GBps},
	}
}

// TestSameDecisions is invariant 1: on one trace, the simulator's hits, misses, evictions, requests
// and bytes equal the engine's, per token and layer, for every window, request shape and way to
// read; and under schedules, for every policy, alignment and size of the staging buffer.
func TestSameDecisions(t *testing.T) {
	type source func(*testing.T) (traces.Source, *model.Image, *model.Weights)
	for name, make := range map[string]source{
		"tales": func(t *testing.T) (traces.Source, *model.Image, *model.Weights) {
			return talesTrace(t, 12)
		},
		"synthetic": syntheticTrace,
	} {
		t.Run(name, func(t *testing.T) {
			src, image, w := make(t)
			if src.Header().HasPredicted {
				lay := layout.Options{Coalesce: true}
				checkSameDecisions(t, src, image, w, Config{Policy: policy.SlidingWindow(2),
					Layout:    lay,
					Predicted: true}, flashio.Options{Engine: flashio.EngineMem})
			}
			for i, window := range []int{0, 1, 3, 16} {
				for _, io := range []flashio.Options{{Engine: flashio.EngineMem},
					{Engine: flashio.EnginePread, Parallel: 4}, {Engine: flashio.EnginePread,
						Direct: flashio.DirectOff}} {
					lay := []layout.Options{{}, {Coalesce: true}, {Coalesce: true, MaxRequest: 4 *
						units.KiB}, {Coalesce: true, Gap: 2}}[i]
					checkSameDecisions(t, src, image, w,
						Config{Policy: policy.SlidingWindow(window), Layout: lay}, io)
				}
			}
			checkPrefetches(t, src, image, w)
		})
	}
}

// checkPrefetches compares the decisions under every schedule that prefetches, over policies,
// alignments and sizes of the staging buffer.
func checkPrefetches(t *testing.T, src traces.Source, image *model.Image, w *model.Weights) {
	t.Helper()
	bundles := func(l int) ([]byte, error) { return bundlesOf(image, l) }
	for _, text := range []string{"window:3", "delta:60", "lru:90", "none"} {
		spec, err := policy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, when := range []schedule.Spec{{Kind: schedule.LookAhead},
			{Kind: schedule.LookAhead, Dense: 2}, {Kind: schedule.Token, Dense: 1},
			{Kind: schedule.Token, Dense: 2}} {
			batched := false // more requests with a small buffer than with a large one
			for _, align := range []units.Bytes{1, 4096} {
				whole := int64(0)
				for _, staging := range []units.Bytes{0, 64 * units.KiB, 32 * units.KiB,
					16 * units.KiB} {
					when.Staging = staging
					requests := checkSameDecisions(t, src, image, w, Config{Policy: spec,
						Schedule: when, Bundles: bundles,
						Layout: layout.Options{Align: align, Coalesce: true},
					}, flashio.Options{Engine: flashio.EngineMem})
					if staging == 0 {
						whole = requests
					}
					batched = batched || requests > whole
				}
			}
			if !batched {
				t.Errorf("%s, %+v: no staging buffer was too small for a layer", text, when)
			}
		}
	}
}

func bundlesOf(image *model.Image, layer int) ([]byte, error) {
	data := make([]byte, image.LayerBytes())
	return data, image.Bundles(layer, data)
}

// checkSameDecisions replays and simulates a configuration, and compares. It returns the number of
// requests.
func checkSameDecisions(t *testing.T, src traces.Source, image *model.Image, w *model.Weights,
	cfg Config, io flashio.Options) (requests int64) {
	t.Helper()
	reader, err := flashio.Open(image.Path, io)
	if err != nil {
		t.Fatal(err)
	}
	counter := flashio.WithCounter(reader)
	cfg.Layout.Align = max(cfg.Layout.Align, reader.Mode().Align)
	result, err := Run(context.Background(), src, w, image.Geometry(), counter, cfg)
	if err != nil {
		t.Fatal(err)
	}
	simulated, err := sim.Run(t.Context(), src, sim.Config{
		Policy: cfg.Policy, Schedule: sim.Replayed(cfg.Schedule),
		Engine: "pread", Parallel: 4, Predicted: cfg.Predicted, Layout: cfg.Layout,
		Device: anyDevice(), Geometry: image.Geometry()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := compare.Compare(simulated, result.Run, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !c.CountersEqual || !c.BytesEqual {
		t.Fatalf("%+v: %d counters differ, first %+v", cfg, c.DifferencesTotal, c.Differences)
	}
	// Copies are not compared by Compare, which looks at flash alone; here they must agree as well.
	for i, r := range simulated.Rows {
		if m := result.Run.Rows[i]; r.Part == traces.PartMemory && m.Bytes != r.Bytes {
			t.Fatalf("%+v: token %d, layer %d: %d bytes copied, simulated %d", cfg, r.Token,
				r.Layer, m.Bytes, r.Bytes)
		}
	}
	// Conservation: what the run says was read is what the reader was asked for.
	total := result.Run.Meta.Totals
	if got := counter.Completed(); got.Requests != total.Requests || got.Bytes != total.Bytes {
		t.Fatalf("the reader saw %+v, the run says %d requests, %d bytes", got, total.Requests,
			total.Bytes)
	}
	if total.Hits+total.Misses == 0 || total.Misses == 0 || cfg.Policy.Window > 0 &&
		total.Hits == 0 {
		t.Fatalf("nothing happened: %+v", total)
	}
	return total.Requests
}

// Calibrate finds the constants of a host from a run that a host of those constants made.
func TestCalibrateRecoversTheHost(t *testing.T) {
	src, image := longTrace(t)
	truth := anyDevice()
	truth.Host = devicemodels.Host{
		Cores: 2, MemoryRate: 20 * units.GBps, DenseRate: 8 * units.GBps, DenseFixed: 3000,
		RowRate: 4 * units.GBps, RowFixed: 5000, CopyRate: 6 * units.GBps,
		CopyFixed: 70, KVRate: 5 * units.GBps, LayerFixed: 9000, TokenFixed: 20000,
		DecideFixed: 800, DecideUnit: 12,
	}
	run, err := sim.Run(t.Context(), src, sim.Config{Policy: policy.SlidingWindow(2),
		Engine:   "pread",
		Parallel: 4, Device: truth,
		Geometry: image.Geometry()})
	if err != nil {
		t.Fatal(err)
	}
	// What the probe knows stays; the rest is to be found.
	host := devicemodels.Host{Cores: 2, MemoryRate: truth.Host.MemoryRate,
		DenseRate: truth.Host.DenseRate, DenseFixed: truth.Host.DenseFixed,
		CopyRate: truth.Host.CopyRate, RowRate: units.GBps}
	if err := Calibrate(&host, run, src.Header()); err != nil {
		t.Fatal(err)
	}
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 0.03*want {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
	near("row rate", float64(host.RowRate), float64(truth.Host.RowRate))
	near("row fixed", float64(host.RowFixed), float64(truth.Host.RowFixed))
	near("copy fixed", float64(host.CopyFixed), float64(truth.Host.CopyFixed))
	near("decide fixed", float64(host.DecideFixed), float64(truth.Host.DecideFixed))
	near("decide unit", float64(host.DecideUnit), float64(truth.Host.DecideUnit))
	near("kv rate", float64(host.KVRate), float64(truth.Host.KVRate))
	near("layer fixed", float64(host.LayerFixed), float64(truth.Host.LayerFixed))
	near("token fixed", float64(host.TokenFixed), float64(truth.Host.TokenFixed))

	// A few tokens cannot tell the slope over positions: what the probe measured stays.
	few := *run
	few.Rows = run.Rows[:len(run.Rows)/4]
	host.KVRate = 7 * units.GBps
	if err := Calibrate(&host, &few, src.Header()); err != nil || host.KVRate != 7*units.GBps {
		t.Errorf("from a few positions: KV rate %v, %v", host.KVRate, err)
	}
	run.Rows = run.Rows[:20]
	if err := Calibrate(&host, run, src.Header()); err == nil {
		t.Error("a calibration on almost nothing gave no error")
	}
}

// V12: the machine sleeps, or its clock is set, during a run. The run is marked, it is not used for
// a fit, a comparison gives no verdict, and no time is negative.
func TestField_V12_ARunBesideASleep(t *testing.T) {
	src, image := longTrace(t)
	w, err := image.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		set    time.Duration
		marked bool
	}{"asleep": {8 * time.Hour, true}, "set back": {-time.Hour, true},
		"corrected": {900 * time.Millisecond, false}} {
		reader, err := flashio.Open(image.Path, flashio.Options{Engine: flashio.EngineMem})
		if err != nil {
			t.Fatal(err)
		}
		set, looks, real := time.Duration(0), 0, clock.System()
		result, err := Run(context.Background(), src, w, image.Geometry(), reader, Config{
			Policy: policy.SlidingWindow(2), Layout: layout.Options{Coalesce: true},
			Clock: func() (units.Nanos, time.Time) {
				if looks++; looks == 5 {
					set = c.set
				}
				mono, wall := real()
				return mono, wall.Add(set)
			}})
		if err != nil {
			t.Fatal(err)
		}
		run := result.Run
		for _, r := range run.Rows {
			if r.Dur < 0 || r.Start < 0 {
				t.Fatalf("%s: a row from %v of %v", name, r.Start, r.Dur)
			}
		}
		told := strings.Contains(strings.Join(run.Meta.Warnings, "\n"),
			"slept or its clock was set")
		if jumped := run.Meta.ClockJump != 0; jumped != c.marked || told != c.marked {
			t.Errorf("%s: a jump of %v, told: %v", name, run.Meta.ClockJump, told)
		}
		host := devicemodels.Host{Cores: 2}
		if err := Calibrate(&host, run, src.Header()); (err != nil) != c.marked {
			t.Errorf("%s: calibration: %v", name, err)
		}
		simulated, err := sim.Run(t.Context(), src, sim.Config{Policy: policy.SlidingWindow(2),
			Engine:   "pread",
			Parallel: 1, Device: anyDevice(), Geometry: image.Geometry(),
			Layout: layout.Options{Align: 1, Coalesce: true}})
		if err != nil {
			t.Fatal(err)
		}
		verdict, err := compare.Compare(simulated, run, compare.Options{})
		if err != nil || (verdict.Verdict == compare.Noisy) != c.marked {
			t.Errorf("%s: %v, %v", name, verdict, err)
		}
	}
}

// longTrace is the synthetic model with one sequence of enough positions to see attention grow.
func longTrace(t *testing.T) (traces.Source, *model.Image) {
	t.Helper()
	_, image, _ := syntheticTrace(t)
	trace, err := synth.Collect(t.Context(), synth.Options{Like: "opt-6.7b",
		Shape:  traces.Shape(image.Shape),
		Tokens: 48, Seed: 5, ActiveShare: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	return trace, image
}

func TestLineIsNotTurnedByDelays(t *testing.T) {
	var x, y []float64
	for i := range 100 {
		x = append(x, float64(i))
		y = append(y, 50+3*float64(i))
	}
	y[97] += 1000
	fixed, slope := line(x, y)
	if math.Abs(slope-3) > 1e-9 || math.Abs(fixed-60) > 1e-9 { // the delay of 1000 is 10 on average
		t.Errorf("fixed %g, slope %g; want 60 and 3", fixed, slope)
	}
	if fixed, slope := line([]float64{5, 5, 5}, []float64{1, 2, 3}); fixed != 2 || slope != 0 {
		t.Errorf("of one x: fixed %g, slope %g; want the mean 2 and 0", fixed, slope)
	}
	if fixed, slope := line([]float64{10, 20}, []float64{5, 25}); fixed != 0 || slope != 1 {
		t.Errorf("below zero at the start: fixed %g, slope %g; want 0 and 1", fixed, slope)
	}
}

func TestDriftIsOfMedians(t *testing.T) {
	rates := func(v ...int) (r []units.Rate) {
		for _, x := range v {
			r = append(r, units.Rate(x)*units.MBps)
		}
		return r
	}
	for _, c := range []struct {
		rates []units.Rate
		want  float64
	}{
		{rates(100, 100), 0}, // too few to say
		{rates(100, 100, 100, 100, 100, 10, 100, 100, 100), 0}, // one slow reading is not a drift
		{rates(100, 100, 100, 90, 90, 90, 50, 50, 50), 100},
		{rates(50, 50, 50, 100, 100, 100), 100},
	} {
		r := reference{rates: c.rates}
		if got := r.drift().Percent; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v drifted by %g %%, want %g", c.rates, got, c.want)
		}
	}
}

// The reference reads happen, and neither they nor the driver's own work between tokens is part of
// the run.
func TestReferenceReadsAreCutOut(t *testing.T) {
	src, image, w := syntheticTrace(t)
	reader, err := flashio.Open(image.Path, flashio.Options{Engine: flashio.EngineMem})
	if err != nil {
		t.Fatal(err)
	}
	result, err := Run(context.Background(), src, w, image.Geometry(), reader,
		Config{Policy: policy.SlidingWindow(2),
			ReferenceEvery: 4})
	if err != nil {
		t.Fatal(err)
	}
	if want := src.Tokens()/4 + 1; len(result.Drift.Rates) != want || !result.Drift.Known {
		t.Errorf("%d reference readings, known %v; want %d", len(result.Drift.Rates),
			result.Drift.Known, want)
	}
	var end units.Nanos
	for _, r := range result.Run.Rows {
		first := r.Layer == 0 && r.Part == traces.PartAttention
		if first && r.Start != end || r.Start < end {
			t.Fatalf("token %d, layer %d, %v starts at %v, where the rows before it end at %v",
				r.Token, r.Layer, r.Part, r.Start, end)
		}
		end = r.Start + r.Dur
	}
}

// What taints a measurement travels with it.
func TestRunSaysWhatTaintsIt(t *testing.T) {
	src, image, w := syntheticTrace(t)
	run := func(io flashio.Options, every int) *traces.RunMeta {
		reader, err := flashio.Open(image.Path, io)
		if err != nil {
			t.Fatal(err)
		}
		result, err := Run(context.Background(), src, w, image.Geometry(), reader,
			Config{Policy: policy.SlidingWindow(2),
				ReferenceEvery: every})
		if err != nil {
			t.Fatal(err)
		}
		return &result.Run.Meta
	}
	m := run(flashio.Options{Engine: flashio.EnginePread, Direct: flashio.DirectOff}, 0)
	if m.DriftPercent != nil || !slices.ContainsFunc(m.Warnings, func(s string) bool {
		return strings.Contains(s, "not direct")
	}) {
		t.Errorf("a buffered run without reference reads: drift %v, warnings %q", m.DriftPercent,
			m.Warnings)
	}
	var config struct {
		Threads int            `json:"threads"`
		Layout  layout.Options `json:"layout"`
	}
	if err := json.Unmarshal(m.Config, &config); err != nil || config.Threads == 0 ||
		config.Layout.Align == 0 {
		t.Errorf("the configuration is not resolved: %s, %v", m.Config, err)
	}
	if m := run(flashio.Options{Engine: flashio.EngineMem}, 4); m.DriftPercent == nil {
		t.Error("a run with reference reads does not say how far the device drifted")
	}
}

func TestRunStopsAndRefuses(t *testing.T) {
	src, image, w := syntheticTrace(t)
	open := func() flashio.Reader {
		r, err := flashio.Open(image.Path, flashio.Options{Engine: flashio.EngineMem})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	ctx, cancel := context.WithCancel(context.Background())
	result, err := Run(ctx, src, w, image.Geometry(), open(),
		Config{Policy: policy.SlidingWindow(2), Progress: func(done,
			_ int) {
			if done == 5 {
				cancel()
			}
		}})
	if !errors.Is(err, context.Canceled) || result == nil || result.Run.Meta.Totals.Tokens != 5 {
		t.Errorf("cancelled after 5 tokens: %v, %+v", err, result)
	}
	other := *src.Header()
	other.Units++
	if _, err := Run(context.Background(), &traces.Memory{Head: other}, w, image.Geometry(), open(),
		Config{}); err == nil {
		t.Error("a trace of another model gave no error")
	}
	faulty, err := flashio.WithFaults(open(), "eio at read 30")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), src, w, image.Geometry(), faulty,
		Config{Policy: policy.SlidingWindow(2)}); err == nil {
		t.Error("a failing read gave no error")
	}
	if _, err := Run(context.Background(), src, w, image.Geometry(), open(),
		Config{Policy: policy.SlidingWindow(-1)}); err == nil {
		t.Error("a negative window gave no error")
	}
	small := Config{Schedule: schedule.Spec{Kind: schedule.LookAhead, Staging: 512}}
	if _, err := Run(context.Background(), src, w, image.Geometry(), open(), small); err == nil ||
		!strings.Contains(err.Error(), "give it at least 4KiB") {
		t.Errorf("a staging buffer without room for a record: %v", err)
	}
}

// The row cache is given exactly what the trace needs: one row less would not do.
func TestRequirementsAreTight(t *testing.T) {
	src, image, _ := syntheticTrace(t)
	for _, window := range []int{0, 3} {
		cfg := Config{Policy: policy.SlidingWindow(window)}
		need, err := cfg.need(src, src.Tokens(), image.Geometry())
		if err != nil || need.Positions != 20 {
			t.Fatalf("%+v, %v; want 20 positions", need, err)
		}
		for l, n := range need.Rows {
			most := 0
			for i := range src.Tokens() {
				union := map[uint32]bool{}
				var tok traces.Token
				for back := 0; back <= window && i-back >= 0; back++ {
					if err := src.Token(i-back, &tok); err != nil {
						t.Fatal(err)
					}
					for u := range image.Shape.DFFN {
						if tok.Active[l][u/64]>>(u%64)&1 == 1 {
							union[uint32(u)] = true
						}
					}
					if tok.Pos == 0 {
						break
					}
				}
				most = max(most, len(union))
			}
			if n != most {
				t.Errorf("window %d, layer %d: %d rows, the largest union of %d tokens is %d",
					window, l, n, window+1, most)
			}
		}
	}
}

// TestCalibrateBatch: what the measured I/O took beyond the simulated is spread over the batches,
// and never makes a cost negative.
func TestCalibrateBatch(t *testing.T) {
	run := func(io units.Nanos, batches int) *traces.Run {
		r := &traces.Run{}
		for i := range batches {
			r.Rows = append(r.Rows, traces.RunRow{Token: uint32(i), Part: traces.PartIO,
				Requests: 3, Dur: io / units.Nanos(batches)})
		}
		r.Meta.Totals.PartNanos[traces.PartIO] = io
		return r
	}
	for _, c := range []struct {
		before, simulated, measured, want units.Nanos
	}{
		{1000, 40_000, 48_000, 3000},
		{1000, 40_000, 38_000, 500},
		{1000, 40_000, 30_000, 0},
	} {
		spec := flash.Spec{Engines: map[string]flash.EngineCost{"pread": {Batch: c.before,
			Submit: 7}}}
		if err := CalibrateBatch(&spec, "pread", run(c.simulated, 4), run(c.measured,
			4)); err != nil {
			t.Fatal(err)
		}
		if got := spec.Engines["pread"]; got.Batch != c.want || got.Submit != 7 {
			t.Errorf("%v simulated, %v measured: batch %v, want %v", c.simulated, c.measured,
				got.Batch, c.want)
		}
	}
	if err := CalibrateBatch(&flash.Spec{}, "pread", run(1, 1), run(1, 1)); err == nil {
		t.Error("an engine that the model does not know was calibrated")
	}
	if err := CalibrateBatch(&flash.Spec{}, "pread", run(1, 1), &traces.Run{}); err == nil {
		t.Error("a run without reads calibrated a batch")
	}
}
