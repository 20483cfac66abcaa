//go:build unix

package flashio

import (
	"os"

	"golang.org/x/sys/unix"
)

// fileSource is a file of the system. It makes one call at a time and not os.File's ReadAt, which
// would go on after a short direct read at an offset that is not aligned.
type fileSource struct{ f *os.File }

func (s fileSource) Pread(buf []byte, offset int64) (int, error) {
	n, err := unix.Pread(int(s.f.Fd()), buf, offset)
	return max(n, 0), err
}

func (s fileSource) Close() error { return s.f.Close() }
