package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
)

// What a predictor is asked for: the false negatives of LLM in a flash (appendix B.1: 5 %), and
// false positives a little above its 7 %.
const (
	goalFN = 0.05
	goalFP = predictor.DefaultGoal
)

// fewTokens is where more text still improves a predictor of the shipped model clearly.
const fewTokens = 20000

// trainResult is what training, judging or importing low-rank predictors gives.
type trainResult struct {
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
	Texts    []trainText         `json:"texts"`

	layers, units, width int
}

// trainText is how well one text is predicted.
type trainText struct {
	Text   string      `json:"text"`
	Tokens int64       `json:"tokens"`
	Layers []trainRow  `json:"layers"`
	Total  trainRow    `json:"total"` // over the units and tokens of all layers
	Missed []trainMiss `json:"missed_goals"`
	Speed  *trainSpeed `json:"speed,omitempty"`
}

// trainRow is a layer, the one whose units are named.
type trainRow struct {
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

// trainMiss is a layer that misses a goal.
type trainMiss struct {
	Layer int     `json:"layer"`
	What  string  `json:"what"` // FN or FP
	Share float64 `json:"share"`
	Goal  float64 `json:"goal"`
	Why   string  `json:"why"`
}

func newTrainResult(c *cli.Context, p *predictor.Predictor, model string) *trainResult {
	path := c.String("out")
	if path == "" {
		path = c.String("evaluate")
	}
	f := p.Facts()
	_, ahead := f.Feature.Kind()
	doc := &trainResult{
		Predictor: path, Kind: lowRank, Inner: p.Kind(), Origin: f.Origin, Feature: f.Feature,
		Ahead: ahead, Model: model,
		ModelSHA256: f.Model, TraceSHA256: f.Trace, Bytes: p.Bytes(), Texts: []trainText{},
		layers: p.Layers(), units: p.Units(), width: p.Width(),
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
func (d *trainResult) add(name string, p *predictor.Predictor, scores []predictor.Score) {
	const float16 = 2
	text := trainText{Text: name, Missed: []trainMiss{}}
	var all predictor.Score
	for l, s := range scores {
		if d.Ahead {
			if l == len(scores)-1 {
				break
			}
			s.Layer = l + 1
		}
		row := newTrainRow(s)
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
	text.Total = newTrainRow(all)
	text.Total.Weights, text.Total.FLOPs = weights, flops
	d.Texts = append(d.Texts, text)
}

func newTrainRow(s predictor.Score) trainRow {
	return trainRow{
		Score: s, FalseNegative: s.FalseNegatives(), FalsePositive: s.FalsePositives(),
		Recalled: s.Recall(), Ratio: s.OverPrediction(), LostShare: s.LostMagnitude(),
	}
}

// missed says which goals a layer misses, and why as far as the numbers tell.
func (d *trainResult) missed(row *trainRow) (list []trainMiss) {
	if fn := row.FalseNegative; fn > goalFN {
		list = append(list, trainMiss{row.Layer, "FN", fn, goalFN, d.whyFN()})
	}
	if fp := row.FalsePositive; fp > goalFP {
		list = append(list, trainMiss{row.Layer, "FP", fp, goalFP, d.whyFP(row.Rank)})
	}
	return list
}

func (d *trainResult) whyFN() string {
	switch set := d.Settings; {
	case set == nil:
		return "the threshold is its maker's"
	case set.Cost != nil && set.TargetFN == 0:
		return "the threshold weighs costs and aims at no share"
	case set.TargetFN > goalFN:
		return fmt.Sprintf("the threshold was to allow %s %%", percent(set.TargetFN))
	}
	return "the threshold was chosen on other text; a smaller --target-fn leaves more room"
}

func (d *trainResult) whyFP(rank int) string {
	switch set := d.Settings; {
	case rank == 0:
		return "it has no predictor, so that all units are read"
	case set == nil:
		return "the threshold is its maker's"
	case rank == min(d.units, d.width):
		return fmt.Sprintf("rank %d is the largest there is; more training (text or epochs), or "+
			"a larger --target-fn, would have to help", rank)
	case set.GoalFP == 0:
		return fmt.Sprintf("rank %d was asked for; --goal-fp raises it where needed", rank)
	}
	return fmt.Sprintf("rank %d was enough for the held-out text; a smaller --goal-fp, or more "+
		"training, may help", rank)
}

func (e *env) putTraining(c *cli.Context, doc *trainResult) error {
	if c.Bool("json") {
		return printJSON(e.stdout, doc)
	}
	return doc.print(e.stdout)
}

func (d *trainResult) print(w io.Writer) error {
	kind, _ := d.Feature.Kind()
	names, from := "its own units", string(kind)
	if from == "" {
		from = "an input that the files do not name"
	}
	if d.Ahead {
		names, from = "the units of the next layer", "the layer's "+from
	}
	fmt.Fprintf(w, "%s: %s, %d layers of %d units\n", d.Predictor, d.Model, d.layers, d.units)
	fmt.Fprintf(w, "%s (%s inside, by %s): each layer names %s from %s, %d numbers\n", d.Kind,
		d.Inner, d.Origin, names, from, d.width)
	if d.Trained > 0 {
		few := ""
		if d.Trained < fewTokens {
			few = ", which is little: some ten thousand make a good predictor"
		}
		fmt.Fprintf(w, "trained on %d tokens, %d more held out, of trace %.12s%s\n", d.Trained,
			d.HeldOut, d.TraceSHA256, few)
	}
	fmt.Fprintf(w, "%s in memory, %s for each token\n", document.IEC(d.Bytes),
		document.SI(float64(d.FLOPs), "FLOP"))
	for i := range d.Texts {
		if err := d.Texts[i].print(w); err != nil {
			return err
		}
	}
	return nil
}

func (t *trainText) print(w io.Writer) error {
	fmt.Fprintf(w, "\n%s, %d tokens:\n\n", t.Text, t.Tokens)
	table := numbers("layer", "rank", "threshold", "active|%", "FN|%", "FP|%", "recall|%",
		"predicted/true", "lost magnitude|%", "weights|KiB", "kFLOP")
	add := func(name, rank, threshold string, r *trainRow) {
		lost := "-"
		if r.Magnitude > 0 {
			lost = percent(r.LostShare)
		}
		table.Add(name, rank, threshold, percent(r.ActiveShare()), percent(r.FalseNegative),
			percent(r.FalsePositive), percent(r.Recalled), document.Sig3(r.Ratio), lost,
			document.Sig3(float64(r.Weights)/float64(units.KiB)),
			document.Sig3(float64(r.FLOPs)/1e3))
	}
	for i := range t.Layers {
		r := &t.Layers[i]
		add(fmt.Sprint(r.Layer), fmt.Sprint(r.Rank), document.Sig3(r.Threshold), r)
	}
	add("all", "", "", &t.Total)
	if err := report.TableText(w, table); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, t.goals(), t.Speed.text())
	return err
}

// goals says whether they are met.
func (t *trainText) goals() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\ngoals (FN at most %s %%, FP at most %s %%)", percent(goalFN),
		percent(goalFP))
	if len(t.Missed) == 0 {
		return b.String() + ": met by every layer\n"
	}
	b.WriteString(" are missed by\n")
	for i, m := range t.Missed {
		same := func(o trainMiss) bool { return o.What == m.What && o.Why == m.Why }
		if slices.ContainsFunc(t.Missed[:i], same) {
			continue
		}
		var layers []string
		for _, o := range t.Missed[i:] {
			if same(o) {
				layers = append(layers, fmt.Sprintf("layer %d (%s %%)", o.Layer, percent(o.Share)))
			}
		}
		fmt.Fprintf(&b, "  %s of %s: %s\n", m.What, strings.Join(layers, ", "), m.Why)
	}
	return b.String()
}
