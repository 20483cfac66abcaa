package arrivals

import (
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/internal/units"
)

// The twins of the parsers: the same with the standard library, slow and short.

func plainCount(s string) (int64, bool) {
	v, err := strconv.ParseUint(s, 10, 64)
	return int64(v), err == nil && v <= MaxTokens && !strings.ContainsAny(s, "+_")
}

func plainDecimal(s string, scale int64) (units.Nanos, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if strings.Trim(whole+fraction, "0123456789") != "" || whole == "" || point && fraction == "" {
		return 0, false
	}
	v, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, false
	}
	v.Mul(v, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil)))
	v.Add(v, big.NewRat(1, 2))
	n := new(big.Int).Div(v.Num(), v.Denom())
	return units.Nanos(n.Int64()), n.IsInt64()
}

func plainStamp(s string, zone bool) (units.Nanos, bool) {
	if _, fraction, ok := strings.Cut(strings.TrimSuffix(s, "+00:00"), "."); ok &&
		len(fraction) > 9 {
		return 0, false
	}
	layout := "2006-01-02 15:04:05"
	if zone {
		layout += "-07:00"
		if !strings.HasSuffix(s, "+00:00") {
			return 0, false
		}
	}
	v, err := time.Parse(layout, s)
	// time.Parse also takes a comma before the fraction, and hours of one digit.
	ok := err == nil && v.Year() >= 1970 && v.Year() <= 2261 && !strings.Contains(s, ",") &&
		strings.HasPrefix(s, v.Format("2006-01-02 15:04:05"))
	return units.Nanos(v.UnixNano()), ok
}

// checkField compares every parser with its twin on one field.
func checkField(t *testing.T, s string) {
	t.Helper()
	got, why := parseCount([]byte(s))
	if want, ok := plainCount(s); ok != (why == "") || ok && int64(got) != want {
		t.Errorf("count %q: %d %q, want %d %v", s, got, why, want, ok)
	}
	for _, scale := range []int{6, 9} {
		got, why := parseDecimal([]byte(s), scale)
		want, ok := plainDecimal(s, int64(scale))
		// Numbers within ten nanoseconds of the largest are refused, which nobody will miss.
		if ok && want > units.Forever-10 {
			continue
		}
		if ok != (why == "") || ok && got != want {
			t.Errorf("decimal %q at %d: %d %q, want %d %v", s, scale, got, why, want, ok)
		}
	}
	for _, zone := range []bool{false, true} {
		got, why := parseStamp([]byte(s), zone)
		if want, ok := plainStamp(s, zone); ok != (why == "") || ok && got != want {
			t.Errorf("stamp %q, %v: %d %q, want %d %v", s, zone, got, why, want, ok)
		}
	}
}

func fieldSeeds() []string {
	return []string{
		"", "0", "7", "007", "2147483647", "2147483648", "18446744073709551616", "0.5", "1.", ".5",
		"1.0000000005", "199.96150599999999", "0.0000000004999",
		"9223372036.854775797", "9223372036.9", "1.5.2", "1e3", "-1", "+1", "1_0", " 1", "1\x00",
		"٣", "2147483647000000000000000000000000.1",
		"2023-11-16 18:17:03.9799600", "2024-02-29 00:00:00+00:00",
		"2024-05-10 00:00:00.009930+00:00", "2023-02-29 00:00:00", "2100-02-29 00:00:00",
		"2000-02-29 23:59:59.999999999", "1970-01-01 00:00:00", "1969-12-31 23:59:59",
		"2261-12-31 23:59:59.9", "2262-01-01 00:00:00", "2024-05-10 24:00:00",
		"2024-05-10 00:00:60", "2024-05-10 00:00:00.", "2024-05-10 00:00:00.1234567891",
		"2024-05-10 00:00:00,5", "2024-05-10 0:00:00.5", "2024-05-10 00:00:00+00:00+00:00",
		"2024-05-10 00:00:00-00:00", "2024-05-10 00:00:00+02:00", "2024-05-10T00:00:00",
		"2024-00-10 00:00:00", "2024-13-10 00:00:00", "2024-04-31 00:00:00", "2024-05-00 00:00:00",
	}
}

func TestFieldsAgainstTwins(t *testing.T) {
	for _, s := range fieldSeeds() {
		checkField(t, s)
	}
	day := time.Date(1970, 1, 1, 12, 0, 0, 0, time.UTC)
	for range 106_000 { // every day to 2261
		if day.Year() > 2261 {
			break
		}
		if got := daysSince1970(day.Year(), int(day.Month()), day.Day()); got != day.Unix()/86400 ||
			!isDate(day.Year(), int(day.Month()), day.Day()) {
			t.Fatalf("%v is day %d", day, got)
		}
		day = day.AddDate(0, 0, 1)
	}
}

func FuzzFields(f *testing.F) {
	for _, s := range fieldSeeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) < 1000 { // the twins are slow
			checkField(t, s)
		}
	})
}
