package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// readers are command lines that together name every file that every verb reads, in braces. A file
// of a folder is {FOLDER:FILE}: what stands on the command line is the folder.
var readers = []string{
	"pack {model:config.json} -o p1.flash.safetensors",
	"pack {model:model.safetensors} -o p2.flash.safetensors",
	"pack {model:tokenizer.json} -o p3.flash.safetensors",
	"pack {tiny.gguf} -o p4.flash.safetensors",
	"pack examples/models/tales --tokenizer {model:tokenizer.json} -o p6.flash.safetensors",
	"generate -m {tales.flash.safetensors} -n 2 Once",
	"generate -m {tales.flash.safetensors} -n 2 --prompts {words.txt}",
	"generate -m {tales.flash.safetensors} -n 2 --chat {examples/chat/story.json} " +
		"--chat-template {examples/chat/plain.jinja}",
	"generate -m {tales.flash.safetensors} -n 2 --draft {tales.flash.safetensors} Once",
	"generate -m {tales.flash.safetensors} --oracle {tales.trace.arrow} --io pread",
	"generate -m {tales.flash.safetensors} -n 2 --predictor {low.predictor.safetensors} Once",
	"record -m {tales.flash.safetensors} --prompts {words.txt} -n 2 -o r1.trace.arrow",
	"train -t {learn.trace.arrow} --test {judge.trace.arrow} --rank 2 --epochs 1 -d " +
		"{m1.device.yaml} -m {tales.flash.safetensors} -o t1.predictor.safetensors",
	"train -t {learn.trace.arrow} --kind centroid --centroids 4 --epochs 1 -o " +
		"t2.predictor.safetensors",
	"train -t {judge.trace.arrow} --evaluate {low.predictor.safetensors}",
	"train --import checkpoint {sparse.safetensors} -m {tales.flash.safetensors} -o " +
		"t3.predictor.safetensors",
	"train --import powerinfer {powerinfer:config.json} -m {tales.flash.safetensors} -o " +
		"t4.predictor.safetensors",
	"train --import dejavu {dejavu:layer0.pt} -m {tales.flash.safetensors} -o " +
		"t5.predictor.safetensors",
	"eval -m {tales.flash.safetensors} --text {words.txt} --max-tokens 8 --context 8 -d " +
		"{m1.device.yaml} --shares 5%",
	"eval -m {tales.flash.safetensors} --text {words.txt} --max-tokens 8 --context 8 " +
		"--predictor {low.predictor.safetensors}",
	"doctor {words.txt}",
	"probe {tales.flash.safetensors} -t {tales.trace.arrow} --budget 1s -o b1.device.yaml",
	"device show {m1.device.yaml}",
	"device compare {m1.device.yaml} {m1.device.yaml}",
	"device energy {tiny.run.arrow} -t {tiny.trace.arrow}",
	"device wear {tiny.run.arrow} -t {tiny.trace.arrow} --tokens-per-day 1000",
	"device import-fio {grid.json} {grid.json}",
	"device fit {grid.json} --host {m1.device.yaml} -o f1.device.yaml",
	"calibrate -t {tales.trace.arrow} -m {tales.flash.safetensors} --io mem --measure-tokens 2 " +
		"--step 5 -o prefix.json",
	"replay -t {tales.trace.arrow} -m {tales.flash.safetensors} --io pread -o y1.run.arrow",
	"sim -t {tiny.trace.arrow} -d {m1.device.yaml} -o s1.run.arrow",
	"sim -t {beside:tiny.trace.json}/tiny.trace.arrow -d m1-max --json",
	"sim -t {tales.trace.arrow} -m {tales.flash.safetensors} -d m1-max --json",
	"sweep {windows.yaml} -o w1.jsonl --shard 1/9",
	"sweep {scenario:here.trace.arrow}/names.yaml -o w2.jsonl",
	"sweep {scenario:here.device.yaml}/names.yaml -o w3.jsonl",
	"sweep {scenario:here.flash.safetensors}/names.yaml -o w4.jsonl",
	"plan -t {tiny.trace.arrow} -d {m1.device.yaml} --dram 90% --others {m1.device.yaml}",
	"breakeven -d {m1.device.yaml} -t {tiny.trace.arrow} --simulated-layers 1 --largest-batch 4",
	"feasible --like opt-13b --dram 8GiB -d {m1.device.yaml}",
	"batch -t {tales.trace.arrow} -d {m1.device.yaml} -m {tales.flash.safetensors} --sizes 1,2",
	"traffic -t {tales.trace.arrow} -d {m1.device.yaml} -m {tales.flash.safetensors} --rate 1 " +
		"--requests 8 --prompt-tokens 20 --output-tokens 5",
	"traffic -t {tiny.trace.arrow} -d m1-max --arrivals {azure.csv} --requests 2 --speedup 100",
	"traffic -t {tiny.trace.arrow} -d m1-max --arrivals {chats.json} --rate 1 --requests 2 " +
		"--tokenizer {model:tokenizer.json}",
	"adaptive -t {tales.trace.arrow} -d {m1.device.yaml} -m {tales.flash.safetensors} --skip 0 " +
		"--dram-over-time {budget.csv} -o a1.csv",
	"speculate -t {tales.trace.arrow} -d {m1.device.yaml} -m {tales.flash.safetensors} " +
		"--window 1 " +
		"--lambda 1 --most 2",
	"layout -t {tiny.trace.arrow} -d m1-max --window 0 --gaps 0..2",
	"layout -t {tales.trace.arrow} -d {m1.device.yaml} -m {tales.flash.safetensors} --window 0 " +
		"--gaps 0..2",
	"demo --source {model:config.json} --dir d1 --like opt-125m --measure-tokens 12 --budget 1s",
	"demo --prompts {words.txt} --dir d2 --like opt-125m --measure-tokens 12 --budget 1s",
	"validate {tiny.run.arrow} {other.run.arrow}",
	"validate --suite fitted-emulated --probe-budget 1s --fio-json {grid.json}",
	"report {tiny.run.arrow} {other.run.arrow} --trace {tiny.trace.arrow} -o r1.html",
	"image check {tales.flash.safetensors}",
	"trace info {tiny.trace.arrow}",
	"trace check {tiny.trace.arrow}",

	"trace stats {tiny.trace.arrow}",
	"trace cat {tiny.trace.arrow} --units",
	"trace merge {tiny.trace.arrow} {tiny.trace.arrow} -o m1.trace.arrow",
	"trace whatif {tiny.trace.arrow} --share 2% -o w1.trace.arrow",
	"trace arrivals {azure.csv} --sort",
	"trace arrivals {chats.json} --tokenizer {model:tokenizer.json}",
}

// readNothing are the verbs that read no file, in a command line each.
var readNothing = []string{
	"synth model --like opt-125m --layers 1 -o m1.flash.safetensors",
	"synth trace --like opt-6.7b --layers 1 --tokens 2 -o m2.trace.arrow",
	"device list", "device calibrate m2-ultra", "device fio-job --file nvme", "reproduce --table flash", "completion bash",
	"man",
	"version", "clean",
}

// readerWorkspace is a working folder with all files of readers.
func readerWorkspace(t *testing.T) {
	t.Helper()
	t.Setenv(asProgram, "1") // of the child that "trace check" starts
	trainWorkspace(t)
	sparseCheckpoint(t)
	linkFixture(t, "devicemodels/fio/testdata/grid.json", "grid.json")
	linkFixture(t, "traces/arrivals/testdata/azure-2024.csv", "azure.csv")
	linkFixture(t, "traces/arrivals/testdata/sharegpt.json", "chats.json")
	linkFixture(t, "examples/scenarios/windows.yaml", "windows.yaml")
	write(t, "m1.device.yaml", must(t, "device", "show", "m1-max"))
	write(t, "budget.csv", "0,90%\n2,64%\n")
	write(t, "tiny.gguf", "GGUF\x03\x00\x00\x00")
	must(t, "train", "-t", "learn.trace.arrow", "--rank", "2", "--epochs", "1", "-o",
		"low.predictor.safetensors")
	for folder, files := range map[string]map[string]string{
		"model":      {"": "examples/models/tales"},
		"powerinfer": {"config.json": "", "model_0.pt": ""},
		"dejavu":     {"layer0.pt": ""},
		"beside":     {"tiny.trace.arrow": "", "tiny.trace.json": ""},
		"scenario": {"here.trace.arrow": "tales.trace.arrow", "here.trace.json": "tales.trace.json",
			"here.device.yaml":       "m1.device.yaml",
			"here.flash.safetensors": "tales.flash.safetensors", "names.yaml": ""},
	} {
		if from := files[""]; from != "" {
			if err := os.CopyFS(folder, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, from := range files {
			if from == "" {
				from = name
			}
			text, err := os.ReadFile(from)
			if err != nil {
				text = []byte("{}")
			}
			write(t, filepath.Join(folder, name), string(text))
		}
	}
	write(t, "scenario/names.yaml", "trace: {file: here.trace.arrow}\ndevices: "+
		"[here.device.yaml]\nimage: here.flash.safetensors\nwindows: [1, 2]\n")
}

// inBraces finds the inputs of a line of readers.
var inBraces = regexp.MustCompile(`\{[^}]*\}`)

// plainLine is a line of readers with the files themselves.
func plainLine(line string) string {
	return inBraces.ReplaceAllStringFunc(line, func(s string) string {
		path, _, _ := strings.Cut(strings.Trim(s, "{}"), ":")
		return path
	})
}

// TestReadersNameEveryInput: the table has every verb, and every flag and argument that names files
// to read.
func TestReadersNameEveryInput(t *testing.T) {
	mentioned := func(verb, word string) bool {
		return slices.ContainsFunc(readers, func(line string) bool {
			return strings.HasPrefix(line, verb+" ") && strings.Contains(line, word)
		})
	}
	hint := regexp.MustCompile("`([^`]*)`")
	file := regexp.MustCompile(`IMG|TRACE|DEVICE|FILE|DIR|RUN|PREDICTOR|SPEC|FOLDER`)
	// Folders to work in, and what is kept of an interrupted training, are no inputs.
	known := append([]string{"dir", "disk", "state", "file"}, outputs...)
	eachFlag(func(verb string, flag cli.Flag) {
		found := hint.FindStringSubmatch(flag.(cli.DocGenerationFlag).GetUsage())
		name := flag.Names()[0]
		if found == nil || !file.MatchString(found[1]) || slices.Contains(known, name) {
			return
		}
		if !slices.ContainsFunc(flag.Names(), func(n string) bool {
			return mentioned(verb, dashed(n)+" {")
		}) {
			t.Errorf("%s: no command line reads the file of --%s", verb, name)
		}
	})
	var walk func(commands []*cli.Command, path string)
	walk = func(commands []*cli.Command, path string) {
		for _, c := range commands {
			full := path + c.Name
			if len(c.Subcommands) > 0 {
				walk(c.Subcommands, full+" ")
			} else if !mentioned(full, "{") && !slices.ContainsFunc(readNothing,
				func(line string) bool { return strings.HasPrefix(line+" ", full+" ") }) {
				t.Errorf("%s is in no command line", full)
			}
		}
	}
	walk(commandsOf(), "")
}
