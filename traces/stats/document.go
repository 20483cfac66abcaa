package stats

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/document"
)

// Document describes the statistics: the active share of every layer, then what windows keep and
// load.
func (s *Stats) Document() *document.Document {
	units := float64(s.Units)
	d := &document.Document{Name: "trace-stats", Title: "windrow trace stats", Result: s,
		Headline: fmt.Sprintf("%s %% of the units are active; a window of 5 tokens keeps %s %% "+
			"and loads %s %% per token (%s masks)", document.Percent(s.Total.Active.Mean),
			document.Percent(s.Total.Window.SAgg[5]/units),
			document.Percent(s.Total.Window.Delta[5]/units), s.Mask)}
	d.Fact("trace", "%d tokens in %d sequences, %d layers of %d units", s.Tokens, s.Sequences,
		s.Layers, s.Units)
	if p := s.Total.Predictor; p != nil {
		d.Fact("predictor", "recall %s %%, precision %s %%, predicted/true %s",
			document.Percent(p.Recall), document.Percent(p.Precision), document.Sig3(p.Ratio))
	}
	d.Add("Layers", "Active, least and most are shares of a layer's units in a token. Never is "+
		"the "+
		"share that no token activates.", *s.layersTable())
	d.Add("Windows of k tokens", "s_agg(k) is the mean number of distinct units in k consecutive "+
		"tokens, which a window keeps. new(k) is the mean number that a token needs beyond the k "+
		"tokens before it, which a window loads.", *s.windowsTable())
	return d
}

func (s *Stats) layersTable() *document.Table {
	t := document.NewTable(document.Number("layer", ""), document.Number("active", "%"),
		document.Number("least", "%"), document.Number("most", "%"), document.Number("never", "%"),
		document.Number("s_agg(5)", "%"), document.Number("new(5)", "%"))
	line := func(name string, p *Part) {
		units := float64(s.Units)
		t.Add(name, document.Percent(p.Active.Mean), document.Percent(p.Active.Min),
			document.Percent(p.Active.Max), document.Percent(p.NeverActive),
			document.Percent(p.Window.SAgg[5]/units), document.Percent(p.Window.Delta[5]/units))
	}
	for l := range s.PerLayer {
		line(fmt.Sprint(l), &s.PerLayer[l])
	}
	line("mean", &s.Total)
	return t
}

func (s *Stats) windowsTable() *document.Table {
	t := document.NewTable(document.Number("k", ""), document.Number("s_agg(k)", "%"),
		document.Number("new(k)", "%"), document.Number("hit ratio", ""),
		document.Number("reuse at k", "%"))
	w := &s.Total.Window
	for k := range w.SAgg {
		if k > 8 && k&(k-1) != 0 { // all of 0…8, then powers of two
			continue
		}
		reuse := ""
		if k > 0 {
			reuse = document.Percent(float64(s.Total.Reuse.Exact[k-1]) /
				float64(max(s.Accesses, 1)))
		}
		hit := float64(w.Hits[k]) / float64(max(w.Hits[k]+w.Misses[k], 1))
		t.Add(fmt.Sprint(k), document.Percent(w.SAgg[k]/float64(s.Units)),
			document.Percent(w.Delta[k]/float64(s.Units)), document.Sig3(hit), reuse)
	}
	return t
}
