package fio

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// ErrGrid is wrapped by every error about a grid that fio could not run.
var ErrGrid = errors.New("not a grid that fio can run")

// Grid holds the cells of a job file: every chunk size at every depth with every engine, and one of
// these cells repeatedly, which shows drift.
type Grid struct {
	File    string      // to read: a regular file, or a block device
	Size    units.Bytes // of the file, or of the part of the device to read
	Chunks  []units.Bytes
	Depths  []int    // requests in flight: iodepth, or threads with a synchronous engine
	Engines []string // names of fio: io_uring, libaio, psync, …
	Runtime units.Nanos
	Ramp    units.Nanos // before every measurement, not counted
	Seed    uint64      // of the order of the cells and of the offsets
}

// DefaultGrid is the grid for a device fit: chunks from 4 KiB to 1 MiB, 1 to 256 requests in
// flight.
func DefaultGrid(file string) Grid {
	return Grid{
		File: file, Size: 8 * units.GiB,
		Chunks: []units.Bytes{4 * units.KiB, 16 * units.KiB, 64 * units.KiB, 256 * units.KiB,
			units.MiB},
		Depths:  []int{1, 4, 16, 64, 256},
		Engines: []string{"io_uring", "psync"},
		Runtime: 4 * units.Second, Ramp: units.Second, Seed: rng.DefaultSeed,
	}
}

const (
	referenceName = "reference-" // of jobs that repeat the reference cell
	betweenRefs   = 8            // cells between two repetitions

	// The reference cell is the cell of the grid nearest to these, as in a probe.
	referenceChunk = 16 * units.KiB
	referenceDepth = 16

	fioMaxJobs = 4096 // REAL_MAX_JOBS in fio's sources
)

// plan is one cell to measure.
type plan struct {
	name   string
	engine string
	chunk  units.Bytes
	depth  int
}

// WriteJob writes a job file for fio 3 or later. Its jobs only read, one after the other
// (stonewall). Their order is drawn from the seed, so that drift of the device does not look like
// an effect of size or depth. A comment at the head lists the commands to run. Errors wrap ErrGrid
// or are those of w.
func WriteJob(w io.Writer, g Grid) error {
	if err := g.check(); err != nil {
		return fmt.Errorf("fio: job file: %w: %w", err, ErrGrid)
	}
	plans := g.plans()
	out := bufio.NewWriter(w)
	g.head(out, len(plans))
	fmt.Fprintf(out, "\n[global]\nfilename=%s\nsize=%d\nrw=randread\ndirect=1\nnorandommap=0\n"+
		"randseed=%d\n", escaped(g.File), g.Size, g.Seed)
	fmt.Fprintf(out, "time_based=1\nruntime=%dms\nramp_time=%dms\n", millis(g.Runtime),
		millis(g.Ramp))
	fmt.Fprintf(out, "thread=1\ngroup_reporting=1\nlat_percentiles=1\n")
	for _, p := range plans {
		inFlight := "iodepth=%d\nnumjobs=1"
		if synchronous[p.engine] {
			inFlight = "iodepth=1\nnumjobs=%d"
		}
		fmt.Fprintf(out, "\n[%s]\nstonewall\nioengine=%s\nbs=%d\n"+inFlight+"\n", p.name, p.engine,
			p.chunk, p.depth)
	}
	return out.Flush()
}

// head writes the comment: purpose, duration and commands.
func (g *Grid) head(w io.Writer, jobs int) {
	minutes := float64(jobs) * (g.Runtime + g.Ramp).Seconds() / 60
	fmt.Fprintf(w, "# Random reads for a device model: %d jobs, about %.2g minutes.\n#\n", jobs,
		minutes)
	name := quoted(g.File)
	if strings.HasPrefix(g.File, "/dev/") {
		fmt.Fprintf(w, "# The first %v of %s should hold data: a drive answers reads of blocks "+
			"that were never written, or that\n"+
			"# were trimmed, without touching its flash. This file writes nothing.\n#\n", g.Size,
			g.File)
	} else {
		fmt.Fprintf(w, "# 1. Once, fill the file with data; reads of holes touch no flash. This "+
			"WRITES to the file:\n#\n"+
			"#      fio --name=fill --filename=%s --size=%d --rw=write --bs=1m --direct=1 "+
			"--refill_buffers --end_fsync=1\n#\n# 2. ", name, g.Size)
	}
	if strings.HasPrefix(g.File, "/dev/") {
		fmt.Fprint(w, "# ")
	}
	fmt.Fprint(w, "Measure, with nothing else running. This only reads, and --readonly makes "+
		"fio refuse anything else:\n#\n"+
		"#      fio --readonly --output-format=json+ --output=device.json device.fio\n#\n"+
		"# Then look at what was measured:\n#\n#      windrow device import-fio device.json\n")
}

// plans returns the cells in the order of measurement.
func (g *Grid) plans() []plan {
	var cells []plan
	for _, engine := range unique(g.Engines) {
		for _, chunk := range unique(g.Chunks) {
			for _, depth := range unique(g.Depths) {
				cells = append(cells, plan{fmt.Sprintf("%s-%d-d%d", engine, chunk, depth), engine,
					chunk, depth})
			}
		}
	}
	reference := plan{engine: g.Engines[0], chunk: closest(g.Chunks, referenceChunk),
		depth: closest(g.Depths, referenceDepth)}
	r := rng.Stream(g.Seed, "devicemodels/fio/order")
	r.Shuffle(len(cells), func(i, k int) { cells[i], cells[k] = cells[k], cells[i] })
	var all []plan
	refer := func() {
		reference.name = fmt.Sprintf("%s%d", referenceName, 1+len(all)/(betweenRefs+1))
		all = append(all, reference)
	}
	for i, c := range cells {
		if i%betweenRefs == 0 {
			refer()
		}
		all = append(all, c)
	}
	reference.name = referenceName + "last"
	return append(all, reference)
}

// check refuses a grid that fio would refuse, or would run as another grid.
func (g *Grid) check() error {
	switch {
	case g.File == "":
		return errors.New("no file to read")
	case strings.ContainsFunc(g.File, unicode.IsControl) || strings.Contains(g.File, "$") ||
		strings.TrimSpace(g.File) != g.File:
		return fmt.Errorf("file %q: fio cannot be given a name with control characters, with $ "+
			"or with blanks at its ends", g.File)
	case len(g.Chunks) == 0 || len(g.Depths) == 0 || len(g.Engines) == 0:
		return errors.New("it has no chunks, no depths or no engines")
	case slices.Min(g.Chunks) < 512 || slices.Max(g.Chunks) > units.GiB:
		return fmt.Errorf("chunks must be from 512 B to 1 GiB, not %v to %v", slices.Min(g.Chunks),
			slices.Max(g.Chunks))
	case slices.Min(g.Depths) < 1:
		return fmt.Errorf("depth %d: it must be 1 or more", slices.Min(g.Depths))
	case g.Size < slices.Max(g.Chunks):
		return fmt.Errorf("a file of %v holds no chunk of %v", g.Size, slices.Max(g.Chunks))
	case g.Runtime < units.Millisecond || g.Ramp < 0:
		return fmt.Errorf("runtime %v and ramp %v: a cell needs a millisecond or more", g.Runtime,
			g.Ramp)
	}
	for _, c := range g.Chunks {
		if c%512 != 0 {
			return fmt.Errorf("chunk %d B: direct reads are of whole sectors of 512 B", c)
		}
	}
	for _, e := range g.Engines {
		if !synchronous[e] && !asynchronous[e] || e == "mmap" {
			return fmt.Errorf("engine %q: it must be one of fio's that read a device directly: "+
				"io_uring, libaio, psync, …", e)
		}
	}
	jobs := 0
	for _, p := range g.plans() {
		if p.depth > maxInFlight {
			return fmt.Errorf("depth %d is too large", p.depth)
		}
		if jobs++; synchronous[p.engine] {
			jobs += p.depth - 1
		}
	}
	if jobs > fioMaxJobs {
		return fmt.Errorf("%d jobs, but fio runs at most %d: with a synchronous engine every "+
			"request in flight is one; "+
			"ask for fewer depths or chunks, or write one job file per engine", jobs, fioMaxJobs)
	}
	return nil
}

// escaped protects the colons of a name, which separate files in fio.
func escaped(name string) string { return strings.ReplaceAll(name, ":", `\:`) }

// quoted quotes a name for a shell where necessary.
func quoted(name string) string {
	name = escaped(name)
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/._-+=@%,", r)
	}
	if !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

func millis(t units.Nanos) int64 { return int64(t / units.Millisecond) }

// unique returns the values in ascending order, each once.
func unique[T cmp.Ordered](list []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// closest returns the value nearest to want as a ratio; the smaller one of two.
func closest[T units.Bytes | int](list []T, want T) T {
	ratio := func(v T) float64 { return max(float64(v)/float64(want), float64(want)/float64(v)) }
	return slices.MinFunc(unique(list), func(a, b T) int { return cmp.Compare(ratio(a), ratio(b)) })
}
