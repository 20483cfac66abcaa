package report

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/plain"
)

// The frame of a chart inside its view box: space for tick labels on the left and below.
const (
	padLeft   = 56.0
	padRight  = 12.0
	padTop    = 12.0
	padBottom = 40.0
)

// scale maps data from lo…hi to a…b on the page.
type scale struct{ lo, hi, a, b float64 }

func (s scale) at(v float64) float64 { return s.a + (v-s.lo)/(s.hi-s.lo)*(s.b-s.a) }

// plot is an SVG under construction. Geometry is in units of the view box; colours and fonts are
// classes of the style sheet, so that light, dark and print need no second drawing.
type plot struct {
	w, h float64
	x, y scale
	// whole says that x counts things: ticks are whole. bins says that the things are bars: ticks
	// stand under their middle.
	whole, bins bool
	b           strings.Builder
}

// newPlot makes a plot whose axes cover x0…x1 and y0…y1.
func newPlot(w, h, x0, x1, y0, y1 float64) *plot {
	if !(y1 > y0) {
		y1 = y0 + 1
	}
	if !(x1 > x0) {
		x1 = x0 + 1
	}
	return &plot{w: w, h: h, x: scale{x0, x1, padLeft, w - padRight}, y: scale{y0, y1,
		h - padBottom, padTop}}
}

// num writes a coordinate: two decimals are a fiftieth of a hair.
func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

func (p *plot) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&p.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(x1), num(y1),
		num(x2), num(y2))
}

func (p *plot) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(&p.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor,
		num(x), num(y), html.EscapeString(plain.Line(s)))
}

// axes draws grid lines, tick labels and titles.
func (p *plot) axes(xTitle, yTitle string) {
	for _, v := range ticks(p.y.lo, p.y.hi, p.h/60, 0) {
		y := p.y.at(v)
		p.line("grid", p.x.a, y, p.x.b, y)
		p.text("tick", "end", p.x.a-6, y+4, tickLabel(v))
	}
	finest, middle := 0.0, 0.0
	if p.whole {
		finest = 1
	}
	if p.bins {
		middle = 0.5
	}
	for _, v := range ticks(p.x.lo, p.x.hi-middle, p.w/80, finest) {
		p.text("tick", "middle", p.x.at(v+middle), p.y.a+16, tickLabel(v))
	}
	p.line("axis", p.x.a, p.y.a, p.x.b, p.y.a)
	p.text("title", "middle", (p.x.a+p.x.b)/2, p.h-6, xTitle)
	fmt.Fprintf(&p.b,
		`<text class="title" text-anchor="middle" transform="translate(14 %s) rotate(-90)">%s</text>`,
		num((p.y.a+p.y.b)/2), html.EscapeString(plain.Line(yTitle)))
}

// bars draws v on top of base, in data units, and advances base, so that calls stack. A bar is a
// line as wide as the bar: that is half the text of a rectangle, and a page has thousands. fill is
// the share of its place that a bar takes.
func (p *plot) bars(class string, fill float64, base, v []float64) {
	var d strings.Builder
	step := (p.x.b - p.x.a) / float64(len(v))
	for i := range v {
		if v[i] > 0 {
			d.WriteString("M" + num(p.x.a+step*(float64(i)+0.5)) + " " + num(p.y.at(base[i])) +
				"V" + num(p.y.at(base[i]+v[i])))
		}
		base[i] += v[i]
	}
	edges := ""
	if fill == 1 {
		edges = ` shape-rendering="crispEdges"` // no seams between bars that touch
	}
	if d.Len() > 0 {
		fmt.Fprintf(&p.b, `<path class="%s"%s stroke-width="%s" d="%s"/>`, class, edges,
			num(step*fill), d.String())
	}
}

// steps draws one horizontal line per value, joined: the outline of bars.
func (p *plot) steps(class string, v []float64) {
	step := (p.x.b - p.x.a) / float64(len(v))
	d := "M" + num(p.x.a) + " " + num(p.y.at(v[0]))
	for i := range v {
		d += "V" + num(p.y.at(v[i])) + "H" + num(p.x.a+step*float64(i+1))
	}
	fmt.Fprintf(&p.b, `<path class="%s" d="%s"/>`, class, d)
}

// polyline joins the points (x[i], y[i]).
func (p *plot) polyline(class string, x, y []float64) {
	points := make([]string, len(x))
	for i := range x {
		points[i] = num(p.x.at(x[i])) + "," + num(p.y.at(y[i]))
	}
	fmt.Fprintf(&p.b, `<polyline class="%s" points="%s"/>`, class, strings.Join(points, " "))
}

// dot draws a point with a title, which browsers show as a tooltip.
func (p *plot) dot(class string, x, y float64, title string) {
	fmt.Fprintf(&p.b, `<circle class="%s" cx="%s" cy="%s" r="3"><title>%s</title></circle>`,
		class, num(p.x.at(x)), num(p.y.at(y)), html.EscapeString(plain.Line(title)))
}

// svg closes the drawing. Readers that do not see it get the label; attrs is markup of ours,
// without data.
func (p *plot) svg(label, attrs string) string {
	return fmt.Sprintf(
		`<svg viewBox="0 0 %s %s" role="img" aria-label="%s"%s>%s</svg>`,
		num(p.w), num(p.h), html.EscapeString(plain.Line(label)), attrs, p.b.String())
}

// ticks returns about n round values (1, 2 or 5 times a power of ten) in lo…hi, at least finest
// apart.
func ticks(lo, hi, n, finest float64) []float64 {
	raw := max((hi-lo)/n, finest)
	if !(hi > lo) || math.IsInf(raw, 0) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	switch f := raw / step; {
	case f > 5:
		step *= 10
	case f > 2:
		step *= 5
	case f > 1:
		step *= 2
	}
	var out []float64
	for i := int(math.Ceil(lo/step - 1e-9)); float64(i)*step <= hi+step*1e-9; i++ {
		out = append(out, float64(i)*step)
	}
	return out
}

func tickLabel(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
