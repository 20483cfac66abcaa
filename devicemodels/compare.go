package devicemodels

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// CompareConfig says what to compare, and at which points.
type CompareConfig struct {
	Devices []*Device // two or more
	Chunks  []units.Bytes
	Depths  []int
	IO      string // engine that reads, or ioengine.Auto for the best of each device
}

// DefaultCompare has the sizes of records and of coalesced reads.
func DefaultCompare() CompareConfig {
	return CompareConfig{IO: ioengine.Auto, Depths: []int{1, 4, 16, 32, 64, 256},
		Chunks: []units.Bytes{4 * units.KiB, 8 * units.KiB, 16 * units.KiB, 32 * units.KiB,
			64 * units.KiB, 256 * units.KiB, units.MiB}}
}

// MostCompared bounds devices, sizes and depths: more do not fit a screen, and their product stays
// small.
const MostCompared = 64

// Check refuses points that there are not, and more than can be shown.
func (c *CompareConfig) Check() error {
	const deepest = 1 << 16
	if len(c.Chunks) == 0 || slices.Min(c.Chunks) < 1 {
		return refusal.Config("{Chunks} %v: sizes of 1B or more are wanted, like 4KiB,64KiB",
			c.Chunks)
	}
	if len(c.Depths) == 0 || slices.Min(c.Depths) < 1 || slices.Max(c.Depths) > deepest {
		return refusal.Config("{Depths} %v: each is from 1 to %d", c.Depths, deepest)
	}
	if most := max(len(c.Chunks), len(c.Depths), len(c.Devices)); most > MostCompared {
		return refusal.Config("device compare: %d devices, {Chunks} or {Depths} are more than the "+
			"%d that can be shown", most, MostCompared)
	}
	return nil
}

// Compare computes the throughput of devices by the closed form.
func Compare(cfg CompareConfig) (*Comparison, error) {
	cmp := &Comparison{Chunks: slices.Compact(slices.Sorted(slices.Values(cfg.Chunks))),
		Depths: slices.Compact(slices.Sorted(slices.Values(cfg.Depths)))}
	cfg.Chunks, cfg.Depths = cmp.Chunks, cmp.Depths
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	for _, d := range cfg.Devices {
		engines, err := comparedEngines(d, cfg.IO)
		if err != nil {
			return nil, err
		}
		cmp.add(d, engines)
	}
	return cmp, nil
}

// ComparedPoint is a device at one size and depth.
type ComparedPoint struct {
	Engine       string     `json:"engine"`
	Rate         units.Rate `json:"bytes_per_s"`
	Ratio        float64    `json:"ratio"`        // to the first device
	Extrapolated bool       `json:"extrapolated"` // outside the range of the device's cells
}

// ComparedDevice holds its points by size, then by depth.
type ComparedDevice struct {
	Name     string            `json:"name"`
	Unfitted string            `json:"unfitted,omitempty"` // why there is no fit
	Points   [][]ComparedPoint `json:"points"`
}

// Comparison has devices side by side.
type Comparison struct {
	Chunks  []units.Bytes    `json:"chunks"`
	Depths  []int            `json:"depths"`
	Devices []ComparedDevice `json:"devices"`
}

// comparedEngines lists the engines to choose from at every point, the preferred one first.
func comparedEngines(d *Device, io string) ([]string, error) {
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
func (cmp *Comparison) add(d *Device, engines []string) {
	out := ComparedDevice{Name: d.Name}
	if d.Fit != nil {
		out.Unfitted = d.Fit.Unfitted
	}
	for i, chunk := range cmp.Chunks {
		var row []ComparedPoint
		for j, depth := range cmp.Depths {
			p := ComparedPoint{Extrapolated: outsideFit(d.Fit, chunk, depth)}
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
func outsideFit(fit *Fit, chunk units.Bytes, depth int) bool {
	clean := func(c Cell) bool { return c.Tainted == "" }
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

// Document describes the comparison: a grid of every device, then its ratios to the first.
func (cmp *Comparison) Document() *document.Document {
	first := &cmp.Devices[0]
	lo, hi := cmp.Rates()
	d := &document.Document{Name: "device-compare", Title: "windrow device compare", Result: cmp,
		Headline: fmt.Sprintf("%d device models, random reads from %s to %s", len(cmp.Devices),
			document.SI(lo, "B/s"), document.SI(hi, "B/s"))}
	for i := range cmp.Devices {
		one := &cmp.Devices[i]
		d.Add(fmt.Sprintf("%s, GB/s by read size and depth, %s", one.Name, one.Engines()), "",
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
func (cmp *Comparison) grid(cell func(row, column int) string) *document.Table {
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

// Rates returns the slowest and the fastest of all points.
func (cmp *Comparison) Rates() (lo, hi float64) {
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

// Engines names what the points of a device were read with.
func (d *ComparedDevice) Engines() string {
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
