package replay

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/document"
)

// Document describes the search: the fastest prefix, then every one that was tried.
func (p *Prefixes) Document() *document.Document {
	d := &document.Document{Name: "calibrate", Title: "windrow calibrate", Result: p}
	for i := range p.Rows {
		if r := &p.Rows[i]; r.Dense == p.Best {
			d.Headline = fmt.Sprintf("d* = %d dense layers: %s tokens/s (measured) in %s", p.Best,
				document.Sig3(r.TokensPerS), document.IEC(r.Memory))
		}
	}
	d.Fact("model", "%s", p.Model)
	d.Fact("reads", "%s", p.Device)
	if p.Budget > 0 {
		d.Fact("memory", "at most %s", document.IEC(p.Budget))
	}
	d.Add("Dense prefixes", "", *p.table())
	return d
}

// table has one row for every prefix that was tried.
func (p *Prefixes) table() *document.Table {
	number := document.Number
	t := document.NewTable(number("dense layers", ""), number("memory", "MiB"),
		number("measured", "tokens/s"), number("waits for reads", "ms/token"),
		number("reads hidden", "ms/token"), number("the rest", "ms/token"),
		number("read", "MB/token"), document.Text("bound by"))
	for i := range p.Rows {
		r := &p.Rows[i]
		dense, memory := document.Count(r.Dense), document.Sig3(float64(r.Memory)/(1<<20))
		if !r.Fits {
			t.Add(dense, memory, "", "", "", "", "", "memory: does not fit")
			continue
		}
		t.Add(dense, memory, document.Sig3(r.TokensPerS), document.Millis(r.Waited),
			document.Millis(r.Hidden), document.Millis(r.Compute),
			document.Sig3(float64(r.Bytes)/1e6), r.Regime)
	}
	return t
}
