package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/replay"
)

// TestCalibrate measures the prefixes of the shipped model under a budget: the memory they need
// grows layer by layer, the first that does not fit ends the table, and d* is the fastest.
func TestCalibrate(t *testing.T) {
	workspace(t)
	const base = "calibrate --trace tales.trace.arrow -m tales.flash.safetensors --io mem " +
		"--measure-tokens 4"
	doc := resultOf[replay.Prefixes](t, must(t,
		strings.Fields(base+" --dram 95% -o prefix.json --json")...))
	best := 0.0
	for i, r := range doc.Rows {
		if r.Dense != i+1 || i > 0 && r.Memory <= doc.Rows[i-1].Memory {
			t.Errorf("row %d: %d dense layers in %v", i, r.Dense, r.Memory)
		}
		if last := i == len(doc.Rows)-1; r.Fits == last || r.Fits != (r.Memory <= doc.Budget) ||
			r.Fits != (r.TokensPerS > 0) {
			t.Errorf("row %d of %d: fits %v, %v of %v, %.3g tokens/s", i, len(doc.Rows), r.Fits,
				r.Memory, doc.Budget, r.TokensPerS)
		}
		best = max(best, r.TokensPerS)
	}
	if len(doc.Rows) < 3 || doc.Rows[doc.Best-1].TokensPerS != best {
		t.Errorf("d* = %d of %d rows", doc.Best, len(doc.Rows))
	}
	data, err := os.ReadFile("prefix.json")
	if err != nil {
		t.Fatal(err)
	}
	var kept replay.Prefixes
	if err := json.Unmarshal(data, &kept); err != nil || kept.Best != doc.Best {
		t.Errorf("the file says %d, %v", kept.Best, err)
	}
	if got := command(strings.Fields(base + " --dram 40%")...); got.code != exitUsage ||
		!strings.Contains(got.stderr, "not even one") {
		t.Errorf("too little memory: exit %d, %s", got.code, got.stderr)
	}
}
