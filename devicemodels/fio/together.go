package fio

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// apart is the share of a run by which jobs that ran together may start or end apart.
const apart = 0.1

// startedTogether returns the reason why jobs of one group did not run at the same time; "" when
// the file does not say that.
func startedTogether(list []*Entry) string {
	first, last, longest, known := list[0].start, list[0].start, 0.0, true
	for _, e := range list[1:] {
		if e.given["wait_for"] != "" {
			return "wait_for: the jobs of its group ran one after the other; put stonewall " +
				"between them"
		}
		if e.given["startdelay"] != list[0].given["startdelay"] {
			return "startdelay: the jobs of its group did not start together; put stonewall " +
				"between them"
		}
		known = known && e.start > 0
		first, last, longest = min(first, e.start), max(last, e.start), max(longest, e.millis())
	}
	if known && first > 0 && last-first > apart*max(longest, list[0].millis()) {
		return fmt.Sprintf("the jobs of its group started %.3g s apart, so they did not run all "+
			"the time together", (last-first)/1000)
	}
	return ""
}

// besideOthers returns, by its place, the reason why a group of one run of fio cannot be used: it
// ran at the same time as another group (new_group). Newer versions of fio say when a job started.
func besideOthers(groups [][]*Entry) map[int]string {
	type span struct {
		place      int
		start, end float64
	}
	var spans []span
	for i, list := range groups {
		s := span{place: i, start: math.Inf(1)}
		for _, e := range list {
			s.start, s.end = min(s.start, e.start), max(s.end, e.start+e.millis())
		}
		if len(list) > 0 && s.start > 0 {
			spans = append(spans, s)
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	why := map[int]string{}
	for i, s := range spans {
		if i == 0 {
			continue
		}
		last := spans[i-1] // of the groups before, the one that ended last
		if shared := min(last.end, s.end) - s.start; shared > apart*min(last.end-last.start,
			s.end-s.start) && shared > 0 {
			for _, pair := range [][2]int{{last.place, s.place}, {s.place, last.place}} {
				why[pair[0]] = fmt.Sprintf("it ran at the same time as %q of another group; put "+
					"stonewall between them", groups[pair[1]][0].Job)
			}
		}
		if last.end > s.end {
			spans[i] = last
		}
	}
	return why
}

// millis is the runtime in milliseconds; 0 when unknown.
func (e *Entry) millis() float64 {
	if e.Runtime == nil {
		return 0
	}
	return e.Runtime.Millis()
}
