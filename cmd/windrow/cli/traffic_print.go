package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/serving"
)

func (e *env) printTraffic(c *cli.Context, d *trafficResult) error {
	if c.Bool("json") {
		return printJSON(e.stdout, d)
	}
	r := d.Result
	if r == nil {
		r = d.Rate.At
	}
	if r != nil {
		for _, w := range r.Warnings {
			e.note("warning: %s", w)
		}
	}
	if c.String("format") == "csv" {
		if d.Rate != nil {
			return report.TableCSV(e.stdout, trialTable(d.Rate, exactNumber))
		}
		return report.TableCSV(e.stdout, d.csv())
	}
	return d.print(e.stdout, r)
}

// print writes the tables. r is nil when no rate is good.
func (d *trafficResult) print(w io.Writer, r *serving.Result) error {
	fmt.Fprintf(w, "%s on %s, %s masks, policy %s; up to %d sequences, %d prompt tokens per "+
		"step\n%s\n\n",
		d.Model, d.Device, d.Server.Mask, d.Server.Policy, d.Server.MaxBatch, d.Server.Chunk,
		d.Load.words())
	if d.Rate != nil {
		if err := report.TableText(w, trialTable(d.Rate, document.Sig3)); err != nil {
			return err
		}
		fmt.Fprintf(w, "\n%s\n", d.answer())
		if r == nil {
			return nil
		}
		fmt.Fprintln(w)
	}
	if err := report.TableText(w, d.countTable(r)); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := report.TableText(w, latencyTable(r)); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s\n", basisLine(r))
	return nil
}

// words say which requests come.
func (l *trafficLoad) words() string {
	var s string
	switch {
	case l.path != "":
		s = fmt.Sprintf("%d requests of %s (%s)", l.Requests, l.File, l.Format)
	case l.Spread > 0:
		s = fmt.Sprintf("%d requests of about %d prompt and %d output tokens (log-normal, %s)",
			l.Requests, l.Prompt, l.Output, document.Sig3(l.Spread))
	default:
		s = fmt.Sprintf("%d requests of %d prompt and %d output tokens", l.Requests, l.Prompt,
			l.Output)
	}
	switch {
	case l.Times == timesAtOnce:
		s += ", all at once"
	case l.Rate > 0:
		s += ", at random, " + rateText(l.Rate) + " on average"
	case l.Times == timesRandom:
		s += ", at random"
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

func exactNumber(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// trialTable lists what was tried, by rate.
func trialTable(a *serving.Rate, number func(float64) string) *document.Table {
	t := numbers("requests/s", "requests/h", "good at most|%", "meets")
	key := func(r serving.Trial) float64 { // all at once is the highest
		if r.PerSecond == 0 {
			return math.Inf(1)
		}
		return r.PerSecond
	}
	for _, r := range slices.SortedFunc(slices.Values(a.Tried), func(x, y serving.Trial) int {
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
		t.Add(second, hour, number(100*r.Attainment), meets)
	}
	return t
}

// answer says which rate is the largest.
func (d *trafficResult) answer() string {
	a := d.Rate
	goal := fmt.Sprintf("%s %% of the requests have %s", document.Sig3(100*a.Share),
		d.Server.objectives())
	switch {
	case a.Stopped != "":
		return "interrupted: the search is not finished"
	case a.PerSecond == nil:
		return goal + " even when all come at once: no rate of so few requests is too high"
	case *a.PerSecond == 0:
		return "there is no rate at which " + goal + ": not even one request at a time does"
	}
	text := fmt.Sprintf("largest rate at which %s: %s", goal, rateText(*a.PerSecond))
	if *a.PerSecond > a.Saturated {
		text += fmt.Sprintf("\nThat is more than the server keeps up for long, %s with all at "+
			"once: the queue grows. More --requests tell what lasts.", rateText(a.Saturated))
	}
	return text
}

// objectives are those of the server in words.
func (s *trafficServer) objectives() string {
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

// countTable is about requests, tokens, bytes and time.
func (d *trafficResult) countTable(r *serving.Result) *document.Table {
	t := &document.Table{Columns: []document.Column{{Name: "served"}, {Name: "simulated"}}}
	t.Add("arrived", fmt.Sprint(r.Arrived))
	t.Add("finished", fmt.Sprint(r.Completed))
	for _, u := range []struct {
		why string
		n   int64
	}{
		{"not finished: running", r.Unfinished.Running}, {"not finished: waiting",
			r.Unfinished.Waiting},
		{"refused: longer than the model's context", r.Unfinished.TooLong},
		{"refused: larger than the memory for keys and values", r.Unfinished.TooLarge},
	} {
		if u.n > 0 {
			t.Add(u.why, fmt.Sprint(u.n))
		}
	}
	if r.Stopped != "" {
		t.Add("stopped", string(r.Stopped))
	}
	if r.Single > 0 {
		t.Add("of one output token", fmt.Sprintf("%d, which have no TPOT", r.Single))
	}
	t.Add("duration", document.Sig3(r.Duration.Seconds())+" s")
	t.Add("throughput", fmt.Sprintf("%s, %s output tokens/s", rateText(r.RequestThroughput),
		document.Sig3(r.OutputThroughput)))
	t.Add("goodput", fmt.Sprintf("%s, %s %% with %s", rateText(r.RequestGoodput),
		percent(r.Attainment), d.Server.objectives()))
	t.Add("busy", percent(r.Utilisation)+" %")
	t.Add("sequences per step", fmt.Sprintf("%s on average, %d at most", document.Sig3(r.MeanBatch),
		r.PeakBatch))
	t.Add("waiting", document.Sig3(r.MeanWaiting)+" on average")
	t.Add("a step needs", percent(r.NeededShare)+" % of the units, of which "+percent(
		r.HitRatio)+" % are in memory")
	t.Add("read", fmt.Sprintf("%s per computed token, %s per output token",
		document.IEC(units.Bytes(r.BytesPerToken)), document.IEC(units.Bytes(r.BytesPerOutput))))
	t.Add("rows in memory", fmt.Sprintf("%s %% on average, %s at most", percent(r.ResidentShare),
		document.IEC(r.PeakResident)))
	kv := memory.Part{Name: memory.PartKV, Element: memory.KVElement}
	t.Add(kv.Label(), document.IEC(r.PeakKV)+" at most")
	p, busy := r.Parts, float64(r.Busy)
	t.Add("time of steps", fmt.Sprintf("%s %% reads, %s %% copies, %s %% decisions, %s %% compute",
		shareOf(p.IO, busy), shareOf(p.Memory, busy), shareOf(p.Decide, busy),
		shareOf(p.Attention+p.FFN+p.Other, busy)))
	return t
}

func shareOf(t units.Nanos, all float64) string {
	if all == 0 {
		return "0"
	}
	return percent(float64(t) / all)
}

// latencies are the measures in their order.
func latencies(r *serving.Result) []namedLatency {
	return []namedLatency{{"TTFT", r.TTFT}, {"TPOT", r.TPOT}, {"ITL", r.ITL}, {"E2EL", r.E2E},
		{"queueing", r.Queueing}}
}

type namedLatency struct {
	name string
	serving.Latency
}

func (l namedLatency) columns() []units.Nanos {
	return []units.Nanos{l.Mean, l.P50, l.P90, l.P95, l.P99, l.Max}
}

func latencyTable(r *serving.Result) *document.Table {
	t := numbers("count", "mean|ms", "P50|ms", "P90|ms", "P95|ms", "P99|ms", "most|ms")
	t.Columns = slices.Insert(t.Columns, 0, document.Column{Name: "latency"})
	for _, l := range latencies(r) {
		line := []string{l.name, fmt.Sprint(l.Count)}
		for _, v := range l.columns() {
			if l.Count == 0 {
				line = append(line, "n/a")
			} else {
				line = append(line, milli(v))
			}
		}
		t.Add(line...)
	}
	return t
}

// basisLine says what the times rest on.
func basisLine(r *serving.Result) string {
	s := "basis: " + string(r.Basis)
	if r.IOPercent != nil {
		s += fmt.Sprintf("; reads within %s %%", document.Sig3(*r.IOPercent))
	}
	s += fmt.Sprintf("; reads timed by %s, compute by %q", r.Reads, r.Compute)
	for _, n := range r.Notes {
		s += "\n" + n
	}
	return s
}

// csv is one line, with times in nanoseconds.
func (d *trafficResult) csv() *document.Table {
	r := d.Result
	t := &document.Table{}
	var line []string
	add := func(name, value string) {
		t.Columns, line = append(t.Columns, document.Column{Name: name}), append(line, value)
	}
	whole := func(name string, v int64) { add(name, fmt.Sprint(v)) }
	add("model", d.Model)
	add("device", d.Device)
	add("policy", d.Server.Policy)
	for _, v := range []struct {
		name string
		n    int64
	}{
		{"arrived", r.Arrived}, {"completed", r.Completed}, {"running", r.Unfinished.Running},
		{"waiting", r.Unfinished.Waiting},
		{"too long", r.Unfinished.TooLong}, {"too large", r.Unfinished.TooLarge}, {"single token",
			r.Single}, {"good requests", r.Good},
		{"steps", r.Steps}, {"duration ns", int64(r.Duration)}, {"busy ns", int64(r.Busy)},
		{"total input", r.Input}, {"total output", r.Output},
		{"peak batch", int64(r.PeakBatch)}, {"flash bytes read", int64(r.Bytes)}, {"peak kv bytes",
			int64(r.PeakKV)}, {"peak held bytes", int64(r.PeakResident)},
	} {
		whole(v.name, v.n)
	}
	for _, v := range []struct {
		name string
		v    float64
	}{
		{"request throughput", r.RequestThroughput}, {"request goodput", r.RequestGoodput},
		{"output throughput", r.OutputThroughput},
		{"slo attainment", r.Attainment}, {"utilisation", r.Utilisation}, {"mean batch",
			r.MeanBatch}, {"mean waiting", r.MeanWaiting},
		{"flash bytes per output token", r.BytesPerOutput}, {"needed share", r.NeededShare},
		{"hit ratio", r.HitRatio},
	} {
		add(v.name, exactNumber(v.v))
	}
	for _, l := range latencies(r) {
		whole(l.name+" count", l.Count)
		for i, what := range []string{"mean", "p50", "p90", "p95", "p99", "max"} {
			whole(l.name+" "+what+" ns", int64(l.columns()[i]))
		}
	}
	add("basis", string(r.Basis))
	t.Add(line...)
	return t
}
