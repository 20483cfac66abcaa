//go:build amd64 || arm64

package standin

import (
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/cuda/standin"
	"github.com/windrow-sim/windrow/kernels/source"
)

//go:embed library/shim.cc library/metal_stdlib
var library embed.FS

// roomBytes is the threadgroup memory that the library has, and that package metal reserves for
// each launch.
const roomBytes = 1024

// Library builds the kernels into a library in the user's cache, unless it is there, and returns
// its path. The library also has the symbols of CUDA's driver, which launch the kernels. The test
// is skipped where there is no C++ compiler.
func Library(t testing.TB) string {
	t.Helper()
	text, err := source.Metal()
	if err != nil {
		t.Fatal(err)
	}
	files := standin.Emulator(t)
	files["kernels.metal"], files["registered.h"] = withoutAttributes(text), parameters(t)
	for _, name := range []string{"shim.cc", "metal_stdlib"} {
		content, err := library.ReadFile("library/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(content)
	}
	return standin.Build(t, "metal", files, fmt.Sprintf("-DROOM=%d", roomBytes))
}

// kernels runs the kernels of the library and reports their errors.
func kernels(t testing.TB) func(name string, arguments []byte, grid [3]int32,
	threads int) (trouble string) {
	t.Helper()
	path := Library(t)
	t.Logf("emulated device: %s", path)
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatalf("standin: %s cannot be loaded: %v", path, err)
	}
	var run func(name string, arguments unsafe.Pointer, bytes int32, grid unsafe.Pointer,
		threads int32, trouble []byte, size int32)
	purego.RegisterLibFunc(&run, handle, "shim_run")
	return func(name string, arguments []byte, grid [3]int32, threads int) string {
		trouble := make([]byte, 256)
		run(name, unsafe.Pointer(unsafe.SliceData(arguments)), int32(len(arguments)),
			unsafe.Pointer(&grid), int32(threads), trouble, int32(len(trouble)))
		text, _, _ := strings.Cut(string(trouble), "\x00")
		return text
	}
}

// parameters lists the kernels with the sizes of their parameters, from the PTX.
func parameters(t testing.TB) string {
	t.Helper()
	var list strings.Builder
	parameter := regexp.MustCompile(`\.param \.[a-z](\d+) `)
	for _, m := range regexp.MustCompile(
		`(?m)^\.visible \.entry (\w+)\(([^)]*)\)`).FindAllStringSubmatch(cuda.PTX(), -1) {
		list.WriteString("REGISTER(" + m[1])
		for _, bits := range parameter.FindAllStringSubmatch(m[2], -1) {
			n, err := strconv.Atoi(bits[1])
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&list, ", %d", n/8)
		}
		list.WriteString(")\n")
	}
	return list.String()
}

// withoutAttributes removes the attributes that bind a kernel's parameters: here they are bound by
// position.
func withoutAttributes(text string) string {
	return regexp.MustCompile(` ?\[\[\w+(\(\d+\))?\]\]`).ReplaceAllString(text, "")
}
