package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// contents is a report about Runs in words and tables.
type contents struct {
	Verdict  *document.Verdict // nil without a comparison
	Warnings []string
	Facts    []document.Fact
	Sanity   []string
	Summary  []document.Section // a screenful
	Details  []document.Section // trace statistics and the caller's own tables
}

func (d *Data) contents(runs []series) *contents {
	c := &contents{Warnings: d.warnings(runs), Facts: append(d.Facts[:len(d.Facts):len(d.Facts)],
		slices.Concat(predictions(runs), prefetches(runs), headroom(runs))...)}
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
		c.Verdict = &document.Verdict{Text: string(d.Comparison.Verdict),
			Class: verdictClass(d.Comparison), Reasons: d.Comparison.Reasons}
		c.Summary = append(c.Summary, errorsSection(d.Comparison, &runs[0]),
			partErrorsSection(d.Comparison, &runs[0]),
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
	c.Details = append(c.Details, d.Tables...)
	if d.Trace != nil {
		c.Details = append(c.Details, d.Trace.sections()...)
	}
	return c
}

// predictions says of every simulated run how far to trust it.
func predictions(runs []series) (facts []document.Fact) {
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
		if text := errorsOf(p); text != "" {
			facts = append(facts, document.Fact{Key: key("prediction"), Value: text})
		}
		if text := strings.Join(p.Compute, "; "); text != "" {
			facts = append(facts, document.Fact{Key: key("compute"), Value: text})
		}
		if p.TokensPerSPrefetched != nil {
			facts = append(facts, document.Fact{Key: key("with all reads during compute"),
				Value: "at most " +
					Sig3(*p.TokensPerSPrefetched) + " tokens/s"})
		}
		for _, n := range p.Notes {
			facts = append(facts, document.Fact{Key: key("note"), Value: n})
		}
	}
	return facts
}

// prefetches describes the prefetches of every run under a schedule.
func prefetches(runs []series) (facts []document.Fact) {
	for i := range runs {
		s := &runs[i]
		a := s.run.Meta.Prefetches
		if a == nil {
			continue
		}
		key := "prefetches"
		if len(runs) > 1 {
			key += " of " + s.name()
		}
		tokens := float64(len(s.tokens))
		text := fmt.Sprintf("%s; %s ms/token of reads beside compute, which loses %s ms to them "+
			"and to scattering their rows; %s MB/token in %s submissions/token",
			a.Schedule, ms(float64(a.Hidden)/tokens), ms(float64(a.Slowed)/tokens),
			Sig3(float64(a.Bytes)/tokens/1e6), Sig3(float64(a.Submissions)/tokens))
		if a.Wasted > 0 {
			text += fmt.Sprintf(", %s MB of them not needed", Sig3(float64(a.Wasted)/tokens/1e6))
		}
		if n := a.Named + a.Missed; a.Missed > 0 {
			text += fmt.Sprintf("; %s %% of the loads were not predicted",
				Sig3(100*float64(a.Missed)/float64(n)))
		}
		reader, compute := busy(s.run)
		text += fmt.Sprintf("; the reader is busy %s %% of the time, compute %s %%",
			Sig3(100*reader), Sig3(100*compute))
		facts = append(facts, document.Fact{Key: key, Value: text})
	}
	return facts
}

// busy returns the share of a run's time in which its reader reads, and the share in which it
// computes or moves rows instead of waiting.
func busy(run *traces.Run) (reader, compute float64) {
	var total units.Nanos
	for _, part := range run.Meta.Totals.PartNanos {
		total += part
	}
	if total == 0 {
		return 0, 0
	}
	waited := run.Meta.Totals.PartNanos[traces.PartIO]
	return float64(waited+run.Meta.Prefetches.Hidden) / float64(total), float64(total-waited) /
		float64(total)
}

// headroom says of every run what its policy read beside the least possible.
func headroom(runs []series) (facts []document.Fact) {
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
		facts = append(facts, document.Fact{Key: key,
			Value: fmt.Sprintf("%s loads %s units/token; knowing the future, "+
				"in the same memory, %s would do (1/%s of it)",
				h.Policy, Sig3(float64(h.Loads)/tokens), Sig3(float64(h.Least)/tokens),
				Sig3(h.Ratio))})
	}
	return facts
}

// errorsOf says how well the times behind a prediction are known.
func errorsOf(p *traces.Prediction) string {
	var list []string
	for _, part := range []struct {
		name    string
		percent *float64
	}{{"flash", p.IOPercent}, {"host", p.HostPercent}} {
		if part.percent != nil {
			list = append(list,
				fmt.Sprintf("times of the %s within %s %%", part.name, Sig3(*part.percent)))
		}
	}
	return strings.Join(list, "; ")
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

func (d *Data) runsSection(runs []series) document.Section {
	t := document.Table{Columns: []document.Column{
		document.Text("run"), document.Text("kind"), document.Number("rate", "tokens/s"),
		document.IntervalColumn, document.BasisColumn,
		document.Number("P50", "ms"), document.Number("P90", "ms"), document.Number("P99", "ms"),
		document.Number("flash", "MB/token"), document.Number("requests", "1/token"),
		document.Number("hits", "%"), document.Number("depth", ""),
		document.Number("tokens", ""), document.Number("warm-up", ""),
	}}
	for i := range runs {
		s := &runs[i]
		skip := d.warmUp(s)
		k := sum(s.tokens, skip)
		rate := s.estimate(k.rate())
		t.Add(s.label, s.kind, rate.Cell(), interval(s, rate), rate.Basis,
			s.time(compare.Percentile(k.latency, 50)), s.time(compare.Percentile(k.latency, 90)),
			s.time(compare.Percentile(k.latency, 99)),
			Sig3(k.perToken(float64(k.bytes))/1e6), Sig3(k.perToken(float64(k.requests))),
			Sig3(100*float64(k.hits)/float64(k.hits+k.misses)), depth(k.depth),
			count(int64(k.tokens)), count(int64(skip)))
	}
	return document.Section{Title: "Runs", Note: "Latency is the time between the completion of " +
		"two consecutive tokens. Rate and latencies leave the warm-up tokens out; counters " +
		"include them. Depth is the mean number of requests in flight during reads.", Table: t}
}

// estimate is a rate of the run with its interval; a measured rate needs none.
func (s *series) estimate(rate float64) document.Estimate {
	if p := s.run.Meta.Prediction; p != nil {
		return p.Estimate(rate, s.run.Meta.Totals.TokensPerS)
	}
	return document.Estimate{Value: rate, Basis: s.kind}
}

// time is a time of the run in milliseconds, from nanoseconds. Where the rate is a bound from
// above, it is one from below.
func (s *series) time(ns float64) string {
	bound := s.run.Meta.Prediction != nil && s.run.Meta.Prediction.Basis == traces.Bound
	return document.Estimate{Value: ns / 1e6, Bound: bound}.Cell()
}

// interval leaves the cell of a measured run empty.
func interval(s *series, rate document.Estimate) string {
	if s.run.Meta.Prediction == nil && !s.run.Meta.Simulated {
		return ""
	}
	return rate.Interval()
}

// errorsSection has the quantities of the verdict. Their units differ, so they stand with the
// names.
func errorsSection(c *compare.Comparison, simulated *series) document.Section {
	t := document.Table{Columns: []document.Column{document.Text("quantity"),
		document.Number("simulated", ""), document.Number("measured", ""), document.Number("error",
			"%"), document.Number("limit", "%")}}
	t.Add("rate, tokens/s", simulated.estimate(c.SimulatedTokensPerS).Cell(),
		Sig3(c.MeasuredTokensPerS),
		signed(compare.Stat(c.ErrorPercent)), Sig3(c.Tolerance.TokensPerS))
	for _, p := range c.Percentiles {
		limit := "none"
		switch p.Percentile {
		case 50:
			limit = Sig3(c.Tolerance.P50)
		case 99:
			limit = Sig3(c.Tolerance.P99)
		}
		t.Add("latency P"+strconv.FormatFloat(p.Percentile, 'f', -1, 64)+", ms",
			simulated.time(p.Simulated), ms(p.Measured), signed(p.Error), limit)
	}
	t.Add("correlation of latencies, Pearson r", "", "", "", "")
	t.Rows[len(t.Rows)-1][1] = Sig3(float64(c.PearsonR))
	note := "Error is (simulated − measured) / measured. How far the device drifted was not " +
		"measured."
	if c.DriftPercent.Defined() {
		note = fmt.Sprintf("Error is (simulated − measured) / measured. The device drifted by "+
			"%s %% (limit %s %%).", Sig3(float64(c.DriftPercent)), Sig3(c.MaxDrift))
	}
	return document.Section{Title: "Simulated against measured", Note: note, Table: t}
}

func partErrorsSection(c *compare.Comparison, simulated *series) document.Section {
	t := document.Table{Columns: []document.Column{
		document.Text("part"), document.Number("simulated", "ms/token"), document.Number("measured",
			"ms/token"),
		document.Number("bias", "%"), document.Number("MAPE", "%"), document.Number("MAPE over",
			"tokens"),
	}}
	for _, p := range append(c.Parts[:len(c.Parts):len(c.Parts)], c.Total) {
		t.Add(p.Part, simulated.time(p.Simulated), ms(p.Measured), signed(p.Bias),
			Sig3(float64(p.MAPE)),
			count(int64(p.MAPETokens)))
	}
	return document.Section{Title: "Parts of a token", Note: "A part's time is the sum of its " +
		"work; parts that " +
		"overlap add up to more than the total, " +
		"which is the latency. Bias is of the mean, MAPE is the mean over tokens of the " +
		"absolute error.", Table: t}
}

// partsSection shows where the time goes when there is nothing to compare.
func partsSection(runs []series) document.Section {
	t := document.Table{Columns: []document.Column{document.Text("part")}}
	sums := make([]totals, len(runs))
	for i := range runs {
		t.Columns = append(t.Columns, document.Number(runs[i].name(), "ms/token"))
		sums[i] = sum(runs[i].tokens, 0)
	}
	for p := range traces.Part(traces.Parts) {
		row := []string{p.String()}
		for i := range sums {
			row = append(row, runs[i].time(sums[i].perToken(float64(sums[i].parts[p]))))
		}
		t.Add(row...)
	}
	row := []string{"total"}
	for i := range sums {
		row = append(row, runs[i].time(sums[i].perToken(float64(sums[i].wall))))
	}
	t.Add(row...)
	return document.Section{Title: "Parts of a token", Note: "A part's time is the sum of its " +
		"work; parts that " +
		"overlap add up to more than the total, which is the latency.", Table: t}
}

// phasesSection shows what runs on a GPU did by that device's clock; a run without one has none.
func (d *Data) phasesSection(runs []series) document.Section {
	t := document.Table{Columns: []document.Column{document.Text("phase")}}
	clocks := []string{}
	for i := range runs {
		t.Columns = append(t.Columns, document.Number(runs[i].name(), "ms/token"))
		if p := runs[i].run.Meta.Phases; p != nil {
			clocks = append(clocks, fmt.Sprintf("%s: %s", runs[i].name(), p.Clock))
		}
	}
	compared := d.Comparison != nil && runs[0].run.Meta.Phases != nil &&
		runs[1].run.Meta.Phases != nil
	if compared {
		t.Columns = append(t.Columns, document.Number("error", "%"))
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
	return document.Section{Title: "Phases on the GPU", Note: "Scatter and compute are by the " +
		"device's clock (" +
		strings.Join(clocks, ", ") + "), the others by the host's. " +
		"Sync is what the host spends on asking and waiting beyond the device's time.", Table: t}
}

func (d *Data) countersSection(runs []series) document.Section {
	t := document.Table{Columns: []document.Column{document.Text("counter"),
		document.Number("simulated", ""), document.Number("measured", "")}}
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
	return document.Section{Title: "Decisions", Note: note, Table: t}
}

func differencesSection(c *compare.Comparison) document.Section {
	t := document.Table{Columns: []document.Column{document.Number("token", ""),
		document.Number("layer", ""), document.Text("counter"),
		document.Number("simulated", ""), document.Number("measured", "")}}
	for _, d := range c.Differences {
		layer := count(int64(d.Layer))
		if d.Layer == compare.TokenLevel {
			layer = "none"
		}
		t.Add(count(int64(d.Token)), layer, d.Counter, count(d.Simulated), count(d.Measured))
	}
	note := fmt.Sprintf("The first %d of %d. Both sides share the code that decides, so a "+
		"difference is a bug.", len(c.Differences), c.DifferencesTotal)
	return document.Section{Title: "Differing counters", Note: note, Table: t}
}

func (t *TraceStats) sections() []document.Section {
	var out []document.Section
	share := func(v float64) string { return Sig3(100 * v / float64(t.Units)) }
	if delta := t.Delta(); len(delta) > 0 {
		w := document.Table{Columns: []document.Column{document.Number("window k", "tokens"),
			document.Number("s_agg(k)", "units"),
			document.Number("s_agg(k)", "%"),
			document.Number("delta(k)", "units/token"), document.Number("delta(k)", "%")}}
		for k, d := range delta {
			w.Add(count(int64(k)), Sig3(t.SAgg[k]), share(t.SAgg[k]), Sig3(d), share(d))
		}
		out = append(out, document.Section{Title: "Windows", Place: document.Details,
			Note: "s_agg(k) is what a window of k tokens keeps in " +
				"memory, delta(k) = s_agg(k+1) − s_agg(k) " +
				"what it loads per token; both are means over layers, in units and in percent " +
				"of a " +
				"layer's units.", Table: w})
	}
	if len(t.ActiveShare) > 0 {
		l := document.Table{Columns: []document.Column{document.Number("layer", ""),
			document.Number("active", "%")}}
		for i, a := range t.ActiveShare {
			l.Add(count(int64(i)), Sig3(100*a))
		}
		out = append(out, document.Section{Title: "Layers", Place: document.Details,
			Note: "Mean share of a layer's units that are active in a " +
				"token.", Table: l})
	}
	return out
}
