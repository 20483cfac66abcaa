package fio

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// A report of CrystalDiskMark or of one of the programs that look like it has a head with the
// program's name, sections for reads and writes, and a line for each test:
//
//	RND    4KiB (Q= 32, T=16):  4094.649 MB/s [ 999670.2 IOPS] <   494.56 us>
//
// KDiskMark runs fio and prints its KiB/s divided by 1000 as MB/s, and the mean of clat as the
// latency. IOPS × block size is the rate of both programs.
var (
	diskMarkHead = regexp.MustCompile(`^(\w*DiskMark)\s+\(?([0-9][^\s)]*)`)
	diskMarkTest = regexp.MustCompile(`^(SEQ|RND|Sequential|Random)\s*(?:Read|Write)?\s*` +
		`(?:(\d+)\s*([KM]i?B))?\s*\(\s*QD?=\s*(\d+)\s*(?:,\s*T=\s*(\d+)\s*)?\)\s*:\s*` +
		`([\d.]+)\s*MB/s(?:\s*\[\s*([\d.]+)\s*IOPS\s*\])?(?:\s*<\s*([\d.]+)\s*us\s*>)?`)
	diskMarkFio  = regexp.MustCompile(`^Flexible I/O Tester \((\S+)\)`)
	diskMarkSize = regexp.MustCompile(`^Test\s*:\s*(\d+)\s*([KMGT]i?B)\s*(?:\[.*\])?\s*\(x(\d+)\)`)
)

// diskMark is a program with such reports.
type diskMark struct {
	engine string // the name that fio has for it; "" = it may be several
	// bytes of what it prints as MB
	megabyte float64
	total    bool // its latency is that of the whole request
	direct   bool // it always by-passes the page cache
	bestOf   bool // it prints the best of its runs
}

var diskMarks = map[string]diskMark{
	"CrystalDiskMark": {engine: "windowsaio", megabyte: 1e6, total: true, direct: true,
		bestOf: true},
	"KDiskMark":   {engine: "libaio", megabyte: 1024e3},
	"tdeDiskMark": {engine: "libaio", megabyte: 1024e3},
	"QDiskMark":   {megabyte: 1024e3},
}

// cached is a number of reads a second, one after the other, that no drive serves: 4 µs each.
const cached = 250_000

// readDiskMark reads such a report.
func readDiskMark(f *File, data []byte) (mine bool, err error) {
	var kind diskMark
	var size units.Bytes
	var loops, direction, profile string
	for raw := range bytes.Lines(data) {
		line := strings.TrimSpace(strings.TrimLeft(string(raw[:min(len(raw), 500)]), "> \t"))
		if m := diskMarkHead.FindStringSubmatch(line); m != nil && !mine {
			if kind, mine = diskMarks[m[1]]; !mine {
				continue
			}
			f.Tool, f.Version = m[1], m[1]+" "+m[2]
			continue
		}
		if !mine {
			continue
		}
		if m := diskMarkFio.FindStringSubmatch(line); m != nil {
			f.Version += " with " + m[1]
		}
		if name, ok := strings.CutPrefix(line, "["); ok {
			direction = strings.ToLower(name[:strings.IndexAny(name+"]", "] /")])
		}
		if m := diskMarkSize.FindStringSubmatch(line); m != nil {
			if v, err := units.ParseBytes(m[1] + m[2]); err == nil {
				size, loops = v, m[3]
			}
		}
		if name, ok := strings.CutPrefix(line, "Profile:"); ok {
			profile = strings.TrimSpace(name)
		}
		if m := diskMarkTest.FindStringSubmatch(line); m != nil {
			if len(f.Entries) == maxJobs {
				return mine, fmt.Errorf("it holds more than %d tests", maxJobs)
			}
			f.Entries = append(f.Entries, f.diskMarkEntry(kind, line, m, direction))
		}
	}
	if !mine {
		return false, nil
	}
	if len(f.Entries) == 0 {
		return true, fmt.Errorf("is a report of %s without a test", f.Version)
	}
	if !kind.direct {
		f.warn("%s does not say whether the page cache was by-passed; it is unless its setting "+
			"was changed, and the rates are taken for those of the device", f.Tool)
	}
	if kind.bestOf && loops != "1" || !kind.bestOf && profile != "" &&
		!strings.HasPrefix(profile, "Default") {
		f.warn("every rate is the best of %s runs, not their mean", ofRuns(loops))
	}
	for i := range f.Entries {
		e := &f.Entries[i]
		e.warnOfRange(uint64(size))
		if !kind.direct && e.Depth != nil && *e.Depth == 1 && *e.Jobs == 1 && e.IOPS != nil &&
			*e.IOPS > cached {
			e.refused = fmt.Sprintf("%.0f requests one after the other in a second are more than "+
				"any drive serves: the page cache did", *e.IOPS)
		}
	}
	return true, nil
}

func ofRuns(loops string) string {
	if loops == "" {
		return "several"
	}
	return loops
}

// diskMarkEntry is one test.
func (f *File) diskMarkEntry(kind diskMark, line string, m []string, direction string) Entry {
	job, _, _ := strings.Cut(line, ":")
	e := Entry{File: f.Name, Job: strings.Join(strings.Fields(job), " "), Group: len(f.Entries),
		tool: f.Tool, Engine: kind.engine, Jobs: ptr(1), Direct: ptr(true)}
	switch e.Direction = direction; direction {
	case "read", "write":
	case "mix":
		e.Direction, e.withWrite = "mixed", true
	default: // up to version 5 the line says it
		if e.Direction = "read"; strings.Contains(line, "Write") {
			e.Direction = "write"
		}
	}
	e.RW = "randread"
	if m[1] == "SEQ" || m[1] == "Sequential" {
		e.RW = "read"
	}
	// KB is 1024 bytes in old versions, as their IOPS show
	unit := strings.NewReplacer("KB", "KiB", "MB", "MiB").Replace(m[3])
	if v, err := units.ParseBytes(m[2] + unit); err == nil && v > 0 {
		e.Block = &v
	}
	for i, to := range map[int]**int{4: &e.Depth, 5: &e.Jobs} {
		if n, err := strconv.Atoi(m[i]); err == nil && n >= 1 && n <= maxInFlight {
			*to = &n
		}
	}
	value := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v > maxCount {
			return 0
		}
		return v
	}
	rate := value(m[6]) * kind.megabyte
	if iops := value(m[7]); iops > 0 {
		e.IOPS = &iops
		if e.Block != nil {
			byCount := iops * float64(*e.Block)
			// both are rounded to a thousandth of a MB/s and a tenth of a request
			off := 0.01*byCount + 1e4 + 0.1*float64(*e.Block)
			if math.Abs(byCount-rate) > off {
				e.refused = fmt.Sprintf("%s MB/s and %s IOPS contradict each other for requests "+
					"of %v", m[6], m[7], *e.Block)
			}
			rate = byCount
		}
	}
	if rate > 0 && rate < maxCount {
		e.Bandwidth = ptr(units.Rate(rate))
	}
	if mean := (number{value(m[8]), true}).nanos(units.Microsecond); mean != nil {
		if kind.total {
			e.Total.Mean = mean
		} else {
			e.Complete.Mean = mean
		}
	}
	return e
}
