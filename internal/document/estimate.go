package document

import "fmt"

// Estimate is a predicted number with what is known of its error. It is the only way to print a
// prediction: a bound never looks like an estimate.
type Estimate struct {
	Value float64 `json:"value"`
	// Low and High are the ends of the interval that holds nine of ten results; nil = not known.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
	// Basis says what the number rests on: "measured", "interpolated", "extrapolated" or "bound".
	Basis string `json:"basis"`
	// Bound says that the real number lies on one side of Value: below it with AtMost.
	Bound  bool `json:"bound"`
	AtMost bool `json:"at_most"`
}

// IntervalColumn and BasisColumn stand beside the column of an Estimate in a table.
var (
	IntervalColumn = Column{Name: "interval", Align: Right}
	BasisColumn    = Column{Name: "basis"}
)

// IntervalOf is an IntervalColumn of a table with several.
func IntervalOf(name string) Column { return Column{Name: name + " interval", Align: Right} }

// Cell is the number for a column that states the unit: "3.10", or "≤ 4.50" for a bound.
func (e Estimate) Cell() string { return e.Mark(Sig3(e.Value)) }

// Mark is a text of the number, such as one with its unit, marked as Cell marks a bound.
func (e Estimate) Mark(text string) string { return e.sign("≤ ", "≥ ") + text }

// Interval is the interval for a column: "2.20 to 4.00", or "bound".
func (e Estimate) Interval() string {
	switch {
	case e.Bound:
		return "bound"
	case e.Low == nil || e.High == nil:
		return "not known"
	}
	return Sig3(*e.Low) + " to " + Sig3(*e.High)
}

// Cells are the three cells of a table row: number, interval and basis.
func (e Estimate) Cells() []string { return []string{e.Cell(), e.Interval(), e.Basis} }

// Text is the number in a sentence: "3.10 tokens/s, 2.20 to 4.00 (simulated; basis:
// interpolated)", or "at most 4.50 tokens/s (bound)". A basis alone would read as if the number
// itself had been measured.
func (e Estimate) Text(unit string) string {
	text := fmt.Sprintf("%s%s %s", e.sign("at most ", "at least "), Sig3(e.Value), unit)
	switch {
	case e.Bound:
		return text + " (bound)"
	case e.Low != nil && e.High != nil:
		text += fmt.Sprintf(", %s to %s", Sig3(*e.Low), Sig3(*e.High))
	default:
		text += ", interval not known"
	}
	if e.Basis != "" {
		text += " (simulated; basis: " + e.Basis + ")"
	}
	return text
}

// Times returns the estimate in another unit: value and interval multiplied by factor, which is
// above 0.
func (e Estimate) Times(factor float64) Estimate {
	scaled := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		product := *v * factor
		return &product
	}
	e.Value, e.Low, e.High = e.Value*factor, scaled(e.Low), scaled(e.High)
	return e
}

// Inverse returns numerator divided by the estimate: the rate of a time, the time of a rate. A
// bound from above becomes one from below. The value is above 0.
func (e Estimate) Inverse(numerator float64) Estimate {
	inverse := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		quotient := numerator / *v
		return &quotient
	}
	e.Value, e.Low, e.High = numerator/e.Value, inverse(e.High), inverse(e.Low)
	e.AtMost = e.Bound && !e.AtMost
	return e
}

func (e Estimate) sign(most, least string) string {
	switch {
	case !e.Bound:
		return ""
	case e.AtMost:
		return most
	}
	return least
}
