package cli

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels/energy"
	"github.com/windrow-sim/windrow/devicemodels/wear"
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
	run, err := traces.ReadRun(c.Context, name)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return cost.NewSubject(name, run, "", "", nil)
	}
	tr, err := e.openTrace(c.Context, path)
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
	return e.put(c, r.Document())
}

func (e *env) deviceWear(c *cli.Context) error {
	if c.String("drive") == "list" {
		return e.putNames(c, "drive", wear.Drives())
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
	return e.put(c, r.Document())
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
