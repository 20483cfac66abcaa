package boundaries

import (
	"fmt"
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

// allowed lists what each package may import of this module, besides its own internal packages.
// Test files are free: a test may bring together what the program keeps apart.
var allowed = map[string][]string{
	"internal/units":      {},
	"internal/bounds":     {},
	"internal/mask":       {},
	"internal/rng":        {},
	"internal/nearest":    {},
	"internal/ioengine":   {},
	"internal/boundaries": {},
	"internal/reference":  {},
	"internal/document":   {"internal/units"},
	"internal/tell":       {"internal/refusal"},
	"internal/refusal":    {},
	// Files that appear whole or not at all; outputtest has disks that fail.
	"internal/output":            {"internal/refusal"},
	"internal/output/outputtest": {"internal/output"},
	"internal/clock":             {"internal/units"},
	"internal/input":             {"internal/plain", "internal/refusal", "internal/units"},
	"internal/plain":             {},
	"internal/guard":             {},
	"internal/input/inputtest":   {"internal/input"},

	"kernels/ref": {},
	"kernels/cpu": {"kernels/ref"},
	// The device code is text; the stand-in for a device is for tests.
	"kernels/cuda":         {"kernels/ref", "internal/units", "internal/refusal"},
	"kernels/source":       {},
	"kernels/cuda/standin": {"kernels/cuda", "kernels/source"},
	"kernels/cuda/suite":   {"kernels/cuda", "kernels/ref"},
	// A driver beneath kernels/cuda, with the same kernels.
	"kernels/metal": {"kernels/cuda", "kernels/source", "internal/units", "internal/refusal"},
	"kernels/metal/standin": {"kernels/cuda", "kernels/cuda/standin", "kernels/metal",
		"kernels/source"},

	"traces": {"internal/bounds", "internal/guard", "internal/input", "internal/output",
		"internal/document",
		"internal/mask", "internal/units",
		"internal/refusal", "internal/decisions/memory"},
	"traces/shapes": {"internal/nearest", "traces"},
	"traces/batch":  {"internal/mask", "traces"},
	"traces/stats": {"internal/document", "internal/mask", "internal/units", "traces",
		"traces/batch"},
	"traces/synth": {"internal/mask", "internal/units", "internal/rng", "traces",
		"traces/shapes", "traces/stats"},
	"traces/compare":             {"internal/clock", "internal/units", "traces"},
	"traces/whatif":              {"internal/document", "internal/mask", "internal/rng", "traces"},
	"traces/parquet":             {},
	"traces/parquet/parquettest": {"traces/parquet"},
	"traces/arrivals":            {"internal/input", "internal/document", "internal/units"},

	"devicemodels": {"internal/bounds", "internal/input", "internal/output", "internal/units",
		"internal/ioengine",
		"internal/rng", "internal/nearest", "devicemodels/flash", "internal/refusal",
		"internal/document"},
	"devicemodels/flash":  {"internal/units", "internal/rng", "devicemodels/des"},
	"devicemodels/energy": {"internal/bounds", "internal/units"},
	"devicemodels/fio": {"internal/bounds", "internal/input", "internal/units", "internal/rng",
		"internal/ioengine", "internal/refusal",
		"devicemodels", "devicemodels/flash"},
	"devicemodels/wear": {"internal/bounds", "internal/units", "internal/refusal"},

	"internal/decisions/policy":   {"internal/mask", "internal/units", "internal/nearest"},
	"internal/decisions/layout":   {"internal/bounds", "internal/refusal", "internal/units"},
	"internal/decisions/schedule": {"internal/units", "internal/nearest"},
	"internal/decisions/memory": {"internal/mask", "internal/refusal", "internal/units",
		"internal/decisions/layout",
		"internal/decisions/policy"},
	"engine/flashio": {"internal/units", "internal/ioengine", "engine/flashio/uring",
		"internal/refusal"},
	"engine/flashio/uring": {"internal/units"},
	"engine/checkpoint": {"internal/input", "internal/output", "kernels/ref",
		"engine/checkpoint/gguf", "engine/checkpoint/torch",
		"internal/refusal"},
	// What the formats share is inside engine/checkpoint, which shows it to everyone else.
	"engine/checkpoint/gguf":  {"engine/checkpoint/internal/tensor", "kernels/ref"},
	"engine/checkpoint/torch": {"engine/checkpoint/internal/tensor"},
	"engine/tokenizer":        {"internal/input", "internal/refusal"},
	"engine/chat": {"internal/input", "internal/refusal", "internal/guard",
		"internal/units"},
	"engine/model": {"internal/refusal", "internal/units", "internal/rng", "engine/checkpoint",
		"internal/decisions/layout", "kernels/ref", "internal/decisions/memory"},
	"engine": {"internal/mask", "internal/units", "internal/rng", "internal/decisions/policy",
		"internal/decisions/layout", "engine/flashio", "engine/model", "kernels/ref",
		"kernels/cpu", "internal/decisions/memory", "internal/decisions/schedule",
		"internal/refusal"},
	// The engine does not know what devices there are: who runs it brings one.
	"engine/cuda": {"internal/mask", "internal/units", "engine", "engine/model",
		"internal/decisions/policy", "kernels/ref", "kernels/cuda", "internal/refusal"},

	"engine/eval": {"engine", "internal/refusal"},
	// A model with everything that runs it. Devices are opened outside.
	"engine/session": {"internal/input", "internal/document", "engine", "internal/refusal",
		"engine/flashio",
		"internal/decisions/layout", "internal/decisions/memory", "internal/decisions/policy",
		"internal/ioengine", "internal/units", "internal/mask", "internal/rng",
		"engine/checkpoint", "engine/predictor", "engine/predictor/centroid", "kernels/cpu",
		"engine/model", "engine/tokenizer", "engine/chat", "internal/decisions/schedule",
		"engine/checkpoint/gguf", "internal/tell", "kernels/ref"},
	"engine/predictor": {"internal/bounds", "internal/input", "internal/mask", "internal/units",
		"internal/rng", "engine/checkpoint",
		"engine/checkpoint/torch", "kernels/ref", "kernels/cpu", "internal/refusal"},
	"engine/predictor/centroid": {"internal/bounds", "internal/document", "internal/input",
		"internal/mask", "internal/units",
		"internal/rng",
		"engine/checkpoint", "kernels/ref", "kernels/cpu"},

	"record": {"internal/document", "internal/mask", "engine", "traces", "kernels/ref",
		"engine/model",
		"engine/session", "internal/refusal", "internal/units", "engine/predictor",
		"engine/predictor/centroid"},
	"record/training": {"engine/predictor/centroid", "internal/refusal", "internal/units",
		"record", "engine", "engine/checkpoint", "engine/predictor", "engine/session",
		"internal/ioengine", "traces", "internal/document", "internal/decisions/schedule",
		"internal/mask", "devicemodels", "internal/rng", "internal/tell"},

	"devicemodels/des": {"internal/units", "internal/refusal"},
	"sim": {"internal/document", "internal/mask", "internal/units", "internal/decisions/launch",
		"internal/decisions/policy", "internal/decisions/layout", "internal/decisions/schedule",
		"devicemodels", "devicemodels/flash", "traces", "internal/refusal", "internal/ioengine"},
	// Batches that requests form by when they come.
	"sim/serving": {"internal/document", "internal/refusal", "internal/mask", "internal/units",
		"internal/rng", "internal/bounds", "internal/decisions/policy", "devicemodels", "sim",
		"sim/sweep",
		"traces", "traces/arrivals", "traces/batch", "internal/tell"},
	"sim/answers": {"internal/document", "internal/refusal", "internal/mask", "internal/units",
		"internal/ioengine", "internal/rng", "internal/decisions/layout", "devicemodels",
		"devicemodels/flash", "sim", "traces", "traces/batch", "traces/shapes", "traces/stats",
		"traces/synth", "internal/decisions/memory", "internal/decisions/policy",
		"internal/tell"},
	// What a Run costs besides time.
	"sim/cost": {"internal/bounds", "devicemodels/energy", "devicemodels/wear",
		"internal/decisions/layout",
		"internal/document", "internal/refusal", "internal/units", "traces"},

	"sim/placement": {"internal/document", "internal/refusal", "internal/mask", "internal/units",
		"internal/decisions/layout", "sim",
		"traces"},

	"sim/sweep": {"internal/bounds", "internal/input", "internal/output", "internal/document",
		"internal/mask", "internal/units", "internal/ioengine", "internal/plain",
		"internal/rng",
		"internal/nearest",
		"internal/decisions/policy", "internal/decisions/layout", "devicemodels",
		"devicemodels/flash", "traces", "traces/batch", "traces/synth", "traces/parquet",
		"traces/whatif", "sim"},

	"sim/adaptive": {"internal/document", "internal/refusal", "internal/mask", "internal/units",
		"internal/decisions/policy", "sim",
		"sim/answers", "traces", "traces/compare", "internal/decisions/memory"},
	"sim/speculative": {"internal/document", "internal/refusal", "internal/mask", "internal/units",
		"internal/rng",
		"devicemodels", "sim",
		"traces"},

	"sim/reproduce": {"internal/document", "internal/units", "internal/ioengine",
		"internal/decisions/layout", "internal/decisions/schedule",
		"devicemodels",
		"devicemodels/flash", "sim", "sim/speculative", "traces", "traces/shapes", "traces/synth",
		"internal/decisions/policy"},

	"replay": {"internal/clock", "internal/document", "internal/units", "internal/rng", "engine",
		"internal/decisions/policy",
		"internal/decisions/layout", "engine/flashio", "engine/model", "traces",
		"traces/compare", "devicemodels", "devicemodels/flash", "internal/refusal",
		"internal/decisions/memory", "internal/decisions/schedule", "engine/session",
		"internal/mask", "internal/bounds"},
	"replay/quality": {"engine", "engine/session", "internal/mask", "record", "traces",
		"engine/eval", "internal/decisions/policy", "internal/document", "internal/refusal",
		"internal/units"},
	"replay/emulated": {"internal/units", "internal/rng", "engine/flashio", "devicemodels/flash"},
	"replay/throttle": {"internal/units", "engine/flashio"},
	"replay/probe": {"internal/bounds", "internal/clock", "internal/input", "internal/output",
		"internal/units", "internal/rng",
		"engine/flashio", "devicemodels",
		"devicemodels/flash", "kernels/cpu", "internal/document"},
	// A GPU is measured by the kernels alone, without an engine.
	"replay/probe/gpu": {"internal/units", "devicemodels", "kernels/ref", "kernels/cuda",
		"internal/document"},
	// The one place that sees both the simulator and the engine.
	"replay/validate": {"internal/document", "internal/units", "internal/decisions/policy",
		"replay", "replay/emulated", "replay/probe", "replay/throttle", "sim",
		"devicemodels/fio", "engine/flashio", "internal/decisions/layout",
		"internal/decisions/schedule", "engine/model", "devicemodels", "devicemodels/flash",
		"traces", "traces/synth", "traces/compare", "internal/ioengine"},
	"replay/validate/demo": {"internal/output", "devicemodels", "engine/flashio", "engine/model",
		"internal/refusal", "internal/rng", "internal/tell", "replay", "replay/validate",
		"traces", "traces/compare", "traces/shapes", "engine", "engine/session",
		"engine/tokenizer", "internal/decisions/layout", "internal/decisions/policy", "record",
		"internal/units", "replay/probe", "traces/synth", "internal/document",
		"internal/ioengine", "sim"},

	"internal/alloctest": {},
	// The drivers that this program brings.
	"cmd/windrow/devices": {"engine/cuda", "engine/model", "engine/session", "internal/units",
		"kernels/cuda", "kernels/metal"},
	"cmd/windrow/report": {"internal/document", "internal/plain", "internal/units", "traces",
		"traces/compare"},
}

// homes says where each library may be imported. One library, one place.
var homes = map[string][]string{
	"github.com/apache/arrow/go/v15":     {"traces"},
	"github.com/google/flatbuffers":      {"traces"},
	"github.com/klauspost/compress":      {"traces"},
	"github.com/pawelgaczynski/giouring": {"engine/flashio/uring"},
	"github.com/ebitengine/purego":       {"kernels/cuda", "kernels/metal"},
	"github.com/go-json-experiment/json": {"engine/tokenizer", "engine/checkpoint",
		"internal/input",
		"devicemodels/fio"},
	"github.com/ardanlabs/jinja": {"engine/chat"},
	"gorgonia.org/cu":            {"kernels/cuda"},
	"github.com/urfave/cli/v2":   {"cmd/windrow/cli"},
	"go.yaml.in/yaml/v3":         {"devicemodels", "sim/sweep"},
	"gonum.org/v1/gonum":         {"devicemodels", "replay", "traces", "sim/reproduce"},
	"golang.org/x/sys": {"engine/flashio", "internal/guard", "internal/output", "kernels/cpu",
		"traces", "replay",
		"cmd/windrow/cli"},
	"golang.org/x/term":        {"cmd/windrow/cli"},
	"golang.org/x/text":        {"engine/tokenizer"},
	"github.com/zeebo/xxh3":    {"engine/model"},
	"golang.org/x/net":         {},
	"github.com/google/go-cmp": {},

	"github.com/santhosh-tekuri/jsonschema": {},
}

func TestImportGraph(t *testing.T) {
	seen := map[string]bool{}
	used := map[[2]string]bool{}
	walkImports(t, func(pkg, file, imported string) {
		seen[pkg] = true
		if shell(pkg) {
			return
		}
		rules, known := allowed[owner(pkg)]
		if !known {
			t.Errorf("%s: package %s has no line in the table of allowed imports", file, pkg)
			return
		}
		inner, ok := strings.CutPrefix(imported, module+"/")
		if !ok || owner(inner) == owner(pkg) {
			return
		}
		used[[2]string{owner(pkg), inner}] = true
		if !slices.Contains(rules, inner) {
			t.Errorf("%s: %s must not import %s", file, pkg, inner)
		}
	})
	for pkg, rules := range allowed {
		if !seen[pkg] && len(rules) > 0 {
			t.Errorf("the table has a line for %s, which does not exist or imports nothing", pkg)
			continue
		}
		for _, inner := range rules {
			if !used[[2]string{pkg, inner}] {
				t.Errorf("the table allows %s to import %s, which it does not: remove the "+
					"allowance", pkg, inner)
			}
		}
	}
}

// shell says whether a package belongs to the command line, which has no line in the table.
// TestShellBindsFlags says what it must not import.
func shell(pkg string) bool { return pkg == "cmd/windrow" || pkg == "cmd/windrow/cli" }

// TestTwoTowers keeps the simulator and the engine apart, each on the shared foundation, and the
// foundation below everything.
func TestTwoTowers(t *testing.T) {
	checkEdges := func(pkg, imported string) error {
		inner, ok := strings.CutPrefix(imported, module+"/")
		if !ok {
			return nil
		}
		from, _, _ := strings.Cut(pkg, "/")
		to, _, _ := strings.Cut(inner, "/")
		switch {
		case from == "sim" && to == "engine", from == "engine" && to == "sim":
			return fmt.Errorf("%s imports %s: simulator and engine share internal/decisions and "+
				"nothing else", pkg, inner)
		case from == "internal" && to != "internal":
			return fmt.Errorf("%s imports %s: internal is the foundation and stands on nothing",
				pkg, inner)
		case to == "cmd" && from != "cmd":
			return fmt.Errorf("%s imports %s: the shell is the roof", pkg, inner)
		}
		return nil
	}
	walkImports(t, func(pkg, file, imported string) {
		if err := checkEdges(pkg, imported); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	})
	for _, edge := range [][2]string{{"sim/sweep", "engine/model"}, {"engine", "sim"},
		{"internal/units", "traces"}, {"replay", "cmd/windrow/report"}} {
		if checkEdges(edge[0], module+"/"+edge[1]) == nil {
			t.Errorf("an import of %s by %s is not noticed", edge[1], edge[0])
		}
	}
}

// TestShellBindsFlags keeps the command line apart from kernels, policies, predictors and
// checkpoints: verbs fill in the configuration of a library and print its result.
func TestShellBindsFlags(t *testing.T) {
	checkEdge := func(pkg, imported string) error {
		inner, ok := strings.CutPrefix(imported, module+"/")
		if !ok || !shell(pkg) {
			return nil
		}
		for _, logic := range []string{"kernels", "internal/decisions/policy", "engine/predictor",
			"engine/checkpoint"} {
			if inner == logic || strings.HasPrefix(inner, logic+"/") {
				return fmt.Errorf("%s imports %s: the shell binds flags; call a library", pkg,
					inner)
			}
		}
		return nil
	}
	walkImports(t, func(pkg, file, imported string) {
		if err := checkEdge(pkg, imported); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	})
	for _, inner := range []string{"kernels/cpu", "internal/decisions/policy", "engine/predictor",
		"engine/predictor/centroid", "engine/checkpoint/gguf"} {
		if checkEdge("cmd/windrow/cli", module+"/"+inner) == nil {
			t.Errorf("an import of %s by the shell is not noticed", inner)
		}
		if err := checkEdge("engine/session", module+"/"+inner); err != nil {
			t.Errorf("a library: %v", err)
		}
	}
}

// owner maps an internal package to the package that it belongs to: traces/internal/arrowfile to
// traces.
func owner(pkg string) string {
	if at := strings.Index(pkg, "/internal/"); at > 0 {
		return pkg[:at]
	}
	return pkg
}

func TestLibrariesStayInOnePlace(t *testing.T) {
	walkImports(t, func(pkg, file, imported string) {
		if imported == module || strings.HasPrefix(imported, module+"/") ||
			!strings.Contains(strings.Split(imported, "/")[0], ".") {
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

// walkImports calls f for every import of every source file of the module that is not a test,
// whatever its build tags.
func walkImports(t *testing.T, f func(pkg, file, imported string)) {
	t.Helper()
	walkSources(t, func(pkg, file string) {
		src, err := parser.ParseFile(token.NewFileSet(), "../../"+file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range src.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			f(pkg, file, imported)
		}
	}, false)
}

// walkSources calls f for every source file of the module, whatever its build tags; tests says
// whether test files are among them. The names are relative to the root of the repository.
func walkSources(t *testing.T, f func(pkg, file string), tests bool) {
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
			hidden := strings.HasPrefix(d.Name(), ".") && rel != "."
			if rel == "tools" || d.Name() == "testdata" || hidden {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") && !tests {
			return nil
		}
		files++
		rel = filepath.ToSlash(rel)
		f(path.Dir(rel), rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Fatalf("only %d files were read: the test looks in the wrong place", files)
	}
}
