package adaptive

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
)

// No says why the answer is no: a budget that not even the shortest window fits into. It is empty
// where all budgets do.
func (r *Result) No() string {
	if r.Below == nil {
		return ""
	}
	return fmt.Sprintf("the budget of %s is below the floor of %s", document.IEC(r.Below.Budget),
		document.IEC(r.Below.Floor.Total))
}

// Document describes the strategies beside each other.
func (r *Result) Document() *document.Document {
	d := &document.Document{Name: "adaptive", Title: "windrow adaptive", Headline: r.headline(),
		Warnings: r.Warnings, Result: r}
	d.Fact("model", "%s", r.Model)
	d.Fact("device", "%s", r.Device)
	d.Fact("windows", "%d to %d tokens, hysteresis of %d", r.Min, r.Max, r.Calm)
	d.Fact("floor", "%s with the longest context", document.IEC(r.Floor.Total))
	if no := r.No(); no != "" {
		d.Verdict = &document.Verdict{Text: no, Class: "outside"}
		d.Add("Memory of the floor", "Give it more, or take fewer positions or a smaller model.",
			*r.Below.Floor.Table())
		return d
	}
	d.Add("The budget over time", "The oracle knows beforehand which window fits each budget.",
		*r.phaseTable())
	d.Add("Strategies", fmt.Sprintf("Fraction fills %s %% of the room. Static reserves the "+
		"fullest moment of every layer. Loads are those of the static window = 1.",
		document.Percent(r.Fraction)), *r.strategyTable())
	d.Add("Latencies", "SD is the standard deviation of the differences between consecutive "+
		"tokens. I/O within and host within are the intervals of the times of flash and host "+
		"that hold nine of ten results; those of percentiles are not known.", *r.latencyTable())
	d.Note("Speeds and latencies leave out the first %d tokens of each sequence.", r.Skip)
	for _, o := range r.Outcomes {
		for _, note := range o.Prediction.Notes {
			d.Note("%s", note)
		}
	}
	return d
}

func (r *Result) headline() string {
	if no := r.No(); no != "" {
		return "Does not fit: " + no + "."
	}
	text := ""
	for i := range r.Outcomes {
		switch o := &r.Outcomes[i]; o.Name {
		case Adaptive:
			text = o.Estimate.Text("tokens/s") + " with the adaptive window"
		case Static:
			text += "; with the static one " + o.Estimate.Text("tokens/s")
		}
	}
	return text
}

func (r *Result) phaseTable() *document.Table {
	number := document.Number
	from := number("from token", "")
	if r.Budget.ByTime {
		from = number("from", "s")
	}
	t := document.NewTable(from, number("budget", "MiB"), number("floor", "MiB"),
		number("tokens", ""), number("oracle's window", ""))
	mib := func(b units.Bytes) string { return document.Sig3(float64(b) / float64(units.MiB)) }
	for _, p := range r.Phases {
		at, floor := document.Count(p.From), "n/a"
		if r.Budget.ByTime {
			at = document.Sig3(units.Nanos(p.From).Seconds())
		}
		if p.Tokens > 0 {
			floor = mib(p.Floor)
		}
		t.Add(at, mib(p.Budget), floor, document.Count(p.Tokens), document.Count(p.Oracle))
	}
	return t
}

func (r *Result) strategyTable() *document.Table {
	number := document.Number
	t := document.NewTable(document.Text("strategy"), number("speed", "tokens/s"),
		document.IntervalColumn, document.BasisColumn, number("mean window", ""),
		number("changes", ""), number("rows evicted early", ""), number("missed", "%"),
		number("loads/static", ""), number("above budget", "tokens"))
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		cells := append([]string{o.Name}, o.Estimate.Cells()...)
		t.Add(append(cells, document.Sig3(o.Window), document.Count(o.Changes),
			document.Count(o.EvictedEarly), document.Percent(o.Misses),
			document.Sig3(o.OverStatic), document.Count(o.Above))...)
	}
	return t
}

func (r *Result) latencyTable() *document.Table {
	number := document.Number
	t := document.NewTable(document.Text("strategy"), number("P50", "ms"), number("P95", "ms"),
		number("P99", "ms"), number("P99/P50", ""), number("SD", "ms"),
		number("I/O within", "%"), number("host within", "%"))
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		p := o.Prediction
		t.Add(o.Name, p.Millis(o.P50), p.Millis(o.P95), p.Millis(o.P99),
			document.Sig3(o.Jitter), document.Millis(o.Deviation), p.Within(p.IOPercent),
			p.Within(p.HostPercent))
	}
	return t
}
