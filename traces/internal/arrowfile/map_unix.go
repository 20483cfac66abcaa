//go:build unix

package arrowfile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Map maps a whole file for reading. The mapping outlives f. Reading a missing part of a file that
// was truncated while mapped ends the process. Files are therefore replaced by renaming and never
// written in place.
func Map(f *os.File, size int64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	if size != int64(int(size)) {
		return nil, errors.New("the file is larger than this system's address space")
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", size, err)
	}
	return b, nil
}

// Unmap releases the memory of Map.
func Unmap(b []byte) error {
	if b == nil {
		return nil
	}
	return unix.Munmap(b)
}
