package engine

import (
	"path/filepath"
	"slices"
	"testing"
)

// single runs sequences one by one and returns the logits of every position.
func single(t *testing.T, e *Engine, sequences [][]uint32) [][][]float32 {
	t.Helper()
	all := make([][][]float32, len(sequences))
	for i, ids := range sequences {
		e.Reset()
		for pos, id := range ids {
			logits, err := e.Forward(Token{Pos: pos, ID: id})
			if err != nil {
				t.Fatal(err)
			}
			all[i] = append(all[i], slices.Clone(logits))
		}
	}
	return all
}

// TestStepsOfSeveralTokens runs up to eight sequences side by side, prompts in chunks, and demands
// the bits of single runs.
func TestStepsOfSeveralTokens(t *testing.T) {
	for _, name := range []string{"opt", "opt-350m", "llama-relu", "mistral-window", "falcon-40b",
		"persimmon", "phi-relu"} {
		t.Run(name, func(t *testing.T) {
			const sequences, prompt, length = 8, 6, 14
			ids := make([][]uint32, sequences)
			for i := range ids {
				for pos := range length {
					ids[i] = append(ids[i], uint32(4+(i*13+pos*7+pos*pos)%90))
				}
			}
			dir := filepath.Join(familiesDir, name)
			one, w, bundles := newDense(t, dir, Config{Threads: 1})
			want := single(t, one, ids)
			rows, err := NewResident(w, bundles, geometry(w))
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(w, rows, Config{Threads: 2, Sequences: sequences, Batch: sequences *
				prompt / 2})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			check := func(tokens []Token) {
				t.Helper()
				logits, err := e.Step(tokens)
				if err != nil {
					t.Fatal(err)
				}
				for i, token := range tokens {
					if !slices.Equal(logits[i], want[token.SeqID][token.Pos]) {
						t.Fatalf("sequence %d, position %d: the logits are not those of a "+
							"single run", token.SeqID, token.Pos)
					}
				}
			}
			for from := 0; from < prompt; from += prompt / 2 {
				var tokens []Token
				for slot := range sequences {
					for pos := from; pos < from+prompt/2; pos++ {
						tokens = append(tokens, Token{SeqID: slot, Pos: pos, ID: ids[slot][pos]})
					}
				}
				check(tokens)
			}
			for pos := prompt; pos < length; pos++ {
				var tokens []Token
				for slot := range sequences {
					tokens = append(tokens, Token{SeqID: slot, Pos: pos, ID: ids[slot][pos]})
				}
				check(tokens)
			}
			e.Rewind(3, 9)
			check([]Token{{SeqID: 3, Pos: 9, ID: ids[3][9]}, {SeqID: 3, Pos: 10, ID: ids[3][10]}})
		})
	}
}

func TestStepRefuses(t *testing.T) {
	e, _, _ := newDense(t, filepath.Join(familiesDir, "opt"), Config{Threads: 1, Sequences: 2,
		Context: 3})
	for i, tokens := range [][]Token{
		nil, {{}, {}, {}}, {{SeqID: 2}}, {{SeqID: -1}}, {{Pos: 1}}, {{ID: 96}}, {{}, {Pos: 2}},
		{{}, {}},
	} {
		if _, err := e.Step(tokens); err == nil {
			t.Errorf("step %d was taken: %v", i, tokens)
		}
	}
	for pos := range 4 {
		if _, err := e.Forward(Token{Pos: pos, ID: 5}); (err != nil) != (pos == 3) {
			t.Errorf("position %d of a context of 3: %v", pos, err)
		}
	}
	if _, err := New(e.w, e.rows, Config{Batch: 5000}); err == nil {
		t.Error("a step of 5000 tokens was taken")
	}
}
