package document

import (
	"math"
	"strconv"

	"github.com/windrow-sim/windrow/internal/units"
)

// Sig3 formats v with three significant digits, without an exponent in the range that reports use;
// whole digits are never dropped. What is not a number is "n/a".
func Sig3(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "n/a"
	case a >= 1e15 || a > 0 && a < 1e-6:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a >= 999.5:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a == 0:
		return "0"
	default:
		// Round to three digits first: 9.996 is 10.0, which needs one decimal less than 9.99.
		r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
		return strconv.FormatFloat(r, 'f', max(0, 2-int(math.Floor(math.Log10(math.Abs(r))))), 64)
	}
}

// SI formats v with a decimal prefix: SI(6.1e9, "B/s") is "6.10 GB/s". For rates, drives and
// traffic.
func SI(v float64, unit string) string {
	for _, p := range []struct {
		scale float64
		name  string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= p.scale {
			return Sig3(v/p.scale) + " " + p.name + unit
		}
	}
	return Sig3(v) + " " + unit
}

// IEC formats an amount of memory with a binary prefix: "1.50 GiB".
func IEC(b units.Bytes) string {
	for _, p := range []struct {
		scale units.Bytes
		name  string
	}{{1 << 40, "TiB"}, {units.GiB, "GiB"}, {units.MiB, "MiB"}, {units.KiB, "KiB"}} {
		if b >= p.scale || b <= -p.scale {
			return Sig3(float64(b)/float64(p.scale)) + " " + p.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + " B"
}

// Millis formats a time in milliseconds, without the unit.
func Millis(t units.Nanos) string { return Sig3(float64(t) / 1e6) }

// Duration formats a time with the unit that leaves it readable: "41.5 µs", "12.3 ms", "4.20 s".
func Duration(t units.Nanos) string {
	switch {
	case t >= 1e9 || t <= -1e9:
		return Sig3(t.Seconds()) + " s"
	case t >= 1e6 || t <= -1e6:
		return Millis(t) + " ms"
	case t >= 1e3 || t <= -1e3:
		return Sig3(float64(t)/1e3) + " µs"
	}
	return strconv.FormatInt(int64(t), 10) + " ns"
}

// Percent formats a share in percent, without the sign.
func Percent(share float64) string { return Sig3(100 * share) }

// Signed formats v with its sign; zero has none.
func Signed(v float64) string {
	if v > 0 {
		return "+" + Sig3(v)
	}
	return Sig3(v)
}

// Count formats a whole number.
func Count[N int | int32 | int64 | uint32](n N) string { return strconv.FormatInt(int64(n), 10) }
