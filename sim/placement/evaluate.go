package placement

import (
	"math"
	"slices"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// The names of the layouts.
const (
	splitName       = "split"
	bundledName     = "bundled"
	hotName         = "hot first"
	linearName      = "linear"
	oracleName      = "linear, oracle"
	friendsName     = "friends"
	friendsOnceName = "friends, each once"
)

// variant is a layout that layout.Planner knows.
type variant struct {
	name   string
	split  int
	order  *layout.Order
	joined bool
	gap    int
}

// singles are the layouts without gaps. The baseline is the first.
func (c *comparison) singles() []variant {
	list := []variant{{name: bundledName}}
	if rows := c.head.Shape.Rows; rows > 1 && c.head.UnitBytes%units.Bytes(rows) == 0 {
		list = append(list, variant{name: splitName, split: rows}, variant{name: splitName,
			split: rows, joined: true})
	}
	return list
}

// orders are the layouts that are simulated with every gap. trainAll makes their Orders.
func (c *comparison) orders() []variant {
	return []variant{
		{name: bundledName}, {name: hotName, order: c.hot}, {name: linearName, order: c.linear},
		{name: oracleName, order: c.oracle},
	}
}

// evaluateAll simulates all layouts on the test split.
func (c *comparison) evaluateAll(r *Result) error {
	list := c.singles()
	single := len(list)
	for _, o := range c.orders() {
		for _, gap := range c.cfg.Gaps {
			o.joined, o.gap = true, gap
			list = append(list, o)
		}
	}
	rows, warnings := make([]Row, len(list)+2), make([][]string, len(list))
	err := c.parallel(len(rows), func(i int) (err error) {
		if i < len(list) {
			rows[i], warnings[i], err = c.simulate(list[i])
		} else {
			rows[i], err = c.evaluateFriends(i > len(list))
		}
		c.step()
		return err
	})
	if err != nil {
		return err
	}
	base := rows[0]
	for i := range rows {
		rows[i].gains(&base)
	}
	for _, list := range [][]string{warnings[0], warnings[single]} {
		for _, w := range list {
			if !slices.Contains(r.Warnings, w) {
				r.Warnings = append(r.Warnings, w)
			}
		}
	}
	own := rows[len(list)].Copies // the same for all layouts
	r.Loads, r.Hottest = own.Needed, own.HottestLoads
	c.arrange(r, rows, single)
	return nil
}

// arrange puts the rows into the result: single layouts, sweeps, and friends at the end.
func (c *comparison) arrange(r *Result, rows []Row, single int) {
	r.Rows = append(r.Rows, rows[1:single]...)
	r.Rows = append(r.Rows, rows[0])
	for i := range c.orders() {
		swept := rows[single+i*len(c.cfg.Gaps):][:len(c.cfg.Gaps)]
		best := 0
		for j := range swept {
			if swept[j].IO < swept[best].IO {
				best = j
			}
		}
		s := Sweep{Layout: swept[0].Layout, Rows: swept, Best: swept[best].Gap,
			Closed: c.closedGap(swept), Pair: c.pairGap(units.Bytes(swept[0].Read))}
		r.Sweeps = append(r.Sweeps, s)
		r.Rows = append(r.Rows, swept[0])
		if best > 0 {
			r.Rows = append(r.Rows, swept[best])
		}
	}
	r.Rows = append(r.Rows, rows[len(rows)-2:]...)
}

// simulate simulates one layout.
func (c *comparison) simulate(v variant) (Row, []string, error) {
	cfg := c.cfg.Sim
	cfg.Geometry.Split, cfg.Geometry.Order = v.split, v.order
	cfg.Layout.Coalesce, cfg.Layout.Gap = v.joined, v.gap
	run, err := sim.Run(c.ctx, c.test, cfg)
	if err != nil {
		return Row{}, nil, err
	}
	t := &run.Meta.Totals
	row := Row{Layout: v.name, Joined: v.joined, Gap: v.gap, Flash: flashBytes(&cfg.Geometry)}
	row.set(t.Tokens, t.Misses, t.Requests, t.Bytes, c.head.UnitBytes)
	row.IO, row.Token = mean(t.PartNanos[traces.PartIO], t.Tokens), mean(t.Wall, t.Tokens)
	row.predict(run.Meta.Prediction)
	return row, run.Meta.Warnings, nil
}

// predict sets the intervals of the times.
func (row *Row) predict(p *traces.Prediction) {
	row.prediction, row.Basis = p, string(p.Basis)
	row.IOEstimate, row.TokenEstimate = p.Time(row.IO, row.IO), p.Time(row.Token, row.IO)
}

// flashBytes is the size of all records of a geometry on the device.
func flashBytes(g *layout.Geometry) units.Bytes {
	return units.Bytes(len(g.Base)) * units.Bytes(g.Units) * g.Stride
}

// set fills in the counts. loads is the number of records needed.
func (row *Row) set(tokens int, loads, reads int64, bytes, record units.Bytes) {
	n := float64(tokens)
	row.Reads, row.Bytes, row.Wasted = float64(reads)/n, float64(bytes)/n,
		float64(bytes-units.Bytes(loads)*record)/n
	if reads > 0 {
		row.Run, row.Read = float64(loads)/float64(reads), float64(bytes)/float64(reads)
	}
}

// gains divides the times of the baseline by those of the row. The gain is 1 if nothing takes time.
func (row *Row) gains(base *Row) {
	ratio := func(base, own units.Nanos) float64 {
		if own == 0 {
			return 1
		}
		return float64(base) / float64(own)
	}
	row.IOGain, row.Gain = ratio(base.IO, row.IO), ratio(base.Token, row.Token)
}

// mean rounds to the nearest nanosecond.
func mean(sum units.Nanos, n int) units.Nanos { return (sum + units.Nanos(n)/2) / units.Nanos(n) }

// took is the time of one read by the closed form of the flash, at full depth.
func (c *comparison) took(b units.Bytes) float64 {
	cfg := &c.cfg.Sim
	spec := cfg.Device.Flash.Within(flashBytes(&cfg.Geometry))
	return float64(b) / float64(spec.Throughput(cfg.Engine, cfg.Device.Host.Cores, b, cfg.Parallel))
}

// closedGap computes Sweep.Closed.
func (c *comparison) closedGap(swept []Row) (gap int) {
	least := math.Inf(1)
	for i := range swept {
		if swept[i].Reads == 0 {
			return 0
		}
		if t := swept[i].Reads * c.took(units.Bytes(swept[i].Read)); t < least {
			gap, least = swept[i].Gap, t
		}
	}
	return gap
}

// pairGap computes Sweep.Pair for extents of a mean length.
func (c *comparison) pairGap(extent units.Bytes) (gap int) {
	if extent <= 0 {
		return 0
	}
	most, record := c.cfg.Gaps[len(c.cfg.Gaps)-1], c.cfg.Sim.Geometry.Stride
	for gap < most && c.took(2*extent+units.Bytes(gap+1)*record) < 2*c.took(extent) {
		gap++
	}
	return gap
}
