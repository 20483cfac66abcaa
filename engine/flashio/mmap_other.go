//go:build !unix

package flashio

import "fmt"

func openMmap(host, file, Options) (Reader, error) {
	return nil, fmt.Errorf("flashio: mmap: %w: mapping files is only written for Unix systems; "+
		"open with engine pread", ErrEnvironment)
}
