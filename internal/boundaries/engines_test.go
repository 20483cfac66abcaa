package boundaries

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/windrow-sim/windrow/internal/ioengine"
)

// TestEngineNamesAreSpelledOnce: source files take the names of I/O engines that read directly from
// internal/ioengine. ("mmap" and "mem" are words of other meanings too.)
func TestEngineNamesAreSpelledOnce(t *testing.T) {
	names := ioengine.DirectNames()
	walkSources(t, func(pkg, file string) {
		if pkg == "internal/ioengine" {
			return
		}
		tree, err := parser.ParseFile(token.NewFileSet(), "../../"+file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				if err == nil && slices.Contains(names, text) {
					t.Errorf("%s spells %q: take it from internal/ioengine", file, text)
				}
			}
			return true
		})
	}, false)
}
