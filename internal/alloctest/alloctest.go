// Package alloctest measures what code allocates, for tests of readers that take hostile files.
// Only tests import it.
package alloctest

import (
	"runtime"
	"strings"
	"testing"
)

// Bytes is what a function allocates on the heap in all, to the byte: package runtime/metrics would
// be off by what every size class has in reserve. What other goroutines allocate meanwhile counts
// too.
func Bytes(do func()) uint64 {
	before := total()
	do()
	return total() - before
}

func total() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// InProportion checks that opening a file of size bytes allocates, beside what is held already, at
// most perByte times its size, and that its error says want: that there is none where want is "".
func InProportion(t *testing.T, size, perByte, held int, want string, open func() error) {
	t.Helper()
	var err error
	used := uint64(held) + Bytes(func() { err = open() })
	t.Logf("%d bytes, %.2f times that allocated; %.200v", size, float64(used)/float64(size), err)
	if ok := err == nil && want == "" || err != nil && want != "" && strings.Contains(err.Error(),
		want); !ok {
		t.Errorf("error %.300v, want %q", err, want)
	}
	if used > uint64(perByte*size) {
		t.Errorf("%d bytes allocated for a file of %d", used, size)
	}
}
