package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/devicemodels/energy"
	"github.com/windrow-sim/windrow/devicemodels/wear"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// notKnown is how a constant that nobody gave is written, on the command line and in results.
const notKnown = "not known"

// deviceCostCommands are the verbs that say what a run costs the machine besides time.
func deviceCostCommands(e *env) []*cli.Command {
	simulated := "windrow sim -t opt.trace.arrow -d m1-max --predicted --window 8 --parallel 64 " +
		"-o opt.run.arrow"
	return []*cli.Command{
		{
			Name: "energy", Usage: "joules per token of a run, by part", ArgsUsage: "RUN",
			Description: "Bytes and times of the run, times published constants with the " +
				"interval that they leave open. A constant is the name of a\n" +
				"technology, a number, LOW..HIGH, or \"" + notKnown +
				"\"; what is not known is left out, and the total is a lower bound. With the\n" +
				"trace of the run, DRAM bytes are counted too: attention, head and active rows, " +
				"the KV cache, reads landing and row-cache copies.\n\n" +
				examples(simulated, "windrow device energy opt.run.arrow -t opt.trace.arrow",
					"windrow device energy opt.run.arrow -t opt.trace.arrow --flash-energy nand "+
						"--compute-watts 20..40 --idle-watts 5 --json"),
			Flags: []cli.Flag{
				shared("trace"),
				&cli.StringFlag{Name: "flash-energy", Value: "nvme-ssd",
					Usage: "flash read, `pJ/bit`: " +
						strings.Join(energy.Technologies(energy.FlashRead), ", ") + " or numbers"},
				&cli.StringFlag{Name: "dram-energy", Value: "lpddr5", Usage: "memory, `pJ/bit`: " +
					strings.Join(energy.Technologies(energy.DRAM), ", ") + " or numbers"},
				&cli.StringFlag{Name: "drive-idle", Value: "ssd",
					Usage: "`WATTS` of the drive while it does not read: " +
						strings.Join(energy.Technologies(energy.DriveIdle), ", ") + " or numbers"},
				&cli.StringFlag{Name: "compute-watts", Value: notKnown,
					Usage: "`WATTS` of the processor without memory while it computes: N or " +
						"LOW..HIGH"},
				&cli.StringFlag{Name: "idle-watts", Value: notKnown,
					Usage: "`WATTS` of the processor without memory while it waits: N or " +
						"LOW..HIGH"},
			},
			Action: e.deviceEnergy,
		},
		{
			Name: "wear", Usage: "what a stated use of a run's model does to the flash",
			ArgsUsage: "RUN",
			Description: wear.Explanation + "\nIntervals are those of the published thresholds; " +
				"refreshes count against the endurance like writes.\n\n" +
				examples(simulated, "windrow device wear opt.run.arrow --tokens-per-day 10000 "+
					"--drive \"Samsung 990 PRO 2TB\"",
					"windrow device wear opt.run.arrow --tokens-per-day 10000 --capacity 512GB "+
						"--tbw 300TB --hot 0.8:0.2 --json"),
			Flags: []cli.Flag{
				shared("trace"),
				&cli.Float64Flag{Name: "tokens-per-day", Usage: "`N` tokens per day, prompt and " +
					"generated alike"},
				&cli.StringFlag{Name: "drive", Usage: "`DRIVE` with a published endurance; " +
					"\"list\" prints the names"},
				&cli.StringFlag{Name: "capacity", Usage: "`SIZE` of the drive",
					DefaultText: "the drive's"},
				&cli.StringFlag{Name: "tbw", Usage: "rated bytes written, `SIZE`, for example " +
					"600TB", DefaultText: "the drive's"},
				&cli.StringFlag{Name: "cycles", Usage: "program/erase cycles: " +
					strings.Join(wear.CycleNames(), ", ") + ", `N` or LOW..HIGH",
					DefaultText: "the drive's"},
				&cli.StringFlag{Name: "read-disturb", Usage: "reads of a block before it is " +
					"rewritten: `N` or LOW..HIGH", DefaultText: "as published"},
				&cli.StringFlag{Name: "written-per-day",
					Usage:       "`SIZE` that the host writes per day: downloads and updates",
					DefaultText: "0B"},
				&cli.StringFlag{Name: "hot", Usage: "`SHARE:FRACTION`: that share of the reads " +
					"goes to that fraction of the blocks", DefaultText: "evenly"},
			},
			Action: e.deviceWear,
		},
	}
}

// costRun is the run that a cost is of, as results name it.
type costRun struct {
	Kind     string      `json:"kind"`
	Model    string      `json:"model"`
	Device   string      `json:"device"`
	Trace    string      `json:"trace"`
	Tokens   int         `json:"tokens"`
	Wall     units.Nanos `json:"wall_ns"`
	Warnings []string    `json:"warnings"`
}

func (r *costRun) line() string {
	return fmt.Sprintf("%s: %s on %s, mean of %d tokens, prompt and generated alike", r.Kind,
		r.Model, r.Device, r.Tokens)
}

// costArguments reads the run that is the verb's argument, and the header of its trace when there
// is one.
func (e *env) costArguments(c *cli.Context) (*traces.Run, *costRun, *traces.Header, error) {
	if err := needArgs(c, 1, "one run"); err != nil {
		return nil, nil, nil, err
	}
	run, err := traces.ReadRun(c.Args().First())
	if err != nil {
		return nil, nil, nil, err
	}
	m := &run.Meta
	facts := &costRun{report.Kind(m), m.Model, m.Device, m.Trace, m.Totals.Tokens, m.Totals.Wall,
		append([]string{}, m.Warnings...)}
	if facts.Tokens == 0 {
		return nil, nil, nil, inputError("%s holds no tokens", c.Args().First())
	}
	path := c.String("trace")
	if path == "" {
		return run, facts, nil, nil
	}
	tr, err := e.openTrace(path)
	if err != nil {
		return nil, nil, nil, err
	}
	defer tr.Close()
	if m.TraceSHA256 != tr.SHA256() {
		return nil, nil, nil, usageError("%s is not the trace of %s, which is of %s", path,
			c.Args().First(), m.Trace)
	}
	head := *tr.Header()
	return run, facts, &head, nil
}

func (e *env) deviceEnergy(c *cli.Context) error {
	var m energy.Model
	for _, f := range []struct {
		flag     string
		quantity energy.Quantity
		unit     string
		to       **energy.Constant
	}{
		{"flash-energy", energy.FlashRead, energy.PicojoulePerBit, &m.Flash},
		{"dram-energy", energy.DRAM, energy.PicojoulePerBit, &m.DRAM},
		{"drive-idle", energy.DriveIdle, energy.Watt, &m.DriveIdle},
		{"compute-watts", "", energy.Watt, &m.Compute},
		{"idle-watts", "", energy.Watt, &m.HostIdle},
	} {
		constant, err := energyConstant(c.String(f.flag), f.quantity, f.unit)
		if err != nil {
			return usageError("--%s: %v", f.flag, err)
		}
		*f.to = constant
	}
	run, facts, head, err := e.costArguments(c)
	if err != nil {
		return err
	}
	t := &run.Meta.Totals
	use := energy.Use{Tokens: t.Tokens, Wall: t.Wall, IOTime: t.PartNanos[traces.PartIO],
		FlashBytes: t.Bytes}
	if ahead := run.Meta.Prefetches; ahead != nil { // the drive works beside compute too
		use.IOTime += ahead.Hidden
	}
	for part, took := range t.PartNanos {
		if traces.Part(part) != traces.PartIO {
			use.ComputeTime += took
		}
	}
	if head != nil {
		if use.DRAMBytes, err = dramBytes(run.Rows, head); err != nil {
			return inputError("%s: %v", c.Args().First(), err)
		}
	}
	result, err := energy.PerToken(use, m)
	if err != nil {
		return inputError("%s: %v", c.Args().First(), err)
	}
	if c.Bool("json") {
		return printJSON(e.stdout, map[string]any{"run": facts, "model": m, "energy": result})
	}
	return e.printEnergy(facts, &m, result)
}

// energyConstant reads a constant from the command line: nil = not known.
func energyConstant(text string, q energy.Quantity, unit string) (*energy.Constant, error) {
	if text == notKnown {
		return nil, nil
	}
	if low, high, ok := parseInterval(text); ok {
		return energy.Given(low, high, unit)
	}
	if q == "" {
		return nil, fmt.Errorf("%q is neither N nor LOW..HIGH, nor %q", text, notKnown)
	}
	return energy.Published(q, text)
}

// parseInterval reads "N" or "LOW..HIGH".
func parseInterval(text string) (low, high float64, ok bool) {
	first, last, two := strings.Cut(text, "..")
	if !two {
		last = first
	}
	low, lowErr := strconv.ParseFloat(first, 64)
	high, highErr := strconv.ParseFloat(last, 64)
	return low, high, lowErr == nil && highErr == nil
}

// dramBytes counts what a run read from and wrote to memory, as if no processor cache kept weights
// between tokens:
//
//	attention  the layer's four projections and pos+1 keys and values read, one of each written
//	io         the bytes that the reads put into memory, and the active rows (hits and misses)
//	           that the FFN reads
//	memory     row-cache copies, read and written
//	other      the output head
func dramBytes(rows []traces.RunRow, head *traces.Header) (*units.Bytes, error) {
	sum := 0.0 // whose whole numbers are exact up to 2^53: 9 PB
	attention, kv := float64(head.Shape.AttentionBytes()), float64(head.Shape.KVBytes())
	for i := range rows {
		r := &rows[i]
		switch r.Part {
		case traces.PartAttention:
			sum += attention + kv*(float64(r.Pos)+2)
		case traces.PartIO:
			sum += float64(r.Bytes) + (float64(r.Hits)+float64(r.Misses))*float64(head.UnitBytes)
		case traces.PartMemory:
			sum += 2 * float64(r.Bytes)
		case traces.PartOther:
			sum += float64(head.Shape.HeadBytes())
		}
	}
	if !(sum >= 0 && sum < math.MaxInt64) {
		return nil, fmt.Errorf("%g bytes of memory traffic are not possible", sum)
	}
	bytes := units.Bytes(sum)
	return &bytes, nil
}

func (e *env) printEnergy(facts *costRun, m *energy.Model, r *energy.Report) error {
	fmt.Fprintln(e.stdout, facts.line())
	for _, w := range append(facts.Warnings, r.Warnings...) {
		fmt.Fprintf(e.stdout, "warning: %s\n", w)
	}
	right := document.Right
	t := &document.Table{Columns: []document.Column{
		{Name: "part"}, {Name: "per token", Align: right}, {Name: "constant"}, {Name: "its value",
			Align: right},
		{Name: "low", Unit: "J/token", Align: right}, {Name: "mid", Unit: "J/token", Align: right},
		{Name: "high", Unit: "J/token", Align: right},
	}}
	sources := &document.Table{Columns: []document.Column{{Name: "constant"},
		{Name: "published value"},
		{Name: "value", Align: right}, {Name: "quality"}, {Name: "source"}}}
	rules := ""
	// in the order of the parts
	for i, constant := range []*energy.Constant{m.Flash, m.DRAM, m.Compute, m.DriveIdle,
		m.HostIdle} {
		p := &r.Parts[i]
		name, is := notKnown, notKnown
		if constant != nil {
			name, is = constant.Name, span(constant.Interval.Low,
				constant.Interval.High)+" "+constant.Unit
			rules += fmt.Sprintf("%s, %s: %s\n", p.Part, constant.Name, constant.Rule)
			for _, v := range constant.Values {
				sources.Add(constant.Name, v.Item, document.Sig3(v.Value)+" "+constant.Unit,
					v.Quality, v.Source)
			}
		}
		amount, joules := notKnown, [3]string{notKnown, notKnown, notKnown}
		if p.Amount != nil && p.Unit == "bytes" {
			amount = document.SI(*p.Amount, "B")
		} else if p.Amount != nil {
			amount = document.Sig3(*p.Amount) + " s"
		}
		if p.Joules != nil {
			joules = [3]string{document.Sig3(p.Joules.Low), document.Sig3(p.Joules.Mid),
				document.Sig3(p.Joules.High)}
		}
		t.Add(p.Part, amount, name, is, joules[0], joules[1], joules[2])
	}
	name := "total"
	if r.LowerBound {
		name = "known parts"
	}
	t.Add(name, "", "", "", document.Sig3(r.Total.Low), document.Sig3(r.Total.Mid),
		document.Sig3(r.Total.High))
	if err := report.TableText(e.stdout, t); err != nil {
		return err
	}
	if r.LowerBound {
		fmt.Fprintf(e.stdout, "\nA lower bound: %s not known, and a token takes that much more.\n",
			strings.Join(r.NotKnown, ", "))
	} else {
		fmt.Fprint(e.stdout, "\nThe ends of the total are the sums of the ends: nothing is "+
			"known of how the errors go together.\n")
	}
	fmt.Fprintf(e.stdout, "\n%s\n", rules)
	return report.TableText(e.stdout, sources)
}

// span writes an interval by its ends.
func span(low, high float64) string {
	if low == high {
		return document.Sig3(low)
	}
	return document.Sig3(low) + " to " + document.Sig3(high)
}

func (e *env) deviceWear(c *cli.Context) error {
	if c.String("drive") == "list" {
		for _, n := range wear.Drives() {
			fmt.Fprintln(e.stdout, n)
		}
		return nil
	}
	if !c.IsSet("tokens-per-day") {
		return usageError("device wear needs --tokens-per-day; see \"windrow device wear --help\"")
	}
	drive, err := wearDrive(c)
	if err != nil {
		return err
	}
	hot, err := parseHot(c.String("hot"))
	if err != nil {
		return err
	}
	use := wear.Use{TokensPerDay: c.Float64("tokens-per-day")}
	if err := sizeFlag(c, "written-per-day", &use.BytesWrittenPerDay); err != nil {
		return err
	}
	run, facts, head, err := e.costArguments(c)
	if err != nil {
		return err
	}
	t := &run.Meta.Totals
	use.BytesPerToken = t.Bytes / units.Bytes(t.Tokens)
	use.ReadsPerToken = float64(t.Requests) / float64(t.Tokens)
	if drive.Data, err = flashRegion(run, head); err != nil {
		return err
	}
	result, err := wear.Estimate(use, drive, hot)
	if err != nil {
		return usageError("%v", err)
	}
	if c.Bool("json") {
		return printJSON(e.stdout, map[string]any{"run": facts, "drive": drive,
			"tokens_per_day": use.TokensPerDay, "hot": hot, "wear": result})
	}
	return e.printWear(facts, &drive, result)
}

// wearDrive is the drive that the flags describe.
func wearDrive(c *cli.Context) (d wear.Drive, err error) {
	if name := c.String("drive"); name != "" {
		if d, err = wear.LookupDrive(name); err != nil {
			return d, usageError("--drive: %v", err)
		}
	} else if d, err = wear.Unnamed(); err != nil {
		return d, err
	}
	if err := sizeFlag(c, "capacity", &d.Capacity); err != nil {
		return d, err
	}
	if err := sizeFlag(c, "tbw", &d.Endurance); err != nil {
		return d, err
	}
	for _, f := range []struct {
		flag string
		to   **wear.Constant
	}{{"cycles", &d.Cycles}, {"read-disturb", &d.Disturb}} {
		text := c.String(f.flag)
		if text == "" {
			continue
		}
		if low, high, ok := parseInterval(text); ok {
			*f.to, err = wear.Given(low, high)
		} else if f.flag == "cycles" {
			*f.to, err = wear.Published(text)
		} else {
			err = fmt.Errorf("%q is neither N nor LOW..HIGH", text)
		}
		if err != nil {
			return d, usageError("--%s: %v", f.flag, err)
		}
	}
	return d, nil
}

// sizeFlag reads a flag with a size, when it is set.
func sizeFlag(c *cli.Context, name string, to *units.Bytes) (err error) {
	if !c.IsSet(name) {
		return nil
	}
	if *to, err = units.ParseBytes(c.String(name)); err != nil {
		return usageError("--%s: %v", name, err)
	}
	return nil
}

// parseHot reads SHARE:FRACTION; nothing is evenly.
func parseHot(text string) (h wear.Hot, err error) {
	if text == "" {
		return h, nil
	}
	share, fraction, _ := strings.Cut(text, ":")
	if h.Share, err = strconv.ParseFloat(share, 64); err == nil {
		h.Fraction, err = strconv.ParseFloat(fraction, 64)
	}
	if err != nil {
		return h, usageError("--hot %q: write for example 0.8:0.2, 80 %% of the reads on 20 %% "+
			"of the blocks", text)
	}
	return h, nil
}

// flashRegion is the size of the rows on flash: the trace's when it is given, else of the geometry
// that a simulated run was made on and holds.
func flashRegion(run *traces.Run, head *traces.Header) (units.Bytes, error) {
	if head != nil {
		return units.Bytes(head.Layers) * units.Bytes(head.Units) * head.UnitBytes, nil
	}
	var config struct {
		Geometry layout.Geometry `json:"geometry"`
	}
	if err := json.Unmarshal(run.Meta.Config, &config); err != nil || config.Geometry.Units == 0 {
		return 0, usageError("the run does not hold the size of its model's rows; give its " +
			"trace with -t")
	}
	g := &config.Geometry
	return units.Bytes(len(g.Base)) * units.Bytes(g.Units) * g.Stride, nil
}

func (e *env) printWear(facts *costRun, d *wear.Drive, r *wear.Report) error {
	fmt.Fprintln(e.stdout, facts.line())
	for _, w := range facts.Warnings {
		fmt.Fprintf(e.stdout, "warning: %s\n", w)
	}
	right := document.Right
	t := &document.Table{Columns: []document.Column{{Name: "per day"}, {Name: "low", Align: right},
		{Name: "mid", Align: right}, {Name: "high", Align: right}}}
	one := func(name, value string) { t.Add(name, "", value, "") }
	three := func(name string, i wear.Interval, format func(float64) string) {
		t.Add(name, format(i.Low), format(i.Mid), format(i.High))
	}
	size := func(v float64) string { return document.SI(v, "B") }
	years := func(name string, l wear.Lifetime) {
		switch {
		case !l.Known:
			one(name, notKnown)
		case l.Never:
			one(name, "for ever")
		default:
			three(name, l.Years, document.Sig3)
		}
	}
	one("bytes read", size(r.BytesPerDay))
	one("reads", document.SI(r.ReadsPerDay, ""))
	one("page reads", document.SI(r.PageReadsPerDay, ""))
	three("blocks rewritten", r.RefreshesPerDay, document.Sig3)
	three("bytes written for it", r.RefreshBytes, size)
	three("bytes written in all", r.WrittenPerDay, size)
	years("years to the rated bytes written", r.ToEndurance)
	years("years to the cycles, wear levelled", r.ToCycles)
	for _, s := range r.Spreads {
		name := map[string]string{"even": "reads spread evenly", "hot": "the hot blocks",
			"one block": "worst case, all reads in one block"}[s.Name]
		t.Add(name, "", "", "")
		one("  blocks", document.Sig3(s.Blocks))
		one("  reads per block", document.SI(s.Reads, ""))
		three("  rewrites per block", s.Refreshes, document.Sig3)
		years("  years to the cycles, in place", s.YearsInPlace)
	}
	if err := report.TableText(e.stdout, t); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "\n%s\n\n", wear.Explanation)
	return e.printWearSources(d)
}

// printWearSources prints the drive and where every constant comes from.
func (e *env) printWearSources(d *wear.Drive) error {
	orNot := func(b units.Bytes) string {
		if b == 0 {
			return notKnown
		}
		return document.SI(float64(b), "B")
	}
	_, _, geometry, err := wear.Geometry()
	if err != nil {
		return err
	}
	t := &document.Table{Columns: []document.Column{{Name: "constant"}, {Name: "published value"},
		{Name: "value", Align: document.Right}, {Name: "read as", Align: document.Right},
		{Name: "quality"}, {Name: "source"}}}
	t.Add("drive", d.Name+", capacity", "", orNot(d.Capacity), d.Quality, d.Source)
	t.Add("drive", d.Name+", rated bytes written", "", orNot(d.Endurance), d.Quality, d.Source)
	t.Add("page, block", "defaults of a simulator", "",
		document.IEC(d.Page)+", "+document.IEC(d.Block),
		"sim-default", geometry)
	for _, c := range []struct {
		name     string
		constant *wear.Constant
	}{{"read disturb", d.Disturb}, {"cycles", d.Cycles}} {
		if c.constant == nil {
			t.Add(c.name, "", "", notKnown, "", "")
			continue
		}
		t.Add(c.name, c.constant.Name, "", span(c.constant.Interval.Low, c.constant.Interval.High),
			"", c.constant.Rule)
		for _, v := range c.constant.Values {
			t.Add(c.name, v.Item, v.Text, span(v.Low, v.High), v.Quality, v.Source)
		}
	}
	return report.TableText(e.stdout, t)
}
