//go:build !unix

package arrowfile

import (
	"errors"
	"io"
	"os"
)

// Map reads a whole file into memory, where mapping is not available.
func Map(f *os.File, size int64) ([]byte, error) {
	if size != int64(int(size)) || size < 0 {
		return nil, errors.New("the file is larger than this system's address space")
	}
	b := aligned(int(size))
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, size), b); err != nil {
		return nil, err
	}
	return b, nil
}

// Unmap releases the memory of Map.
func Unmap([]byte) error { return nil }
