package placement

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/document"
)

// Document describes the comparison: the layouts, the reads behind their times, then what the gaps
// and the copies of friends do.
func (r *Result) Document() *document.Document {
	d := &document.Document{Name: "layout", Title: "windrow layout", Headline: r.headline(),
		Warnings: r.Warnings, Result: r, Rows: r.rows()}
	boundary := "they share a sequence"
	if r.Apart {
		boundary = "no sequence is in both"
	}
	d.Fact("model", "%s, %s masks", r.Model, r.Mask)
	d.Fact("device", "%s (%s ×%d)", r.Device, r.Engine, r.Depth)
	d.Fact("window", "%d tokens", r.Window)
	d.Fact("trace", "training split of %d tokens, test split of the %d after them; %s", r.Train,
		r.Test, boundary)
	d.Fact("reads", "%s units per token", document.Sig3(r.Loads))
	d.Add("Layouts", "Gains are over bundles read one by one. They compare two predictions; their "+
		"intervals are not known.", *r.timeTable())
	d.Add("Reads of the layouts", "", *r.readsTable())
	d.Add("I/O time by gap", "Each has the interval of its layout's I/O above, in proportion.",
		*r.gapTable())
	d.Add("The gap that pays", "Closed form is the gap with the least time by the closed form of "+
		"the flash. Rule of a pair is the widest gap at which one request for two extents takes "+
		"less time than two.", *r.bestTable())
	d.Add("Records per token with copies of friends", strings.Join(r.friends(), "\n"),
		*r.copiesTable())
	if r.Synthetic {
		d.Note("Synthetic: units share nothing but popularity, so that what chains gain over " +
			"hotness is chance, a sequence in both parts, or, with a window, cold starts.")
	}
	for i := range r.Rows {
		for _, note := range r.Rows[i].prediction.Notes {
			d.Note("%s", note)
		}
	}
	return d
}

// headline is the layout with the least I/O time that needs no oracle.
func (r *Result) headline() string {
	var best *Row
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Layout != oracleName && (best == nil || row.IO < best.IO) {
			best = row
		}
	}
	return fmt.Sprintf("I/O of %s per token with %s, %s: %s times as fast as bundles read one "+
		"by one",
		best.IOEstimate.Text("ms"), best.Layout, best.neighbours(), document.Sig3(best.IOGain))
}

// neighbours says how a layout is read.
func (row *Row) neighbours() string {
	switch {
	case !row.Joined:
		return "apart"
	case row.Gap == 0:
		return "joined"
	}
	return fmt.Sprintf("gap %d", row.Gap)
}

// wasted is the share of the bytes beyond one copy of every needed record.
func (row *Row) wasted() float64 {
	if row.Bytes == 0 {
		return 0
	}
	return row.Wasted / row.Bytes
}

func (r *Result) timeTable() *document.Table {
	number := document.Number
	t := document.NewTable(document.Text("layout"), document.Text("neighbours"),
		number("I/O", "ms"), document.IntervalOf("I/O"), number("token", "ms"),
		document.IntervalOf("token"), document.BasisColumn, number("I/O gain", "×"),
		number("token gain", "×"))
	for i := range r.Rows {
		row := &r.Rows[i]
		io, token := row.IOEstimate, row.TokenEstimate
		t.Add(row.Layout, row.neighbours(), io.Cell(), io.Interval(), token.Cell(),
			token.Interval(), token.Basis, document.Sig3(row.IOGain), document.Sig3(row.Gain))
	}
	return t
}

func (r *Result) readsTable() *document.Table {
	number := document.Number
	t := document.NewTable(document.Text("layout"), document.Text("neighbours"),
		number("flash", "GB"), number("reads", "1/token"), number("read", "MB/token"),
		number("wasted", "%"), number("units", "1/read"), number("size", "kB/read"))
	for i := range r.Rows {
		row := &r.Rows[i]
		t.Add(row.Layout, row.neighbours(), document.Sig3(float64(row.Flash)/1e9),
			document.Sig3(row.Reads), document.Sig3(row.Bytes/1e6),
			document.Percent(row.wasted()), document.Sig3(row.Run), document.Sig3(row.Read/1e3))
	}
	return t
}

// rows are the layouts with exact numbers.
func (r *Result) rows() *document.Table {
	number := document.Number
	t := document.NewTable(document.Text("layout"), document.Text("neighbours"),
		number("flash", "bytes"), number("reads", "per token"), number("read", "bytes per token"),
		number("wasted", "bytes per token"), number("units", "per read"),
		number("size", "bytes per read"))
	for _, name := range []string{"io", "token"} {
		t.Columns = append(t.Columns, number(name, "ms"), number(name+" low", "ms"),
			number(name+" high", "ms"))
	}
	t.Columns = append(t.Columns, document.BasisColumn, number("io gain", ""),
		number("token gain", ""))
	exact := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	known := func(v *float64) string {
		if v == nil {
			return ""
		}
		return exact(*v)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		cells := []string{row.Layout, row.neighbours(), document.Count(int64(row.Flash)),
			exact(row.Reads), exact(row.Bytes), exact(row.Wasted), exact(row.Run), exact(row.Read)}
		for _, e := range []document.Estimate{row.IOEstimate, row.TokenEstimate} {
			cells = append(cells, e.Mark(exact(e.Value)), known(e.Low), known(e.High))
		}
		t.Add(append(cells, row.Basis, exact(row.IOGain), exact(row.Gain))...)
	}
	return t
}

// gapTable is the I/O time of every order under every gap.
func (r *Result) gapTable() *document.Table {
	t := document.NewTable(document.Number("gap", ""))
	for _, s := range r.Sweeps {
		t.Columns = append(t.Columns, document.Number(s.Layout, "ms"))
	}
	for i := range r.Sweeps[0].Rows {
		cells := []string{document.Count(r.Sweeps[0].Rows[i].Gap)}
		for _, s := range r.Sweeps {
			cells = append(cells, s.Rows[i].IOEstimate.Cell())
		}
		t.Add(cells...)
	}
	return t
}

// bestTable has the gap that pays for every order.
func (r *Result) bestTable() *document.Table {
	number := document.Number
	t := document.NewTable(document.Text("layout"), number("least I/O time", "records"),
		number("closed form", "records"), number("rule of a pair", "records"))
	for _, s := range r.Sweeps {
		most := s.Rows[len(s.Rows)-1].Gap
		gap := func(n int) string {
			if n >= most && most > 0 {
				return "≥ " + document.Count(n) // wider ones were not tried
			}
			return document.Count(n)
		}
		t.Add(s.Layout, gap(s.Best), gap(s.Closed), gap(s.Pair))
	}
	return t
}

func (r *Result) copiesTable() *document.Table {
	number := document.Number
	t := document.NewTable(document.Text("layout"), number("fetched", ""), number("needed", ""),
		number("repeated", ""), number("not needed", ""), number("each of the hottest 1 %", ""))
	t.Add(bundledName, document.Sig3(r.Loads), document.Sig3(r.Loads), "0", "0",
		document.Sig3(r.Hottest))
	for i := range r.Rows {
		if c := r.Rows[i].Copies; c != nil {
			t.Add(r.Rows[i].Layout, document.Sig3(c.Fetched), document.Sig3(c.Needed),
				document.Sig3(c.Repeated), document.Sig3(c.Unneeded), document.Sig3(c.Hottest))
		}
	}
	return t
}

// friends says which units are needed together.
func (r *Result) friends() []string {
	f := &r.Companion
	if f.Units == 0 {
		return []string{"No unit is needed often enough to tell its friends."}
	}
	list := []string{
		fmt.Sprintf("Of the %d units that 8 or more tokens of the training split need: the "+
			"closest friend is needed with %s %% of a unit's uses (%s %% at least), the fourth "+
			"with %s %%, the eighth with %s %%.", f.Units, document.Percent(f.Closest[0]),
			document.Percent(f.Least), document.Percent(f.Closest[3]),
			document.Percent(f.Closest[7])),
		fmt.Sprintf("One unit is the closest friend of %s %% of a layer. %s %% of the units are "+
			"the closest friend of some unit.", document.Percent(f.Popular),
			document.Percent(f.Distinct)),
	}
	if r.Sampled > 1 {
		list = append(list, fmt.Sprintf("Pairs are counted in one of %d tokens.", r.Sampled))
	}
	return list
}
