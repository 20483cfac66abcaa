// Package alloctest measures the allocations of readers of hostile files. Only tests import it.
package alloctest

import (
	"runtime"
	"strings"
	"testing"
)

// Bytes returns the number of heap bytes that a function allocates, to the byte: runtime/metrics
// would include the reserve of every size class. Allocations of other goroutines during the call
// count too. Under the race detector it is 0: there sync.Pool drops at random what it is given, so
// that a reader of JSON allocates up to 25 times as much, and not the same twice.
func Bytes(do func()) uint64 {
	if race {
		do()
		return 0
	}
	before := total()
	do()
	return total() - before
}

func total() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// InProportion checks that opening a file of size bytes allocates in proportion: held plus the
// allocated bytes are at most perByte·size. The error must contain want; "" wants no error.
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
