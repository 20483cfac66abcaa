package predictor

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// Settings determine the result of a training: the same settings and samples make the same
// predictor. The zero value is usable, zero fields mean the defaults.
type Settings struct {
	// Ranks are the ranks of the layers: one for all, or one for each, where 0 leaves a layer
	// without predictor. None means that each layer gets the rank that GoalFP needs, from the
	// paper's 128 on, or from less for small models.
	Ranks []int `json:"ranks"`
	// GoalFP, if above 0, doubles the rank of a layer and trains it again as long as its share of
	// false positives on the held-out samples is larger and a larger rank is possible. Without
	// Ranks the default is DefaultGoal.
	GoalFP float64 `json:"goal_false_positives,omitempty"`
	// Kind is the function between the two matrices; default Linear, see the package's
	// documentation.
	Kind Kind `json:"kind"`
	// Feature names the features of the samples. It is recorded, not interpreted.
	Feature Feature `json:"feature"`

	Epochs int `json:"epochs"` // at most; default 20
	Batch  int `json:"batch"`  // samples in one step; default 64
	// at the start, falling to 0 as a cosine over all epochs; default 0.005
	LearningRate float64 `json:"learning_rate"`
	// per step and learning rate; default 0.1, negative = none
	WeightDecay float64 `json:"weight_decay"`
	// epochs without a better held-out loss before a layer stops; default 3
	Patience int `json:"patience"`
	// share of the samples kept from training; default 0.1
	HoldOut float64 `json:"hold_out"`
	Seed    uint64  `json:"seed"` // default rng.DefaultSeed

	// The thresholds: at most one of the two. Without either, Cost decides if there is one,
	// otherwise a target of DefaultTarget. largest share of false negatives on the held-out samples
	TargetFN float64 `json:"target_false_negatives,omitempty"`
	// probabilities: one for all layers, or one for each
	Thresholds []float64 `json:"thresholds,omitempty"`

	// Cost, if not nil, weighs the loss by the costs of errors instead of balancing it.
	Cost *Cost `json:"cost,omitempty"`
}

// Cost weighs the two errors against each other, in time.
type Cost struct {
	// FalsePositive is the time to read one unit's bundle from the device.
	FalsePositive units.Nanos `json:"false_positive_ns"`
	// FalseNegative is the time that keeping one unit of the layer's mean |activation| may cost. A
	// unit of another activation may cost in proportion.
	FalseNegative units.Nanos `json:"false_negative_ns"`
}

const (
	// DefaultTarget is the default target: the largest share of false negatives on the held-out
	// samples. It is below the 5 % that the paper reports for OPT-6.7B (appendix B.1), because
	// documents of another kind than the samples cost up to one point more.
	DefaultTarget = 0.04
	// DefaultGoal is the largest share of false positives that ranks are raised for. The paper
	// reports 7 % for OPT-6.7B.
	DefaultGoal = 0.10
)

// Options are a training's settings, and options that do not change the result.
type Options struct {
	Settings
	// Model and Trace identify the model and the recording of the samples (SHA-256, hex); the
	// predictor's file keeps them.
	Model, Trace string
	// Workers is the number of layers trained at a time; 0 = one for each core.
	Workers int
	// State is a folder for finished layers: an interrupted training continues from it. Empty =
	// none.
	State string
	// Progress, if not nil, is called after every epoch, by one goroutine at a time.
	Progress func(Progress)
}

// Progress is one finished epoch, or a layer taken from the state of an earlier run (Epoch 0).
type Progress struct {
	Layer, Rank   int
	Epoch, Epochs int     // of this rank
	Loss, Best    float64 // on the held-out samples; 1 is the mean weight of an element
	Finished      bool    // this layer
	Done, Layers  int     // layers finished, of all
}

// Ranks returns a rank for each layer: rank, and last for the final four, which have more active
// units. For OPT-6.7B the paper took 128 and 1024 (appendix C.1).
func Ranks(layers, rank, last int) []int {
	const lastLayers = 4
	ranks := make([]int, layers)
	for l := range ranks {
		ranks[l] = rank
		if l >= layers-lastLayers {
			ranks[l] = last
		}
	}
	return ranks
}

// StartRank is the first rank of a layer without a given one: the paper's 128, or an eighth of a
// feature too short for that. The goal then raises it where the layer needs more, as the paper does
// by hand.
func StartRank(s Samples) int {
	const paperRank, share = 128, 8
	return min(paperRank, max(1, s.Width()/share), s.Units())
}

// resolve fills in the defaults and checks everything.
func (o *Options) resolve(s Samples) error {
	if err := checkShape(s.Layers(), s.Width(), s.Units()); err != nil {
		return err
	}
	set := func(v *int, standard int) {
		if *v == 0 {
			*v = standard
		}
	}
	set(&o.Epochs, 20)
	set(&o.Batch, 64)
	set(&o.Patience, 3)
	set(&o.Workers, runtime.GOMAXPROCS(0))
	for _, c := range []struct {
		v        *float64
		standard float64
	}{{&o.LearningRate, 0.005}, {&o.WeightDecay, 0.1}, {&o.HoldOut, 0.1}} {
		if *c.v == 0 {
			*c.v = c.standard
		}
	}
	o.WeightDecay = max(o.WeightDecay, 0)
	if o.Kind == "" {
		o.Kind = Linear
	}
	if o.Seed == 0 {
		o.Seed = rng.DefaultSeed
	}
	switch len(o.Ranks) {
	case 0:
		o.Ranks = Ranks(s.Layers(), StartRank(s), StartRank(s))
		if o.GoalFP == 0 {
			o.GoalFP = DefaultGoal
		}
	case 1:
		o.Ranks = Ranks(s.Layers(), o.Ranks[0], o.Ranks[0])
	}
	if o.TargetFN == 0 && len(o.Thresholds) == 0 && o.Cost == nil {
		o.TargetFN = DefaultTarget
	}
	return o.check(s)
}

// largestRank returns the rank beyond which two matrices express no more than one.
func largestRank(s Samples) int { return min(s.Width(), s.Units()) }

// check refuses options that cannot be trained.
func (o *Options) check(s Samples) error {
	const mostEpochs, mostBatch, mostWorkers = 10000, 1 << 16, 1024
	switch {
	case len(o.Ranks) != s.Layers():
		return fmt.Errorf("predictor: %d ranks for %d layers: give one, or one for each layer",
			len(o.Ranks), s.Layers())
	case o.Kind != ReLU && o.Kind != Linear:
		return fmt.Errorf("predictor: kind %q: it is %q or %q", o.Kind, ReLU, Linear)
	case o.Epochs < 1 || o.Epochs > mostEpochs, o.Batch < 1 || o.Batch > mostBatch, o.Patience < 1,
		o.Workers < 1 || o.Workers > mostWorkers:
		return refusal.Config("predictor: %d epochs of batches of %d, patience %d, %d workers: "+
			"epochs are 1 to %d, a batch 1 to %d, patience at least 1, workers at most %d",
			o.Epochs, o.Batch, o.Patience, o.Workers, mostEpochs, mostBatch, mostWorkers)
	case !(o.LearningRate > 0) || o.LearningRate > 1, !(o.WeightDecay <= 1):
		return fmt.Errorf("predictor: learning rate %g, weight decay %g: both are at most 1, "+
			"the rate above 0", o.LearningRate, o.WeightDecay)
	case !(o.HoldOut > 0 && o.HoldOut < 1):
		return fmt.Errorf("predictor: %g of the samples held out: the share is between 0 and 1, "+
			"exclusive", o.HoldOut)
	case o.TargetFN != 0 && len(o.Thresholds) != 0:
		return errors.New("predictor: both thresholds and a target for false negatives: give " +
			"one of the two")
	case !(o.TargetFN >= 0 && o.TargetFN < 1):
		return fmt.Errorf("predictor: a target of %g false negatives: it is a share, at least 0 "+
			"and below 1", o.TargetFN)
	case !(o.GoalFP >= 0 && o.GoalFP < 1):
		return fmt.Errorf("predictor: a goal of %g false positives: it is a share, at least 0 "+
			"and below 1", o.GoalFP)
	case len(o.Thresholds) > 1 && len(o.Thresholds) != s.Layers():
		return fmt.Errorf("predictor: %d thresholds for %d layers: give one, or one for each layer",
			len(o.Thresholds), s.Layers())
	}
	for l, r := range o.Ranks {
		if most := largestRank(s); r < 0 || r > most {
			return fmt.Errorf("predictor: layer %d: rank %d: it must be 0 to %d, the smaller of "+
				"feature and units", l, r, most)
		}
	}
	for _, t := range o.Thresholds {
		if err := checkThreshold(t); err != nil {
			return err
		}
	}
	return o.Cost.check(s)
}

func (c *Cost) check(s Samples) error {
	if c == nil {
		return nil
	}
	if c.FalsePositive <= 0 || c.FalseNegative <= 0 {
		return fmt.Errorf("predictor: costs of %v for a false positive and %v for a false "+
			"negative: both must be above 0", c.FalsePositive, c.FalseNegative)
	}
	if !s.HasMagnitudes() {
		return errors.New("predictor: costs weigh a false negative by its activation, and the " +
			"samples have no magnitudes; record a trace with magnitudes")
	}
	return nil
}

// weights returns the loss's weights for a layer.
func (o *Options) weights(st *survey) weights {
	if o.Cost == nil || st.meanMagnitude == 0 {
		return balanced(st.share)
	}
	fn, fp := float64(o.Cost.FalseNegative), float64(o.Cost.FalsePositive)
	mean := st.share*fn + (1-st.share)*fp
	return weights{active: float32(fn / mean / st.meanMagnitude), inactive: float32(fp / mean),
		byMagnitude: true}
}

// rate is the learning rate of a step: a few steps of warming up, then a cosine down to 0.
func (o *Options) rate(step, steps int) float64 {
	const warm = 50
	rate := o.LearningRate * 0.5 * (1 + math.Cos(math.Pi*float64(step)/float64(steps)))
	return rate * min(1, float64(step+1)/min(warm, float64(steps)/2+1))
}

// encode writes settings as JSON, for files.
func (s *Settings) encode() (string, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("predictor: settings: %w", err)
	}
	return string(data), nil
}
