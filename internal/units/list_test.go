package units

import (
	"slices"
	"strings"
	"testing"
)

func TestParseInts(t *testing.T) {
	for text, want := range map[string][]int{
		"4": {4}, "1,2,8": {1, 2, 8}, "0..3": {0, 1, 2, 3}, "1..8/3": {1, 4, 7},
		" 0..2 , 8 ": {0, 1, 2, 8}, "5..5": {5},
	} {
		if got, err := ParseInts(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("ParseInts(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "neither a number", "a": "neither a number", "1,": "neither a number",
		"-1": "neither a number", "4..2": "ends before", "1..9/0": "step", "2,2": "ascend",
		"0..3,2": "ascend", "0..9999999999": "more than", "0..9223372036854775807": "more than",
		"1...3": "neither a number",
	} {
		if got, err := ParseInts(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseInts(%q) = %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

// A size with a unit that is nearly right is refused with what it may mean, never guessed.
func TestNearlyRightUnits(t *testing.T) {
	for text, want := range map[string]string{
		"6G": "6GiB or 6GB", "8gb": "8GB", "64kb": "64kB", "64K": "64KiB or 64kB",
		"64kib": "64KiB", "1.5 gib": "1.5GiB",
	} {
		_, err := ParseBytes(text)
		if err == nil || !strings.Contains(err.Error(), "did you mean "+want+"?") {
			t.Errorf("ParseBytes(%q): %v, want the suggestion %q", text, err, want)
		}
	}
	if _, err := ParseRate("7gb/s"); err == nil ||
		!strings.Contains(err.Error(), "did you mean 7Gb/s or 7GB/s?") {
		t.Errorf("a rate: %v", err)
	}
	if _, err := ParseNanos("5 msec"); err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("a duration: %v", err)
	}
	if _, err := ParseBytes("4 bananas"); err == nil || strings.Contains(err.Error(),
		"did you mean") {
		t.Errorf("bananas: %v", err)
	}
}
