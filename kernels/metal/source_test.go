package metal

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/source"
)

// text is the device code as Metal's compiler gets it.
func text(t *testing.T) string {
	t.Helper()
	s, err := source.Metal()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bare is a text without comments.
func bare(s string) string { return regexp.MustCompile(`//[^\n]*`).ReplaceAllString(s, "") }

// TestText: every file of kernels/source that has kernels is in the text once, and port.h is the
// one for Metal.
func TestText(t *testing.T) {
	s := text(t)
	files, err := fs.Glob(source.CUDA, "*.h")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if n := strings.Count(s, "#line 1 \""+name+"\"\n"); n != 1 {
			t.Errorf("%s is in the text %d times", name, n)
		}
	}
	if strings.Contains(s, `#include "`) || strings.Contains(s, "#pragma once") ||
		strings.Contains(s, "__global__") || !strings.Contains(s, "[[buffer(0)]]") {
		t.Error("something is left to include, or port.h is that of CUDA")
	}
}

// TestKernels: the kernels are exactly those of the PTX.
func TestKernels(t *testing.T) {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^[A-Z_]+\((\w+), `).FindAllStringSubmatch(
		bare(text(t)), -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	if want := entries(cuda.PTX()); len(want) == 0 || !slices.Equal(names, want) {
		t.Errorf("kernels %q, want %q", names, want)
	}
}

// objections lists constructs that the Metal Shading Language (Specification, version 3) forbids,
// as far as patterns can tell.
func objections(s string) (list []string) {
	for pattern, why := range map[string]string{
		`\b(double|long|new|delete|virtual|goto|try|catch|throw|dynamic_cast|typeid|thread_local|register|asm|printf|malloc)\b`: "not in the language",
		`\bstd::`:                        "the language has a library of its own",
		`\[[&=]?\]\s*[({]`:               "there are no lambdas",
		`\b\d+\.\d*(e[+-]?\d+)?\b[^f\d]`: "a number without f is a double",
		`\batomic`: "nothing may be summed in an order that depends on " +
			"timing",
	} {
		for _, m := range regexp.MustCompile(pattern).FindAllString(s, -1) {
			list = append(list, m+": "+why)
		}
	}
	for _, m := range regexp.MustCompile(
		`\b((?:exp|log|sqrt|rsqrt|tanh|sin|cos|pow|fabs|erf|fma|fmax|fmin)f)\(`).FindAllStringSubmatch(s, -1) {
		if !strings.Contains(s, "#define "+m[1]+"(") {
			list = append(list, m[1]+": functions have no f at the end, and port.h does not say "+
				"what it is")
		}
	}
	spaces := regexp.MustCompile(
		`\b(GLOBAL|OWN|COMMON|device|thread|threadgroup|constant) (const )?$`)
	pointers := regexp.MustCompile(
		`\b(float|int|char|u16|u32|u64|f16|bf16|q8|q4|W|K|P|uint4|float4|float2)\s*\*\s*(\w+\s*[,)=;+(]|\))`)
	for _, at := range pointers.FindAllStringIndex(s, -1) {
		if !spaces.MatchString(s[:at[0]]) {
			list = append(list, s[max(0, at[0]-30):at[1]]+": a pointer needs an address space")
		}
	}
	return list
}

func TestSource(t *testing.T) {
	for _, o := range objections(bare(text(t))) {
		t.Error(o)
	}
	for _, bad := range []string{
		"double x;", "unsigned long long u;", "std::max(a, b)", "auto f = [](int x) { };",
		"x * 0.5;", "x = 1.e3 ;", "atomic_fetch_add(p, 1)", "v = erff(x);",
		"void f(float *x)", "void f(const int *x, int n)", "((const uint4 *)row)[0]",
		"DEVICE void f(GLOBAL float x, W *w)",
	} {
		if len(objections(bad)) == 0 {
			t.Errorf("%q passes", bad)
		}
	}
	for _, good := range []string{"x * 0.5f;", "0x1p-24f", "(GLOBAL const uint4 *)row",
		"void f(OWN float *to, COMMON float *room)", "n = 4 * k;", "a[i] * (float)b"} {
		if list := objections(good); len(list) != 0 {
			t.Errorf("%q: %q", good, list)
		}
	}
}

// TestWords: kernels/cuda may use names that are words of the language here. For half, which it
// does use, there is a line in port.h.
func TestWords(t *testing.T) {
	words := regexp.MustCompile(
		`\b(kernel|vertex|fragment|mesh|object|visible|device|constant|thread|threadgroup|` +
			`ushort|uint|uchar|ulong|bfloat|sampler|texture|as_type|precise|fast)\b`)
	files, err := fs.Glob(source.CUDA, "*.h")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		content, err := fs.ReadFile(source.CUDA, name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "port.h" {
			continue
		}
		if used := words.FindAllString(bare(string(content)), -1); len(used) != 0 {
			t.Errorf("%s uses %q", name, used)
		}
	}
}

// TestNoRecursion: a function of the text calls none that leads back to it.
func TestNoRecursion(t *testing.T) {
	s := bare(text(t))
	calls := map[string][]string{}
	for _, at := range regexp.MustCompile(
		`DEVICE [\w <>*]*?\b(\w+)\([^{}]*\) \{`).FindAllStringSubmatchIndex(s, -1) {
		depth, end := 1, at[1]
		for ; depth > 0; end++ {
			switch s[end] {
			case '{':
				depth++
			case '}':
				depth--
			}
		}
		for _, m := range regexp.MustCompile(`\b(\w+)\(`).FindAllStringSubmatch(s[at[1]:end], -1) {
			name := s[at[2]:at[3]]
			calls[name] = append(calls[name], m[1])
		}
	}
	if len(calls) < 15 {
		t.Fatalf("only %d functions were found: the test looks in the wrong place", len(calls))
	}
	var visit func(name string, above []string)
	visit = func(name string, above []string) {
		if slices.Contains(above, name) {
			t.Fatalf("%q calls itself", append(above, name))
		}
		for _, next := range calls[name] {
			visit(next, append(slices.Clone(above), name))
		}
	}
	for name := range calls {
		visit(name, nil)
	}
}

// TestRoom: a kernel's SHARED arrays take no more than a launch reserves.
func TestRoom(t *testing.T) {
	s := bare(text(t))
	numbers := map[string]int{}
	for _, m := range regexp.MustCompile(`#define (\w+) (\d+)\b`).FindAllStringSubmatch(s, -1) {
		numbers[m[1]], _ = strconv.Atoi(m[2])
	}
	largest := 0
	for _, kernel := range strings.Split(s, "KERNEL(")[1:] {
		taken := 0
		for _, m := range regexp.MustCompile(
			`\bSHARED\((float|int), \w+, (\w+)\)`).FindAllStringSubmatch(kernel, -1) {
			if numbers[m[2]] == 0 {
				t.Fatalf("%s: %s is not a number that this test knows", m[0], m[2])
			}
			taken += (4*numbers[m[2]] + 15) / 16 * 16
		}
		largest = max(largest, taken)
	}
	if largest != roomBytes {
		t.Errorf("a kernel takes %d bytes of threadgroup memory, a launch reserves %d", largest,
			roomBytes)
	}
}

// written is a folder with the text in it, and its path there.
func written(t *testing.T, name, s string) (folder, path string) {
	t.Helper()
	folder = t.TempDir()
	path = filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder, path
}

// TestAddressSpaces compiles the text as C++ for OpenCL, in which a pointer keeps its address space
// too.
func TestAddressSpaces(t *testing.T) {
	clang, err := exec.LookPath("clang")
	if err != nil {
		t.Skip("telling address spaces apart needs clang 14 or newer")
	}
	check := func(s string) (string, error) {
		_, path := written(t, "kernels.clcpp", s)
		out, err := exec.CommandContext(t.Context(), clang, "-target", "spir64", "-x", "clcpp",
			"-cl-std=clc++2021", "-fsyntax-only",
			"-Itestdata/spaces", path).CombinedOutput()
		return string(out), err
	}
	s := withoutAttributes(text(t))
	out, err := check(s)
	if strings.Contains(out, "invalid value 'clc++2021'") ||
		strings.Contains(out, "no available targets") {
		t.Skip("this clang has no C++ for OpenCL")
	}
	if err != nil {
		t.Errorf("clang: %v\n%s", err, out)
	}
	if out, err := check(strings.ReplaceAll(s, "OWN float *sum", "COMMON float *sum")); err == nil {
		t.Errorf("a pointer of the wrong address space passes:\n%s", out)
	}
}

// TestCompiler gives the text to Metal's own compiler.
func TestCompiler(t *testing.T) {
	if _, err := exec.LookPath("xcrun"); err != nil {
		t.Skip("Metal's compiler comes with Xcode, on macOS")
	}
	if out, err := exec.CommandContext(t.Context(), "xcrun", "-sdk", "macosx", "-f",
		"metal").CombinedOutput(); err != nil {
		t.Skipf("Xcode has no Metal compiler: %s", out)
	}
	folder, path := written(t, "kernels.metal", text(t))
	out, err := exec.CommandContext(t.Context(), "xcrun", "-sdk", "macosx", "metal",
		"-std=metal3.0", "-fno-fast-math", "-c", path,
		"-o", filepath.Join(folder, "kernels.air")).CombinedOutput()
	if err != nil {
		t.Errorf("metal: %v\n%s", err, out)
	}
}

// withoutAttributes removes the attributes that bind a kernel's parameters, which other compilers
// do not know.
func withoutAttributes(s string) string {
	return regexp.MustCompile(` ?\[\[\w+(\(\d+\))?\]\]`).ReplaceAllString(s, "")
}
