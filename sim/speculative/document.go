package speculative

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/document"
)

// Document describes what drafting gains, by the number of drafted tokens.
func (r *Result) Document() *document.Document {
	d := &document.Document{Name: "speculate", Title: "windrow speculate", Headline: r.headline(),
		Warnings: r.Warnings, Result: r}
	how := "mean " + document.Sig3(r.Acceptance)
	if r.Drawn {
		how = fmt.Sprintf("%s, drawn with seed %d", document.Sig3(r.Acceptance), r.Seed)
	}
	d.Fact("model", "%s", r.Model)
	d.Fact("device", "%s", r.Device)
	d.Fact("window", "%d tokens", r.Window)
	d.Fact("acceptance", "%s", how)
	d.Fact("drafting", "%s for a token", document.Duration(r.DraftTime))
	rows := append([]Row{r.Plain}, r.Rows...)
	if last := rows[len(rows)-1].Draft; r.Asked.Draft > last {
		rows = append(rows, r.Asked)
	}
	d.Add("By the number λ of drafted tokens", "Speed-ups and break-even acceptances compare two "+
		"predictions; their intervals are not known. Break-even is the mean acceptance α at which "+
		"speculation is as fast as none.", *speedTable(rows))
	d.Add("Where the time of a token goes", "I/O within and host within are the intervals of the "+
		"times of flash and host that hold nine of ten results. The time of drafting is given.",
		*partsTable(rows))
	d.Note("Compute is charged once per verification: a bound from below where arithmetic " +
		"limits. " +
		"The memory of the draft model is not counted.")
	d.Note("Without verifications that begin in the first %d tokens of a sequence.", r.Skip)
	for i := range rows {
		for _, note := range rows[i].Prediction.Notes {
			d.Note("%s", note)
		}
	}
	return d
}

func (r *Result) headline() string {
	best := "no speculation"
	if r.Best > 0 {
		best = fmt.Sprintf("%d drafted tokens", r.Best)
	}
	return fmt.Sprintf("%s with %d drafted tokens, %s times as fast as without; fastest: %s",
		r.Asked.TokensPerS.Text("tokens/s"), r.Asked.Draft, document.Sig3(r.Asked.Speedup), best)
}

func speedTable(rows []Row) *document.Table {
	number := document.Number
	t := document.NewTable(number("λ", ""), number("speed", "tokens/s"),
		document.IntervalOf("speed"), number("token", "ms"), document.IntervalOf("token"),
		document.BasisColumn, number("speed-up", ""), number("break-even α", ""))
	for i := range rows {
		row := &rows[i]
		even := "never"
		switch {
		case row.Draft == 0:
			even = ""
		case row.BreakEven != nil:
			even = document.Sig3(*row.BreakEven)
		}
		t.Add(document.Count(row.Draft), row.TokensPerS.Cell(), row.TokensPerS.Interval(),
			row.Estimate.Cell(), row.Estimate.Interval(), string(row.Basis),
			document.Sig3(row.Speedup), even)
	}
	return t
}

func partsTable(rows []Row) *document.Table {
	number := document.Number
	t := document.NewTable(number("λ", ""), number("verifications", ""),
		number("tokens/verification", ""), number("window ends at", ""), number("union", "%"),
		number("read", "MB/token"), number("I/O", "ms"), number("copies", "ms"),
		number("compute", "ms"), number("drafting", "ms"), number("I/O within", "%"),
		number("host within", "%"))
	for i := range rows {
		row := &rows[i]
		p := row.Prediction
		t.Add(document.Count(row.Draft), document.Count(row.Verifications),
			document.Sig3(row.Tokens), document.Count(row.Last), document.Percent(row.Union),
			document.Sig3(row.Bytes/1e6), p.Millis(row.IO), p.Millis(row.Memory),
			p.Millis(row.Compute), document.Millis(row.Drafting), p.Within(p.IOPercent),
			p.Within(p.HostPercent))
	}
	return t
}
