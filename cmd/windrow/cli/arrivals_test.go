package cli

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// arrivalFiles puts the fixtures of traces/arrivals into a fresh working folder.
func arrivalFiles(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, name := range []string{"azure-2023.csv", "azure-2024.csv", "burstgpt.csv",
		"burstgpt-sessions.csv", "mooncake.jsonl", "bailian.jsonl", "vidur.csv",
		"sharegpt.json"} {
		linkFixture(t, "traces/arrivals/testdata/"+name, name)
	}
}

func TestTraceArrivalsJSON(t *testing.T) {
	arrivalFiles(t)
	linkExamples(t)
	keys := []string{"bad", "failed", "format", "ignored", "lines", "output_tokens", "peak_per_s",
		"prompt_tokens", "rate_per_s", "requests", "sessions", "single_token", "skipped", "span_ns"}
	for _, c := range []struct {
		args     string
		format   string
		requests float64
		span     any
	}{
		{"azure-2023.csv", "azure-2023", 3, 98_189_000.0},
		{"azure-2024.csv", "azure-2024", 5, 86_400_500_000_000.0},
		{"burstgpt.csv", "burstgpt", 3, 53_000_000_000.0},
		{"burstgpt-sessions.csv --sort", "burstgpt", 3, 20_000_000_000.0},
		{"burstgpt.csv --keep-failed", "burstgpt", 4, 53_000_000_000.0},
		{"mooncake.jsonl --arrivals-format mooncake", "mooncake", 3, 3_001_000_000.0},
		{"bailian.jsonl", "bailian", 3, 61_000_000_000.0},
		{"vidur.csv", "vidur", 3, 98_189_000.0},
		{"sharegpt.json --tokenizer examples/models/tales", "sharegpt", 3, nil},
	} {
		got := resultOf[map[string]any](t, must(t, words(t, "trace arrivals --json "+c.args)...))
		if !slices.Equal(slices.Sorted(maps.Keys(got)), keys) {
			t.Errorf("%s: keys %v", c.args, slices.Sorted(maps.Keys(got)))
		}
		if got["format"] != c.format || got["requests"] != c.requests || got["span_ns"] != c.span {
			t.Errorf("%s: %v", c.args, got)
		}
	}
}

func TestTraceArrivalsText(t *testing.T) {
	arrivalFiles(t)
	text := must(t, "trace", "arrivals", "azure-2024.csv")
	for _, want := range []string{"azure-2024", "86400 s", "2, which have no time per output token",
		"left out: no output tokens", "P99"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	write(t, "one.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n1,2,3\n")
	if text := must(t, "trace", "arrivals", "one.csv"); strings.Contains(text, "rate") {
		t.Errorf("one request has a rate:\n%s", text)
	}
}

// TestField_W7_CommandLine: bad lines are bad input, with their number and the flag that helps.
func TestField_W7_CommandLine(t *testing.T) {
	arrivalFiles(t)
	const head = "arrived_at,num_prefill_tokens,num_decode_tokens\n"
	write(t, "unsorted.csv", head+"2,1,1\n1,1,1\n")
	write(t, "bad.csv", head+"1,1,1\n1,1e3,1\n2,1,1\n3,NaN,1\n")
	write(t, "none.csv", "a,b\n")
	write(t, "half.jsonl", `{"timestamp": 0.5, "input_length": 2, "output_length": 3}`)
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"unsorted.csv", exitInput, []string{"unsorted.csv: line 3: unsorted", "--sort"}},
		{"unsorted.csv --sort", exitOK, nil},
		{"bad.csv", exitInput, []string{`bad.csv: line 3: num_prefill_tokens "1e3": exponent`,
			"--skip-bad"}},
		{"bad.csv --skip-bad 1", exitInput, []string{"bad.csv: line 5:", `"NaN": not a number`}},
		{"bad.csv --skip-bad 2", exitOK, nil},
		{"none.csv", exitInput, []string{"none.csv", "known trace", "--arrivals-format"}},
		{"half.jsonl", exitInput, []string{"milliseconds", "--arrivals-format"}},
		{"sharegpt.json", exitInput, []string{"sharegpt.json", "tokenizer"}},
		{"sharegpt.json --tokenizer none", exitInput, []string{"none"}},
		{"missing.csv", exitInput, []string{"missing.csv"}},
		{".", exitInput, []string{"is a folder"}},
		{"vidur.csv --arrivals-format vllm", exitUsage, []string{"vllm", "azure-2023"}},
		{"vidur.csv --arrivals-format mooncake", exitInput,
			[]string{"vidur.csv: line 1: not JSON"}},
		{"vidur.csv --skip-bad -1", exitUsage, []string{"skip-bad"}},
		{"", exitUsage, []string{"one file"}},
	} {
		o := command(words(t, "trace arrivals "+c.args)...)
		if o.code != c.code || (o.stdout != "") != (c.code == exitOK) {
			t.Errorf("%s: exit %d, want %d\n%s%s", c.args, o.code, c.code, o.stdout, o.stderr)
		}
		for _, want := range c.says {
			if !strings.Contains(o.stderr, want) {
				t.Errorf("%s: no %q in %s", c.args, want, o.stderr)
			}
		}
	}
}
