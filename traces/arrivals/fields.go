package arrivals

import (
	"bytes"
	"math"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// The parsers below read the formats' own notation and nothing else: digits, and a point in times.
// They return "" as the reason for a valid field.

// clockOf returns the parser of a format's times.
func clockOf(f Format) func([]byte) (units.Nanos, Reason) {
	switch f {
	case Azure2023:
		return func(b []byte) (units.Nanos, Reason) { return parseStamp(b, false) }
	case Azure2024:
		return func(b []byte) (units.Nanos, Reason) { return parseStamp(b, true) }
	case Mooncake:
		return parseMillis
	}
	return parseSeconds
}

func digit(c byte) bool { return c-'0' <= 9 }

// parseCount reads a number of tokens.
func parseCount(b []byte) (int, Reason) {
	v := int64(0)
	for _, c := range b {
		if !digit(c) {
			return 0, classify(b, true)
		}
		if v = v*10 + int64(c-'0'); v > MaxTokens {
			return 0, classify(b, true)
		}
	}
	if len(b) == 0 {
		return 0, Blank
	}
	return int(v), ""
}

func parseSeconds(b []byte) (units.Nanos, Reason) { return parseDecimal(b, 9) }

func parseMillis(b []byte) (units.Nanos, Reason) { return parseDecimal(b, 6) }

// parseDecimal reads a time in units of 10^scale nanoseconds. Digits beyond a nanosecond are
// rounded to the nearest: writers of floating-point numbers print up to 17 digits
// (199.96150599999999).
func parseDecimal(b []byte, scale int) (units.Nanos, Reason) {
	v, i := int64(0), 0
	append10 := func(d byte) bool {
		if v > (math.MaxInt64-9)/10 {
			return false
		}
		v = v*10 + int64(d)
		return true
	}
	for ; i < len(b) && digit(b[i]); i++ {
		if !append10(b[i] - '0') {
			return 0, classify(b, false)
		}
	}
	if i == 0 {
		return 0, classify(b, false)
	}
	up := false
	if i < len(b) && b[i] == '.' {
		point := i
		for i++; i < len(b) && digit(b[i]); i++ {
			switch {
			case scale > 0 && !append10(b[i]-'0'):
				return 0, classify(b, false)
			case scale == 0:
				up = b[i] >= '5'
			}
			scale--
		}
		if i == point+1 {
			return 0, classify(b, false)
		}
	}
	if i < len(b) {
		return 0, classify(b, false)
	}
	for ; scale > 0; scale-- {
		if !append10(0) {
			return 0, TooLarge
		}
	}
	if up {
		v++ // v is at most 10 * ((1<<63 - 10) / 10) + 9, below the largest
	}
	return units.Nanos(v), ""
}

// classify returns the reason why a field is not the expected number.
func classify(b []byte, whole bool) Reason {
	s := strings.ToLower(string(b))
	number := strings.TrimPrefix(s, "-")
	if strings.TrimSpace(s) == "" {
		return Blank
	}
	if number == "" || !digit(number[0]) {
		return NotANumber
	}
	if number != s {
		return Negative
	}
	// The field begins with a digit. Find the first character that is neither a digit nor a point.
	odd := strings.IndexFunc(number, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	switch points := strings.Count(number, "."); {
	case odd >= 0 && number[odd] == 'e' && strings.Trim(number[odd+1:], "+-0123456789") == "" &&
		odd+1 < len(number):
		return Exponent
	case odd >= 0 && separated(number):
		return Separator
	case odd >= 0 || points > 1 || strings.HasSuffix(number, "."):
		return NotANumber
	case whole && points == 1:
		return Fraction
	}
	return TooLarge
}

// separated reports whether s is digits in groups of thousands.
func separated(s string) bool {
	s, _, _ = strings.Cut(s, ".")
	for _, mark := range []string{",", "_", "'", "’", " ", "\u00a0", "\u202f", "\u2009"} {
		groups := strings.Split(s, mark)
		fits := len(groups) > 1
		for i, g := range groups {
			fits = fits && strings.Trim(g, "0123456789") == "" && (len(g) == 3 || i == 0 &&
				len(g) > 0 && len(g) < 3)
		}
		if fits {
			return true
		}
	}
	return false
}

// parseStamp reads "2023-11-16 18:17:03" as nanoseconds since 1970. Up to nine digits of a fraction
// may follow, and then "+00:00" if zone is set.
func parseStamp(b []byte, zone bool) (units.Nanos, Reason) {
	const layout = len("2006-01-02 15:04:05")
	if zone {
		if !bytes.HasSuffix(b, []byte("+00:00")) {
			return 0, stampReason(b)
		}
		b = b[:len(b)-len("+00:00")]
	}
	if len(b) < layout || b[4] != '-' || b[7] != '-' || b[10] != ' ' || b[13] != ':' ||
		b[16] != ':' {
		return 0, stampReason(b)
	}
	high, ok0 := pair(b, 0)
	low, ok1 := pair(b, 2)
	month, ok2 := pair(b, 5)
	day, ok3 := pair(b, 8)
	hour, ok4 := pair(b, 11)
	minute, ok5 := pair(b, 14)
	second, ok6 := pair(b, 17)
	year := 100*high + low
	if !(ok0 && ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || hour > 23 || minute > 59 ||
		second > 59 || !isDate(year, month, day) {
		return 0, BadTime
	}
	nanos := int64(0)
	if len(b) > layout {
		fraction := b[layout+1:]
		if b[layout] != '.' || len(fraction) == 0 || len(fraction) > 9 {
			return 0, BadTime
		}
		for _, c := range fraction {
			if !digit(c) {
				return 0, BadTime
			}
			nanos = nanos*10 + int64(c-'0')
		}
		for range 9 - len(fraction) {
			nanos *= 10
		}
	}
	seconds := daysSince1970(year, month, day)*86400 + int64(3600*hour+60*minute+second)
	return units.Nanos(seconds*1e9 + nanos), ""
}

// stampReason distinguishes a time in another layout from a field that is no time.
func stampReason(b []byte) Reason {
	switch why := classify(b, false); why {
	case Blank, Negative, Exponent:
		return why
	}
	return BadTime
}

// pair reads two digits.
func pair(b []byte, at int) (int, bool) {
	tens, ones := b[at], b[at+1]
	return int(tens-'0')*10 + int(ones-'0'), digit(tens) && digit(ones)
}

// isDate reports whether a day exists, within the years that nanoseconds since 1970 reach.
func isDate(year, month, day int) bool {
	if year < 1970 || year > 2261 || month < 1 || month > 12 || day < 1 {
		return false
	}
	days := 31
	switch month {
	case 4, 6, 9, 11:
		days = 30
	case 2:
		days = 28
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			days = 29
		}
	}
	return day <= days
}

// daysSince1970 counts the days to a date of the Gregorian calendar. Years begin in March here, so
// that the leap day is the last day: the days before month m are then (153 m + 2) / 5, with m = 0
// in March.
func daysSince1970(year, month, day int) int64 {
	m := month - 3
	if m < 0 {
		m += 12
		year--
	}
	const epoch = 719468 // days from 1 March of the year 0 to 1 January 1970
	return int64(365*year+year/4-year/100+year/400+(153*m+2)/5+day-1) - epoch
}
