package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/record/training"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// simulatedWith is the speed of a trace whose predicted masks are given, by the simulator itself.
func simulatedWith(t *testing.T, src traces.Source, cfg sim.Config) float64 {
	t.Helper()
	d, err := devicemodels.Find(t.Context(), "m1-max")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Device, cfg.Layout = d, layout.Options{Coalesce: true}
	if cfg.Engine, err = d.ReadEngine("auto"); err != nil {
		t.Fatal(err)
	}
	cfg.Parallel = ioengine.DefaultParallel(cfg.Engine)
	run, err := sim.Run(t.Context(), src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return run.Meta.Totals.TokensPerS
}

// TestSimulatedSpeed compares the report's tokens/s with simulations of a trace that holds the
// masks: those that the predictor's matrices name for every token, and the true ones.
func TestSimulatedSpeed(t *testing.T) {
	trainWorkspace(t)
	for _, ahead := range []bool{false, true} {
		train := []string{"train", "-t", "learn.trace.arrow", "--rank", "8", "--epochs", "2",
			"--force", "-o", "a.predictor.safetensors"}
		when := sim.Schedule{}
		if ahead {
			train = append(train, "--ahead")
			when = sim.Replayed(schedule.Spec{Kind: schedule.LookAhead, Dense: 1})
		}
		must(t, train...)
		doc, _ := trained(t, "-t", "judge.trace.arrow", "--evaluate", "a.predictor.safetensors",
			"--device", "m1-max", "--window", "3")
		p, err := predictor.Load(t.Context(), "a.predictor.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		tokens, head := readTokens(t, "judge.trace.arrow")
		src := &traces.Memory{Head: head}
		src.Head.HasPredicted = true
		run, feature := p.Runner(nil), make([]float32, p.Width())
		for _, tok := range tokens {
			tok.Predicted = make([]mask.Mask, len(tok.Active))
			for l := range tok.Active {
				tok.Predicted[l] = slices.Clone(tok.Active[l])
				from := l
				if ahead {
					if from--; from < 0 {
						continue
					}
				}
				record.Widen(tok.Feature[from], feature)
				if err := run.Predict(from, feature, tok.Predicted[l]); err != nil {
					t.Fatal(err)
				}
			}
			src.List = append(src.List, tok)
		}
		actual := simulatedWith(t, src, sim.Config{Policy: policy.SlidingWindow(3), Schedule: when})
		named := simulatedWith(t, src, sim.Config{Policy: policy.SlidingWindow(3), Schedule: when,
			Predicted:     true,
			PredictorRank: 8})
		got := doc.Texts[0].Speed
		if got == nil || got.Sim == nil || got.Measured != nil {
			t.Fatalf("ahead %v: %+v", ahead, got)
		}
		if got.Sim.True != actual || got.Sim.Named != named || named == actual ||
			got.Sim.Rank != 8 || got.Sim.Tokens != len(tokens) || got.Window != 3 ||
			(got.Schedule == "lookahead") != ahead {
			t.Errorf("ahead %v: reported %+v of window %d, %s; the simulator says %v with what "+
				"is named and %v with the true masks", ahead, got.Sim, got.Window, got.Schedule,
				named, actual)
		}
	}
}

// TestMeasuredSpeed: each kind of predictor runs from the image, and the report says how; the
// held-out part of a training runs where it begins with a text.
func TestMeasuredSpeed(t *testing.T) {
	trainWorkspace(t)
	text := must(t, "train", "-t", "learn.trace.arrow", "--rank", "8", "--epochs", "1", "-m",
		"tales.flash.safetensors", "-o", "a.predictor.safetensors", "--format", "md")
	if !strings.Contains(text, "measured here (") || strings.Contains(text, "simulated on") {
		t.Errorf("%s", text)
	}
	must(t, "train", "-t", "learn.trace.arrow", "--ahead", "--rank", "8", "--epochs", "1", "-o",
		"ahead.predictor.safetensors")
	doc := resultOf[training.CentroidResult](t, must(t, "train", "-t", "learn.trace.arrow",
		"--test", "judge.trace.arrow", "--kind", "centroid", "--centroids", "8", "--epochs", "1",
		"--device", "m1-max", "-m", "tales.flash.safetensors", "-o", "sets.predictor.safetensors",
		"--json"))
	if held := doc.Texts[0].Speed; held == nil || held.Sim == nil ||
		held.Sim.Tokens != doc.Training.Held || held.Measured != nil {
		t.Errorf("the end of a text cannot be run, only simulated: %+v", held)
	}
	for name, schedule := range map[string]string{"a": "demand", "ahead": "lookahead",
		"sets": "token"} {
		judged := resultOf[struct {
			Texts []struct{ Speed *training.Speed }
		}](t, must(t, "train", "-t", "judge.trace.arrow", "--evaluate",
			name+".predictor.safetensors", "-m", "tales.flash.safetensors", "--device", "m1-max",
			"--json"))
		s := judged.Texts[0].Speed
		if s.Schedule != schedule || s.Window != 5 || s.Measured.Tokens != training.MostMeasured ||
			s.Measured.Named <= 0 || s.Measured.True <= 0 || s.Measured.Mode == "" ||
			s.Sim.Named <= 0 {
			t.Errorf("%s: %+v, simulated %+v, measured %+v", name, s, s.Sim, s.Measured)
		}
	}
	for line, want := range map[string]string{
		"-t judge.trace.arrow --evaluate a.predictor.safetensors --window 3":                  "give --device or -m too",
		"-t judge.trace.arrow --evaluate a.predictor.safetensors --device m1-max --window -1": "--window -1",
		"-t judge.trace.arrow --evaluate a.predictor.safetensors --device nowhere":            "neither a file nor a preset",
		"-t judge.trace.arrow --evaluate a.predictor.safetensors --device m1-max --worth 3":   "--worth has no meaning with --evaluate",
		"-t judge.trace.arrow -o b.predictor.safetensors --kind centroid --device m1-max " +
			"--worth 3": "--worth has no meaning of centroids",
	} {
		if o := command(append([]string{"train"},
			strings.Fields(line)...)...); o.code != exitUsage || !strings.Contains(o.stderr, want) {
			t.Errorf("%s: exit %d: %s", line, o.code, o.stderr)
		}
	}
	must(t, "synth", "model", "--like", "opt-125m", "--layers", "1", "-o",
		"other.flash.safetensors")
	if o := command("train", "-t", "judge.trace.arrow", "--evaluate", "a.predictor.safetensors",
		"-m", "other.flash.safetensors"); o.code != exitInput || !strings.Contains(o.stderr,
		"made for something else") {
		t.Errorf("the image of another model: exit %d: %s", o.code, o.stderr)
	}
}
