package session

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/tell"
)

// naming writes a predictor of the model that names all units of every layer, or none.
func naming(t *testing.T, s *Session, all bool) string {
	t.Helper()
	shape := s.Image.Shape
	layers := make([]predictor.Layer, shape.Layers)
	for l := range layers {
		layers[l] = predictor.Layer{Rank: 1, W1: make([]uint16, shape.DModel),
			W2: make([]uint16, shape.DFFN), MinLogit: 1}
		if all {
			layers[l].MinLogit = -1
		}
	}
	p, err := predictor.New(predictor.Linear, shape.DModel, shape.DFFN, layers, predictor.Facts{
		Origin: "a test", Feature: predictor.FFNInput, Model: s.Image.Hash})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "p.predictor.safetensors")
	if err := p.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestGenerateFromFlash: with a predictor that names every unit the text is that of the dense
// model, read from flash; with one that names none it is another, and every active unit is counted
// as missed. A budget that is too small drops rows and says so.
func TestGenerateFromFlash(t *testing.T) {
	var notes []string
	s := openTales(t, tell.Tell{Note: func(text string) { notes = append(notes, text) }})
	generate := func(change func(cfg *GenerateConfig)) *Generated {
		t.Helper()
		cfg := DefaultGenerate()
		cfg.N, cfg.Threads, cfg.Flash.DensePrefix = 8, 1, Auto
		cfg.Flash.Window = 2
		change(&cfg)
		g, err := s.Generate(t.Context(), "Once upon a time", cfg)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	dense := generate(func(*GenerateConfig) {})
	if dense.Bytes != 0 || dense.NGen != 8 || !dense.Resident {
		t.Errorf("%+v", dense)
	}
	all := generate(func(cfg *GenerateConfig) {
		cfg.Predictor, cfg.CountMissed = naming(t, s, true), true
	})
	if !slices.Equal(all.Tokens, dense.Tokens) || all.Text != dense.Text || all.Bytes == 0 ||
		all.Missed == nil || *all.Missed != 0 || all.Dropped != 0 || all.Mode == nil {
		t.Errorf("all units from flash: %+v, dense %q", all, dense.Text)
	}
	none := generate(func(cfg *GenerateConfig) {
		cfg.Predictor, cfg.CountMissed = naming(t, s, false), true
	})
	if slices.Equal(none.Tokens, dense.Tokens) || none.Bytes != 0 || none.Missed == nil ||
		*none.Missed != 1 {
		t.Errorf("no unit at all: %+v", none)
	}
	prefix := generate(func(cfg *GenerateConfig) {
		cfg.Predictor, cfg.Flash.DensePrefix = naming(t, s, true), s.Image.Shape.Layers
	})
	if !slices.Equal(prefix.Tokens, dense.Tokens) || prefix.Bytes != 0 {
		t.Errorf("every layer dense: %+v", prefix)
	}
	notes = nil
	little := generate(func(cfg *GenerateConfig) {
		cfg.Predictor, cfg.Flash.DRAM = naming(t, s, true), "60%"
	})
	if little.Dropped == 0 || !slices.ContainsFunc(notes, func(n string) bool {
		return strings.Contains(n, "rows per layer in")
	}) {
		t.Errorf("60 %% of the memory: %d dropped, notes %q", little.Dropped, notes)
	}
	if d := little.Document(); len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0],
		"give more memory") {
		t.Errorf("warnings %q", d.Warnings)
	}
}

// TestDraftsAreAccepted: a model that drafts for itself is always right, and does not change the
// text.
func TestDraftsAreAccepted(t *testing.T) {
	s := openTales(t, tell.Tell{})
	cfg := DefaultGenerate()
	cfg.N, cfg.Threads = 9, 1
	dense, err := s.Generate(t.Context(), "Once", cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Draft, cfg.Lambda = s.Image.Path, 3
	drafted, err := s.Generate(t.Context(), "Once", cfg)
	if err != nil {
		t.Fatal(err)
	}
	d := drafted.Draft
	if !slices.Equal(drafted.Tokens, dense.Tokens) || d == nil || d.Proposed == 0 ||
		d.Accepted != d.Proposed || math.Abs(d.Acceptance-1) > 1e-9 || d.Verified >= 9 {
		t.Errorf("%q instead of %q: %+v", drafted.Text, dense.Text, d)
	}
}

// TestFlashRefuses: what cannot be kept on flash, or predicted, is refused by its field.
func TestFlashRefuses(t *testing.T) {
	s := openTales(t, tell.Tell{})
	all := naming(t, s, true)
	for name, c := range map[string]struct {
		change func(cfg *GenerateConfig)
		says   string
	}{
		"prefix":  {func(c *GenerateConfig) { c.Flash.DensePrefix = 99 }, "<DensePrefix> 99"},
		"budget":  {func(c *GenerateConfig) { c.Flash.DRAM = "1MiB" }, "<DRAM> 1MiB"},
		"no size": {func(c *GenerateConfig) { c.Flash.DRAM = "some" }, `<DRAM> "some"`},
		"engine":  {func(c *GenerateConfig) { c.Flash.IO = "tape" }, `<IO> "tape"`},
	} {
		cfg := DefaultGenerate()
		cfg.N, cfg.Predictor, cfg.Flash.DensePrefix = 2, all, Auto
		c.change(&cfg)
		_, err := s.Generate(t.Context(), "Once", cfg)
		refuses(t, name, err, refusal.ErrConfig, c.says)
	}
	cfg := DefaultGenerate()
	cfg.N, cfg.Predictor = 2, s.Image.Path
	if _, err := s.Generate(t.Context(), "Once", cfg); !errors.Is(err, refusal.ErrInput) {
		t.Errorf("an image as predictor: %v", err)
	}
}

// TestCheckImages: the whole and the damaged, the reason why not all are whole, and the end of what
// is no image.
func TestCheckImages(t *testing.T) {
	s := openTales(t, tell.Tell{})
	data, err := os.ReadFile(s.Image.Path)
	if err != nil {
		t.Fatal(err)
	}
	data[s.Image.Geometry().Base[2]+77] ^= 16
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, data, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := CheckImages(t.Context(), []string{s.Image.Path}, tell.Tell{})
	if err != nil || r.No() != "" || r.Images[0].State != Whole ||
		!strings.Contains(r.Document().Headline, "whole, ") {
		t.Errorf("%+v, %v, %q", r, err, r.No())
	}
	r, err = CheckImages(t.Context(), []string{s.Image.Path, bad}, tell.Tell{})
	if err != nil || r.Images[1].State != Damaged || len(r.Images[1].Damage) != 1 ||
		!strings.Contains(r.No(), "1 of 2 images") || !strings.Contains(r.No(), bad) {
		t.Errorf("%+v, %v, %q", r, err, r.No())
	}
	if d := r.Document(); d.Check() != nil || len(d.Sections) != 2 ||
		d.Sections[1].Table.Rows[0][1] != "layers.2.ffn.bundles" {
		t.Errorf("%+v", d)
	}
	if _, err := CheckImages(t.Context(), []string{bad, "none"}, tell.Tell{}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
