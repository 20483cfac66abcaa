package reproduce

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

//go:embed published.csv
var publishedTable string

// columns of published.csv. The last three name the cell of the collection of published numbers
// that the value is a copy of.
var columns = [...]string{"id", "value", "unit", "source", "quality", "file", "match", "column"}

// Published is a number as its source prints it: a value, or an interval if Low < High.
type Published struct {
	ID     string  `json:"id"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Unit   string  `json:"unit"`
	Source string  `json:"source"`
	// Quality says how the number was taken from the source: "table", "text", "figure-read",
	// "derived" or "secondary".
	Quality string `json:"quality"`
}

// Mid is the value, or the middle of the interval.
func (p Published) Mid() float64 { return (p.Low + p.High) / 2 }

// String writes the number as the table shows it.
func (p Published) String() string {
	if p.Low == p.High {
		return number(p.Low)
	}
	return number(p.Low) + " to " + number(p.High)
}

// errorPercent is the distance of v from the number, in percent of the nearer end; 0 inside an
// interval.
func (p Published) errorPercent(v float64) float64 {
	switch {
	case v < p.Low:
		return 100 * (v - p.Low) / p.Low
	case v > p.High:
		return 100 * (v - p.High) / p.High
	}
	return 0
}

// number writes 4 significant digits, without an exponent.
func number(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	decimals := max(0, 3-int(math.Floor(math.Log10(math.Abs(v)))))
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// parsePublished reads the table. Every line needs a number, a source and a quality, and ids are
// unique.
func parsePublished(text string) (map[string]Published, error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reproduce: published.csv: %w", err)
	}
	if len(lines) == 0 || !slices.Equal(lines[0], columns[:]) {
		return nil, fmt.Errorf("reproduce: published.csv: the columns are not %s",
			strings.Join(columns[:], ","))
	}
	table := make(map[string]Published, len(lines)-1)
	for i, l := range lines[1:] {
		p := Published{ID: l[0], Unit: l[2], Source: l[3], Quality: l[4]}
		if p.Low, p.High, err = parseNumber(l[1]); err != nil {
			return nil, fmt.Errorf("reproduce: published.csv:%d: %w", i+2, err)
		}
		if _, twice := table[p.ID]; twice || p.ID == "" || p.Source == "" || p.Quality == "" {
			return nil, fmt.Errorf("reproduce: published.csv:%d: %q: an id that was not there "+
				"before, a source and a quality are needed", i+2, p.ID)
		}
		table[p.ID] = p
	}
	return table, nil
}

// parseNumber reads "5" and "4-5".
func parseNumber(text string) (low, high float64, err error) {
	a, b, interval := strings.Cut(text, "-")
	if !interval {
		b = a
	}
	if low, err = strconv.ParseFloat(a, 64); err == nil {
		high, err = strconv.ParseFloat(b, 64)
	}
	if err != nil || !(low >= 0 && low <= high) || math.IsInf(high, 1) {
		return 0, 0, fmt.Errorf("%q is neither a number of 0 or more nor an interval of two", text)
	}
	return low, high, nil
}
