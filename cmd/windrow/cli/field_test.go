package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
)

// Field case H1: a tool built on the same library ran with its defaults when flags followed the
// arguments, exit code 0 and no word. Every order of one command line has to do the same.
func TestField_H1_FlagsAfterArguments(t *testing.T) {
	workspace(t)
	image := "tales.flash.safetensors"
	for _, orders := range [][]string{
		{"trace cat --count 1 --from 2 tiny.trace.arrow", "trace cat tiny.trace.arrow --count 1 " +
			"--from 2", "trace cat --count=1 tiny.trace.arrow -from=2",
			"trace cat --from 2 --count 1 -- tiny.trace.arrow"},
		{"trace info --json tiny.trace.arrow", "trace info tiny.trace.arrow --json",
			"trace info tiny.trace.arrow --json=true",
			"--quiet trace info --json -- tiny.trace.arrow",
			"trace info tiny.trace.arrow --json --quiet", "trace info -q tiny.trace.arrow --json"},
		{"device show --json m1-max", "device show m1-max --json"},
		{"trace stats --predicted --workers 1 tiny.trace.arrow",
			"trace stats tiny.trace.arrow --workers=1 --predicted",
			"trace stats --predicted tiny.trace.arrow --workers 1"},
		{"generate -m " + image + " -n 4 --temp 0.8 --seed 7 Once", "generate Once -m " + image +
			" -n 4 --temp 0.8 --seed 7", "generate -n=4 Once --seed=7 -model=" + image +
			" --temp=0.8", "generate -m " + image + " -n 4 --temp 0.8 --seed 7 -- Once"},
		{"validate --skip 1 --format json tiny.run.arrow tiny.run.arrow",
			"validate tiny.run.arrow tiny.run.arrow --skip 1 --format json",
			"validate tiny.run.arrow --skip 1 tiny.run.arrow --format=json"},
		{"--progress never synth model --like list", "synth model --like list --progress never",
			"synth --progress=never model --like list"},
	} {
		first := apartFromCommand(must(t, words(t, orders[0])...))
		if first == "" {
			t.Errorf("%s prints nothing", orders[0])
		}
		for _, other := range orders[1:] {
			if got := apartFromCommand(must(t, words(t, other)...)); got != first {
				t.Errorf("%s and %s differ", orders[0], other)
			}
		}
	}
	// The flags do something, so that equal outputs above mean that they were read.
	for _, differ := range [][2]string{
		{"generate Once -m " + image + " -n 4 --temp 0.8 --seed 7", "generate Once -m " + image +
			" -n 5 --temp 0.8 --seed 7"},
		{"trace cat tiny.trace.arrow --count 1", "trace cat tiny.trace.arrow --count 2"},
	} {
		if must(t, words(t, differ[0])...) == must(t, words(t, differ[1])...) {
			t.Errorf("%s and %s print the same", differ[0], differ[1])
		}
	}
	// What follows "--" is an argument even if it looks like a flag or a verb.
	if got := must(t, "generate", "-m", image, "-n", "1", "--", "--json"); !strings.HasPrefix(got,
		"--json") {
		t.Errorf("a prompt after -- became something else: %q", got)
	}
	must(t, "pack", "examples/models/tales", "-o", "late.flash.safetensors")
	if _, err := os.Stat("late.flash.safetensors"); err != nil {
		t.Error(err)
	}
}

// apartFromCommand leaves out the line of a JSON form that repeats the command line.
func apartFromCommand(text string) string {
	return regexp.MustCompile(`(?m)^  "command": .*\n`).ReplaceAllString(text, "")
}

// Field case H3: the same command gives the same bytes in every run and on any number of
// processors.
func TestField_H3_SameBytes(t *testing.T) {
	workspace(t)
	type result struct {
		name string
		data string
	}
	all := func(dir string) []result {
		t.Helper()
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		trace, run := filepath.Join(dir, "a.trace.arrow"), filepath.Join(dir, "a.run.arrow")
		recorded, image := filepath.Join(dir, "b.trace.arrow"), filepath.Join(dir,
			"b.flash.safetensors")
		list := []result{
			{"generate", must(t, "generate", "-m", "tales.flash.safetensors", "-n", "8",
				"Once upon a time")},
			{"generate with a temperature", must(t, "generate", "-m", "tales.flash.safetensors",
				"-n", "8", "--temp", "0.9", "Once upon a time")},
			{"sim --json", must(t, "sim", "--trace", "tiny.trace.arrow", "-d", "m1-max", "--json",
				"-o", run)},
			{"stats, 1 worker", must(t, "trace", "stats", "tiny.trace.arrow", "--json", "--workers",
				"1")},
			{"stats, 8 workers", must(t, "trace", "stats", "tiny.trace.arrow", "--json",
				"--workers", "8")},
		}
		must(t, "synth", "trace", "--like", "opt-6.7b", "--layers", "2", "--tokens", "5", "-o",
			trace)
		must(t, "record", "-m", "tales.flash.safetensors", "--prompts", "words.txt", "-n", "4",
			"-o", recorded)
		must(t, "pack", "examples/models/tales", "-o", image)
		for _, path := range []string{trace, run, recorded, image} {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, result{filepath.Base(path), string(data)})
		}
		return list
	}
	first := all("first")
	if first[3].data != first[4].data {
		t.Error("trace stats differs between 1 and 8 workers")
	}
	for _, procs := range []int{1, 8} {
		old := runtime.GOMAXPROCS(procs)
		again := all("procs" + string(rune('0'+procs)))
		runtime.GOMAXPROCS(old)
		for i := range first {
			if first[i].data != again[i].data {
				t.Errorf("%s differs with GOMAXPROCS %d", first[i].name, procs)
			}
		}
	}
}

// Field case H5: 7000 of what? A unit is mandatory, and decimal, binary and bit units are told
// apart.
func TestField_H5_UnitsAreMandatory(t *testing.T) {
	workspace(t)
	text := must(t, "device", "show", "m1-max")
	device := func(rate string) string {
		name := strings.ReplaceAll(rate, "/", "") + ".device.yaml"
		write(t, name, strings.Replace(text, "link_rate: 6.1GB/s", "link_rate: "+rate, 1))
		return name
	}
	rate := func(file string) float64 {
		d, err := devicemodels.Load(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		return float64(d.Flash.LinkRate)
	}
	decimal, binary := device("7.0GB/s"), device("7.0GiB/s")
	if ratio := rate(binary) / rate(decimal); ratio < 1.0737 || ratio > 1.0738 {
		t.Errorf("7.0GiB/s is %g times 7.0GB/s", ratio)
	}
	if a, b := must(t, "device", "show", decimal), must(t, "device", "show", binary); a == b {
		t.Error("7.0GB/s and 7.0GiB/s print the same")
	}
	sim := []string{"sim", "--trace", "tiny.trace.arrow", "--json", "--chunk", "64KiB", "-d"}
	if must(t, append(slices.Clone(sim), decimal)...) == must(t, append(slices.Clone(sim),
		binary)...) {
		t.Error("a simulation does not tell 7.0GB/s from 7.0GiB/s")
	}
	if o := command("device", "show", device("7000")); o.code != exitInput ||
		!strings.Contains(o.stderr, "link_rate") {
		t.Errorf("a rate without a unit: exit %d, %s", o.code, o.stderr)
	}
	if o := command("device", "show", device("7Gb/s")); o.code == exitOK &&
		strings.Contains(o.stdout, "link_rate: 7GB/s") {
		t.Error("bits were taken for bytes")
	}
	for _, size := range []string{"64", "64K", "64k", "64Kib", "64 parsecs", "-64KiB", "1e3"} {
		if o := command("sim", "--trace", "tiny.trace.arrow", "-d", "m1-max", "--chunk",
			size); o.code != exitUsage || !strings.Contains(o.stderr, "--chunk") {
			t.Errorf("--chunk %q: exit %d, %s", size, o.code, o.stderr)
		}
	}
	if o := command("probe", ".", "-o", "x.device.yaml", "--budget", "3"); o.code != exitUsage {
		t.Errorf("--budget without a unit: exit %d, %s", o.code, o.stderr)
	}
}
