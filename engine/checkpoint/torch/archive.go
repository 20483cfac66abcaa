package torch

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// maxDirectory bounds what is read of a zip archive besides the entries: enough for 500,000 of them.
const maxDirectory = 64 << 20

// archive is the zip archive around a pickle and its storages.
type archive struct {
	file    *tensor.Raw
	prefix  string // the folder of all entries, with a slash
	entries map[string]*zip.File
}

// bounded is the part of a file that the zip reader may read.
type bounded struct {
	file        io.ReaderAt
	left, limit int64
}

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, fmt.Errorf("%w: a zip directory of more than %d bytes", errFormat, b.limit)
	}
	return b.file.ReadAt(p, off)
}

// openArchive reads the zip directory, at most limit bytes, and finds the one data.pkl.
func openArchive(file *tensor.Raw, limit int64) (*archive, error) {
	z, err := zip.NewReader(&bounded{file, limit, limit}, file.Size())
	switch {
	case errors.Is(err, zip.ErrFormat):
		return nil, fmt.Errorf("%w: truncated: no zip directory at the end of its %d bytes; download it again", errFormat, file.Size())
	case err != nil && !errors.Is(err, errFormat):
		return nil, fmt.Errorf("%w: zip directory: %w", errFormat, err)
	case err != nil:
		return nil, err
	}
	a := &archive{file: file, entries: make(map[string]*zip.File, len(z.File))}
	var pickles []string
	for _, e := range z.File {
		if a.entries[e.Name] != nil {
			return nil, fmt.Errorf("%w: the zip entry %q occurs twice", errFormat, tensor.Clip(e.Name))
		}
		a.entries[e.Name] = e
		if folder, base, ok := strings.Cut(e.Name, "/"); ok && base == "data.pkl" {
			pickles = append(pickles, folder+"/")
		}
	}
	if len(pickles) != 1 {
		return nil, fmt.Errorf("%w: a zip archive with %d entries NAME/data.pkl; one makes a PyTorch file", errFormat, len(pickles))
	}
	a.prefix = pickles[0]
	if a.entries[a.prefix+"constants.pkl"] != nil {
		return nil, fmt.Errorf("%w: a TorchScript program; save the state dict of the model instead", errUnsupported)
	}
	return a, nil
}

// find returns where the bytes of an entry are, by its name without the folder. They are inside the file.
func (a *archive) find(name string) (offset, size int64, err error) {
	e := a.entries[a.prefix+name]
	if e == nil {
		return 0, 0, fmt.Errorf("%w: no zip entry %q", errFormat, tensor.Clip(a.prefix+name))
	}
	if e.Method != zip.Store || e.Flags&1 != 0 {
		return 0, 0, fmt.Errorf("%w: the zip entry %q is compressed or encrypted, torch.save does neither; save it again",
			errUnsupported, tensor.Clip(e.Name))
	}
	offset, err = e.DataOffset()
	if err != nil {
		return 0, 0, fmt.Errorf("%w: zip entry %q: %w", errFormat, tensor.Clip(e.Name), err)
	}
	n := e.UncompressedSize64
	if n != e.CompressedSize64 || offset < 0 || n > uint64(max(0, a.file.Size()-offset)) {
		return 0, 0, fmt.Errorf("%w: truncated: the zip entry %q promises %d bytes at byte %d, the file has %d; download it again",
			errFormat, tensor.Clip(e.Name), n, offset, a.file.Size())
	}
	return offset, int64(n), nil
}

// read returns a whole entry of at most limit bytes.
func (a *archive) read(name string, limit int64) ([]byte, error) {
	offset, size, err := a.find(name)
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%w: %s has %d bytes, the limit is %d", errFormat, name, size, limit)
	}
	p := make([]byte, size)
	if n, err := a.file.ReadAt(p, offset); n < len(p) {
		return nil, err
	}
	return p, nil
}

// place finds the bytes of a storage.
func (a *archive) place(key string, want int64) (int64, error) {
	offset, size, err := a.find("data/" + key)
	if err != nil {
		return 0, err
	}
	if size != want {
		return 0, fmt.Errorf("%w: storage %q has %d bytes, the pickle says %d", errFormat, tensor.Clip(key), size, want)
	}
	return offset, nil
}

// bigEndian reads the entry byteorder, which files from before PyTorch 2.1 lack; they are little-endian.
func (a *archive) bigEndian() (bool, error) {
	if a.entries[a.prefix+"byteorder"] == nil {
		return false, nil
	}
	order, err := a.read("byteorder", 16)
	switch {
	case err != nil:
		return false, err
	case string(order) == "little", string(order) == "big":
		return string(order) == "big", nil
	}
	return false, fmt.Errorf("%w: byte order %q", errFormat, order)
}
