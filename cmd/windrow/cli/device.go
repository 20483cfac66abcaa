package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

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
			deviceCalibrateCommand(e),
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
	d := &document.Document{Name: "device-list", Title: "windrow device list"}
	t := document.NewTable(document.Text("preset"), document.Number("servers", ""),
		document.Number("LTFB", ""), document.Number("link", ""),
		document.Number("leave-one-out", "%"), document.Text("source"))
	list := []deviceSummary{}
	fitted := 0
	for _, d := range devices {
		s := deviceSummary{Name: d.Name, Servers: d.Flash.Servers, LTFB: int64(d.Flash.LTFB),
			Link: int64(d.Flash.LinkRate), Source: d.Source}
		fit := "not fitted"
		if d.Fit != nil {
			s.LeaveOneOutPct, s.Unfitted = d.Fit.LeaveOneOutPct, d.Fit.Unfitted
		}
		if s.LeaveOneOutPct != nil {
			fit = document.Sig3(*s.LeaveOneOutPct)
			fitted++
		}
		list = append(list, s)
		t.Add(d.Name, fmt.Sprint(s.Servers), d.Flash.LTFB.String(), d.Flash.LinkRate.String(), fit,
			d.Source)
	}
	d.Headline = fmt.Sprintf("%d presets, %d of them fitted to measurements", len(list), fitted)
	d.Result = map[string]any{"devices": list}
	d.Add("", "A preset that is not fitted is known by published limits: its predictions are "+
		"bounds, unless it states an interval.", *t)
	return e.put(c, d)
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
	d := &document.Document{Name: "device-show", Title: "windrow device show",
		Result: map[string]any{"devices": devices}}
	t := document.NewTable(document.Text("device"), document.Text("file"))
	var files []string
	for _, one := range devices {
		text, err := devicemodels.Marshal(one)
		if err != nil {
			return err
		}
		files = append(files, string(text))
		t.Add(one.Name, string(text))
	}
	if e.format(c) == "text" { // what a device file holds, to be written into one
		_, err := io.WriteString(e.stdout, strings.Join(files, "---\n"))
		return err
	}
	d.Headline = fmt.Sprintf("%d device models", len(devices))
	d.Add("", "", *t)
	return e.put(c, d)
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
	d, err := devicemodels.Find(c.Context, c.Args().First())
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
	if err := e.put(c, checksDocument(c, devices, results)); err != nil {
		return err
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

// checksDocument describes how far models are from their cells.
func checksDocument(c *cli.Context, devices []*devicemodels.Device,
	results []*devicemodels.CheckResult) *document.Document {
	passed, failed := 0, 0
	for _, r := range results {
		switch r.Verdict {
		case devicemodels.CheckPass:
			passed++
		case devicemodels.CheckFail:
			failed++
		}
	}
	d := &document.Document{Name: "device-check", Title: "windrow device show",
		Result: map[string]any{"checks": results},
		Headline: fmt.Sprintf("%d device models: %d pass, %d fail, %d are not judged",
			len(results), passed, failed, len(results)-passed-failed)}
	if c.Bool("residuals") {
		for i, r := range results {
			title := r.Device
			if fit := devices[i].Fit; fit != nil && fit.Mode != "" {
				title += ": " + fit.Mode
			}
			d.Sections = append(d.Sections, document.Section{Title: title,
				Note: residualsNote(r), Table: *residualsTable(r)})
		}
	}
	if !c.Bool("leave-one-out") {
		return d
	}
	t := document.NewTable(document.Text("device"), document.Number("cells", ""),
		document.Number("left out", ""), document.Number("mean error", "%"),
		document.Number("worst", "%"), document.Number("leave-one-out", "%"),
		document.Text("verdict"), document.Text("why"))
	for _, r := range results {
		t.Add(r.Device, fmt.Sprint(r.Clean), fmt.Sprint(r.Tainted), percentOf(r.MeanAbsPct),
			percentOf(r.WorstAbsPct), percentOf(r.LeaveOneOutPct), string(r.Verdict), r.Reason)
	}
	d.Add("Every cell predicted without itself", "", *t)
	return d
}

// residualsTable holds the cells of one device.
func residualsTable(r *devicemodels.CheckResult) *document.Table {
	t := document.NewTable(document.Text("engine"), document.Number("chunk", ""),
		document.Number("depth", ""), document.Number("measured", "MB/s"),
		document.Number("model", "MB/s"), document.Number("error", "%"),
		document.Text("quality"), document.Text("source"), document.Text("left out"))
	for _, c := range r.Cells {
		off := "n/a"
		if c.ErrorPct != nil {
			off = fmt.Sprintf("%+.2f", *c.ErrorPct)
		}
		t.Add(c.Engine, c.Chunk.String(), fmt.Sprint(c.Depth), document.Sig3(float64(c.Rate)/1e6),
			document.Sig3(float64(c.Model)/1e6), off, c.Quality, c.Source, c.Tainted)
	}
	return t
}

// residualsNote says how far the cells are off together.
func residualsNote(r *devicemodels.CheckResult) string {
	text := ""
	if r.Clean > 0 {
		text = fmt.Sprintf("mean |error| of %d cells %s %%, worst %s %%, ", r.Clean,
			percentOf(r.MeanAbsPct), percentOf(r.WorstAbsPct))
	}
	if r.LeaveOneOutPct == nil {
		return text + "not predicted: " + r.Reason
	}
	return text + fmt.Sprintf("leave-one-out %s %%, 90 %% interval ±%s %%",
		percentOf(r.LeaveOneOutPct), percentOf(r.IntervalPct))
}

// percentOf writes a percentage that may not be known.
func percentOf(v *float64) string {
	if v == nil {
		return "n/a"
	}
	return document.Sig3(*v)
}
