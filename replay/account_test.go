package replay

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

// recorded is the header that a trace of the image has when it is recorded: it knows the resident
// weights.
func recorded(image *model.Image) *traces.Resident {
	w := image.Resident()
	return &traces.Resident{Embeddings: w.Embeddings, Attention: w.Attention, Other: w.Other,
		EmbedWidth: image.Arch.Embed}
}

// TestPlanAndReplayAccountTheSame compares the simulator's account with the engine's, part by part
// and byte by byte, and the window that both choose for a budget.
func TestPlanAndReplayAccountTheSame(t *testing.T) {
	for name, open := range map[string]func(*testing.T) (traces.Source, *model.Image,
		*model.Weights){
		"tales": func(t *testing.T) (traces.Source, *model.Image, *model.Weights) {
			return talesTrace(t, 12)
		},
		"synthetic": syntheticTrace,
	} {
		t.Run(name, func(t *testing.T) {
			src, image, w := open(t)
			src.Header().Resident = recorded(image)
			geo := image.Geometry()
			for _, lay := range []layout.Options{{}, {Coalesce: true, Align: 4096},
				{Coalesce: true, Align: 512, Gap: 2, MaxRequest: 8192}} {
				for _, predicted := range []bool{false, true} {
					if predicted && !src.Header().HasPredicted {
						continue
					}
					m := answers.ModelOf(src.Header())
					windows, err := answers.WindowsOf(context.Background(), src, memory.Reads{
						Geometry: geo, Layout: lay}, predicted, nil)
					if err != nil {
						t.Fatal(err)
					}
					compareAccounts(t, src, w, geo, m, windows, Config{Layout: lay,
						Predicted: predicted})
				}
			}
		})
	}
}

// compareAccounts compares the accounts of one layout.
func compareAccounts(t *testing.T, src traces.Source, w *model.Weights, geo layout.Geometry,
	m answers.Model, windows *memory.Windows, cfg Config) {
	t.Helper()
	for _, k := range []int{0, 1, 3, 7, memory.LongestWindow} {
		cfg.Policy = policy.SlidingWindow(k)
		engines, err := MemoryOf(src, src.Tokens(), w, geo, cfg)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := m.Account(windows, k, answers.Holding{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(plan.Parts, engines.Parts) || plan.Total != engines.Total {
			t.Errorf("%+v, window %d:\nplan   %v, %v\nreplay %v, %v", cfg.Layout, k, plan.Total,
				plan, engines.Total, engines)
		}
		cfg.Policy = policy.Spec{}
		for _, budget := range []units.Bytes{engines.Total, engines.Total - 1, engines.Total +
			9999} {
			ours, ourErr := LargestWindow(src, src.Tokens(), w, geo, cfg, budget)
			plans, planErr := m.LargestWindow(windows, answers.Holding{}, budget)
			if ours.Window != plans.Window || ours.Total != plans.Total ||
				(ourErr == nil) != (planErr == nil) {
				t.Errorf("%+v, %v: replay has a window of %d, %v, and plan of %d, %v", cfg.Layout,
					budget, ours.Window, ourErr, plans.Window, planErr)
			}
		}
	}
}

// largerTrace is a random model whose parts are large beside what small objects take.
func largerTrace(t *testing.T) (traces.Source, *model.Image, *model.Weights) {
	t.Helper()
	shape := model.Shape{DModel: 512, Layers: 4, DFFN: 2048, Heads: 8, KVHeads: 8, HeadDim: 64,
		Vocab: 4000, MaxPos: 512, Rows: 2, DTypeSize: 2}
	path := filepath.Join(t.TempDir(), "larger.flash.safetensors")
	if err := model.Synth(context.Background(), shape, "larger", 3, path,
		model.SynthOptions{}); err != nil {
		t.Fatal(err)
	}
	trace, err := synth.Collect(t.Context(), synth.Options{Like: "opt-6.7b",
		Shape:  traces.Shape(shape),
		Tokens: 12, Seed: 5, ActiveShare: 0.2})
	if err != nil {
		t.Fatal(err)
	}
	image, w := openImage(t, path)
	return trace, image, w
}

// TestTheEngineAllocatesItsAccount measures what an engine, its rows and its weights keep in the Go
// heap after some tokens, and compares it with the account: the staging buffers alone lie outside
// the heap.
func TestTheEngineAllocatesItsAccount(t *testing.T) {
	src, image, w := largerTrace(t)
	geo := image.Geometry()
	bundles := func(layer int) ([]byte, error) {
		data := make([]byte, image.LayerBytes())
		return data, image.Bundles(layer, data)
	}
	before := liveHeap()
	again, err := image.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := liveHeap()-before, image.ResidentBytes(); !within(got, want) {
		t.Errorf("resident weights keep %v of heap, the account says %v", got, want)
	}
	runtime.KeepAlive(again)
	for name, cfg := range map[string]Config{
		"nothing kept": {},
		"window":       {Policy: policy.SlidingWindow(5)},
		"lru":          {Policy: policy.Spec{Kind: policy.KindLRU, Capacity: 900}},
		"delta":        {Policy: policy.Spec{Kind: policy.KindDelta, Capacity: 500}},
		"dense prefix": {Policy: policy.SlidingWindow(3), Bundles: bundles, Schedule: schedule.Spec{
			Kind: schedule.LookAhead, Dense: 2}},
		"staging": {Policy: policy.SlidingWindow(3), Bundles: bundles, Schedule: schedule.Spec{
			Kind: schedule.Token, Dense: 1, Staging: 256 * units.KiB}},
	} {
		cfg.Layout = layout.Options{Coalesce: true, Align: 512}
		account, err := MemoryOf(src, src.Tokens(), w, geo, cfg)
		if err != nil {
			t.Fatal(err)
		}
		want := account.Total - w.Bytes() - account.Of(memory.PartStaging) -
			account.Of(memory.PartPrefetch)
		got := heapOfRun(t, src, image, w, cfg)
		if !within(got, want) {
			t.Errorf("%s: the engine keeps %v of heap, the account says %v (%v)", name, got, want,
				account)
		}
	}
}

// A dense engine keeps all rows in memory, of several sequences and tokens of a step.
func TestTheDenseEngineAllocatesItsAccount(t *testing.T) {
	_, image, w := largerTrace(t)
	for _, cfg := range []engine.Config{{}, {Context: 300, Sequences: 3, Batch: 8},
		{Context: 100, Batch: 64, FeatureKind: engine.Residual}} {
		m := cfg.Memory(w.Shape)
		m.Dense = w.Shape.Layers
		account := memory.Account(engine.MemoryModel(w, image.Geometry()), m)
		before := liveHeap()
		var bundles [][]byte
		for l := range w.Shape.Layers {
			data := make([]byte, image.LayerBytes())
			if err := image.Bundles(l, data); err != nil {
				t.Fatal(err)
			}
			bundles = append(bundles, data)
		}
		rows, err := engine.NewResident(w, bundles, image.Geometry())
		if err != nil {
			t.Fatal(err)
		}
		cfg.Threads = 1
		e, err := engine.New(w, rows, cfg)
		if err != nil {
			t.Fatal(err)
		}
		tokens := make([]engine.Token, max(cfg.Batch, 1))
		for i := range tokens {
			tokens[i].Pos = i
		}
		if _, err := e.Step(tokens); err != nil {
			t.Fatal(err)
		}
		got, want := liveHeap()-before, account.Total-w.Bytes()
		if !within(got, want) {
			t.Errorf("%+v: the engine keeps %v of heap, the account says %v (%v)", cfg, got, want,
				account)
		}
		runtime.KeepAlive(tokens)
		e.Close()
	}
}

// heapOfRun is the heap that an engine and its rows keep after the tokens of a trace.
func heapOfRun(t *testing.T, src traces.Source, image *model.Image, w *model.Weights,
	cfg Config) units.Bytes {
	t.Helper()
	reader, err := flashio.Open(image.Path, flashio.Options{Engine: flashio.EnginePread,
		Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	before := liveHeap()
	flash, positions, err := NewFlash(src, src.Tokens(), w, image.Geometry(), reader, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer flash.Close()
	e, err := engine.New(w, flash, engine.Config{Threads: 1, Context: positions,
		Schedule: cfg.Schedule.Kind})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var token traces.Token
	for i := range src.Tokens() {
		if err := src.Token(i, &token); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Forward(engine.Token{Pos: int(token.Pos), ID: token.ID,
			Masks: token.Active}); err != nil {
			t.Fatal(err)
		}
	}
	got := liveHeap() - before
	runtime.KeepAlive(e)
	return got
}

// within allows 2 % and what small objects take.
func within(got, want units.Bytes) bool {
	slack := want*2/100 + 32*units.KiB
	return got >= want-slack && got <= want+slack
}

// liveHeap is the size of what is reachable.
func liveHeap() units.Bytes {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return units.Bytes(m.HeapAlloc)
}
