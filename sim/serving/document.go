package serving

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// No says that no rate meets the objectives. It is empty where one does, or was not asked for.
func (s *Study) No() string {
	if r := s.Rate; r != nil && r.Stopped == "" && r.PerSecond != nil && *r.PerSecond == 0 {
		return "there is no rate at which " + s.goal() + ": not even one request at a time does"
	}
	return ""
}

// Document describes how the load was served, or which rate can be.
func (s *Study) Document() *document.Document {
	d := &document.Document{Name: "traffic", Title: "windrow traffic", Headline: s.headline(),
		Result: s}
	d.Fact("model", "%s, %s masks", s.Model, s.Server.Mask)
	d.Fact("device", "%s (%s ×%d)", s.Device, s.Server.Engine, s.Server.Parallel)
	d.Fact("server", "policy %s; up to %d sequences, %d prompt tokens per step", s.Server.Policy,
		s.Server.MaxBatch, s.Server.Chunk)
	d.Fact("load", "%s", s.Load.words())
	if no := s.No(); no != "" {
		d.Verdict = &document.Verdict{Text: no, Class: "outside"}
	}
	r := s.Result
	if a := s.Rate; a != nil {
		r, d.Rows = a.At, s.trialTable(exact)
		d.Add("Rates tried", "", *s.trialTable(document.Sig3))
		if a.PerSecond != nil && *a.PerSecond > a.Saturated {
			d.Note("The answer is more than the server keeps up for long, %s with all at once: "+
				"the "+
				"queue grows. More requests tell what lasts.", rateText(a.Saturated))
		}
	}
	if r == nil {
		return d
	}
	if s.Rate == nil {
		d.Rows = s.row()
	}
	d.Warn(r.Warnings...)
	d.Add("Served", "", *s.countTable(r))
	d.Add("Latencies", "Of the nearest rank. Their intervals are not known.", *r.latencyTable())
	d.Add("Where the time of steps goes", "", *r.partsTable())
	d.Note("%s", r.basisLine())
	for _, n := range r.Notes {
		d.Note("%s", n)
	}
	return d
}

// rate is a rate, or a share that falls with the times, as it is printed.
func (r *Result) rate(v float64) document.Estimate {
	e := document.Estimate{Value: v, Basis: string(r.Basis)}
	switch r.Side {
	case Fastest:
		e.Bound, e.AtMost = true, true
	case Slowest:
		e.Bound = true
	case Mixed:
		e.Basis = "bounds of both sides"
	}
	return e
}

// time is the cell of a time that grows with the times of steps.
func (r *Result) time(text string) string {
	e := r.rate(0)
	e.AtMost = e.Bound && !e.AtMost
	return e.Mark(text)
}

func (s *Study) goal() string {
	return fmt.Sprintf("%s %% of the requests have %s", document.Percent(s.Rate.Share),
		s.Server.objectives())
}

func (s *Study) headline() string {
	if r := s.Result; r != nil {
		text := fmt.Sprintf("%s meet %s", r.rate(r.RequestGoodput).Text("requests/s"),
			s.Server.objectives())
		if r.Stopped == Interrupted {
			text = "interrupted: " + text
		}
		return text + fmt.Sprintf(", %s %% of them", document.Percent(r.Attainment))
	}
	switch a := s.Rate; {
	case a.Stopped != "":
		return "interrupted: the search is not finished"
	case a.PerSecond == nil:
		return s.goal() + " even when all come at once: no rate of so few requests is too high"
	case *a.PerSecond == 0:
		return s.No()
	default:
		return fmt.Sprintf("largest rate at which %s: %s, %s an hour", s.goal(),
			a.At.rate(*a.PerSecond).Text("requests/s"), document.Sig3(3600*(*a.PerSecond)))
	}
}

// words say which requests arrive.
func (l *Load) words() string {
	var s string
	switch {
	case l.File != "":
		s = fmt.Sprintf("%d requests of %s (%s)", l.Requests, l.File, l.Format)
	case l.Spread > 0:
		s = fmt.Sprintf("%d requests of about %d prompt and %d output tokens (log-normal, %s)",
			l.Requests, l.Prompt, l.Output, document.Sig3(l.Spread))
	default:
		s = fmt.Sprintf("%d requests of %d prompt and %d output tokens", l.Requests, l.Prompt,
			l.Output)
	}
	switch {
	case l.Times == TimesAtOnce:
		s += ", all at once"
	case l.Rate > 0:
		s += ", Poisson arrivals, " + rateText(l.Rate) + " on average"
	case l.Times == TimesRandom:
		s += ", Poisson arrivals"
	case l.Speedup != 1:
		s += fmt.Sprintf(", %s times as fast", document.Sig3(l.Speedup))
	}
	return s
}

// rateText is a rate per second and per hour.
func rateText(rate float64) string {
	if math.IsInf(rate, 1) {
		return "once"
	}
	return fmt.Sprintf("%s/s (%s/h)", document.Sig3(rate), document.Sig3(3600*rate))
}

// exact is a number with all its digits.
func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// trialTable lists the rates tried, ascending. All at once is the highest.
func (s *Study) trialTable(number func(float64) string) *document.Table {
	t := document.NewTable(document.Number("requests/s", ""), document.Number("requests/h", ""),
		document.Number("good at most", "%"), document.Text("meets"), document.BasisColumn)
	key := func(r Trial) float64 {
		if r.PerSecond == 0 {
			return math.Inf(1)
		}
		return r.PerSecond
	}
	for _, r := range slices.SortedFunc(slices.Values(s.Rate.Tried), func(x, y Trial) int {
		return cmp.Compare(key(x), key(y))
	}) {
		meets := "no"
		if r.Meets {
			meets = "yes"
		}
		second, hour := number(r.PerSecond), number(3600*r.PerSecond)
		if r.PerSecond == 0 {
			second, hour = "all at once", "all at once"
		}
		t.Add(second, hour, number(100*r.Attainment), meets, string(r.Basis))
	}
	return t
}

// objectives are those of the server in words.
func (s *Setting) objectives() string {
	var list []string
	if s.TTFT > 0 {
		list = append(list, fmt.Sprintf("TTFT ≤ %v", s.TTFT))
	}
	if s.TPOT > 0 {
		list = append(list, fmt.Sprintf("TPOT ≤ %v", s.TPOT))
	}
	if len(list) == 0 {
		return "no objective"
	}
	return strings.Join(list, " and ")
}

// countTable is about requests, tokens, bytes and time. Units stand with the names: they differ.
func (s *Study) countTable(r *Result) *document.Table {
	t := document.NewTable(document.Text("quantity"), document.Number("simulated", ""))
	count := func(name string, n int64) { t.Add(name, document.Count(n)) }
	number := func(name string, v float64) { t.Add(name, document.Sig3(v)) }
	rate := func(name string, v float64) { t.Add(name, r.rate(v).Cell()) }
	count("requests that arrived", r.Arrived)
	count("requests that finished", r.Completed)
	for _, u := range []struct {
		why string
		n   int64
	}{
		{"failed: the prompt was computed, and no output", r.Failed},
		{"not finished: running", r.Unfinished.Running},
		{"not finished: waiting", r.Unfinished.Waiting},
		{"refused: longer than the model's context", r.Unfinished.TooLong},
		{"refused: larger than the memory for keys and values", r.Unfinished.TooLarge},
		{"of one output token, which have no TPOT", r.Single},
	} {
		if u.n > 0 {
			count(u.why, u.n)
		}
	}
	if r.Stopped != "" {
		t.Add("stopped", string(r.Stopped))
	}
	t.Add("duration, s", r.time(document.Sig3(r.Duration.Seconds())))
	rate("throughput, requests/s", r.RequestThroughput)
	rate("throughput, requests/h", 3600*r.RequestThroughput)
	rate("throughput, output tokens/s", r.OutputThroughput)
	rate("goodput, requests/s", r.RequestGoodput)
	rate("goodput, requests/h", 3600*r.RequestGoodput)
	rate("requests with "+s.Server.objectives()+", %", 100*r.Attainment)
	number("busy, %", 100*r.Utilisation)
	number("sequences per step, mean", r.MeanBatch)
	count("sequences per step, most", int64(r.PeakBatch))
	number("waiting requests, mean", r.MeanWaiting)
	number("units that a step needs, %", 100*r.NeededShare)
	number("of them in memory, %", 100*r.HitRatio)
	number("read per computed token, MB", r.BytesPerToken/1e6)
	number("read per output token, MB", r.BytesPerOutput/1e6)
	number("rows in memory, mean %", 100*r.ResidentShare)
	number("rows in memory, most MiB", float64(r.PeakResident)/float64(units.MiB))
	number("keys and values, most MiB", float64(r.PeakKV)/float64(units.MiB))
	return t
}

// latencies are the measures in their order.
func (r *Result) latencies() []namedLatency {
	return []namedLatency{{"TTFT", r.TTFT}, {"TPOT", r.TPOT}, {"ITL", r.ITL}, {"E2EL", r.E2E},
		{"queueing", r.Queueing}}
}

type namedLatency struct {
	name string
	Latency
}

func (l namedLatency) columns() []units.Nanos {
	return []units.Nanos{l.Mean, l.P50, l.P90, l.P95, l.P99, l.Max}
}

// latencyTable is in seconds where a latency is longer than ten of them.
func (r *Result) latencyTable() *document.Table {
	const long = units.Nanos(10e9)
	unit, scale := "ms", 1e6
	for _, l := range r.latencies() {
		if l.Max >= long {
			unit, scale = "s", 1e9
		}
	}
	t := document.NewTable(document.Text("latency"), document.Number("count", ""))
	for _, name := range []string{"mean", "P50", "P90", "P95", "P99", "most"} {
		t.Columns = append(t.Columns, document.Number(name, unit))
	}
	t.Columns = append(t.Columns, document.BasisColumn)
	for _, l := range r.latencies() {
		cells := []string{l.name, document.Count(l.Count)}
		for _, v := range l.columns() {
			if l.Count == 0 {
				cells = append(cells, "n/a")
			} else {
				cells = append(cells, r.time(document.Sig3(float64(v)/scale)))
			}
		}
		t.Add(append(cells, r.rate(0).Basis)...)
	}
	return t
}

// partsTable is about the time of steps.
func (r *Result) partsTable() *document.Table {
	t := document.NewTable(document.Text("part"), document.Number("share", "%"))
	p := r.Parts
	for _, part := range []struct {
		name string
		took units.Nanos
	}{{"reads", p.IO}, {"copies", p.Memory}, {"decisions", p.Decide},
		{"compute", p.Attention + p.FFN + p.Other}} {
		t.Add(part.name, document.Percent(per(float64(part.took), float64(r.Busy))))
	}
	return t
}

// basisLine says what the times rest on.
func (r *Result) basisLine() string {
	s := "Basis: " + r.rate(0).Basis
	if r.IOPercent != nil {
		s += fmt.Sprintf("; reads within %s %%", document.Sig3(*r.IOPercent))
	}
	return s + fmt.Sprintf("; reads timed by %s, compute by %q.", r.Reads, r.Compute)
}

// row is the result as one line of exact numbers, times in nanoseconds.
func (s *Study) row() *document.Table {
	r := s.Result
	t := &document.Table{}
	var line []string
	add := func(name, value string) {
		t.Columns, line = append(t.Columns, document.Column{Name: name}), append(line, value)
	}
	add("model", s.Model)
	add("device", s.Device)
	add("policy", s.Server.Policy)
	for _, v := range []struct {
		name string
		n    int64
	}{
		{"arrived", r.Arrived}, {"completed", r.Completed}, {"failed", r.Failed},
		{"running", r.Unfinished.Running},
		{"waiting", r.Unfinished.Waiting}, {"too long", r.Unfinished.TooLong},
		{"too large", r.Unfinished.TooLarge}, {"single token", r.Single},
		{"good requests", r.Good}, {"steps", r.Steps}, {"duration ns", int64(r.Duration)},
		{"busy ns", int64(r.Busy)}, {"total input", r.Input}, {"total output", r.Output},
		{"peak batch", int64(r.PeakBatch)}, {"flash bytes read", int64(r.Bytes)},
		{"peak kv bytes", int64(r.PeakKV)}, {"peak held bytes", int64(r.PeakResident)},
	} {
		add(v.name, document.Count(v.n))
	}
	for _, v := range []struct {
		name string
		v    float64
	}{
		{"request throughput", r.RequestThroughput}, {"request goodput", r.RequestGoodput},
		{"output throughput", r.OutputThroughput}, {"slo attainment", r.Attainment},
		{"utilisation", r.Utilisation}, {"mean batch", r.MeanBatch},
		{"mean waiting", r.MeanWaiting}, {"flash bytes per output token", r.BytesPerOutput},
		{"needed share", r.NeededShare}, {"hit ratio", r.HitRatio},
	} {
		add(v.name, exact(v.v))
	}
	for _, l := range r.latencies() {
		add(l.name+" count", document.Count(l.Count))
		for i, what := range []string{"mean", "p50", "p90", "p95", "p99", "max"} {
			add(l.name+" "+what+" ns", document.Count(int64(l.columns()[i])))
		}
	}
	add("bound", string(r.Side))
	add("basis", string(r.Basis))
	t.Add(line...)
	return t
}

// side says on which side of the simulated times the real ones lie. The flash or the host may be
// known by its limits alone, and the compute of several tokens may be a bound.
func side(basis traces.Basis, several bool, compute Compute) Side {
	slow := basis == traces.Bound || several && compute != Each
	fast := several && compute == Each
	switch {
	case slow && fast:
		return Mixed
	case slow:
		return Fastest
	case fast:
		return Slowest
	}
	return NoSide
}
