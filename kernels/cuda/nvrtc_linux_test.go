//go:build amd64 || arm64

package cuda_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Variables that name NVIDIA's compiler library and assembler; tools/cuda/ptx.sh fetches both and
// sets these.
const (
	compilerVariable  = "WINDROW_NVRTC" // libnvrtc.so.12
	assemblerVariable = "WINDROW_PTXAS"
)

var update = flag.Bool("update", false, "write kernels.ptx")

// TestPTXAgain makes the PTX anew and compares it with the committed one.
func TestPTXAgain(t *testing.T) {
	library := os.Getenv(compilerVariable)
	if library == "" {
		t.Skip("no compiler for PTX: tools/cuda/ptx.sh fetches one and runs this test")
	}
	_, _, hash := sources(t)
	made := head(hash) + compilePTX(t, library)
	if *update {
		if err := os.WriteFile("kernels.ptx", []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile("kernels.ptx")
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != made {
		t.Error("kernels.ptx is not what the compiler makes of the source; run tools/cuda/ptx.sh")
	}
	if assembler := os.Getenv(assemblerVariable); assembler != "" {
		for _, architecture := range []string{"sm_70", "sm_80", "sm_90"} {
			out, err := exec.CommandContext(t.Context(), assembler, "-arch="+architecture, "-v",
				"kernels.ptx", "-o", filepath.Join(t.TempDir(), "out")).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", architecture, err, out)
			}
			if spilled := strings.Count(string(out), "spill stores") - strings.Count(string(out),
				" 0 bytes spill stores"); spilled != 0 {
				t.Errorf("%s: %d kernels spill registers\n%s", architecture, spilled, out)
			}
		}
	}
}

// compilePTX compiles the source by NVRTC.
func compilePTX(t *testing.T, library string) string {
	t.Helper()
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		t.Fatal(err)
	}
	var (
		create func(program *uintptr, text, name string, headers int32, contents,
			names unsafe.Pointer) int32
		compile          func(program uintptr, options int32, list unsafe.Pointer) int32
		logSize, ptxSize func(program uintptr, size *uint64) int32
		log, ptx         func(program uintptr, text []byte) int32
	)
	for name, function := range map[string]any{"nvrtcCreateProgram": &create,
		"nvrtcCompileProgram": &compile, "nvrtcGetProgramLogSize": &logSize,
		"nvrtcGetProgramLog": &log, "nvrtcGetPTXSize": &ptxSize, "nvrtcGetPTX": &ptx} {
		purego.RegisterLibFunc(function, handle, name)
	}
	names, text, _ := sources(t)
	var headers, contents cStrings
	for _, name := range names {
		if filepath.Ext(name) == ".h" {
			headers.add(name)
			contents.add(text[name])
		}
	}
	var options cStrings
	options.add("--gpu-architecture=compute_70")
	options.add("--std=c++14")
	var program uintptr
	if code := create(&program, text["kernels.cu"], "kernels.cu", int32(len(headers.where)),
		contents.list(), headers.list()); code != 0 {
		t.Fatalf("nvrtcCreateProgram: %d", code)
	}
	result := func(size func(uintptr, *uint64) int32, read func(uintptr, []byte) int32) string {
		var n uint64
		size(program, &n)
		text := make([]byte, n)
		read(program, text)
		return strings.TrimRight(string(text), "\x00")
	}
	if code := compile(program, int32(len(options.where)), options.list()); code != 0 {
		t.Fatalf("nvrtcCompileProgram: %d\n%s", code, result(logSize, log))
	}
	// A third of the lines only say where a conversion begins and ends.
	return strings.NewReplacer("\t// begin inline asm\n", "", "\t// end inline asm\n",
		"").Replace(result(ptxSize, ptx))
}

// cStrings is an array of C strings.
type cStrings struct{ where []*byte }

func (s *cStrings) add(text string) { s.where = append(s.where, &append([]byte(text), 0)[0]) }

func (s *cStrings) list() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s.where)) }
