package boundaries

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// bitLoops are the functions of math/bits with which a file would count or walk a mask itself.
var bitLoops = []string{"OnesCount64", "TrailingZeros64", "LeadingZeros64"}

// countsBits lists the files of the product that may call them, beside internal/mask and the
// kernels: their bits are not the units of a layer.
var countsBits = map[string]string{
	"internal/decisions/policy/bound.go": "sets of tokens, walked from the last one",
	"internal/decisions/policy/lists.go": "a set of keys, of which the ends are needed",
	"traces/synth/bits.go":               "the timeline of one unit, one bit per token",
}

// TestMasksAreOneType fails if a file counts or walks bits by itself: a mask.Mask has methods.
func TestMasksAreOneType(t *testing.T) {
	used := map[string]bool{}
	walkSources(t, func(pkg, file string) {
		if pkg == "internal/mask" || strings.HasPrefix(pkg, "kernels") {
			return
		}
		src, err := parser.ParseFile(token.NewFileSet(), "../../"+file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range bitCalls(src) {
			used[file] = true
			if countsBits[file] == "" {
				t.Errorf("%s calls bits.%s: count and walk masks by the methods of mask.Mask", file,
					call)
			}
		}
	}, false)
	for file := range countsBits {
		if !used[file] {
			t.Errorf("%s may count bits, which it does not: remove it from the list", file)
		}
	}
}

// bitCalls returns the functions of bitLoops that a file uses.
func bitCalls(src *ast.File) (calls []string) {
	ast.Inspect(src, func(n ast.Node) bool {
		f, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := f.X.(*ast.Ident); ok && x.Name == "bits" && slices.Contains(bitLoops,
			f.Sel.Name) {
			calls = append(calls, f.Sel.Name)
		}
		return true
	})
	return calls
}

// TestMasksAreOneTypeNotices plants a loop.
func TestMasksAreOneTypeNotices(t *testing.T) {
	const planted = `package sim
func count(need []uint64) (n int) {
	for _, word := range need { n += bits.OnesCount64(word) }
	return n
}`
	src, err := parser.ParseFile(token.NewFileSet(), "planted.go", planted, 0)
	if err != nil {
		t.Fatal(err)
	}
	if calls := bitCalls(src); !slices.Equal(calls, []string{"OnesCount64"}) {
		t.Errorf("a loop that counts a mask is seen as %v", calls)
	}
}
