package sim

import (
	"errors"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// testGPU is made up, with round numbers: 1 byte takes so many nanoseconds that sums can be done by
// hand.
func testGPU() *devicemodels.GPU {
	return &devicemodels.GPU{
		Model: "made up", Memory: 8 * units.GiB,
		TransferRate: 10 * units.GBps, TransferFixed: 5000, ScatterRate: 8 * units.GBps,
		ScatterFixed: 6000, MoveRate: 100 * units.GBps, MoveFixed: 3000,
		DenseRate: 200 * units.GBps, DenseFixed: 4000, RowRate: 100 * units.GBps, RowFixed: 9000,
		KVRate: 100 * units.GBps, KVFixed: 7000,
		KernelFixed: 2000, LaunchFixed: 1000, SyncFixed: 8000,
	}
}

func gpuConfig(observed bool) Config {
	cfg := testConfig()
	cfg.Device.GPU, cfg.Backend, cfg.Observed = testGPU(), OnCUDA, observed
	return cfg
}

// oneToken is a trace of one layer, one token and one active unit of 8192 B, on a model of 2048 and
// a vocabulary of 1000.
func oneToken() *traces.Memory {
	src := testTrace(1, 64, 2, 0)
	src.List = src.List[:1]
	src.List[0].Active[0][0] = 0b1
	return src
}

// Times of the stages of oneToken, in nanoseconds.
const (
	// norm, 3 mat-vecs, store, 2 of attention, mat-vec, add, norm
	attentionCalls = 10
	attentionWork  = 4*4000 + 4*2048*2048*2/200 + // mat-vecs of 33,554,432 B at 200 B/ns
		7000 + 2*2048*4/100 + // keys and values of one position: 16,384 B at 100 B/ns
		2000 // storing them
	attentionAround = 3 * 2000
	arriveCalls     = 3 // two lists and the scatter
	arriveWork      = 6000 + 8192/8
	arriveAround    = 2 * 5000
	ffnCalls        = 6 // two lists, three kernels, add
	ffnWork         = 9000 + 8192/100 + 1
	ffnAround       = 2*5000 + 2000
	endsCalls       = 5 + 3 // ids, positions, slots, two tables; norm, head, logits
	endsWork        = 4000 + 1000*2048*2/200 + 2000
	endsAround      = 2*2000 + 3*5000
	endsReply       = 5000 + 4*1000/10
)

// durations are the parts of a run of one token and layer.
func durations(run *traces.Run) (list [traces.Parts]units.Nanos) {
	for _, r := range run.Rows {
		list[r.Part] += r.Dur
	}
	return list
}

// TestGPUObservedByHand: every part is the launch that reaches the device first, the device's work,
// and the wait.
func TestGPUObservedByHand(t *testing.T) {
	cfg := gpuConfig(true)
	got := durations(mustRun(t, oneToken(), cfg))
	f, h := cfg.Device.Flash, cfg.Device.Host
	cost := f.Engines["pread"]
	want := [traces.Parts]units.Nanos{
		traces.PartAttention: 1000 + attentionWork + attentionAround + 8000,
		traces.PartPredict:   h.DecideFixed + h.DecideUnit,
		traces.PartIO: cost.Batch + cost.Submit + f.LTFB + f.ServerRate.Time(8192) +
			cost.Complete,
		traces.PartMemory: 1000 + arriveWork + arriveAround + 8000,
		traces.PartFFN:    1000 + ffnWork + ffnAround + 8000,
		traces.PartOther:  1000 + endsWork + endsAround + endsReply + 8000,
	}
	for part, d := range want {
		// A division of bytes by a rate may round once per term.
		if off := got[part] - d; off < -4 || off > 4 {
			t.Errorf("%v takes %v, want %v", traces.Part(part), got[part], d)
		}
	}
}

// TestGPUUnobservedByHand: the host only asks, and reads while the device computes; at the end it
// waits for all that is left.
func TestGPUUnobservedByHand(t *testing.T) {
	cfg := gpuConfig(false)
	run := mustRun(t, oneToken(), cfg)
	got := durations(run)
	const asked = 1000 * attentionCalls
	// when the rows are in pinned memory
	read := asked + got[traces.PartPredict] + got[traces.PartIO]
	attention := units.Nanos(1000 + attentionWork + attentionAround)
	arrived := read + 1000 + arriveWork + arriveAround
	ffnAsked := read + 1000*arriveCalls
	computed := max(attention, arrived, ffnAsked+1000) + ffnWork + ffnAround
	endAsked := ffnAsked + 1000*ffnCalls
	end := max(computed, endAsked+1000) + endsWork + endsAround + endsReply + 8000
	if attention <= read {
		t.Fatal("the device is through before the read: the test shows nothing")
	}
	if got[traces.PartAttention] != asked || got[traces.PartMemory] != 1000*arriveCalls ||
		got[traces.PartFFN] != 1000*ffnCalls {
		t.Errorf("asking takes %v, %v and %v", got[traces.PartAttention], got[traces.PartMemory],
			got[traces.PartFFN])
	}
	if off := run.Meta.Totals.Wall - end; off < -6 || off > 6 {
		t.Errorf("the token takes %v, want %v", run.Meta.Totals.Wall, end)
	}
	observed := mustRun(t, oneToken(), gpuConfig(true)).Meta.Totals.Wall
	if run.Meta.Totals.Wall >= observed {
		t.Errorf("without waiting %v, with %v", run.Meta.Totals.Wall, observed)
	}
}

// TestGPUPartsTileTheTime also under schedules, and decisions are those of the host.
func TestGPUPartsTileTheTime(t *testing.T) {
	src := testTrace(3, 300, 20, 0.1)
	host := mustRun(t, src, testConfig()).Meta.Totals
	for _, when := range []Schedule{{}, Replayed(schedule.Spec{Kind: schedule.LookAhead}),
		{Spec: schedule.Spec{Kind: schedule.Token, Dense: 1}, Recall: 1}} {
		for _, observed := range []bool{false, true} {
			cfg := gpuConfig(observed)
			cfg.Schedule = when
			run := mustRun(t, src, cfg)
			var sum units.Nanos
			for _, part := range run.Meta.Totals.PartNanos {
				sum += part
			}
			if sum != run.Meta.Totals.Wall {
				t.Errorf("%q, observed %v: parts are %v, the wall time %v", when.Kind, observed,
					sum, run.Meta.Totals.Wall)
			}
			if when.Kind == schedule.Demand && (run.Meta.Totals.Hits != host.Hits ||
				run.Meta.Totals.Requests != host.Requests || run.Meta.Totals.Bytes != host.Bytes) {
				t.Error("the GPU decides otherwise than the host")
			}
		}
	}
}

// Invariant 4 for the GPU's numbers, observed and not, on demand and ahead.
func TestGPUIsMonotone(t *testing.T) {
	src := testTrace(3, 400, 30, 0.1)
	for _, when := range []Schedule{{}, {Spec: schedule.Spec{Kind: schedule.LookAhead},
		Recall: 0.8}} {
		for _, observed := range []bool{false, true} {
			base := gpuConfig(observed)
			base.Schedule = when
			slow := mustRun(t, src, base).Meta.Totals.Wall
			for name, better := range map[string]func(g *devicemodels.GPU){
				"mat-vecs": func(g *devicemodels.GPU) { g.DenseRate *= 2; g.DenseFixed /= 2 },
				"rows":     func(g *devicemodels.GPU) { g.RowRate *= 2; g.RowFixed /= 2 },
				"keys":     func(g *devicemodels.GPU) { g.KVRate *= 2; g.KVFixed /= 2 },
				"scatter":  func(g *devicemodels.GPU) { g.ScatterRate *= 2; g.ScatterFixed /= 2 },
				"moves":    func(g *devicemodels.GPU) { g.MoveRate *= 2; g.MoveFixed /= 2 },
				"transfer": func(g *devicemodels.GPU) { g.TransferRate *= 2; g.TransferFixed /= 2 },
				"launches": func(g *devicemodels.GPU) { g.LaunchFixed /= 2 },
				"waits":    func(g *devicemodels.GPU) { g.SyncFixed /= 2 },
				"kernels":  func(g *devicemodels.GPU) { g.KernelFixed /= 2 },
			} {
				cfg := gpuConfig(observed)
				cfg.Schedule = when
				better(cfg.Device.GPU)
				if fast := mustRun(t, src, cfg).Meta.Totals.Wall; fast > slow {
					t.Errorf("%q, observed %v, better %s: %v, before %v", when.Kind, observed,
						name, fast, slow)
				}
			}
		}
	}
}

// TestGPUPredictorIsWaitedFor: a predictor on the host needs the input of every layer, so that
// nothing is asked for in advance.
func TestGPUPredictorIsWaitedFor(t *testing.T) {
	src := testTrace(2, 300, 10, 0.1)
	src.Head.HasPredicted = true
	for i := range src.List {
		src.List[i].Predicted = src.List[i].Active
	}
	cfg := gpuConfig(false)
	cfg.Predicted = true
	free := durations(mustRun(t, src, cfg))
	cfg.PredictorRank = 64
	asked := durations(mustRun(t, src, cfg))
	if asked[traces.PartAttention] <= free[traces.PartAttention]+20*8000 ||
		asked[traces.PartPredict] <= free[traces.PartPredict] {
		t.Errorf("with a predictor %v, without %v", asked, free)
	}
}

func TestGPUIsRefused(t *testing.T) {
	for says, spoil := range map[string]func(c *Config){
		"windrow probe --backend cuda": func(c *Config) { c.Device.GPU = nil },
		`backend "metal"`:              func(c *Config) { c.Backend = "metal" },
		"observed, but the host":       func(c *Config) { c.Backend = OnHost },
	} {
		cfg := gpuConfig(true)
		spoil(&cfg)
		if _, err := Run(t.Context(), oneToken(), cfg); !errors.Is(err, ErrConfig) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// TestGPUPredictionSaysHow: notes name the way of driving, and the interval is that of the samples.
func TestGPUPredictionSaysHow(t *testing.T) {
	cfg := gpuConfig(false)
	cfg.Device.GPU.Samples = []devicemodels.GPUSample{
		{Of: "dense", Kind: devicemodels.SampleMeasured, Shape: "x", Time: 1000, Model: 1000,
			SpreadPct: 3, Runs: 15}}
	p := mustRun(t, oneToken(), cfg).Meta.Prediction
	if p.HostPercent == nil || *p.HostPercent != 3 || !strings.Contains(strings.Join(p.Notes, " "),
		"--observed") || p.TokensPerSPrefetched != nil {
		t.Errorf("%+v", p)
	}
	if text := strings.Join(p.Compute, "; "); !strings.Contains(text,
		"rows on the GPU: measured") || strings.Contains(text, "predictor") {
		t.Errorf("computed by %s", text)
	}
}

// TestGPUPhases: observed, they add up to the wall time without the decisions; a host that computes
// has none.
func TestGPUPhases(t *testing.T) {
	src := testTrace(2, 300, 10, 0.1)
	run := mustRun(t, src, gpuConfig(true))
	p := run.Meta.Phases
	if p == nil || p.Clock != traces.ClockModel {
		t.Fatalf("phases %+v", p)
	}
	var sum units.Nanos
	for _, took := range p.All() {
		sum += took
	}
	if want := run.Meta.Totals.Wall - run.Meta.Totals.PartNanos[traces.PartPredict]; sum != want ||
		p.Read != run.Meta.Totals.PartNanos[traces.PartIO] {
		t.Errorf("phases %+v are %v, the parts %v", p, sum, want)
	}
	one := mustRun(t, oneToken(), gpuConfig(true)).Meta.Phases
	if off := one.Compute - (attentionWork + ffnWork + endsWork); off < -4 || off > 4 ||
		one.Scatter != arriveWork || one.Stage != 1000*arriveCalls {
		t.Errorf("phases of one token: %+v", one)
	}
	if free := mustRun(t, src, gpuConfig(false)).Meta.Phases; free.Compute != p.Compute ||
		free.Scatter != p.Scatter {
		t.Errorf("the device works otherwise without being waited for: %+v and %+v", free, p)
	}
	if mustRun(t, src, testConfig()).Meta.Phases != nil {
		t.Error("the host has phases of a GPU")
	}
}
