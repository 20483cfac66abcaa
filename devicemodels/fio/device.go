package fio

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// DeviceOptions are facts for a device file that an output of fio does not contain.
type DeviceOptions struct {
	Name  string
	Host  devicemodels.Host // copied; the zero value describes a drive alone
	Cores int               // of the machine that ran fio; 0 = those of Host
	Align units.Bytes       // smallest direct read; 0 = 4096 B
	Known *flash.Spec       // as in devicemodels.FitOptions
	Fixed []string
	Seed  uint64
}

// Device fits a device to the reads of files. Repetitions of a cell are averaged, and their spread
// is the drift. Warnings list the entries that were left out. Errors wrap devicemodels.ErrFit and
// name the measurements to add.
func Device(files []*File, opt DeviceOptions) (*devicemodels.Device, error) {
	if refused := devicemodels.CoreRange.Refuse(opt.Cores); opt.Cores != 0 && refused != "" {
		return nil, refusal.Config("fio: {Cores} %d %s", opt.Cores, refused)
	}
	cells, leftOut := Cells(files)
	drift, repeats := Drift(cells)
	cores := opt.Cores
	if cores == 0 {
		cores = opt.Host.Cores
	}
	fitCells := points(cells)
	spec, fit, err := devicemodels.FitFlash(fitCells, max(cores, 1), devicemodels.FitOptions{
		Mode: modes(cells), Align: opt.Align, Known: opt.Known, Fixed: opt.Fixed, DriftPct: drift,
		Seed:   opt.Seed,
		Serial: append(ioengine.SerialNames(), "libaio", "posixaio"),
	})
	if err != nil {
		return nil, fmt.Errorf("fio: %s: %w%s", names(files), err, reasons(leftOut))
	}
	for _, l := range leftOut {
		fit.Warnings = append(fit.Warnings, "Left out: "+l.String()+".")
	}
	fit.Warnings = append(fit.Warnings, doubts(files, cells)...)
	if repeats < 2 {
		fit.Warnings = append(fit.Warnings, "No measurement was repeated, so the drift is not "+
			"known.")
	}
	if cores == 0 {
		fit.Warnings = append(fit.Warnings, "The cores of the host are not known; the cost of a "+
			"request is taken to be spent on one.")
	}
	d := &devicemodels.Device{
		Version: devicemodels.FormatVersion, Name: opt.Name, Source: "fit of " + tools(files) +
			" measurements: " + names(files),
		Sources: map[string]string{"flash": fmt.Sprintf("fit of %d cells of %s", len(fitCells),
			versions(files))},
		Flash: spec, Host: opt.Host, Fit: &fit,
	}
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("fio: fitted an impossible device: %w", err)
	}
	return d, nil
}

// points converts cells to cells of a fit, with repetitions averaged.
func points(cells []Cell) []devicemodels.Cell {
	type point struct {
		engine string
		chunk  units.Bytes
		depth  int
	}
	var out []devicemodels.Cell
	at := map[point]int{}
	count := map[point]units.Rate{}
	for _, c := range cells {
		p := point{c.Engine, c.Chunk, c.Depth}
		i, seen := at[p]
		if !seen {
			i = len(out)
			at[p] = i
			out = append(out, devicemodels.Cell{Engine: c.Engine, Chunk: c.Chunk, Depth: c.Depth,
				Source: c.Entries[0].Source()})
		}
		n := count[p]
		count[p]++
		one := &out[i]
		one.Rate = (one.Rate*n + c.Rate) / (n + 1)
		if c.IOs != nil {
			one.Reads += int(*c.IOs)
		}
		if c.P50 != nil && !seen {
			one.P50 = *c.P50
		}
		if c.P99 != nil && !seen {
			one.P99 = *c.P99
		}
		for _, b := range c.Bins {
			one.Times.Add(b.At, b.Count)
		}
	}
	return out
}

func names(files []*File) string {
	var list []string
	for _, f := range files {
		list = append(list, f.Name)
	}
	return strings.Join(list, ", ")
}

func versions(files []*File) string {
	var list []string
	for _, f := range files {
		v := f.Version
		if v == "" {
			v = f.Tool + " of an unknown version"
		}
		if len(list) == 0 || list[len(list)-1] != v {
			list = append(list, v)
		}
	}
	return strings.Join(list, ", ")
}

// tools lists the tools that measured.
func tools(files []*File) string {
	var list []string
	for _, f := range files {
		if !slices.Contains(list, f.Tool) {
			list = append(list, f.Tool)
		}
	}
	return strings.Join(list, ", ")
}

// modes lists the engines of the cells, by tool.
func modes(cells []Cell) string {
	var order []string
	engines := map[string][]string{}
	for _, c := range cells {
		tool := c.Entries[0].tool
		if engines[tool] == nil {
			order = append(order, tool)
		}
		if !slices.Contains(engines[tool], c.FioEngine) {
			engines[tool] = append(engines[tool], c.FioEngine)
		}
	}
	for i, tool := range order {
		order[i] = tool + " " + strings.Join(engines[tool], ", ") + " direct"
	}
	return strings.Join(order, "; ")
}

// doubts lists what the cells, and the files of other tools, warn of.
func doubts(files []*File, cells []Cell) []string {
	var all Doubts
	for _, f := range files {
		if f.Log != nil || f.Tool != toolFio {
			for _, w := range f.Warnings {
				all.Add(f.Name, w)
			}
		}
	}
	for _, c := range cells {
		for _, w := range c.Warnings {
			all.Add(c.Entries[0].Source(), w)
		}
	}
	list := all.List()
	for i := range list {
		list[i] += "."
	}
	return list
}

// reasons lists the reasons of the first entries that were left out.
func reasons(leftOut []LeftOut) string {
	const most = 3
	var b strings.Builder
	for i, l := range leftOut {
		if i == most {
			fmt.Fprintf(&b, "; and %d more", len(leftOut)-most)
			break
		}
		b.WriteString("; left out " + l.String())
	}
	return b.String()
}
