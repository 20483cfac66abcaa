//go:build !linux

package guard

// limitMemory does nothing: this kernel does not enforce a limit on address space.
func limitMemory(int64) error { return nil }
