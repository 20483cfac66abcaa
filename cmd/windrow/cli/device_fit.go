package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/fio"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
)

func deviceFitCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "fit", Usage: "make a device model from outputs of fio", ArgsUsage: "FILE...",
		Description: "Every read of the files that import-fio calls good for a fit is a cell: " +
			"outputs of fio, and what else import-fio reads. " +
			"The model is as good as its leave-one-out error says; too few cells\n" +
			"make its interval wide, or the fit is refused and says which measurement to add. A " +
			"value from a data sheet can be fixed.\n\n" +
			examples("windrow device fit grid.json -o drive.device.yaml",
				"# again, with what the data sheet and another host say",
				"windrow device fit grid.json --fix link_rate=7GB/s --host m1-max --force "+
					"-o drive.device.yaml"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Required: true,
				Usage: "`DEVICE` file to write (*.device.yaml)"},
			shared("name"),
			&cli.StringFlag{Name: "host", Usage: "`DEVICE` file or preset whose host to take",
				DefaultText: "none: a drive alone"},
			&cli.IntFlag{Name: "cores", Usage: "cores of the machine that fio ran on `N`",
				DefaultText: "those of --host"},
			&cli.StringFlag{Name: "device-align", Value: "4KiB",
				Usage: "smallest direct read `SIZE`"},
			&cli.StringSliceFlag{Name: "fix", Usage: "`FIELD=VALUE` that the fit must keep: " +
				"servers, ltfb, server_rate, link_rate, max_iops"},
			&cli.BoolFlag{Name: "allow-errors", Usage: "also use files in which fio reports " +
				"errors"},
			shared("seed"),
		},
		Action: e.deviceFit,
	}
}

const deviceSuffix = ".device.yaml"

func (e *env) deviceFit(c *cli.Context) error {
	if c.NArg() == 0 {
		return usageError("device fit needs one or more outputs of fio, got none; see \"windrow " +
			"device fit --help\"")
	}
	if err := e.claim(c, c.String("out"), deviceSuffix); err != nil {
		return err
	}
	opt := fio.DeviceOptions{Name: c.String("name"), Cores: c.Int("cores"), Seed: c.Uint64("seed")}
	if opt.Name == "" {
		opt.Name = strings.TrimSuffix(c.String("out")[strings.LastIndexAny(c.String("out"),
			`/\`)+1:], deviceSuffix)
	}
	var err error
	if opt.Align, err = units.ParseBytes(c.String("device-align")); err != nil || opt.Align < 1 {
		return usageError("--device-align %q: a size of 1B or more is wanted",
			c.String("device-align"))
	}
	if opt.Known, opt.Fixed, err = fixedFields(c.StringSlice("fix")); err != nil {
		return err
	}
	if host := c.String("host"); host != "" {
		d, err := devicemodels.Find(c.Context, host)
		if err != nil {
			return err
		}
		opt.Host = d.Host
	}
	files, err := e.fioFiles(c)
	if err != nil {
		return err
	}
	d, err := fio.Device(files, opt)
	if err != nil {
		return err
	}
	if err := devicemodels.Save(c.String("out"), d); err != nil {
		return err
	}
	return e.put(c, fitDocument(d, c.String("out")))
}

// fioFiles reads the arguments, and refuses files that report errors.
func (e *env) fioFiles(c *cli.Context) ([]*fio.File, error) {
	var files []*fio.File
	for _, path := range c.Args().Slice() {
		f, err := readFio(c.Context, path)
		if err != nil {
			return nil, err
		}
		if f.HasErrors() && !c.Bool("allow-errors") {
			why := "a job failed"
			if len(f.Errors) > 0 {
				why = f.Errors[0]
			}
			return nil, inputError("%s: fio reports an error: %s; measure again, or use what is "+
				"whole with --allow-errors", path, why)
		}
		files = append(files, f)
	}
	return files, nil
}

// fixedFields reads FIELD=VALUE pairs into a specification that knows them.
func fixedFields(pairs []string) (*flash.Spec, []string, error) {
	spec := &flash.Spec{}
	var fixed []string
	for _, pair := range pairs {
		field, value, ok := strings.Cut(pair, "=")
		field = strings.TrimPrefix(field, "flash.")
		var err error
		switch {
		case !ok:
			return nil, nil, usageError("--fix %q: write FIELD=VALUE, for example link_rate=7GB/s",
				pair)
		case field == "servers":
			_, err = fmt.Sscan(value, &spec.Servers)
		case field == "max_iops":
			_, err = fmt.Sscan(value, &spec.MaxIOPS)
		case field == "ltfb":
			spec.LTFB, err = units.ParseNanos(value)
		case field == "server_rate":
			spec.ServerRate, err = units.ParseRate(value)
		case field == "link_rate":
			spec.LinkRate, err = units.ParseRate(value)
		default:
			return nil, nil, usageError("--fix %q: the fields that can be fixed are servers, "+
				"ltfb, server_rate, link_rate and max_iops", pair)
		}
		if err != nil {
			return nil, nil, usageError("--fix %q: %v", pair, err)
		}
		if !slices.Contains(fixed, "flash."+field) {
			fixed = append(fixed, "flash."+field)
		}
	}
	return spec, fixed, nil
}

// fitDocument says how good a fit is.
func fitDocument(d *devicemodels.Device, path string) *document.Document {
	f := d.Fit
	out := &document.Document{Name: "device-fit", Title: "windrow device fit", Warnings: f.Warnings,
		Result: d, Headline: fmt.Sprintf("%s: fitted to %d cells, %s %% off on average", path,
			len(f.Cells), document.Sig3(f.MeanAbsPct))}
	t := document.NewTable(document.Text("property"), document.Text(d.Name))
	t.Add("cells", fmt.Sprint(len(f.Cells)))
	t.Add("chunks", fmt.Sprintf("%v to %v", f.ChunkMin, f.ChunkMax))
	t.Add("depths", fmt.Sprintf("%d to %d", f.DepthMin, f.DepthMax))
	t.Add("error at the cells, mean", document.Sig3(f.MeanAbsPct)+" %")
	t.Add("error at the cells, worst", document.Sig3(f.WorstAbsPct)+" %")
	if f.LeaveOneOutPct != nil {
		t.Add("leave-one-out error, mean", document.Sig3(*f.LeaveOneOutPct)+" %")
	}
	if f.IntervalPct != nil {
		t.Add("nine of ten predictions within", document.Sig3(*f.IntervalPct)+" %")
	}
	t.Add("flash", flashText(&d.Flash))
	if l := d.Flash.Limit; l != nil {
		t.Add("limit", limitText(l))
	}
	out.Add("", "", *t)
	return out
}

// limitText is a token bucket in words.
func limitText(l *flash.Limit) string {
	return fmt.Sprintf("%s in credits every %v", limitRate(l), l.Interval)
}

// limitRate is what a token bucket lets pass.
func limitRate(l *flash.Limit) string {
	if l.Rate > 0 {
		return l.Rate.String()
	}
	return fmt.Sprintf("%d reads/s", l.IOPS)
}
