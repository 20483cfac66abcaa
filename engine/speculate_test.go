package engine

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
)

func pair(t *testing.T, target, draft string) (*Engine, *Engine) {
	t.Helper()
	a, _, _ := newDense(t, filepath.Join(familiesDir, target), Config{Threads: 1, Batch: 6})
	b, _, _ := newDense(t, filepath.Join(familiesDir, draft), Config{Threads: 1})
	return a, b
}

func silent(uint32) error { return nil }

// TestSpeculativeGreedyIsGreedy drafts with another model, and with the target itself, which is
// always right.
func TestSpeculativeGreedyIsGreedy(t *testing.T) {
	for _, c := range []struct {
		target, draft string
		all           bool // drafted tokens are accepted
	}{{"llama-relu", "opt", false}, {"opt", "phi", false}, {"opt", "opt", true}} {
		target, draft := pair(t, c.target, c.draft)
		for _, lambda := range []int{1, 3, 5} {
			opt := GenerateOptions{MaxTokens: 20}
			prompt := []uint32{7, 30, 55, 8}
			want, err := target.Generate(t.Context(), prompt, opt, silent)
			if err != nil {
				t.Fatal(err)
			}
			var shown []uint32
			got, count, err := Speculate(t.Context(), target, draft, prompt, SpeculateOptions{opt,
				lambda}, func(id uint32) error {
				shown = append(shown, id)
				return nil
			})
			if err != nil || !slices.Equal(got, want) || !slices.Equal(shown, want) {
				t.Errorf("%s by %s, λ %d: %v, %v, shown %v; want %v", c.target, c.draft, lambda,
					got, err, shown, want)
			}
			if c.all && (count.Accepted != count.Drafted ||
				count.Verified != (20+lambda)/(lambda+1)) {
				t.Errorf("the target drafted for itself, λ %d: %+v", lambda, count)
			}
			stop := opt
			stop.Stop = map[uint32]bool{want[6]: true}
			if got, _, err = Speculate(t.Context(), target, draft, prompt, SpeculateOptions{stop,
				lambda}, silent); err != nil || !slices.Equal(got, want[:slices.Index(want,
				want[6])]) {
				t.Errorf("λ %d: stopped after %v, %v", lambda, got, err)
			}
		}
	}
}

// TestSpeculativeSamplingHasTheTargetsDistribution compares the third tokens of many runs with
// those of plain sampling, and the first with the exact probabilities, by chi-square tests. The
// critical values are of the 99.9 % quantile by Wilson and Hilferty's approximation.
func TestSpeculativeSamplingHasTheTargetsDistribution(t *testing.T) {
	target, draft := pair(t, "llama-relu", "opt")
	prompt := []uint32{7, 30, 55, 8}
	const draws = 6000
	sampling := Sampling{Temperature: 3, TopP: 0.95, TopK: 40}
	vocab := target.shape.Vocab
	spec, plain, first := make([]float64, vocab), make([]float64, vocab), make([]float64, vocab)
	for i := range draws {
		opt := GenerateOptions{MaxTokens: 3, Sampling: sampling}
		opt.Sampling.Seed = uint64(i)
		got, _, err := Speculate(t.Context(), target, draft, prompt, SpeculateOptions{opt, 2},
			silent)
		if err != nil {
			t.Fatal(err)
		}
		first[got[0]]++
		spec[got[2]]++
		opt.Sampling.Seed = uint64(draws + i)
		if got, err = target.Generate(t.Context(), prompt, opt, silent); err != nil {
			t.Fatal(err)
		}
		plain[got[2]]++
	}
	target.Reset()
	var logits []float32
	for pos, id := range prompt {
		var err error
		if logits, err = target.Forward(Token{Pos: pos, ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	sampler, err := NewSampler(sampling, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]float64, vocab)
	sampler.distribution(p, logits)
	var exact, two float64
	exactFree, twoFree := -1, -1
	for id := range vocab {
		if want := p[id] * draws; want > 0 {
			exact += (first[id] - want) * (first[id] - want) / want
			exactFree++
		} else if first[id] > 0 {
			t.Errorf("token %d was chosen, its probability is 0", id)
		}
		if sum := spec[id] + plain[id]; sum > 0 {
			two += (spec[id] - plain[id]) * (spec[id] - plain[id]) / sum
			twoFree++
		}
	}
	critical := func(free int) float64 {
		const z = 3.0902
		k := float64(free)
		return k * math.Pow(1-2/(9*k)+z*math.Sqrt(2/(9*k)), 3)
	}
	if exactFree < 10 || twoFree < 10 || exact > critical(exactFree) || two > critical(twoFree) {
		t.Errorf("chi-square %.1f of %d (critical %.1f) against the probabilities, %.1f of %d "+
			"(critical %.1f) against plain sampling",
			exact, exactFree, critical(exactFree), two, twoFree, critical(twoFree))
	}
}

func TestSpeculateRefuses(t *testing.T) {
	target, draft := pair(t, "llama-relu", "opt")
	for _, lambda := range []int{0, 6} {
		if _, _, err := Speculate(t.Context(), target, draft, []uint32{5}, SpeculateOptions{
			GenerateOptions{MaxTokens: 2}, lambda}, silent); err == nil {
			t.Errorf("λ %d gave no error", lambda)
		}
	}
	other, _, _ := newDense(t, talesDir, Config{Threads: 1})
	if _, _, err := Speculate(t.Context(), target, other, []uint32{5}, SpeculateOptions{
		GenerateOptions{MaxTokens: 2}, 2}, silent); err == nil {
		t.Error("another vocabulary gave no error")
	}
}

// TestBatchesAreSingleTexts generates up to eight texts side by side, prompts in chunks, and
// compares with single runs.
func TestBatchesAreSingleTexts(t *testing.T) {
	for _, name := range []string{"opt", "mistral", "falcon-7b"} {
		dir := filepath.Join(familiesDir, name)
		one, w, bundles := newDense(t, dir, Config{Threads: 1})
		for _, sampling := range []Sampling{{}, {Temperature: 1.5, TopP: 0.9, MinP: 0.01,
			Penalty: 1.2, Seed: 3}} {
			var prompts, want [][]uint32
			for i := range 8 {
				prompt := []uint32{uint32(3 + i), 20, uint32(90 - i), 41, 15}[:2+i%4]
				ids, err := one.Generate(t.Context(), prompt, GenerateOptions{Seq: i, MaxTokens: 9,
					Sampling: sampling}, silent)
				if err != nil {
					t.Fatal(err)
				}
				prompts, want = append(prompts, prompt), append(want, ids)
			}
			for _, size := range []int{1, 3, 8} {
				rows, err := NewResident(w, bundles, geometry(w))
				if err != nil {
					t.Fatal(err)
				}
				e, err := New(w, rows, Config{Threads: 2, Sequences: size, Batch: size + 3})
				if err != nil {
					t.Fatal(err)
				}
				got, err := e.GenerateBatch(t.Context(), prompts[:size], GenerateOptions{
					MaxTokens: 9, Sampling: sampling, Chunk: 3}, func(int, uint32) error {
					return nil
				})
				e.Close()
				if err != nil {
					t.Fatal(err)
				}
				for i := range got {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("%s, %s: text %d of %d is %v, alone %v", name, sampling, i, size,
							got[i], want[i])
					}
				}
			}
		}
	}
}
