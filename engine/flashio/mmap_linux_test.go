package flashio

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// filePages is the memory of the process that is mapped from files, in bytes.
func filePages(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	shared, err := strconv.Atoi(strings.Fields(string(text))[2])
	if err != nil {
		t.Fatal(err)
	}
	return shared * os.Getpagesize()
}

// The pages of a mapped image are no memory of the process: a replay within a budget of 148 MiB had
// 234 MiB of them.
func TestField_O14_MappedPagesAreGivenUp(t *testing.T) {
	const size, room = 64 << 20, 24 << 20
	r := openSubject(t, subject{opt: Options{Engine: EngineMmap, Direct: DirectOff}},
		writeImage(t, t.TempDir(), size))
	before, most := filePages(t), 0
	buf := make([]byte, 64<<10)
	for round := range 2 { // the second from the page cache
		for off := int64(0); off < size; off += int64(len(buf)) {
			if err := r.ReadBatch([]Request{{off, buf}}); err != nil {
				t.Fatal(err)
			}
			if off%(4<<20) == 0 {
				most = max(most, filePages(t)-before)
			}
		}
		if most = max(most, filePages(t)-before); most > room {
			t.Errorf("round %d: %d MiB of the file are mapped", round, most>>20)
		}
	}
}
