//go:build unix

package arrowfile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Mapping is a file that is mapped for reading.
type Mapping struct {
	data []byte
	f    *os.File
	was  state
}

// state changes when a file is truncated or written to.
type state struct {
	size     int64
	modified unix.Timespec
}

// Map maps a whole file for reading. The file belongs to the mapping, also after an error.
func Map(f *os.File) (*Mapping, error) {
	m := &Mapping{f: f}
	err := m.open()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

func (m *Mapping) open() (err error) {
	if m.was, err = stateOf(m.f); err != nil || m.was.size == 0 {
		return err
	}
	if m.was.size != int64(int(m.was.size)) {
		return errors.New("the file is larger than this system's address space")
	}
	m.data, err = unix.Mmap(int(m.f.Fd()), 0, int(m.was.size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mmap of %d bytes: %w", m.was.size, err)
	}
	return nil
}

// stateOf takes a file as it is now. It allocates nothing.
func stateOf(f *os.File) (s state, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return s, fmt.Errorf("stat: %w", err)
	}
	return state{st.Size, st.Mtim}, nil
}

func (m *Mapping) changed() bool {
	now, err := stateOf(m.f)
	return err != nil || now != m.was
}

// Close releases the memory and the file.
func (m *Mapping) Close() error {
	var err error
	if m.data != nil {
		err = unix.Munmap(m.data)
		m.data = nil
	}
	return errors.Join(err, m.f.Close())
}
