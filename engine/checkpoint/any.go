package checkpoint

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/windrow-sim/windrow/engine/checkpoint/gguf"
	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
	"github.com/windrow-sim/windrow/engine/checkpoint/torch"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// Tensors is an open checkpoint of any format. Its methods are safe for concurrent use.
type Tensors interface {
	// Tensors returns all tensors in an order that depends on the checkpoint alone.
	Tensors() []TensorInfo
	// Tensor finds a tensor by its exact name.
	Tensor(name string) (TensorInfo, bool)
	// Section returns a reader over the elements of a tensor: TensorInfo.Size bytes of type
	// TensorInfo.DType, row-major, little-endian. Reading a range needs memory in proportion to the
	// range. It must not be used after Close. An unknown name is an fs.ErrNotExist.
	Section(name string) (*io.SectionReader, error)
	Close() error
}

// Model is a checkpoint with the configuration and under the names of a Hugging Face model.
type Model interface {
	Tensors
	// Config returns config.json, or the fields of it that a file without one has. The caller must
	// not change it.
	Config() Object
	// Generation returns generation_config.json; nil where there is none. The caller must not
	// change it.
	Generation() Object
	// Notes returns whole sentences about ignored parts and oddities, to be shown above the
	// results.
	Notes() []string
}

// OpenAny opens a folder, or a file of any format, which its first bytes tell. The names are those
// of the file.
func OpenAny(ctx context.Context, path string, opt FolderOptions) (Tensors, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if st.IsDir() {
		return result(OpenFolder(ctx, path, opt))
	}
	raw, err := tensor.Open(ctx, "checkpoint", path)
	if err != nil {
		return nil, err
	}
	start, err := raw.Start(4)
	raw.Close()
	switch {
	case err != nil:
		return nil, err
	case string(start) == "GGUF":
		return result(gguf.Open(ctx, path))
	case string(start) == "PK\x03\x04", string(start) == "\x80\x02\x8A\x0A":
		// Files from before PyTorch 1.6 begin with the latter; the error of torch has the remedy.
		return result(torch.Open(ctx, path))
	}
	return result(Open(ctx, path))
}

// result returns a nil interface for a nil pointer.
func result[T Tensors](t T, err error) (Tensors, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}

// OpenModel opens a Hugging Face folder, or a GGUF file as the model it was made from.
func OpenModel(ctx context.Context, path string, opt FolderOptions) (Model, error) {
	t, err := OpenAny(ctx, path, opt)
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case *Folder:
		return t, nil
	case *gguf.File:
		m, err := newGGUFModel(t)
		if err != nil {
			t.Close()
			return nil, err
		}
		return m, nil
	}
	t.Close()
	return nil, fmt.Errorf("checkpoint: %s: %w: tensors without a config.json; name the folder "+
		"that holds both", path, ErrUnsupported)
}

// ggufModel adds a folder's form of configuration to a GGUF file.
type ggufModel struct {
	*gguf.Original
	config Object
}

func newGGUFModel(f *gguf.File) (*ggufModel, error) {
	original, err := gguf.NewOriginal(f)
	if err != nil {
		return nil, err
	}
	m := &ggufModel{original, Object{}}
	for name, value := range original.Config() {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("checkpoint: %s: %s: %w", f.Name(), name, err)
		}
		m.config[name] = Member{JSON: text}
	}
	return m, nil
}

// Config implements Model.
func (m *ggufModel) Config() Object { return m.config }

// Generation implements Model.
func (m *ggufModel) Generation() Object { return nil }

// readRowsBlock bounds the buffer of ReadRows.
const readRowsBlock = 256 << 10

// ReadRows reads rows from…to−1 of a tensor of type F32, F16 or BF16 into dst, which must have room
// for exactly their elements. A row is all elements with the same first index; the tensor needs at
// least one dimension. Its memory does not depend on the number of rows.
func ReadRows(t Tensors, name string, from, to int64, dst []float32) error {
	info, ok := t.Tensor(name)
	if ok && len(info.Shape) == 0 {
		return fmt.Errorf("checkpoint: tensor %q: a scalar has no rows", name)
	}
	section, err := t.Section(name)
	if err != nil {
		return err
	}
	if from < 0 || to < from || to > info.Shape[0] {
		return fmt.Errorf("checkpoint: tensor %q: rows %d to %d of %d", name, from, to,
			info.Shape[0])
	}
	row := int64(1)
	for _, dim := range info.Shape[1:] {
		row *= dim
	}
	if int64(len(dst)) != (to-from)*row {
		return fmt.Errorf("checkpoint: tensor %q: %d rows have %d elements, the buffer %d", name,
			to-from, (to-from)*row, len(dst))
	}
	elem := info.DType.Size()
	buf := make([]byte, min(readRowsBlock, int64(len(dst))*elem))
	for at := from * row * elem; len(dst) > 0; {
		n := min(int64(len(dst)), int64(len(buf))/elem)
		if _, err := section.ReadAt(buf[:n*elem], at); err != nil {
			return err
		}
		if err := widen(dst[:n], info.DType, buf); err != nil {
			return fmt.Errorf("checkpoint: tensor %q: %w", name, err)
		}
		dst, at = dst[n:], at+n*elem
	}
	return nil
}

// widen converts the first elements of src, exactly.
func widen(dst []float32, dtype DType, src []byte) error {
	switch dtype {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
		}
	case F16:
		for i := range dst {
			dst[i] = ref.F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	default:
		return fmt.Errorf("%w: dtype %s; F16, BF16 and F32 are", ErrUnsupported, dtype)
	}
	return nil
}
