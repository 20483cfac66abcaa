package fio

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// ErrFormat is wrapped by every error about a file that is no output of fio, and of no other tool
// that is read here.
var ErrFormat = refusal.Kind(refusal.ErrInput, "not a measurement that is read")

// File is one output of fio or of another tool.
type File struct {
	Name     string // as given to Parse
	Tool     string // "fio", "elbencho", "KDiskMark", "CrystalDiskMark", …
	Version  string // "fio-3.33"; "" = not known
	Entries  []Entry
	Log      *Log     // of a bandwidth log, which has no entries; nil otherwise
	Errors   []string // lines around the JSON that report an error
	Warnings []string
}

// HasErrors reports whether fio reported an error, in the JSON or around it. Use such a file only
// on request.
func (f *File) HasErrors() bool {
	return len(f.Errors) > 0 || slices.ContainsFunc(f.Entries, func(e Entry) bool {
		return e.Error != 0 || e.Errors != 0
	})
}

// Entry is one direction of one job. A nil field is unknown: the file does not contain it.
type Entry struct {
	File string // name of the file
	Job  string
	Host string // in client/server runs; "" otherwise
	// entries of one group ran at the same time, those of different groups after each other
	Group     int
	Direction string // "read", "write", "trim" or "mixed"

	RW     string // the option rw: "randread", "read", …
	Engine string // the option ioengine
	Direct *bool  // the options direct and buffered
	Block  *units.Bytes
	Depth  *int // the option iodepth, which synchronous engines do not obey
	Jobs   *int // the option numjobs

	Error     int    // error number of the job; 0 = none
	Errors    int64  // requests that failed in a job that went on (continue_on_error)
	Short     *int64 // requests that moved too few bytes
	Dropped   *int64
	IOs       *int64
	Bytes     *units.Bytes
	IOPS      *float64
	Bandwidth *units.Rate
	Runtime   *units.Nanos

	Submit, Complete, Total Latency // slat, clat, lat

	Warnings []string

	given     options // options of the job; empty = the file holds no options
	complete  bool    // options that are absent have fio's default
	run       int     // of the file's JSON documents, counted from 0
	withWrite bool    // the job also wrote or trimmed
	twice     bool    // the same requests are in another entry
	tool      string  // File.Tool
	start     float64 // of the job, in ms since 1970; 0 = not known
	refused   string  // reason of another tool's reader why a fit cannot use it
	wrongUnit string  // contradiction about io_bytes
}

// Latency is one of the three times that fio measures for every request. The zero value is an
// unmeasured time.
type Latency struct {
	Mean        *units.Nanos
	Samples     *int64
	Percentiles []Percentile // in ascending order of P; nil = none
	Bins        []Bin        // histogram of json+, in ascending order of At; nil = none
}

// Percentile says that P percent of the requests took At or less.
type Percentile struct {
	P  float64 // above 0, at most 100
	At units.Nanos
}

// Bin counts the requests that took about At.
type Bin struct {
	At    units.Nanos
	Count int64
}

// Percentile returns the time that p percent of the requests were below, where fio printed that
// percentile or the histogram; otherwise nil.
func (l *Latency) Percentile(p float64) *units.Nanos {
	for _, q := range l.Percentiles {
		if q.P == p {
			return &q.At
		}
	}
	return percentileOf(l.Bins, p)
}

// percentileOf returns the first bin with p percent of the requests at or below it, as fio computes
// it; nil without bins.
func percentileOf(bins []Bin, p float64) *units.Nanos {
	var all, sum float64
	for _, b := range bins {
		all += float64(b.Count)
	}
	for _, b := range bins {
		if sum += float64(b.Count); sum >= p/100*all {
			return &b.At
		}
	}
	return nil
}

// Failed returns the reason why the measurement of the entry is invalid; "" when it is valid. A
// valid measurement that a device fit cannot use has not failed.
func (e *Entry) Failed() string {
	switch {
	case e.Error != 0:
		return fmt.Sprintf("the job failed with error %d", e.Error)
	case e.Errors > 0:
		return fmt.Sprintf("%d requests failed and the job went on (continue_on_error)", e.Errors)
	case positive(e.Short):
		return fmt.Sprintf("%d requests were short", *e.Short)
	case positive(e.Dropped):
		return fmt.Sprintf("%d requests were dropped", *e.Dropped)
	case e.IOs != nil && *e.IOs == 0, e.IOs == nil && e.Bytes != nil && *e.Bytes == 0:
		return "no requests were made"
	}
	return ""
}

// Usable returns the reason why a device fit cannot use the entry; "" when it can, by the entry
// alone. Cells also examines the simultaneous entries.
func (e *Entry) Usable() string {
	if e.Direction != "read" && e.Direction != "mixed" {
		return "it is a " + e.Direction + "; a fit needs rw=randread"
	}
	if why := e.Failed(); why != "" {
		return why
	}
	if why := e.workload(); why != "" {
		return why
	}
	if e.Bandwidth == nil || *e.Bandwidth == 0 {
		return "the file gives no rate"
	}
	s, why := e.shape()
	if why == "" {
		why = e.contradiction(s)
	}
	return why
}

// workload returns the reason why a fit cannot use the job's workload.
func (e *Entry) workload() string {
	if e.twice {
		return "the same requests are in the entry of the reads"
	}
	if e.withWrite {
		return "the job also wrote; a fit needs rw=randread"
	}
	if e.refused != "" {
		return e.refused
	}
	rw, run, _ := strings.Cut(e.RW, ":")
	switch {
	case rw == "" && !e.complete:
		return "the file does not give rw, so the reads may be sequential; " + wantOptions
	case rw == "", rw == "read":
		return "the reads are sequential, which a device reads ahead; a fit needs rw=randread"
	case rw != "randread":
		return fmt.Sprintf("rw=%s is not reads alone; a fit needs rw=randread", rw)
	}
	if why := e.given.sequential(run); why != "" {
		return why
	}
	if why := e.given.limited(); why != "" {
		return why
	}
	if e.Engine == "mmap" {
		return "ioengine=mmap reads through the page cache; use psync or io_uring with direct=1"
	}
	if passthrough[e.Engine] {
		return ""
	}
	if e.Direct == nil && !e.complete {
		return "the file does not say whether the reads were direct; " + wantOptions
	}
	if e.Direct == nil || !*e.Direct {
		return "the reads are buffered, so the page cache may have served them; add direct=1"
	}
	return ""
}

// wantOptions is the remedy where options are missing.
const wantOptions = "fio 2.17 and later list the options of their jobs, save for some jobs of a " +
	"client with group_reporting"

func positive(n *int64) bool { return n != nil && *n > 0 }
