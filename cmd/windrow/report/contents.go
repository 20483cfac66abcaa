package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// Contents is a report in words and tables, the same for every format.
type Contents struct {
	Verdict  string // empty without a comparison
	Reasons  []string
	Warnings []string
	Facts    []KV
	Sanity   []string
	Summary  []Section // a screenful
	Details  []Section // trace statistics and whatever the caller added
}

// Contents checks d and lays it out.
func (d *Data) Contents() (*Contents, error) {
	runs, err := d.series()
	if err != nil {
		return nil, err
	}
	return d.contents(runs), nil
}

func (d *Data) contents(runs []series) *Contents {
	c := &Contents{Warnings: d.warnings(runs), Facts: append(d.Facts[:len(d.Facts):len(d.Facts)],
		slices.Concat(predictions(runs), readAhead(runs), headroom(runs))...)}
	for _, s := range d.sanity(runs) {
		c.Sanity = append(c.Sanity, s.line())
		if w := s.warning(); w != "" {
			c.Warnings = append(c.Warnings, w)
		}
	}
	if len(runs) > 0 {
		c.Summary = append(c.Summary, d.runsSection(runs))
	}
	if d.Comparison != nil {
		c.Verdict = string(d.Comparison.Verdict)
		c.Reasons = d.Comparison.Reasons
		c.Summary = append(c.Summary, errorsSection(d.Comparison), partErrorsSection(d.Comparison),
			d.countersSection(runs))
		if d.Comparison.DifferencesTotal > 0 {
			c.Summary = append(c.Summary, differencesSection(d.Comparison))
		}
	} else if len(runs) > 0 {
		c.Summary = append(c.Summary, partsSection(runs))
	}
	if slices.ContainsFunc(runs, func(s series) bool { return s.run.Meta.Phases != nil }) {
		c.Summary = append(c.Summary, d.phasesSection(runs))
	}
	if d.Trace != nil {
		c.Details = d.Trace.sections()
	}
	c.Details = append(c.Details, d.Tables...)
	return c
}

// predictions says of every simulated run how far to trust it.
func predictions(runs []series) (facts []KV) {
	for _, s := range runs {
		p := s.run.Meta.Prediction
		if p == nil {
			continue
		}
		key := func(what string) string {
			if len(runs) > 1 {
				return what + " of " + s.name()
			}
			return what
		}
		facts = append(facts, KV{key("prediction"), rangeOf(p)}, KV{key("compute"),
			strings.Join(p.Compute, "; ")})
		if p.TokensPerSPrefetched != nil {
			facts = append(facts, KV{key("with all reads during compute"), "at most " +
				Sig3(*p.TokensPerSPrefetched) + " tokens/s"})
		}
		for _, n := range p.Notes {
			facts = append(facts, KV{key("note"), n})
		}
	}
	return facts
}

// readAhead says of every run with a schedule what reading ahead did.
func readAhead(runs []series) (facts []KV) {
	for i := range runs {
		s := &runs[i]
		a := s.run.Meta.Ahead
		if a == nil {
			continue
		}
		key := "reading ahead"
		if len(runs) > 1 {
			key += " of " + s.name()
		}
		tokens := float64(len(s.tokens))
		text := fmt.Sprintf("%s; %s ms/token of reads beside compute, which loses %s ms to them "+
			"and to moving their rows; %s MB/token in %s chunks/token",
			a.Schedule, ms(float64(a.Hidden)/tokens), ms(float64(a.Slowed)/tokens),
			Sig3(float64(a.Bytes)/tokens/1e6), Sig3(float64(a.Chunks)/tokens))
		if a.Wasted > 0 {
			text += fmt.Sprintf(", %s MB of them for nothing", Sig3(float64(a.Wasted)/tokens/1e6))
		}
		if n := a.Named + a.Missed; a.Missed > 0 {
			text += fmt.Sprintf("; %s %% of the loads were not foreseen",
				Sig3(100*float64(a.Missed)/float64(n)))
		}
		reader, compute := busy(s.run)
		text += fmt.Sprintf("; the reader is busy %s %% of the time, compute %s %%",
			Sig3(100*reader), Sig3(100*compute))
		facts = append(facts, KV{key, text})
	}
	return facts
}

// busy is the share of a run's time in which its reader reads, and in which something is computed
// or moved instead of waited for.
func busy(run *traces.Run) (reader, compute float64) {
	var total units.Nanos
	for _, part := range run.Meta.Totals.PartNanos {
		total += part
	}
	if total == 0 {
		return 0, 0
	}
	waited := run.Meta.Totals.PartNanos[traces.PartIO]
	return float64(waited+run.Meta.Ahead.Hidden) / float64(total), float64(total-waited) /
		float64(total)
}

// headroom says of every run what its policy read beside the least possible.
func headroom(runs []series) (facts []KV) {
	for i := range runs {
		s := &runs[i]
		h := s.run.Meta.Headroom
		if h == nil || h.Least == 0 {
			continue
		}
		key := "head-room"
		if len(runs) > 1 {
			key += " of " + s.name()
		}
		tokens := float64(len(s.tokens))
		facts = append(facts, KV{key, fmt.Sprintf("%s loads %s units/token; knowing the future, "+
			"in the same memory, %s would do (1/%s of it)",
			h.Policy, Sig3(float64(h.Loads)/tokens), Sig3(float64(h.Least)/tokens), Sig3(h.Ratio))})
	}
	return facts
}

// rangeOf is the interval of a prediction in words, with what it rests on.
func rangeOf(p *traces.Prediction) string {
	text := string(p.Basis)
	switch {
	case p.TokensPerSHigh == nil:
	case p.TokensPerSLow == nil:
		text = fmt.Sprintf("at most %s tokens/s (%s)", Sig3(*p.TokensPerSHigh), p.Basis)
	default:
		text = fmt.Sprintf("%s to %s tokens/s, nine times in ten (%s)", Sig3(*p.TokensPerSLow),
			Sig3(*p.TokensPerSHigh), p.Basis)
	}
	for _, part := range []struct {
		name    string
		percent *float64
	}{{"flash", p.IOPercent}, {"host", p.HostPercent}} {
		if part.percent != nil {
			text += fmt.Sprintf("; times of the %s within %s %%", part.name, Sig3(*part.percent))
		}
	}
	return text
}

// warmUp is the number of tokens at the start of a run that are left out of times.
func (d *Data) warmUp(s *series) int {
	if d.Comparison != nil && d.Comparison.SkippedTokens < len(s.tokens) {
		return d.Comparison.SkippedTokens
	}
	return 0
}

// totals are sums over the tokens of a series; latency without those of the warm-up.
type totals struct {
	tokens                            int
	latency                           []float64 // ns
	wall                              units.Nanos
	parts                             [traces.Parts]units.Nanos
	bytes                             units.Bytes
	requests, hits, misses, evictions int64
	depth                             float64 // weighted with time
}

func sum(ts []compare.Token, skip int) totals {
	t := totals{tokens: len(ts)}
	for i, k := range ts {
		t.bytes += k.Bytes
		t.requests += k.Requests
		t.hits += k.Hits
		t.misses += k.Misses
		t.evictions += k.Evictions
		t.depth += k.Depth * float64(k.Parts[traces.PartIO])
		for p, d := range k.Parts {
			t.parts[p] += d
		}
		if i >= skip {
			t.latency = append(t.latency, float64(k.Latency))
			t.wall += k.Latency
		}
	}
	if io := t.parts[traces.PartIO]; io > 0 {
		t.depth /= float64(io)
	}
	return t
}

// rate is tokens per second after the warm-up.
func (t *totals) rate() float64 { return float64(len(t.latency)) / t.wall.Seconds() }

func (t *totals) perToken(v float64) float64 { return v / float64(t.tokens) }

// depth formats a mean number of requests in flight. A measured run does not see it and says 0.
func depth(v float64) string {
	if v == 0 {
		return "n/a"
	}
	return Sig3(v)
}

func (d *Data) runsSection(runs []series) Section {
	t := Table{Columns: []Column{
		{Name: "run"}, {Name: "kind"}, {"tokens", "", Right}, {"warm-up", "", Right},
		{"rate", "tokens/s", Right},
		{"P50", "ms", Right}, {"P90", "ms", Right}, {"P99", "ms", Right},
		{"flash", "MB/token", Right}, {"requests", "1/token", Right}, {"hits", "%", Right},
		{"depth", "", Right},
	}}
	for i := range runs {
		s := &runs[i]
		skip := d.warmUp(s)
		k := sum(s.tokens, skip)
		t.Add(s.label, s.kind, count(int64(k.tokens)), count(int64(skip)), Sig3(k.rate()),
			ms(compare.Percentile(k.latency, 50)), ms(compare.Percentile(k.latency, 90)),
			ms(compare.Percentile(k.latency, 99)),
			Sig3(k.perToken(float64(k.bytes))/1e6), Sig3(k.perToken(float64(k.requests))),
			Sig3(100*float64(k.hits)/float64(k.hits+k.misses)), depth(k.depth))
	}
	return Section{"Runs", "Latency is the time from the completion of the tokens before to a " +
		"token's own. " +
		"Rate and latencies are without the warm-up tokens, counters are with them. Depth is " +
		"the mean number of requests in flight during reads.", t}
}

// errorsSection has the quantities of the verdict. Their units differ, so they stand with the
// names.
func errorsSection(c *compare.Comparison) Section {
	t := Table{Columns: []Column{{Name: "quantity"}, {"simulated", "", Right}, {"measured", "",
		Right}, {"error", "%", Right}, {"limit", "%", Right}}}
	t.Add("rate, tokens/s", Sig3(c.SimulatedTokensPerS), Sig3(c.MeasuredTokensPerS),
		signed(compare.Stat(c.ErrorPercent)), Sig3(c.Tolerance.TokensPerS))
	for _, p := range c.Percentiles {
		limit := "none"
		switch p.Percentile {
		case 50:
			limit = Sig3(c.Tolerance.P50)
		case 99:
			limit = Sig3(c.Tolerance.P99)
		}
		t.Add("latency P"+strconv.FormatFloat(p.Percentile, 'f', -1, 64)+", ms", ms(p.Simulated),
			ms(p.Measured), signed(p.Error), limit)
	}
	t.Add("correlation of latencies, Pearson r", "", "", "", "")
	t.Rows[len(t.Rows)-1][1] = Sig3(float64(c.PearsonR))
	note := "Error is (simulated − measured) / measured. How far the device drifted was not " +
		"measured."
	if c.DriftPercent.Defined() {
		note = fmt.Sprintf("Error is (simulated − measured) / measured. The device drifted by "+
			"%s %% (limit %s %%).", Sig3(float64(c.DriftPercent)), Sig3(c.MaxDrift))
	}
	return Section{"Simulated against measured", note, t}
}

func partErrorsSection(c *compare.Comparison) Section {
	t := Table{Columns: []Column{
		{Name: "part"}, {"simulated", "ms/token", Right}, {"measured", "ms/token", Right},
		{"bias", "%", Right}, {"MAPE", "%", Right}, {"MAPE over", "tokens", Right},
	}}
	for _, p := range append(c.Parts[:len(c.Parts):len(c.Parts)], c.Total) {
		t.Add(p.Part, ms(p.Simulated), ms(p.Measured), signed(p.Bias), Sig3(float64(p.MAPE)),
			count(int64(p.MAPETokens)))
	}
	return Section{"Parts of a token", "A part's time is the sum of its work; parts that " +
		"overlap add up to more than the total, " +
		"which is the latency. Bias is of the mean, MAPE is the mean over tokens of the " +
		"absolute error.", t}
}

// partsSection shows where the time goes when there is nothing to compare.
func partsSection(runs []series) Section {
	t := Table{Columns: []Column{{Name: "part"}}}
	sums := make([]totals, len(runs))
	for i := range runs {
		t.Columns = append(t.Columns, Column{runs[i].name(), "ms/token", Right})
		sums[i] = sum(runs[i].tokens, 0)
	}
	for p := range traces.Part(traces.Parts) {
		row := []string{p.String()}
		for i := range sums {
			row = append(row, ms(sums[i].perToken(float64(sums[i].parts[p]))))
		}
		t.Add(row...)
	}
	row := []string{"total"}
	for i := range sums {
		row = append(row, ms(sums[i].perToken(float64(sums[i].wall))))
	}
	t.Add(row...)
	return Section{"Parts of a token", "A part's time is the sum of its work; parts that " +
		"overlap add up to more than the total, which is the latency.", t}
}

// phasesSection shows what runs on a GPU did by that device's clock; a run without one has none.
func (d *Data) phasesSection(runs []series) Section {
	t := Table{Columns: []Column{{Name: "phase"}}}
	clocks := []string{}
	for i := range runs {
		t.Columns = append(t.Columns, Column{runs[i].name(), "ms/token", Right})
		if p := runs[i].run.Meta.Phases; p != nil {
			clocks = append(clocks, fmt.Sprintf("%s: %s", runs[i].name(), p.Clock))
		}
	}
	compared := d.Comparison != nil && runs[0].run.Meta.Phases != nil &&
		runs[1].run.Meta.Phases != nil
	if compared {
		t.Columns = append(t.Columns, Column{"error", "%", Right})
	}
	for i, name := range traces.PhaseNames() {
		row := []string{name}
		for k := range runs {
			cell := "n/a"
			if p := runs[k].run.Meta.Phases; p != nil {
				cell = ms(float64(p.All()[i]) / float64(len(runs[k].tokens)))
			}
			row = append(row, cell)
		}
		if compared {
			s, m := runs[0].run.Meta.Phases.All()[i], runs[1].run.Meta.Phases.All()[i]
			off := "n/a"
			if m > 0 {
				off = signed(compare.Stat(100 * (float64(s)/float64(m) - 1)))
			}
			row = append(row, off)
		}
		t.Add(row...)
	}
	return Section{"Phases on the GPU", "Scatter and compute are by the device's clock (" +
		strings.Join(clocks, ", ") + "), the others by the host's. " +
		"Sync is what the host spends on asking and waiting beyond the device's time.", t}
}

func (d *Data) countersSection(runs []series) Section {
	t := Table{Columns: []Column{{Name: "counter"}, {"simulated", "", Right}, {"measured", "",
		Right}}}
	s, m := sum(runs[0].tokens, 0), sum(runs[1].tokens, 0)
	for _, r := range []struct {
		name string
		s, m int64
	}{
		{"hits", s.hits, m.hits}, {"misses", s.misses, m.misses}, {"evictions", s.evictions,
			m.evictions},
		{"requests", s.requests, m.requests}, {"flash bytes", int64(s.bytes), int64(m.bytes)},
	} {
		t.Add(r.name, count(r.s), count(r.m))
	}
	note := "Equal for every token and layer."
	if d.Comparison.DifferencesTotal > 0 {
		note = fmt.Sprintf("%d counters differ by token and layer.", d.Comparison.DifferencesTotal)
	}
	return Section{"Decisions", note, t}
}

func differencesSection(c *compare.Comparison) Section {
	t := Table{Columns: []Column{{"token", "", Right}, {"layer", "", Right}, {Name: "counter"},
		{"simulated", "", Right}, {"measured", "", Right}}}
	for _, d := range c.Differences {
		layer := count(int64(d.Layer))
		if d.Layer == compare.TokenLevel {
			layer = "none"
		}
		t.Add(count(int64(d.Token)), layer, d.Counter, count(d.Simulated), count(d.Measured))
	}
	note := fmt.Sprintf("The first %d of %d. Both sides share the code that decides, so a "+
		"difference is a bug.", len(c.Differences), c.DifferencesTotal)
	return Section{"Differing counters", note, t}
}

func (t *TraceStats) sections() []Section {
	var out []Section
	share := func(v float64) string { return Sig3(100 * v / float64(t.Units)) }
	if delta := t.Delta(); len(delta) > 0 {
		w := Table{Columns: []Column{{"window k", "tokens", Right}, {"s_agg(k)", "units", Right},
			{"s_agg(k)", "%", Right},
			{"delta(k)", "units/token", Right}, {"delta(k)", "%", Right}}}
		for k, d := range delta {
			w.Add(count(int64(k)), Sig3(t.SAgg[k]), share(t.SAgg[k]), Sig3(d), share(d))
		}
		out = append(out, Section{"Windows", "s_agg(k) is what a window of k tokens keeps in " +
			"memory, delta(k) = s_agg(k+1) − s_agg(k) " +
			"what it loads per token; both are means over layers, in units and in percent of a " +
			"layer's units.", w})
	}
	if len(t.ActiveShare) > 0 {
		l := Table{Columns: []Column{{"layer", "", Right}, {"active", "%", Right}}}
		for i, a := range t.ActiveShare {
			l.Add(count(int64(i)), Sig3(100*a))
		}
		out = append(out, Section{"Layers", "Mean share of a layer's units that are active in a " +
			"token.", l})
	}
	return out
}
