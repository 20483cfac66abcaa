package synth_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
	"github.com/windrow-sim/windrow/traces/stats"
	"github.com/windrow-sim/windrow/traces/synth"
)

func collect(t *testing.T, opt synth.Options) *traces.Memory {
	t.Helper()
	m, err := synth.Collect(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func measure(t *testing.T, m *traces.Memory, predicted bool) *stats.Stats {
	t.Helper()
	s, err := stats.Compute(m, stats.Options{Predicted: predicted})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// near reports a measured value that is not within 3 % of what it should be.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got/want-1) > 0.03 {
		t.Errorf("%s: %.4g, want %.4g", what, got, want)
	}
}

// A generated trace must have the published statistics, and every layer those of the closed form.
func TestTraceMatchesTargets(t *testing.T) {
	opt := synth.Options{Like: "opt-6.7b", Layers: 7, Tokens: 256, Seed: 42, Predicted: true}
	m := collect(t, opt)
	s := measure(t, m, true)
	units := float64(m.Head.Units)
	near(t, "active share", s.Total.Predictor.TrueShare, 0.033)
	near(t, "predicted share", s.Total.Predictor.PredictedShare, 0.10)
	near(t, "recall", s.Total.Predictor.Recall, 0.95)
	near(t, "false positives", s.Total.Predictor.FalsePositive, 0.07)
	near(t, "s_agg(5)", s.Total.Window.SAgg[5]/units, 0.24)
	near(t, "Δ(4)", s.Total.Window.Delta[4]/units, 0.024)

	e, err := synth.Expect(opt)
	if err != nil {
		t.Fatal(err)
	}
	for l, part := range s.PerLayer {
		near(t, fmt.Sprintf("active share of layer %d", l), part.Predictor.TrueShare,
			e.ActiveShare[l])
		near(t, fmt.Sprintf("predicted share of layer %d", l), part.Predictor.PredictedShare,
			e.PredictedShare[l])
		if l > 0 && part.Predictor.TrueShare < 1.05*s.PerLayer[l-1].Predictor.TrueShare {
			t.Errorf("layer %d is not clearly denser than the one before: %+v", l, part.Predictor)
		}
	}
	trueMasks := measure(t, m, false)
	for _, k := range []int{1, 2, 5, 10, 30, 64} {
		near(t, fmt.Sprintf("predicted s_agg(%d)", k), s.Total.Window.SAgg[k]/units,
			e.PredictedSAgg[k])
		near(t, fmt.Sprintf("true s_agg(%d)", k), trueMasks.Total.Window.SAgg[k]/units,
			e.ActiveSAgg[k])
	}
}

// Other models have their own active share; those without a published one need it as an option.
func TestEveryModel(t *testing.T) {
	published := 0
	for _, name := range shapes.Names() {
		opt := synth.Options{Like: name, Layers: 2, Units: 20000, Tokens: 64, Seed: 1,
			Predicted: true}
		e, err := synth.Expect(opt)
		if err != nil {
			if !strings.Contains(err.Error(), "no active share is published") &&
				!strings.Contains(err.Error(), "experts") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		published++
		near(t, name+": active share", measure(t, collect(t, opt), false).Total.Active.Mean,
			e.ActiveSAgg[1])
	}
	if published < 7 {
		t.Errorf("%d models have a published active share", published)
	}
	for _, share := range []float64{0.001, 0.5, 0.9} {
		opt := synth.Options{Like: "opt-13b", Layers: 3, Units: 30000, Tokens: 64,
			ActiveShare: share}
		if got := measure(t, collect(t, opt), false).Total.Active.Mean; math.Abs(
			got/share-1) > 0.06 {
			t.Errorf("share %g requested, got %.4g", share, got)
		}
	}
}

func TestHeader(t *testing.T) {
	opt := synth.Options{Like: "OPT-6.7B", Layers: 2, Tokens: 1, Seed: 9, Predicted: true}
	h := collect(t, opt).Head
	shape, _, err := shapes.Lookup("opt-6.7b")
	if err != nil {
		t.Fatal(err)
	}
	shape.Layers = 2
	want := traces.Header{SchemaVersion: traces.SchemaVersion, Tool: "windrow",
		UnitKind: traces.Neuron, Layers: 2, Units: 16384,
		UnitBytes: 16384, Model: "synthetic opt-6.7b", Shape: shape, Activation: "relu",
		DType: "f16", Seed: 9, Synthetic: true,
		HasPredicted: true, Sampling: "synthetic: active share 3.3 % (published); temporal " +
			"parameters fitted to OPT-6.7B"}
	if d := cmp.Diff(want, h); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	early, err := synth.HeaderOf(opt)
	if d := cmp.Diff(h, early); d != "" || err != nil {
		t.Errorf("HeaderOf differs from the generated header: %v\n%s", err, d)
	}
	other, err := synth.HeaderOf(synth.Options{Like: "falcon-7b", Tokens: 1})
	if err != nil || !strings.Contains(other.Sampling, "assumed as OPT-6.7B") {
		t.Errorf("a trace of another model says %q (%v)", other.Sampling, err)
	}
}

func TestSequencesAndPhases(t *testing.T) {
	m := collect(t, synth.Options{Like: "opt-125m", ActiveShare: 0.03, Layers: 1, Tokens: 70,
		Prompt: 5, Sequences: 3})
	if len(m.List) != 210 {
		t.Fatalf("%d tokens", len(m.List))
	}
	for i, tok := range m.List {
		phase := traces.Decode
		if i%70 < 5 {
			phase = traces.Prefill
		}
		if int(tok.Seq) != i/70 || int(tok.Pos) != i%70 || tok.Phase != phase ||
			tok.Predicted != nil || tok.ID >= 50272 {
			t.Fatalf("token %d: seq %d pos %d phase %d id %d", i, tok.Seq, tok.Pos, tok.Phase,
				tok.ID)
		}
	}
}

// Popular units are popular in all sequences: two sequences share more units than independent ones
// would.
func TestPopularityIsSharedBySequences(t *testing.T) {
	m := collect(t, synth.Options{Like: "opt-6.7b", Layers: 1, Tokens: 64, Sequences: 2, Seed: 3})
	var seen [2][]uint64
	for s := range seen {
		seen[s] = make([]uint64, m.Head.Words())
		for _, tok := range m.List[s*64 : s*64+64] {
			for w, word := range tok.Active[0] {
				seen[s][w] |= word
			}
		}
	}
	var both, a, b float64
	for w := range seen[0] {
		both += float64(bits.OnesCount64(seen[0][w] & seen[1][w]))
		a += float64(bits.OnesCount64(seen[0][w]))
		b += float64(bits.OnesCount64(seen[1][w]))
	}
	if chance := a * b / float64(m.Head.Units); both < 1.3*chance || both > 0.95*min(a, b) {
		t.Errorf("%.0f units in both sequences, of %.0f and %.0f; %.0f by chance", both, a, b,
			chance)
	}
}

// The published mean run of contiguous bundles, 1.05 units for OPT-6.7B (Ripple, section 6.4), is
// that of units that are not related to their neighbours.
func TestRunsAreShort(t *testing.T) {
	m := collect(t, synth.Options{Like: "opt-6.7b", Layers: 3, Tokens: 64, Seed: 3})
	active, runs := 0, 0
	for _, tok := range m.List {
		for _, mask := range tok.Active {
			carry := uint64(0) // the bit before the first of the word
			for _, w := range mask {
				active += bits.OnesCount64(w)
				runs += bits.OnesCount64(w &^ (w<<1 | carry))
				carry = w >> 63
			}
		}
	}
	if mean := float64(active) / float64(runs); mean < 1.02 || mean > 1.08 {
		t.Errorf("mean run %.4g units", mean)
	}
}

func hash(t *testing.T, opt synth.Options) uint64 {
	t.Helper()
	h := fnv.New64a()
	_, err := synth.Generate(t.Context(), opt, func(tok *traces.Token) error {
		for l := range tok.Active {
			if err := binary.Write(h, binary.LittleEndian, tok.Active[l]); err != nil {
				return err
			}
			if tok.Predicted != nil {
				if err := binary.Write(h, binary.LittleEndian, tok.Predicted[l]); err != nil {
					return err
				}
			}
		}
		return binary.Write(h, binary.LittleEndian, tok.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	return h.Sum64()
}

func TestSameSeedSameBytes(t *testing.T) {
	opt := synth.Options{Like: "opt-125m", ActiveShare: 0.033, Layers: 3, Tokens: 100, Sequences: 2,
		Seed: 42, Predicted: true}
	const frozen = 0x39a218a75303b206
	if got := hash(t, opt); got != frozen {
		t.Errorf("the bytes of seed 42 changed: hash %#x, was %#x; traces made before cannot be "+
			"repeated", got, uint64(frozen))
	}
	opt.Seed = 43
	if hash(t, opt) == frozen {
		t.Error("another seed gives the same bytes")
	}
}

func TestShorterTraceIsAPrefix(t *testing.T) {
	opt := synth.Options{Like: "opt-125m", ActiveShare: 0.033, Layers: 2, Tokens: 150, Seed: 4,
		Predicted: true}
	long := collect(t, opt)
	opt.Tokens = 70
	short := collect(t, opt)
	if d := cmp.Diff(long.List[:70], short.List); d != "" {
		t.Errorf("(-long +short):\n%s", d)
	}
	opt.Predicted = false
	for i, tok := range collect(t, opt).List {
		if !cmp.Equal(tok.Active, short.List[i].Active) {
			t.Fatalf("token %d: the true masks depend on Predicted", i)
		}
	}
}

// 70 units do not fill two words; the rest of the second must stay clear, as stats checks.
func TestOddNumberOfUnits(t *testing.T) {
	s := measure(t, collect(t, synth.Options{Like: "opt-6.7b", Units: 70, Layers: 1, Tokens: 200,
		Predicted: true}), true)
	if s.Accesses == 0 || s.Units != 70 {
		t.Errorf("%d accesses of %d units", s.Accesses, s.Units)
	}
}

func TestErrorOfEmitEndsTheGeneration(t *testing.T) {
	full := errors.New("disk full")
	calls := 0
	_, err := synth.Generate(t.Context(), synth.Options{Like: "opt-6.7b", Layers: 1, Tokens: 10},
		func(*traces.Token) error {
			calls++
			return full
		})
	if !errors.Is(err, full) || calls != 1 {
		t.Errorf("error %v after %d calls", err, calls)
	}
}

func TestBadOptions(t *testing.T) {
	for want, opt := range map[string]synth.Options{
		`did you mean "OPT-6.7B"`:       {Like: "opt-6.7", Tokens: 1},
		"at least 1":                    {Like: "opt-6.7b"},
		"sequences":                     {Like: "opt-6.7b", Tokens: 1, Sequences: -1},
		"does not fit":                  {Like: "opt-6.7b", Tokens: 3, Prompt: 4},
		"write 0.033 for 3.3 %":         {Like: "opt-6.7b", Tokens: 3, ActiveShare: 3.3},
		"is not between":                {Like: "opt-6.7b", Tokens: 3, ActiveShare: math.NaN()},
		"not the shape":                 {Like: "opt-6.7b", Tokens: 3, Layers: -1},
		"no active share is published":  {Like: "opt-13b", Tokens: 3},
		"router picks whole experts":    {Like: "mixtral-8x7b", Tokens: 3},
		"Known are OPT-125M, OPT-350M,": {Tokens: 3},
	} {
		if _, err := synth.Expect(opt); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "synth: ") {
			t.Errorf("%+v: error %v, want %q", opt, err, want)
		}
	}
}

// TestFirstSequence makes sequences without those before them: they are the same.
func TestFirstSequence(t *testing.T) {
	for _, like := range []string{"opt-6.7b", "mixtral-8x7b"} {
		opt := synth.Options{Like: like, Layers: 2, Tokens: 70, Sequences: 4, Seed: 3}
		all, err := synth.Collect(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		opt.First, opt.Sequences = 2, 2
		last, err := synth.Collect(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(last.List, all.List[140:]) {
			t.Errorf("%s: sequences 2 and 3 made alone differ", like)
		}
	}
	if _, err := synth.Collect(t.Context(), synth.Options{Like: "opt-6.7b", Layers: 1, Tokens: 1,
		First: -1}); err == nil {
		t.Error("a first sequence of -1 gave no error")
	}
}
