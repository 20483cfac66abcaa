package whatif

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Options{
		"":                   {},
		"5%":                 {Share: 0.05},
		"0.05":               {Share: 0.05},
		"share=100%":         {Share: 1},
		"layer-share = 2.5%": {LayerShare: 0.025},
		"threshold=0.02, " +
			"false-negatives=5%,false-positives=0.03,small-first,seed=18446744073709551615": {
			Threshold: 0.02, FalseNegatives: 0.05, FalsePositives: 0.03, SmallFirst: true,
			Seed: math.MaxUint64},
		"3%,predictor": {Share: 0.03, Predictor: true},
	} {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"0%":                       "above 0",
		"layer-share=0":            "above 0",
		"120%":                     "not between 0 and 100 %",
		"-1%":                      "not between 0 and 100 %",
		"NaN":                      "not between 0 and 100 %",
		"much":                     `"much" is not a share; write 5% or 0.05`,
		"share=5%,share=6%":        "share is there twice",
		"5%,6%":                    "share is there twice",
		"shares=5%":                `unknown key "shares"; the keys are share,`,
		"threshold=-1":             "threshold of -1",
		"threshold=Inf":            "threshold of +Inf",
		"threshold=NaN":            "threshold of NaN",
		"threshold=x":              "threshold:",
		"seed=-1":                  "seed:",
		"share=5%,layer-share=5%":  "exclude each other",
		"share=5%,threshold=0.1":   "exclude each other",
		"small-first":              "false-negatives is 0",
		"predictor=yes":            "predictor takes no value",
		"false-negatives=5%,,seed": "is not a share",
	} {
		if got, err := Parse(text); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%q: want an error with %q, got %+v, %v", text, want, got, err)
		}
	}
	for _, o := range []Options{{FalseNegatives: -0.1}, {FalsePositives: 1.1},
		{LayerShare: math.NaN()}, {Share: math.Inf(1)}} {
		if err := o.Check(); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// FuzzParse: no text panics, and what is understood survives its own text form.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "5%", "threshold=0.02,false-negatives=5%,small-first",
		"share=1e-3,seed=7,predictor", "=", "share=,,%", "share=1e-400"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrOptions) {
				t.Fatalf("%q: error without a kind: %v", text, err)
			}
			return
		}
		if again, err := Parse(o.String()); err != nil || again != o {
			t.Fatalf("%q became %q, which is %+v, %v", text, o, again, err)
		}
	})
}
