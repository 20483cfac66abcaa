package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/traces"
)

type event struct {
	Ph   string
	Pid  int
	Tid  int
	Ts   float64
	Dur  float64
	Name string
	Args map[string]any
}

func readPerfetto(t *testing.T, runs ...LabeledRun) []event {
	t.Helper()
	var b bytes.Buffer
	if err := WritePerfetto(&b, runs...); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Unit   string  `json:"displayTimeUnit"`
		Events []event `json:"traceEvents"`
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Unit != "ns" {
		t.Errorf("display unit %q", doc.Unit)
	}
	return doc.Events
}

// nano is a time of the file in nanoseconds: three decimals of a microsecond are exact.
func nano(us float64) int64 { return int64(math.Round(us * 1000)) }

func TestPerfettoSlicesNest(t *testing.T) {
	type lane struct{ pid, tid int }
	slices_ := map[lane][]event{}
	for _, e := range readPerfetto(t, makeData(t, 20).Runs...) {
		if e.Ph == "X" {
			slices_[lane{e.Pid, e.Tid}] = append(slices_[lane{e.Pid, e.Tid}], e)
		}
	}
	if len(slices_) < 2*(1+traces.Parts) {
		t.Fatalf("%d lanes", len(slices_))
	}
	for l, s := range slices_ {
		slices.SortStableFunc(s, func(a, b event) int {
			return cmp.Or(cmp.Compare(a.Ts, b.Ts), cmp.Compare(b.Dur, a.Dur))
		})
		var open []int64 // ends of the slices around the current one
		for _, e := range s {
			start, end := nano(e.Ts), nano(e.Ts)+nano(e.Dur)
			for len(open) > 0 && open[len(open)-1] <= start {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && end > open[len(open)-1] {
				t.Fatalf("lane %v: %q from %d to %d leaves the slice around it, which ends at %d",
					l, e.Name, start, end, open[len(open)-1])
			}
			open = append(open, end)
		}
	}
}

// Every row is in the file once, with its time to the nanosecond.
func TestPerfettoKeepsEveryRow(t *testing.T) {
	run := makeRun(5, 6, 10, 3, false)
	type key struct {
		start, dur int64
		token      float64
	}
	want := map[key]int{}
	for _, r := range run.Rows {
		want[key{int64(r.Start), int64(r.Dur), float64(r.Token)}]++
	}
	tokens := 0
	for _, e := range readPerfetto(t, LabeledRun{"m", run}) {
		if e.Ph != "X" {
			continue
		}
		if e.Tid == laneToken {
			tokens++
			continue
		}
		want[key{nano(e.Ts), nano(e.Dur), e.Args["token"].(float64)}]--
	}
	for k, n := range want {
		if n != 0 {
			t.Errorf("row %+v: %d too few", k, n)
		}
	}
	if tokens != 10 {
		t.Errorf("%d token slices", tokens)
	}
}

// Reads of two layers at once need two lanes and add up in the counter, which ends at zero.
func TestPerfettoOverlappingReads(t *testing.T) {
	read := traces.RunRow{Part: traces.PartIO, Start: 1000, Dur: 500, Depth: 4}
	next := read
	next.Layer, next.Start, next.Depth = 1, 1200, 2.5
	run := &traces.Run{Rows: []traces.RunRow{read, next}}
	var depth []float64
	lanes := map[string]bool{}
	for _, e := range readPerfetto(t, LabeledRun{"m", run}) {
		switch {
		case e.Ph == "C":
			depth = append(depth, e.Ts, e.Args["requests"].(float64))
		case e.Name == "thread_name":
			lanes[e.Args["name"].(string)] = true
		}
	}
	if !slices.Equal(depth, []float64{1, 4, 1.2, 6.5, 1.5, 2.5, 1.7, 0}) {
		t.Errorf("depth %v", depth)
	}
	if !lanes["io"] || !lanes["io 2"] || lanes["io 3"] || lanes["ffn"] {
		t.Errorf("lanes %v", lanes)
	}
}

func TestPerfettoNames(t *testing.T) {
	names := map[int]string{}
	d := makeData(t, 10)
	d.Runs[0].Label = "</script>\"\\\n"
	for _, e := range readPerfetto(t, d.Runs...) {
		if e.Name == "process_name" {
			names[e.Pid] = e.Args["name"].(string)
		}
	}
	if names[1] != "</script>\"\\\n (simulated)" || names[2] != "window 5 (measured)" {
		t.Errorf("names %v", names)
	}
}

func TestGoBench(t *testing.T) {
	run := makeRun(1, 1, 16, 2, true)
	run.Meta.Device = "990 pro/1=x-8"
	var b bytes.Buffer
	if err := WriteGoBench(&b, run, document.Fact{Key: "win", Value: "5"}, document.Fact{
		Key: "io mode", Value: ""}); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	for _, want := range []string{
		"tool: windrow 0.1.0\n", "run: simulated\n", "seed: 1\n",
		"Unit tokens/sec better=higher assume=exact\n",
		"BenchmarkPrefill/model=opt-6.7b/dev=990_pro_1_x-8/win=5/io_mode=unknown/kind=simulated 1 ",
		"BenchmarkDecode/model=opt-6.7b/dev=990_pro_1_x-8/win=5/io_mode=unknown/kind=simulated 1 ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	// Both phases together take as long and read as much as the run.
	line := regexp.MustCompile(
		`(?m)^Benchmark(\w+)\S* 1 (\S+) sec/token (\S+) tokens/sec (\S+) B/token (\S+) requests/token$`)
	var seconds, read, requests float64
	tokens := map[string]float64{"Prefill": 2, "Decode": 14}
	for _, m := range line.FindAllStringSubmatch(out, -1) {
		n := tokens[m[1]]
		delete(tokens, m[1])
		v := make([]float64, 4)
		for i := range v {
			v[i], _ = strconv.ParseFloat(m[2+i], 64)
		}
		seconds += n * v[0]
		read += n * v[2]
		requests += n * v[3]
		if math.Abs(v[0]*v[1]-1) > 1e-12 {
			t.Errorf("%v s/token and %v tokens/s", v[0], v[1])
		}
	}
	all := traces.ComputeTotals(run.Rows)
	if len(tokens) > 0 || math.Abs(seconds-all.Wall.Seconds()) > 1e-9 ||
		math.Abs(read-float64(all.Bytes)) > 1e-3 ||
		math.Abs(requests-float64(all.Requests)) > 1e-6 {
		t.Errorf("left %v; %v s, %v B, %v requests; the run has %+v\n%s", tokens, seconds, read,
			requests, all, out)
	}
	measured := makeRun(1, 1, 4, 2, false)
	b.Reset()
	if err := WriteGoBench(&b, measured); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "assume=exact") {
		t.Error("a measurement is said to be exact")
	}
}
