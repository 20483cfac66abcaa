package sim

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

// The loads are those of the simulation, and the bound is what Belady loads in the simulation with
// as much memory.
func TestHeadroom(t *testing.T) {
	src := testTrace(3, 400, 40, 0.1)
	for text, kept := range map[string]int{ // by layer; -1: what the trace makes of it
		"all": 0, "none": 0, "hybrid:200": 200, "tensors:0": 0, "cyclic:100": 100,
		"cyclic:400": 400, "window:3": -1, "window:3,capacity:60": 60,
		"delta:30": 30, "pages:60,ahead:4": 60, "lru:60": 60, "lru:500": -1, "lfu:60": 60,
		"hot:20+40": -1, "belady:60": 60,
	} {
		spec, err := policy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		cfg := testConfig()
		cfg.Policy = spec
		h, err := cfg.Headroom(src)
		if err != nil {
			t.Fatal(err)
		}
		if misses := mustRun(t, src, cfg).Meta.Totals.Misses; h.Loads != misses ||
			h.Policy != text {
			t.Errorf("%s: %d loads, simulated %d (%s)", text, h.Loads, misses, h.Policy)
		}
		if h.Bytes != units.Bytes(h.Loads)*8192 || h.LeastBytes != units.Bytes(h.Least)*8192 ||
			h.Ratio != float64(h.Loads)/float64(h.Least) {
			t.Errorf("%s: bytes and ratio are not those of the loads: %+v", text, h)
		}
		switch {
		case h.Ratio < 1 || h.Least > h.Needed || text == "belady:60" && h.Ratio != 1 ||
			text == "none" && h.Loads != h.Needed:
			t.Errorf("%s: %+v", text, h)
		case kept >= 0 && h.Kept != 3*kept:
			t.Errorf("%s keeps %d units, want %d", text, h.Kept, 3*kept)
		case kept < 0 && (h.Kept <= 0 || h.Kept > 3*400):
			t.Errorf("%s keeps %d units", text, h.Kept)
		case kept >= 0:
			cfg.Policy = policy.Spec{Kind: policy.KindBelady, Capacity: kept}
			if least := mustRun(t, src, cfg).Meta.Totals.Misses; h.Least != least {
				t.Errorf("%s: the bound is %d loads, Belady loads %d", text, h.Least, least)
			}
		}
	}
}

// A policy that never lets go has nothing to gain; what brings units that nobody needs has.
func TestHeadroomOfSequences(t *testing.T) {
	src := testTrace(2, 300, 30, 0.1)
	cfg := testConfig()
	cfg.Policy = policy.Spec{Kind: policy.KindLRU, Capacity: 300}
	all, err := cfg.Headroom(src)
	if err != nil || all.Ratio != 1 {
		t.Fatalf("lru without limit: %+v, %v", all, err)
	}
	cfg.MaxTokens = 15 // the first of the two sequences, which start cold
	first, err := cfg.Headroom(src)
	if err != nil || first.Least >= all.Least || 2*first.Least < all.Least*3/4 {
		t.Errorf("one of two sequences has %d loads, both have %d (%v)", first.Least, all.Least,
			err)
	}
}

// Experts go the way of neurons: through policies, layouts and times, in units of whole experts, of
// which a token computes exactly K.
func TestExperts(t *testing.T) {
	for like, picked := range map[string]int64{"mixtral-8x7b": 2, "qwen3-30b-a3b": 8} {
		src, err := synth.Collect(t.Context(), synth.Options{Like: like, Layers: 2, Tokens: 24,
			Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		head := src.Header()
		reads := map[string]units.Bytes{}
		for _, text := range []string{"none", "window:2", "lru:8", "belady:8", "all"} {
			cfg := testConfig()
			if cfg.Policy, err = policy.Parse(text); err != nil {
				t.Fatal(err)
			}
			totals := mustRun(t, src, cfg).Meta.Totals
			reads[text] = totals.Bytes
			if uses := totals.Hits + totals.Misses; text != "all" && uses != 24*2*picked {
				t.Errorf("%s, %s: %d uses of experts, want %d", like, text, uses, 24*2*picked)
			}
			if text != "none" {
				continue
			}
			rows := units.Nanos(24 * 2 *
				(cfg.Device.Host.RowRate.Time(units.Bytes(picked)*head.UnitBytes) +
					cfg.Device.Host.RowFixed))
			if got := totals.PartNanos[traces.PartFFN]; math.Abs(float64(got)/float64(
				rows)-1) > 1e-6 {
				t.Errorf("%s: the experts take %v to compute, want %v", like, got, rows)
			}
		}
		if want := units.Bytes(24*2*picked) * head.UnitBytes; reads["none"] < want ||
			reads["none"] > want*101/100 {
			t.Errorf("%s: %v read without memory, want %v", like, reads["none"], want)
		}
		if reads["belady:8"] > reads["lru:8"] || reads["lru:8"] >= reads["none"] ||
			reads["window:2"] >= reads["none"] || reads["all"] <= reads["none"] {
			t.Errorf("%s: %v", like, reads)
		}
	}
}

func TestHeadroomErrors(t *testing.T) {
	src := testTrace(1, 100, 4, 0.1)
	cfg := testConfig()
	cfg.Predicted = true
	if _, err := cfg.Headroom(src); !errors.Is(err, ErrConfig) {
		t.Errorf("predicted masks that the trace does not have: %v", err)
	}
	cfg = testConfig()
	cfg.Policy = policy.Spec{Kind: "clock"}
	if _, err := cfg.Headroom(src); !errors.Is(err, ErrConfig) {
		t.Errorf("a policy that there is not: %v", err)
	}
}

// BenchmarkHeadroom is 256 tokens of the whole OPT-6.7B shape.
func BenchmarkHeadroom(b *testing.B) {
	src, err := synth.Collect(b.Context(), synth.Options{Like: "opt-6.7b", Tokens: 256, Seed: 42,
		Predicted: true})
	if err != nil {
		b.Fatal(err)
	}
	for _, predicted := range []bool{false, true} {
		for _, text := range []string{"window:5", "lru:2500", "belady:2500"} {
			b.Run(fmt.Sprintf("%s/predicted=%t", text, predicted), func(b *testing.B) {
				cfg := Config{Predicted: predicted}
				if cfg.Policy, err = policy.Parse(text); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					h, err := cfg.Headroom(src)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(h.Ratio, "loads/least")
				}
			})
		}
	}
}
