package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels/fio"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
)

// deviceFioCommands are the verbs about fio: what to measure with it, and what it measured.
func deviceFioCommands(e *env) []*cli.Command {
	grid := fio.DefaultGrid("")
	return []*cli.Command{
		{
			Name: "fio-job", Usage: "print a fio job file that measures what a device fit needs",
			Description: "The jobs read at random offsets, every chunk size at every depth with " +
				"every engine, and one cell again and again to see drift. Nothing is\n" +
				"run: the comment at the head of the file has the commands. The defaults take " +
				"some minutes.\n\n" +
				examples("windrow device fio-job --file /data/fio.bin --size 8GiB",
					"windrow device fio-job --file /data/fio.bin --engines io_uring --chunks "+
						"4KiB,64KiB --depths 1,8,64 --runtime 10s"),
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "file", Required: true,
					Usage: "`PATH` of the file or block device that fio reads"},
				&cli.StringFlag{Name: "size", Value: grid.Size.String(),
					Usage: "`SIZE` of the file, or of the part of the device that is read"},
				defaulting(shared("chunks"), listed(grid.Chunks)),
				defaulting(shared("depths"), listed(grid.Depths)),
				&cli.StringSliceFlag{Name: "engines", Usage: "`ENGINE` of fio, repeated or with " +
					"commas", DefaultText: listed(grid.Engines)},
				&cli.StringFlag{Name: "runtime", Value: "4s",
					Usage: "`DURATION` of each measurement, after a second that does not count"},
				shared("seed"),
			},
			Action: e.fioJob,
		},
		{
			Name: "import-fio", Usage: "what outputs of fio hold, and what of it a device fit " +
				"can use", ArgsUsage: "FILE...",
			Description: "Reads the JSON of fio 2.1 and later, with any text around it " +
				"(--output-format=json, json+ or normal,json; client and server; with or\n" +
				"without group_reporting), and its bandwidth logs (write_bw_log). Nothing is " +
				"filled in: what a file does not say stays empty, and null\n" +
				"with --json. Results of elbencho (--csvfile, --jsonfile) and reports of " +
				"KDiskMark and CrystalDiskMark are read, too. Other storage tests are\n" +
				"refused by name, with the commands of fio to run instead.\n\n" +
				examples("windrow device import-fio device.json",
					"windrow device import-fio device.json --json"),
			Flags:  nil,
			Action: e.importFio,
		},
	}
}

// listed joins values with commas.
func listed[T any](values []T) string {
	var text []string
	for _, v := range values {
		text = append(text, fmt.Sprint(v))
	}
	return strings.Join(text, ",")
}

func (e *env) fioJob(c *cli.Context) error {
	if err := needArgs(c, 0, "no arguments"); err != nil {
		return err
	}
	grid := fio.DefaultGrid(c.String("file"))
	grid.Seed = c.Uint64("seed")
	var err error
	if grid.Size, err = units.ParseBytes(c.String("size")); err != nil {
		return usageError("--size: %v", err)
	}
	if grid.Runtime, err = units.ParseNanos(c.String("runtime")); err != nil {
		return usageError("--runtime: %v", err)
	}
	if list := c.StringSlice("chunks"); len(list) > 0 {
		grid.Chunks = nil
		for _, s := range list {
			v, err := units.ParseBytes(s)
			if err != nil {
				return usageError("--chunks: %v", err)
			}
			grid.Chunks = append(grid.Chunks, v)
		}
	}
	depths, err := depthsOf(c, grid.Depths)
	if err != nil {
		return err
	}
	grid.Depths = depths
	if list := c.StringSlice("engines"); len(list) > 0 {
		grid.Engines = list
	}
	var job strings.Builder
	if err = fio.WriteJob(&job, grid); errors.Is(err, fio.ErrGrid) {
		return usageError("%v", err)
	} else if err != nil {
		return err
	}
	if e.format(c) == "text" { // the job file itself
		_, err = io.WriteString(e.stdout, job.String())
		return err
	}
	d := &document.Document{Name: "device-fio-job", Title: "windrow device fio-job",
		Headline: "a job file for fio", Result: map[string]any{"job": job.String()}}
	t := document.NewTable(document.Text("job file"))
	for line := range strings.Lines(job.String()) {
		t.Add(strings.TrimRight(line, "\n"))
	}
	d.Add("", "", *t)
	return e.put(c, d)
}

// fioEntry is one entry in the JSON of import-fio; null is what the file does not say.
type fioEntry struct {
	File      string       `json:"file"`
	Job       string       `json:"job"`
	Host      *string      `json:"host"` // of a client's run
	Group     int          `json:"group"`
	RW        *string      `json:"rw"`
	Direction string       `json:"direction"`
	Block     *units.Bytes `json:"block_bytes"`
	Depth     *int         `json:"depth"`
	Jobs      *int         `json:"jobs"`
	IOs       *int64       `json:"ios"`
	Bytes     *units.Bytes `json:"bytes"`
	IOPS      *float64     `json:"iops"`
	Bandwidth *units.Rate  `json:"bandwidth_Bps"`
	LatMean   *units.Nanos `json:"lat_mean_ns"`
	P50       *units.Nanos `json:"clat_p50_ns"`
	// of the file, of the entry, and why it is of no use to a fit
	Warnings []string `json:"warnings"`
}

func (e *env) importFio(c *cli.Context) error {
	if c.NArg() == 0 {
		return usageError("device import-fio needs one or more outputs of fio, got none; see " +
			"\"windrow device import-fio --help\"")
	}
	var files []*fio.File
	for _, path := range c.Args().Slice() {
		f, err := readFio(c.Context, path)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	verdicts := judgeFio(files)
	if err := e.put(c, fioDocument(files, verdicts)); err != nil {
		return err
	}
	return e.nothingLeft(files, verdicts)
}

// readFio reads one output of fio; errors say that it is the input that is bad.
func readFio(ctx context.Context, path string) (*fio.File, error) {
	f, err := fio.Read(ctx, path)
	if errors.Is(err, fio.ErrFormat) || errors.As(err, new(*fs.PathError)) {
		return nil, inputError("%v", err)
	}
	return f, err
}

// fioLog is a bandwidth log in the JSON of import-fio.
type fioLog struct {
	File     string       `json:"file"`
	Plateaus []fioPlateau `json:"plateaus"`
}

type fioPlateau struct {
	From units.Nanos `json:"from_ns"`
	To   units.Nanos `json:"to_ns"`
	Rate units.Rate  `json:"bandwidth_Bps"`
}

func fioLogs(files []*fio.File) []fioLog {
	list := []fioLog{}
	for _, f := range files {
		if f.Log == nil {
			continue
		}
		one := fioLog{File: f.Name}
		for _, p := range f.Log.Plateaus {
			one.Plateaus = append(one.Plateaus, fioPlateau(p))
		}
		list = append(list, one)
	}
	return list
}

// fioVerdict is what is to be said of an entry.
type fioVerdict struct {
	why      string // a fit cannot use it; "" = it can
	warnings []string
}

// judgeFio has the verdict on every entry.
func judgeFio(files []*fio.File) map[*fio.Entry]fioVerdict {
	all := map[*fio.Entry]fioVerdict{}
	for _, f := range files {
		for i := range f.Entries {
			all[&f.Entries[i]] = fioVerdict{"the same requests are in another entry",
				f.Entries[i].Warnings}
		}
	}
	cells, leftOut := fio.Cells(files)
	for _, l := range leftOut {
		all[l.Entry] = fioVerdict{l.Why, l.Entry.Warnings}
	}
	for _, c := range cells {
		for _, n := range c.Entries {
			all[n] = fioVerdict{"", c.Warnings}
		}
	}
	return all
}

func fioEntries(files []*fio.File, verdicts map[*fio.Entry]fioVerdict) []fioEntry {
	list := []fioEntry{}
	for _, f := range files {
		for i := range f.Entries {
			n := &f.Entries[i]
			v := verdicts[n]
			one := fioEntry{
				File: n.File, Job: n.Job, Host: given(n.Host), Group: n.Group, RW: given(n.RW),
				Direction: n.Direction, Block: n.Block, Depth: n.Depth,
				Jobs: n.Jobs, IOs: n.IOs, Bytes: n.Bytes,
				IOPS: n.IOPS, Bandwidth: n.Bandwidth, LatMean: n.Total.Mean,
				P50: n.Complete.Percentile(50), Warnings: append(slices.Clone(f.Warnings),
					v.warnings...),
			}
			if one.Warnings == nil {
				one.Warnings = []string{} // [] and not null
			}
			if v.why != "" {
				one.Warnings = append(one.Warnings, "not for a fit: "+v.why)
			}
			list = append(list, one)
		}
	}
	return list
}

// given is nil for what a file does not say.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// fioDocument has a row for every entry, and for every plateau of a log.
func fioDocument(files []*fio.File, verdicts map[*fio.Entry]fioVerdict) *document.Document {
	logs := fioLogs(files)
	d := &document.Document{Name: "device-import-fio", Title: "windrow device import-fio",
		Result: map[string]any{"entries": fioEntries(files, verdicts), "logs": logs}}
	t := document.NewTable(document.Text("file"), document.Text("job"), document.Text("direction"),
		document.Number("block", ""), document.Number("depth", ""), document.Number("jobs", ""),
		document.Number("IOPS", ""), document.Number("bandwidth", "MB/s"),
		document.Number("mean latency", "us"), document.Number("P50", "us"),
		document.Text("for a fit"))
	micros := func(v units.Nanos) string { return document.Sig3(float64(v) / 1e3) }
	megabytes := func(v units.Rate) string { return document.Sig3(float64(v) / 1e6) }
	useful := 0
	var doubts fio.Doubts
	for _, f := range files {
		for _, w := range f.Warnings {
			d.Warn(f.Name + ": " + w)
		}
		for i := range f.Entries {
			n := &f.Entries[i]
			use := "yes"
			for _, w := range verdicts[n].warnings {
				doubts.Add(n.Source(), w)
			}
			if why := verdicts[n].why; why != "" {
				use = "no"
				d.Note("not for a fit: %s: %s", n.Source(), why)
			} else {
				useful++
			}
			t.Add(f.Name, n.Job, n.Direction, known(n.Block, units.Bytes.String), known(n.Depth,
				decimal), known(n.Jobs, decimal), known(n.IOPS, document.Sig3),
				known(n.Bandwidth, megabytes), known(n.Total.Mean, micros),
				known(n.Complete.Percentile(50), micros), use)
		}
	}
	for _, w := range doubts.List() {
		d.Warn(w)
	}
	d.Headline = fmt.Sprintf("%d entries, %d of them can be used for a device fit", len(t.Rows),
		useful)
	d.Add("Entries", "", *t)
	if len(logs) > 0 {
		d.Headline += fmt.Sprintf("; %d bandwidth logs", len(logs))
		course := document.NewTable(document.Text("file"), document.Number("from", "s"),
			document.Number("to", "s"), document.Number("bandwidth", "MB/s"))
		for _, one := range logs {
			for _, p := range one.Plateaus {
				course.Add(one.File, document.Sig3(p.From.Seconds()), document.Sig3(p.To.Seconds()),
					megabytes(p.Rate))
			}
		}
		d.Add("Bandwidth over time", "", *course)
	}
	return d
}

// nothingLeft returns an error when no entry of the files holds a measurement, and notes when none
// is of use to a fit.
func (e *env) nothingLeft(files []*fio.File, verdicts map[*fio.Entry]fioVerdict) error {
	reason, measured := files[0].Name+": the JSON holds no jobs", false
	for _, f := range files {
		if f.Log != nil {
			return nil
		}
		for i := range f.Entries {
			n := &f.Entries[i]
			if verdicts[n].why == "" {
				return nil
			}
			if failed := n.Failed(); failed != "" {
				reason = fmt.Sprintf("%s: %s", n.Source(), failed)
			} else {
				measured = true
			}
		}
	}
	if measured {
		e.note("warning: nothing here can be used for a device fit; \"windrow device fio-job\" " +
			"prints jobs that can")
		return nil
	}
	return inputError("device import-fio: no measurement is left: %s", reason)
}

// known formats a value that is there; "" stands for one that is not.
func known[T any](v *T, format func(T) string) string {
	if v == nil {
		return ""
	}
	return format(*v)
}

func decimal(n int) string { return fmt.Sprint(n) }
