package traces

import "golang.org/x/sys/unix"

// limitMemory bounds the address space of this process: an allocation beyond it fails, and the Go
// runtime then exits.
func limitMemory(n int64) error {
	return unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: uint64(n), Max: uint64(n)})
}
