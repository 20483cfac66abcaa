package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
)

// compareChunks and compareDepths are the grid unless the command line gives another: the sizes of
// records and of coalesced reads.
func compareChunks() []units.Bytes {
	return []units.Bytes{4 * units.KiB, 8 * units.KiB, 16 * units.KiB, 32 * units.KiB,
		64 * units.KiB, 256 * units.KiB, units.MiB}
}

func compareDepths() []int { return []int{1, 4, 16, 32, 64, 256} }

// mostCompared bounds devices, sizes and depths: more do not fit a screen, and their product stays
// small.
const mostCompared = 64

func deviceCompareCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "compare", Usage: "throughput of device models over read size and depth, side by " +
			"side", ArgsUsage: "DEVICE DEVICE...",
		Description: "Rates are the closed form's: a loop of depth requests at random places " +
			"spread over all of the device, which is fresh. The second table on\n" +
			"compares each device with the first. What no measurement of a device covers is " +
			"marked.\n\n" +
			examples("# two presets, request by request",
				"windrow device compare m1-max samsung-860pro-sata",
				"# chosen sizes and depths, drawn",
				"windrow device compare m1-max intel-p5800x-pcie4 --chunks 4KiB,16KiB,64KiB "+
					"--depths 8,32 -o devices.svg"),
		Flags: []cli.Flag{
			defaulting(shared("chunks"), listed(compareChunks())),
			defaulting(shared("depths"), listed(compareDepths())),
			shared("io"),
			&cli.StringFlag{Name: "out", Aliases: []string{"o"},
				Usage: "draw it as well: `FILE`.svg"},
		},
		Action: e.deviceCompare,
	}
}

// comparedPoint is a device at one size and depth.
type comparedPoint struct {
	Engine       string     `json:"engine"`
	Rate         units.Rate `json:"bytes_per_s"`
	Ratio        float64    `json:"ratio"`        // to the first device
	Extrapolated bool       `json:"extrapolated"` // outside the range of the device's cells
}

// comparedDevice holds its points by size, then by depth.
type comparedDevice struct {
	Name     string            `json:"name"`
	Unfitted string            `json:"unfitted,omitempty"` // why there is no fit
	Points   [][]comparedPoint `json:"points"`
}

// comparison is what "device compare" shows.
type comparison struct {
	Chunks  []units.Bytes    `json:"chunks"`
	Depths  []int            `json:"depths"`
	Devices []comparedDevice `json:"devices"`
}

func (e *env) deviceCompare(c *cli.Context) error {
	cmp, err := comparisonOf(c)
	if err != nil {
		return err
	}
	if out := c.String("out"); c.IsSet("out") {
		if err := checkOutput(out, ".svg"); err != nil {
			return err
		}
		if err := writeWhole(out, func(w io.Writer) error {
			return drawComparison(w,
				cmp)
		}); err != nil {
			return err
		}
	}
	return e.put(c, cmp.document())
}

// comparisonOf reads the command line and computes all points.
func comparisonOf(c *cli.Context) (*comparison, error) {
	if c.NArg() < 2 {
		return nil, usageError("device compare needs two or more devices, got %d; see \"%s "+
			"--help\"", c.NArg(), c.Command.HelpName)
	}
	cmp := &comparison{Chunks: compareChunks(), Depths: compareDepths()}
	if list := c.StringSlice("chunks"); len(list) > 0 {
		cmp.Chunks = nil
		for _, s := range list {
			v, err := units.ParseBytes(s)
			if err != nil || v < 1 {
				return nil, usageError("--chunks %q: sizes of 1B or more are wanted, like "+
					"4KiB,64KiB", s)
			}
			cmp.Chunks = append(cmp.Chunks, v)
		}
	}
	depths, err := depthsOf(c, cmp.Depths)
	if err != nil {
		return nil, err
	}
	cmp.Depths = depths
	slices.Sort(cmp.Chunks)
	slices.Sort(cmp.Depths)
	cmp.Chunks, cmp.Depths = slices.Compact(cmp.Chunks), slices.Compact(cmp.Depths)
	const deepest = 1 << 16
	if cmp.Depths[0] < 1 || cmp.Depths[len(cmp.Depths)-1] > deepest {
		return nil, usageError("--depths %v: each is from 1 to %d", cmp.Depths, deepest)
	}
	if most := max(len(cmp.Chunks), len(cmp.Depths), c.NArg()); most > mostCompared {
		return nil, usageError("device compare: %d devices, --chunks or --depths are more than "+
			"the %d that can be shown", most, mostCompared)
	}
	for _, name := range c.Args().Slice() {
		d, err := devicemodels.Find(name)
		if err != nil {
			return nil, err
		}
		engines, err := comparedEngines(d, c.String("io"))
		if err != nil {
			return nil, err
		}
		cmp.add(d, engines)
	}
	return cmp, nil
}

// comparedEngines lists the engines to choose from at every point, the preferred one first.
func comparedEngines(d *devicemodels.Device, io string) ([]string, error) {
	first, err := d.ReadEngine(io)
	if err != nil || io != ioengine.Auto {
		return []string{first}, err
	}
	list := []string{first}
	for name := range d.Flash.Engines {
		if name != first {
			list = append(list, name)
		}
	}
	slices.Sort(list[1:])
	return list, nil
}

// add computes the points of a device.
func (cmp *comparison) add(d *devicemodels.Device, engines []string) {
	out := comparedDevice{Name: d.Name}
	if d.Fit != nil {
		out.Unfitted = d.Fit.Unfitted
	}
	for i, chunk := range cmp.Chunks {
		var row []comparedPoint
		for j, depth := range cmp.Depths {
			p := comparedPoint{Extrapolated: outsideFit(d.Fit, chunk, depth)}
			for _, engine := range engines {
				if rate := d.Flash.Throughput(engine, d.Host.Cores, chunk, depth); rate > p.Rate {
					p.Engine, p.Rate = engine, rate
				}
			}
			p.Ratio = 1
			if len(cmp.Devices) > 0 && cmp.Devices[0].Points[i][j].Rate > 0 {
				p.Ratio = float64(p.Rate) / float64(cmp.Devices[0].Points[i][j].Rate)
			}
			row = append(row, p)
		}
		out.Points = append(out.Points, row)
	}
	cmp.Devices = append(cmp.Devices, out)
}

// outsideFit reports whether no measurement covers a point.
func outsideFit(fit *devicemodels.Fit, chunk units.Bytes, depth int) bool {
	clean := func(c devicemodels.Cell) bool { return c.Tainted == "" }
	return fit == nil || !slices.ContainsFunc(fit.Cells, clean) ||
		chunk < fit.ChunkMin || chunk > fit.ChunkMax || depth < fit.DepthMin || depth > fit.DepthMax
}

// shadeOf shows where a throughput lies between the slowest and the fastest point of a comparison,
// by its logarithm.
func shadeOf(v, lo, hi float64) string {
	shades := []string{" ", "░", "▒", "▓", "█"}
	if !(hi > lo) || v <= 0 {
		return shades[0]
	}
	at := math.Log(v/lo) / math.Log(hi/lo)
	return shades[min(int(at*float64(len(shades))), len(shades)-1)]
}

// document describes the comparison: a grid of every device, then its ratios to the first.
func (cmp *comparison) document() *document.Document {
	first := &cmp.Devices[0]
	lo, hi := cmp.rates()
	d := &document.Document{Name: "device-compare", Title: "windrow device compare", Result: cmp,
		Headline: fmt.Sprintf("%d device models, random reads from %s to %s", len(cmp.Devices),
			document.SI(lo, "B/s"), document.SI(hi, "B/s"))}
	for i := range cmp.Devices {
		one := &cmp.Devices[i]
		d.Add(fmt.Sprintf("%s, GB/s by read size and depth, %s", one.Name, one.engines()), "",
			*cmp.grid(func(row, column int) string {
				p := &one.Points[row][column]
				return document.Sig3(float64(p.Rate)/1e9) + " " +
					shadeOf(float64(p.Rate), lo, hi) + mark(p.Extrapolated)
			}))
	}
	for i := range cmp.Devices[1:] {
		one := &cmp.Devices[i+1]
		d.Add(one.Name+" / "+first.Name, "", *cmp.grid(func(row, column int) string {
			p := &one.Points[row][column]
			return document.Sig3(p.Ratio) + mark(p.Extrapolated ||
				first.Points[row][column].Extrapolated)
		}))
	}
	d.Note("░▒▓█ from %s to %s, by logarithm; ~ outside the sizes and depths that were measured, "+
		"or nothing was", document.SI(lo, "B/s"), document.SI(hi, "B/s"))
	for i := range cmp.Devices {
		if one := &cmp.Devices[i]; one.Unfitted != "" {
			d.Warn(fmt.Sprintf("%s is not fitted, its rates are bounds: %s", one.Name,
				one.Unfitted))
		}
	}
	return d
}

func mark(extrapolated bool) string {
	if extrapolated {
		return "~"
	}
	return " "
}

// grid has one cell for each size and depth.
func (cmp *comparison) grid(cell func(row, column int) string) *document.Table {
	t := document.NewTable(document.Number("chunk", ""))
	for _, depth := range cmp.Depths {
		t.Columns = append(t.Columns, document.Number(fmt.Sprint(depth), ""))
	}
	for i, chunk := range cmp.Chunks {
		row := []string{chunk.String()}
		for j := range cmp.Depths {
			row = append(row, cell(i, j))
		}
		t.Add(row...)
	}
	return t
}

// rates returns the slowest and the fastest of all points.
func (cmp *comparison) rates() (lo, hi float64) {
	lo = math.Inf(1)
	for i := range cmp.Devices {
		for _, row := range cmp.Devices[i].Points {
			for _, p := range row {
				lo, hi = min(lo, float64(p.Rate)), max(hi, float64(p.Rate))
			}
		}
	}
	return lo, hi
}

// engines names what the points of a device were read with.
func (d *comparedDevice) engines() string {
	var names []string
	for _, row := range d.Points {
		for _, p := range row {
			if p.Engine != "" && !slices.Contains(names, p.Engine) {
				names = append(names, p.Engine)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}

// writeWhole writes a file that appears complete or not at all.
func writeWhole(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".windrow-*.partial")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // of nothing, once it is renamed
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
