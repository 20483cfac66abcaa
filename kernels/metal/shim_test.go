package metal

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

// emulator is where the stand-in for a CUDA device has its fibers and its driver.
const emulator = "../cuda/standin/library"

// TestShim runs the text on the host.
func TestShim(t *testing.T) {
	driver, err := cuda.OpenLibrary(shim(t))
	if err != nil {
		t.Fatal(err)
	}
	d, err := cuda.Open(driver, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("emulated device: %s", d.Facts.Name)
	suite(t, d)
}

// shim builds the stand-in with the kernels of Metal in place of those of CUDA unless the user's cache has it, and returns its path.
func shim(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("the shim is for Linux on amd64 and arm64")
	}
	compiler := ""
	for _, name := range []string{os.Getenv("CXX"), "g++", "clang++"} {
		if found, err := exec.LookPath(name); err == nil && compiler == "" {
			compiler = found
		}
	}
	if compiler == "" {
		t.Skip("the shim needs a C++ compiler: install g++")
	}
	folder, _ := written(t, "kernels.metal", withoutAttributes(text(t)))
	if err := os.WriteFile(filepath.Join(folder, "registered.h"), []byte(parameters(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-std=c++17", "-O1", "-fPIC", "-shared", "-U_FORTIFY_SOURCE", "-ffp-contract=off", "-fvisibility=hidden", "-Wno-unknown-pragmas",
		fmt.Sprintf("-DROOM=%d", roomBytes), "-I" + emulator, "-Itestdata/shim", "testdata/shim/shim.cc", emulator + "/driver.cc", emulator + "/fibers.cc"}
	path := filepath.Join(cache(t), "metal-"+hash(t, folder, compiler+strings.Join(args, " "))+".so")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	// A file under its final name is whole, whenever the test is stopped.
	part := fmt.Sprintf("%s.%d.part", path, os.Getpid())
	defer os.Remove(part)
	out, err := exec.CommandContext(t.Context(), compiler, append(args, "-I"+folder, "-o", part)...).CombinedOutput()
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	return path
}

// parameters lists the kernels with the sizes of their parameters, as the PTX has them.
func parameters(t *testing.T) string {
	t.Helper()
	var list strings.Builder
	parameter := regexp.MustCompile(`\.param \.[a-z](\d+) `)
	for _, m := range regexp.MustCompile(`(?m)^\.visible \.entry (\w+)\(([^)]*)\)`).FindAllStringSubmatch(ptx(t), -1) {
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

// hash is of all that the library is made of.
func hash(t *testing.T, folder, command string) string {
	t.Helper()
	h := sha256.New()
	h.Write([]byte(command))
	for _, pattern := range []string{folder + "/*", "testdata/shim/*", emulator + "/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < 2 {
			t.Fatalf("%s: %q, %v", pattern, files, err)
		}
		for _, name := range files {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(h, "%d\n%s", len(content), content)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:12])
}

// cache is the user's, or where there is none the test's own.
func cache(t *testing.T) string {
	t.Helper()
	user, err := os.UserCacheDir()
	if err != nil {
		return t.TempDir()
	}
	folder := filepath.Join(user, "windrow-tests")
	if os.MkdirAll(folder, 0o700) != nil {
		return t.TempDir()
	}
	return folder
}
