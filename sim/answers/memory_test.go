package answers

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

func synthetic(t *testing.T, opt synth.Options) *traces.Memory {
	t.Helper()
	if opt.Like == "" {
		opt.Like = "opt-6.7b"
	}
	opt.Seed = 42
	m, err := synth.Collect(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func windowsOf(t *testing.T, m *traces.Memory, predicted bool, align units.Bytes) *memory.Windows {
	t.Helper()
	w, err := WindowsOf(context.Background(), m, memory.Reads{Layout: layout.Options{Coalesce: true,
		Align: align}}, predicted, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func account(t *testing.T, m Model, w *memory.Windows, k int, h Holding) Memory {
	t.Helper()
	a, err := m.Account(w, k, h)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The mean of the rows in use is over the tokens that end a full window, and the most that one
// token reads over all, counted here step by step.
func TestMeanRows(t *testing.T) {
	m := synthetic(t, synth.Options{Layers: 2, Units: 500, Tokens: 30, Sequences: 3,
		ActiveShare: 0.1})
	w := windowsOf(t, m, false, 1)
	for _, k := range []int{0, 1, 4, 17} {
		for l := range 2 {
			p := policy.NewWindow(500, k)
			inUse, sum, full, at, most := 0, 0, 0, 0, 0
			var d policy.Decision
			for i := range m.List {
				if at++; i > 0 && m.List[i].Seq != m.List[i-1].Seq {
					p.Reset()
					inUse, at = 0, 1
				}
				p.Step(m.List[i].Active[l], &d)
				most = max(most, len(d.Load))
				if at > k {
					sum, full = sum+inUse+len(d.Load), full+1
				}
				inUse += len(d.Load) - len(d.Evict)
			}
			if full == 0 {
				t.Fatalf("window %d: no token ends a full window", k)
			}
			if got := w.Layers[l].Loads[k]; got != most {
				t.Errorf("window %d, layer %d: at most %d loads, the policy has %d", k, l, got,
					most)
			}
			if got := w.Layers[l].Mean[k]; math.Abs(got-float64(sum)/float64(full)) > 1e-9 {
				t.Errorf("window %d, layer %d: %g rows on average, the policy has %g", k, l, got,
					float64(sum)/float64(full))
			}
		}
	}
}

// TestPublishedDRAMBudget compares the accounting of OPT-6.7B with LLM in a flash (arXiv
// 2312.11514v3), appendix C.1: embeddings 3.0 %, attention 32.3 %, predictor 1.25 %, FFN rows of a
// window of 4 tokens 15.5 %, together 52.1 % of the model (they add up to 52.05). The predictor
// agrees for a rank of 128 in all layers; the ranks that the paper gives elsewhere (28 layers of
// 128, 4 of 1024) make 2.36 %, so that it contradicts itself there. KV cache and staging are not in
// the published sum.
func TestPublishedDRAMBudget(t *testing.T) {
	m, err := ModelLike("OPT-6.7B")
	if err != nil {
		t.Fatal(err)
	}
	if m.Bytes() != 2*6_658_473_984 {
		t.Errorf("OPT-6.7B has %d B of weights, want 2 × 6,658,473,984", m.Bytes())
	}
	rows := windowsOf(t, synthetic(t, synth.Options{Tokens: 12, Predicted: true}), true, 1)
	mem := account(t, m, rows, 4, Holding{})
	percent := func(b units.Bytes) float64 { return 100 * float64(b) / float64(m.Bytes()) }
	total := 0.0
	for _, c := range []struct {
		name             string
		got, want, error float64
	}{
		{"embeddings", percent(mem.Of(memory.PartEmbeddings)), 3.0, 0.1},
		{"attention", percent(mem.Of(memory.PartAttention)), 32.3, 0.1},
		{"predictor", percent(m.PredictorBytes(128)), 1.25, 0.02},
		{"rows of the FFN", percent(mem.MeanRows), 15.5, 0.2},
	} {
		if math.Abs(c.got-c.want) > c.error {
			t.Errorf("%s: %.2f %% of the model, published are %g %%, and %g is the stated error",
				c.name, c.got, c.want, c.error)
		}
		total += c.got
	}
	if math.Abs(total-52.1) > 0.2 {
		t.Errorf("the published parts are %.2f %% of the model, published are 52.1 %%", total)
	}
	ranks := 100 * (28*float64(m.PredictorBytes(128)) + 4*float64(m.PredictorBytes(1024))) / 32 /
		float64(m.Bytes())
	if math.Abs(ranks-2.36) > 0.01 {
		t.Errorf("the published ranks are %.2f %% of the model; they were 2.36 %%, not the 1.25 "+
			"%% that the paper states", ranks)
	}
	// 2048 positions of 16 bits are 8.06 % of the model; the engine keeps 32 bits.
	kv := account(t, m, rows, 4, Holding{Positions: 2048}).Of(memory.PartKV)
	if math.Abs(percent(kv)-2*8.06) > 0.05 {
		t.Errorf("KV cache of 2048 positions: %.2f %% of the model", percent(kv))
	}
}

func TestPartsAddUp(t *testing.T) {
	m, err := ModelLike("Llama-2-7B")
	if err != nil {
		t.Fatal(err)
	}
	rows := windowsOf(t, synthetic(t, synth.Options{Like: "relullama-7b", Tokens: 6,
		ActiveShare: 0.1}), false, 4096)
	before := units.Bytes(0)
	for k := 0; k <= memory.LongestWindow; k += 32 {
		mem := account(t, m, rows, k, Holding{PredictorRank: 64})
		sum := units.Bytes(0)
		for _, p := range mem.Parts {
			sum += p.Bytes
		}
		if sum != mem.Total ||
			math.Abs(mem.Share(mem.Total)-float64(sum)/float64(m.Bytes())) > 1e-9 {
			t.Errorf("window %d: parts of %d B, total %d, a share of %g", k, sum, mem.Total,
				mem.Share(mem.Total))
		}
		if cache := mem.Of(memory.PartRowCache); cache < before {
			t.Errorf("window %d: a row cache of %d B, smaller than that of a shorter window", k,
				cache)
		} else {
			before = cache
		}
	}
	if e := account(t, m, rows, 0, Holding{}).Of(memory.PartEmbeddings); e != 2*32000*4096*2 {
		t.Errorf("embeddings of an untied model: %d B, want input and output", e)
	}
}

// What the header of a recorded trace says of the weights is taken as it is.
func TestResidentWeightsOfARecordedTrace(t *testing.T) {
	src := synthetic(t, synth.Options{Layers: 1, Units: 64, Tokens: 4})
	src.Head.Resident = &traces.Resident{Embeddings: 1000, Attention: 200, Other: 30, EmbedWidth: 7}
	m, w := ModelOf(&src.Head), windowsOf(t, src, false, 1)
	a := account(t, m, w, 0, Holding{})
	if a.Of(memory.PartEmbeddings) != 1000 || a.Of(memory.PartAttention) != 200 ||
		a.Of(memory.PartOther) != 30 || m.Bytes() != 1230+m.FFNBytes() {
		t.Errorf("%v of %v", a, m.Bytes())
	}
	src.Head.Resident.EmbedWidth = 107
	if more := account(t, ModelOf(&src.Head), w, 0, Holding{}).Total - a.Total; more != 4*100 {
		t.Errorf("an embedding of 100 numbers more takes %d B more", more)
	}
}

func TestLargestWindowAndFloor(t *testing.T) {
	src := synthetic(t, synth.Options{Layers: 2, Tokens: 40})
	m, rows := ModelOf(&src.Head), windowsOf(t, src, false, 1)
	for _, k := range []int{0, 3, 20} {
		exact := account(t, m, rows, k, Holding{}).Total
		got, err := m.LargestWindow(rows, Holding{}, exact)
		if err != nil || got.Window < k || got.Total > exact {
			t.Errorf("budget of window %d: window %d of %v, %v", k, got.Window, got.Total, err)
		}
		if account(t, m, rows, got.Window+1, Holding{}).Total <= exact {
			t.Errorf("budget of window %d: window %d fits as well", k, got.Window+1)
		}
	}
	floor := account(t, m, rows, 0, Holding{}).Total
	_, err := m.LargestWindow(rows, Holding{}, floor-1)
	if !errors.Is(err, memory.ErrBudget) || !strings.Contains(err.Error(), floor.String()) ||
		!strings.Contains(err.Error(), "attention") {
		t.Errorf("one byte below the floor of %v: %v; want the floor and its parts", floor, err)
	}
}

func TestWindowsRefuse(t *testing.T) {
	m := synthetic(t, synth.Options{Layers: 1, Units: 64, Tokens: 2})
	if _, err := WindowsOf(context.Background(), m, memory.Reads{}, true, nil); !errors.Is(err,
		ErrInput) {
		t.Errorf("predicted masks of a trace without: %v", err)
	}
	if _, err := WindowsOf(context.Background(), &traces.Memory{Head: m.Head}, memory.Reads{},
		false, nil); !errors.Is(err, ErrInput) {
		t.Errorf("an empty trace: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := WindowsOf(ctx, m, memory.Reads{}, false, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := ModelLike("mixtral-8x7b"); !errors.Is(err, ErrInput) {
		t.Errorf("a model of experts: %v", err)
	}
}
