package whatif

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrOptions is wrapped by errors about Options that are invalid, for any trace or for this one.
var ErrOptions = errors.New("not a what-if that can be asked")

// Options of Apply. The zero value changes nothing. At most one of Share, LayerShare and Threshold
// is set. Predictor errors are applied after it. Shares are fractions of 1, of the units of a
// layer.
type Options struct {
	// Share is the wanted mean share of active units over all layers. The share of every layer is
	// multiplied by the same number.
	Share float64 `json:"share,omitempty" yaml:"share,omitempty"`
	// LayerShare is the wanted mean share of active units in each layer.
	LayerShare float64 `json:"layer_share,omitempty" yaml:"layer_share,omitempty"`
	// Threshold keeps the units whose |activation| is at least this value. It needs a trace with
	// magnitudes.
	Threshold float64 `json:"threshold,omitempty" yaml:"threshold,omitempty"`
	// FalseNegatives is the share of active units that the predictor misses.
	FalseNegatives float64 `json:"false_negatives,omitempty" yaml:"false_negatives,omitempty"`
	// FalsePositives is the share of inactive units that the predictor names.
	FalsePositives float64 `json:"false_positives,omitempty" yaml:"false_positives,omitempty"`
	// Predictor asks for predicted masks even if both rates are 0: a predictor without errors. A
	// rate above 0 implies it.
	Predictor bool `json:"predictor,omitempty" yaml:"predictor,omitempty"`
	// SmallFirst makes the predictor miss the smallest activations of a layer first, if the trace
	// has magnitudes.
	SmallFirst bool `json:"small_first,omitempty" yaml:"small_first,omitempty"`
	// Seed selects the random numbers. The same seed with another share or rate gives nested masks.
	Seed uint64 `json:"seed,omitempty" yaml:"seed,omitempty"`
}

// Keys of the text form.
const (
	keyShare, keyLayerShare, keyThreshold = "share", "layer-share", "threshold"
	keyMissed, keyFalse, keyPredictor     = "false-negatives", "false-positives", "predictor"
	keySmall, keySeed                     = "small-first", "seed"
)

// Parse reads the text form: keys and values, separated by commas, such as
// "share=5%,false-negatives=5%,seed=7", or a share alone, "5%". The keys are share, layer-share,
// threshold, false-negatives, false-positives and seed, and without a value predictor and
// small-first. Shares are percentages ("5%") or fractions ("0.05"). An empty text gives the zero
// Options.
func Parse(text string) (Options, error) {
	var o Options
	if strings.TrimSpace(text) == "" {
		return o, nil
	}
	seen := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		key, value, has := strings.Cut(strings.TrimSpace(part), "=")
		if key = strings.TrimSpace(key); key != keyPredictor && key != keySmall && !has {
			key, value = keyShare, key
		}
		if seen[key] {
			return Options{}, fmt.Errorf("whatif: %q: %s is there twice: %w", text, key, ErrOptions)
		}
		seen[key] = true
		if err := o.set(key, value); err != nil {
			return Options{}, fmt.Errorf("whatif: %q: %w: %w", text, err, ErrOptions)
		}
	}
	return o, o.Check()
}

// set sets one key of the text form.
func (o *Options) set(key, value string) (err error) {
	switch key {
	case keyShare:
		o.Share, err = aboveZero(value)
	case keyLayerShare:
		o.LayerShare, err = aboveZero(value)
	case keyThreshold:
		o.Threshold, err = strconv.ParseFloat(value, 64)
	case keyMissed:
		o.FalseNegatives, err = ParseShare(value)
	case keyFalse:
		o.FalsePositives, err = ParseShare(value)
	case keySeed:
		o.Seed, err = strconv.ParseUint(value, 10, 64)
	case keyPredictor, keySmall:
		if value != "" {
			return fmt.Errorf("%s takes no value", key)
		}
		o.Predictor = o.Predictor || key == keyPredictor
		o.SmallFirst = o.SmallFirst || key == keySmall
	default:
		return fmt.Errorf("unknown key %q; the keys are share, layer-share, threshold, "+
			"false-negatives, false-positives, predictor, small-first, seed", key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// aboveZero reads a share of active units. 0 is refused: it would mean that no share was given.
func aboveZero(text string) (float64, error) {
	v, err := ParseShare(text)
	if err == nil && v == 0 {
		return 0, fmt.Errorf("%q: a share of active units is above 0", text)
	}
	return v, err
}

// ParseShare reads a share, "5%" or "0.05".
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a share; write 5%% or 0.05", text)
	}
	if percent {
		v /= 100
	}
	if !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is not between 0 and 100 %%; write 5%% or 0.05", text)
	}
	return v, nil
}

// String returns the text form that Parse reads, "" for the zero Options.
func (o Options) String() string {
	var parts []string
	number := func(key string, v float64) {
		if v != 0 {
			parts = append(parts, key+"="+strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	number(keyShare, o.Share)
	number(keyLayerShare, o.LayerShare)
	number(keyThreshold, o.Threshold)
	number(keyMissed, o.FalseNegatives)
	number(keyFalse, o.FalsePositives)
	if o.Predictor {
		parts = append(parts, keyPredictor)
	}
	if o.SmallFirst {
		parts = append(parts, keySmall)
	}
	if o.Seed != 0 {
		parts = append(parts, keySeed+"="+strconv.FormatUint(o.Seed, 10))
	}
	return strings.Join(parts, ",")
}

// Predicts reports whether Apply makes predicted masks.
func (o Options) Predicts() bool {
	return o.Predictor || o.FalseNegatives > 0 ||
		o.FalsePositives > 0
}

// Check refuses options that no trace can satisfy.
func (o Options) Check() error {
	set := 0
	for _, f := range []struct {
		key string
		v   float64
	}{{keyShare, o.Share}, {keyLayerShare, o.LayerShare}, {keyMissed, o.FalseNegatives},
		{keyFalse, o.FalsePositives}} {
		if !(f.v >= 0 && f.v <= 1) {
			return fmt.Errorf("whatif: %s of %g: a share is 0 to 1: %w", f.key, f.v, ErrOptions)
		}
	}
	if !(o.Threshold >= 0) || math.IsInf(o.Threshold, 0) {
		return fmt.Errorf("whatif: threshold of %g: it must be 0 or more: %w", o.Threshold,
			ErrOptions)
	}
	for _, v := range []float64{o.Share, o.LayerShare, o.Threshold} {
		if v > 0 {
			set++
		}
	}
	if set > 1 {
		return fmt.Errorf("whatif: %s: share, layer-share and threshold exclude each other: %w", o,
			ErrOptions)
	}
	if o.SmallFirst && o.FalseNegatives == 0 {
		return fmt.Errorf("whatif: %s: small-first says which units are missed, but "+
			"false-negatives is 0: %w", o, ErrOptions)
	}
	return nil
}
