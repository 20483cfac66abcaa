// Package units holds the three quantities that all packages use (bytes, rates and nanoseconds) and
// their text forms. No other package converts between 1000 and 1024.
//
// Text forms have a unit: "4KiB", "6.10GB/s", "80us". A number without a unit is an error: "7000"
// may mean GB, GiB or Gbit. It is a leaf: it imports nothing of this module.
package units

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Bytes is an amount of data. Its text form has IEC units (KiB, MiB, GiB).
type Bytes int64

// Rate is a data rate in bytes per second. Its text form has SI units (MB/s, GB/s), as drives do.
type Rate int64

// Nanos is a duration or a point of (virtual or measured) time in nanoseconds.
type Nanos int64

// Sizes in bytes.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// Rates in bytes per second.
const (
	MBps Rate = 1e6
	GBps Rate = 1e9
)

// Durations in nanoseconds.
const (
	Microsecond Nanos = 1e3
	Millisecond Nanos = 1e6
	Second      Nanos = 1e9
)

// Forever is later than every time of a simulation.
const Forever Nanos = math.MaxInt64

// Time returns the time of b bytes at rate r, rounded up to a whole nanosecond. A rate of zero or
// less means "no limit": the time is 0. The arithmetic is exact, so that the result is the same on
// every machine. A result beyond the range of Nanos is Forever.
func (r Rate) Time(b Bytes) Nanos {
	if r <= 0 || b <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(b), uint64(Second))
	lo, carry := bits.Add64(lo, uint64(r)-1, 0)
	hi += carry
	if hi >= uint64(r) {
		return Forever
	}
	q, _ := bits.Div64(hi, lo, uint64(r))
	if q > math.MaxInt64 {
		return Forever
	}
	return Nanos(q)
}

// Over returns the rate of b bytes in t; 0 if t is not positive.
func (b Bytes) Over(t Nanos) Rate {
	if t <= 0 {
		return 0
	}
	return Rate(float64(b) * 1e9 / float64(t))
}

// Seconds returns t in seconds.
func (t Nanos) Seconds() float64 { return float64(t) / 1e9 }

// Millis returns t in milliseconds.
func (t Nanos) Millis() float64 { return float64(t) / 1e6 }

// FromSeconds converts seconds to Nanos, rounding to the nearest.
func FromSeconds(s float64) Nanos { return Nanos(math.Round(s * 1e9)) }

type unit struct {
	name  string
	scale float64
}

// Longest names first, so that "GiB/s" is not read as "B/s" with rubbish before it.
var (
	byteUnits = []unit{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
	}
	rateUnits = []unit{
		{"KiB/s", 1 << 10}, {"MiB/s", 1 << 20}, {"GiB/s", 1 << 30}, {"Gb/s", 1e9 / 8},
		{"Mb/s", 1e6 / 8},
		{"kB/s", 1e3}, {"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}, {"B/s", 1},
	}
	timeUnits = []unit{{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9},
		{"h", 3600e9}}
	// The micro sign and the Greek letter mu look the same, and keyboards have either.
	sameLook = strings.NewReplacer("\u03bc", "\u00b5")
)

// quantity is a kind of text form. A number without a unit is most likely of the usual unit, and of
// the base unit from the limit on: "64" is 64KiB, but "4096" is 4096B.
type quantity struct {
	kind, usual, base string
	limit             float64
	table             []unit
}

var (
	sizes     = quantity{"size", "KiB", "B", 1024, byteUnits}
	rates     = quantity{"rate", "MB/s", "B/s", 1e5, rateUnits}
	durations = quantity{"duration", "us", "ns", 1e6, timeUnits}
)

func (q *quantity) parse(s string) (int64, error) {
	kind, table := q.kind, q.table
	text := sameLook.Replace(strings.TrimSpace(s))
	for _, u := range table {
		num, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil {
			continue // "5ms" also ends in "s": try the longer unit
		}
		v *= u.scale
		if math.IsNaN(v) || v < 0 || v >= math.MaxInt64 {
			return 0, fmt.Errorf("units: %s %q is out of range", kind, s)
		}
		return int64(math.Round(v)), nil
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		unit := q.usual
		if v >= q.limit {
			unit = q.base
		}
		return 0, fmt.Errorf("units: %s %q has no unit; write for example %s", kind, s, text+unit)
	}
	if near := nearly(text, table); near != "" {
		return 0, fmt.Errorf("units: %q is not a %s; did you mean %s?", s, kind, near)
	}
	return 0, fmt.Errorf("units: %q is not a %s; known units are %s", s, kind, names(table))
}

// nearly lists the meanings of a number with a misspelt unit: of "6G", "6GiB or 6GB"; of "8gb",
// "8GB". It returns "" if no unit is near.
func nearly(text string, table []unit) string {
	end := strings.LastIndexAny(text, "0123456789") + 1
	number := text[:end]
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return ""
	}
	name := strings.ToLower(strings.TrimSpace(text[end:]))
	var list []string
	seen := map[string]bool{}
	for _, full := range []string{name, name + "ib", name + "b"} {
		for _, u := range table {
			if strings.ToLower(u.name) == full && !seen[strings.ToLower(u.name)+u.family()] {
				seen[strings.ToLower(u.name)+u.family()] = true
				list = append(list, number+u.name)
			}
		}
	}
	return strings.Join(list, " or ")
}

// family distinguishes spellings of one unit (kB and KB) from units that differ (Gb and GB).
func (u unit) family() string { return strconv.FormatFloat(u.scale, 'g', -1, 64) }

func names(table []unit) string {
	var b strings.Builder
	for i, u := range table {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(u.name)
	}
	return b.String()
}

// ParseBytes reads "4KiB", "1.5GiB", "13.4GB" (decimal) or "512B".
func ParseBytes(s string) (Bytes, error) {
	v, err := sizes.parse(s)
	return Bytes(v), err
}

// ParseRate reads "6.10GB/s", "7.0GiB/s" or "7Gb/s" (bits).
func ParseRate(s string) (Rate, error) {
	v, err := rates.parse(s)
	return Rate(v), err
}

// ParseNanos reads "80us", "1.5ms", "20s".
func ParseNanos(s string) (Nanos, error) {
	v, err := durations.parse(s)
	return Nanos(v), err
}

func format(v int64, table []unit) string {
	f := float64(v)
	pick := table[0]
	for _, u := range table {
		if math.Abs(f) >= u.scale {
			pick = u
		}
	}
	f /= pick.scale
	if math.Abs(f) >= 1000 {
		f = math.Round(f) // below the next unit of a table in steps of 1024, or beyond the last
	}
	digits := 3
	if f == math.Trunc(f) {
		digits = -1
	}
	return strconv.FormatFloat(f, 'g', digits, 64) + pick.name
}

// String formats with three significant digits in IEC units, or exactly if the number is whole.
func (b Bytes) String() string {
	return format(int64(b), []unit{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
		{"TiB", 1 << 40}})
}

// String formats with three significant digits in SI units.
func (r Rate) String() string {
	return format(int64(r), []unit{{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}})
}

// String formats with three significant digits.
func (t Nanos) String() string {
	return format(int64(t), []unit{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}})
}

// exact returns a text form that parses back to the same integer.
func exact(v int64, table []unit) string {
	for i := len(table) - 1; i >= 0; i-- {
		u := table[i]
		s := strconv.FormatFloat(float64(v)/u.scale, 'g', -1, 64)
		if len(s) > 10 || strings.ContainsRune(s, 'e') {
			continue
		}
		if f, _ := strconv.ParseFloat(s, 64); int64(math.Round(f*u.scale)) == v && f >= 1 {
			return s + u.name
		}
	}
	return strconv.FormatInt(v, 10) + table[0].name
}

// MarshalText writes a form that UnmarshalText reads back exactly.
func (b Bytes) MarshalText() ([]byte, error) {
	return []byte(exact(int64(b), []unit{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20},
		{"GiB", 1 << 30}})), nil
}

// MarshalText writes a form that UnmarshalText reads back exactly.
func (r Rate) MarshalText() ([]byte, error) {
	return []byte(exact(int64(r), []unit{{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}})),
		nil
}

// MarshalText writes a form that UnmarshalText reads back exactly.
func (t Nanos) MarshalText() ([]byte, error) {
	return []byte(exact(int64(t), []unit{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}})), nil
}

// MarshalJSON writes a plain number of bytes: names in JSON documents carry their unit, and
// programs read them.
func (b Bytes) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(b), 10), nil }

// MarshalJSON writes a plain number of bytes per second.
func (r Rate) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(r), 10), nil }

// MarshalJSON writes a plain number of nanoseconds.
func (t Nanos) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(t), 10), nil }

// UnmarshalJSON reads a plain number of bytes.
func (b *Bytes) UnmarshalJSON(text []byte) error { return fromJSON((*int64)(b), text) }

// UnmarshalJSON reads a plain number of bytes per second.
func (r *Rate) UnmarshalJSON(text []byte) error { return fromJSON((*int64)(r), text) }

// UnmarshalJSON reads a plain number of nanoseconds.
func (t *Nanos) UnmarshalJSON(text []byte) error { return fromJSON((*int64)(t), text) }

func fromJSON(v *int64, text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("units: %s is not a whole number", text)
	}
	*v = n
	return nil
}

// UnmarshalText reads what ParseBytes reads.
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = ParseBytes(string(text))
	return err
}

// UnmarshalText reads what ParseRate reads.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRate(string(text))
	return err
}

// UnmarshalText reads what ParseNanos reads.
func (t *Nanos) UnmarshalText(text []byte) (err error) {
	*t, err = ParseNanos(string(text))
	return err
}
