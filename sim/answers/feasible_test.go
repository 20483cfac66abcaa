package answers

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/reference"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces/shapes"
)

func gib(v float64) units.Bytes { return units.Bytes(v * float64(units.GiB)) }

// jetson is the machine of the study with so much memory.
func jetson(t *testing.T, memory units.Bytes) Machine {
	t.Helper()
	d, err := devicemodels.Preset("jetson-orin-990pro")
	if err != nil {
		t.Fatal(err)
	}
	return Machine{Memory: memory, Context: 2048, KVElement: 2, Device: d, Engine: "uring",
		Parallel: 256}
}

func model(t *testing.T, name, dtype string) Footprint {
	t.Helper()
	m, err := FootprintLike(name, dtype, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func assess(t *testing.T, m Footprint, machine Machine) map[string]Runtime {
	t.Helper()
	a, err := AssessFeasibility(m, machine)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]Runtime{}
	for _, r := range a.Rows {
		rows[r.Class] = r
	}
	return rows
}

// The verdicts of the study follow from the memory model, for every system whose outcome is a
// matter of memory; the four without a build for the machine are counted and not derived.
func TestStudy(t *testing.T) {
	study, err := PublishedStudy()
	if err != nil {
		t.Fatal(err)
	}
	total, derived := 0, 0
	for _, s := range study {
		total += s.Count
		if s.Class == "" {
			if s.Verdict != "" || s.Group != "no ARM/JetPack release" {
				t.Errorf("%+v has a verdict without a class", s)
			}
			continue
		}
		name := "mistral-7b-v0.1"
		if strings.Contains(s.Systems, "FlexGen") { // knows OPT only
			name = "opt-6.7b"
		}
		for _, context := range []int{1, 2048} {
			machine := jetson(t, gib(11.9))
			machine.Context = context
			row := assess(t, model(t, name, F16), machine)[s.Class]
			if row.Verdict != s.Verdict || row.Reason == "" || !strings.Contains(row.Systems,
				s.Systems) {
				t.Errorf("%s %s with %s and %d positions: %+v, published %q", s.Group, s.Systems,
					name, context, row, s.Verdict)
			}
		}
		derived += s.Count
	}
	if total != 20 || derived != 16 {
		t.Errorf("%d systems, of which %d have a derived verdict; the study has 20, and 4 "+
			"without a build", total, derived)
	}
}

// The published rates at 11.9 GiB are below the bounds, and llama.cpp's is between those of the
// best and of the worst replacement.
func TestPublishedRatesAreWithinTheBounds(t *testing.T) {
	// tokens/s: neuroprefetcher_constants.csv, a third party's digest of arXiv 2608.22643v1
	const llama, neuro = 0.34, 3.22
	rows := assess(t, model(t, "mistral-7b-v0.1", F16), jetson(t, gib(11.9)))
	if r := rows[ClassMapped]; r.RateLeast > llama || r.RateMost < llama {
		t.Errorf("mapped: %.3g to %.3g tokens/s, published %g", r.RateLeast, r.RateMost, llama)
	}
	if r := rows[ClassFlash]; r.RateMost < neuro || r.RateLeast < neuro || r.RateLeast > 1.5*neuro {
		t.Errorf("flash: at most %.3g tokens/s, with single rows %.3g, published %g", r.RateMost,
			r.RateLeast, neuro)
	}
	for _, class := range []string{ClassResident, ClassOffload} {
		if r := rows[class]; r.Verdict.Runs() || r.RateMost != 0 {
			t.Errorf("%s does not run and has a rate: %+v", class, r)
		}
	}
}

// By hand: what a mapped file and an all-disk placement read.
func TestReadsByHand(t *testing.T) {
	m := model(t, "opt-6.7b", F16)
	if m.Bytes != 6658473984*2 || m.FFN != 32*16384*16384 || m.Record != 16384 ||
		m.KV != 32*2*4096 {
		t.Fatalf("%+v", m)
	}
	rows := assess(t, m, jetson(t, gib(8)))
	kv := units.Bytes(m.KV) * 2 * 2048
	if r := rows[ClassMapped]; r.ReadLeast != m.Bytes-(gib(8)-kv) || r.ReadMost != m.Bytes {
		t.Errorf("mapped: %+v", r)
	}
	if r := rows[ClassPlaced]; r.ReadLeast != m.Bytes ||
		math.Abs(r.RateMost*float64(m.Bytes)/7.45e9-1) > 0.01 {
		t.Errorf("placed: %+v", r)
	}
}

// rank orders verdicts from those that do not run to those that fit.
func rank(v Verdict) int {
	switch {
	case v == VerdictFits:
		return 2
	case v.Runs():
		return 1
	}
	return 0
}

// More memory never makes a verdict worse nor a bound lower, for any model, precision and kind of
// memory; weights of fewer bits do not either.
func TestMoreMemoryIsNotWorse(t *testing.T) {
	machine := jetson(t, units.GiB)
	for _, name := range shapes.Names() {
		models := []Footprint{model(t, name, F16), model(t, name, Q8), model(t, name, Q4)}
		for _, vram := range []float64{0, 8} {
			before := map[string]Runtime{}
			for memory := 1.0; memory < 200; memory *= 1.4 {
				var wide map[string]Runtime
				for _, m := range models {
					dtype := m.DType
					machine.Memory, machine.Accelerator = gib(memory), gib(vram)
					rows := assess(t, m, machine)
					for class, r := range rows {
						if old, ok := before[class+dtype]; ok &&
							(rank(r.Verdict) < rank(old.Verdict) ||
								r.RateMost < 0.999*old.RateMost) {
							t.Errorf("%s %s, %s, %.3g GiB, %g GiB: %+v after %+v", name, dtype,
								class, memory, vram, r, old)
						}
						if w, ok := wide[class]; ok && rank(r.Verdict) < rank(w.Verdict) {
							t.Errorf("%s %s, %s, %.3g GiB: %+v, with more bits %+v", name, dtype,
								class, memory, r, w)
						}
						if r.ReadLeast > r.ReadMost || r.RateLeast > r.RateMost || r.Reason == "" {
							t.Errorf("%s %s, %s, %.3g GiB: %+v", name, dtype, class, memory, r)
						}
						before[class+dtype] = r
					}
					wide = rows
				}
			}
		}
	}
}

// An accelerator with memory of its own makes offload what it is meant to be; the same memory in
// one pool does not.
func TestOffloadNeedsTwoMemories(t *testing.T) {
	m := model(t, "mistral-7b-v0.1", F16)
	machine := jetson(t, gib(8))
	machine.Accelerator = gib(8)
	apart := assess(t, m, machine)
	if apart[ClassOffload].Verdict != VerdictFits ||
		apart[ClassResident].Verdict != VerdictAllocFails ||
		apart[ClassPlaced].Verdict != VerdictFits {
		t.Errorf("8 and 8 GiB: %+v", apart)
	}
	machine.Memory = gib(4)
	if r := assess(t, m, machine)[ClassPlaced]; r.Verdict != VerdictMixed || r.ReadLeast <= 0 ||
		r.ReadLeast >= m.Bytes {
		t.Errorf("8 and 4 GiB: %+v", r)
	}
	if one := assess(t, m, jetson(t, gib(12)))[ClassOffload]; one.Verdict != VerdictNoCapacity {
		t.Errorf("12 GiB in one pool: %+v", one)
	}
}

// Without a device there are verdicts and no rates, and without an active share nothing is said of
// predicted rows.
func TestWhatIsNotKnown(t *testing.T) {
	rows := assess(t, model(t, "opt-13b", F16), Machine{Memory: gib(12), Context: 100})
	if r := rows[ClassFlash]; r.Verdict != VerdictUnknown || !strings.Contains(r.Reason,
		"no active share of OPT-13B") {
		t.Errorf("%+v", r)
	}
	for class, r := range rows {
		if r.RateMost != 0 || r.RateLeast != 0 {
			t.Errorf("%s has rates without a device: %+v", class, r)
		}
	}
	given, err := FootprintLike("opt-13b", F16, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	if r := assess(t, given, Machine{Memory: gib(16),
		Context: 100})[ClassFlash]; r.Verdict != VerdictFits ||
		r.ReadLeast <= 0 {
		t.Errorf("with an active share: %+v", r)
	}
}

func TestPrecisions(t *testing.T) {
	whole := model(t, "llama-2-7b", F16)
	for dtype, ratio := range map[string]float64{Q8: 34.0 / 64, Q4: 18.0 / 64} {
		if m := model(t, "llama-2-7b",
			dtype); math.Abs(float64(m.Bytes)/float64(whole.Bytes)/ratio-1) > 1e-6 ||
			m.KV != whole.KV {
			t.Errorf("%s: %v beside %v", dtype, m.Bytes, whole.Bytes)
		}
	}
}

func TestErrors(t *testing.T) {
	for says, call := range map[string]func() error{
		`did you mean "OPT-6.7B"`: func() error {
			_, err := FootprintLike("opt-6.7", F16,
				0)
			return err
		},
		"known are f16, q8_0": func() error {
			_, err := FootprintLike("opt-6.7b", "int3",
				0)
			return err
		},
		"not between 0 and 1": func() error {
			_, err := FootprintLike("opt-6.7b", F16,
				3)
			return err
		},
		"cannot be given": func() error {
			_, err := FootprintLike("mixtral-8x7b", F16,
				0.1)
			return err
		},
		"not a model": func() error {
			_, err := AssessFeasibility(Footprint{}, Machine{Memory: 1,
				Context: 1})
			return err
		},
		"must be positive": func() error {
			_, err := AssessFeasibility(model(t, "phi-2", F16),
				Machine{Memory: 1})
			return err
		},
		"not in its model": func() error {
			machine := jetson(t, gib(8))
			machine.Engine = "pread"
			_, err := AssessFeasibility(model(t, "phi-2", F16), machine)
			return err
		},
	} {
		if err := call(); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), says) ||
			!strings.HasPrefix(err.Error(), "answers: ") {
			t.Errorf("%v; want %q", err, says)
		}
	}
}

// Where the collection of published numbers is at hand, the groups and their counts are its own.
func TestPublishedIsACopy(t *testing.T) {
	counts := map[string]int{}
	study, err := PublishedStudy()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range study {
		counts[s.Group] += s.Count
		counts["total evaluated"] += s.Count
		if s.Source == "" || s.Quality != "text" {
			t.Errorf("%+v", s)
		}
	}
	for _, line := range reference.Table(t, "papers", "neuroprefetcher_baselines.csv")[1:] {
		if got := counts[line[0]]; line[2] != strconv.Itoa(got) {
			t.Errorf("%s: %d systems here, published %s", line[0], got, line[2])
		}
		for _, s := range study {
			if s.Group == line[0] && !strings.Contains(line[1], s.Systems) {
				t.Errorf("%s: %s is not among %q", line[0], s.Systems, line[1])
			}
		}
	}
}
