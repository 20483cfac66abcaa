package synth_test

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

// A token uses exactly as many experts as the router picks, in every layer; an expert is as large
// as its three matrices.
func TestExperts(t *testing.T) {
	for _, c := range []struct {
		like         string
		layers, n, k int
		bytes        int64
		routing      string
	}{
		{"mixtral-8x7b", 32, 8, 2, 3 * 4096 * 14336 * 2, "fitted to published figures of Mixtral"},
		{"qwen3-30b-a3b", 48, 128, 8, 3 * 2048 * 768 * 2, "fitted to published figures of Qwen3-"},
		{"olmoe-1b-7b", 16, 64, 8, 3 * 2048 * 1024 * 2, "fitted to published figures of OLMoE"},
		{"turbosparse-mixtral-47b", 32, 8, 2, 3 * 4096 * 14336 * 2, "assumed as of Mixtral-8x7B"},
	} {
		m := collect(t, synth.Options{Like: c.like, Tokens: 40, Prompt: 3, Sequences: 2, Seed: 5})
		h := &m.Head
		if h.UnitKind != traces.Expert || h.Layers != c.layers || h.Units != c.n ||
			int64(h.UnitBytes) != c.bytes || h.HasPredicted ||
			!h.Synthetic || !strings.Contains(h.Sampling, "routing "+c.routing) {
			t.Errorf("%s: header %+v", c.like, h)
		}
		if len(m.List) != 80 || m.List[2].Phase != traces.Prefill ||
			m.List[3].Phase != traces.Decode || m.List[40].Seq != 1 {
			t.Errorf("%s: %d tokens, %+v", c.like, len(m.List), m.List[0])
		}
		for i, tok := range m.List {
			for l, mask := range tok.Active {
				count := 0
				for _, w := range mask {
					count += bits.OnesCount64(w)
				}
				if count != c.k || tok.Predicted != nil {
					t.Fatalf("%s: token %d, layer %d: %d experts, want %d", c.like, i, l, count,
						c.k)
				}
			}
		}
		s := measure(t, m, false)
		near(t, c.like+": active share", s.Total.Active.Mean, float64(c.k)/float64(c.n))
	}
}

// In the layers of the published table as many tokens share an expert with the one before as it
// says; in others the share is in between.
func TestRepetitionsOfExperts(t *testing.T) {
	m := collect(t, synth.Options{Like: "mixtral-8x7b", Tokens: 12000, Seed: 1})
	share := func(layer int) float64 {
		shared := 0
		for i := 1; i < len(m.List); i++ {
			if m.List[i].Active[layer][0]&m.List[i-1].Active[layer][0] != 0 {
				shared++
			}
		}
		return 100 * float64(shared) / float64(len(m.List)-1)
	}
	targets, err := synth.Targets("Mixtral-8x7B")
	if err != nil || len(targets) != 3 {
		t.Fatalf("%d targets, %v", len(targets), err)
	}
	for _, target := range targets {
		var layer int
		if _, err := fmt.Sscan(target.Layer, &layer); err != nil {
			t.Fatal(err)
		}
		if got := share(layer - 1); math.Abs(got-target.Percent) > 1.5 { // three standard errors
			t.Errorf("layer %d: %.3g %% of the tokens repeat an expert, published %.3g %%", layer,
				got, target.Percent)
		}
	}
	if first, between, middle := share(0), share(8), share(15); between < first ||
		between > middle {
		t.Errorf("repetitions of layers 0, 8 and 15: %.3g, %.3g and %.3g %%", first, between,
			middle)
	}
}

// Some experts of a layer are more popular than others, the same ones in all sequences and others
// in other layers.
func TestPopularityOfExperts(t *testing.T) {
	const tokens = 3000
	m := collect(t, synth.Options{Like: "olmoe-1b-7b", Layers: 2, Tokens: tokens, Sequences: 2,
		Seed: 2})
	uses := func(sequence, layer int) []float64 {
		list := make([]float64, m.Head.Units)
		for _, tok := range m.List[sequence*tokens : (sequence+1)*tokens] {
			for u := range list {
				list[u] += float64(tok.Active[layer][u/64] >> (u % 64) & 1)
			}
		}
		return list
	}
	first := uses(0, 0)
	// In the long run the factor is 3.9 (TestUseOfExperts has the closed form).
	sorted := slices.Sorted(slices.Values(first))
	if ratio := sorted[len(sorted)*5/6] / sorted[len(sorted)/6]; ratio < 3.2 || ratio > 4.6 {
		t.Errorf("the upper sixth of the experts is used %.3g times as much as the lower one",
			ratio)
	}
	if same, other := correlation(first, uses(1, 0)), correlation(first, uses(0, 1)); same < 0.8 ||
		math.Abs(other) > 0.35 {
		t.Errorf("correlation of uses with those of another sequence %.3g, of another layer %.3g",
			same, other)
	}
}

func correlation(a, b []float64) float64 {
	mean := func(v []float64) (sum float64) {
		for _, x := range v {
			sum += x / float64(len(v))
		}
		return sum
	}
	ma, mb := mean(a), mean(b)
	var ab, aa, bb float64
	for i := range a {
		ab += (a[i] - ma) * (b[i] - mb)
		aa += (a[i] - ma) * (a[i] - ma)
		bb += (b[i] - mb) * (b[i] - mb)
	}
	return ab / math.Sqrt(aa*bb)
}

// The routing of another model replaces that of the shape, and the header says so.
func TestRoutingOfAnotherModel(t *testing.T) {
	opt := synth.Options{Like: "qwen3-30b-a3b", Layers: 1, Tokens: 50, Seed: 3}
	own := hash(t, opt)
	for _, name := range synth.Routings() {
		opt.Routing = strings.ToUpper(name)
		head, err := synth.HeaderOf(opt)
		if err != nil || !strings.Contains(head.Sampling, "routing as of "+name+" (asked for)") {
			t.Errorf("%s: %q, %v", name, head.Sampling, err)
		}
		if (hash(t, opt) == own) != (name == "Qwen3-30B-A3B") {
			t.Errorf("with the routing of %s the masks are not as expected", name)
		}
	}
}

func TestExpertsAreTheSameAgain(t *testing.T) {
	opt := synth.Options{Like: "mixtral-8x7b", Layers: 3, Tokens: 100, Sequences: 2, Seed: 42}
	const frozen = 0xc394d6cf8d44d022
	if got := hash(t, opt); got != frozen {
		t.Errorf("the bytes of seed 42 changed: hash %#x, was %#x; traces made before cannot be "+
			"repeated", got, uint64(frozen))
	}
	opt.Sequences = 1
	long := collect(t, opt)
	opt.Tokens = 60
	if d := cmp.Diff(long.List[:60], collect(t, opt).List); d != "" {
		t.Errorf("(-long +short):\n%s", d)
	}
}

// Every policy runs on experts as on neurons. On a trace without memory and with equally popular
// experts (as many as there are in the first layer of Mixtral, but for its little of both), lru
// finds what it needs as often as its capacity is of all experts.
func TestPoliciesOnExperts(t *testing.T) {
	m := collect(t, synth.Options{Like: "mixtral-8x7b", Tokens: 3000, Seed: 3})
	misses := func(layer int, text string) float64 {
		s, err := policy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		masks := func(yield func(mask.Mask) bool) {
			for _, tok := range m.List {
				if !yield(tok.Active[layer]) {
					return
				}
			}
		}
		p, err := policy.New(s, m.Head.Units, policy.Options{Hot: []uint32{0, 1, 2, 3, 4, 5, 6, 7},
			Future: masks})
		if err != nil {
			t.Fatal(err)
		}
		var d policy.Decision
		loads := 0
		for mask := range masks {
			p.Step(mask, &d)
			loads += len(d.Load)
		}
		return float64(loads) / float64(2*len(m.List))
	}
	for _, capacity := range []int{2, 4, 6} {
		lru, belady := misses(15, fmt.Sprintf("lru:%d", capacity)),
			misses(15, fmt.Sprintf("belady:%d", capacity))
		if first := misses(0, fmt.Sprintf("lru:%d", capacity)); belady >= lru || lru >= first {
			t.Errorf("%d experts in memory: lru misses %.3g, belady %.3g, lru in the first "+
				"layer %.3g", capacity, lru, belady, first)
		} else if chance := 1 - float64(capacity)/8; math.Abs(first-chance) > 0.04 {
			t.Errorf("%d experts in memory: lru misses %.3g of what the first layer needs, %.3g "+
				"by chance", capacity, first, chance)
		}
	}
	if all := misses(0, "lru:8"); all > 8.5/6000 {
		t.Errorf("with all experts in memory %.3g are missed", all)
	}
}

func TestBadOptionsOfExperts(t *testing.T) {
	for want, opt := range map[string]synth.Options{
		"true masks only":                 {Like: "mixtral-8x7b", Tokens: 3, Predicted: true},
		"an active share cannot be given": {Like: "mixtral-8x7b", Tokens: 3, ActiveShare: 0.2},
		"no routing is published of \"phi\"; there is Mixtral-8x7B, OLMoE-1B-7B,": {
			Like: "mixtral-8x7b", Tokens: 3, Routing: "phi"},
		"OPT-6.7B has no experts": {Like: "opt-6.7b", Tokens: 3, Routing: "glm-5.2"},
		"7 experts, of which":     {Like: "qwen3-30b-a3b", Tokens: 3, Units: 7},
		"5000 experts, of which":  {Like: "mixtral-8x7b", Tokens: 3, Units: 5000},
		"at least 1":              {Like: "mixtral-8x7b"},
	} {
		if _, err := synth.HeaderOf(opt); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "synth: ") {
			t.Errorf("%+v: error %v, want %q", opt, err, want)
		}
	}
}
