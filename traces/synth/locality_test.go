package synth

import (
	"cmp"
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// figure is a row of routing.csv: a published figure of a model.
type figure struct {
	model, quantity, layer  string
	slots                   float64 // experts per layer
	from, tokens, sequences int     // what is counted: tokens from..tokens of each text
	percent                 float64
	use, source, note       string
}

func (f *figure) fitted() bool { return f.use == "fit" }

// excluded reports whether a rule, named in use, keeps the figure out of the comparison.
func (f *figure) excluded() bool { return strings.HasPrefix(f.use, "excluded: ") }

// hits reports whether the figure is a hit ratio.
func (f *figure) hits() bool { return f.quantity == "lru" || f.quantity == "belady" }

func figures(t *testing.T) []figure {
	t.Helper()
	text, err := os.ReadFile("routing.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(cmp.Or(s, "0"), 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	var list []figure
	for _, l := range lines[1:] {
		list = append(list, figure{model: l[0], quantity: l[1], slots: number(l[2]), layer: l[3],
			from: int(number(l[4])), tokens: int(number(l[5])), sequences: int(number(l[6])),
			percent: number(l[7]), use: l[8], source: l[9], note: l[11]})
	}
	return list
}

func routerNamed(t *testing.T, name string) router {
	t.Helper()
	for _, r := range routers() {
		if r.model == name {
			return r
		}
	}
	t.Fatalf("no router of %s", name)
	return router{}
}

// routed makes the masks of a router, (layer, sequence, token).
func routed(t *testing.T, r router, seed uint64, layers, sequences, tokens int) [][][]mask.Mask {
	t.Helper()
	p := &plan{opt: Options{Tokens: tokens, Sequences: sequences, Seed: seed},
		header: traces.Header{Layers: layers, Units: r.experts},
		routed: r.layers(seed, layers, r.experts, r.picked)}
	list := make([][][]mask.Mask, layers)
	for l := range list {
		list[l] = make([][]mask.Mask, sequences)
	}
	err := p.route(t.Context(), func(tok *traces.Token) error {
		for l, m := range tok.Active {
			list[l][tok.Seq] = append(list[l][tok.Seq], m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// hitRatio is the share of uses that a policy finds in memory, from the token from on, in percent.
// Engines replace while they fetch the experts of a token: lru is asked for one expert after the
// other. The bound keeps what it likes from one token to the next.
func hitRatio(t *testing.T, layers [][][]mask.Mask, experts int, f *figure) float64 {
	t.Helper()
	hits, uses := 0, 0
	single := make([]mask.Mask, experts)
	for e := range single {
		single[e] = mask.New(experts)
		single[e].Set(uint32(e))
	}
	for _, texts := range layers {
		var steps []mask.Mask
		var counts []bool
		for _, text := range texts {
			for i, m := range text {
				if f.quantity != "lru" {
					steps, counts = append(steps, m), append(counts, i >= f.from)
					continue
				}
				for e := range m.Each {
					steps, counts = append(steps, single[e]), append(counts, i >= f.from)
				}
			}
		}
		p, err := policy.New(policy.Spec{Kind: f.quantity, Capacity: int(f.slots)}, experts,
			policy.Options{Future: slices.Values(steps)})
		if err != nil {
			t.Fatal(err)
		}
		var d policy.Decision
		for i, m := range steps {
			p.Step(m, &d)
			if counts[i] {
				hits += d.Hits
				uses += d.Hits + len(d.Load)
			}
		}
	}
	return 100 * float64(hits) / float64(uses)
}

// repetition is the share of uses of an expert that one of the last n tokens used, in percent.
func repetition(layers [][][]mask.Mask, experts, n, from int) float64 {
	again, uses := 0, 0
	last := make([]int, experts) // token after the last use; 0 = none
	for _, texts := range layers {
		for _, text := range texts {
			clear(last)
			for i, m := range text {
				for e := range m.Each {
					if i >= from && i > 0 {
						uses++
						if last[e] > 0 && i+1-last[e] <= n {
							again++
						}
					}
					last[e] = i + 1
				}
			}
		}
	}
	return 100 * float64(again) / float64(uses)
}

// value is what the process of a router gives for a figure, in percent.
func value(t *testing.T, r router, f *figure, seed uint64, layers int) float64 {
	t.Helper()
	masks := func() [][][]mask.Mask {
		return routed(t, r, seed, layers, f.sequences, f.tokens)
	}
	switch f.quantity {
	case "lru", "belady":
		return hitRatio(t, masks(), r.experts, f)
	case "repetition":
		return repetition(masks(), r.experts, 1, f.from)
	case "within_8":
		return repetition(masks(), r.experts, 8, f.from)
	case "use_of_top":
		sum := 0.0
		for i, share := range r.use(r.experts, r.picked) {
			sum += share * math.Max(0, math.Min(1, f.slots-float64(i)))
		}
		return 100 * sum / float64(r.picked)
	case "shared_by_strangers":
		sum := 0.0
		for _, share := range r.use(r.experts, r.picked) {
			sum += share * share
		}
		return 100 * sum / float64(r.picked)
	}
	t.Fatalf("routing.csv: %s is not a quantity", f.quantity)
	return 0
}

const (
	fitSeed, fitLayers     = 1, 3
	tableSeed, tableLayers = 2, 8
	layersOfOLMoE          = 16 // the model whose repetitions by layer are in routing.csv
)

// round rounds to significant digits, as parameters are written.
func round(v float64, digits int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return r
}

// fit searches the parameters of a router for its fitted figures: first the popularity, if one is
// published, then the four of the drift by steps of falling size, at last the factors of layers.
func fit(t *testing.T, r router, all []figure) router {
	t.Helper()
	var drift, byLayer []figure
	for _, f := range all {
		switch {
		case f.model != r.model || !f.fitted():
		case f.quantity == "use_of_top":
			r.popularity = round(bisect(1e-4, 0.9, f.percent, func(y float64) float64 {
				r.popularity = y
				return value(t, r, &f, fitSeed, 1)
			}), 3)
		case f.layer != "" && f.layer != "mean":
			byLayer = append(byLayer, f)
		default:
			drift = append(drift, f)
		}
	}
	r.depth = nil
	r = fitDrift(t, r, drift)
	if len(byLayer) == 0 {
		return r
	}
	for _, f := range byLayer {
		var layer int
		if _, err := fmt.Sscan(f.layer, &layer); err != nil {
			t.Fatal(err)
		}
		r.depth = append(r.depth, depthFactor{round(depthOf(layer-1, layersOfOLMoE), 3),
			factor(t, r, f.percent, func(r router) float64 {
				return value(t, r, &f, fitSeed, 1)
			})})
	}
	return r
}

// factor is that of a single layer whose value is wanted, to two decimals.
func factor(t *testing.T, r router, want float64, value func(router) float64) float64 {
	t.Helper()
	lo, hi := 0, 160
	for lo < hi {
		mid := (lo + hi) / 2
		r.depth = []depthFactor{{0, float64(mid) / 100}}
		if value(r) < want {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return float64(lo) / 100
}

// fitDrift goes from a fixed start in steps of one parameter to the smallest sum of squares.
func fitDrift(t *testing.T, r router, list []figure) router {
	t.Helper()
	const longest = 1000 // tokens: no fitted figure is of a longer text
	const most = 0.8     // of the variance: layers differ from the mean, and need the rest
	r.topic, r.context, r.topicTokens, r.contextTokens = 0.4, 0.3, 200, 2
	loss := func(r router) float64 {
		if r.topic <= 0 || r.context <= 0 || r.popularity+r.topic+r.context > most ||
			r.topicTokens > longest {
			return math.Inf(1)
		}
		made := map[[2]int][][][]mask.Mask{}
		sum := 0.0
		for _, f := range list {
			key := [2]int{f.sequences, f.tokens}
			if made[key] == nil {
				made[key] = routed(t, r, fitSeed, fitLayers, f.sequences, f.tokens)
			}
			var got float64
			switch f.quantity {
			case "repetition":
				got = repetition(made[key], r.experts, 1, f.from)
			case "within_8":
				got = repetition(made[key], r.experts, 8, f.from)
			default:
				got = hitRatio(t, made[key], r.experts, &f)
			}
			sum += (got - f.percent) * (got - f.percent)
		}
		return sum
	}
	best := loss(r)
	const least = 0.008
	for step := 0.08; step > least; {
		improved := false
		for _, move := range moves() {
			if improved && move.pair() {
				break // pairs are for what no single parameter improves
			}
			times := func(i int) float64 { return math.Pow(1+5*step, move[i]) }
			q := r
			q.topic = round(r.topic+move[0]*step, 3)
			q.context = round(r.context+move[1]*step, 3)
			q.topicTokens = round(r.topicTokens*times(2), 3)
			q.contextTokens = round(r.contextTokens*times(3), 3)
			if l := loss(q); l < best {
				best, r, improved = l, q, true
			}
		}
		if !improved {
			step /= 2
		}
	}
	t.Logf("%s: root of the mean square %.2f points", r.model,
		math.Sqrt(best/float64(len(list))))
	return r
}

// move says by how many steps topic, context, topicTokens and contextTokens change.
type move [4]float64

// pair reports whether two parameters change.
func (m move) pair() bool {
	return math.Abs(m[0])+math.Abs(m[1])+math.Abs(m[2])+math.Abs(m[3]) > 1
}

// moves lists those of one parameter, then those of two.
func moves() []move {
	var single, pairs []move
	for i := range 4 {
		for _, a := range []float64{1, -1} {
			var m move
			m[i] = a
			single = append(single, m)
			for j := range i {
				for _, b := range []float64{1, -1} {
					two := m
					two[j] = b
					pairs = append(pairs, two)
				}
			}
		}
	}
	return append(single, pairs...)
}

// fitMixtral fits what is published of Mixtral-8x7B, its repetitions by depth, with the drift of
// another router.
func fitMixtral(t *testing.T, r, drift router) router {
	t.Helper()
	r.topic, r.context, r.topicTokens, r.contextTokens = drift.topic, drift.context,
		drift.topicTokens, drift.contextTokens
	targets, err := Targets(r.model)
	if err != nil {
		t.Fatal(err)
	}
	common := func(r router) float64 { return commonExpert(routed(t, r, fitSeed, 1, 1, 20000)) }
	r.depth = []depthFactor{{0, 0}}
	for i, target := range targets {
		if i == 0 {
			lo, hi := 0, 200
			for lo < hi {
				mid := (lo + hi) / 2
				if r.popularity = float64(mid) / 1000; common(r) < target.Percent {
					lo = mid + 1
				} else {
					hi = mid
				}
			}
			r.popularity = float64(lo) / 1000
			continue
		}
		var layer int
		if _, err := fmt.Sscan(target.Layer, &layer); err != nil {
			t.Fatal(err)
		}
		r.depth = append(r.depth, depthFactor{round(depthOf(layer-1, 32), 3),
			factor(t, r, target.Percent, common)})
	}
	return r
}

// commonExpert is the share of tokens that have an expert in common with the one before, in
// percent, of a trace of up to 64 experts.
func commonExpert(layers [][][]mask.Mask) float64 {
	common, tokens := 0, 0
	for _, texts := range layers {
		for _, text := range texts {
			for i := 1; i < len(text); i++ {
				tokens++
				if bits.OnesCount64(text[i][0]&text[i-1][0]) > 0 {
					common++
				}
			}
		}
	}
	return 100 * float64(common) / float64(tokens)
}

// compared is a figure beside what the process gives for it.
type compared struct {
	figure
	got float64
}

func (c *compared) row() string {
	slots, counted := "", ""
	if c.slots > 0 {
		slots = strconv.FormatFloat(round(c.slots, 3), 'g', -1, 64)
	}
	if c.tokens > 0 {
		counted = fmt.Sprintf("%d to %d", c.from+1, c.tokens)
	}
	if c.sequences > 1 {
		counted += fmt.Sprintf(", %d texts", c.sequences)
	}
	name := map[string]string{"use_of_top": "use of the most used", "shared_by_strangers": "used " +
		"by another token", "within_8": "used by one of 8 before",
		"repetition": "used by the one before"}[c.quantity]
	if c.layer != "" && c.layer != "mean" {
		name += ", layer " + c.layer
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %.1f | %.1f | %+.1f | %s | %s |", c.model,
		cmp.Or(name, c.quantity), slots, counted, c.percent, c.got, c.got-c.percent, c.use,
		c.source)
}

// compare measures every figure that is not excluded, with another seed than the fit's.
func compare(t *testing.T) []compared {
	t.Helper()
	var list []compared
	for _, f := range figures(t) {
		if f.excluded() {
			continue
		}
		r := routerNamed(t, f.model)
		layers := tableLayers
		if layer, err := strconv.Atoi(f.layer); err == nil {
			r.topic, r.context = r.at(depthOf(layer-1, layersOfOLMoE))
			r.depth, layers = nil, 2
		}
		list = append(list, compared{f, value(t, r, &f, tableSeed, layers)})
	}
	return list
}

// localityTable is the part of docs/validation.md that TestLocality holds.
func localityTable(t *testing.T, list []compared, all []figure) string {
	t.Helper()
	var b strings.Builder
	for _, kind := range []struct{ use, words string }{
		{"fit", "fitted"},
		{"same run", "not fitted, but of a run of which others are"},
		{"held out", "of other runs, held out"},
	} {
		n, sum, worst := 0, 0.0, 0.0
		for _, c := range list {
			if c.use == kind.use && c.hits() {
				n++
				sum += math.Abs(c.got - c.percent)
				worst = math.Max(worst, math.Abs(c.got-c.percent))
			}
		}
		fmt.Fprintf(&b, "- %d hit ratios %s: off by %.1f points in the mean, %.1f at worst\n", n,
			kind.words, sum/float64(n), worst)
	}
	b.WriteString("\n| model | quantity | slots | tokens | published (%) | synthetic (%) " +
		"| points | use | source |\n|---|---|---:|---|---:|---:|---:|---|---|\n")
	for _, c := range list {
		b.WriteString(c.row() + "\n")
	}
	b.WriteString("\nExcluded, by the rules above. Synthetic is lru with as many slots, tokens 101 to " +
		"400:\n\n| model | policy | slots | published (%) | synthetic (%) | rule | source | note |\n" +
		"|---|---|---:|---:|---:|---|---|---|\n")
	for _, f := range all {
		if !f.excluded() {
			continue
		}
		plain := f
		plain.quantity, plain.from, plain.tokens, plain.sequences = "lru", 100, 400, 1
		got := value(t, routerNamed(t, f.model), &plain, tableSeed, tableLayers)
		fmt.Fprintf(&b, "| %s | %s | %g | %.1f | %.1f | %s | %s | %s |\n", f.model, f.quantity,
			f.slots, f.percent, got, strings.TrimPrefix(f.use, "excluded: "), f.source, f.note)
	}
	return b.String()
}

// TestLocality compares every published figure with what the process gives: a fitted one within 5
// points, another within 10. The table is that of docs/validation.md; with -update it is written.
func TestLocality(t *testing.T) {
	list := compare(t)
	limits := map[string]float64{"fit": 5, "same run": 5, "held out": 10}
	for _, c := range list {
		limit, known := limits[c.use]
		if !known || math.Abs(c.got-c.percent) > limit {
			t.Errorf("off by more than %g points: %s", limit, c.row())
		}
	}
	const doc = "../../docs/validation.md"
	const begin, end = "<!-- experts: begin -->\n", "<!-- experts: end -->\n"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q", doc, begin)
	}
	want := localityTable(t, list, figures(t))
	if *update {
		err := os.WriteFile(doc, []byte(before+begin+want+end+after), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	} else if d := gocmp.Diff(strings.Split(want, "\n"), strings.Split(table, "\n")); d != "" {
		t.Errorf("%s: the table is another; make golden writes it (-now +doc):\n%s", doc, d)
	}
}

var update = flag.Bool("update", false, "rewrite the table of docs/validation.md")

// TestFittedRouters repeats the fits: the parameters are those that the search finds.
func TestFittedRouters(t *testing.T) {
	all := figures(t)
	var olmoe router
	for _, r := range routers()[1:] {
		got := fit(t, r, all)
		if r.model == fallbackRouter {
			olmoe = got
		}
		if !same(got, r) {
			t.Errorf("the fit gives %+v\nrouters has %+v", got, r)
		}
	}
	r := routers()[0]
	if got := fitMixtral(t, r, olmoe); !same(got, r) {
		t.Errorf("the fit gives %+v\nrouters has %+v", got, r)
	}
}

func same(a, b router) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }
