package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/devicemodels/energy"
	"github.com/windrow-sim/windrow/devicemodels/wear"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/cost"
	"github.com/windrow-sim/windrow/traces"
)

// deviceCostCommands are the verbs that say what a run costs the machine besides time.
func deviceCostCommands(e *env) []*cli.Command {
	simulated := "windrow sim -t opt.trace.arrow -d m1-max --predicted --window 8 --parallel 64 " +
		"-o opt.run.arrow"
	return []*cli.Command{
		{
			Name: "energy", Usage: "joules per token of a run, by part", ArgsUsage: "RUN",
			Description: "Bytes and times of the run, times published constants with the " +
				"interval that they leave open. A constant is the name of a\n" +
				"technology, a number, LOW..HIGH, or \"" + energy.NotKnown +
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
				&cli.StringFlag{Name: "compute-watts", Value: energy.NotKnown,
					Usage: "`WATTS` of the processor without memory while it computes: N or " +
						"LOW..HIGH"},
				&cli.StringFlag{Name: "idle-watts", Value: energy.NotKnown,
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

// costSubject reads the run that is the verb's argument, and the header of its trace when there is
// one.
func (e *env) costSubject(c *cli.Context) (*cost.Subject, error) {
	if err := needArgs(c, 1, "one run"); err != nil {
		return nil, err
	}
	name, path := c.Args().First(), c.String("trace")
	run, err := traces.ReadRun(name)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return cost.NewSubject(name, run, "", "", nil)
	}
	tr, err := e.openTrace(path)
	if err != nil {
		return nil, err
	}
	defer tr.Close()
	head := *tr.Header()
	return cost.NewSubject(name, run, path, tr.SHA256(), &head)
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
		constant, err := energy.Parse(c.String(f.flag), f.quantity, f.unit)
		if err != nil {
			return usageError("--%s: %v", f.flag, err)
		}
		*f.to = constant
	}
	subject, err := e.costSubject(c)
	if err != nil {
		return err
	}
	r, err := cost.Energy(subject, m)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(e.stdout, r)
	}
	return e.printEnergy(r)
}

func (e *env) printEnergy(result *cost.EnergyResult) error {
	facts, m, r := &result.Run, &result.Model, result.Energy
	fmt.Fprintln(e.stdout, facts)
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
		name, is := energy.NotKnown, energy.NotKnown
		if constant != nil {
			name, is = constant.Name, span(constant.Interval.Low,
				constant.Interval.High)+" "+constant.Unit
			rules += fmt.Sprintf("%s, %s: %s\n", p.Part, constant.Name, constant.Rule)
			for _, v := range constant.Values {
				sources.Add(constant.Name, v.Item, document.Sig3(v.Value)+" "+constant.Unit,
					v.Quality, v.Source)
			}
		}
		amount, joules := energy.NotKnown, [3]string{energy.NotKnown, energy.NotKnown,
			energy.NotKnown}
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
	cfg, err := wearConfig(c)
	if err != nil {
		return err
	}
	subject, err := e.costSubject(c)
	if err != nil {
		return err
	}
	r, err := cost.Wear(subject, cfg)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(e.stdout, r)
	}
	return e.printWear(r)
}

// wearConfig reads the flags.
func wearConfig(c *cli.Context) (cfg cost.WearConfig, err error) {
	cfg.TokensPerDay = c.Float64("tokens-per-day")
	d := wear.Description{Drive: c.String("drive"), Cycles: c.String("cycles"),
		ReadDisturb: c.String("read-disturb")}
	if err := sizeFlag(c, "capacity", &d.Capacity); err != nil {
		return cfg, err
	}
	if err := sizeFlag(c, "tbw", &d.TBW); err != nil {
		return cfg, err
	}
	if err := sizeFlag(c, "written-per-day", &cfg.WrittenPerDay); err != nil {
		return cfg, err
	}
	if cfg.Drive, err = wear.Describe(d); err != nil {
		return cfg, err
	}
	cfg.Hot, err = wear.ParseHot(c.String("hot"))
	return cfg, err
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

func (e *env) printWear(result *cost.WearResult) error {
	facts, d, r := &result.Run, &result.Drive, result.Wear
	fmt.Fprintln(e.stdout, facts)
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
			one(name, energy.NotKnown)
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
			return energy.NotKnown
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
			t.Add(c.name, "", "", energy.NotKnown, "", "")
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
