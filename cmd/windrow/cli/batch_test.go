package cli

import (
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/sim/answers"
)

func batchOf(t *testing.T, args ...string) answers.BatchStudy {
	t.Helper()
	return resultOf[answers.BatchStudy](t, must(t, append([]string{"batch", "--json"}, args...)...))
}

func TestBatch(t *testing.T) {
	workspace(t)
	doc := batchOf(t, "-t", "tiny.trace.arrow", "-d", "m1-max", "--window", "0",
		"--no-coalesce")
	u, times := doc.Unions, doc.Times
	if len(u.Batches) != 2 || len(times.Rows) != 2 || u.Batches[1].Size != 2 || u.Tokens != 4 ||
		u.Layers != 2 || u.Mask != "true" {
		t.Fatalf("four generated tokens make batches of one and two: %+v", doc)
	}
	for i, b := range u.Batches {
		// Without a window and without joining, the simulator reads the union, unit by unit.
		row := times.Rows[i]
		if math.Abs(row.Bytes/b.Union().BytesPerToken-1) > 1e-9 ||
			math.Abs(row.Needed/b.Union().Share-1) > 1e-9 {
			t.Errorf("%+v is not the cost of %+v", row, b.Union())
		}
		if row.Requests*16384 != row.Bytes || row.Flash >= row.Hybrid {
			t.Errorf("%+v", row)
		}
		if e := row.FlashEstimate; e.Value != float64(row.Flash)/1e6 || e.Low == nil ||
			!(*e.Low < e.Value && e.Value < *e.High) {
			t.Errorf("%v is not within %+v", row.Flash, e)
		}
	}
	if len(u.Groups) != 0 || len(doc.Prompt) != 9 || doc.Prompt[0].Chunks != 6 ||
		doc.Prompt[3].Chunks != 0 {
		t.Errorf("groups %+v, chunks of prompts %+v", u.Groups, doc.Prompt)
	}
	predicted := batchOf(t, "-t", "tiny.trace.arrow", "-d", "m1-max", "--predicted", "--window",
		"0", "--sizes",
		"2,4", "--at-least", "2", "--window", "1")
	for i, row := range predicted.Times.Rows {
		kept := predicted.Unions.Batches[i].AtLeast[1]
		if (row.Warm == 0) != (row.Size == 4) { // one step of four, and a window to fill
			t.Errorf("%+v", row)
		}
		if !(kept.Dropped > 0 && kept.Dropped < 1 &&
			kept.Share < predicted.Unions.Batches[i].Union().Share) {
			t.Errorf("batches of %d: %+v", row.Size, kept)
		}
	}
	if predicted.Times.AtLeast != 2 || predicted.Unions.Mask != "predicted" {
		t.Errorf("%+v", predicted.Times)
	}
}

func TestBatchText(t *testing.T) {
	workspace(t)
	text := must(t, "batch", "-t", "tales.trace.arrow", "-d", "m1-max", "--sizes", "1,2,5",
		"--group", "--window", "0")
	saysAll(t, text,
		// Two prompts of six new tokens, of which five are fed back.
		"model: tales, true masks device: m1-max window: 0 steps batches: 5 evenly spaced places "+
			"of 2 sequences, 2 generated tokens from each",
		"against hybrid that keeps nothing: flash ", "Dropped is the share",
		"Grouped by the last step",
		"prompt tokens at once")
	text = must(t, "batch", "-t", "tiny.trace.arrow", "-d", "m1-max", "--sizes", "4", "--window",
		"3")
	saysAll(t, text, "n/a", "not known, no size has more steps than the window")
}

func TestBatchRefusals(t *testing.T) {
	workspace(t)
	for line, says := range map[string]string{
		"batch -t tiny.trace.arrow -d m1-max --sizes 2,1":       "must ascend",
		"batch -t tiny.trace.arrow -d m1-max --sizes 1,x":       `"x" is neither a number nor a range`,
		"batch -t tiny.trace.arrow -d m1-max --sizes 5":         "too few for steps of 5",
		"batch -t tiny.trace.arrow -d m1-max --sizes 3 --group": "too few for steps of 3",
		"batch -t tiny.trace.arrow -d m1-max --at-least 5": "--at-least 5: it is 1 " +
			"to 4",
		"batch -t tiny.trace.arrow -d m1-max --sizes 1,2 --at-least 2": "of 1 sequences, no " +
			"unit is needed by --at-least 2",
		"batch -t tiny.trace.arrow -d m1-max --window 9": "4 tokens are too few " +
			"for any batch",
		"batch -t tiny.trace.arrow -d m1-max --window -1": "--window -1",
		"batch -t tales.trace.arrow -d m1-max --predicted": "--predicted: tales.trace.arrow " +
			"holds no predicted masks",
		"batch -t tiny.trace.arrow -d abacus":             `device "abacus" is neither a file nor a preset`,
		"batch -t tiny.trace.arrow -d m1-max --io abacus": "--io abacus",
		"batch -t tiny.trace.arrow -d m1-max --window 0 --chunk 5000B": "chunk 4.88KiB is not a " +
			"multiple",
	} {
		if o := command(words(t, line)...); o.code != exitUsage || o.stdout != "" ||
			!strings.Contains(o.stderr, says) {
			t.Errorf("%s: exit %d, %q, want %q", line, o.code, o.stderr, says)
		}
	}
	if o := command("batch", "-t", "cut.trace.arrow", "-d", "m1-max"); o.code != exitInput {
		t.Errorf("a damaged trace: exit %d, %q", o.code, o.stderr)
	}
}
