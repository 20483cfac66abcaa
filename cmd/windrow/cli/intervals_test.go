package cli

import (
	"strings"
	"testing"
)

// TestPredictionsKeepTheirIntervals: a bound stays a bound in every format, and an interval has
// both ends, for verbs whose prediction is only a part of their result.
func TestPredictionsKeepTheirIntervals(t *testing.T) {
	trainWorkspace(t)
	must(t, "train", "-t", "learn.trace.arrow", "--rank", "2", "--epochs", "1", "-o",
		"a.predictor.safetensors")
	// Cells of text may be wrapped: their words are looked for, not their sentences.
	says := map[string][2]string{"text": {"bound", " to "}, "md": {"| bound |", " to "},
		"csv": {",bound,", " to "}, "html": {">bound<", " to "},
		"json": {`"bound": true`, `"low": `}}
	for _, line := range []string{
		"eval -m tales.flash.safetensors --text words.txt --max-tokens 6 --context 6 -d ",
		"train -t judge.trace.arrow --evaluate a.predictor.safetensors --device ",
	} {
		for format, want := range says {
			bound := must(t, words(t, line+"samsung-860pro-sata --format "+format)...)
			if !strings.Contains(bound, want[0]) {
				t.Errorf("%s in %s: no bound in\n%s", line, format, bound)
			}
			interval := must(t, words(t, line+"m1-max --format "+format)...)
			if strings.Contains(interval, want[0]) || !strings.Contains(interval, want[1]) {
				t.Errorf("%s in %s: no interval in\n%s", line, format, interval)
			}
		}
	}
	for format := range says {
		part := must(t, words(t, "device energy tiny.run.arrow --format "+format)...)
		if !strings.Contains(part, "lower bound") && !strings.Contains(part, "known parts") &&
			!strings.Contains(part, `"total_is_lower_bound": true`) {
			t.Errorf("device energy in %s: no lower bound in\n%s", format, part)
		}
	}
}
