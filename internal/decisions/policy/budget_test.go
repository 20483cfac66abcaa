package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// A size is for all layers together and gives whole records; a text without sizes is what Parse
// reads.
func TestParseBudget(t *testing.T) {
	const record, layers = 16 * units.KiB, 32
	for text, want := range map[string]string{
		"lru:1GiB":                 "lru:2048",
		"lru:2000":                 "lru:2000",
		"lru:1MiB":                 "lru:2",
		"lru:1000KiB":              "lru:1", // 31.25 KiB a layer
		"lru:0B":                   "lru:0",
		"lfu:512MiB":               "lfu:1024",
		"delta:1GiB":               "delta:2048",
		"cyclic:1GiB":              "cyclic:2048",
		"belady:1GiB":              "belady:2048",
		"hybrid:1GiB":              "hybrid:2048",
		"hot:512MiB+1GiB":          "hot:1024+2048",
		"hot:512MiB+7":             "hot:1024+7",
		"window:5,capacity:1GiB":   "window:5,capacity:2048",
		"pages:1GiB,ahead:128KiB":  "pages:2048,ahead:8",
		"pages:9,ahead:4KiB":       "pages:9,ahead:1",
		"tensors:3":                "tensors:3",
		"none":                     "none",
		"all":                      "all",
		"window:5":                 "window:5",
		"window:5,capacity:3000MB": "window:5,capacity:5722",
	} {
		got, err := ParseBudget(text, record, layers)
		if err != nil || got.String() != want {
			t.Errorf("ParseBudget(%q) = %v, %v; want %s", text, got, err, want)
		}
	}
}

func TestParseBudgetErrors(t *testing.T) {
	for text, says := range map[string]string{
		"lru":                     "write lru:CAPACITY",
		"lru:":                    "write lru:CAPACITY",
		"lru:1GB,capacity:2":      "write lru:CAPACITY",
		"lru:-1GiB":               "write lru:CAPACITY",
		"lru:1XB":                 "1XB",
		"tensors:1GiB":            "a number of layers or tokens",
		"window:1GiB":             "a number of layers or tokens",
		"window:5,capacity:1KiB":  "write window:TOKENS", // no record fits, which would be no limit
		"clock:1GiB":              "there is no policy",
		"":                        "there is no policy",
		strings.Repeat("1B:", 99): "characters long",
	} {
		got, err := ParseBudget(text, 16384, 32)
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), says) ||
			!strings.HasPrefix(err.Error(), "policy: ") || got != (Spec{}) {
			t.Errorf("ParseBudget(%q) = %v, %v; the error should say %q", text, got, err, says)
		}
	}
	if _, err := ParseBudget("lru:1GiB", 0, 32); !errors.Is(err, ErrSpec) {
		t.Errorf("records of nothing: %v", err)
	}
}

// Nothing panics, what Parse reads is read the same, and what is accepted holds no more than its
// budget.
func FuzzParseBudget(f *testing.F) {
	for _, text := range []string{"", ":", "lru:1GiB", "hot:1MiB+2MiB", "window:5,capacity:1GiB",
		"pages:1GiB,ahead:128KiB", "lru:9+", "lru:1B:2B"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseBudget(text, 4096, 2)
		if plain, plainErr := Parse(text); plainErr == nil && (err != nil || got != plain) {
			t.Fatalf("ParseBudget(%q) = %v, %v; Parse says %v", text, got, err, plain)
		}
		if err == nil && got.Check() != nil {
			t.Fatalf("ParseBudget(%q) = %+v, which is not usable", text, got)
		}
	})
}
