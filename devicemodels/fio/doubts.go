package fio

import (
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// Doubts collects warnings, of which each is listed once. The zero value is ready to use.
type Doubts struct {
	order []string
	first map[string]string
	count map[string]int
}

// Add adds the warning of a file or an entry.
func (d *Doubts) Add(source, warning string) {
	if d.count == nil {
		d.first, d.count = map[string]string{}, map[string]int{}
	}
	if d.count[warning]++; d.count[warning] == 1 {
		d.order, d.first[warning] = append(d.order, warning), source
	}
}

// List returns the warnings in the order in which they came up, each with its first source and the
// number of others.
func (d *Doubts) List() []string {
	var list []string
	for _, w := range d.order {
		more := ""
		if n := d.count[w] - 1; n > 0 {
			more = fmt.Sprintf(", and %d more", n)
		}
		list = append(list, fmt.Sprintf("%s%s: %s", d.first[w], more, w))
	}
	return list
}

// sequential returns the reason why reads of rw=randread:run are not random; "" when they are.
func (o options) sequential(run string) string {
	// rw=randread:8 seeks once in 8 reads
	if n, ok := size(run, o.kilo()); run != "" && (!ok || n != 1) {
		return fmt.Sprintf("rw=randread:%s reads up to %s blocks one after the other, which a "+
			"device reads ahead; a fit needs rw=randread", run, run)
	}
	if share, _, _ := strings.Cut(o["percentage_random"], ","); share != "" {
		if n, ok := size(share, o.kilo()); !ok || n < 100 {
			return fmt.Sprintf("percentage_random=%s: only that share of the reads is random; "+
				"remove it", share)
		}
	}
	if v := o["read_iolog"]; v != "" {
		return fmt.Sprintf("read_iolog=%s: the reads are those of a log, wherever they go; a fit "+
			"needs rw=randread alone", v)
	}
	return ""
}

// limited returns the option that limits a job below the rate of the device; "" when none does.
func (o options) limited() string {
	for _, name := range []string{"rate", "rate_iops", "thinktime", "latency_target", "flow"} {
		// of reads, writes, trims; the first holds for all if it is alone
		if v, _, _ := strings.Cut(o[name], ","); strings.Trim(v, "0") != "" {
			return fmt.Sprintf("%s=%s limits the job, not the device; remove it", name, o[name])
		}
	}
	if v := o["verify"]; v != "" && v != "0" && v != "null" {
		return fmt.Sprintf("verify=%s: the job also checks what it reads, which takes time of its "+
			"own; remove it", v)
	}
	return ""
}

// narrow is a range of addresses that a drive, or the memory of its controller, may keep at hand.
const narrow = 64 * units.MiB

// warnOfOptions warns of options under which a device is faster or slower than a fit assumes.
func (e *Entry) warnOfOptions() {
	o := e.given
	const few = 100
	if positive(e.IOs) && *e.IOs < few {
		e.warn("only %d requests were made, so the rate is hardly known; run the job longer",
			*e.IOs)
	}
	kind, _, _ := strings.Cut(o["random_distribution"], ":")
	switch kind {
	case "", "random":
	default:
		e.warn("random_distribution=%s: some places are read again and again, and a cache may "+
			"serve them; the rate is not that of reads spread evenly", o["random_distribution"])
	}
	if v := o["zonemode"]; v == "strided" || v == "" && o["zonesize"] != "" &&
		o["zonesize"] != "0" {
		e.warn("zonesize=%s: reads stay in one zone for a while, and are not spread evenly",
			o["zonesize"])
	}
	for _, name := range []string{"iodepth_batch_complete_min", "iodepth_low"} {
		n := o.count(name)
		if n == nil || e.Depth == nil || *e.Depth == 1 {
			continue
		}
		if name == "iodepth_low" && *n < *e.Depth || name != "iodepth_low" && *n > 1 {
			e.warn("%s=%d: the job lets reads complete before it submits more, so fewer than "+
				"iodepth=%d are in flight", name, *n, *e.Depth)
		}
	}
	if n, ok := size(o["size"], o.kilo()); ok && !strings.HasSuffix(o["size"], "%") {
		e.warnOfRange(n)
	}
}

// warnOfRange warns of reads that lie close together.
func (e *Entry) warnOfRange(bytes uint64) {
	if bytes > 0 && bytes < uint64(narrow) {
		e.warn("the reads were spread over %v alone, which a drive may keep in its own memory; a "+
			"file of 8GiB or more is better", units.Bytes(bytes))
	}
}

// unsteady is the standard deviation of the bandwidth, relative to its mean, from which one rate
// does not describe a job. A rate that halves at half time has 1/3.
const unsteady = 0.25

// warnOfCourse warns of a job whose rate is a mean of different rates.
func (e *Entry) warnOfCourse(j *job, d *direction) {
	const enough = 4 // samples
	samples := d.BWSamples.v
	if !d.BWSamples.set && e.Runtime != nil {
		samples = e.Runtime.Seconds() / 0.5
	}
	if mean := d.BWMean.v; samples >= enough && mean > 0 && d.BWDev.v > unsteady*mean {
		rate := func(n number) string { return units.Rate(min(n.v*1024, maxCount)).String() }
		e.warn("the rate was not steady: %s to %s in samples, mean %s, deviation %.0f %%; one "+
			"rate stands for all of them, and a log (write_bw_log) shows when it changed",
			rate(d.BWMin), rate(d.BWMax), rate(d.BWMean), 100*min(d.BWDev.v/mean, 1e6))
	}
	if j.Steady != nil && j.Steady.Attained.set && j.Steady.Attained.v == 0 {
		e.warn("the job ended before it was steady: steadystate=%s was not attained",
			j.Steady.Criterion)
	}
}
