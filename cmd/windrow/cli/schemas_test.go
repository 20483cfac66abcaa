package cli

import (
	"embed"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/replay/validate"
	"github.com/windrow-sim/windrow/replay/validate/demo"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// schemaFiles are the JSON Schemas of the documents, one file a name, and that of their envelope.
//
//go:embed schemas/*.json
var schemaFiles embed.FS

// parts are schemas that others refer to: no document is of their name.
var parts = []string{"envelope", "runs", "device"}

// schemas compiles all of them, by name.
func schemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	entries, err := schemaFiles.ReadDir("schemas")
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	list := map[string]*jsonschema.Schema{}
	for _, e := range entries {
		text, err := schemaFiles.ReadFile("schemas/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		name := strings.TrimSuffix(e.Name(), ".json")
		if err := c.AddResource(schemaID(name), doc); err != nil {
			t.Fatal(err)
		}
		if id := doc.(map[string]any)["$id"]; id != schemaID(name) {
			t.Errorf("%s: the $id is %v, want %s", e.Name(), id, schemaID(name))
		}
		list[name] = nil
	}
	for name := range list {
		if list[name], err = c.Compile(schemaID(name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return list
}

func schemaID(name string) string { return "urn:windrow:" + name + ":1" }

// documented is a command line with the schema of its document and its exit code.
type documented struct {
	schema string
	line   string
	code   int
}

// documents are command lines that print every kind of document, each in several shapes: results
// that say no, optional parts there and absent. They run in this order, in one folder.
var documents = []documented{
	{"sim", "sim -t tiny.trace.arrow -d m1-max", exitOK},
	{"sim", "sim -t tiny.trace.arrow -d samsung-860pro-sata", exitOK},
	{"sim", "sim -t tiny.trace.arrow -d m1-max --predicted --schedule lookahead", exitOK},
	{"sim", "sim -t tales.trace.arrow -m tales.flash.safetensors -d m1-max -o s.run.arrow", exitOK},
	{"replay", "replay -t tales.trace.arrow -m tales.flash.safetensors -o t.run.arrow", exitOK},
	{"report", "report tiny.run.arrow --trace tiny.trace.arrow", exitOK},
	{"report", "report s.run.arrow t.run.arrow", exitOK},
	{"validate", "validate s.run.arrow t.run.arrow", anyVerdict},
	{"batch", "batch -t tiny.trace.arrow -d m1-max --window 0", exitOK},
	{"batch", "batch -t tiny.trace.arrow -d samsung-860pro-sata --sizes 2,4 --window 1", exitOK},
	{"batch", "batch -t tales.trace.arrow -d m1-max --sizes 1,2 --group", exitOK},
	{"plan", "plan -t tiny.trace.arrow -d m1-max --dram 90% --target 1000 --others m2-ultra " +
		"--energy",
		exitValidation},
	{"plan", "plan -t tiny.trace.arrow -d m1-max --dram 90% --target 1 --others m2-ultra", exitOK},
	{"plan", "plan -t tiny.trace.arrow -d samsung-860pro-sata --dram 90% --others m2-ultra",
		exitOK},
	{"plan", "plan -t tiny.trace.arrow -d m1-max --dram 1MiB", exitValidation},
	{"breakeven", "breakeven -d m1-max -t tiny.trace.arrow --weights 1%", exitValidation},
	{"breakeven", "breakeven -d m1-max,emmc-64gb-sige5 --simulated-layers 1 --largest-batch 4",
		exitOK},
	{"feasible", "feasible --like opt-13b --dram 8GiB", exitOK},
	{"feasible", "feasible --like mixtral-8x7b -d m1-max --dram 16GiB --vram 8GiB", exitOK},
	{"feasible", "feasible --like opt-13b --dram 64MiB", exitValidation},
	{"adaptive", "adaptive -t tiny.trace.arrow -d m1-max --skip 0 --dram-over-time 0:90%,2:64%",
		exitOK},
	{"adaptive", "adaptive -t tiny.trace.arrow -d samsung-860pro-sata --skip 0 " +
		"--dram-over-time 90%",
		exitOK},
	{"adaptive", "adaptive -t tiny.trace.arrow -d m1-max --dram-over-time 1MiB", exitValidation},
	{"speculate", "speculate -t tiny.trace.arrow -d m1-max --window 1 --lambda 1 --most 2", exitOK},
	{"speculate", "speculate -t tiny.trace.arrow -d samsung-860pro-sata --window 1 --lambda 1 " +
		"--most 0 " +
		"--draft-time 1ms --drawn", exitOK},
	{"layout", "layout -t tiny.trace.arrow -d m1-max --window 0 --gaps 0..2", exitOK},
	{"layout", "layout -t tales.trace.arrow -d samsung-860pro-sata --gaps 0 --align 1B", exitOK},
	{"traffic", "traffic -t tiny.trace.arrow -d m1-max --rate 1 --requests 8 --prompt-tokens 20 " +
		"--output-tokens 5", exitOK},
	{"traffic", "traffic -t tiny.trace.arrow -d m1-max --arrivals azure.csv --requests 2 " +
		"--speedup 100", exitOK},
	{"traffic", "traffic -t tiny.trace.arrow -d samsung-860pro-sata --find-rate --requests 8 " +
		"--prompt-tokens 20 --output-tokens 5", exitOK},
	{"traffic", "traffic -t tiny.trace.arrow -d m1-max --find-rate --requests 8 " +
		"--prompt-tokens 20 " +
		"--output-tokens 5 --slo-tpot 1us", exitValidation},
	{"sweep", "sweep examples/scenarios/windows.yaml -o s.jsonl --shard 1/9", exitOK},
	{"pack", "pack examples/models/tales -o new.flash.safetensors --dtype q8", exitOK},
	{"synth-model", "synth model --like opt-125m --layers 1 -o m.flash.safetensors", exitOK},
	{"synth-trace", "synth trace --like opt-6.7b --layers 1 --tokens 2 -o m.trace.arrow", exitOK},
	{"names", "synth model --like list", exitOK},
	{"image-check", "image check tales.flash.safetensors", exitOK},
	{"image-check", "image check flipped.flash.safetensors old.flash.safetensors",
		exitValidation},
	{"trace-info", "trace info tales.trace.arrow", exitOK},
	{"trace-info", "trace info tiny.trace.arrow", exitOK},
	{"trace-check", "trace check tiny.trace.arrow", exitOK},
	{"trace-stats", "trace stats tiny.trace.arrow --predicted", exitOK},
	{"trace-stats", "trace stats tales.trace.arrow", exitOK},
	{"trace-cat", "trace cat tiny.trace.arrow --count 1 --units", exitOK},
	{"trace-merge", "trace merge tiny.trace.arrow tiny.trace.arrow -o two.trace.arrow", exitOK},
	{"clean", "clean", exitOK},
	{"trace-whatif", "trace whatif tiny.trace.arrow --share 2% -o w.trace.arrow", exitOK},
	{"trace-arrivals", "trace arrivals azure.csv", exitOK},
	{"device-list", "device list", exitOK},
	{"device-calibrate", "device calibrate m2-ultra", exitOK},
	{"device-show", "device show m1-max", exitOK},
	{"device-show", "device show --all", exitOK},
	{"device-check", "device show samsung-860pro-sata --residuals --leave-one-out", exitOK},
	{"device-compare", "device compare m1-max jetson-orin-990pro", exitOK},
	{"device-fio-job", "device fio-job --file nvme", exitOK},
	{"device-import-fio", "device import-fio grid.json", exitOK},
	{"device-fit", "device fit grid.json -o g.device.yaml", exitOK},
	{"record", "record -m tales.flash.safetensors --prompts words.txt -n 2 -o r.trace.arrow",
		exitOK},
	{"generate", "generate -m tales.flash.safetensors -n 3 Once", exitOK},
	{"generate", "generate -m tales.flash.safetensors --oracle tales.trace.arrow --io pread",
		exitOK},
	{"generate", "generate -m tales.flash.safetensors --draft tales.flash.safetensors -n 4 Once",
		exitOK},
	{"generate-batch", "generate -m tales.flash.safetensors --prompts words.txt -n 2", exitOK},
	{"calibrate", "calibrate -t tales.trace.arrow -m tales.flash.safetensors --io mem " +
		"--measure-tokens 2 --dram 95% -o prefix.json", exitOK},
	{"calibrate", "calibrate -t tales.trace.arrow -m tales.flash.safetensors --io mem " +
		"--measure-tokens 2 --step 5", exitOK},
	{"eval", "eval -m tales.flash.safetensors --text words.txt --max-tokens 8 --context 8 -d " +
		"m1-max --shares 5%", exitOK},
	{"eval", "eval -m tales.flash.safetensors --text words.txt --max-tokens 8 --context 8",
		exitOK},
	{"train-low-rank", "train -t learn.trace.arrow --rank 2 --epochs 1 --device m1-max -m " +
		"tales.flash.safetensors -o low.predictor.safetensors", exitOK},
	{"train-low-rank", "train -t judge.trace.arrow --evaluate low.predictor.safetensors", exitOK},
	{"train-low-rank", "train --import checkpoint sparse.safetensors -m " +
		"tales.flash.safetensors -o " +
		"deja.predictor.safetensors", exitOK},
	{"train-centroid", "train -t learn.trace.arrow --kind centroid --centroids 4 --epochs 1 " +
		"--device m1-max -o sets.predictor.safetensors", exitOK},
	{"eval", "eval -m tales.flash.safetensors --text words.txt --max-tokens 8 --context 8 " +
		"--predictor low.predictor.safetensors", exitOK},
	{"device-energy", "device energy tiny.run.arrow", exitOK},
	{"device-energy", "device energy tiny.run.arrow -t tiny.trace.arrow --compute-watts 20 " +
		"--idle-watts 2..5", exitOK},
	{"device-wear", "device wear tiny.run.arrow --tokens-per-day 1000 --hot 0.8:0.2", exitOK},
	{"device-wear", "device wear tiny.run.arrow --tokens-per-day 0 --tbw 600TB", exitOK},
	{"names", "device wear --drive list", exitOK},
	{"doctor", "doctor", exitOK},
	{"version", "version", exitOK},
	{"reproduce", "reproduce --table flash", exitOK},
	{"reproduce", "reproduce --table neuro", exitOK},
}

// anyVerdict stands for exitOK or exitValidation, where the outcome depends on this machine's
// clock.
const anyVerdict = -1

// TestDocumentsMatchTheirSchemas runs every kind of document and checks it against its schema. Each
// schema has a command line here.
func TestDocumentsMatchTheirSchemas(t *testing.T) {
	t.Setenv(asProgram, "1") // of the child that "trace check" starts
	trainWorkspace(t)
	sparseCheckpoint(t)
	badImages(t)
	linkFixture(t, "devicemodels/fio/testdata/grid.json", "grid.json")
	linkFixture(t, "traces/arrivals/testdata/azure-2024.csv", "azure.csv")
	list := schemas(t)
	unused := maps.Clone(list)
	for _, name := range parts {
		delete(unused, name)
	}
	for _, d := range documents {
		_, first := unused[d.schema]
		delete(unused, d.schema)
		t.Run(d.line, func(t *testing.T) {
			schema := list[d.schema]
			if schema == nil {
				t.Fatalf("there is no schema %s", d.schema)
			}
			o := command(append(words(t, d.line), "--json")...)
			verdict := d.code == anyVerdict && (o.code == exitOK || o.code == exitValidation)
			if o.code != d.code && !verdict {
				t.Fatalf("exit %d, want %d\n%s", o.code, d.code, o.stderr)
			}
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(o.stdout))
			if err != nil {
				t.Fatalf("%v\n%s", err, o.stdout)
			}
			if err := schema.Validate(doc); err != nil {
				t.Fatalf("%v\n%s", err, o.stdout)
			}
			envelope := doc.(map[string]any)
			for _, word := range words(t, d.line) {
				inputs := envelope["inputs"].(map[string]any)
				if isFile(word) && inputs[word] == nil && !strings.Contains(d.line, "-o "+word) {
					t.Errorf("%s is not among the inputs %v", word, inputs)
				}
			}
			checkSchemaBites(t, schema, envelope)
			if first {
				inOtherFormats(t, d.line, o.code)
			}
		})
	}
	for _, d := range composed(t) {
		delete(unused, d.Name)
		var text strings.Builder
		if err := report.Write(&text, d, report.Options{Format: "json", Origin: report.Origin{
			Tool: Tool, Command: "windrow " + d.Name}}); err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		if err := list[d.Name].Validate(doc); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		checkSchemaBites(t, list[d.Name], doc.(map[string]any))
	}
	if len(unused) > 0 {
		t.Errorf("no command line prints %v", slices.Sorted(maps.Keys(unused)))
	}
}

// composed are documents of verbs that measure a disk, a GPU or minutes of reads, made of results
// that need none of them.
func composed(t *testing.T) []*document.Document {
	t.Helper()
	preset, err := devicemodels.Preset("m1-max")
	if err != nil {
		t.Fatal(err)
	}
	linkFixture(t, gpuFixture, "gpu.device.yaml")
	withGPU, err := devicemodels.Load(t.Context(), "gpu.device.yaml")
	if err != nil {
		t.Fatal(err)
	}
	run, err := traces.ReadRun(t.Context(), "tiny.run.arrow")
	if err != nil {
		t.Fatal(err)
	}
	same, err := compare.Compare(run, run, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	outcome := &validate.Outcome{Comparison: same, Simulated: run, Measured: run,
		Case:  validate.Case{Parallel: 4, Chunk: 4096, Policy: policy.SlidingWindow(2)},
		Drift: replay.Drift{Rates: []units.Rate{1}}, Mode: flashio.Mode{Notes: []string{}}}
	suite := &validate.SuiteResult{Name: "emulated device", Kind: "emulated", Tolerance: 3,
		Outcomes: []*validate.Outcome{outcome}, Device: preset, Rank: 1}
	fitted := &validate.FittedResult{Name: "fitted", Kind: "measured", Device: preset,
		Outcomes: []validate.FittedOutcome{{Outcome: outcome, Fio: same}, {Outcome: outcome}},
		Failed:   1, FioErrors: &validate.Errors{}}
	shown := &demo.Result{Model: "tales", Large: "opt-125m", Verdict: compare.Pass,
		Reasons: []string{}, Predicted: document.Estimate{Value: 3, Basis: "measured"}}
	return []*document.Document{shown.Document(), deviceDocument(preset), gpuDocument(withGPU.GPU),
		checkDocument("a stand-in", 12), fitted.Document(),
		validate.SuitesDocument([]*validate.SuiteResult{suite, suite})}
}

// inOtherFormats runs a line of documents in the formats besides JSON: each prints something, and
// the exit code does not depend on the format.
func inOtherFormats(t *testing.T, line string, code int) {
	t.Helper()
	for _, format := range report.Formats() {
		if format == "json" {
			continue
		}
		if o := command(append(forced(words(t, line)), "--format", format)...); o.code != code ||
			strings.TrimSpace(o.stdout) == "" {
			t.Errorf("--format %s: exit %d, want %d, and %d bytes\n%s", format, o.code, code,
				len(o.stdout), o.stderr)
		}
	}
}

// undocumented are the verbs without a line in documents, each with the reason.
var undocumented = map[string]string{
	"completion": "prints a script for a shell",
	"man":        "prints a page for man",
	"probe":      "measures the disk for seconds; its document is among the composed",
	"demo":       "measures the disk for a minute; its document is among the composed",
}

// TestEveryVerbPrintsADocument finds a line in documents for every verb, or the reason for none.
func TestEveryVerbPrintsADocument(t *testing.T) {
	reasons := maps.Clone(undocumented)
	var walk func(list []*cli.Command, path string)
	walk = func(list []*cli.Command, path string) {
		for _, c := range list {
			verb := strings.TrimSpace(path + " " + c.Name)
			if len(c.Subcommands) > 0 {
				walk(c.Subcommands, verb)
				continue
			}
			printed := slices.ContainsFunc(documents, func(d documented) bool {
				return strings.HasPrefix(d.line+" ", verb+" ")
			})
			if _, excused := reasons[verb]; printed == excused {
				t.Errorf("%s: a line in documents: %v, a reason for none: %v", verb, printed,
					excused)
			}
			delete(reasons, verb)
		}
	}
	walk(commandsOf(), "")
	for verb := range reasons {
		t.Errorf("there is no verb %s", verb)
	}
}

// checkSchemaBites changes a good document in ways that every schema must notice.
func checkSchemaBites(t *testing.T, schema *jsonschema.Schema, doc map[string]any) {
	t.Helper()
	for key := range maps.Clone(doc) {
		value := doc[key]
		delete(doc, key)
		if schema.Validate(doc) == nil {
			t.Errorf("the schema takes a document without %q", key)
		}
		doc[key] = value
	}
	doc["schema"] = "windrow/other/1"
	if schema.Validate(doc) == nil {
		t.Error("the schema takes a document of another name")
	}
	doc["schema"], doc["result"] = schemaNamed(schema), map[string]any{}
	if schema.Validate(doc) == nil {
		t.Error("the schema takes an empty result")
	}
}

// schemaNamed is the name in the envelope, "windrow/sim/1" for the schema "urn:windrow:sim:1".
func schemaNamed(schema *jsonschema.Schema) string {
	id := strings.TrimSuffix(schema.ID, "#")
	return strings.ReplaceAll(strings.TrimPrefix(id, "urn:"), ":", "/")
}

// TestSchemasAreDocumented finds every schema in docs/schemas.md.
func TestSchemasAreDocumented(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/schemas.md"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := schemaFiles.ReadDir("schemas")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.Contains(string(text), "(../cmd/windrow/cli/schemas/"+e.Name()+")") {
			t.Errorf("docs/schemas.md has no line for schemas/%s", e.Name())
		}
	}
	if len(entries) < 2 {
		t.Errorf("%d schemas", len(entries))
	}
}

// resultOf decodes the result of a document.
func resultOf[T any](t *testing.T, text string) (result T) {
	t.Helper()
	doc := struct{ Result *T }{&result}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return result
}
