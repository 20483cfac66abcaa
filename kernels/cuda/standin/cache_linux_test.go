//go:build amd64 || arm64

package standin_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda/standin"
)

// TestLibrariesAreCompiledOnce: also where the user has no folder for a cache, as in a container
// without HOME. The second test finds the library that the first one left.
func TestLibrariesAreCompiledOnce(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "/proc/none")
	t.Setenv("TMPDIR", temporary)
	files := map[string]string{"one.cc": "extern \"C\" int one() { return 1; }\n"}
	first, paths := os.FileInfo(nil), []string{}
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) { paths = append(paths, standin.Build(t, "one", files)) })
		if len(paths) == 0 {
			t.Skip("there is no C++ compiler")
		}
		info, err := os.Stat(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = info
		}
		if !os.SameFile(first, info) {
			t.Error("the library was compiled again")
		}
	}
	if len(paths) != 2 || paths[0] != paths[1] {
		t.Errorf("libraries are %q; one was wanted", paths)
	}
	// A folder that others could write is not trusted.
	shared := filepath.Join(temporary, "windrow-tests-"+strconv.Itoa(os.Getuid()))
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Run("folder of everyone", func(t *testing.T) {
		if path := standin.Build(t, "one", files); filepath.Dir(path) == shared {
			t.Errorf("the library is in %s, which everyone may write", shared)
		}
	})
}
