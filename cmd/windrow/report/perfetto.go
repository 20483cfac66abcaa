package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// WritePerfetto writes the runs as Chrome trace JSON, which ui.perfetto.dev and trace_processor
// open: one process per run, in it one lane with the tokens, one lane per part, and a counter with
// the queue depth. Slices of one lane must nest, so a part that overlaps with itself, such as the
// reads of two layers, gets further lanes ("io 2").
func WritePerfetto(w io.Writer, runs ...LabeledRun) error {
	d := Data{Runs: runs}
	list, err := d.series()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return errNoRuns
	}
	p := &perfetto{w: bufio.NewWriter(w)}
	p.w.WriteString(`{"displayTimeUnit":"ns","traceEvents":[`)
	for i := range list {
		p.run(i+1, &list[i])
	}
	p.w.WriteString("\n]}\n")
	if err := p.w.Flush(); err != nil { // a bufio.Writer keeps its first error
		return fmt.Errorf("report: perfetto: %w", err)
	}
	return nil
}

// perfetto writes events one per line; the format is at the level of text because a run has
// millions of them.
type perfetto struct {
	w    *bufio.Writer
	some bool
}

func (p *perfetto) event(format string, args ...any) {
	if p.some {
		p.w.WriteByte(',')
	}
	p.some = true
	p.w.WriteByte('\n')
	fmt.Fprintf(p.w, format, args...)
}

// micros is a time in microseconds with all its nanoseconds.
func micros(t units.Nanos) string { return fmt.Sprintf("%d.%03d", t/1000, t%1000) }

// quote is a JSON string. A string cannot fail to marshal.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// laneToken is the lane of the tokens; part lanes follow it.
const laneToken = 1

func (p *perfetto) run(pid int, s *series) {
	p.event(`{"ph":"M","pid":%d,"name":"process_name","args":{"name":%s}}`, pid, quote(s.name()))
	p.lane(pid, laneToken, "token")
	for i := range s.tokens {
		t := &s.tokens[i]
		p.event(
			`{"ph":"X","pid":%d,"tid":%d,"ts":%s,"dur":%s,"name":"token %d","args":{"seq":%d,"pos":%d,"phase":"%s"}}`,
			pid, laneToken, micros(t.Begin), micros(t.Latency), t.Index, t.Seq, t.Pos,
			phaseName(t.Phase))
	}
	tid := laneToken + 1
	for part := range traces.Part(traces.Parts) {
		for i, lane := range lanes(s.run.Rows, part) {
			name := part.String()
			if i > 0 {
				name = fmt.Sprintf("%s %d", name, i+1)
			}
			p.lane(pid, tid, name)
			for _, r := range lane {
				p.slice(pid, tid, r)
			}
			tid++
		}
	}
	p.depth(pid, s.run.Rows)
}

// lane names a thread and gives it its place from above.
func (p *perfetto) lane(pid, tid int, name string) {
	p.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_name","args":{"name":%s}}`, pid, tid,
		quote(name))
	p.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_sort_index","args":{"sort_index":%d}}`, pid,
		tid, tid)
}

func (p *perfetto) slice(pid, tid int, r *traces.RunRow) {
	name := fmt.Sprintf("layer %d", r.Layer)
	if r.Layer == traces.NoLayer {
		name = r.Part.String()
	}
	args := fmt.Sprintf(`"token":%d`, r.Token)
	switch r.Part {
	case traces.PartIO:
		args += fmt.Sprintf(`,"flash_bytes":%d,"requests":%d,"hits":%d,"misses":%d`, r.Bytes,
			r.Requests, r.Hits, r.Misses)
	case traces.PartMemory:
		args += fmt.Sprintf(`,"copied_bytes":%d,"evictions":%d`, r.Bytes, r.Evictions)
	}
	p.event(`{"ph":"X","pid":%d,"tid":%d,"ts":%s,"dur":%s,"name":"%s","args":{%s}}`, pid, tid,
		micros(r.Start), micros(r.Dur), name, args)
}

// lanes spreads the rows of a part over as few lanes as their overlaps need, by start. Rows that
// take no time are kept: they show that nothing had to be done.
func lanes(rows []traces.RunRow, part traces.Part) [][]*traces.RunRow {
	var order []*traces.RunRow
	for i := range rows {
		if rows[i].Part == part {
			order = append(order, &rows[i])
		}
	}
	slices.SortStableFunc(order, func(a, b *traces.RunRow) int {
		return cmp.Compare(a.Start,
			b.Start)
	})
	var out [][]*traces.RunRow
	var free []units.Nanos // by lane
next:
	for _, r := range order {
		for i := range out {
			if free[i] <= r.Start {
				out[i], free[i] = append(out[i], r), r.Start+r.Dur
				continue next
			}
		}
		out, free = append(out, []*traces.RunRow{r}), append(free, r.Start+r.Dur)
	}
	return out
}

// depth writes the sum of the depths of all reads in progress whenever it changes.
func (p *perfetto) depth(pid int, rows []traces.RunRow) {
	type edge struct {
		at    units.Nanos
		delta int64 // thousandths of a request: integers return to zero exactly
	}
	var edges []edge
	for _, r := range rows {
		if milli := int64(math.Round(float64(r.Depth) * 1000)); r.Part == traces.PartIO &&
			r.Dur > 0 && milli > 0 {
			edges = append(edges, edge{r.Start, milli}, edge{r.Start + r.Dur, -milli})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	var now int64
	for i, e := range edges {
		now += e.delta
		if i+1 < len(edges) && edges[i+1].at == e.at {
			continue
		}
		p.event(`{"ph":"C","pid":%d,"ts":%s,"name":"queue depth","args":{"requests":%d.%03d}}`, pid,
			micros(e.at), now/1000, now%1000)
	}
}
