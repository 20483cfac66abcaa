package engine

import (
	"context"
	"math"
	"slices"
	"testing"
)

func TestGreedyTakesTheLargestAndTheLowerOnTies(t *testing.T) {
	s, err := NewSampler(Sampling{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Next([]float32{1, 5, 5, -2}); got != 1 {
		t.Fatalf("chose %d, want 1", got)
	}
}

// TestNucleusDistribution draws many times and compares with the exact distribution of the nucleus.
func TestNucleusDistribution(t *testing.T) {
	logits := make([]float32, 5)
	p := []float64{0.4, 0.05, 0.3, 0.05, 0.2}
	for i, v := range p {
		logits[i] = float32(math.Log(v))
	}
	s, err := NewSampler(Sampling{Temperature: 1, TopP: 0.85, Seed: 7}, 0)
	if err != nil {
		t.Fatal(err)
	}
	const draws = 60000
	counts := make([]float64, len(p))
	for range draws {
		counts[s.Next(logits)]++
	}
	kept := p[0] + p[2] + p[4] // 0.9: the smallest set with at least 0.85
	for i, want := range []float64{p[0] / kept, 0, p[2] / kept, 0, p[4] / kept} {
		if got := counts[i] / draws; math.Abs(got-want) > 0.01 || want == 0 && got > 0 {
			t.Errorf("token %d drawn with share %.3f, want %.3f", i, got, want)
		}
	}
}

func TestSamplerRefuses(t *testing.T) {
	for _, s := range []Sampling{{Temperature: -1}, {Temperature: math.NaN()}, {TopP: 1.5},
		{TopP: -0.1}} {
		if _, err := NewSampler(s, 0); err == nil {
			t.Errorf("%+v gave no error", s)
		}
	}
}

// The same seed gives the same text; another sequence or seed another one.
func TestGenerateIsSeeded(t *testing.T) {
	e := denseEngine(t, 2)
	generate := func(seed uint64, seq int) []uint32 {
		ids, err := e.Generate(context.Background(), []uint32{2, 100, 200}, GenerateOptions{
			Seq: seq, MaxTokens: 12, Sampling: Sampling{Temperature: 1, TopP: 0.95, Seed: seed}},
			func(uint32) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	first := generate(1, 0)
	if !slices.Equal(first, generate(1, 0)) {
		t.Error("the same seed gave two texts")
	}
	if slices.Equal(first, generate(2, 0)) || slices.Equal(first, generate(1, 1)) {
		t.Error("another seed or sequence gave the same text")
	}
}

func TestGenerateStops(t *testing.T) {
	e := denseEngine(t, 1)
	prompt := []uint32{2, 100, 200}
	all, err := e.Generate(context.Background(), prompt, GenerateOptions{MaxTokens: 6},
		func(uint32) error { return nil })
	if err != nil || len(all) != 6 {
		t.Fatalf("%d tokens, %v; want 6", len(all), err)
	}
	stop := map[uint32]bool{all[3]: true}
	cut, err := e.Generate(context.Background(), prompt, GenerateOptions{MaxTokens: 6, Stop: stop},
		func(uint32) error { return nil })
	if want := all[:slices.Index(all, all[3])]; err != nil || !slices.Equal(cut, want) {
		t.Fatalf("stopped with %v, %v; want %v", cut, err, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	part, err := e.Generate(ctx, prompt, GenerateOptions{MaxTokens: 6}, func(uint32) error {
		cancel()
		return nil
	})
	if err == nil || len(part) != 1 {
		t.Fatalf("cancelled after %d tokens with %v; want 1 and an error", len(part), err)
	}
	if _, err := e.Generate(context.Background(), nil, GenerateOptions{MaxTokens: 1},
		nil); err == nil {
		t.Error("an empty prompt gave no error")
	}
	if _, err := e.Generate(context.Background(), prompt, GenerateOptions{MaxTokens: 600},
		nil); err == nil {
		t.Error("more tokens than positions gave no error")
	}
}
