package devicemodels

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// edited loads a preset in which one value has another text.
func edited(t *testing.T, field, value string) (*Device, error) {
	t.Helper()
	d, err := Preset("m1-max")
	if err != nil {
		t.Fatal(err)
	}
	text, err := Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	done := false
	for i, line := range lines {
		if at := strings.Index(line, field+": "); at >= 0 && strings.TrimSpace(line[:at]) == "" {
			lines[i], done = line[:at]+field+": "+value, true
			break
		}
	}
	if !done {
		t.Fatalf("no field %s", field)
	}
	path := filepath.Join(t.TempDir(), "mine.device.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(t.Context(), path)
}

// Field case N49: the number without a unit is suggested with one that is likely.
func TestField_N49_Suggestions(t *testing.T) {
	for field, c := range map[string][2]string{
		"align": {"4096", "4096B"}, "link_rate": {"6.1e9", "6.1e9B/s"}, "ltfb": {"80", "80us"},
	} {
		_, err := edited(t, field, c[0])
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), field) ||
			!strings.Contains(err.Error(), "write for example "+c[1]+":") {
			t.Errorf("%s: %s: %v", field, c[0], err)
		}
		if _, err := edited(t, field, c[1]); err != nil {
			t.Errorf("%s: %s: %v", field, c[1], err)
		}
	}
}

// Field case N50: a Greek mu is a micro sign, and is written as "us".
func TestField_N50_GreekMu(t *testing.T) {
	d, err := edited(t, "ltfb", "41.51\u03bcs")
	if err != nil || d.Flash.LTFB != units.Nanos(41510) {
		t.Fatalf("%v, %v", d, err)
	}
	text, err := Marshal(d)
	if err != nil || !strings.Contains(string(text), "ltfb: 41.51us") {
		t.Errorf("%s, %v", text, err)
	}
}

// Field case N52: numbers beyond any machine are refused by line and range, before they are taken
// for memory or time; a fraction is no number of servers.
func TestField_N52_Bounds(t *testing.T) {
	for _, c := range [][3]string{
		{"servers", "9223372036854775807", "is not from 1 to 65536"},
		{"servers", "1000000000", "is not from 1 to 65536"},
		{"servers", "65537", "is not from 1 to 65536"},
		{"servers", "0", "is not from 1 to 65536"},
		{"servers", "1.5", "is not a whole number"},
		{"cores", "1000000000", "is not from 1 to 65536"},
		{"servers", "65536", ""},
	} {
		_, err := edited(t, c[0], c[1])
		if (err == nil) != (c[2] == "") || err != nil && (!errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), c[0]) || !strings.Contains(err.Error(), c[1]) ||
			!strings.Contains(err.Error(), c[2]) || !strings.Contains(err.Error(), ".yaml:")) {
			t.Errorf("%s: %s: %v, want %q", c[0], c[1], err, c[2])
		}
	}
}
