package cli

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/traces"
)

// TestRecordFeatures: the recorded features are in the file, and what is said of them is so.
func TestRecordFeatures(t *testing.T) {
	workspace(t)
	record := []string{"record", "-m", "tales.flash.safetensors", "--prompts", "words.txt", "-n",
		"5", "--features"}
	o := command(append(record, "-o", "learn.trace.arrow")...)
	if o.code != exitOK {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	rep, err := traces.CheckFile(t.Context(), "learn.trace.arrow")
	if err != nil {
		t.Fatal(err)
	}
	h := &rep.Header
	if h.FeatureKind != traces.FFNInput || h.FeatureWidth != h.Shape.DModel ||
		rep.Feature != int64(rep.Rows*h.FeatureWidth) || rep.NotFinite != 0 || rep.Feature == 0 ||
		h.HasMagnitude {
		t.Errorf("%d numbers of features in %d rows, header %+v", rep.Feature, rep.Rows, h)
	}
	if !strings.Contains(o.stderr, "features take ") || strings.Contains(o.stderr, "magnitudes") ||
		strings.Contains(o.stderr, "hold back") {
		t.Errorf("said of the size: %s", o.stderr)
	}
	info := strings.Join(strings.Fields(must(t, "trace", "info", "learn.trace.arrow")), " ")
	if !strings.Contains(info, fmt.Sprintf("features ffn_input, %d numbers (float16) per layer",
		h.Shape.DModel)) || strings.Contains(info, "prompts per batch") {
		t.Errorf("trace info says %s", info)
	}
	both := command(append(record, "--magnitudes", "--compress", "zstd", "--quiet", "-o",
		"both.trace.arrow")...)
	if both.code != exitOK || both.stderr != "" {
		t.Fatalf("exit %d: %s", both.code, both.stderr)
	}
	with, err := traces.CheckFile(t.Context(), "both.trace.arrow")
	if err != nil || with.Feature != rep.Feature || with.Magnitude != rep.Active ||
		with.Active != rep.Active {
		t.Errorf("with magnitudes: %d numbers of features, %d magnitudes for %d active units, %v",
			with.Feature, with.Magnitude, rep.Active, err)
	}
	// an answer that needs masks only takes the trace as any other
	must(t, "sim", "--trace", "learn.trace.arrow", "-d", "m1-max")
	thin := must(t, "trace", "whatif", "learn.trace.arrow", "--share", "2%", "-o",
		"thin.trace.arrow")
	if changed, err := traces.CheckFile(t.Context(), "thin.trace.arrow"); err != nil ||
		changed.Feature != rep.Feature {
		t.Errorf("a thinner trace has %d numbers of features, %v\n%s", changed.Feature, err, thin)
	}
	must(t, "trace", "merge", "learn.trace.arrow", "learn.trace.arrow", "-o", "twice.trace.arrow")
	if twice, err := traces.CheckFile(t.Context(), "twice.trace.arrow"); err != nil ||
		twice.Feature != 2*rep.Feature {
		t.Errorf("a merged trace has %d numbers of features, %v", twice.Feature, err)
	}
}

// TestField_T4_NoBOS: --no-bos drops the token that begins texts, and the trace says so; a text of
// nothing else is refused.
func TestField_T4_NoBOS(t *testing.T) {
	workspace(t)
	args := []string{"record", "-m", "tales.flash.safetensors", "--prompts",
		"examples/prompts/tales.txt", "--limit", "2", "-n", "1", "--features", "--magnitudes", "-o",
		"x.trace.arrow"}
	must(t, args...)
	whole, head := readTokens(t, "x.trace.arrow")
	if head.Host[record.HostBare] != "" || whole[0].Pos != 0 {
		t.Fatalf("host %v, first token %+v", head.Host, whole[0])
	}
	must(t, append(args, "--no-bos", "--force")...)
	bare, head := readTokens(t, "x.trace.arrow")
	if head.Host[record.HostBare] != "true" || len(bare) != len(whole)-2 ||
		bare[0].ID != whole[1].ID ||
		bare[0].ID == whole[0].ID {
		t.Errorf("host %v, %d tokens that begin with %d; with their beginning %d: %d, %d",
			head.Host, len(bare), bare[0].ID, len(whole), whole[0].ID, whole[1].ID)
	}
	if info := must(t, "trace", "info", "x.trace.arrow"); !strings.Contains(info, "--no-bos") {
		t.Errorf("trace info does not say it: %s", info)
	}
	if o := command("generate", "-m", "tales.flash.safetensors", "--no-bos", "-n", "1",
		""); o.code != exitUsage || !strings.Contains(o.stderr, "no tokens") {
		t.Errorf("an empty text: exit %d, %s", o.code, o.stderr)
	}
}

// TestRecordBatches: prompts side by side and in chunks give the rows that single prompts give, and
// the trace says how it was made.
func TestRecordBatches(t *testing.T) {
	workspace(t)
	recorded := func(out string, more ...string) outcome {
		o := command(append([]string{"record", "-m", "tales.flash.safetensors", "--prompts",
			"examples/prompts/tales.txt", "--limit", "5", "-n", "6",
			"--temp", "0.7", "--magnitudes", "--features", "--force", "-o", out}, more...)...)
		if o.code != exitOK {
			t.Fatalf("%v: exit %d: %s", more, o.code, o.stderr)
		}
		return o
	}
	single := recorded("single.trace.arrow")
	want, wantHead := readTokens(t, "single.trace.arrow")
	if len(want) < 5*6 || wantHead.Host[record.HostBatch] != "" ||
		wantHead.Host[record.HostChunk] != "" {
		t.Fatalf("%d tokens, host %v", len(want), wantHead.Host)
	}
	for _, c := range []struct{ batch, chunk, batchFact, chunkFact string }{{"2", "1", "2", ""},
		{"3", "4", "3", "4"}, {"64", "1", "5", ""}, {"1", "8", "", "8"}} {
		o := recorded("batch.trace.arrow", "--batch", c.batch, "--prefill-chunk", c.chunk)
		if single, side := strings.Fields(single.stdout)[1:],
			strings.Fields(o.stdout)[1:]; !slices.Equal(single, side) {
			t.Errorf("batch %s: printed %v, single prompts %v", c.batch, side, single)
		}
		if says := strings.Contains(o.stderr, "batches hold back up to"); says != (c.batch != "1") {
			t.Errorf("batch %s: said of the memory: %s", c.batch, o.stderr)
		}
		got, head := readTokens(t, "batch.trace.arrow")
		if head.Host[record.HostBatch] != c.batchFact ||
			head.Host[record.HostChunk] != c.chunkFact {
			t.Errorf("batch %s, chunks of %s: host %v", c.batch, c.chunk, head.Host)
		}
		head.Host = wantHead.Host
		if !reflect.DeepEqual(head, wantHead) {
			t.Errorf("batch %s: header %+v, single prompts %+v", c.batch, head, wantHead)
		}
		if len(got) != len(want) {
			t.Fatalf("batch %s: %d tokens, single prompts %d", c.batch, len(got), len(want))
		}
		for i := range got {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("batch %s, chunks of %s: token %d (sequence %d, position %d) differs",
					c.batch, c.chunk, i, got[i].Seq, got[i].Pos)
			}
		}
	}
	if info := strings.Join(strings.Fields(must(t, "trace", "info", "batch.trace.arrow")),
		" "); !strings.Contains(info, "prefill chunk 8") {
		t.Errorf("trace info says %s", info)
	}
}

// readTokens returns copies of all tokens of a trace, and its header.
func readTokens(t *testing.T, path string) ([]traces.Token, traces.Header) {
	t.Helper()
	r, err := traces.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var list []traces.Token
	for i := range r.Tokens() {
		var tok traces.Token
		if err := r.Token(i, &tok); err != nil {
			t.Fatal(err)
		}
		for l := range tok.Active {
			tok.Active[l], tok.Magnitude[l], tok.Feature[l] = slices.Clone(tok.Active[l]),
				slices.Clone(tok.Magnitude[l]), slices.Clone(tok.Feature[l])
		}
		list = append(list, tok)
	}
	return list, *r.Header()
}

func TestRecordRefusesBatches(t *testing.T) {
	workspace(t)
	for want, more := range map[string][]string{
		"--batch 0":                       {"--batch", "0"},
		"--prefill-chunk -3":              {"--prefill-chunk", "-3"},
		"--prefill-chunk 5000: 1 to 4096": {"--prefill-chunk", "5000"},
	} {
		o := command(append([]string{"record", "-m", "tales.flash.safetensors", "--prompts",
			"words.txt", "-n", "2", "-o", "x.trace.arrow"}, more...)...)
		if o.code != exitUsage || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: exit %d: %s", more, o.code, o.stderr)
		}
	}
	if _, err := os.Stat("x.trace.arrow"); err == nil {
		t.Error("a refused recording left a trace")
	}
}
