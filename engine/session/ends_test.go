package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestField_F7_TextsEndAtEveryEndID: a text ends before any id of generation_config.json, not only
// before the tokenizer's.
func TestField_F7_TextsEndAtEveryEndID(t *testing.T) {
	generate := func(ends any) []uint32 {
		t.Helper()
		dir, out := t.TempDir(), filepath.Join(t.TempDir(), "x.flash.safetensors")
		if err := os.CopyFS(dir, os.DirFS("../../examples/models/tales")); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]any{"eos_token_id": ends})
		if err != nil {
			t.Fatal(err)
		}
		err = os.WriteFile(filepath.Join(dir, "generation_config.json"), text, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Pack(t.Context(), PackConfig{Source: dir, Out: out}); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), Config{Model: out})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		cfg := DefaultGenerate()
		cfg.N, cfg.Threads = 8, 1
		g, err := s.Generate(t.Context(), "Once upon a time", cfg)
		if err != nil {
			t.Fatal(err)
		}
		return g.Tokens
	}
	whole := generate(nil)
	if len(whole) != 8 {
		t.Fatalf("%d tokens", len(whole))
	}
	end := whole[4]
	got, want := generate([]uint32{1, end}), whole[:slices.Index(whole, end)]
	if !slices.Equal(got, want) {
		t.Errorf("%d, want %d: the text ends at %d", got, want, end)
	}
}
