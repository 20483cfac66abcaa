package boundaries

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/windrow-sim/windrow"

// allowed lists what each package may import of this module, besides its own internal packages. Test files are free: a test
// may bring together what the program keeps apart.
var allowed = map[string][]string{
	"internal/units":      {},
	"internal/rng":        {},
	"internal/nearest":    {},
	"internal/boundaries": {},
	"internal/reference":  {},

	"kernels/ref": {},
	"kernels/cpu": {"kernels/ref"},
	// The device code is text; the stand-in for a device is for tests.
	"kernels/cuda":         {"kernels/ref", "internal/units"},
	"kernels/cuda/source":  {},
	"kernels/cuda/standin": {"kernels/cuda", "kernels/cuda/source"},
	"kernels/cuda/suite":   {"kernels/cuda", "kernels/ref"},
	// A driver beneath kernels/cuda, with the same kernels.
	"kernels/metal":         {"kernels/cuda", "kernels/metal/source", "internal/units"},
	"kernels/metal/source":  {"kernels/cuda/source"},
	"kernels/metal/standin": {"kernels/cuda", "kernels/cuda/standin", "kernels/metal", "kernels/metal/source"},

	"traces":                 {"internal/units", "internal/rng"},
	"traces/shapes":          {"internal/units", "internal/nearest", "traces"},
	"traces/batch":           {"traces"},
	"traces/stats":           {"internal/units", "traces", "traces/batch"},
	"traces/synth":           {"internal/units", "internal/rng", "traces", "traces/shapes"},
	"traces/compare":         {"internal/units", "traces"},
	"traces/whatif":          {"internal/rng", "traces"},
	"traces/table":           {},
	"traces/table/tabletest": {"traces/table"},
	"traces/arrivals":        {"internal/units"},

	"devicemodels":        {"internal/units", "internal/rng", "internal/nearest", "devicemodels/flash"},
	"devicemodels/flash":  {"internal/units", "internal/rng", "sim/des"},
	"devicemodels/energy": {"internal/units"},
	"devicemodels/fio":    {"internal/units", "internal/rng", "devicemodels", "devicemodels/flash"},
	"devicemodels/wear":   {"internal/units"},

	"engine/policy":        {"internal/units", "internal/nearest"},
	"engine/layout":        {"internal/units"},
	"engine/flashio":       {"internal/units", "internal/rng", "engine/layout", "engine/flashio/uring"},
	"engine/flashio/uring": {"internal/units"},
	"engine/rowcache":      {"engine/policy"},
	"engine/checkpoint":    {"internal/units", "kernels/ref", "engine/checkpoint/gguf", "engine/checkpoint/torch"},
	// What the formats share is inside engine/checkpoint, which shows it to everyone else.
	"engine/checkpoint/gguf":  {"engine/checkpoint/internal/tensor", "kernels/ref"},
	"engine/checkpoint/torch": {"engine/checkpoint/internal/tensor"},
	"engine/tokenizer":        {},
	"engine/model":            {"internal/units", "internal/rng", "engine/checkpoint", "engine/layout", "kernels/ref"},
	"engine": {"internal/units", "internal/rng", "engine/policy", "engine/layout", "engine/flashio", "engine/rowcache", "engine/model",
		"kernels/ref", "kernels/cpu"},
	// The engine does not know what devices there are: who runs it brings one.
	"engine/cuda": {"internal/units", "engine", "engine/model", "engine/policy", "kernels/ref", "kernels/cuda"},

	"engine/eval":               {"engine"},
	"engine/predictor":          {"internal/units", "internal/rng", "engine/checkpoint", "engine/checkpoint/torch", "kernels/ref", "kernels/cpu"},
	"engine/predictor/centroid": {"internal/units", "internal/rng", "engine/checkpoint", "kernels/ref", "kernels/cpu"},

	"record": {"engine", "traces", "kernels/ref"},

	"sim/des": {"internal/units"},
	"sim":     {"internal/units", "engine/launch", "engine/policy", "engine/layout", "devicemodels", "devicemodels/flash", "traces"},
	// Decisions and times are the simulator's; it adds the sequential baseline.
	"sim/batching": {"internal/units", "engine/layout", "devicemodels", "sim", "traces", "traces/batch"},
	// Batches that requests form by when they come.
	"sim/serving": {"internal/units", "internal/rng", "engine/layout", "engine/policy", "devicemodels", "devicemodels/flash", "sim", "sim/sweep", "traces", "traces/arrivals", "traces/batch"},
	"sim/answers": {"internal/units", "internal/rng", "engine/layout", "devicemodels", "devicemodels/flash", "sim", "traces", "traces/shapes", "traces/stats", "traces/synth"},

	"sim/placing": {"internal/units", "engine/layout", "devicemodels/flash", "sim", "traces"},

	"sim/feasible": {"internal/units", "devicemodels", "devicemodels/flash", "traces", "traces/shapes", "traces/synth"},

	"sim/sweep": {"internal/units", "internal/rng", "internal/nearest", "engine/policy", "engine/layout", "devicemodels", "devicemodels/flash", "traces", "traces/batch", "traces/synth", "traces/table", "traces/whatif", "sim"},

	"sim/adaptive":    {"internal/units", "engine/policy", "engine/layout", "devicemodels/flash", "sim", "sim/answers", "traces", "traces/compare"},
	"sim/speculative": {"internal/units", "internal/rng", "engine/policy", "engine/layout", "devicemodels", "devicemodels/flash", "sim", "traces"},

	"sim/reproduce": {"internal/units", "engine/layout", "devicemodels", "devicemodels/flash", "sim", "sim/speculative", "traces", "traces/shapes", "traces/synth"},

	"replay":          {"internal/units", "internal/rng", "engine", "engine/policy", "engine/layout", "engine/flashio", "engine/model", "traces", "traces/compare", "devicemodels", "devicemodels/flash"},
	"replay/emulated": {"internal/units", "internal/rng", "engine/flashio", "devicemodels/flash"},
	"replay/throttle": {"internal/units", "engine/flashio"},
	"replay/probe":    {"internal/units", "internal/rng", "engine/flashio", "devicemodels", "devicemodels/flash", "kernels/cpu"},
	// A GPU is measured by the kernels alone, without an engine.
	"replay/probe/gpu": {"internal/units", "devicemodels", "kernels/ref", "kernels/cuda"},
	// The one place that sees both the simulator and the engine.
	"replay/validate": {"internal/units", "engine/policy", "replay", "replay/emulated", "replay/probe", "replay/throttle", "sim", "devicemodels/fio", "engine/flashio", "engine/layout", "engine/model",
		"devicemodels", "devicemodels/flash", "traces", "traces/synth", "traces/compare"},

	"internal/alloctest": {},
	"internal/report":    {"internal/units", "traces", "traces/compare"},
}

// homes says where each library may be imported. One library, one place.
var homes = map[string][]string{
	"github.com/apache/arrow/go/v15":     {"traces"},
	"github.com/google/flatbuffers":      {"traces"},
	"github.com/klauspost/compress":      {"traces"},
	"github.com/pawelgaczynski/giouring": {"engine/flashio/uring"},
	"github.com/ebitengine/purego":       {"kernels/cuda", "kernels/metal"},
	"github.com/go-json-experiment/json": {"engine/tokenizer", "engine/checkpoint"},
	"gorgonia.org/cu":                    {"kernels/cuda"},
	"github.com/urfave/cli/v2":           {"internal/cli"},
	"go.yaml.in/yaml/v3":                 {"devicemodels", "sim/sweep"},
	"gonum.org/v1/gonum":                 {"devicemodels", "replay", "traces"},
	"golang.org/x/sys":                   {"engine/flashio", "kernels/cpu", "traces", "replay", "internal/cli"},
	"golang.org/x/term":                  {"internal/cli"},
	"golang.org/x/net":                   {},
	"github.com/google/go-cmp":           {},
}

func TestImportGraph(t *testing.T) {
	seen := map[string]bool{}
	walkImports(t, func(pkg, file, imported string) {
		seen[pkg] = true
		if pkg == "." || pkg == "internal/cli" { // the command line sees everything
			return
		}
		rules, known := allowed[owner(pkg)]
		if !known {
			t.Errorf("%s: package %s has no line in the table of allowed imports", file, pkg)
			return
		}
		if inner, ok := strings.CutPrefix(imported, module+"/"); ok && owner(inner) != owner(pkg) && !slices.Contains(rules, inner) {
			t.Errorf("%s: %s must not import %s", file, pkg, inner)
		}
	})
	for pkg := range allowed {
		if !seen[pkg] && pkg != "internal/boundaries" && pkg != "internal/rng" && pkg != "internal/units" {
			t.Errorf("the table has a line for %s, which has no imports or does not exist", pkg)
		}
	}
}

// owner maps an internal package to the package that it belongs to: traces/internal/arrowfile to traces.
func owner(pkg string) string {
	if at := strings.Index(pkg, "/internal/"); at > 0 {
		return pkg[:at]
	}
	return pkg
}

func TestLibrariesStayInOnePlace(t *testing.T) {
	walkImports(t, func(pkg, file, imported string) {
		if imported == module || strings.HasPrefix(imported, module+"/") || !strings.Contains(strings.Split(imported, "/")[0], ".") {
			return
		}
		for library, places := range homes {
			if imported != library && !strings.HasPrefix(imported, library+"/") {
				continue
			}
			for _, place := range places {
				if pkg == place || strings.HasPrefix(pkg, place+"/") {
					return
				}
			}
			t.Errorf("%s: %s must not import %s: its place is %v", file, pkg, imported, places)
			return
		}
		t.Errorf("%s: %s has no line in the table of libraries", file, imported)
	})
}

// walkImports calls f for every import of every source file of the module that is not a test, whatever its build tags.
func walkImports(t *testing.T, f func(pkg, file, imported string)) {
	t.Helper()
	const root = "../.."
	files := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel == "tools" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && rel != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		files++
		src, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range src.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f(path.Dir(filepath.ToSlash(rel)), rel, imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Fatalf("only %d files were read: the test looks in the wrong place", files)
	}
}
