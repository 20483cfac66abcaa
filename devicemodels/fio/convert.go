package fio

import (
	"fmt"
	"math"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// entries returns the entries of one job: one for every direction with requests, or one without
// requests when there are none.
func (f *File) entries(j *job, global globals, run int, seen *traits) []Entry {
	directions := []struct {
		name string
		d    *direction
	}{{"read", j.Read}, {"write", j.Write}, {"trim", j.Trim}, {"mixed", j.Mixed}}
	var list []Entry
	first := -1
	for i, one := range directions {
		if one.d == nil {
			continue
		}
		if first < 0 {
			first = i
		}
		if one.d.active() {
			list = append(list, f.entry(j, global, one.name, one.d, run, seen))
		}
	}
	switch {
	case list != nil:
	case first >= 0:
		list = append(list, f.entry(j, global, directions[first].name, directions[first].d, run,
			seen))
	default:
		list = append(list, f.entry(j, global, "read", &direction{}, run, seen))
	}
	reads := list[0].Direction == "read"
	for i := range list {
		list[i].withWrite = j.Write != nil && j.Write.active() || j.Trim != nil && j.Trim.active()
		list[i].twice = list[i].Direction == "mixed" && reads && list[0].IOs != nil &&
			*list[0].IOs > 0
	}
	return list
}

func (d *direction) active() bool {
	for _, n := range []number{d.IOs, d.IOBytes, d.IOPS, d.BW, d.BWBytes, d.Short, d.Dropped} {
		if n.v > 0 {
			return true
		}
	}
	return false
}

// entry converts one direction of a job.
func (f *File) entry(j *job, global globals, name string, d *direction, run int,
	seen *traits) Entry {
	e := Entry{File: f.Name, Job: string(j.Name), Host: string(j.Host), Group: j.Group.whole(),
		Direction: name, Error: j.Error.whole(), run: run, tool: toolFio}
	if n := j.Failed.count(); n != nil {
		e.Errors = *n
	}
	if start := j.Start.count(); start != nil {
		e.start = float64(*start)
	}
	if j.Host != "" && j.Port != "" {
		e.Host += ":" + string(j.Port)
	}
	e.Short, e.Dropped, e.IOs = d.Short.count(), d.Dropped.count(), d.IOs.count()
	if d.IOPS.set && d.IOPS.v >= 0 {
		e.IOPS = ptr(d.IOPS.v)
	}
	if v := d.BWBytes.count(); v != nil {
		e.Bandwidth = ptr(units.Rate(*v))
	} else if v := (number{d.BW.v * 1024, d.BW.set}).count(); v != nil {
		e.Bandwidth = ptr(units.Rate(*v))
	}
	e.Runtime = d.Runtime.nanos(units.Millisecond)
	e.Submit = d.latency(d.SlatNs, d.Slat, seen)
	e.Complete = d.latency(d.ClatNs, d.Clat, seen)
	e.Total = d.latency(d.LatNs, d.Lat, seen)
	e.setOptions(j, global.of(j.Host, j.Port))
	e.setBytes(d)
	e.setBlock()
	e.moveLatPercentiles(e.given)
	e.warnOfOptions()
	e.warnOfCourse(j, d)
	return e
}

// latency converts the times of one kind, in nanoseconds or else in microseconds. fio writes zeros
// for unmeasured times, also when it was told not to read the clock (gtod_reduce).
func (d *direction) latency(ns, us *latency, seen *traits) Latency {
	from, unit := ns, units.Nanos(1)
	if from == nil {
		from, unit = us, units.Microsecond
	}
	if from == nil {
		return Latency{}
	}
	seen.microseconds = seen.microseconds || unit == units.Microsecond
	seen.emptyPercentiles = seen.emptyPercentiles || from.Percentiles.zero
	l := Latency{Mean: from.Mean.nanos(unit), Samples: from.N.count()}
	if l.Mean == nil || l.Samples != nil && *l.Samples == 0 {
		return Latency{Samples: l.Samples}
	}
	for _, p := range from.Percentiles.list {
		if at := (number{p.value, true}).nanos(unit); at != nil && p.key > 0 && p.key <= 100 {
			l.Percentiles = append(l.Percentiles, Percentile{P: p.key, At: *at})
		}
	}
	if unit != 1 || from.Bins.odd {
		seen.oldBins = seen.oldBins || len(from.Bins.list) > 0
		return l
	}
	for _, b := range from.Bins.list {
		at, n := number{b.key, true}.nanos(unit), number{b.value, true}.count()
		if at != nil && positive(n) {
			l.Bins = append(l.Bins, Bin{At: *at, Count: *n})
		}
	}
	return l
}

// setBytes reads io_bytes. fio 2 wrote KiB, and bytes in its last versions. Requests × block size
// and bandwidth × runtime decide the unit where they are known; io_bytes that is in neither unit is
// a contradiction. Otherwise the keys decide: it is in KiB where latencies are in microseconds.
func (e *Entry) setBytes(d *direction) {
	if !d.IOBytes.set || d.IOBytes.v < 0 {
		return
	}
	scale := 1.0
	if !d.IOKBytes.set {
		want, of := e.expectedBytes(d)
		switch v := d.IOBytes.v; {
		case close10(v, want):
			if d.oldKeys() {
				e.warn("io_bytes is taken as bytes: so %s have it", of)
			}
		case close10(v*1024, want):
			if scale = 1024; !d.oldKeys() {
				e.warn("io_bytes is taken as KiB: so %s have it", of)
			}
		case want > 0 && v > 0:
			e.wrongUnit = fmt.Sprintf("io_bytes is %.0f, but %s are %.0f bytes: it is neither "+
				"bytes nor KiB", v, of, want)
			return
		case d.oldKeys():
			scale = 1024
			e.warn("io_bytes is taken as KiB, as older versions of fio 2 write it: nothing in " +
				"the file shows the unit")
		}
	}
	if n := (number{d.IOBytes.v * scale, true}).count(); n != nil {
		e.Bytes = ptr(units.Bytes(*n))
	}
}

// oldKeys reports the keys of fio 2, whose latencies are in microseconds.
func (d *direction) oldKeys() bool { return d.ClatNs == nil && d.LatNs == nil && d.SlatNs == nil }

// expectedBytes computes the bytes of an entry from its other numbers, and names them; 0 when they
// are unknown.
func (e *Entry) expectedBytes(d *direction) (want float64, of string) {
	if block, _ := e.given.block(e.Direction, 0); block != nil && positive(e.IOs) {
		return float64(*e.IOs) * float64(*block), fmt.Sprintf("%d requests of %d bytes", *e.IOs,
			*block)
	}
	if d.BW.set && d.Runtime.set {
		return d.BW.v * 1024 * d.Runtime.v / 1000, "bandwidth × runtime"
	}
	return 0, ""
}

// close10 reports whether two positive numbers differ by less than 10 %.
func close10(a, b float64) bool { return a > 0 && b > 0 && math.Abs(a-b) < 0.1*b }

// setOptions reads the options.
func (e *Entry) setOptions(j *job, global optionsObject) {
	var own optionsObject
	if j.Options != nil {
		own, e.complete = *j.Options, *j.Options != nil
	}
	o := merged(global, own)
	e.given = o
	e.RW, e.Engine = o["rw"], o["ioengine"]
	if e.Direct = o.flag("direct"); e.Direct == nil {
		if buffered := o.flag("buffered"); buffered != nil {
			e.Direct = ptr(!*buffered)
		}
	}
	e.Depth, e.Jobs = o.count("iodepth"), o.count("numjobs")
	for _, name := range []string{"iodepth", "numjobs"} {
		if o[name] != "" && o.count(name) == nil {
			e.warn("%s=%s is no number from 1 to %d", name, o[name], maxInFlight)
		}
	}
	if synchronous[e.Engine] && e.Depth != nil && *e.Depth > 1 {
		e.warn("iodepth=%d has no effect: ioengine=%s has one request in flight per job", *e.Depth,
			e.Engine)
	}
}

// setBlock reads the block size.
func (e *Entry) setBlock() {
	var mean float64
	if e.Bytes != nil && positive(e.IOs) {
		mean = float64(*e.Bytes) / float64(*e.IOs)
	}
	block, warning := e.given.block(e.Direction, mean)
	e.Block = block
	if warning != "" {
		e.warn("%s", warning)
	}
}

// moveLatPercentiles corrects the kind of percentiles: with lat_percentiles some versions print
// those of the total latency under the name of the completion latency.
func (e *Entry) moveLatPercentiles(o options) {
	c, t := &e.Complete, &e.Total
	if o["lat_percentiles"] != "1" || t.Mean == nil || t.Percentiles != nil ||
		c.Percentiles == nil {
		return
	}
	t.Percentiles, c.Percentiles = c.Percentiles, nil
	t.Bins, c.Bins = c.Bins, nil
	e.warn("the percentiles under clat are those of lat: lat_percentiles=1")
}

func (e *Entry) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !strings.Contains(strings.Join(e.Warnings, "\n"), w) {
		e.Warnings = append(e.Warnings, w)
	}
}
