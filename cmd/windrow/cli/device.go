package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/document"
)

func deviceCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "device",
		Usage: "look at device models",
		Subcommands: slices.Concat([]*cli.Command{
			{
				Name: "list", Usage: "the presets, how well they are fitted, and where their " +
					"numbers come from",
				Description: "The leave-one-out error is that of cells predicted by fits " +
					"without them. A preset that is not fitted is known by published limits;\n" +
					"\"windrow device show --all --leave-one-out\" says why.\n\n" +
					examples("windrow device list"),
				Flags:  nil,
				Action: e.deviceList,
			},
			deviceShowCommand(e),
			deviceCompareCommand(e),
		}, deviceCostCommands(e), deviceFioCommands(e), []*cli.Command{deviceFitCommand(e)}),
	}
}

func deviceShowCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "one device model, as a file would hold it, or how far it is from " +
			"its cells", ArgsUsage: "[DEVICE]",
		Description: fmt.Sprintf("With --leave-one-out every cell is predicted by a fit without "+
			"it; "+
			"exit code 5 when the mean error of a fitted device is above %d %%, or when\n"+
			"the errors that its file states are not those of its numbers. A device without a "+
			"fit is not judged, and it is said why.\n\n", devicemodels.CheckLimitPct) +
			examples("windrow device show m1-max", "windrow device show samsung-860pro-sata "+
				"--residuals", "windrow device show --all --residuals --leave-one-out"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Usage: "every preset"},
			&cli.BoolFlag{Name: "residuals", Usage: "the cells, and how far the model is from " +
				"each"},
			&cli.BoolFlag{Name: "leave-one-out", Usage: "repeat the fit without each cell, and " +
				"judge"},
		},
		Action: e.deviceShow,
	}
}

// deviceSummary is a line of "device list".
type deviceSummary struct {
	Name           string   `json:"name"`
	Servers        int      `json:"servers"`
	LTFB           int64    `json:"ltfb_ns"`
	Link           int64    `json:"link_bytes_per_s"` // 0 = no limit
	LeaveOneOutPct *float64 `json:"leave_one_out_percent"`
	Unfitted       string   `json:"unfitted,omitempty"`
	Source         string   `json:"source"`
}

func (e *env) deviceList(c *cli.Context) error {
	devices, err := allPresets()
	if err != nil {
		return err
	}
	right := document.Right
	t := &document.Table{Columns: []document.Column{
		{Name: "preset"}, {Name: "servers", Align: right}, {Name: "LTFB", Align: right},
		{Name: "link", Align: right},
		{Name: "leave-one-out", Unit: "%", Align: right}, {Name: "source"},
	}}
	var list []deviceSummary
	for _, d := range devices {
		s := deviceSummary{Name: d.Name, Servers: d.Flash.Servers, LTFB: int64(d.Flash.LTFB),
			Link: int64(d.Flash.LinkRate), Source: d.Source}
		fit := "not fitted"
		if d.Fit != nil {
			s.LeaveOneOutPct, s.Unfitted = d.Fit.LeaveOneOutPct, d.Fit.Unfitted
		}
		if s.LeaveOneOutPct != nil {
			fit = document.Sig3(*s.LeaveOneOutPct)
		}
		list = append(list, s)
		t.Add(d.Name, fmt.Sprint(s.Servers), d.Flash.LTFB.String(), d.Flash.LinkRate.String(), fit,
			d.Source)
	}
	if c.Bool("json") {
		return printJSON(e.stdout, list)
	}
	return report.TableText(e.stdout, t)
}

func allPresets() ([]*devicemodels.Device, error) {
	var list []*devicemodels.Device
	for _, name := range devicemodels.Presets() {
		d, err := devicemodels.Preset(name)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

func (e *env) deviceShow(c *cli.Context) error {
	devices, err := e.shownDevices(c)
	if err != nil {
		return err
	}
	if c.Bool("residuals") || c.Bool("leave-one-out") {
		return e.checkDevices(c, devices)
	}
	if c.Bool("json") {
		if !c.Bool("all") {
			return printJSON(e.stdout, devices[0])
		}
		return printJSON(e.stdout, devices)
	}
	for i, d := range devices {
		text, err := devicemodels.Marshal(d)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := e.stdout.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// shownDevices returns the device that the command line names, or all presets.
func (e *env) shownDevices(c *cli.Context) ([]*devicemodels.Device, error) {
	if c.Bool("all") {
		if c.NArg() > 0 {
			return nil, usageError("--all shows every preset; leave %q out", c.Args().First())
		}
		return allPresets()
	}
	if err := needArgs(c, 1, "a device file or a preset, or --all"); err != nil {
		return nil, err
	}
	d, err := loadDevice(c.Args().First())
	return []*devicemodels.Device{d}, err
}

// checkDevices prints residuals and verdicts, and returns an error when a device fails.
func (e *env) checkDevices(c *cli.Context, devices []*devicemodels.Device) error {
	var results []*devicemodels.CheckResult
	for _, d := range devices {
		r, err := devicemodels.Check(d)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	switch {
	case c.Bool("json") && !c.Bool("all"):
		if err := printJSON(e.stdout, results[0]); err != nil {
			return err
		}
	case c.Bool("json"):
		if err := printJSON(e.stdout, results); err != nil {
			return err
		}
	default:
		if err := e.printChecks(c, devices, results); err != nil {
			return err
		}
	}
	if !c.Bool("leave-one-out") {
		return nil
	}
	var failed []string
	for _, r := range results {
		if r.Verdict == devicemodels.CheckFail {
			failed = append(failed, r.Device+": "+r.Reason)
		}
	}
	if failed == nil {
		return nil
	}
	return &verdict{"fail: " + strings.Join(failed, "; ")}
}

func (e *env) printChecks(c *cli.Context, devices []*devicemodels.Device,
	results []*devicemodels.CheckResult) error {
	if c.Bool("residuals") {
		for i, r := range results {
			mode := ""
			if devices[i].Fit != nil {
				mode = devices[i].Fit.Mode
			}
			if err := e.printResiduals(r, mode); err != nil {
				return err
			}
		}
	}
	if !c.Bool("leave-one-out") {
		return nil
	}
	right := document.Right
	t := &document.Table{Columns: []document.Column{
		{Name: "device"}, {Name: "cells", Align: right}, {Name: "left out", Align: right},
		{Name: "mean error", Unit: "%", Align: right},
		{Name: "worst", Unit: "%", Align: right}, {Name: "leave-one-out", Unit: "%", Align: right},
		{Name: "verdict"}, {Name: "why"},
	}}
	for _, r := range results {
		t.Add(r.Device, fmt.Sprint(r.Clean), fmt.Sprint(r.Tainted), percentOf(r.MeanAbsPct),
			percentOf(r.WorstAbsPct), percentOf(r.LeaveOneOutPct), string(r.Verdict), r.Reason)
	}
	return report.TableText(e.stdout, t)
}

// printResiduals prints the cells of one device, and below them how far they are off together.
func (e *env) printResiduals(r *devicemodels.CheckResult, mode string) error {
	fmt.Fprint(e.stdout, r.Device)
	if mode != "" {
		fmt.Fprintf(e.stdout, ": %s", mode)
	}
	fmt.Fprint(e.stdout, "\n\n")
	if len(r.Cells) == 0 {
		fmt.Fprint(e.stdout, "no cells\n")
	} else {
		right := document.Right
		t := &document.Table{Columns: []document.Column{
			{Name: "engine"}, {Name: "chunk", Align: right}, {Name: "depth", Align: right},
			{Name: "measured", Unit: "MB/s", Align: right},
			{Name: "model", Unit: "MB/s", Align: right}, {Name: "error", Unit: "%", Align: right},
			{Name: "quality"}, {Name: "source"}, {Name: "left out"},
		}}
		for _, c := range r.Cells {
			off := "n/a"
			if c.ErrorPct != nil {
				off = fmt.Sprintf("%+.2f", *c.ErrorPct)
			}
			t.Add(c.Engine, c.Chunk.String(), fmt.Sprint(c.Depth),
				document.Sig3(float64(c.Rate)/1e6),
				document.Sig3(float64(c.Model)/1e6), off, c.Quality, c.Source, c.Tainted)
		}
		if err := report.TableText(e.stdout, t); err != nil {
			return err
		}
	}
	line := ""
	if r.Clean > 0 {
		line = fmt.Sprintf("mean |error| of %d cells %s %%, worst %s %%, ", r.Clean,
			percentOf(r.MeanAbsPct), percentOf(r.WorstAbsPct))
	}
	if r.LeaveOneOutPct != nil {
		line += fmt.Sprintf("leave-one-out %s %%, 90 %% interval ±%s %%",
			percentOf(r.LeaveOneOutPct), percentOf(r.IntervalPct))
	} else {
		line += "not predicted: " + r.Reason
	}
	_, err := fmt.Fprintf(e.stdout, "\n%s\n\n", line)
	return err
}

// percentOf writes a percentage that may not be known.
func percentOf(v *float64) string {
	if v == nil {
		return "n/a"
	}
	return document.Sig3(*v)
}
