package model

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// checkpoints are the tiny models that tools/goldens made with transformers, by family.
func checkpoints(t *testing.T) map[string][]Arch {
	t.Helper()
	list := map[string][]Arch{}
	const dir = "../testdata/families"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name(), "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := parse(t, string(text))
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		list[c.Arch.Family] = append(list[c.Arch.Family], c.Arch)
	}
	return list
}

// TestFamilies: every family has a checkpoint, every name belongs to one family, and a family
// allows just the traits that its checkpoints have.
func TestFamilies(t *testing.T) {
	models, names := checkpoints(t), map[string]string{}
	for _, f := range families() {
		if len(models[f.name]) == 0 {
			t.Errorf("family %s has no checkpoint in engine/testdata/families", f.name)
			continue
		}
		for _, name := range slices.Concat(f.modelTypes, f.classes) {
			if other := names[name]; other != "" {
				t.Errorf("%s belongs to the families %s and %s", name, other, f.name)
			}
			names[name] = f.name
		}
		var all traits
		common := ^traits(0)
		for _, a := range models[f.name] {
			all, common = all|a.traits(), common&a.traits()
		}
		if f.always&^common != 0 {
			t.Errorf("family %s always has %v, a checkpoint has not", f.name, f.always&^common)
		}
		if untested := (f.always | f.sometimes) &^ all; untested != 0 {
			t.Errorf("family %s allows %v, no checkpoint has it", f.name, untested)
		}
	}
	if got := Families(); len(got) != len(families()) || !strings.HasPrefix(got[1], "Llama (") {
		t.Errorf("families for people: %q", got)
	}
}

// TestFamilyRefusesOtherTraits changes one trait of every checkpoint's architecture.
func TestFamilyRefusesOtherTraits(t *testing.T) {
	change := map[traits]func(a *Arch){
		gated:            func(a *Arch) { a.Shape.Rows = 5 - a.Shape.Rows },
		rmsNorm:          func(a *Arch) { a.RMSNorm = !a.RMSNorm },
		postNorm:         func(a *Arch) { a.PostNorm = !a.PostNorm },
		parallel:         func(a *Arch) { a.Parallel = !a.Parallel },
		sharedNorm:       func(a *Arch) { a.SharedNorm = !a.SharedNorm },
		qkNorm:           func(a *Arch) { a.QKNorm = !a.QKNorm },
		learnedPositions: func(a *Arch) { a.Positions = !a.Positions },
		projected: func(a *Arch) {
			if a.Embed++; a.traits()&projected == 0 {
				a.Embed++
			}
		},
		headBias: func(a *Arch) { a.HeadBias = !a.HeadBias },
		outNorms: func(a *Arch) { a.OutNorms = !a.OutNorms },
		embedScale: func(a *Arch) {
			if a.EmbedScale++; a.EmbedScale != 1 {
				a.EmbedScale = 0
			}
		},
		softCaps: func(a *Arch) {
			if a.traits()&softCaps != 0 {
				a.ScoreCap, a.LogitCap = 0, 0
			} else {
				a.ScoreCap = 1
			}
		},
		localRotary: func(a *Arch) {
			if a.LocalRotary.Dim > 0 {
				a.LocalRotary = Rotary{}
			} else {
				a.LocalRotary = Rotary{Dim: 2, Theta: 1}
			}
		},
		longRope: func(a *Arch) {
			if a.Rotary.longRope() {
				a.Rotary.Short, a.Rotary.Long = nil, nil
			} else {
				a.Rotary.Long = []float64{1}
			}
		},
		someWindows: func(a *Arch) {
			if a.FullLayers = nil; a.traits()&someWindows == 0 {
				a.Window, a.FullLayers = 5, []int{1}
			}
		},
	}
	for _, one := range allTraits() {
		if change[one.bit] == nil {
			t.Errorf("nothing changes the trait %v", one.bit)
			continue
		}
		for family, list := range checkpoints(t) {
			for _, a := range list {
				if err := a.check(); err != nil {
					t.Fatalf("%s: %v", family, err)
				}
				f := familyOf(&a)
				if f.sometimes&one.bit != 0 {
					continue
				}
				change[one.bit](&a)
				refused(t, f.check(&a), checkpoint.ErrUnsupported, f.name, one.name)
			}
		}
	}
}

// TestArchRefuses changes the architecture of a checkpoint into one that contradicts itself.
func TestArchRefuses(t *testing.T) {
	models := checkpoints(t)
	find := func(family string, has traits) Arch {
		for _, a := range models[family] {
			if a.traits()&has == has {
				return a
			}
		}
		t.Fatalf("no checkpoint of family %s has %v", family, has)
		return Arch{}
	}
	for _, c := range []struct {
		arch   Arch
		change func(a *Arch)
		want   string
	}{
		{find(OPT, postNorm), func(a *Arch) { a.FinalNorm = true }, "with a final norm"},
		{find(Falcon, sharedNorm), func(a *Arch) { a.Parallel = false }, "not parallel"},
		{find(Falcon, 0), func(a *Arch) { a.Activation.Kind = DReLU }, "without gate rows"},
		{find(Llama, 0), func(a *Arch) { a.Rotary.Dim = 0 }, "one of them is wanted"},
		{find(OPT, 0), func(a *Arch) { a.Rotary = Rotary{Dim: 2, Theta: 1} }, "one of them"},
		{find(Phi, 0), func(a *Arch) { a.Family = "psi" }, `family "psi"`},
	} {
		if err := c.arch.check(); err != nil {
			t.Fatal(err)
		}
		c.change(&c.arch)
		refused(t, c.arch.check(), checkpoint.ErrUnsupported, c.want)
	}
}
