package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/sim/sweep"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/parquet/parquettest"
)

const tinyScenario = `trace: {file: tiny.trace.arrow}
windows: [0, 2..5]
devices: [m1-max, ufs40-8gen3]
chunks: [none, 32KiB]
`

// A sweep of one configuration's neighbours says of it what sim says.
func TestSweepAgreesWithSim(t *testing.T) {
	workspace(t)
	write(t, "tiny.yaml", tinyScenario)
	out := must(t, "sweep", "tiny.yaml", "-o", "tiny.jsonl", "--csv", "tiny.csv", "--json")
	doc := resultOf[sweep.Summary](t, out)
	if doc.Configurations != 20 || len(doc.Best) != 2*3 {
		t.Errorf("%d configurations, %d of them shown", doc.Configurations, len(doc.Best))
	}
	f, err := os.Open("tiny.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fastest, compared := 0.0, false
	head, err := sweep.Read(f, func(r *sweep.Result) error {
		if r.Device != doc.Best[0].Device {
			return nil
		}
		fastest = max(fastest, r.TokensPerS)
		if r.Policy != "window:3" || r.Chunk == 0 {
			return nil
		}
		compared = true
		must(t, "sim", "-t", "tiny.trace.arrow", "-d", "m1-max", "--window", "3", "--chunk",
			"32KiB", "-o", "one.run.arrow")
		run, err := traces.ReadRun(t.Context(), "one.run.arrow")
		if err != nil {
			return err
		}
		want := run.Meta.Totals
		if r.Hits != want.Hits || r.Misses != want.Misses || r.Requests != want.Requests ||
			r.Bytes != want.Bytes || r.Evictions != want.Evictions {
			t.Errorf("%+v, sim says %+v", r, want)
		}
		if off := r.TokensPerS/want.TokensPerS - 1; off > 0.01 || off < -0.01 {
			t.Errorf("%.4g tokens/s, sim says %.4g", r.TokensPerS, want.TokensPerS)
		}
		return nil
	})
	if err != nil || !compared || head.TraceSHA256 == "" || len(head.Scenario.Models) != 2 {
		t.Errorf("header %+v, compared %v: %v", head, compared, err)
	}
	if doc.Best[0].TokensPerS != fastest {
		t.Errorf("the best makes %g tokens/s, the fastest %g", doc.Best[0].TokensPerS, fastest)
	}
	if again := must(t, "sweep", "tiny.yaml", "-o", "tiny.jsonl", "--resume",
		"--json"); again != out {
		t.Error("a whole sweep that is resumed says something else")
	}
}

// An interrupted sweep leaves no file that looks whole, and goes on where it was.
func TestSweepInterruptedAndResumed(t *testing.T) {
	workspace(t)
	write(t, "tiny.yaml", tinyScenario+"batches: [1, 2]\n")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := commandContext(ctx, &interrupter{word: "sweep (results on disk", cancel: cancel},
		"--progress", "always", "sweep", "tiny.yaml", "-o", "tiny.jsonl")
	if _, err := os.Stat("tiny.jsonl"); o.code != exitInterrupted || err == nil {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	must(t, "sweep", "tiny.yaml", "-o", "tiny.jsonl", "--workers", "1", "--parquet", "one.parquet")
	whole, err := os.ReadFile("tiny.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove("tiny.jsonl"); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	write(t, "tiny.jsonl.partial", strings.Join(lines[:7], "")+lines[7][:20])
	must(t, "sweep", "tiny.yaml", "-o", "tiny.jsonl", "--resume", "--workers", "2", "--parquet",
		"two.parquet")
	if again, err := os.ReadFile("tiny.jsonl"); err != nil || !bytes.Equal(again, whole) {
		t.Error("the resumed file is another than the uninterrupted one")
	}
	one, err1 := os.ReadFile("one.parquet")
	two, err2 := os.ReadFile("two.parquet")
	if err1 != nil || err2 != nil || !bytes.Equal(one, two) {
		t.Errorf("its Parquet table, too: %v, %v", err1, err2)
	}
}

func TestSweepRefuses(t *testing.T) {
	workspace(t)
	write(t, "tiny.yaml", tinyScenario)
	write(t, "left.jsonl.partial", "{}\n")
	for name, text := range map[string]string{
		"key.yaml":    tinyScenario + "depth: 4\n",
		"engine.yaml": tinyScenario + "engines: [uring]\n",
		"device.yaml": strings.Replace(tinyScenario, "m1-max", "m9-max", 1),
		"trace.yaml":  strings.Replace(tinyScenario, "tiny.trace", "no.trace", 1),
		"like.yaml":   "trace: {like: opt-6.8b, tokens: 3}\nwindows: 1\ndevices: [m1-max]\n",
		"masks.yaml": strings.Replace(tinyScenario, "tiny.trace", "tales.trace", 1) +
			"predicted: true\n",
		"size.yaml":  tinyScenario + "gaps: 0..4000\nparallel: 1..4096\n",
		"image.yaml": tinyScenario + "image: tales.flash.safetensors\n",
		"none.yaml":  tinyScenario + "image: no.flash.safetensors\n",
		"cut.yaml":   tinyScenario + "image: cut.flash.safetensors\n",
		"many.yaml":  tinyScenario + "batches: 1000\n",
		"odd.yaml":   strings.Replace(tinyScenario, "32KiB", "5000B", 1),
	} {
		write(t, name, text)
	}
	for _, c := range []struct {
		line string
		code int
		say  string
	}{
		{"sweep -o a.jsonl", exitUsage, "needs the scenario"},
		{"sweep tiny.yaml", exitUsage, "out"},
		{"sweep tiny.yaml -o a.json", exitUsage, ".jsonl"},
		{"sweep tiny.yaml -o a.jsonl --csv a.txt", exitUsage, ".csv"},
		{"sweep tiny.yaml -o a.jsonl --shard 3/2", exitUsage, "--shard"},
		{"sweep tiny.yaml -o a.jsonl --workers 0", exitUsage, "--workers"},
		{"sweep tiny.yaml -o left.jsonl", exitUsage, "--resume"},
		{"sweep tiny.yaml -o left.jsonl --resume", exitUsage, "left.jsonl.partial"},
		{"sweep no.yaml -o a.jsonl", exitInput, "no.yaml"},
		{"sweep image.yaml -o a.jsonl", exitUsage, "not of one model"},
		{"sweep none.yaml -o a.jsonl", exitInput, "no.flash.safetensors"},
		{"sweep cut.yaml -o a.jsonl", exitInput, "cut.flash.safetensors"},
		{"sweep many.yaml -o a.jsonl", exitUsage, "1000 lanes"},
		{"sweep tiny.yaml -o a.jsonl --parquet a.csv", exitUsage, ".parquet"},
		{"sweep folder -o a.jsonl", exitInput, "folder"},
		{"sweep key.yaml -o a.jsonl", exitInput, `key.yaml:5: scenario: unknown key "depth"`},
		{"sweep engine.yaml -o a.jsonl", exitInput, "engine.yaml: engines: uring"},
		{"sweep device.yaml -o a.jsonl", exitInput, "m9-max"},
		{"sweep trace.yaml -o a.jsonl", exitInput, "no.trace.arrow"},
		{"sweep like.yaml -o a.jsonl", exitInput, "opt-6.7b"},
		{"sweep masks.yaml -o a.jsonl", exitUsage, "no predicted masks"},
		{"sweep size.yaml -o a.jsonl", exitInput, "at most"},
		{"sweep odd.yaml -o a.jsonl", exitUsage, "chunk"},
		{"sim -t tiny.trace.arrow -d m1-max --policy lru:4 --window 3", exitUsage, "--policy"},
		{"sim -t tiny.trace.arrow -d m1-max --policy lri:4", exitUsage, "lru:CAPACITY"},
	} {
		o := command(strings.Fields(c.line)...)
		if o.code != c.code || o.stdout != "" || !strings.Contains(strings.ToLower(o.stderr),
			strings.ToLower(c.say)) {
			t.Errorf("%s: exit %d, %q; want %d and %q", c.line, o.code, o.stderr, c.code, c.say)
		}
	}
	for _, name := range names(t, ".") {
		if strings.HasPrefix(name, "a.") {
			t.Errorf("a refused command line left %s", name)
		}
	}
}

// Batches are those of the verb batch, tables hold what the lines do, and the layout can be an
// image's.
func TestSweepOfBatchesOnAnImage(t *testing.T) {
	workspace(t)
	write(t, "tales.yaml", `trace: {file: tales.trace.arrow}
image: tales.flash.safetensors
batches: [1, 3]
windows: 0
devices: m1-max
`)
	out := must(t, "sweep", "tales.yaml", "-o", "tales.jsonl", "--parquet", "tales.parquet",
		"--csv", "tales.csv")
	if !strings.Contains(out, "batch") {
		t.Errorf("no batch in the table:\n%s", out)
	}
	data, err := os.ReadFile("tales.parquet")
	if err != nil {
		t.Fatal(err)
	}
	table, err := parquettest.Read(data)
	if err != nil || len(table.Rows) != 2 {
		t.Fatalf("%+v: %v", table, err)
	}
	want := batchOf(t, "-t", "tales.trace.arrow", "-d", "m1-max", "--sizes", "1,3",
		"--window", "0")
	f, err := os.Open("tales.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head, err := sweep.Read(f, func(r *sweep.Result) error {
		row := &want.Times.Rows[r.Index]
		if r.Batch != row.Size || r.Tokens != row.Steps*row.Size || r.Hits != 0 {
			t.Errorf("%+v, batch says %+v", r, row)
		}
		// The image lies otherwise than units without one, so that requests may differ, but not
		// much.
		if off := float64(r.Parts[traces.PartIO].Nanos)/float64(r.Tokens)/float64(row.IO) -
			1; off > 0.05 || off < -0.05 {
			t.Errorf("a batch of %d: I/O off by %.3g %%", r.Batch, 100*off)
		}
		return nil
	})
	if err != nil || head.Scenario.Geometry == nil || head.Scenario.Geometry.Base[0] == 0 {
		t.Errorf("header %+v: %v", head, err)
	}
}
