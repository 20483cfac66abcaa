package cli

import (
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/devicemodels"
)

// The frame of the drawing, in units of its view box: tick labels stand on the left and below.
const (
	plotWidth, plotHeight = 960.0, 520.0
	plotLeft, plotRight   = 64.0, 32.0
	plotTop, plotBottom   = 56.0, 56.0
	legendLine            = 20.0
	labelHeight           = 14.0
)

// plotStyle colours devices in turn; the colours can be told apart with any colour vision (Okabe
// and Ito, 2008).
const plotStyle = `text{font:13px system-ui,sans-serif;fill:#1b1f24}.soft{fill:#59636e}.grid{stroke:#d1d9e0}.l{fill:none;stroke-width:2}` +
	`.t0{fill:#0072b2}.t1{fill:#d55e00}.t2{fill:#009e73}.t3{fill:#cc79a7}.t4{fill:#e69f00}.t5{fill:#8a8f98}` +
	`.d0{stroke:#0072b2}.d1{stroke:#d55e00}.d2{stroke:#009e73}.d3{stroke:#cc79a7}.d4{stroke:#e69f00}.d5{stroke:#8a8f98}` +
	`.in.d0{fill:#0072b2}.in.d1{fill:#d55e00}.in.d2{fill:#009e73}.in.d3{fill:#cc79a7}.in.d4{fill:#e69f00}.in.d5{fill:#8a8f98}.ex{fill:#fff}`

// plotColours is how many devices have a colour of their own.
const plotColours = 6

// drawComparison writes throughput over read size as an SVG, one line for each device and depth,
// both axes logarithmic. Points that no measurement covers are hollow.
func drawComparison(w io.Writer, cmp *devicemodels.Comparison) error {
	lo, hi := cmp.Rates()
	if !(lo > 0 && hi < math.MaxInt64) {
		return usageError("device compare: a rate of %g or %g B/s cannot be drawn", lo, hi)
	}
	// Whole decades, and at least one.
	lo, hi = math.Pow(10, math.Floor(math.Log10(lo))), math.Pow(10, math.Ceil(math.Log10(hi)))
	if hi <= lo {
		hi = 10 * lo
	}
	height := plotHeight + legendLine*float64(len(cmp.Devices))
	x := logScale(float64(cmp.Chunks[0]), float64(cmp.Chunks[len(cmp.Chunks)-1]), plotLeft,
		plotWidth-plotRight)
	y := logScale(lo, hi, plotHeight-plotBottom, plotTop)
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img" aria-label="throughput over read size"><style>%s</style>`+
			"\n"+`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n", coord(plotWidth),
		coord(height), plotStyle)
	for v := lo; v <= hi*1.001; v *= 10 {
		fmt.Fprintf(&b,
			`<line class="grid" x1="%s" y1="%s" x2="%s" y2="%s"/><text class="soft" text-anchor="end" x="%s" y="%s">%s</text>`+"\n",
			coord(plotLeft), coord(y(v)), coord(plotWidth-plotRight), coord(y(v)),
			coord(plotLeft-8), coord(y(v)+4), strconv.FormatFloat(v/1e9, 'g', -1, 64))
	}
	for _, chunk := range cmp.Chunks {
		fmt.Fprintf(&b, `<text class="soft" text-anchor="middle" x="%s" y="%s">%s</text>`+"\n",
			coord(x(float64(chunk))), coord(plotHeight-plotBottom+20), chunk)
	}
	fmt.Fprintf(&b,
		`<text x="%s" y="24">Throughput of random reads, GB/s. Numbers at the lines are depths; hollow points are covered by no measurement.</text><text class="soft" text-anchor="middle" x="%s" y="%s">read size</text>`+"\n",
		coord(plotLeft), coord((plotLeft+plotWidth-plotRight)/2), coord(plotHeight-16))
	for i := range cmp.Devices {
		drawDevice(&b, cmp, i, x, y)
		fmt.Fprintf(&b,
			`<line class="l d%d" x1="%s" y1="%s" x2="%s" y2="%s"/><text x="%s" y="%s">%s</text>`+"\n", i%plotColours,
			coord(plotLeft), coord(legendAt(i)-4), coord(plotLeft+24), coord(legendAt(i)-4),
			coord(plotLeft+32), coord(legendAt(i)), html.EscapeString(legend(&cmp.Devices[i])))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func legendAt(device int) float64 { return plotHeight + legendLine*float64(device) }

func legend(d *devicemodels.ComparedDevice) string {
	text := d.Name + ", " + d.Engines()
	if d.Unfitted != "" {
		text += "; not fitted"
	}
	return text
}

// drawDevice draws the lines of one device, their points, and at the left end of each its depth.
func drawDevice(b *strings.Builder, cmp *devicemodels.Comparison, device int, x,
	y func(float64) float64) {
	class, points := device%plotColours, cmp.Devices[device].Points
	for j, depth := range cmp.Depths {
		var line, dots strings.Builder
		for i, chunk := range cmp.Chunks {
			p := &points[i][j]
			px, py := coord(x(float64(chunk))), coord(y(float64(p.Rate)))
			line.WriteString(px + "," + py + " ")
			kind := "in"
			if p.Extrapolated {
				kind = "ex"
			}
			fmt.Fprintf(&dots,
				`<circle class="%s d%d" cx="%s" cy="%s" r="3"><title>%s</title></circle>`, kind,
				class, px, py,
				html.EscapeString(fmt.Sprintf("%s: %v at depth %d, %s: %v",
					cmp.Devices[device].Name, chunk, depth, p.Engine, p.Rate)))
		}
		fmt.Fprintf(b, `<polyline class="l d%d" points="%s"/>%s`+"\n", class,
			strings.TrimSpace(line.String()), dots.String())
	}
	height := func(j int) float64 { return y(float64(points[0][j].Rate)) }
	for from := 0; from < len(cmp.Depths); {
		to := from // lines that run together share a label
		for to+1 < len(cmp.Depths) && math.Abs(height(to+1)-height(from)) < labelHeight {
			to++
		}
		text := strconv.Itoa(cmp.Depths[from])
		if to > from {
			text += "-" + strconv.Itoa(cmp.Depths[to])
		}
		fmt.Fprintf(b, `<text class="t%d" x="%s" y="%s">%s</text>`+"\n", class,
			coord(x(float64(cmp.Chunks[0]))+6), coord(height(from)-8), text)
		from = to + 1
	}
}

// logScale maps the logarithm of lo…hi to a…b; a range of one value to its middle.
func logScale(lo, hi, a, b float64) func(float64) float64 {
	return func(v float64) float64 {
		if hi <= lo {
			return (a + b) / 2
		}
		return a + math.Log(v/lo)/math.Log(hi/lo)*(b-a)
	}
}

// coord writes a coordinate: two decimals are a fiftieth of a hair.
func coord(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }
