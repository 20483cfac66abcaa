package answers

import (
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/internal/document"
)

// BreakEvens are the answers for several devices. The question is otherwise the same.
type BreakEvens struct {
	List []*BreakEven `json:"break_even"`
}

// No says why the answer is no: the resident weights do not fit. It is empty where there is one.
func (l *BreakEvens) No() string {
	b := l.List[0]
	if b.Fits {
		return ""
	}
	return fmt.Sprintf("%s of weights are below the floor: %s of %s are not FFN and stay in memory",
		document.IEC(b.Budget), document.IEC(b.Resident), b.Model)
}

// Document describes the answers: what hybrid costs, then the active shares and the batches at
// which selective reads cost as much.
func (l *BreakEvens) Document() *document.Document {
	b := l.List[0]
	d := &document.Document{Name: "breakeven", Title: "windrow breakeven", Result: l,
		Headline: l.headline()}
	d.Fact("model", "%s, %s of weights", b.Model, document.IEC(b.ModelBytes))
	d.Fact("weights in memory", "%s (%s %%)", document.IEC(b.Budget),
		document.Percent(float64(b.Budget)/float64(b.ModelBytes)))
	if !b.Fits {
		d.Verdict = &document.Verdict{Text: l.No(), Class: "outside"}
		return d
	}
	d.Fact("hybrid reads", "%s for every token, in reads of 1 MiB",
		document.SI(float64(b.Missing), "B"))
	d.Add("Reads of hybrid", "Rates and the first time are of the closed form. The interval is "+
		"that of the simulated time, of the reads alone.", *l.ratesTable())
	shares, batches := limitsTable("% active"), limitsTable("sequences")
	for _, b := range l.List {
		b.addLimits(shares, &b.Share, b.ShareWindow, b.MostShare, document.Percent)
		b.addLimits(batches, &b.Batch, b.BatchWindow, float64(b.MostBatch), func(v float64) string {
			return document.Count(int(v))
		})
		for _, note := range b.Notes {
			d.Warn(b.Device + ": " + note)
		}
	}
	d.Add("Selective reads are faster below this active share", "", *shares)
	d.Add(fmt.Sprintf("Selective reads are faster up to this batch, at an active share of %s %%",
		document.Percent(b.ActiveShare)), "", *batches)
	d.Note("\"> N\" is beyond the searched range: no break-even. Memory holds: more rows than " +
		"that do not fit into the budget on average, so that selective would need more memory " +
		"than hybrid.")
	d.Note("Intervals of shares and batches are not known. Where the flash is known by its " +
		"limits " +
		"alone, they compare two bounds and are themselves bounds of neither side.")
	return d
}

// headline answers for each of a few devices, else for the range of them.
func (l *BreakEvens) headline() string {
	const few = 3
	if !l.List[0].Fits {
		return fmt.Sprintf("Does not fit: %s.", l.No())
	}
	if len(l.List) > few {
		return fmt.Sprintf("%d devices: selective reads are faster below the active shares of the "+
			"table, intervals not known.", len(l.List))
	}
	var list []string
	for _, b := range l.List {
		text := b.Device + ": selective reads are faster " + b.below(b.Share.Simulated)
		if b.ShareWindow != nil {
			text += fmt.Sprintf("; with a window of %d, %s", b.Window,
				b.below(b.ShareWindow.Simulated))
		}
		list = append(list, text)
	}
	return strings.Join(list, ". ") + "."
}

func (b *BreakEven) below(share *float64) string {
	if share == nil {
		return fmt.Sprintf("at every share up to %s %% (%s)", document.Percent(b.MostShare),
			b.Basis)
	}
	return fmt.Sprintf("below an active share of %s %%, interval not known (%s)",
		document.Percent(*share), b.Basis)
}

func (l *BreakEvens) ratesTable() *document.Table {
	// Times of one table have one unit.
	unit, scale := "ms", 1.0
	for _, b := range l.List {
		if b.HybridEstimate.Value >= 1e4 {
			unit, scale = "s", 1e-3
		}
	}
	number := document.Number
	t := document.NewTable(document.Text("device"), document.Text("engine"),
		number("in flight", ""), number("1 MiB reads", "GB/s"), number("single records", "GB/s"),
		number("hybrid", unit+"/token"), number("simulated", unit+"/token"),
		document.IntervalColumn, document.BasisColumn)
	for _, b := range l.List {
		e := b.HybridEstimate
		rate := document.Estimate{Bound: e.Bound, AtMost: true}
		closed := *e
		closed.Value = b.HybridClosed.Millis()
		cells := []string{b.Device, b.Engine, document.Count(b.Parallel),
			rate.Mark(document.Sig3(float64(b.SequentialRate) / 1e9)),
			rate.Mark(document.Sig3(float64(b.RecordRate) / 1e9)), closed.Times(scale).Cell()}
		t.Add(append(cells, e.Times(scale).Cells()...)...)
	}
	return t
}

// limitsTable is a table of shares or of batches.
func limitsTable(unit string) *document.Table {
	number := document.Number
	return document.NewTable(document.Text("device"), number("window", ""),
		number("closed form", unit), number("simulated", unit), number("with row copies", unit),
		number("memory holds", unit), document.BasisColumn)
}

// addLimits adds the rows of one device, without and with a window.
func (b *BreakEven) addLimits(t *document.Table, plain, windowed *Limits, most float64,
	format func(float64) string) {
	add := func(window int, l *Limits) {
		cell := func(v *float64) string {
			if v == nil {
				return "> " + format(most)
			}
			return format(*v)
		}
		copies := cell(l.WithCopies)
		if !b.CopiesKnown {
			copies = "not known"
		}
		fits := format(l.Fits)
		if l.Fits >= most {
			fits = "≥ " + fits
		}
		t.Add(b.Device, document.Count(window), cell(l.Closed), cell(l.Simulated), copies, fits,
			b.Basis)
	}
	add(0, plain)
	if windowed != nil {
		add(b.Window, windowed)
	}
}
