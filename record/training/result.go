package training

import (
	"encoding/json"
	"fmt"

	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
)

// The goals of a predictor: the false negatives of LLM in a flash (appendix B.1: 5 %), and
// false positives a little above its 7 %.
const (
	GoalFN = 0.05
	GoalFP = predictor.DefaultGoal
)

// FewTokens is where more text still improves a predictor of the shipped model clearly.
const FewTokens = 20000

// LowRankResult is what training, judging or importing low-rank predictors gives.
type LowRankResult struct {
	Predictor   string            `json:"predictor"`
	Kind        string            `json:"kind"`
	Inner       predictor.Kind    `json:"inner"` // between the two matrices
	Origin      string            `json:"origin"`
	Feature     predictor.Feature `json:"feature"`
	Ahead       bool              `json:"ahead"`
	Model       string            `json:"model"`
	ModelSHA256 string            `json:"model_sha256"`
	TraceSHA256 string            `json:"trace_sha256"` // that it was trained on
	// of the training; nil for an import
	Settings *predictor.Settings `json:"settings,omitempty"`
	Trained  int                 `json:"trained_tokens,omitempty"`
	HeldOut  int                 `json:"held_out_tokens,omitempty"`
	Bytes    units.Bytes         `json:"bytes"`
	FLOPs    int64               `json:"flops_per_token"`
	Texts    []LowRankText       `json:"texts"`

	// Shape of the model: layers, units of a layer, numbers of a feature.
	Layers, Units, Width int `json:"-"`
}

// LowRankText is how well one text is predicted.
type LowRankText struct {
	Text   string       `json:"text"`
	Tokens int64        `json:"tokens"`
	Layers []LowRankRow `json:"layers"`
	Total  LowRankRow   `json:"total"` // over the units and tokens of all layers
	Missed []MissedGoal `json:"missed_goals"`
	Speed  *Speed       `json:"speed,omitempty"`
}

// LowRankRow is a layer, the one whose units are named.
type LowRankRow struct {
	predictor.Score
	Rank          int         `json:"rank"`
	Threshold     float64     `json:"threshold"`
	FalseNegative float64     `json:"false_negative_share"`
	FalsePositive float64     `json:"false_positive_share"`
	Recalled      float64     `json:"recall"`
	Ratio         float64     `json:"predicted_per_active"`
	LostShare     float64     `json:"lost_magnitude_share"` // 0 without magnitudes
	Weights       units.Bytes `json:"weight_bytes"`         // without biases
	FLOPs         int64       `json:"flops"`
}

// MissedGoal is a layer that misses a goal.
type MissedGoal struct {
	Layer int     `json:"layer"`
	What  string  `json:"what"` // FN or FP
	Share float64 `json:"share"`
	Goal  float64 `json:"goal"`
	Why   string  `json:"why"`
}

func newLowRankResult(path string, p *predictor.Predictor, model string) *LowRankResult {
	f := p.Facts()
	_, ahead := f.Feature.Kind()
	doc := &LowRankResult{
		Predictor: path, Kind: LowRank, Inner: p.Kind(), Origin: f.Origin, Feature: f.Feature,
		Ahead: ahead, Model: model,
		ModelSHA256: f.Model, TraceSHA256: f.Trace, Bytes: p.Bytes(), Texts: []LowRankText{},
		Layers: p.Layers(), Units: p.Units(), Width: p.Width(),
	}
	if f.Settings != "" {
		var set predictor.Settings
		if json.Unmarshal([]byte(f.Settings), &set) == nil { // else it says as little as none
			doc.Settings = &set
		}
	}
	for l := range p.Layers() {
		doc.FLOPs += p.FLOPs(l)
	}
	return doc
}

// add scores a text. Of predictors that look ahead, the last entry names nothing and is left out.
func (d *LowRankResult) add(name string, p *predictor.Predictor, scores []predictor.Score) {
	const float16 = 2
	text := LowRankText{Text: name, Missed: []MissedGoal{}}
	var all predictor.Score
	for l, s := range scores {
		if d.Ahead {
			if l == len(scores)-1 {
				break
			}
			s.Layer = l + 1
		}
		row := newLowRankRow(s)
		row.Rank, row.Threshold, row.FLOPs = p.Rank(l), p.Threshold(l), p.FLOPs(l)
		row.Weights = units.Bytes(float16 * row.Rank * (p.Width() + p.Units()))
		text.Layers = append(text.Layers, row)
		text.Tokens = s.Samples
		text.Missed = append(text.Missed, d.missed(&row)...)
		all.Samples, all.Elements, all.Active, all.Chosen = s.Samples, all.Elements+s.Elements,
			all.Active+s.Active, all.Chosen+s.Chosen
		all.Missed, all.Spurious, all.Magnitude, all.Lost = all.Missed+s.Missed,
			all.Spurious+s.Spurious, all.Magnitude+s.Magnitude, all.Lost+s.Lost
		text.Total.Weights += row.Weights
		text.Total.FLOPs += row.FLOPs
	}
	weights, flops := text.Total.Weights, text.Total.FLOPs
	text.Total = newLowRankRow(all)
	text.Total.Weights, text.Total.FLOPs = weights, flops
	d.Texts = append(d.Texts, text)
}

func newLowRankRow(s predictor.Score) LowRankRow {
	return LowRankRow{
		Score: s, FalseNegative: s.FalseNegatives(), FalsePositive: s.FalsePositives(),
		Recalled: s.Recall(), Ratio: s.OverPrediction(), LostShare: s.LostMagnitude(),
	}
}

// missed says which goals a layer misses, and why as far as the numbers tell.
func (d *LowRankResult) missed(row *LowRankRow) (list []MissedGoal) {
	if fn := row.FalseNegative; fn > GoalFN {
		list = append(list, MissedGoal{row.Layer, "FN", fn, GoalFN, d.whyFN()})
	}
	if fp := row.FalsePositive; fp > GoalFP {
		list = append(list, MissedGoal{row.Layer, "FP", fp, GoalFP, d.whyFP(row.Rank)})
	}
	return list
}

func (d *LowRankResult) whyFN() string {
	switch set := d.Settings; {
	case set == nil:
		return "the threshold is its maker's"
	case set.Cost != nil && set.TargetFN == 0:
		return "the threshold weighs costs and aims at no share"
	case set.TargetFN > GoalFN:
		return fmt.Sprintf("the threshold was to allow %s %%", document.Sig3(100*set.TargetFN))
	}
	return "the threshold was chosen on other text; a smaller target for FN leaves more room"
}

func (d *LowRankResult) whyFP(rank int) string {
	switch set := d.Settings; {
	case rank == 0:
		return "it has no predictor, so that all units are read"
	case set == nil:
		return "the threshold is its maker's"
	case rank == min(d.Units, d.Width):
		return fmt.Sprintf("rank %d is the largest there is; more training (text or epochs), or "+
			"a larger target for FN, would have to help", rank)
	case set.GoalFP == 0:
		return fmt.Sprintf("rank %d was asked for; a goal for FP raises it where needed", rank)
	}
	return fmt.Sprintf("rank %d was enough for the held-out text; a smaller goal for FP, or more "+
		"training, may help", rank)
}
