package sweep

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces/whatif"
)

// resolver knows presets only.
func resolver() Resolver {
	return Resolver{
		Device: devicemodels.Preset,
		Engine: func(d *devicemodels.Device, name string) (string, error) {
			if name == "auto" {
				return engineOf(d), nil
			}
			if _, ok := d.Flash.Engines[name]; !ok {
				return "", fmt.Errorf("no engine %s", name)
			}
			return name, nil
		},
		Parallel: func(engine string) int { return len(engine) },
		Image: func(string) (layout.Geometry, error) {
			return layout.Uniform(2, 16384, 16384),
				nil
		},
	}
}

const fullScenario = `
trace: {like: opt-6.7b, layers: 2, tokens: 8, prompt: 2, active: 0.05, seed: 7}
max_tokens: 20
image: some.flash.safetensors
batches: [1, 2..8/3]
predicted: [true, false]
predictor_rank: 32
windows: [0, 2..4, 10..16/3]
policies: ["lru:100", "window:4,capacity:50"]
gaps: 0..2/2
coalesce: true
chunks: [none, 64KiB]
devices: [m1-max, ufs40-8gen3]
engines: [auto]
parallel: [auto, 7]
headroom: true
`

func TestScenarioIsReadWhole(t *testing.T) {
	s, err := ParseScenario("full.yaml", []byte(fullScenario))
	if err != nil {
		t.Fatal(err)
	}
	want := &Scenario{
		Trace: TraceSpec{Like: "opt-6.7b", Layers: 2, Tokens: 8, Prompt: 2, Sequences: 1,
			Active: 0.05, Seed: 7},
		MaxTokens: 20, Image: "some.flash.safetensors", Batches: []int{1, 2, 5, 8},
		Predicted: []bool{true, false}, Rank: 32, Windows: []int{0, 2, 3, 4, 10, 13, 16},
		Policies: []policy.Spec{{Kind: "lru", Capacity: 100}, {Kind: "window", Window: 4,
			Capacity: 50}},
		Gaps: []int{0, 2}, Coalesce: []bool{true}, Chunks: []units.Bytes{0, 64 * units.KiB},
		Devices: []string{"m1-max", "ufs40-8gen3"}, Engines: []string{"auto"}, Parallel: []int{
			0, 7}, Headroom: true,
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, want %+v", s, want)
	}
	configs, err := configurations(s)
	if err != nil {
		t.Fatal(err)
	}
	if want := 4 * 2 * 9 * 2 * 2 * 2 * 2; len(configs) != want || s.Count() != want {
		t.Fatalf("%d configurations, counted as %d, want %d", len(configs), s.Count(), want)
	}
	first, last := configs[0], configs[len(configs)-1]
	if first.Batch != 1 || last.Batch != 8 || first.Geometry.Units != 16384 ||
		last.Geometry.Units != 16384 || s.Geometry.Units != 16384 {
		t.Errorf("the first is a batch of %d on %+v, the last one of %d", first.Batch,
			first.Geometry, last.Batch)
	}
	if !first.Predicted || first.PredictorRank != 32 || first.Policy.Window != 0 ||
		first.Parallel != len("pread") || first.Device.Name != "m1-max" ||
		first.Layout.MaxRequest != 0 {
		t.Errorf("the first is %+v", first)
	}
	if last.Predicted || last.PredictorRank != 0 || last.Policy != s.Policies[1] ||
		last.Parallel != 7 || last.Engine != "uring" || last.Layout.Gap != 2 ||
		last.Layout.MaxRequest != 64*units.KiB {
		t.Errorf("the last is %+v", last)
	}
	seen := map[string]bool{}
	for _, c := range configs {
		seen[fmt.Sprint(c.Batch, c.Predicted, c.Policy, c.Layout, c.Device.Name, c.Engine,
			c.Parallel)] = true
	}
	if len(seen) != len(configs) {
		t.Errorf("%d different configurations among %d", len(seen), len(configs))
	}
}

func TestScenarioErrorsNameTheirLine(t *testing.T) {
	const good = "trace: {like: opt-6.7b, tokens: 8}\nwindows: 1..4\ndevices: [m1-max]\n"
	if _, err := ParseScenario("s.yaml", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"", "is empty"},
		{"[1]", "s.yaml:1: scenario: is not a plain mapping"},
		{good + "---\na: 1\n", "more than one document"},
		{good + "widows: 3\n", `s.yaml:4: scenario: unknown key "widows"; did you mean "windows"?`},
		{good + "zzzzzzzzz: 3\n", "known keys are trace, max_tokens"},
		{good + "windows: 3\n", `s.yaml:4: scenario: key "windows" is already given on line 2`},
		{good + "gaps: []\n", "s.yaml:4: gaps: 0 values"},
		{good + "gaps: 4..1\n", `s.yaml:4: gaps: range "4..1" is empty`},
		{good + "gaps: 1..4/0\n", "is empty"},
		{good + "gaps: [1,\n  x]\n", `s.yaml:5: gaps: "x" is neither a number nor a range`},
		{good + "gaps: [1, 0..3]\n", "1 is given twice"},
		{good + "gaps: -1\n", "the numbers are from 0"},
		{good + "gaps: {a: 1}\n", "gaps: is not one value"},
		{good + "chunks: 64\n", "s.yaml:4: chunks:"},
		{good + "chunks: 0KiB\n", "write none"},
		{good + "parallel: 5000\n", "the numbers are from 1 to 4096"},
		{good + "headroom: [true]\n", "headroom: is not one value"},
		{good + "headroom: much\n", `headroom: "much" is neither`},
		{good + "predicted: maybe\n", `"maybe" is neither true nor false`},
		{good + "policies: [lfo:4]\n", "s.yaml:4: policies: policy:"},
		{good + "predictor_rank: [1]\n", "predictor_rank: is not one value"},
		{good + "gaps: &a 1\nparallel: *a\n", "anchors and aliases"},
		{"trace: {like: opt-6.7b, tokens: 8, file: a}\nwindows: 1\ndevices: [m1-max]\n",
			"a file and a synthetic trace"},
		{"trace: {like: opt-6.7b}\nwindows: 1\ndevices: [m1-max]\n", "trace: tokens: is missing"},
		{"trace: {like: opt-6.7b, tokns: 8}\nwindows: 1\ndevices: [m1-max]\n",
			`s.yaml:1: trace: unknown key "tokns"; did you mean "tokens"?`},
		{"trace: {like: opt-6.7b, tokens: 8, active: 2}\nwindows: 1\ndevices: [m1-max]\n",
			"is not a share"},
		{"windows: 1\ndevices: [m1-max]\n", "trace: is missing"},
		{good + "shares: 2\n", "shares: \"2\" is not between"},
		{good + "shares: [2%, 0]\n", "the shares are from 1e-06"},
		{good + "false_positives: 2%\n", "the predictor that it is generated with"},
		{"trace: {file: a}\nwindows: 1\ndevices: [m1-max]\nfalse_positives: 2%\n",
			"add predicted: true"},
		{"trace: {like: opt-6.7b, tokens: 8, active: 0.1}\nwindows: 1\ndevices: [m1-max]\n" +
			"shares: 2%\n", "give one of them"},
		{good + "batches: 0\n", "batches: 0: the numbers are from 1"},
		{good + "image: [a]\n", "image: is not one value"},
		{"trace: {like: opt-6.7b, tokens: 8, sequences: 2}\nbatches: 2\nwindows: 1\n" +
			"devices: [m1-max]\n", "give no sequences"},
		{"trace: {file: a}\nwindows: 1\n", "devices: is missing"},
		{"trace: {file: a}\ndevices: [m1-max]\n", "windows: is missing"},
		{good + "gaps: 0..1000\nparallel: 1..1000\n", "configurations; at most"},
		{strings.Repeat("#", maxScenario+1), "larger than"},
	} {
		_, err := ParseScenario("s.yaml", []byte(c.text))
		if !errors.Is(err, ErrScenario) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: error %v, want %q", c.text, err, c.want)
		}
	}
}

// What-ifs of a file multiply with all else.
func TestScenarioOfWhatIfs(t *testing.T) {
	s, err := ParseScenario("s.yaml", []byte("trace: {file: a}\nwindows: [1, 2]\n"+
		"devices: [m1-max]\npredicted: true\nshares: [2%, 0.05]\nfalse_negatives: [0, 5%, 10%]\n"+
		"batches: [1, 2]\n"))
	if err != nil {
		t.Fatal(err)
	}
	configs, err := configurations(s)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Variant]int{}
	for _, c := range configs {
		seen[c.Variant]++
	}
	last := Variant{WhatIf: whatif.Options{Share: 0.05, FalseNegatives: 0.1, Predictor: true},
		Batch: 2}
	if len(configs) != 24 || s.Count() != 24 || len(seen) != 12 || seen[last] != 2 ||
		configs[23].Variant != last {
		t.Errorf("%d configurations, counted as %d, of variants %v; the last is %+v", len(configs),
			s.Count(), seen, configs[23].Variant)
	}
}

// Every key is described, and none without words.
func TestDescribeKnowsEveryKey(t *testing.T) {
	text := Describe()
	for line := range strings.Lines(fullScenario +
		"shares:\nfalse_negatives:\nfalse_positives:\n") {
		if name, _, ok := strings.Cut(line, ":"); ok && !strings.Contains(text, "  "+name+" ") {
			t.Errorf("key %s is not described", name)
		}
	}
	for line := range strings.Lines(text) {
		if len(strings.Fields(line)) < 3 {
			t.Errorf("%q says too little", line)
		}
	}
}

// The examples are scenarios, and the one that is called thousand has as many.
func TestExampleScenarios(t *testing.T) {
	files, err := filepath.Glob("../../examples/scenarios/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ParseScenario(name, data)
		if err != nil {
			t.Error(err)
			continue
		}
		configs, err := configurations(s)
		if err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(name, "thousand.yaml") && len(configs) < 1000 {
			t.Errorf("%s: %d configurations", name, len(configs))
		}
		trace, err := FromSynth(s.Trace.Options(true), s.MaxTokens)
		if err != nil {
			t.Fatal(err)
		}
		for i := range configs {
			if err := configs[i].Check(trace.Header()); err != nil {
				t.Errorf("%s: configuration %d: %v", name, i, err)
			}
		}
	}
}

func FuzzScenario(f *testing.F) {
	f.Add([]byte(fullScenario))
	f.Add([]byte("trace: {file: a}\nwindows: 1..4096\ndevices: [m1-max]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseScenario("fuzz.yaml", data)
		if err != nil {
			if !errors.Is(err, ErrScenario) {
				t.Errorf("error %v is of another kind", err)
			}
			return
		}
		if s.Count() > 10_000 {
			return
		}
		known := resolver()
		known.Device = func(string) (*devicemodels.Device, error) {
			return testDevice("servers",
				nil), nil
		}
		known.Engine = func(*devicemodels.Device, string) (string, error) { return "pread", nil }
		list, err := s.Configurations(known)
		if err != nil || list.Len() != s.Count() {
			t.Errorf("counted as %d: %v", s.Count(), err)
			return
		}
		first, last := list.At(0), list.At(list.Len()-1)
		if first.Device == nil || last.Device == nil {
			t.Errorf("from %+v to %+v", first, last)
		}
	})
}
