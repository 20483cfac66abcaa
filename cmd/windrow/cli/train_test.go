package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/record/training"
)

// recorded makes two recordings once, and returns their files: 290 tokens to learn from, 130 to
// judge by.
var recorded = sync.OnceValues(func() (map[string]string, error) {
	from, err := made()
	if err != nil {
		return nil, err
	}
	root, err := repository()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "windrow-train-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, how := range map[string][]string{"learn": {"tales.txt", "4", "50"},
		"judge": {"scenes.txt", "3", "8"}} {
		o := command("record", "-m", filepath.Join(from, "tales.flash.safetensors"), "--prompts",
			filepath.Join(root, "examples/prompts", how[0]), "--limit", how[1], "-n", how[2],
			"--batch", "4", "--features", "--magnitudes", "-o", filepath.Join(dir,
				name+".trace.arrow"))
		if o.code != exitOK {
			return nil, fmt.Errorf("record %s: exit %d: %s", name, o.code, o.stderr)
		}
	}
	files := map[string]string{}
	for _, name := range []string{"learn.trace.arrow", "learn.trace.json", "judge.trace.arrow",
		"judge.trace.json"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files[name] = string(data)
	}
	return files, nil
})

// trainWorkspace is a workspace with the recordings learn.trace.arrow and judge.trace.arrow.
func trainWorkspace(t *testing.T) {
	t.Helper()
	files, err := recorded()
	if err != nil {
		t.Fatal(err)
	}
	workspace(t)
	for name, text := range files {
		write(t, name, text)
	}
}

// trained runs train with --json.
func trained(t *testing.T, args ...string) (*training.LowRankResult, string) {
	t.Helper()
	text := must(t, append([]string{"train", "--json"}, args...)...)
	doc := resultOf[training.LowRankResult](t, text)
	return &doc, text
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTrainLowRank: a small training on few tokens is far from chance, the same every time, and
// judged alike later.
func TestTrainLowRank(t *testing.T) {
	trainWorkspace(t)
	train := []string{"-t", "learn.trace.arrow", "--test", "judge.trace.arrow", "--rank", "16",
		"--epochs", "16", "--target-fn", "25%", "--force", "-o", "a.predictor.safetensors"}
	doc, text := trained(t, append(train, "--workers", "2")...)
	first := content(t, "a.predictor.safetensors")
	if _, again := trained(t, append(train, "--workers", "1")...); again != text ||
		!bytes.Equal(content(t, "a.predictor.safetensors"), first) {
		t.Error("another number of workers gives another result")
	}
	if len(doc.Texts) != 2 || len(doc.Texts[0].Layers) != 6 || doc.ModelSHA256 == "" ||
		doc.TraceSHA256 == "" || doc.Feature != predictor.FFNInput {
		t.Fatalf("%s", text)
	}
	if held := doc.Texts[0].Total; held.FalseNegative > 0.25 ||
		doc.HeldOut != int(doc.Texts[0].Tokens) || doc.Trained+doc.HeldOut < 250 {
		t.Errorf("held out: FN %v of %d tokens, trained on %d", held.FalseNegative, doc.HeldOut,
			doc.Trained)
	}
	for _, r := range doc.Texts[1].Layers {
		// Without knowledge the shares of active and of inactive units that are predicted are the
		// same, and FN + FP is 1.
		if r.FalseNegative+r.FalsePositive > 0.9 || r.Rank != 16 || r.Weights != 2*16*(256+1024) ||
			r.FLOPs != 2*16*(256+1024) {
			t.Errorf("layer %d: FN %.3f, FP %.3f, rank %d, %v, %d FLOP", r.Layer, r.FalseNegative,
				r.FalsePositive, r.Rank, r.Weights, r.FLOPs)
		}
		if r.Recalled != 1-r.FalseNegative || r.Ratio <= 0 || r.LostShare <= 0 ||
			r.LostShare >= r.FalseNegative {
			t.Errorf("layer %d: recall %v, ratio %v, lost %v of magnitude, %v of units", r.Layer,
				r.Recalled, r.Ratio, r.LostShare, r.FalseNegative)
		}
	}
	if all := doc.Texts[1].Total; all.FalseNegative+all.FalsePositive > 0.75 {
		t.Errorf("all layers: FN %.3f, FP %.3f", all.FalseNegative, all.FalsePositive)
	}
	judged, _ := trained(t, "-t", "judge.trace.arrow", "--evaluate", "a.predictor.safetensors")
	if len(judged.Texts) != 1 || !reflect.DeepEqual(judged.Texts[0], doc.Texts[1]) {
		t.Errorf("judged later: %+v, at once %+v", judged.Texts, doc.Texts[1])
	}
	if left := names(t, "."); slices.ContainsFunc(left, func(n string) bool {
		return strings.Contains(n, "partial")
	}) {
		t.Errorf("a finished training left %v", left)
	}
	table := must(t, "train", "-t", "judge.trace.arrow", "--evaluate", "a.predictor.safetensors")
	saysAll(t, table, "names its own units from ffn_input", "judge.trace.arrow, ",
		"rank 16 was asked for; a goal for FP raises it", "the threshold was to allow 25.0 %")
	if o := command("train", "-t", "learn.trace.arrow", "--evaluate",
		"a.predictor.safetensors"); !strings.Contains(o.stderr, "was trained on this trace") {
		t.Errorf("judged by its own text: %s", o.stderr)
	}
}

// TestTrainRanks: ranks rise until few inactive units are predicted.
func TestTrainRanks(t *testing.T) {
	trainWorkspace(t)
	train := []string{"-t", "learn.trace.arrow", "--epochs", "3", "--rank", "2", "--force", "-o",
		"a.predictor.safetensors"}
	fixed, _ := trained(t, train...)
	raised, _ := trained(t, append(train, "--goal-fp", "75%")...)
	grew := false
	for l, r := range raised.Texts[0].Layers {
		grew = grew || r.Rank > 2
		if fixed.Texts[0].Layers[l].Rank != 2 || r.Rank < 256 && r.FalsePositive > 0.75 {
			t.Errorf("layer %d: rank %d with FP %v", l, r.Rank, r.FalsePositive)
		}
	}
	if !grew {
		t.Error("no rank was raised")
	}
}

// TestTrainAhead: entry l of the file names the units of layer l+1 from the input of layer l, and
// the report numbers the layers by their units.
func TestTrainAhead(t *testing.T) {
	trainWorkspace(t)
	doc, _ := trained(t, "-t", "learn.trace.arrow", "--test", "judge.trace.arrow", "--ahead",
		"--rank", "4", "--epochs", "2", "-o", "a.predictor.safetensors")
	p, err := predictor.Load(t.Context(), "a.predictor.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if p.Layers() != 6 || p.Rank(5) != 0 || p.Rank(0) != 4 ||
		p.Facts().Feature != predictor.FFNInput.ForNextLayer() || !doc.Ahead {
		t.Fatalf("%d layers, ranks %d … %d, %+v", p.Layers(), p.Rank(0), p.Rank(5), p.Facts())
	}
	rows := doc.Texts[1].Layers
	if len(rows) != 5 || rows[0].Layer != 1 || rows[4].Layer != 5 {
		t.Fatalf("%+v", rows)
	}
	tokens, _ := readTokens(t, "judge.trace.arrow")
	run, feature, mask := p.Runner(nil), make([]float32, p.Width()), make([]uint64, 1024/64)
	for entry := range 5 {
		missed := 0
		for i := range tokens {
			record.Widen(tokens[i].Feature[entry], feature)
			if err := run.Predict(entry, feature, mask); err != nil {
				t.Fatal(err)
			}
			for w, active := range tokens[i].Active[entry+1] {
				for u := range 64 {
					missed += int((active &^ mask[w]) >> u & 1)
				}
			}
		}
		if int64(missed) != rows[entry].Missed {
			t.Errorf("entry %d misses %d units of the layer after it, reported are %d", entry,
				missed, rows[entry].Missed)
		}
	}
	judged, _ := trained(t, "-t", "judge.trace.arrow", "--evaluate", "a.predictor.safetensors")
	if !reflect.DeepEqual(judged.Texts[0], doc.Texts[1]) {
		t.Error("judged later it is another")
	}
}

// TestTrainCost: the more an active unit is worth, the fewer are missed.
func TestTrainCost(t *testing.T) {
	trainWorkspace(t)
	last := 1.0
	for _, worth := range []string{"1", "10", "1000"} {
		doc, _ := trained(t, "-t", "learn.trace.arrow", "--rank", "4", "--epochs", "2", "-d",
			"m1-max", "--worth", worth, "--force", "-o", "a.predictor.safetensors")
		if fn := doc.Texts[0].Total.FalseNegative; fn >= last {
			t.Errorf("worth %s: FN %v, before %v", worth, fn, last)
		} else {
			last = fn
		}
		if c := doc.Settings.Cost; c == nil || c.FalsePositive < 1 ||
			fmt.Sprint(int64(c.FalseNegative/c.FalsePositive)) != worth {
			t.Errorf("worth %s: cost %+v", worth, c)
		}
	}
}

// TestTrainCentroids: the sets are better than any others of their size, the same every time, and
// judged alike later.
func TestTrainCentroids(t *testing.T) {
	trainWorkspace(t)
	train := []string{"train", "-t", "learn.trace.arrow", "--test", "judge.trace.arrow", "--kind",
		"centroid", "--centroids", "12", "--k-max", "100", "--epochs", "6", "--force", "-o",
		"a.predictor.safetensors", "--json"}
	text := must(t, append(train, "--workers", "2")...)
	first := content(t, "a.predictor.safetensors")
	if must(t, append(train, "--workers", "1")...) != text ||
		!bytes.Equal(content(t, "a.predictor.safetensors"), first) {
		t.Error("another number of workers gives another result")
	}
	doc := resultOf[training.CentroidResult](t, text)
	if len(doc.Texts) != 2 || doc.KMax != 100 || doc.Centroids != 12 || doc.ModelSHA256 == "" ||
		doc.TraceSHA256 == "" {
		t.Fatalf("%s", text)
	}
	set := doc.Texts[1].Report.Mean.Sets[0]
	if chance := 100.0 / 1024; set.KMax != 100 || set.Predicted.Recall < 3*chance ||
		set.Predicted.Recall > set.Oracle.Recall+0.05 {
		t.Errorf("sets of %d find %.3f, the nearest %.3f, any %.3f", set.KMax, set.Predicted.Recall,
			set.Oracle.Recall, chance)
	}
	judged := resultOf[training.CentroidResult](t, must(t, "train", "-t", "judge.trace.arrow",
		"--evaluate", "a.predictor.safetensors", "--json"))
	if !reflect.DeepEqual(judged.Texts[0].Report, doc.Texts[1].Report) {
		t.Error("judged later it is another")
	}
	saysAll(t, must(t, "train", "-t", "judge.trace.arrow", "--evaluate",
		"a.predictor.safetensors"), "one of 12 active sets of 100 units", "above the goal")
}

// TestTrainResumes: an interrupted training keeps what is finished, and goes on to the predictor
// that it would have made.
func TestTrainResumes(t *testing.T) {
	trainWorkspace(t)
	train := []string{"train", "-t", "learn.trace.arrow", "--rank", "4", "--epochs", "2",
		"--workers", "1", "-o"}
	whole := must(t, append(train, "whole.predictor.safetensors")...)
	train = append(train, "cut.predictor.safetensors")

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := &interrupter{word: "train: 2 of 6 layers", cancel: cancel}
	now := time.Unix(0, 0)
	// every epoch is a line
	e := &env{stdin: strings.NewReader(""), stdout: io.Discard, stderr: seen,
		now: func() time.Time { now = now.Add(lineEvery); return now }}
	err := newApp(e).RunContext(ctx, append([]string{"windrow"}, train...))
	code, text := classify(ctx, err)
	if !seen.seen || code != exitInterrupted || !errors.Is(err, context.Canceled) ||
		!strings.Contains(text, "2 of 6 layers are kept in cut.partial.predictor") {
		t.Fatalf("exit %d: %s", code, text)
	}
	if kept := names(t, "cut.partial.predictor"); len(kept) != 2 {
		t.Errorf("kept %v", kept)
	}
	if _, err := os.Stat("cut.predictor.safetensors"); err == nil {
		t.Error("an interrupted training left a predictor")
	}
	kept := content(t, "cut.partial.predictor/layer-0000.safetensors")
	if o := command(append(train, "--seed", "7")...); o.code != exitUsage ||
		!strings.Contains(o.stderr, "other settings or samples") {
		t.Errorf("other settings go on: exit %d: %s", o.code, o.stderr)
	}
	if !bytes.Equal(content(t, "cut.partial.predictor/layer-0000.safetensors"), kept) {
		t.Error("a finished layer was touched")
	}
	resumed := must(t, train...)
	if strings.ReplaceAll(resumed, "cut.", "whole.") != whole ||
		!bytes.Equal(content(t, "cut.predictor.safetensors"),
			content(t, "whole.predictor.safetensors")) {
		t.Errorf("resumed:\n%s\nin one go:\n%s", resumed, whole)
	}
	if left := names(t, "cut.partial.predictor"); left != nil {
		t.Errorf("left %v", left)
	}
}

// Shape of the predictors of sparseCheckpoint.
const sparseLayers, sparseRank = 6, 2

// sparseCheckpoint writes a checkpoint that holds predictors for the shipped model.
func sparseCheckpoint(t *testing.T) {
	t.Helper()
	const width, unitsPerLayer = 256, 1024
	var infos []checkpoint.TensorInfo
	for l := range sparseLayers {
		at := fmt.Sprintf("model.layers.%d.mlp.predictor.", l)
		infos = append(infos, checkpoint.TensorInfo{Name: at + "fc1.weight", DType: checkpoint.F16,
			Shape: []int64{sparseRank, width}},
			checkpoint.TensorInfo{Name: at + "fc2.weight", DType: checkpoint.F16, Shape: []int64{
				unitsPerLayer, sparseRank}})
	}
	w, err := checkpoint.NewWriter("sparse.safetensors", infos, nil, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, info := range infos {
		err = errors.Join(err, w.Begin(info.Name))
		_, werr := w.Write(make([]byte, 2*info.Shape[0]*info.Shape[1]))
		err = errors.Join(err, werr)
	}
	if err := errors.Join(err, w.Commit()); err != nil {
		t.Fatal(err)
	}
}

// TestTrainImport: predictors inside a checkpoint become a file that serves the model.
func TestTrainImport(t *testing.T) {
	workspace(t)
	sparseCheckpoint(t)
	text := must(t, "train", "--import", "checkpoint", "sparse.safetensors", "-m",
		"tales.flash.safetensors", "-o", "a.predictor.safetensors")
	saysAll(t, text, "by checkpoint", "an input that the files do not name")
	p, err := predictor.Load(t.Context(), "a.predictor.safetensors")
	if err != nil || p.Layers() != sparseLayers || p.Rank(0) != sparseRank ||
		p.Kind() != predictor.ReLU || len(p.Facts().Model) != 64 {
		t.Errorf("%+v, %v", p, err)
	}
	for want, args := range map[string][]string{
		"it is powerinfer, dejavu or checkpoint": {"--import", "mine", "folder", "-m",
			"tales.flash.safetensors"},
		"needs -m": {"--import", "dejavu", "folder"},
		"the folder to import from": {"--import", "dejavu", "-m",
			"tales.flash.safetensors"},
		"no file for layer 0 of 6": {"--import", "powerinfer", "folder", "-m",
			"tales.flash.safetensors"},
		"--rank has no meaning with --import": {"--import", "dejavu", "folder", "--rank", "3",
			"-m", "tales.flash.safetensors"},
		"made for something else: no file for la": {"--import", "dejavu", "folder", "-m",
			"tales.flash.safetensors"},
	} {
		if o := command(append([]string{"train", "-o", "b.predictor.safetensors"},
			args...)...); o.code != exitUsage || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: exit %d: %s", args, o.code, o.stderr)
		}
	}
}

func TestTrainRefuses(t *testing.T) {
	trainWorkspace(t)
	must(t, "record", "-m", "tales.flash.safetensors", "--prompts", "words.txt", "-n", "4",
		"--features", "-o", "short.trace.arrow")
	must(t, "record", "-m", "tales.flash.safetensors", "--prompts", "words.txt", "-n", "4",
		"--features", "--compress", "zstd", "-o", "packed.trace.arrow")
	must(t, "record", "-m", "tales.flash.safetensors", "--prompts", "examples/prompts/tales.txt",
		"--limit", "2", "-n", "70", "--features", "-o", "plain.trace.arrow")
	before := names(t, ".")
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"", exitUsage, "train needs --trace"},
		{"-t tales.trace.arrow -o a.predictor.safetensors", exitInput, "windrow record --features"},
		{"-t packed.trace.arrow -o a.predictor.safetensors", exitInput, "without --compress"},
		{"-t short.trace.arrow -o a.predictor.safetensors", exitInput, "record more prompts"},
		{"-t missing -o a.predictor.safetensors", exitInput, "missing"},
		{"-t learn.trace.arrow -o a.safetensors", exitUsage, training.Suffix},
		{"-t learn.trace.arrow", exitUsage, "the name of the file to write is empty"},
		{"-t learn.trace.arrow -o a.predictor.safetensors extra", exitUsage, "no arguments"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --kind other", exitUsage,
			"it is low-rank or centroid"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --test learn.trace.arrow", exitUsage,
			"is the trace to learn from"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --test tales.trace.arrow", exitInput,
			"windrow record --features"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --rank 257", exitUsage, "from 1 to 256"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --rank 0", exitUsage, "from 1 to 256"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --epochs 0", exitUsage, "--epochs 0"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --workers -1", exitUsage, "--workers -1"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --target-fn 4", exitUsage, "--target-fn"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --goal-fp 0%", exitUsage, "--goal-fp"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --worth 3", exitUsage, "--device"},
		{"-t learn.trace.arrow -o a.predictor.safetensors -d m1-max --worth 0", exitUsage,
			"--worth 0"},
		{"-t plain.trace.arrow -o a.predictor.safetensors -d m1-max", exitInput, "--magnitudes"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --centroids 3", exitUsage,
			"--centroids has no meaning of low-rank"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --kind centroid --ahead", exitUsage,
			"--ahead has no meaning of centroids"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --kind centroid --k-max 2000", exitUsage,
			"from 1 to the 1024 units"},
		{"-t learn.trace.arrow -o a.predictor.safetensors --kind centroid --centroids 0", exitUsage,
			"--centroids 0"},
		{"-t learn.trace.arrow --evaluate tales.flash.safetensors", exitInput,
			"not a low-rank predictor"},
		{"-t learn.trace.arrow --evaluate missing", exitInput, "missing"},
		{"-t learn.trace.arrow --evaluate missing --rank 3", exitUsage,
			"--rank has no meaning with --evaluate"},
	} {
		if o := command(append([]string{"train"},
			strings.Fields(c.line)...)...); o.code != c.code || !strings.Contains(o.stderr,
			c.want) || o.stdout != "" {
			t.Errorf("%s: exit %d, want %d and %q: %s", c.line, o.code, c.code, c.want, o.stderr)
		}
	}
	if after := names(t, "."); !slices.Equal(before, after) {
		t.Errorf("refused trainings left %v, before %v", after, before)
	}
}
