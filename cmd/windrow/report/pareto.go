package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
)

// Point is one setting on a drawing of cost and quality.
type Point struct {
	X, Y  float64
	Label string
}

// WriteParetoSVG draws points and joins those that no other beats on both axes (less is better), as
// a drawing of its own.
func WriteParetoSVG(w io.Writer, xTitle, yTitle string, points []Point) error {
	if len(points) == 0 {
		return fmt.Errorf("report: no points to draw")
	}
	x0, x1, y0, y1 := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, p := range points {
		x0, x1, y0, y1 = min(x0, p.X), max(x1, p.X), min(y0, p.Y), max(y1, p.Y)
	}
	margin := func(lo, hi float64) float64 { return max((hi-lo)*0.06, math.Abs(hi)*0.01) }
	mx, my := margin(x0, x1), margin(y0, y1)
	p := newPlot(720, 440, max(x0-mx, 0), x1+mx, max(y0-my, 0), y1+my)
	p.axes(xTitle, yTitle)
	var fx, fy []float64
	for _, i := range Front(points) {
		fx, fy = append(fx, points[i].X), append(fy, points[i].Y)
	}
	p.polyline("front", fx, fy)
	for _, point := range points {
		p.dot("point", point.X, point.Y, point.Label)
		p.text("tick", "middle", p.x.at(point.X), p.y.at(point.Y)-8, point.Label)
	}
	const style = `<style>text{font:13px system-ui,sans-serif;fill:#1b1f24}.grid{stroke:#d1d9e0}.axis{stroke:#59636e}.front{fill:none;stroke:#0072b2;stroke-width:2}.point{fill:#d55e00}</style>`
	_, err := fmt.Fprintf(w,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img" aria-label="%s over %s">%s<rect width="100%%" height="100%%" fill="#fff"/>%s</svg>`+"\n",
		num(p.w), num(p.h), yTitle, xTitle, style, p.b.String())
	return err
}

// Front returns the indices of the points that no other beats on both axes, by X; less is better.
func Front(points []Point) []int {
	var list []int
	for i, p := range points {
		beaten := false
		for j, q := range points {
			if q.X <= p.X && q.Y <= p.Y && (q.X < p.X || q.Y < p.Y || j < i) {
				beaten = true
			}
		}
		if !beaten {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return cmp.Compare(points[a].X, points[b].X) })
	return list
}
