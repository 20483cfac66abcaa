package wear

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

//go:embed wear.csv
var table string

//go:embed drives.csv
var driveTable string

// Value is one published value: the text of its source, and its range.
type Value struct {
	Item   string  `json:"item"`
	Text   string  `json:"text"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Unit   string  `json:"unit"`
	Source string  `json:"source"`
	// "text", "secondary" (the primary source was not seen) or "sim-default" (no measurement)
	Quality string `json:"quality"`
	Note    string `json:"note,omitempty"`
}

// Constant is a number with its published values.
type Constant struct {
	Name     string   `json:"name"`
	Interval Interval `json:"interval"`
	Rule     string   `json:"rule"`   // origin of the interval
	Values   []Value  `json:"values"` // none when the caller gave the interval
}

// The names of the published constants.
const (
	ReadDisturb   = "read-disturb"    // reads per block before it is rewritten
	CyclesTLC     = "tlc-qlc"         // program/erase cycles
	CyclesMLC     = "mlc"             // program/erase cycles
	pageSize      = "page"            // bytes
	pagesPerBlock = "pages-per-block" // pages
)

// CycleNames are the flash technologies whose program/erase cycles are published.
func CycleNames() []string { return []string{CyclesTLC, CyclesMLC} }

// Published returns the constant of a name.
func Published(name string) (*Constant, error) {
	all, err := parse(table)
	if err != nil {
		return nil, err
	}
	values := all[name]
	if len(values) == 0 {
		return nil, fmt.Errorf("wear: no published value is known for %q: %w", name, ErrInput)
	}
	i := Interval{Low: math.Inf(1)}
	var mids []float64
	for _, v := range values {
		i.Low, i.High = min(i.Low, v.Low), max(i.High, v.High)
		mids = append(mids, math.Sqrt(v.Low*v.High))
	}
	slices.Sort(mids)
	n := len(mids)
	i.Mid = (mids[(n-1)/2] + mids[n/2]) / 2
	rule := "as published, the geometric mean in the middle"
	if n > 1 {
		rule = fmt.Sprintf("least, median and greatest of %d values, ranges as their geometric "+
			"mean", n)
	}
	return &Constant{Name: name, Interval: i, Rule: rule, Values: values}, nil
}

// Given is a constant from the caller, between low and high, with the geometric mean in the middle.
func Given(low, high float64) (*Constant, error) {
	i := Interval{low, max(low, min(high, math.Sqrt(low)*math.Sqrt(high))), high}
	if !i.positive() {
		return nil, fmt.Errorf("wear: %g to %g: an interval goes from a number above 0 to one "+
			"not below it: %w", low, high, ErrInput)
	}
	return &Constant{Name: "given", Interval: i, Rule: "given by the caller", Values: []Value{}},
		nil
}

// Geometry returns the default size of a page and of an erase block, with their source: the
// defaults of a simulator.
func Geometry() (page, block units.Bytes, source string, err error) {
	size, err := Published(pageSize)
	if err != nil {
		return 0, 0, "", err
	}
	pages, err := Published(pagesPerBlock)
	if err != nil {
		return 0, 0, "", err
	}
	page = units.Bytes(size.Interval.Mid)
	v := size.Values[0]
	return page, page * units.Bytes(pages.Interval.Mid), v.Source + " (" + v.Quality + ")", nil
}

// Drives returns the names of the drives with a published endurance.
func Drives() []string {
	lines, err := records("drives.csv", driveTable, driveColumns)
	if err != nil {
		return nil // cannot happen: a test reads the whole table
	}
	names := make([]string, len(lines))
	for i, l := range lines {
		names[i] = driveName(l)
	}
	return names
}

// LookupDrive returns a drive by name, in upper or lower case, with the published thresholds and
// geometry. The caller fills in Data. The cycles are unknown unless they are published for the
// drive's kind of flash. The error for an unknown name lists the known names.
func LookupDrive(name string) (Drive, error) { return lookupDrive(driveTable, name) }

func lookupDrive(table, name string) (Drive, error) {
	lines, err := records("drives.csv", table, driveColumns)
	if err != nil {
		return Drive{}, err
	}
	for i, l := range lines {
		if !strings.EqualFold(driveName(l), strings.TrimSpace(name)) {
			continue
		}
		d, err := Unnamed()
		if err != nil {
			return Drive{}, err
		}
		d.Name, d.Source, d.Quality = driveName(l), l[5], l[6]
		if d.Capacity, err = parseSize(l[2]); err != nil {
			return Drive{}, fmt.Errorf("wear: drives.csv:%d: capacity: %w", i+2, err)
		}
		if d.Endurance, err = parseSize(l[3] + "TB"); err != nil {
			return Drive{}, fmt.Errorf("wear: drives.csv:%d: endurance_TBW: %w", i+2, err)
		}
		if l[4] != "" {
			if d.Cycles, err = Published(l[4]); err != nil {
				return Drive{}, fmt.Errorf("wear: drives.csv:%d: %w", i+2, err)
			}
		}
		return d, nil
	}
	return Drive{}, fmt.Errorf("wear: drive %q: no endurance is published here; known are %s: %w",
		name, strings.Join(Drives(), ", "), ErrInput)
}

// parseSize reads a size that a drive can have.
func parseSize(text string) (units.Bytes, error) {
	v, err := units.ParseBytes(text)
	if err == nil && !driveRange.Has(v) {
		err = fmt.Errorf("%q %s", text, driveRange.Refuse(v))
	}
	return v, err
}

// Description describes a drive. Empty fields are those of the named drive, or not known.
type Description struct {
	Drive       string // with a published endurance; "" = another
	Capacity    units.Bytes
	TBW         units.Bytes // rated bytes written
	Cycles      string      // program/erase cycles: one of CycleNames, N or LOW..HIGH
	ReadDisturb string      // reads of a block before it is rewritten: N or LOW..HIGH
}

// Describe makes a drive of a description. Errors name its fields, as package refusal does.
func Describe(c Description) (d Drive, err error) {
	if c.Drive != "" {
		if d, err = LookupDrive(c.Drive); err != nil {
			return d, refusal.Config("{Drive}: %v", err)
		}
	} else if d, err = Unnamed(); err != nil {
		return d, err
	}
	d.Capacity, d.Endurance = cmp.Or(c.Capacity, d.Capacity), cmp.Or(c.TBW, d.Endurance)
	if c.Cycles != "" {
		if d.Cycles, err = parseConstant(c.Cycles); err != nil {
			if d.Cycles, err = Published(c.Cycles); err != nil {
				return d, refusal.Config("{Cycles}: %v", err)
			}
		}
	}
	if c.ReadDisturb != "" {
		if d.Disturb, err = parseConstant(c.ReadDisturb); err != nil {
			return d, refusal.Config("{ReadDisturb}: %v", err)
		}
	}
	return d, nil
}

// parseConstant reads N or LOW..HIGH.
func parseConstant(text string) (*Constant, error) {
	low, high, err := units.ParseInterval(text)
	if err != nil {
		return nil, err
	}
	return Given(low, high)
}

// ParseHot reads SHARE:FRACTION, "0.8:0.2" for 80 % of the reads on 20 % of the blocks; an empty
// text is an even spread.
func ParseHot(text string) (h Hot, err error) {
	if text == "" {
		return h, nil
	}
	share, fraction, _ := strings.Cut(text, ":")
	if h.Share, err = strconv.ParseFloat(share, 64); err == nil {
		h.Fraction, err = strconv.ParseFloat(fraction, 64)
	}
	if err != nil {
		return h, refusal.Config("{Hot} %q: write for example 0.8:0.2, 80 %% of the reads on 20 "+
			"%% of the blocks", text)
	}
	return h, nil
}

// Unnamed is a drive with the published thresholds and the default geometry, and nothing else.
func Unnamed() (Drive, error) {
	d := Drive{Name: "not named"}
	var err error
	if d.Page, d.Block, _, err = Geometry(); err != nil {
		return Drive{}, err
	}
	d.Disturb, err = Published(ReadDisturb)
	return d, err
}

func driveName(line []string) string { return line[0] + " " + line[2] }

var (
	columns = []string{"quantity", "item", "value", "low", "high", "unit", "source", "quality",
		"note"}
	driveColumns = []string{"device", "media", "capacity", "endurance_TBW", "cycles", "source",
		"quality"}
)

// The ranges of published numbers.
var (
	valueRange = bounds.Range[float64]{Least: 1, Most: 1e15, Why: "no flash has more or less"}
	driveRange = bounds.Range[units.Bytes]{Least: 1, Most: 1 << 59, Why: "no drive has more"}
)

// records reads a table with the given columns.
func records(name, text string, want []string) ([][]string, error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("wear: %s: %w", name, err)
	}
	if len(lines) == 0 || !slices.Equal(lines[0], want) {
		return nil, fmt.Errorf("wear: %s: the columns are not %s", name, strings.Join(want, ","))
	}
	return lines[1:], nil
}

// parse reads the table of constants strictly: empty sources and invalid ranges are errors.
func parse(text string) (map[string][]Value, error) {
	lines, err := records("wear.csv", text, columns)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]Value)
	for i, l := range lines {
		v := Value{Item: l[1], Text: l[2], Unit: l[5], Source: l[6], Quality: l[7], Note: l[8]}
		for _, number := range []struct {
			column, text string
			to           *float64
		}{{columns[3], l[3], &v.Low}, {columns[4], l[4], &v.High}} {
			n, err := bounds.Parse(number.text, valueRange)
			if err != nil {
				return nil, fmt.Errorf("wear: wear.csv:%d: %s: %w", i+2, number.column, err)
			}
			*number.to = n
		}
		if v.Low > v.High {
			return nil, fmt.Errorf("wear: wear.csv:%d: low: %q is more than high, %q", i+2, l[3],
				l[4])
		}
		if l[0] == "" || v.Text == "" || v.Source == "" || v.Quality == "" {
			return nil, fmt.Errorf("wear: wear.csv:%d: the quantity, the value, its source or "+
				"its quality is missing", i+2)
		}
		all[l[0]] = append(all[l[0]], v)
	}
	return all, nil
}
