package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// maxBars is how many tokens a timeline shows one by one; longer runs are shown as means over equal
// stretches.
const maxBars = 512

// figures draws everything that d has data for.
func (d *Data) figures(runs []series) []document.Figure {
	var out []document.Figure
	top := 0.0
	for i := range runs {
		top = max(top, newBins(runs[i].tokens).top())
	}
	for i := range runs {
		out = append(out, timeline(&runs[i], i, top))
	}
	if d.Comparison != nil {
		out = append(out, scatter(&runs[0], &runs[1], d.Comparison.SkippedTokens))
	}
	if t := d.Trace; t != nil {
		if delta := t.Delta(); len(delta) > 0 {
			out = append(out,
				windowChart("s_agg(k): what a window of k tokens keeps", "s_agg(k), % of units",
					t.SAgg, t.Units),
				windowChart("delta(k): what a window of k tokens loads per token",
					"delta(k), % of units", delta, t.Units))
		}
		if len(t.ActiveShare) > 0 {
			out = append(out, layerChart(t.ActiveShare))
		}
	}
	return out
}

// bins are the means, in milliseconds, of stretches of `size` tokens.
type bins struct {
	size    int
	parts   [traces.Parts][]float64
	latency []float64
}

func newBins(ts []compare.Token) bins {
	b := bins{size: (len(ts) + maxBars - 1) / maxBars}
	for stretch := range slices.Chunk(ts, b.size) {
		var latency float64
		var parts [traces.Parts]float64
		for _, t := range stretch {
			latency += t.Latency.Millis()
			for p, d := range t.Parts {
				parts[p] += d.Millis()
			}
		}
		n := float64(len(stretch))
		b.latency = append(b.latency, latency/n)
		for p := range parts {
			b.parts[p] = append(b.parts[p], parts[p]/n)
		}
	}
	return b
}

// top is the highest value that a timeline has to show.
func (b bins) top() float64 {
	top := 0.0
	for i, v := range b.latency {
		stack := 0.0
		for p := range b.parts {
			stack += b.parts[p][i]
		}
		top = max(top, v, stack)
	}
	return top
}

// timeline shows every token as a stack of its parts, and its latency as a line. All timelines of a
// report have one scale.
func timeline(s *series, run int, top float64) document.Figure {
	b := newBins(s.tokens)
	n := len(b.latency)
	p := newPlot(960, 260, 0, float64(n*b.size), 0, top)
	p.whole, p.bins = true, true
	p.axes("token of the run", "ms per token, "+s.kind)
	fill := 0.84
	if n > 200 {
		fill = 1
	}
	c := document.Figure{Title: "Time per token, " + s.name()}
	base := make([]float64, n)
	for part := range traces.Part(traces.Parts) {
		class := fmt.Sprintf("p%d", part)
		p.bars(class, fill, base, b.parts[part])
		c.Legend = append(c.Legend, document.Key{Class: class, Text: part.String()})
	}
	p.steps("latency", b.latency)
	c.Legend = append(c.Legend, document.Key{Class: "latency", Text: "latency"})
	c.Note = "Bars are the work of each part, the line is the latency: a bar above the line is " +
		"work that was overlapped, a gap below it is waiting."
	if b.size > 1 {
		c.Note += fmt.Sprintf(" Each bar is the mean of %d tokens.", b.size)
	}
	attrs := fmt.Sprintf(
		` class="timeline" tabindex="0" data-run="%d" data-bars="%d" data-size="%d" data-x0="%s" data-x1="%s" data-y0="%s" data-y1="%s"`,
		run, n, b.size, num(p.x.a), num(p.x.b), num(p.y.b), num(p.y.a))
	c.SVG = p.svg(fmt.Sprintf("Stacked bars of the parts of %d tokens, %s; the numbers are in "+
		"the table of tokens.", len(s.tokens), s.name()), attrs)
	return c
}

// scatter puts the simulated latency of every token over its measured latency.
func scatter(sim, measured *series, skip int) document.Figure {
	stride := (len(sim.tokens) + 4*maxBars - 1) / (4 * maxBars)
	lo, hi := math.Inf(1), 0.0
	for _, s := range []*series{sim, measured} {
		for i := 0; i < len(s.tokens); i += stride {
			l := s.tokens[i].Latency.Millis()
			lo, hi = min(lo, l), max(hi, l)
		}
	}
	margin := 0.05 * (hi - lo)
	p := newPlot(480, 440, lo-margin, hi+margin, lo-margin, hi+margin)
	p.axes("measured, ms", "simulated, ms")
	p.line("ideal", p.x.a, p.y.a, p.x.b, p.y.b)
	for i := 0; i < len(sim.tokens); i += stride {
		x, y := measured.tokens[i].Latency, sim.tokens[i].Latency
		class := "dot"
		if i < skip {
			class = "dot warm"
		}
		p.dot(class, x.Millis(), y.Millis(),
			fmt.Sprintf("token %d: simulated %s ms, measured %s ms", sim.tokens[i].Index,
				ms(float64(y)), ms(float64(x))))
	}
	c := document.Figure{Title: "Latency of each token, simulated over " + measured.kind,
		Legend: []document.Key{{Class: "ideal", Text: "simulated = measured"}, {Class: "dot",
			Text: "token"}}}
	if skip > 0 {
		c.Legend = append(c.Legend, document.Key{Class: "dot warm", Text: "warm-up token"})
	}
	if stride > 1 {
		c.Note = fmt.Sprintf("One token in %d is shown.", stride)
	}
	c.SVG = p.svg(fmt.Sprintf("Simulated over measured latency of %d tokens.", len(sim.tokens)), "")
	return c
}

// windowChart shows a value per window size in percent of the units of a layer.
func windowChart(title, yTitle string, v []float64, unitsPerLayer int) document.Figure {
	x, y := make([]float64, len(v)), make([]float64, len(v))
	for k := range v {
		x[k], y[k] = float64(k), 100*v[k]/float64(unitsPerLayer)
	}
	p := newPlot(480, 260, 0, float64(len(v)-1), 0, slices.Max(y)*1.05)
	p.whole = true
	p.axes("k, tokens", yTitle)
	p.polyline("curve", x, y)
	for k := range x {
		p.dot("dot", x[k], y[k], fmt.Sprintf("k = %d: %s %%", k, Sig3(y[k])))
	}
	return document.Figure{Title: title, SVG: p.svg(title+"; the numbers are in the table of "+
		"windows.", "")}
}

// layerChart shows the active share of every layer.
func layerChart(share []float64) document.Figure {
	v := make([]float64, len(share))
	for i, a := range share {
		v[i] = 100 * a
	}
	p := newPlot(960, 200, 0, float64(len(v)), 0, slices.Max(v)*1.05)
	p.whole, p.bins = true, true
	p.axes("layer", "active, % of units")
	p.bars("bar", 0.84, make([]float64, len(v)), v)
	return document.Figure{Title: "Active share by layer",
		SVG: p.svg("Active share of every layer; the numbers are in the table of layers.", "")}
}
