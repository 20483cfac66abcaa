//go:build !unix

package flashio

import "os"

// fileSource is a file of the system.
type fileSource struct{ f *os.File }

func (s fileSource) Pread(buf []byte, offset int64) (int, error) { return s.f.ReadAt(buf, offset) }

func (s fileSource) Close() error { return s.f.Close() }
