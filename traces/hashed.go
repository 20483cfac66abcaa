package traces

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"github.com/windrow-sim/windrow/internal/output"
)

// hashedFile is a file that is being written, with the hash of its bytes. It keeps the first error.
type hashedFile struct {
	out  *output.File
	buf  *bufio.Writer
	hash hash.Hash
	size int64
	err  error
}

func newHashed(path string) (*hashedFile, error) {
	out, err := output.Create(path)
	if err != nil {
		return nil, err
	}
	return &hashedFile{out: out, buf: bufio.NewWriterSize(out, 1<<18), hash: sha256.New()}, nil
}

// Write implements io.Writer.
func (p *hashedFile) Write(b []byte) (int, error) {
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
func (p *hashedFile) sum() string { return hex.EncodeToString(p.hash.Sum(nil)) }

// commit gives the file its name, or path if that is not "", and then what describes it its own. On
// an error neither of them is there.
func (p *hashedFile) commit(path, aboutPath string, about any) error {
	defer p.out.Abort()
	if err := errors.Join(p.err, p.buf.Flush()); err != nil {
		return err
	}
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", aboutPath, err)
	}
	f, err := output.Create(aboutPath)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(append(text, '\n')); err != nil {
		return err
	}
	return output.CommitPair(p.out, f, path, aboutPath)
}
