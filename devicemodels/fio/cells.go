package fio

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
)

// Cell is one measured point of a device: Depth reads of Chunk bytes in flight gave Rate.
type Cell struct {
	// "uring", "pread" (one thread per request in flight), or fio's own name of another
	// asynchronous engine
	Engine    string
	FioEngine string // name in the job file
	Threads   int    // jobs that issued the requests; equal to Depth with pread
	Chunk     units.Bytes
	Depth     int // of all jobs together
	Rate      units.Rate

	IOs      *int64       // nil = not known
	LatMean  *units.Nanos // of the whole request; nil = not measured
	P50, P99 *units.Nanos // nil = not measured
	Bins     []Bin        // nil = none
	// the time behind P50, P99 and Bins: "lat", or "clat" (without the submission); "" = none
	PercentilesOf string

	Entries   []*Entry // in the sum
	Reference bool     // a repetition in job files of WriteJob, which shows drift
	Warnings  []string
}

// synchronous engines have one request in flight per job, for any iodepth.
var synchronous = map[string]bool{"sync": true, "psync": true, "vsync": true, "pvsync": true,
	"pvsync2": true, "mmap": true}

// asynchronous engines keep iodepth requests in flight. Engines in neither list are not known to
// read a device.
var asynchronous = map[string]bool{
	"io_uring": true, "io_uring_cmd": true, "libaio": true, "posixaio": true, "windowsaio": true,
	"solarisaio": true, "libblkio": true, "xnvme": true,
}

// passthrough engines send commands to the drive past the file system and the page cache, for any
// value of direct.
var passthrough = map[string]bool{"io_uring_cmd": true}

// overfull bounds the requests in flight, by Little's law, relative to the options. Below the share
// underfull something other than the device limited the job.
const (
	overfull  = 1.15
	underfull = 0.5
)

// maxSum caps sums of counts, each at most maxCount, so that they cannot overflow.
const maxSum = 1 << 62

// shape describes the requests of one job. Defaults of fio are filled in and listed in warnings.
type shape struct {
	engine   string
	block    units.Bytes
	depth    int // of one job
	jobs     int
	warnings []string
}

// shape returns the shape of the job, or the reason why it is unknown.
func (e *Entry) shape() (s shape, why string) {
	missing := func(option string) (shape, string) {
		return shape{}, fmt.Sprintf("the file does not give %s; %s", option, wantOptions)
	}
	byDefault := func(option string, value any) {
		s.warnings = append(s.warnings, fmt.Sprintf("%s is not given: fio's default of %v", option,
			value))
	}
	if e.Block != nil {
		s.block = *e.Block
	} else if e.given.has("bs", "bsrange", "bssplit") {
		return shape{}, "the job has no one block size; a fit needs jobs with one bs each"
	} else if s.block = defaultBlock; !e.complete {
		return missing("bs")
	} else {
		byDefault("bs", int64(defaultBlock))
	}
	if s.engine = e.Engine; s.engine == "" {
		if s.engine = "psync"; !e.complete || e.given.has("ioengine") {
			return missing("ioengine")
		}
		byDefault("ioengine", s.engine)
	}
	if !synchronous[s.engine] && !asynchronous[s.engine] {
		return shape{}, fmt.Sprintf("ioengine=%s is not known to read a device; use io_uring, "+
			"libaio or psync", s.engine)
	}
	switch s.depth = 1; {
	case synchronous[s.engine]:
	case e.Depth != nil:
		s.depth = *e.Depth
	case !e.complete || e.given.has("iodepth"):
		return missing("iodepth")
	default:
		byDefault("iodepth", 1)
	}
	switch s.jobs = 1; {
	case e.Jobs != nil:
		s.jobs = *e.Jobs
	case !e.complete || e.given.has("numjobs"):
		return missing("numjobs")
	}
	return s, ""
}

// contradiction describes a difference between the measurement and the options. Bytes may exceed
// the counted requests by those in flight at the end of the ramp time.
func (e *Entry) contradiction(s shape) string {
	if e.wrongUnit != "" {
		return e.wrongUnit
	}
	if e.Bytes != nil && positive(e.IOs) {
		got, want := float64(*e.Bytes), float64(*e.IOs)*float64(s.block)
		inFlight := float64(s.block) * float64(s.depth) * float64(s.jobs)
		if off := got - want; off > inFlight+0.01*want || off < -inFlight-0.01*want {
			return fmt.Sprintf("its requests had %.0f bytes on average, but its options say %d",
				got/float64(*e.IOs), s.block)
		}
	}
	if n := e.inFlight(); n > overfull*float64(s.depth)*float64(s.jobs) {
		return fmt.Sprintf("%.3g requests were in flight on average (IOPS × mean latency), but "+
			"its options say %d; "+
			"jobs that run together need stonewall between them, or no group_reporting", n,
			s.depth*s.jobs)
	}
	return ""
}

// inFlight is the mean number of requests in flight by Little's law; 0 when unknown. Without the
// whole latency it is that of the completion, which is a little shorter.
func (e *Entry) inFlight() float64 {
	mean := e.Total.Mean
	if mean == nil {
		mean = e.Complete.Mean
	}
	if e.IOPS == nil || mean == nil {
		return 0
	}
	return *e.IOPS * mean.Seconds()
}

// LeftOut is an entry that is in no cell.
type LeftOut struct {
	Entry *Entry
	Why   string
}

// String names the entry and the reason.
func (l LeftOut) String() string { return l.Entry.Source() + ": " + l.Why }

// Cells converts the reads of files to cells, in the order of the files. A cell is the sum of the
// entries of one group of jobs, which ran at the same time. The second result holds the other
// entries, except those that repeat the requests of another.
func Cells(files []*File) (cells []Cell, leftOut []LeftOut) {
	type run struct {
		file, run int
		host      string
	}
	type key struct {
		run
		group int
	}
	var order []key
	groups, runs := map[key][]*Entry{}, map[run][]key{}
	for i, f := range files {
		for n := range f.Entries {
			e := &f.Entries[n]
			k := key{run{i, e.run, e.Host}, e.Group}
			if groups[k] == nil {
				order, runs[k.run] = append(order, k), append(runs[k.run], k)
			}
			if !e.twice {
				groups[k] = append(groups[k], e)
			}
		}
	}
	crowded := map[key]string{}
	for _, keys := range runs {
		var lists [][]*Entry
		for _, k := range keys {
			lists = append(lists, groups[k])
		}
		for place, why := range besideOthers(lists) {
			crowded[keys[place]] = why
		}
	}
	for _, k := range order {
		cell, why := together(groups[k], crowded[k])
		if why == nil {
			cells = append(cells, cell)
			continue
		}
		for i, e := range groups[k] {
			leftOut = append(leftOut, LeftOut{e, why[i]})
		}
	}
	return cells, leftOut
}

// Source names the file, the job and the host of an entry.
func (e *Entry) Source() string {
	s := e.File + ": " + e.Job
	if e.Host != "" {
		s += " on " + e.Host
	}
	return s
}

// together makes one cell of simultaneous entries, or returns the reason for every entry.
// crowded is a reason that holds for all of them.
func together(list []*Entry, crowded string) (Cell, []string) {
	why := make([]string, len(list))
	shapes := make([]shape, len(list))
	bad := -1
	for i, e := range list {
		if why[i] = e.Usable(); why[i] == "" {
			shapes[i], _ = e.shape()
		} else if bad < 0 {
			bad = i
		}
	}
	if bad >= 0 {
		for i := range why {
			if why[i] == "" {
				why[i] = fmt.Sprintf("it ran beside %q, which cannot be used: %s", list[bad].Job,
					why[bad])
			}
		}
		return Cell{}, why
	}
	all := func(reason string) (Cell, []string) {
		return Cell{}, slices.Repeat([]string{reason},
			len(list))
	}
	reason := crowded
	if reason == "" {
		reason = startedTogether(list)
	}
	if reason != "" {
		return all(reason)
	}
	depth, threads, reason := inFlightOf(list, shapes)
	if reason != "" {
		return all(reason)
	}
	c := Cell{FioEngine: shapes[0].engine, Engine: neutral(shapes[0].engine),
		Chunk: shapes[0].block, Depth: depth, Threads: threads,
		Entries: list, Reference: strings.HasPrefix(list[0].Job, referenceName)}
	if reason := c.add(list); reason != "" {
		return all(reason)
	}
	for i, e := range list {
		for _, w := range slices.Concat(e.Warnings, shapes[i].warnings) {
			if !slices.Contains(c.Warnings, w) {
				c.Warnings = append(c.Warnings, w)
			}
		}
	}
	return c, nil
}

// neutral names an engine as device models do.
func neutral(engine string) string {
	switch {
	case engine == "io_uring":
		return ioengine.Uring
	case synchronous[engine]:
		return ioengine.Pread
	}
	return engine
}

// inFlightOf counts the requests in flight and the jobs of a group. With group_reporting one entry
// represents all numjobs of its section; otherwise each has an entry.
func inFlightOf(list []*Entry, shapes []shape) (depth, threads int, why string) {
	named := map[string]int{}
	for _, e := range list {
		named[e.Job]++
	}
	for i, e := range list {
		s, n := shapes[i], named[e.Job]
		switch {
		case s.engine != shapes[0].engine || s.block != shapes[0].block:
			return 0, 0, "jobs with other engines or block sizes ran at the same time; put " +
				"stonewall between them"
		case n == 1:
			depth, threads = depth+s.depth*s.jobs, threads+s.jobs
		case n%s.jobs == 0:
			depth, threads = depth+s.depth, threads+1
		default:
			return 0, 0, fmt.Sprintf("the file has %d of the %d jobs of this name", n, s.jobs)
		}
	}
	return depth, threads, ""
}

// add sums the measurements of the entries. It returns the reason why the sum is not the rate of
// the device.
func (c *Cell) add(list []*Entry) (why string) {
	var inFlight, weighted, weight float64
	var shortest, longest units.Nanos
	ios, haveIOs, haveMean, haveFlight := int64(0), true, true, true
	for _, e := range list {
		c.Rate = min(c.Rate+*e.Bandwidth, maxSum)
		if haveIOs = haveIOs && e.IOs != nil; haveIOs {
			ios = min(ios+*e.IOs, maxSum)
		}
		haveFlight = haveFlight && e.inFlight() > 0
		inFlight += e.inFlight()
		if haveMean = haveMean && e.Total.Mean != nil && e.IOPS != nil; haveMean {
			weighted, weight = weighted+*e.IOPS*float64(*e.Total.Mean), weight+*e.IOPS
		}
		if e.Runtime != nil {
			longest = max(longest, *e.Runtime)
			if shortest == 0 || *e.Runtime < shortest {
				shortest = *e.Runtime
			}
		}
	}
	if float64(longest) > 1.1*float64(shortest) {
		return fmt.Sprintf("the jobs of its group ran for %v to %v, so not all the time together",
			shortest, longest)
	}
	if haveIOs {
		c.IOs = &ios
	}
	switch {
	case len(list) == 1:
		c.LatMean = list[0].Total.Mean
	case haveMean && weight > 0:
		c.LatMean = ptr(units.Nanos(weighted / weight))
	}
	switch full := float64(c.Depth); {
	case !haveFlight:
		c.Warnings = append(c.Warnings, "no mean latency: the number of requests in flight "+
			"cannot be checked")
	case inFlight > overfull*full:
		return fmt.Sprintf("%.3g requests were in flight on average (IOPS × mean latency), but "+
			"the options say %d", inFlight, c.Depth)
	case inFlight < underfull*full:
		c.Warnings = append(c.Warnings, fmt.Sprintf("only %.3g of %d requests were in flight on "+
			"average: something else than the device held the job back", inFlight, c.Depth))
	}
	c.spread(list)
	return ""
}

// spread sets percentiles and histogram, of the total latency where the entries have them and of
// the completion otherwise. Percentiles of several entries need their histograms.
func (c *Cell) spread(list []*Entry) {
	for _, kind := range []struct {
		name string
		of   func(*Entry) *Latency
	}{
		{"lat", func(e *Entry) *Latency { return &e.Total }},
		{"clat", func(e *Entry) *Latency { return &e.Complete }},
	} {
		one := kind.of(list[0])
		if len(list) == 1 {
			c.Bins, c.P50, c.P99 = one.Bins, one.Percentile(50), one.Percentile(99)
		} else {
			c.Bins = mergeBins(list, kind.of)
			c.P50, c.P99 = percentileOf(c.Bins, 50), percentileOf(c.Bins, 99)
		}
		if c.P50 != nil || c.P99 != nil {
			c.PercentilesOf = kind.name
			return
		}
	}
}

// mergeBins sums histograms; nil when one is missing.
func mergeBins(list []*Entry, of func(*Entry) *Latency) []Bin {
	sum := map[units.Nanos]int64{}
	for _, e := range list {
		l := of(e)
		if l.Bins == nil {
			return nil
		}
		for _, b := range l.Bins {
			sum[b.At] = min(sum[b.At]+b.Count, maxSum)
		}
	}
	var bins []Bin
	for _, at := range slices.Sorted(maps.Keys(sum)) {
		bins = append(bins, Bin{At: at, Count: sum[at]})
	}
	return bins
}

// Drift returns the largest difference, in percent, between the rates of a repeated point: (highest
// / lowest − 1) over all points. repeats is the number of measurements of the most repeated point;
// 1 means that drift is unknown.
func Drift(cells []Cell) (pct float64, repeats int) {
	type point struct {
		engine  string
		chunk   units.Bytes
		depth   int
		threads int
	}
	rates := map[point][]units.Rate{}
	for _, c := range cells {
		p := point{c.FioEngine, c.Chunk, c.Depth, c.Threads}
		rates[p] = append(rates[p], c.Rate)
		repeats = max(repeats, len(rates[p]))
	}
	for _, list := range rates {
		if low := slices.Min(list); low > 0 {
			pct = max(pct, 100*(float64(slices.Max(list))/float64(low)-1))
		}
	}
	return pct, repeats
}
