package boundaries

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// flashCalls are the methods through which reads reach a flash.Station, and those that make one.
var flashCalls = []string{"Batch", "Submit", "Take", "NewStation"}

// readsFlash lists the files of the product that may call them. The simulator carries out a layer
// in one place, sim.Machine. A study that read the flash itself would have a step of its own, and
// could decide, plan or charge differently.
var readsFlash = map[string][]string{
	"sim/machine.go": {"Batch", "Submit", "NewStation"},
	"sim/sim.go":     {"NewStation"}, // Config.NewStation
	// Prefetches go on while a layer computes.
	"sim/prefetcher.go": {"Submit", "Take"},
	// A table of times is made of batches, and audited by them.
	"sim/sweep/table.go": {"Batch", "NewStation"},
	"sim/sweep/audit.go": {"Batch", "NewStation"},
	// The rates of a drive alone, which has no layers.
	"sim/reproduce/flash.go": {"Batch", "NewStation"},
}

// TestOneStep fails if a file of the product outside readsFlash calls the flash. The packages of
// devicemodels are the flash itself.
func TestOneStep(t *testing.T) {
	used := map[string][]string{}
	walkSources(t, func(pkg, file string) {
		if strings.HasPrefix(pkg, "devicemodels") {
			return
		}
		src, err := parser.ParseFile(token.NewFileSet(), "../../"+file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range stationCalls(pkg, src) {
			used[file] = append(used[file], call)
			if !slices.Contains(readsFlash[file], call) {
				t.Errorf("%s calls %s of the flash: let sim.Machine carry out the layer", file,
					call)
			}
		}
	}, false)
	for file, calls := range readsFlash {
		for _, call := range calls {
			if !slices.Contains(used[file], call) {
				t.Errorf("%s may call %s of the flash, which it does not: remove it", file, call)
			}
		}
	}
}

// knowsFlash reports whether a package may import the flash model, or package sim, which hands out
// a Station. The flashCalls of other packages are other methods by the same names.
func knowsFlash(pkg string) bool {
	rules := allowed[owner(pkg)]
	return slices.Contains(rules, "devicemodels/flash") || slices.Contains(rules, "sim") ||
		shell(pkg)
}

// stationCalls returns the names of flashCalls that a file of a package calls as methods or as
// functions of another package.
func stationCalls(pkg string, src *ast.File) (calls []string) {
	if !knowsFlash(pkg) {
		return nil
	}
	ast.Inspect(src, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(flashCalls, f.Sel.Name) {
			calls = append(calls, f.Sel.Name)
		}
		return true
	})
	return calls
}

// TestOneStepNotices plants a call.
func TestOneStepNotices(t *testing.T) {
	const planted = `package adaptive
func (r *runner) layer() { batch, err := r.station.Batch(r.now, r.reads); use(batch, err) }`
	src, err := parser.ParseFile(token.NewFileSet(), "planted.go", planted, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{"sim/adaptive", "sim/serving", "cmd/windrow/cli"} {
		if calls := stationCalls(pkg, src); !slices.Equal(calls, []string{"Batch"}) {
			t.Errorf("%s: a call of Station.Batch is seen as %v", pkg, calls)
		}
	}
}
