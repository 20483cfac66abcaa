package flashio

import (
	"fmt"
	"io"
)

// memReader serves reads from a byte slice.
type memReader struct {
	file
	stopwatch
	data []byte
}

// loadMem reads the whole file into memory.
func loadMem(_ host, base file, _ Options) (Reader, error) {
	data := make([]byte, base.size)
	if _, err := io.ReadFull(io.NewSectionReader(base.f, 0, base.size), data); err != nil {
		return nil, fmt.Errorf("flashio: mem: %s: read of %d bytes: %w", base.path, base.size, err)
	}
	if err := base.f.Close(); err != nil {
		return nil, fmt.Errorf("flashio: mem: %w", err)
	}
	base.f, base.mode.Engine, base.mode.MemoryBacked = nil, EngineMem, true
	return &memReader{file: base, data: data}, nil
}

// NewMem returns a Reader of data, for tests and for models that fit into memory. It keeps data,
// which must not change.
func NewMem(data []byte) Reader {
	return &memReader{data: data, file: file{path: "memory", size: int64(len(data)), mode: Mode{
		Engine: EngineMem, Requested: EngineMem, Align: 1, Parallel: 1, FileSystem: "memory",
		MemoryBacked: true,
	}}}
}

// ReadBatch implements Reader.
func (m *memReader) ReadBatch(reqs []Request) error {
	if err := m.check(reqs); err != nil {
		return err
	}
	for i := range reqs {
		started := m.start(i)
		copy(reqs[i].Buf, m.data[reqs[i].Offset:])
		m.stop(i, started)
	}
	return nil
}

// Close implements Reader.
func (m *memReader) Close() error {
	m.closed, m.data = true, nil
	return nil
}
