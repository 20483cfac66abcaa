package energy

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/units"
)

//go:embed energy.csv
var table string

// The units of constants.
const (
	PicojoulePerBit = "pJ/bit"
	Watt            = "W"
)

// Quantity names a kind of constant.
type Quantity string

// The quantities with published constants.
const (
	FlashRead Quantity = "flash"      // pJ/bit
	DRAM      Quantity = "dram"       // pJ/bit
	DriveIdle Quantity = "drive-idle" // W
)

// Value is one published value as its source has it.
type Value struct {
	Item   string  `json:"item"`
	Value  float64 `json:"value"`
	Source string  `json:"source"`
	// "vendor-spec", "measured", "derived" or "secondary": the primary source was not seen
	Quality string `json:"quality"`
	Note    string `json:"note,omitempty"`
	// Origin of a whole-drive value: power in W over rate in MB/s (decimal). 0 = none.
	RatedW    float64 `json:"rated_w,omitempty"`
	RatedMBps float64 `json:"rated_mbps,omitempty"`
}

// Constant is the constant of a named technology with its published values.
type Constant struct {
	Name     string   `json:"name"`
	Unit     string   `json:"unit"`
	Interval Interval `json:"interval"`
	Rule     string   `json:"rule"`   // origin of the interval
	Values   []Value  `json:"values"` // none when the caller gave the interval
}

// rated returns the rates in bytes per second and the powers in watts behind the values; 0 when
// none has any.
func (c *Constant) rated() (rates, watts Interval) {
	for _, v := range c.Values {
		if v.RatedMBps == 0 {
			continue
		}
		rate := v.RatedMBps * 1e6
		if rates.High == 0 {
			rates, watts = Interval{Low: rate, High: rate}, Interval{Low: v.RatedW, High: v.RatedW}
		}
		rates.Low, rates.High = min(rates.Low, rate), max(rates.High, rate)
		watts.Low, watts.High = min(watts.Low, v.RatedW), max(watts.High, v.RatedW)
	}
	return rates, watts
}

// Technologies returns the names for q in Published, in the order of the table.
func Technologies(q Quantity) []string {
	rows, err := parse(table)
	if err != nil {
		return nil // cannot happen: a test reads the whole table
	}
	return namesOf(rows, q)
}

// Published returns the constant of a named technology. The error for an unknown one lists the
// known.
func Published(q Quantity, technology string) (*Constant, error) {
	rows, err := parse(table)
	if err != nil {
		return nil, err
	}
	c := &Constant{Name: technology}
	for _, r := range rows {
		if r.quantity == q && r.technology == technology {
			c.Unit = r.unit
			c.Values = append(c.Values, r.Value)
		}
	}
	if len(c.Values) == 0 {
		return nil, fmt.Errorf("energy: %s: no published value is known for %q; known are %s: %w",
			q, technology, strings.Join(namesOf(rows, q), ", "), ErrInput)
	}
	c.Interval, c.Rule = spread(c.Values)
	return c, nil
}

// NotKnown is how a constant that is not given is written.
const NotKnown = "not known"

// Parse reads a constant: N or LOW..HIGH in a unit, the name of a published technology of a
// quantity, or NotKnown, which gives nil. Without a quantity nothing is published.
func Parse(text string, q Quantity, unit string) (*Constant, error) {
	if text == NotKnown {
		return nil, nil
	}
	if low, high, err := units.ParseInterval(text); err == nil {
		return Given(low, high, unit)
	}
	if q == "" {
		return nil, fmt.Errorf("%q is neither N nor LOW..HIGH, nor %q", text, NotKnown)
	}
	return Published(q, text)
}

// Given is a constant from the caller, between low and high.
func Given(low, high float64, unit string) (*Constant, error) {
	i := Interval{low, low + (high-low)/2, high}
	if !i.valid() {
		return nil, fmt.Errorf("energy: %g to %g %s: an interval goes from a number of 0 or "+
			"more to one not below it: %w", low, high, unit, ErrInput)
	}
	return &Constant{Name: "given", Unit: unit, Interval: i, Rule: "given by the caller",
		Values: []Value{}}, nil
}

// spread is the interval of published values; see the package comment.
func spread(values []Value) (Interval, string) {
	var list []float64
	for _, v := range values {
		list = append(list, v.Value)
	}
	slices.Sort(list)
	n := len(list)
	if n == 1 {
		const factor = 2
		return Interval{list[0] / factor, list[0], list[0] * factor},
			"one value, a factor of 2 either way by convention"
	}
	return Interval{list[0], (list[(n-1)/2] + list[n/2]) / 2, list[n-1]},
		fmt.Sprintf("least, median and greatest of %d values", n)
}

// row is one line of the table.
type row struct {
	quantity   Quantity
	technology string
	unit       string
	Value
}

// valueRange is that of published numbers, in any of their units.
var valueRange = bounds.Range[float64]{Least: 1e-9, Most: 1e12, Why: "no part takes more or less"}

var columns = []string{"quantity", "technology", "item", "value", "unit", "rated_W", "rated_MBps",
	"source", "quality", "note"}

// parse reads the table strictly: unknown columns, empty sources, wrong units and values that no
// part has are errors.
func parse(text string) ([]row, error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("energy: energy.csv: %w", err)
	}
	if len(lines) == 0 || !slices.Equal(lines[0], columns) {
		return nil, fmt.Errorf("energy: energy.csv: the columns are not %s", strings.Join(columns,
			","))
	}
	rows := make([]row, 0, len(lines)-1)
	for i, l := range lines[1:] {
		r := row{quantity: Quantity(l[0]), technology: l[1], unit: l[4], Value: Value{Item: l[2],
			Source: l[7], Quality: l[8], Note: l[9]}}
		for _, number := range []struct {
			column, text string
			to           *float64
		}{{columns[3], l[3], &r.Value.Value}, {columns[5], l[5], &r.RatedW},
			{columns[6], l[6], &r.RatedMBps}} {
			if number.text == "" && number.to != &r.Value.Value {
				continue
			}
			v, err := bounds.Parse(number.text, valueRange)
			if err != nil {
				return nil, fmt.Errorf("energy: energy.csv:%d: %s: %w", i+2, number.column, err)
			}
			*number.to = v
		}
		if want := unitOf(r.quantity); r.unit != want || want == "" || r.technology == "" ||
			r.Source == "" || r.Quality == "" {
			return nil, fmt.Errorf("energy: energy.csv:%d: a quantity, its unit, a technology, "+
				"a source or a quality is missing or unknown", i+2)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func unitOf(q Quantity) string {
	switch q {
	case FlashRead, DRAM:
		return PicojoulePerBit
	case DriveIdle:
		return Watt
	}
	return ""
}

func namesOf(rows []row, q Quantity) []string {
	var names []string
	for _, r := range rows {
		if r.quantity == q && !slices.Contains(names, r.technology) {
			names = append(names, r.technology)
		}
	}
	return names
}
