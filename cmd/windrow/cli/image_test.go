package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/engine/session"
)

// badImages writes two variants of tales.flash.safetensors: flipped.flash.safetensors with a bit
// flipped in a record, and old.flash.safetensors without hashes, as windrow 0.1 wrote it.
func badImages(t *testing.T) {
	t.Helper()
	file, err := checkpoint.Open(t.Context(), "tales.flash.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data := content(t, "tales.flash.safetensors")
	bundles, _ := file.Tensor("layers.1.ffn.bundles")
	data[bundles.Offset+1] ^= 4
	write(t, "flipped.flash.safetensors", string(data))

	meta := file.Metadata()
	delete(meta, "hashes")
	list := slices.DeleteFunc(file.Tensors(), func(x checkpoint.TensorInfo) bool {
		return strings.HasPrefix(x.Name, "hashes")
	})
	w, err := checkpoint.NewWriter("old.flash.safetensors", list, meta, checkpoint.WriterOptions{
		HeaderAlign: 4096, AlignTensor: "layers.0.ffn.bundles"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, x := range w.Tensors() {
		data := make([]byte, x.Size)
		if err := file.ReadTensor(x.Name, data); err != nil {
			t.Fatal(err)
		}
		if err := w.Begin(x.Name); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestFlippedBitsOfAnImage flips a bit in every tensor and in the header: "image check" names the
// tensor and the block. Of every fifth (package model tries all), --verify refuses the image, and
// generate does not begin with a flipped bit in what it loads. Before there were hashes, a bit of
// "embed" changed the text, with exit code 0.
func TestFlippedBitsOfAnImage(t *testing.T) {
	workspace(t)
	const name = "mine.flash.safetensors"
	write(t, name, string(content(t, "tales.flash.safetensors")))
	image, err := checkpoint.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flip := func(at int64) {
		t.Helper()
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 1
		if _, err := f.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
	}
	header := checkpoint.TensorInfo{Name: "header", Size: image.DataOffset()}
	for i, x := range append([]checkpoint.TensorInfo{header}, image.Tensors()...) {
		at := x.Offset + []int64{0, x.Size / 2, x.Size - 1}[i%3]
		flip(at)
		o := command("image", "check", name)
		switch {
		case x.Name == header.Name && o.code == exitInput: // it is none any more
		case o.code != exitValidation:
			t.Errorf("%s: image check: exit %d\n%s", x.Name, o.code, o.stderr)
		default:
			block := (at - x.Offset) &^ (256<<10 - 1)
			saysAll(t, o.stdout, "damaged in 1 of", x.Name, fmt.Sprint(x.Offset+block))
			saysAll(t, o.stderr, x.Name, fmt.Sprint(x.Offset+block))
		}
		if i%5 == 0 {
			o := command("sim", "-t", "tales.trace.arrow", "-d", "m1-max", "-m", name, "--verify")
			if o.code != exitInput {
				t.Errorf("%s: sim --verify: exit %d\n%s", x.Name, o.code, o.stderr)
			}
			loaded := !strings.Contains(x.Name, "pad") && !strings.Contains(x.Name, "bundles")
			o = command("generate", "-m", name, "-n", "1", "Once")
			if loaded && (o.code != exitInput || o.stdout != "") {
				t.Errorf("%s: generate: exit %d\n%s%s", x.Name, o.code, o.stdout, o.stderr)
			}
		}
		flip(at)
	}
	if o := command("image", "check", name); o.code != exitOK {
		t.Errorf("with no bit flipped: exit %d\n%s", o.code, o.stderr)
	}
}

// verifying are command lines of every verb that opens an image, of which IMG stands for one.
var verifying = []string{
	"generate -m IMG -n 1 Once",
	"record -m IMG --prompts words.txt -n 1 -o new.trace.arrow",
	"train --import checkpoint sparse.safetensors -m IMG -o deja.predictor.safetensors",
	"eval -m IMG --text words.txt --max-tokens 8 --context 8",
	"calibrate -t tales.trace.arrow -m IMG --io mem --measure-tokens 2 --step 5",
	"replay -t tales.trace.arrow -m IMG --io mem",
	"probe IMG -t tales.trace.arrow -o new.device.yaml",
	"sim -t tales.trace.arrow -d m1-max -m IMG",
	"batch -t tales.trace.arrow -d m1-max -m IMG --sizes 1",
	"adaptive -t tales.trace.arrow -d m1-max -m IMG --skip 0 --dram-over-time 0:90%",
	"speculate -t tales.trace.arrow -d m1-max -m IMG --lambda 1 --most 1",
	"layout -t tales.trace.arrow -d m1-max -m IMG --gaps 0",
	"traffic -t tales.trace.arrow -d m1-max -m IMG --rate 1 --requests 2 --prompt-tokens 2 " +
		"--output-tokens 2",
	"sweep IMG.yaml -o new.jsonl",
}

// TestVerify: every verb that opens an image refuses a damaged one under --verify, with the tensor
// and its place, before it writes a result.
func TestVerify(t *testing.T) {
	workspace(t)
	badImages(t)
	sparseCheckpoint(t)
	write(t, "flipped.flash.safetensors.yaml", tinyScenario+"image: flipped.flash.safetensors\n")
	left := map[string]bool{}
	eachFlag(func(verb string, flag cli.Flag) {
		switch flag.Names()[0] {
		case "verify":
			left[verb] = true
		case "model", "draft":
			if !left[verb] {
				left[verb] = false // unless --verify comes later: reported below
			}
		}
	})
	for _, line := range verifying {
		verb := strings.Fields(line)[0]
		if !left[verb] {
			t.Errorf("%s has no --verify", verb)
			continue
		}
		delete(left, verb)
		before := names(t, ".")
		line = strings.ReplaceAll(line, "IMG", "flipped.flash.safetensors") + " --verify"
		o := command(words(t, line)...)
		if o.code != exitInput || o.stdout != "" {
			t.Errorf("%s: exit %d\n%s%s", line, o.code, o.stdout, o.stderr)
		}
		saysAll(t, o.stderr, `"layers.1.ffn.bundles" is damaged`, "pack it again")
		if after := names(t, "."); !slices.Equal(before, after) {
			t.Errorf("%s left %v of %v", line, after, before)
		}
	}
	if len(left) > 0 {
		t.Errorf("no line with --verify for %v", slices.Sorted(maps.Keys(left)))
	}
	o := command("generate", "-m", "tales.flash.safetensors", "--draft",
		"flipped.flash.safetensors", "-n", "1", "--verify", "Once")
	if o.code != exitInput || !strings.Contains(o.stderr, "is damaged") {
		t.Errorf("a damaged draft: exit %d\n%s", o.code, o.stderr)
	}
	good := must(t, "generate", "-m", "tales.flash.safetensors", "-n", "2", "Once")
	if again := must(t, "generate", "-m", "tales.flash.safetensors", "-n", "2", "--verify",
		"Once"); again != good {
		t.Errorf("--verify changes %q to %q", good, again)
	}
}

// TestOldImages: an image of windrow 0.1 runs as ever. Verbs say once that it has no hashes;
// --verify and "image check" refuse it with the remedy.
func TestOldImages(t *testing.T) {
	workspace(t)
	badImages(t)
	want := must(t, "generate", "-m", "tales.flash.safetensors", "-n", "2", "Once")
	for _, args := range [][]string{{"-m", "old.flash.safetensors"},
		{"-m", "old.flash.safetensors", "--draft", "old.flash.safetensors"}} {
		args = append(append([]string{"generate"}, args...), "-n", "2", "Once")
		o := command(args...)
		if o.code != exitOK || o.stdout != want ||
			strings.Count(o.stderr, "old.flash.safetensors has no hashes") != 1 {
			t.Errorf("%v: exit %d, %q instead of %q\n%s", args, o.code, o.stdout, want, o.stderr)
		}
	}
	o := command("sim", "-t", "tales.trace.arrow", "-d", "m1-max", "-m", "old.flash.safetensors")
	if o.code != exitOK || strings.Count(o.stderr, "has no hashes") != 1 {
		t.Errorf("sim: exit %d\n%s", o.code, o.stderr)
	}
	for line, code := range map[string]int{
		"generate -m old.flash.safetensors --verify -n 1 Once": exitInput,
		"image check old.flash.safetensors":                    exitValidation} {
		o := command(strings.Fields(line)...)
		if o.code != code {
			t.Errorf("%s: exit %d", line, o.code)
		}
		saysAll(t, o.stderr, "no hashes", "pack it again")
	}
}

// TestImageCheckOfSeveral: one bad image does not hide the others.
func TestImageCheckOfSeveral(t *testing.T) {
	workspace(t)
	badImages(t)
	o := command("image", "check", "old.flash.safetensors", "flipped.flash.safetensors",
		"tales.flash.safetensors", "--json")
	list := resultOf[session.ImagesCheck](t, o.stdout).Images
	var states []string
	for _, i := range list {
		states = append(states, i.State)
	}
	want := []string{session.Unhashed, session.Damaged, session.Whole}
	if o.code != exitValidation || !slices.Equal(states, want) {
		t.Errorf("exit %d, %v", o.code, states)
	}
	saysAll(t, o.stderr, "2 of 3 images are not known to be whole", "old.flash.safetensors")
	if list[2].Blocks < 40 || list[2].Damaged != 0 || list[1].Damaged != 1 {
		t.Errorf("%+v", list)
	}
}
