package guard

import "golang.org/x/sys/unix"

// limitMemory bounds the address space of this process: an allocation beyond it fails, and the Go
// runtime then exits. A lower bound that the process has already stays; raising it is not allowed.
func limitMemory(n int64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &now); err != nil {
		return err
	}
	most := min(uint64(n), now.Max)
	return unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: min(most, now.Cur), Max: most})
}
