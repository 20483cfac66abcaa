package traces

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

// sink is the output of a partial file: a file, or a failing stand-in in tests.
type sink interface {
	io.Writer
	Sync() error
	Close() error
}

// partialFile is a file that is being written as NAME.partial. It hashes its bytes and keeps the
// first error. It gets its final name only when all bytes are written and synced.
type partialFile struct {
	name string // of the partial file
	out  sink
	buf  *bufio.Writer
	hash hash.Hash
	size int64
	err  error
}

// partialSuffix ends the name of a file that is being written. Such a file has no footer, and no
// reader opens it.
const partialSuffix = ".partial"

// createSink makes a new file. It replaces what a killed process left behind, so that two writers
// never share a file.
func createSink(name string) (sink, error) {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
}

func newPartial(path string, create func(string) (sink, error)) (*partialFile, error) {
	p := &partialFile{name: path + partialSuffix, hash: sha256.New()}
	out, err := create(p.name)
	if err != nil {
		return nil, err
	}
	p.out = out
	p.buf = bufio.NewWriterSize(out, 1<<18)
	return p, nil
}

// Write implements io.Writer.
func (p *partialFile) Write(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.buf.Write(b)
	p.hash.Write(b[:n])
	p.size += int64(n)
	p.err = err
	return n, err
}

// sum returns the SHA-256 of the bytes written.
func (p *partialFile) sum() string { return hex.EncodeToString(p.hash.Sum(nil)) }

// seal flushes, syncs and closes the file. On an error it removes the file.
func (p *partialFile) seal() error {
	if p.err == nil {
		p.err = p.buf.Flush()
	}
	if p.err == nil {
		p.err = p.out.Sync()
	}
	if err := p.out.Close(); p.err == nil {
		p.err = err
	}
	if p.err != nil {
		return errors.Join(p.err, removeQuietly(p.name))
	}
	return nil
}

// commit gives a sealed file its final name.
func (p *partialFile) commit(path string) error {
	if err := os.Rename(p.name, path); err != nil {
		return errors.Join(err, removeQuietly(p.name))
	}
	syncDir(filepath.Dir(path))
	return nil
}

// abort closes and removes the file.
func (p *partialFile) abort() error {
	p.out.Close() // its error does not matter: the file is removed
	return removeQuietly(p.name)
}

// removeQuietly removes a file; a missing file is no error.
func removeQuietly(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir makes a rename durable. It ignores errors: some file systems cannot sync a folder, and
// the rename has happened.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// writeJSON writes v as indented JSON to path, in one step.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	p, err := newPartial(path, createSink)
	if err != nil {
		return err
	}
	if _, err := p.Write(append(text, '\n')); err != nil {
		return errors.Join(err, p.abort())
	}
	if err := p.seal(); err != nil {
		return err
	}
	return p.commit(path)
}
