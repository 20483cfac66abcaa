package report

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

func parse(t *testing.T, page string) *html.Node {
	t.Helper()
	n, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// find returns the elements of a kind in the order of the page.
func find(n *html.Node, tag string) []*html.Node {
	var out []*html.Node
	for c := range n.Descendants() {
		if c.Type == html.ElementNode && c.Data == tag {
			out = append(out, c)
		}
	}
	return out
}

func text(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// exactOf are the numbers in a JSON form.
func exactOf(t *testing.T, text string) *Exact {
	t.Helper()
	var doc struct {
		Schema, Tool, Command string
		Result                Exact
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "windrow/report/1" || doc.Tool == "" || doc.Command == "" {
		t.Errorf("schema %q, tool %q, command %q", doc.Schema, doc.Tool, doc.Command)
	}
	return &doc.Result
}

// embedded is the document in the page.
func embedded(t *testing.T, page *html.Node) *Exact {
	t.Helper()
	for _, s := range find(page, "script") {
		if attr(s, "id") == "data" {
			return exactOf(t, text(s))
		}
	}
	t.Fatal("no embedded document")
	return nil
}

func cells(table *html.Node) (caption string, heads []string, rows [][]string) {
	caption = text(find(table, "caption")[0])
	for _, h := range find(table, "th") {
		heads = append(heads, text(h))
	}
	for _, r := range find(find(table, "tbody")[0], "tr") {
		var row []string
		for _, c := range find(r, "td") {
			row = append(row, text(c))
		}
		rows = append(rows, row)
	}
	return caption, heads, rows
}

func TestHTMLIsSelfContained(t *testing.T) {
	out := render(t, writeHTMLOf, makeData(t, 40))
	if strings.Contains(out, "http://") || strings.Contains(out, "https://") {
		t.Error("the page names an address")
	}
	for n := range parse(t, out).Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if slices.Contains([]string{"link", "img", "iframe", "object", "embed", "base", "form",
			"image", "use"}, n.Data) {
			t.Errorf("element %s", n.Data)
		}
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "href" || strings.HasPrefix(a.Key, "on") ||
				a.Key == "style" {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		}
	}
	if strings.Contains(pageCSS, "url(") || strings.Contains(pageCSS, "@import") ||
		strings.Contains(pageJS, "fetch(") {
		t.Error("the style sheet or the script loads something")
	}
	// What the template engine refuses to write it replaces by this word.
	if strings.Contains(out, "ZgotmplZ") {
		t.Error("the template engine refused a value")
	}
}

// The tables of the page, of its own JSON and of the JSON twin are the same.
func TestHTMLTablesEqualJSON(t *testing.T) {
	d := makeData(t, 40)
	page := parse(t, render(t, writeHTMLOf, d))
	twin := exactOf(t, render(t, writeJSONOf, d))
	undefined := cmp.Comparer(func(a, b compare.Stat) bool {
		return a == b || !a.Defined() &&
			!b.Defined()
	})
	in := embedded(t, page)
	// The twin is indented, and with it the configuration, which is kept as text.
	for i := range twin.Runs {
		twin.Runs[i].Meta.Config, in.Runs[i].Meta.Config = nil, nil
	}
	if diff := cmp.Diff(twin, in, undefined); diff != "" {
		t.Errorf("the embedded document is not the JSON twin:\n%s", diff)
	}
	tables := find(page, "table")
	if len(tables) != len(twin.Tables)+1 {
		t.Fatalf("%d tables on the page, %d in the JSON and one of tokens", len(tables),
			len(twin.Tables))
	}
	for i, s := range twin.Tables {
		caption, heads, rows := cells(tables[i])
		if caption != s.Title || !slices.Equal(heads, s.Table.Heads()) {
			t.Errorf("table %d is %q %q, want %q %q", i, caption, heads, s.Title, s.Table.Heads())
		}
		if diff := cmp.Diff(s.Table.Rows, rows); diff != "" {
			t.Errorf("%s:\n%s", s.Title, diff)
		}
	}
	_, _, rows := cells(tables[len(tables)-1])
	if len(rows) != 40 {
		t.Fatalf("%d tokens", len(rows))
	}
	a, b := twin.Runs[0].Tokens, twin.Runs[1].Tokens
	for i, r := range rows {
		want := []string{strconv.Itoa(i), phaseName(traces.Phase(a.Phase[i])),
			Sig3(float64(a.Latency[i]) / 1e6), Sig3(float64(a.Bytes[i]) / 1e6),
			Sig3(float64(b.Latency[i]) / 1e6), Sig3(float64(b.Bytes[i]) / 1e6)}
		if !slices.Equal(want, r) {
			t.Fatalf("token %d: %q, want %q", i, r, want)
		}
	}
}

// The printed tables say what the Comparison says.
func TestTablesEqualComparison(t *testing.T) {
	d := makeData(t, 40)
	doc, err := d.Document()
	if err != nil {
		t.Fatal(err)
	}
	section := func(title string) [][]string {
		for _, s := range doc.Sections {
			if s.Title == title {
				return s.Table.Rows
			}
		}
		t.Fatalf("no table %q", title)
		return nil
	}
	x := d.Comparison
	if got := section("Simulated against measured"); len(got) != 5 ||
		got[0][1] != Sig3(x.SimulatedTokensPerS) ||
		got[0][3] != signed(compare.Stat(x.ErrorPercent)) ||
		got[3][2] != ms(x.Percentiles[2].Measured) || got[3][4] != "15.0" ||
		got[4][1] != Sig3(float64(x.PearsonR)) {
		t.Errorf("errors: %q", got)
	}
	parts := section("Parts of a token")
	if len(parts) != traces.Parts+1 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, p := range append(slices.Clone(x.Parts), x.Total) {
		want := []string{p.Part, ms(p.Simulated), ms(p.Measured), signed(p.Bias),
			Sig3(float64(p.MAPE)), strconv.Itoa(p.MAPETokens)}
		if !slices.Equal(parts[i], want) {
			t.Errorf("%q, want %q", parts[i], want)
		}
	}
	// The table of runs leaves out the same warm-up as the comparison.
	if got := section("Runs"); got[0][2] != Sig3(x.SimulatedTokensPerS) ||
		got[1][2] != Sig3(x.MeasuredTokensPerS) || got[1][7] != ms(x.Percentiles[2].Measured) {
		t.Errorf("runs: %q", got)
	}
}

func TestHTMLEscapesHostileText(t *testing.T) {
	const evil = `</script></title></style><script>alert(1)</script><img src=x onerror=alert(1)>"'&<!--`
	d := makeData(t, 10)
	d.Title, d.Generated = evil, evil
	d.Facts = []document.Fact{{Key: evil, Value: evil}}
	d.Warnings = []string{evil}
	d.Runs[0].Label, d.Runs[1].Label = evil, evil
	d.Runs[0].Run.Meta.Model, d.Runs[0].Run.Meta.Config = evil,
		json.RawMessage(`"</script><script>alert(1)</script>"`)
	d.Comparison.Reasons = []string{evil}
	d.Tables[0].Title, d.Tables[0].Note = evil, evil
	d.Tables[0].Table.Columns[0] = document.Column{Name: evil, Unit: evil}
	d.Tables[0].Table.Rows[0][0] = evil
	page := parse(t, render(t, writeHTMLOf, d))
	plain := parse(t, render(t, writeHTMLOf, makeData(t, 10)))
	for _, tag := range []string{"script", "img", "style", "title"} {
		want := len(find(plain, tag))
		if got := len(find(page, tag)); got != want {
			t.Errorf("%d elements %s, want %d", got, tag, want)
		}
	}
	if got := text(find(page, "h1")[0]); got != evil {
		t.Errorf("title %q", got)
	}
	if doc := embedded(t, page); doc.Title != evil || doc.Runs[0].Label != evil {
		t.Error("the document does not hold the text as it was")
	}
	if md := render(t, writeMarkdownOf, d); strings.Contains(md, "<script") ||
		strings.Contains(md, "<img") {
		t.Error("Markdown passes HTML on")
	}
}

func TestHTMLSize(t *testing.T) {
	d := makeData(t, 256)
	if n := len(render(t, writeHTMLOf, d)); n >= 300_000 {
		t.Errorf("%d bytes for 256 tokens", n)
	} else {
		t.Logf("%d bytes for 256 tokens", n)
	}
}

// box is one bar of a path, with its corners in view-box units.
type box struct{ left, bottom, width, top float64 }

func boxes(t *testing.T, path *html.Node) []box {
	t.Helper()
	var out []box
	d, width := attr(path, "d"), number(t, attr(path, "stroke-width"))
	re := regexp.MustCompile(`M([-\d.]+) ([-\d.]+)V([-\d.]+)`)
	for _, m := range re.FindAllStringSubmatch(d, -1) {
		out = append(out, box{number(t, m[1]) - width/2, number(t, m[2]), width, number(t, m[3])})
	}
	if rest := re.ReplaceAllString(d, ""); rest != "" {
		t.Errorf("path has more than bars: %q", rest)
	}
	return out
}

// The timeline is within its frame, bars stack without gaps, and heights are proportional to the
// times in the document, with one scale for both runs.
func TestTimelineGeometry(t *testing.T) {
	page := parse(t, render(t, writeHTMLOf, makeData(t, 40)))
	doc := embedded(t, page)
	var perMilli float64
	seen := 0
	for _, svg := range find(page, "svg") {
		if attr(svg, "class") != "timeline" {
			continue
		}
		seen++
		run := doc.Runs[int(number(t, attr(svg, "data-run")))]
		y0, y1 := number(t, attr(svg, "data-y0")), number(t, attr(svg, "data-y1"))
		x0, x1 := number(t, attr(svg, "data-x0")), number(t, attr(svg, "data-x1"))
		stack := make([]float64, 40)
		for i := range stack {
			stack[i] = y1
		}
		paths := 0
		for _, p := range find(svg, "path") {
			class := attr(p, "class")
			if class == "latency" {
				continue
			}
			part := traces.Part(class[1] - '0')
			bars := boxes(t, p)
			if len(bars) != 40 {
				t.Fatalf("%s has %d bars", part, len(bars))
			}
			paths++
			for i, b := range bars {
				if b.left < x0 || b.left+b.width > x1+0.01 || b.top < y0-0.01 ||
					b.bottom > y1+0.01 || b.top > b.bottom {
					t.Fatalf("%s of token %d is outside the frame: %+v", part, i, b)
				}
				if math.Abs(b.bottom-stack[i]) > 0.011 {
					t.Fatalf("%s of token %d begins at %v, the part below ends at %v", part, i,
						b.bottom, stack[i])
				}
				stack[i] = b.top
				ms := float64(run.Tokens.Parts[part.String()][i]) / 1e6
				if perMilli == 0 {
					perMilli = (b.bottom - b.top) / ms
				}
				if want := ms * perMilli; math.Abs(b.bottom-b.top-want) > 0.03+0.03*want {
					t.Fatalf("%s of token %d is %v high for %v ms, want %v", part, i,
						b.bottom-b.top, ms, want)
				}
			}
		}
		if paths != traces.Parts {
			t.Errorf("%d parts drawn", paths)
		}
	}
	if seen != 2 {
		t.Errorf("%d timelines", seen)
	}
}

// The points of the scatter are where the latencies say, inside the frame, on square axes.
func TestScatterGeometry(t *testing.T) {
	page := parse(t, render(t, writeHTMLOf, makeData(t, 40)))
	doc := embedded(t, page)
	svg := find(page, "svg")[2]
	dots := find(svg, "circle")
	if len(dots) != 40 {
		t.Fatalf("%d points", len(dots))
	}
	ideal := find(svg, "line")
	var x1, y1, x2, y2 float64
	for _, l := range ideal {
		if attr(l, "class") == "ideal" {
			x1, y1, x2, y2 = number(t, attr(l, "x1")), number(t, attr(l, "y1")),
				number(t, attr(l, "x2")), number(t, attr(l, "y2"))
		}
	}
	warm := 0
	all := slices.Concat(doc.Runs[0].Tokens.Latency, doc.Runs[1].Tokens.Latency)
	lo, hi := float64(slices.Min(all)), float64(slices.Max(all))
	lo, hi = lo-0.05*(hi-lo), hi+0.05*(hi-lo)
	for i, c := range dots {
		x := x1 + (x2-x1)*(float64(doc.Runs[1].Tokens.Latency[i])-lo)/(hi-lo)
		y := y1 + (y2-y1)*(float64(doc.Runs[0].Tokens.Latency[i])-lo)/(hi-lo)
		if math.Abs(number(t, attr(c, "cx"))-x) > 0.02 ||
			math.Abs(number(t, attr(c, "cy"))-y) > 0.02 {
			t.Fatalf("token %d is at (%s, %s), want (%.2f, %.2f)", i, attr(c, "cx"), attr(c, "cy"),
				x, y)
		}
		if strings.Contains(attr(c, "class"), "warm") {
			warm++
		}
	}
	if warm != doc.Comparison.SkippedTokens {
		t.Errorf("%d warm-up points for %d tokens", warm, doc.Comparison.SkippedTokens)
	}
}

// Long runs are drawn as means: bars stay at most maxBars, and their mean is the mean of the run.
func TestLongRunsAreBinned(t *testing.T) {
	for _, n := range []int{1, 511, 512, 513, 1024, 5000} {
		tokens := make([]compare.Token, n)
		var sum float64
		for i := range tokens {
			tokens[i].Latency = 1e6 * (1 + 3)
			tokens[i].Parts[traces.PartIO] = 3e6
			sum += 4
		}
		b := newBins(tokens)
		if len(b.latency) > maxBars || (len(b.latency)-1)*b.size >= n || len(b.latency)*b.size < n {
			t.Errorf("%d tokens: %d bars of %d", n, len(b.latency), b.size)
		}
		if b.top() != 4 || len(b.parts[traces.PartIO]) != len(b.latency) ||
			b.parts[traces.PartIO][len(b.latency)-1] != 3 {
			t.Errorf("%d tokens: top %v", n, b.top())
		}
	}
}

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		lo, hi, n, finest float64
		want              []float64
	}{
		{0, 10, 5, 0, []float64{0, 2, 4, 6, 8, 10}},
		{0, 7, 5, 0, []float64{0, 2, 4, 6}},
		{0, 256, 8, 1, []float64{0, 50, 100, 150, 200, 250}},
		{0, 3.5, 8, 1, []float64{0, 1, 2, 3}}, // four bars
		{1.33, 1.68, 6, 0, []float64{1.4, 1.5, 1.6}},
		{0, 0, 5, 1, nil},
		{0, math.Inf(1), 5, 0, nil},
	} {
		got := ticks(tc.lo, tc.hi, tc.n, tc.finest)
		if !slices.EqualFunc(got, tc.want, func(a, b float64) bool {
			return math.Abs(a-b) < 1e-9
		}) {
			t.Errorf("ticks(%v, %v): %v, want %v", tc.lo, tc.hi, got, tc.want)
		}
	}
	for hi := 1e-7; hi < 1e12; hi *= 1.7 {
		v := ticks(0, hi, 5, 0)
		if len(v) < 3 || len(v) > 8 || v[len(v)-1] > hi*1.0001 || tickLabel(v[0]) != "0" {
			t.Errorf("ticks up to %v: %v", hi, v)
		}
	}
}

// Charts can be reached and read without a pointer, and tables name their columns.
func TestHTMLAccessibility(t *testing.T) {
	page := parse(t, render(t, writeHTMLOf, makeData(t, 20)))
	for _, svg := range find(page, "svg") {
		if attr(svg, "role") != "img" || attr(svg, "aria-label") == "" {
			t.Error("a chart without a label")
		}
		if attr(svg, "class") == "timeline" && attr(svg, "tabindex") != "0" {
			t.Error("a timeline that the keyboard does not reach")
		}
	}
	for _, th := range find(page, "th") {
		if attr(th, "scope") != "col" {
			t.Error("a head without a scope")
		}
	}
	ids := map[string]bool{}
	for n := range page.Descendants() {
		if id := attr(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("id %q twice", id)
			}
			ids[id] = true
		}
	}
	if attr(find(page, "html")[0], "lang") == "" {
		t.Error("no language")
	}
	for _, v := range []struct{ verdict, class string }{{"pass", "pass"}, {"device too noisy",
		"noisy"}, {"outside tolerance", "outside"}} {
		d := makeData(t, 10)
		d.Comparison.Verdict = compare.Verdict(v.verdict)
		want := fmt.Sprintf(`<p class="verdict %s">Verdict: <strong>%s</strong></p>`, v.class,
			v.verdict)
		if !strings.Contains(render(t, writeHTMLOf, d), want) {
			t.Errorf("no %s", want)
		}
	}
}
