package model

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// TestAbsurdNumbersOfConfigs replaces each number of every family's config.json by absurd ones. It
// is refused by name, or the architecture keeps the bounds that everything made from it relies on.
func TestAbsurdNumbersOfConfigs(t *testing.T) {
	paths, err := filepath.Glob("../testdata/families/*/config.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no configurations: %v", err)
	}
	refused, accepted := 0, 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		for name, value := range fields {
			if _, isNumber := value.(float64); !isNumber {
				continue
			}
			for _, absurd := range []string{"0", "-1", "1.5", "1e308", "65537", "10000000",
				"9223372036854775807", "18446744073709551616"} {
				fields[name] = json.RawMessage(absurd)
				changed, err := json.Marshal(fields)
				if err != nil {
					t.Fatal(err)
				}
				o, err := checkpoint.ParseObject(changed)
				if err != nil {
					t.Fatal(err)
				}
				c, err := ParseConfig(o)
				if err == nil {
					accepted++
					if s := c.Arch.Shape; s.Layers > maxLayers || s.Vocab > maxTable ||
						s.MaxPos > maxTable || max(s.DModel, s.DFFN, s.Heads*s.HeadDim) > maxDim {
						t.Errorf("%s: %s = %s: accepted as %+v", path, name, absurd, s)
					}
					continue
				}
				refused++
				if !strings.Contains(err.Error(), "config.json") || !errors.Is(err,
					checkpoint.ErrFormat) && !errors.Is(err, checkpoint.ErrUnsupported) {
					t.Errorf("%s: %s = %s: %v", path, name, absurd, err)
				}
			}
			fields[name] = value
		}
	}
	if refused < 1000 || accepted < 100 {
		t.Errorf("%d refused, %d accepted", refused, accepted)
	}
}
