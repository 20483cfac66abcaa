//go:build !unix

package arrowfile

import (
	"errors"
	"io"
	"os"
)

// Mapping is a file in memory, where mapping is not available.
type Mapping struct{ data []byte }

// Map reads a whole file. The file belongs to the mapping, also after an error.
func Map(f *os.File) (*Mapping, error) {
	m := &Mapping{}
	err := m.read(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Mapping) read(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size != int64(int(size)) || size < 0 {
		return errors.New("the file is larger than this system's address space")
	}
	m.data = aligned(int(size))
	_, err = io.ReadFull(io.NewSectionReader(f, 0, size), m.data)
	return err
}

// changed is false: the file was read whole.
func (m *Mapping) changed() bool { return false }

// Close forgets the memory.
func (m *Mapping) Close() error {
	m.data = nil
	return nil
}
