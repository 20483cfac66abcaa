package fio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// elbencho writes one row, or one JSON object, for every phase of a run. What it calls "first done"
// is measured until the first thread was done, so with all requests in flight; "last done" also
// has the time in which fewer and fewer threads were at work. MiB/s are whole numbers in its CSV,
// so that the rate is that of IOPS × block size.

// elbenchoHead begins its CSV.
const elbenchoHead = "ISO date,label,path type,"

// phase is one row, or one object, with the names of the columns of the CSV.
type phase map[string]string

func (p phase) number(name string) number {
	v, err := strconv.ParseFloat(p[name], 64)
	return number{v, err == nil && v >= 0 && v <= maxCount}
}

// readElbencho reads the CSV or the JSON of elbencho.
func readElbencho(f *File, data []byte) (mine bool, err error) {
	first := firstLine(data)
	var phases []phase
	switch {
	case bytes.HasPrefix(first, []byte(elbenchoHead)):
		phases, err = elbenchoRows(data)
	case bytes.HasPrefix(first, []byte("{")) && bytes.Contains(first, []byte(`"phase_type"`)):
		phases, err = elbenchoObjects(data)
	default:
		return false, nil
	}
	if err != nil {
		return true, err
	}
	f.Tool = toolElbencho
	skipped := 0
	for i, p := range phases {
		if p["version"] != "" && f.Version == "" {
			f.Version = "elbencho " + p["version"]
		}
		if !p.number("IOPS [last]").set {
			skipped++ // no requests: MKDIRS, SYNC, …
			continue
		}
		f.Entries = append(f.Entries, f.elbenchoEntry(i, p))
	}
	if skipped > 0 {
		f.warn("%d phases without reads or writes of blocks are left out", skipped)
	}
	if len(f.Entries) == 0 {
		return true, errors.New("holds no phase of elbencho that reads; run it with -r --direct " +
			"--rand")
	}
	return true, nil
}

// elbenchoRows splits the CSV. It has no quotes around values, and no commas in them: the last
// column holds the command with quotes of its own.
func elbenchoRows(data []byte) ([]phase, error) {
	var names []string
	var list []phase
	number := 0
	for raw := range bytes.Lines(data) {
		number++
		line := strings.TrimRight(string(raw), "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		values := strings.Split(line, ",")
		if strings.HasPrefix(line, elbenchoHead) { // older versions repeated it
			names = values
			continue
		}
		if len(values) != len(names) {
			return nil, fmt.Errorf("line %d of elbencho's CSV has %d columns, and its head %d: "+
				"the file is cut off, or of two versions", number, len(values), len(names))
		}
		if len(list) == maxJobs {
			return nil, fmt.Errorf("it holds more than %d phases", maxJobs)
		}
		p := phase{"line": fmt.Sprintf("line %d", number)}
		for i, name := range names {
			p[name] = strings.TrimSpace(values[i])
		}
		list = append(list, p)
	}
	return list, nil
}

// elbenchoDone are the results of a phase until a thread was done.
type elbenchoDone struct {
	Elapsed number `json:"elapsed_time_ms"`
	IOPS    number `json:"iops"`
	Rate    number `json:"bytes/s"`
	Bytes   number `json:"bytes"`
	Latency struct {
		IO struct {
			Mean number `json:"avg_us"`
		} `json:"IO"`
	} `json:"latency"`
}

// elbenchoObjects reads the JSON, one object a line, as rows of the CSV.
func elbenchoObjects(data []byte) ([]phase, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	var list []phase
	for {
		var one struct {
			Type   text `json:"phase_type"`
			Label  text `json:"label"`
			Config struct {
				Path    text `json:"path_type"`
				Hosts   text `json:"hosts"`
				Threads text `json:"threads"`
				Size    text `json:"file_size"`
				Block   text `json:"block_size"`
				Direct  text `json:"direct_io"`
				Random  text `json:"random_offsets"`
				Aligned text `json:"random_aligned"`
				Depth   text `json:"io_depth"`
				Version text `json:"version"`
				Command text `json:"command"`
			} `json:"config"`
			First elbenchoDone `json:"first_done"`
			Last  elbenchoDone `json:"last_done"`
		}
		at := dec.InputOffset()
		err := decode(dec, &one)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the JSON of elbencho that begins at byte %d cannot be read: %w",
				at, err)
		}
		if len(list) == maxJobs {
			return nil, fmt.Errorf("it holds more than %d phases", maxJobs)
		}
		flag := func(t text) string {
			return strings.NewReplacer("true", "1", "false", "0").Replace(string(t))
		}
		put := func(n number) string {
			if !n.set {
				return ""
			}
			return strconv.FormatFloat(n.v, 'f', -1, 64)
		}
		c := &one.Config
		list = append(list, phase{
			"line": fmt.Sprintf("object %d", len(list)+1), "label": string(one.Label),
			"operation": string(one.Type), "path type": string(c.Path), "hosts": string(c.Hosts),
			"threads": string(c.Threads), "file size": string(c.Size),
			"block size": string(c.Block),
			"direct IO":  flag(c.Direct), "random": flag(c.Random),
			"random aligned": flag(c.Aligned), "IO depth": string(c.Depth),
			"version": string(c.Version), "command": string(c.Command),
			"time ms [first]": put(one.First.Elapsed), "time ms [last]": put(one.Last.Elapsed),
			"IOPS [first]": put(one.First.IOPS), "IOPS [last]": put(one.Last.IOPS),
			"B/s [first]": put(one.First.Rate), "B/s [last]": put(one.Last.Rate),
			"bytes [last]": put(one.Last.Bytes), "IO lat us [avg]": put(one.Last.Latency.IO.Mean),
		})
	}
}

// elbenchoEntry is one phase.
func (f *File) elbenchoEntry(group int, p phase) Entry {
	operation := p["operation"]
	e := Entry{File: f.Name, Job: strings.TrimSpace(p["line"] + " " + operation + " " + p["label"]),
		Group: group, Direction: "read", RW: "randread", tool: toolElbencho}
	switch {
	case operation == "READ":
	case strings.HasPrefix(operation, "RWMIX"), strings.HasPrefix(operation, "MIX-T"):
		e.Direction, e.withWrite = "mixed", true
	default:
		e.Direction = "write"
	}
	if p["random"] == "0" {
		e.RW = "read"
	}
	e.Block = positiveSize(p.number("block size"))
	e.Depth, e.Jobs = inFlight(p.number("IO depth")), inFlight(p.number("threads"))
	if e.Depth != nil {
		if e.Engine = "psync"; *e.Depth > 1 {
			e.Engine = "libaio"
		}
	}
	switch p["direct IO"] {
	case "1":
		e.Direct = ptr(true)
	case "0":
		e.Direct = ptr(false)
	}
	e.setElbenchoRates(p)
	if size := positiveSize(p.number("file size")); size != nil && p["path type"] == "file" {
		e.warnOfRange(uint64(*size))
	}
	if p["random aligned"] == "0" {
		e.warn("the reads were not aligned to their size (--norandalign), so that more than they " +
			"hold is read")
	}
	e.refused = elbenchoRefused(p)
	return e
}

// setElbenchoRates sets counts, rates and the latency.
func (e *Entry) setElbenchoRates(p phase) {
	which := "[first]"
	if !positive(p.number("IOPS " + which).count()) {
		which = "[last]"
	}
	if iops := p.number("IOPS " + which); iops.set {
		e.IOPS = &iops.v
	}
	if e.IOPS != nil && e.Block != nil {
		if rate := *e.IOPS * float64(*e.Block); rate < maxCount {
			e.Bandwidth = ptr(units.Rate(rate))
		}
	}
	if n := p.number("MiB [last]"); n.set {
		e.Bytes = positiveSize(number{n.v * float64(units.MiB), true})
	} else {
		e.Bytes = positiveSize(p.number("bytes [last]"))
	}
	if e.Bytes != nil && e.Block != nil {
		e.IOs = ptr(int64(*e.Bytes / *e.Block))
		e.Bytes = ptr(units.Bytes(*e.IOs) * *e.Block) // MiB are rounded down
	}
	e.Runtime = p.number("time ms " + which).nanos(units.Millisecond)
	e.Total.Mean = p.number("IO lat us [avg]").nanos(units.Microsecond)
	mib := p.number("MiB/s " + which)
	if e.Bandwidth != nil && mib.set {
		got := float64(*e.Bandwidth) / float64(units.MiB)
		if off := got - mib.v; off > 1.01+0.01*got || off < -0.01-0.01*got {
			e.wrongUnit = fmt.Sprintf("%.0f MiB/s and %.0f IOPS contradict each other for "+
				"requests of %v", mib.v, *e.IOPS, *e.Block)
		}
	}
}

// elbenchoRefused returns the reason why a phase is not that of a device; "" when it is.
func elbenchoRefused(p phase) string {
	switch p["path type"] {
	case "file", "blockdev", "dir", "":
	default:
		return fmt.Sprintf("it read from a %s, not from a device", p["path type"])
	}
	if n := p.number("hosts"); n.set && n.v > 1 {
		return fmt.Sprintf("the rates of %.0f hosts are added up; a device model is of one", n.v)
	}
	for _, flag := range []struct{ name, why string }{
		{"--mmap", "reads through the page cache"},
		{"--limitread", "limits the reads"},
		{"--verify", "also checks what it reads"},
		{"--backward", "reads backwards, not at random"},
		{"--strided", "reads in strides, not at random"},
		{"--gpuids", "reads into the memory of a GPU"},
		{"--cufile", "reads into the memory of a GPU"},
		{"--cuhostbufreg", "reads into the memory of a GPU"},
	} {
		if strings.Contains(p["command"], `"`+flag.name) {
			return flag.name + " " + flag.why + "; run elbencho without it"
		}
	}
	return ""
}

func positiveSize(n number) *units.Bytes {
	if v := n.count(); positive(v) {
		return ptr(units.Bytes(*v))
	}
	return nil
}

// inFlight reads a number of threads or requests.
func inFlight(n number) *int {
	if v := n.count(); positive(v) && *v <= maxInFlight {
		return ptr(int(*v))
	}
	return nil
}
