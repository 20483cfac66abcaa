package training

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
)

// Document describes the predictor and how well it predicts.
func (r *Result) Document() *document.Document {
	if r.LowRank != nil {
		return r.LowRank.Document()
	}
	return r.Centroid.Document()
}

// Document describes the predictor, then how well it predicts each text.
func (d *LowRankResult) Document() *document.Document {
	doc := &document.Document{Name: "train-low-rank", Title: "windrow train", Result: d,
		Headline: fmt.Sprintf("%s: %s, %d layers of %d units", d.Predictor, d.Model, d.Layers,
			d.Units)}
	if n := len(d.Texts); n > 0 {
		t := &d.Texts[n-1]
		doc.Headline = fmt.Sprintf("FN %s %%, FP %s %% on %s (%s: %s, %d layers of %d units)",
			document.Percent(t.Total.FalseNegative), document.Percent(t.Total.FalsePositive),
			t.Text, d.Predictor, d.Model, d.Layers, d.Units)
	}
	kind, _ := d.Feature.Kind()
	names, from := "its own units", string(kind)
	if from == "" {
		from = "an input that the files do not name"
	}
	if d.Ahead {
		names, from = "the units of the next layer", "the layer's "+from
	}
	doc.Fact("kind", "%s (%s inside, by %s): each layer names %s from %s, %d numbers", d.Kind,
		d.Inner, d.Origin, names, from, d.Width)
	if d.Trained > 0 {
		doc.Fact("trained on", "%d tokens, %d more held out, of trace %.12s", d.Trained,
			d.HeldOut, d.TraceSHA256)
		if d.Trained < FewTokens {
			doc.Note("%d tokens are little to train on: some ten thousand make a good predictor.",
				d.Trained)
		}
	}
	doc.Fact("cost", "%s in memory, %s for each token", document.IEC(d.Bytes),
		document.SI(float64(d.FLOPs), "FLOP"))
	for i := range d.Texts {
		t := &d.Texts[i]
		doc.Add(title(t.Text, int(t.Tokens)), t.goals(), *t.table())
	}
	speeds := newSpeedTable()
	for i := range d.Texts {
		speeds.add(d.Texts[i].Text, d.Texts[i].Speed)
	}
	speeds.into(doc)
	return doc
}

// title names a text above its table.
func title(text string, tokens int) string { return fmt.Sprintf("%s, %d tokens", text, tokens) }

// table has one row for each layer, and one for all.
func (t *LowRankText) table() *document.Table {
	number := document.Number
	table := document.NewTable(number("layer", ""), number("rank", ""), number("threshold", ""),
		number("active", "%"), number("FN", "%"), number("FP", "%"), number("recall", "%"),
		number("predicted/true", ""), number("lost magnitude", "%"), number("weights", "KiB"),
		number("work", "kFLOP"))
	add := func(name, rank, threshold string, r *LowRankRow) {
		lost := "n/a"
		if r.Magnitude > 0 {
			lost = document.Percent(r.LostShare)
		}
		table.Add(name, rank, threshold, document.Percent(r.ActiveShare()),
			document.Percent(r.FalseNegative), document.Percent(r.FalsePositive),
			document.Percent(r.Recalled), document.Sig3(r.Ratio), lost,
			document.Sig3(float64(r.Weights)/float64(units.KiB)),
			document.Sig3(float64(r.FLOPs)/1e3))
	}
	for i := range t.Layers {
		r := &t.Layers[i]
		add(document.Count(r.Layer), document.Count(r.Rank), document.Sig3(r.Threshold), r)
	}
	add("all", "", "", &t.Total)
	return table
}

// goals says whether the goals are met: a line for all, then one for each reason.
func (t *LowRankText) goals() string {
	text := fmt.Sprintf("Goals (FN at most %s %%, FP at most %s %%)", document.Percent(GoalFN),
		document.Percent(GoalFP))
	if len(t.Missed) == 0 {
		return text + ": met by every layer."
	}
	lines := []string{text + " are missed by"}
	for i, m := range t.Missed {
		same := func(o MissedGoal) bool { return o.What == m.What && o.Why == m.Why }
		if slices.ContainsFunc(t.Missed[:i], same) {
			continue
		}
		var layers []string
		for _, o := range t.Missed[i:] {
			if same(o) {
				layers = append(layers, fmt.Sprintf("layer %d (%s %%)", o.Layer,
					document.Percent(o.Share)))
			}
		}
		lines = append(lines, fmt.Sprintf("  %s of %s: %s", m.What, strings.Join(layers, ", "),
			m.Why))
	}
	return strings.Join(lines, "\n")
}

// Document describes the predictor, then how well it predicts each text.
func (d *CentroidResult) Document() *document.Document {
	t := &d.Training
	doc := &document.Document{Name: "train-centroid", Title: "windrow train", Result: d,
		Headline: fmt.Sprintf("%s: %s", d.Predictor, d.Model)}
	if n := len(d.Texts); n > 0 {
		q := &d.Texts[n-1].Report.Mean.Sets[0].Predicted
		doc.Headline = fmt.Sprintf("FN %s %%, FP %s %% on %s (%s: %s)",
			document.Percent(q.Missed), document.Percent(q.Extra), d.Texts[n-1].Text,
			d.Predictor, d.Model)
	}
	doc.Fact("kind", "%s: for every layer behind the first one of %d active sets of %d units, "+
		"named from the %s of layer 0", d.Kind, d.Centroids, d.KMax, d.Feature)
	doc.Fact("trained on", "%d tokens, %d more held out, of trace %.12s; seed %d", t.Tokens,
		t.Held, d.TraceSHA256, t.Seed)
	doc.Fact("cost", "%s in memory, %s for each token", document.IEC(d.Bytes),
		document.SI(float64(d.FLOPs), "FLOP"))
	for i := range d.Texts {
		text := &d.Texts[i]
		doc.Add(title(text.Text, text.Report.Tokens), text.remarks(d.KMax), *text.Report.Table())
	}
	speeds := newSpeedTable()
	for i := range d.Texts {
		speeds.add(d.Texts[i].Text, d.Texts[i].Speed)
	}
	speeds.into(doc)
	return doc
}

// remarks say which goals are missed, and why.
func (t *CentroidText) remarks(kMax int) string {
	var lines []string
	say := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf(format, args...))
	}
	mean := &t.Report.Mean
	set := &mean.Sets[0]
	if recall, static := set.Predicted.Recall, set.Static.Recall; recall <= static {
		say("The %d hottest units of each layer, which need no predictor, find more: %s %% "+
			"against %s %%.", kMax, document.Percent(static), document.Percent(recall))
	}
	if missed := set.Predicted.Missed; missed > GoalFN {
		why := fmt.Sprintf("the nearest of the centroids would miss %s %% too: a larger "+
			"vocabulary or a larger K_max is needed", document.Percent(set.Oracle.Missed))
		if set.Oracle.Missed <= GoalFN {
			why = "the vocabulary would do, but layer 0 does not tell which centroid is the nearest"
		}
		say("FN %s %%, above the goal of %s %%: %s.", document.Percent(missed),
			document.Percent(GoalFN), why)
	}
	if extra := set.Predicted.Extra; extra > GoalFP {
		say("FP %s %%, above the goal of %s %%: a set has %d units whatever is active, on "+
			"average %s units.", document.Percent(extra), document.Percent(GoalFP), kMax,
			document.Sig3(mean.Active))
	}
	return strings.Join(lines, "\n")
}

// speedTable holds the speeds of the texts, simulated and measured.
type speedTable struct{ document.Table }

func newSpeedTable() *speedTable {
	number := document.Number
	return &speedTable{*document.NewTable(document.Text("text"), document.Text("on"),
		number("tokens", ""), number("window", ""), document.Text("reads"),
		number("rate", "tokens/s"), document.IntervalColumn, document.BasisColumn,
		number("with true masks", "tokens/s"), document.IntervalOf("with true masks"),
		number("of it", "%"))}
}

// add appends the speeds of a text; nil has none.
func (t *speedTable) add(text string, s *Speed) {
	if s == nil {
		return
	}
	when := map[string]string{"demand": "on demand",
		string(schedule.LookAhead): "the next layer prefetched",
		string(schedule.Token):     "the whole token prefetched"}[s.Schedule]
	line := func(on string, tokens int, named, actual document.Estimate) {
		t.Add(text, on, document.Count(tokens), document.Count(s.Window), when, named.Cell(),
			interval(named), named.Basis, actual.Cell(), interval(actual),
			document.Percent(named.Value/actual.Value))
	}
	if v := s.Sim; v != nil {
		line("simulated on "+v.Device, v.Tokens, v.NamedEstimate, v.TrueEstimate)
	}
	if v := s.Measured; v != nil {
		line("measured here ("+v.Mode+")", v.Tokens, document.Estimate{Value: v.Named,
			Basis: runHere}, document.Estimate{Value: v.True, Basis: runHere})
	}
}

// runHere is the basis of a rate that is no prediction.
const runHere = "run here"

// interval leaves the cell of a rate that was measured here empty.
func interval(e document.Estimate) string {
	if e.Basis == runHere {
		return ""
	}
	return e.Interval()
}

// into adds the table to a document, unless it is empty.
func (t *speedTable) into(d *document.Document) {
	d.Add("Speed", "Rate is with what the predictor names, charged at its mean rank. The masks "+
		"of the last columns are the true ones, which are not known beforehand.", t.Table)
}
