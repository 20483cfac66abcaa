package boundaries

import (
	"os"
	"strings"
	"testing"
)

// mappings are the files that map a file into memory, each with what guards against a file that
// shrinks. The page faults that follow end the process otherwise.
var mappings = map[string]string{
	"traces/internal/arrowfile/map_unix.go":  "Mapping.Begin and Mapping.End",
	"engine/flashio/mmap.go":                 "copyOut turns the fault into an error",
	"engine/flashio/buffer_unix.go":          "anonymous memory, of no file",
	"kernels/metal/standin/objects_linux.go": "a stand-in for tests, of its own file",
}

// TestMappingsAreGuarded finds every call that maps memory.
func TestMappingsAreGuarded(t *testing.T) {
	unused := map[string]bool{}
	for file := range mappings {
		unused[file] = true
	}
	walkSources(t, func(_, file string) {
		src, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []string{".Mmap(", ".MmapPtr(", "SYS_MMAP"} {
			if !strings.Contains(string(src), call) {
				continue
			}
			delete(unused, file)
			if mappings[file] == "" {
				t.Errorf("%s maps memory (%s); guard it against a file that shrinks and list it",
					file,
					call)
			}
		}
	}, false)
	for file := range unused {
		t.Errorf("%s maps nothing and is listed", file)
	}
}
