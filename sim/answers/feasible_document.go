package answers

import (
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/internal/document"
)

// No says that no class of runtimes runs the model; it is empty where one does.
func (a *Feasibility) No() string {
	for i := range a.Rows {
		if a.Rows[i].Verdict.Runs() {
			return ""
		}
	}
	return fmt.Sprintf("no class of runtimes runs %s in %s", a.Model.Name,
		document.IEC(a.Machine.Memory))
}

// Document describes the verdicts and, with a device, the bounds on speed.
func (a *Feasibility) Document() *document.Document {
	m := &a.Model
	d := &document.Document{Name: "feasible", Title: "windrow feasible", Headline: a.headline(),
		Result: a}
	if no := a.No(); no != "" {
		d.Verdict = &document.Verdict{Text: no, Class: "outside"}
	}
	where := "unified memory"
	if !a.Machine.Unified() {
		where = "memory, " + document.IEC(a.Machine.Accelerator) + " of the accelerator's own"
	}
	d.Fact("model", "%s, %s: %s of weights, %s of them FFN", m.Name, m.DType,
		document.IEC(m.Bytes), document.IEC(m.FFN))
	d.Fact("memory", "%s of %s", document.IEC(a.Machine.Memory), where)
	d.Fact("KV cache", "%s for %d positions, %d-bit", document.IEC(a.KV), a.Machine.Context,
		8*a.Machine.KVElement)
	if m.Needed > 0 {
		d.Fact("rows that a token needs", "%s %% of the FFN, %s %% new (%s)",
			document.Percent(m.Needed), document.Percent(m.Fresh), m.Origin)
	}
	note := ""
	if a.Device != "" {
		d.Fact("device", "%s, %s", a.Device, a.Machine.Engine)
		note = "Bounds are those of the flash and of the memory: nothing that runs reaches them. " +
			"The bound of worst reads is that of all pages of a mapped file, or of single rows; " +
			"the other one is that of reads of 1 MiB.\n"
	}
	var reasons []string
	for _, r := range a.Rows {
		reasons = append(reasons, r.Class+": "+r.Reason)
	}
	d.Add("Classes of runtimes", note+strings.Join(reasons, "\n"), *a.table())
	return d
}

// headline names the classes that run, and the highest bound.
func (a *Feasibility) headline() string {
	if no := a.No(); no != "" {
		return "Does not fit: " + no + "."
	}
	var runs []string
	most := 0.0
	for i := range a.Rows {
		if r := &a.Rows[i]; r.Verdict.Runs() {
			runs = append(runs, r.Class)
			most = max(most, r.RateMost)
		}
	}
	text := fmt.Sprintf("%d of %d classes of runtimes run %s in %s: %s", len(runs), len(a.Rows),
		a.Model.Name, document.IEC(a.Machine.Memory), strings.Join(runs, ", "))
	if most > 0 {
		text += "; " + bound(most).Text("tokens/s")
	}
	return text
}

// bound is a rate that nothing exceeds.
func bound(rate float64) document.Estimate {
	return document.Estimate{Value: rate, Basis: "bound", Bound: true, AtMost: true}
}

func (a *Feasibility) table() *document.Table {
	t := document.NewTable(document.Text("class"), document.Text("such as"),
		document.Text("verdict"))
	if a.Device != "" {
		t.Columns = append(t.Columns, document.Number("bound", "tokens/s"),
			document.Number("bound of worst reads", "tokens/s"))
	}
	for i := range a.Rows {
		r := &a.Rows[i]
		cells := []string{r.Class, r.Systems, string(r.Verdict)}
		if a.Device != "" {
			cells = append(cells, r.rate(r.RateMost), r.rate(r.RateLeast))
		}
		t.Add(cells...)
	}
	return t
}

// rate is a bound as a cell.
func (r *Runtime) rate(rate float64) string {
	switch {
	case !r.Verdict.Runs():
		return ""
	case rate == 0:
		return "not known"
	}
	return bound(rate).Cell()
}
