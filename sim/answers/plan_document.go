package answers

import (
	"fmt"
	"math"
	"strconv"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
)

// No says why the answer is no: nothing fits into the budget, or nothing that fits reaches the
// target. It is empty where the answer is yes.
func (p *Plan) No() string {
	switch {
	case !p.Fits:
		return fmt.Sprintf("the budget of %s is below the floor of %s", document.IEC(p.Budget),
			document.IEC(p.Memory.Total))
	case p.Target > 0 && !p.Meets:
		return fmt.Sprintf("the target of %s tokens/s is not reached within the budget",
			document.Sig3(p.Target))
	}
	return ""
}

// Document describes the plan: the best configuration, then what it takes, what the target needs
// and what to change first.
func (p *Plan) Document() *document.Document {
	d := &document.Document{Name: "plan", Title: "windrow plan", Headline: p.headline(),
		Verdict: p.verdict(), Warnings: p.Warnings, Result: p}
	d.Fact("model", "%s", p.Model)
	d.Fact("device", "%s", p.Device)
	d.Fact("budget", "%s", document.IEC(p.Budget))
	if !p.Fits {
		d.Add("Memory with nothing kept between tokens", "Give it more, or take fewer positions "+
			"or a smaller model.", *p.Memory.Table())
		return d
	}
	if p.Leanest != nil {
		needed := document.Estimate{Bound: p.Leanest.Estimate.Bound}
		d.Fact("least memory for the target", "%s, with a window of %d",
			needed.Mark(document.IEC(p.Leanest.Memory)), p.Leanest.Window)
	}
	d.Add("Memory of the best", "", *p.Memory.Table())
	var winners []Point
	for i := range p.Winners {
		winners = append(winners, p.Winners[i].Point)
	}
	d.Add("The best windows on the whole trace", "", *pointsTable(winners))
	d.Add(fmt.Sprintf("Not beaten in memory and speed, budget or not (first %d tokens)", p.Tokens),
		"", *pointsTable(p.Pareto))
	d.Add("Needed for the target, each alone", "A needed value is where the estimate itself "+
		"reaches the target; its interval is not known. Where speeds are bounds, at least so "+
		"much is needed.", *p.needsTable())
	d.Add("What speed depends on", "Elasticity is by how many percent speed rises with one "+
		"percent more. It is the difference of two predictions, and its interval is not known.",
		*p.sensitivityTable())
	d.Add("Other flash in this machine", "", *p.purchaseTable())
	d.Note("Speeds leave out the first %d tokens of each sequence, which fill the window. All but "+
		"those of the whole trace are of its first %d tokens.", p.Warm, p.Tokens)
	if p.Pareto[0].Joules != nil {
		d.Note("Joules are those of flash and memory, a bound: the processor comes on top.")
	}
	for _, note := range p.Best.Prediction.Notes {
		d.Note("%s", note)
	}
	return d
}

func (p *Plan) headline() string {
	if !p.Fits {
		return fmt.Sprintf("Nothing fits: %s needs %s even with nothing kept between tokens, and "+
			"the budget is %s.", p.Model, document.IEC(p.Memory.Total), document.IEC(p.Budget))
	}
	best := p.Best
	return fmt.Sprintf("%s: window %d, %s, %d in flight, %s, in %s of %s",
		best.Estimate.Text("tokens/s"), best.Window, best.Engine, best.Parallel,
		chunkWord(best.Chunk), document.IEC(best.Memory), document.IEC(p.Budget))
}

func chunkWord(chunk units.Bytes) string {
	if chunk == 0 {
		return "chunks without limit"
	}
	return "chunks up to " + document.IEC(chunk)
}

// verdict compares the best with the target. A bound that is above the target proves nothing, and
// an interval that begins below it not everything.
func (p *Plan) verdict() *document.Verdict {
	if no := p.No(); no != "" {
		return &document.Verdict{Text: no, Class: "outside"}
	}
	if p.Target == 0 {
		return nil
	}
	v := &document.Verdict{Class: "pass", Text: fmt.Sprintf("the target of %s tokens/s is "+
		"reached within the budget", document.Sig3(p.Target))}
	switch e := p.Best.Estimate; {
	case e.Bound:
		v.Class, v.Text = "noisy", fmt.Sprintf("the bound is above the target of %s tokens/s",
			document.Sig3(p.Target))
		v.Reasons = []string{"the real speed is below the bound, and may be below the target"}
	case e.Low == nil:
		v.Class, v.Reasons = "noisy", []string{"the interval of the speed is not known"}
	case *e.Low < p.Target:
		v.Class, v.Reasons = "noisy", []string{fmt.Sprintf("the interval of the speed begins at "+
			"%s tokens/s, below the target", document.Sig3(*e.Low))}
	}
	return v
}

func pointsTable(list []Point) *document.Table {
	number := document.Number
	t := document.NewTable(number("window", ""), document.Text("engine"),
		number("in flight", ""), number("chunk", ""), number("memory", "MiB"),
		document.Text("fits"), number("speed", "tokens/s"), document.IntervalColumn,
		document.BasisColumn)
	energy := len(list) > 0 && list[0].Joules != nil
	if energy {
		t.Columns = append(t.Columns, number("flash and memory", "J/token"))
	}
	for i := range list {
		p := &list[i]
		chunk, fits := "no limit", "yes"
		if p.Chunk > 0 {
			chunk = document.IEC(p.Chunk)
		}
		if !p.Fits {
			fits = "no"
		}
		cells := append([]string{document.Count(p.Window), p.Engine, document.Count(p.Parallel),
			chunk, document.Sig3(float64(p.Memory) / float64(units.MiB)), fits},
			p.Estimate.Cells()...)
		if energy {
			cells = append(cells, document.Estimate{Value: *p.Joules, Bound: true}.Cell())
		}
		t.Add(cells...)
	}
	return t
}

// quantity writes a value in its unit.
func quantity(v float64, unit string) string {
	switch unit {
	case "ns":
		return document.Duration(units.Nanos(math.Round(v)))
	case "B":
		return document.IEC(units.Bytes(v))
	case "":
		return strconv.FormatFloat(v, 'g', 4, 64)
	case times:
		return document.Sig3(v) + "×"
	case share:
		return document.Percent(v) + " %"
	}
	return document.SI(v, unit)
}

func (p *Plan) needsTable() *document.Table {
	t := document.NewTable(document.Text("what"), document.Number("now", ""),
		document.Number("needed", ""), document.Number("times as good", ""),
		document.BasisColumn, document.Text("remark"))
	for i := range p.Needs {
		n := &p.Needs[i]
		now := quantity(n.Now, n.Unit)
		if n.Needed == nil {
			t.Add(n.Name, now, "not enough alone", "", n.CeilingEstimate.Basis,
				"best tried: "+n.CeilingEstimate.Text("tokens/s"))
			continue
		}
		remark, e := "", n.NeededEstimate
		if n.Beyond {
			remark = "the worst that was tried is enough"
		}
		factor := document.Estimate{Value: *n.Factor, Bound: e.Bound}
		t.Add(n.Name, now, e.Mark(quantity(*n.Needed, n.Unit)), factor.Cell(), e.Basis, remark)
	}
	return t
}

func (p *Plan) sensitivityTable() *document.Table {
	t := document.NewTable(document.Text("what"), document.Number("now", ""),
		document.Number("elasticity", ""), document.BasisColumn, document.Text("remark"))
	for _, s := range p.Sensitivities {
		remark := ""
		if s.OneSided {
			remark = "difference to one side"
		}
		t.Add(s.Name, quantity(s.Now, s.Unit), document.Sig3(s.Elasticity), string(s.Basis),
			remark)
	}
	return t
}

func (p *Plan) purchaseTable() *document.Table {
	number := document.Number
	t := document.NewTable(document.Text("flash of"), document.Text("engine"),
		number("in flight", ""), number("speed", "tokens/s"), document.IntervalColumn,
		document.BasisColumn, number("times the present", ""))
	for i := range p.Purchases {
		b := &p.Purchases[i]
		cells := append([]string{b.Name, b.Engine, document.Count(b.Parallel)},
			b.Estimate.Cells()...)
		t.Add(append(cells, document.Sig3(b.Ratio))...)
	}
	return t
}
