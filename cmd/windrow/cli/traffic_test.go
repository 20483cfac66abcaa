package cli

import (
	"context"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/serving"
	"github.com/windrow-sim/windrow/traces"
)

func trafficOf(t *testing.T, args ...string) serving.Study {
	t.Helper()
	return resultOf[serving.Study](t, must(t, append([]string{"traffic", "--json", "-t",
		"tiny.trace.arrow", "-d", "m1-max"}, args...)...))
}

func TestTraffic(t *testing.T) {
	workspace(t)
	linkFixture(t, "traces/arrivals/testdata/azure-2024.csv", "azure.csv")
	doc := trafficOf(t, "--arrivals", "azure.csv", "--predicted", "--compute", "once", "--slo-ttft",
		"0s", "--slo-tpot", "1h")
	r := doc.Result
	// Five of the six requests ask for output tokens, two of them for one (W2 of the field cases).
	if r.Arrived != 5 || r.Completed != 5 || r.Single != 2 || r.TPOT.Count != 3 ||
		r.TTFT.Count != 5 || r.Input != 1200+64+2000+31+511 || r.Output != 40+1+7+1+25 {
		t.Errorf("%+v", r)
	}
	if doc.Load.Format != "azure-2024" || doc.Load.Requests != 5 || doc.Load.Times != "file" ||
		doc.Server.Mask != "predicted" || r.Attainment != 1 {
		t.Errorf("%+v", doc)
	}
	if r.Basis != traces.Bound || r.Compute != serving.Once || r.Bytes == 0 ||
		len(r.Warnings) == 0 {
		t.Errorf("%+v", r)
	}
	// The sixth failed: its prompt is work, and it has no latency.
	if kept := trafficOf(t, "--arrivals", "azure.csv", "--keep-failed", "--compute",
		"once").Result; kept.Failed != 1 || kept.Arrived != 6 || kept.Completed != 5 ||
		kept.Input <= r.Input || kept.TTFT.Count != 5 || kept.Output != r.Output {
		t.Errorf("%+v", kept)
	}
	// A day passes in the file and a hundredth of it at a hundred times its speed.
	if fast := trafficOf(t, "--arrivals", "azure.csv", "--speedup", "100", "--compute",
		"once"); fast.Result.Duration > r.Duration/50 || fast.Result.Input != r.Input {
		t.Errorf("%v at full speed, %v at a hundred times that", r.Duration, fast.Result.Duration)
	}
	if few := trafficOf(t, "--arrivals", "azure.csv", "--requests", "2", "--rate",
		"inf"); few.Result.Arrived != 2 || few.Load.Times != serving.TimesAtOnce {
		t.Errorf("%+v", few)
	}
	// Of a context of 2,048 positions the longest prompt leaves too little room for its output.
	random := []string{"--rate", "5", "--requests", "30", "--prompt-tokens", "1500",
		"--output-tokens", "4", "--length-spread", "0.5", "--gflops", "1000"}
	a := trafficOf(t, random...).Result
	if a.Unfinished.TooLong == 0 || a.Completed+a.Unfinished.TooLong != 30 ||
		a.Compute != serving.Peak {
		t.Errorf("%+v", a)
	}
	if o := trafficOf(t, append(random, "--deadline",
		"2s")...).Result; o.Stopped != serving.Deadline ||
		o.Completed+o.Unfinished.Total() != o.Arrived || o.Completed >= a.Completed {
		t.Errorf("%+v", o)
	}
	if o := trafficOf(t, append(random, "--kv-memory",
		"100MiB")...).Result; o.PeakKV > 100*units.MiB || o.PeakBatch >= a.PeakBatch {
		t.Errorf("%+v", o)
	}
}

func TestTrafficText(t *testing.T) {
	workspace(t)
	line := []string{"traffic", "-t", "tiny.trace.arrow", "-d", "m1-max", "--rate", "1800/h",
		"--requests", "8", "--prompt-tokens", "20", "--output-tokens", "5"}
	text := must(t, line...)
	saysAll(t, text, "at least ", "requests/s (bound) meet TTFT ≤ 2s and TPOT ≤ 200ms",
		"true masks", "server: policy window:5; up to 16 sequences, 256 prompt tokens per step",
		"load: 8 requests of 20 prompt and 5 output tokens, Poisson arrivals, 0.500/s (1800/h) on "+
			"average", "P99 (ms)", "queueing", "≤ ", "Basis: bound", "every token is computed "+
			"alone")
	rows, err := csv.NewReader(strings.NewReader(must(t, append(line, "--format",
		"csv")...))).ReadAll()
	if err != nil || len(rows) != 2 || rows[0][0] != "model" ||
		rows[0][len(rows[0])-1] != "basis" || rows[1][3] != "8" {
		t.Errorf("%v: %v", err, rows)
	}
}

func TestTrafficFindsARate(t *testing.T) {
	workspace(t)
	line := []string{"-t", "tiny.trace.arrow", "-d", "m1-max", "--find-rate", "--requests", "30",
		"--prompt-tokens", "20", "--output-tokens", "5", "--slo-ttft", "1s"}
	doc := trafficOf(t, line[4:]...)
	if a := doc.Rate; doc.Result != nil || a.PerSecond == nil || *a.PerSecond <= 0 ||
		a.At.Attainment < 0.9 || len(a.Tried) < 5 {
		t.Fatalf("%+v", doc.Rate)
	}
	saysAll(t, must(t, append([]string{"traffic"}, line...)...),
		"largest rate at which 90.0 % of the "+
			"requests have TTFT ≤ 1s and TPOT ≤ 200ms: at least ", "(bound)", "all at once")
	never := command(append([]string{"traffic", "--slo-tpot", "1us"}, line...)...)
	if never.code != exitValidation || !strings.Contains(never.stderr,
		"there is no rate at which") {
		t.Errorf("exit %d: %s", never.code, never.stderr)
	}
	saysAll(t, never.stdout, "verdict: there is no rate at which")
	always := must(t, append([]string{"traffic", "--slo-tpot", "1h"},
		append(line[:len(line)-1:len(line)-1], "1h")...)...)
	saysAll(t, always, "even when all come at once")
	if table := must(t, append([]string{"traffic", "--format", "csv"},
		line...)...); !strings.HasPrefix(table,
		"requests_per_s,requests_per_h,good_at_most_percent,meets,basis\n") {
		t.Errorf("%s", table)
	}
}

// What an interrupted run has served by then is printed.
func TestTrafficInterrupted(t *testing.T) {
	workspace(t)
	for name, flags := range map[string][]string{"run": {"--rate", "inf"},
		"search": {"--find-rate"}} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		o := commandContext(ctx, &interrupter{word: "(requests)", cancel: cancel},
			append([]string{"--progress", "always", "traffic", "-t", "tiny.trace.arrow", "-d",
				"m1-max"}, flags...)...)
		if o.code != exitInterrupted || !strings.Contains(o.stderr,
			"windrow: interrupted: serving: ") || !strings.Contains(o.stdout, "interrupted") {
			t.Errorf("%s: exit %d\n%s%s", name, o.code, o.stdout, o.stderr)
		}
	}
}

func TestTrafficRefusals(t *testing.T) {
	workspace(t)
	linkFixture(t, "traces/arrivals/testdata/azure-2024.csv", "azure.csv")
	linkFixture(t, "traces/arrivals/testdata/sharegpt.json", "chats.json")
	write(t, "bad.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n1,2,3\n0,2,3\n")
	write(t, "none.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n1,2,0\n")
	for line, says := range map[string]string{
		"": "traffic needs --arrivals " +
			"FILE, --rate R or --find-rate",
		"--rate 0":                           `--rate "0": a number of requests above 0`,
		"--rate 1 --format xml":              `--format "xml"`,
		"--rate 1 --requests 0":              "--requests 0",
		"--rate 1 --prompt-tokens 0":         "0 prompt and 128 output tokens",
		"--rate 1 --length-spread -1":        "--length-spread -1",
		"--rate 1 --max-batch 0":             "batches of 0 sequences",
		"--rate 1 --prefill-chunk 0":         "0 prompt tokens in a step",
		"--rate 1 --slo-ttft soon":           `--slo-ttft "soon"`,
		"--rate 1 --deadline 0s":             "--deadline 0s",
		"--rate 1 --kv-memory much":          `--kv-memory "much"`,
		"--rate 1 --gflops 0":                "--gflops 0",
		"--rate 1 --compute peak":            "the device states none",
		"--rate 1 --compute hand":            `compute "hand"`,
		"--rate 1 --policy belady:9":         "the policy belady:9",
		"--rate 1 --policy lru:9 --window 2": "--policy lru:9 and --window 2",
		"--rate 1 --slo-share 0.5":           "--slo-share is about --find-rate",
		"--rate 1 --sort":                    "--sort is about a file",
		"--rate 1 --find-rate":               "--find-rate searches the rate",
		"--find-rate --slo-share 0":          "a share of 0",
		"--find-rate --slo-ttft 0s --slo-tpot 0s": "an objective and no " +
			"deadline are needed",
		"--rate 1 --requests 3 --speedup 2": "--speedup is about the " +
			"times of a file",
		"--arrivals azure.csv --speedup 0": "--speedup 0",
		"--arrivals azure.csv --prompt-tokens 3": "--prompt-tokens: the " +
			"lengths are those of --arrivals azure.csv",
		"--arrivals azure.csv --arrivals-format x":                "--arrivals-format",
		"--arrivals chats.json --tokenizer examples/models/tales": "has no times; give --rate R",
	} {
		if o := command(words(t,
			"traffic -t tiny.trace.arrow -d m1-max "+line)...); o.code != exitUsage ||
			o.stdout != "" || !strings.Contains(o.stderr, says) {
			t.Errorf("%s: exit %d, %q, want %q", line, o.code, o.stderr, says)
		}
	}
	for line, says := range map[string]string{
		"--arrivals bad.csv":    "--sort sorts the requests by time",
		"--arrivals none.csv":   "none.csv holds no requests",
		"--arrivals absent.csv": "absent.csv",
		"--arrivals words.txt":  "words.txt",
	} {
		if o := command(words(t,
			"traffic -t tiny.trace.arrow -d m1-max "+line)...); o.code != exitInput ||
			o.stdout != "" || !strings.Contains(o.stderr, says) {
			t.Errorf("%s: exit %d, %q, want %q", line, o.code, o.stderr, says)
		}
	}
	if o := command("traffic", "-t", "tales.trace.arrow", "-d", "m1-max", "--rate", "1",
		"--predicted"); o.code != exitUsage || !strings.Contains(o.stderr,
		"holds no predicted masks") {
		t.Errorf("exit %d, %q", o.code, o.stderr)
	}
}
