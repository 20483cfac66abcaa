package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/record/training"
)

// printLowRank prints what training, judging or importing low-rank predictors gives.
func printLowRank(w io.Writer, d *training.LowRankResult) error {
	kind, _ := d.Feature.Kind()
	names, from := "its own units", string(kind)
	if from == "" {
		from = "an input that the files do not name"
	}
	if d.Ahead {
		names, from = "the units of the next layer", "the layer's "+from
	}
	fmt.Fprintf(w, "%s: %s, %d layers of %d units\n", d.Predictor, d.Model, d.Layers, d.Units)
	fmt.Fprintf(w, "%s (%s inside, by %s): each layer names %s from %s, %d numbers\n", d.Kind,
		d.Inner, d.Origin, names, from, d.Width)
	if d.Trained > 0 {
		few := ""
		if d.Trained < training.FewTokens {
			few = ", which is little: some ten thousand make a good predictor"
		}
		fmt.Fprintf(w, "trained on %d tokens, %d more held out, of trace %.12s%s\n", d.Trained,
			d.HeldOut, d.TraceSHA256, few)
	}
	fmt.Fprintf(w, "%s in memory, %s for each token\n", document.IEC(d.Bytes),
		document.SI(float64(d.FLOPs), "FLOP"))
	for i := range d.Texts {
		if err := printLowRankText(w, &d.Texts[i]); err != nil {
			return err
		}
	}
	return nil
}

func printLowRankText(w io.Writer, t *training.LowRankText) error {
	fmt.Fprintf(w, "\n%s, %d tokens:\n\n", t.Text, t.Tokens)
	table := numbers("layer", "rank", "threshold", "active|%", "FN|%", "FP|%", "recall|%",
		"predicted/true", "lost magnitude|%", "weights|KiB", "kFLOP")
	add := func(name, rank, threshold string, r *training.LowRankRow) {
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
	_, err := fmt.Fprint(w, goalsText(t), speedText(t.Speed))
	return err
}

// goalsText says whether the goals are met.
func goalsText(t *training.LowRankText) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\ngoals (FN at most %s %%, FP at most %s %%)", percent(training.GoalFN),
		percent(training.GoalFP))
	if len(t.Missed) == 0 {
		return b.String() + ": met by every layer\n"
	}
	b.WriteString(" are missed by\n")
	for i, m := range t.Missed {
		same := func(o training.MissedGoal) bool { return o.What == m.What && o.Why == m.Why }
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

// printCentroids prints what training or judging centroids gives.
func printCentroids(w io.Writer, doc *training.CentroidResult) error {
	t := &doc.Training
	fmt.Fprintf(w, "%s: %s\n%s: for every layer behind the first one of %d active sets "+
		"of %d units, named from the %s of layer 0\n",
		doc.Predictor, doc.Model, doc.Kind, doc.Centroids, doc.KMax, doc.Feature)
	fmt.Fprintf(w, "trained on %d tokens, %d more held out, of trace %.12s; seed %d\n",
		t.Tokens, t.Held, doc.TraceSHA256, t.Seed)
	fmt.Fprintf(w, "%s in memory, %s for each token\n", document.IEC(doc.Bytes),
		document.SI(float64(doc.FLOPs), "FLOP"))
	for i := range doc.Texts {
		text := &doc.Texts[i]
		fmt.Fprintf(w, "\n%s, %d tokens; recall, precision and FP in %%:\n\n", text.Text,
			text.Report.Tokens)
		if err := text.Report.WriteText(w); err != nil {
			return err
		}
		fmt.Fprint(w, centroidRemarks(text, doc.KMax), speedText(text.Speed))
	}
	return nil
}

// centroidRemarks say which goals are missed, and why.
func centroidRemarks(t *training.CentroidText, kMax int) string {
	var b strings.Builder
	mean := &t.Report.Mean
	set := &mean.Sets[0]
	if recall, static := set.Predicted.Recall, set.Static.Recall; recall <= static {
		fmt.Fprintf(&b, "\nthe %d hottest units of each layer, which need no predictor, find "+
			"more: %s %% against %s %%", kMax, percent(static), percent(recall))
	}
	if missed := set.Predicted.Missed; missed > training.GoalFN {
		why := fmt.Sprintf("the nearest of the centroids would miss %s %% too: a larger "+
			"vocabulary or --k-max is needed", percent(set.Oracle.Missed))
		if set.Oracle.Missed <= training.GoalFN {
			why = "the vocabulary would do, but layer 0 does not tell which centroid is the nearest"
		}
		fmt.Fprintf(&b, "\nFN %s %%, above the goal of %s %%: %s", percent(missed),
			percent(training.GoalFN),
			why)
	}
	if extra := set.Predicted.Extra; extra > training.GoalFP {
		fmt.Fprintf(&b, "\nFP %s %%, above the goal of %s %%: a set has %d units whatever is "+
			"active, on average %s units", percent(extra), percent(training.GoalFP), kMax,
			document.Sig3(mean.Active))
	}
	if b.Len() == 0 {
		return ""
	}
	return b.String() + "\n"
}

// speedText says it in a line for each.
func speedText(s *training.Speed) string {
	if s == nil {
		return ""
	}
	when := map[string]string{"demand": "reads on demand",
		string(schedule.LookAhead): "the next layer prefetched",
		string(schedule.Token):     "the whole token prefetched"}[s.Schedule]
	var b strings.Builder
	line := func(how string, tokens int, named, actual float64) {
		fmt.Fprintf(&b, "%s, %d tokens, window %d, %s: %s tokens/s, %s with the true masks (%s "+
			"%%)\n",
			how, tokens, s.Window, when, document.Sig3(named), document.Sig3(actual),
			percent(named/actual))
	}
	b.WriteString("\n")
	if v := s.Sim; v != nil {
		line("simulated on "+v.Device, v.Tokens, v.Named, v.True)
	}
	if v := s.Measured; v != nil {
		line("measured here ("+v.Mode+")", v.Tokens, v.Named, v.True)
	}
	return b.String()
}
