package quality

import (
	"fmt"
	"strconv"

	"github.com/windrow-sim/windrow/internal/document"
)

// Document describes the study: the perplexity of the dense model, then the price of every share.
func (r *Result) Document() *document.Document {
	d := &document.Document{Name: "eval", Title: "windrow eval", Result: r}
	for i := range r.Rows {
		row := &r.Rows[i]
		if i == 0 {
			d.Headline = fmt.Sprintf("perplexity %s with all neurons", perplexity(row))
			continue
		}
		d.Headline += fmt.Sprintf("; %s %s (%s)", perplexity(row), row.change(&r.Rows[0]),
			row.Name())
	}
	d.Fact("model", "%s", r.Model)
	d.Fact("text", "%s, %d tokens predicted, context %d, stride %d", r.Text, r.Predicted,
		r.Context, r.Stride)
	d.Fact("device", "%s", r.Device)
	for i := range r.Rows {
		if p := &r.Rows[i]; p.Predictor != "" {
			d.Fact("predictor", "%s in memory; it misses %s %% of the active neurons, names %s %% "+
				"of the others, %s times as many as are active", document.IEC(p.PredictorBytes),
				document.Percent(*p.FalseNegatives), document.Percent(*p.FalsePositives),
				document.Sig3(*p.Ratio))
		}
	}
	d.Add("Quality against reads", fmt.Sprintf("Read is what a window of %d tokens reads per "+
		"token. Same token is the share of tokens where the most likely next token is that of "+
		"the dense model.", r.Window), *r.table())
	return d
}

// Name says which neurons a row computes.
func (r *Row) Name() string {
	switch {
	case r.Predictor != "":
		return "named by a " + r.Predictor + " predictor (lossy)"
	case r.Lossy:
		return "largest " + document.Percent(r.Share) + " % (lossy)"
	}
	return "all that are not zero"
}

// perplexity has more digits than other numbers: what a share costs shows in the third decimal.
func perplexity(r *Row) string { return strconv.FormatFloat(r.Perplexity, 'f', 3, 64) }

// change is the relative change of the perplexity.
func (r *Row) change(dense *Row) string {
	return fmt.Sprintf("%+.2f %%", 100*(r.Perplexity/dense.Perplexity-1))
}

// table has one row for each setting.
func (r *Result) table() *document.Table {
	number := document.Number
	t := document.NewTable(document.Text("neurons"), number("active", "%"),
		number("perplexity", ""), number("change", "%"), number("same token", "%"),
		number("read", "MB/token"))
	if r.Device != "" {
		t.Columns = append(t.Columns, number("simulated", "ms/token"), document.IntervalColumn,
			document.BasisColumn)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		cells := []string{row.Name(), document.Percent(row.Active), perplexity(row),
			fmt.Sprintf("%+.2f", 100*(row.Perplexity/r.Rows[0].Perplexity-1)),
			document.Percent(row.Agreement), document.Sig3(row.Bytes / 1e6)}
		if r.Device != "" {
			cells = append(cells, row.Estimate.Cells()...)
		}
		t.Add(cells...)
	}
	return t
}
