package units

import (
	"strings"
	"testing"
)

// A number without a unit is suggested with the unit that it is most likely of, and the suggestion
// can be read.
func TestField_N49_NoUnit(t *testing.T) {
	for _, c := range []struct {
		text, want string
		parse      func(string) (int64, error)
	}{
		{"4096", "4096B", size}, {"1024", "1024B", size}, {"512", "512KiB", size},
		{"1.5", "1.5KiB", size}, {"6.1e9", "6.1e9B/s", rate}, {"7000000000", "7000000000B/s", rate},
		{"7000", "7000MB/s", rate}, {"80", "80us", duration}, {"4000000", "4000000ns", duration},
	} {
		_, err := c.parse(c.text)
		if err == nil || !strings.HasSuffix(err.Error(), "write for example "+c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
		if v, err := c.parse(c.want); err != nil || v <= 0 {
			t.Errorf("the suggestion %s: %d, %v", c.want, v, err)
		}
	}
}

// The micro sign and the Greek letter mu look the same.
func TestField_N50_GreekMu(t *testing.T) {
	for _, text := range []string{"41.51\u00b5s", "41.51\u03bcs", "41.51us", " 41.51 \u03bcs"} {
		if v, err := ParseNanos(text); v != 41510 || err != nil {
			t.Errorf("%q: %d, %v", text, v, err)
		}
	}
	if _, err := ParseNanos("41\u03bc"); err == nil {
		t.Error("a mu without its s is taken")
	}
}

func size(s string) (int64, error)     { v, err := ParseBytes(s); return int64(v), err }
func rate(s string) (int64, error)     { v, err := ParseRate(s); return int64(v), err }
func duration(s string) (int64, error) { v, err := ParseNanos(s); return int64(v), err }
