package document

import (
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

func TestSig3(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1.00", -1.234: "-1.23", 9.996: "10.0", 0.012345: "0.0123", 0.09996: "0.100",
		99.96: "100", 123.4: "123", 999.4: "999",
		999.6: "1000", 12345.6: "12346", 0.0000012: "0.00000120", 1e-9: "1e-09", 1e18: "1e+18",
	} {
		if got := Sig3(v); got != want {
			t.Errorf("Sig3(%v) = %q, want %q", v, got, want)
		}
	}
}

// 7 GB/s and 7 GiB differ by 7 %: they must not print alike.
func TestField_H5_DecimalAndBinaryPrintDifferently(t *testing.T) {
	if got := SI(7e9, "B/s"); got != "7.00 GB/s" {
		t.Error(got)
	}
	if got := SI(7*float64(units.GiB), "B/s"); got != "7.52 GB/s" {
		t.Error(got)
	}
	if got := IEC(7 * units.GiB); got != "7.00 GiB" {
		t.Error(got)
	}
	if got := IEC(7_000_000_000); got != "6.52 GiB" {
		t.Error(got)
	}
	if got := IEC(1023); got != "1023 B" {
		t.Error(got)
	}
	if got := SI(12, "B/s"); got != "12.0 B/s" {
		t.Error(got)
	}
}

func TestDuration(t *testing.T) {
	for v, want := range map[units.Nanos]string{0: "0 ns", 999: "999 ns", 41500: "41.5 µs",
		12_345_678: "12.3 ms", -2e6: "-2.00 ms", 10_108_854e6: "10109 s"} {
		if got := Duration(v); got != want {
			t.Errorf("Duration(%d) = %q, want %q", int64(v), got, want)
		}
	}
}
