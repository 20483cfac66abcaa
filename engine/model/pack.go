package model

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// PackOptions configure Pack. The zero value keeps the types of the weights, records without
// padding, no tokenizer.
type PackOptions struct {
	// Name of the model; empty means the folder's.
	Name string
	// Tokenizer is the text form of the model's tokenizer, to be stored in the image.
	Tokenizer []byte
	// Chat is the model's chat template, to be stored in the image.
	Chat ChatTemplate
	// Format converts all matrices: to F16, BF16 or F32, which may round; or with Q8 and Q4 the
	// rows on flash to these, in groups of 32 with a scale, and the others to F16. nil keeps their
	// types.
	Format *ref.Format
	// IgnoreIndex reads every safetensors file of the folder, whatever the index lists.
	IgnoreIndex bool
	// IgnoreKeys are fields of config.json, OBJECT.FIELD for one in an object, that are not known
	// and change nothing of what the model computes.
	IgnoreKeys []string
	// Stride is the distance between records; 0 means the size of a record. 4096 makes the 3,072 B
	// records of OPT-125M readable one by one with direct I/O, for a third more flash.
	Stride units.Bytes
	// Progress may be nil.
	Progress Progress

	memory int // of the bundler; 0 means bundleMemory
}

// PackReport describes a packed image.
type PackReport struct {
	Path         string
	Name         string
	Arch         Arch
	Precision    Precision
	Record       units.Bytes // of one neuron, without padding
	Bytes        units.Bytes // of the whole image
	Resident     units.Bytes // of the tensors that are always in memory
	Bundles      units.Bytes // of the records, padding included
	SourceSHA256 string
	Ends         []uint32 // ids that end a text, beside the tokenizer's own
	Ignored      []string // fields of config.json that PackOptions.IgnoreKeys named
	Notes        []string // notes on irregularities of the folder, in whole sentences
}

// Pack writes the model of a Hugging Face folder as a flash image. It reads the weights twice,
// first to hash and check them, and needs memory for a few blocks only. The image appears at out
// when it is complete. When packing fails or ctx ends, nothing is left and an older image at out
// stays.
func Pack(ctx context.Context, dir, out string, opt PackOptions) (*PackReport, error) {
	src, err := openSource(ctx, dir, opt)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	precision, err := src.precision(opt.Format)
	if err != nil {
		return nil, err
	}
	f := facts{name: opt.Name, origin: "huggingface", tokenizer: opt.Tokenizer, chat: opt.Chat,
		ends: src.config.Ends, ignored: src.config.Ignored,
		arch: src.config.Arch, precision: precision, stride: int(opt.Stride), hashed: true}
	if f.name == "" {
		if f.name, err = folderName(dir); err != nil {
			return nil, err
		}
	}
	if f.stride == 0 {
		f.stride = f.record()
	}
	if err := f.checkStride(); err != nil {
		if opt.Stride != 0 {
			err = refusal.Config("{RecordStride} %v: a multiple of %d bytes from the record's %v "+
				"to %v is needed", opt.Stride, f.strideAlign(), units.Bytes(f.record()),
				units.Bytes(maxStride))
		}
		return nil, fmt.Errorf("model: pack %s: %w", dir, err)
	}
	size := f.dataSize()
	moved := meter(opt.Progress, src.bytes()+size)
	if f.source, err = src.hash(ctx, moved); err != nil {
		return nil, err
	}
	if opt.Format != nil && !src.stored(*opt.Format) {
		// other weights, other masks
		f.source = digest(fmt.Appendf(nil, "%s as %s", f.source, *opt.Format))
	}
	if err := writeImage(ctx, out, f, newSourceFiller(src, f, opt.memory), moved); err != nil {
		return nil, err
	}
	img, err := OpenImage(ctx, out)
	if err != nil {
		return nil, err
	}
	defer img.Close()
	return &PackReport{
		Path: out, Name: f.name, Arch: f.arch, Precision: f.precision,
		Record: units.Bytes(f.record()), Bytes: units.Bytes(img.file.Size()),
		Resident: img.ResidentBytes(), Bundles: img.BundleBytes(),
		SourceSHA256: f.source, Ends: f.ends, Ignored: f.ignored, Notes: src.notes,
	}, nil
}

func folderName(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("model: %w", err)
	}
	return filepath.Base(abs), nil
}

// sourceFiller fills an image from a folder.
type sourceFiller struct {
	src     *source
	bundler *bundler
}

func newSourceFiller(src *source, f facts, memory int) *sourceFiller {
	if memory == 0 {
		memory = bundleMemory
	}
	const widest = 4 // bytes of an F32
	return &sourceFiller{src, newBundler(f, widest, memory)}
}

func (f *sourceFiller) resident(ctx context.Context, r resident, emit func([]byte) error) error {
	t, err := f.src.resident(r)
	if err != nil {
		return err
	}
	return t.rowsOf(ctx, r, emit)
}

func (f *sourceFiller) bundles(ctx context.Context, layer int, emit func([]byte) error) error {
	var matrices []tensor
	for _, m := range f.src.config.Arch.ffnSources(layer) {
		t, err := f.src.tensor(m.name)
		if err != nil {
			return err
		}
		if m.rows != nil {
			t = t.section(*m.rows)
		}
		matrices = append(matrices, t)
	}
	return f.bundler.layer(ctx, matrices, emit)
}

// LoadFolder loads a whole model into memory: the resident weights and, for each layer, the bytes
// of its records without padding. The bits are those of Pack's image, by the same code, with the
// weights' own types.
func LoadFolder(ctx context.Context, dir string) (*Weights, [][]byte, Config, error) {
	src, err := openSource(ctx, dir, PackOptions{})
	if err != nil {
		return nil, nil, Config{}, err
	}
	defer src.Close()
	precision, err := src.precision(nil)
	if err != nil {
		return nil, nil, Config{}, err
	}
	f := facts{arch: src.config.Arch, precision: precision}
	f.stride = f.record()
	w := newWeights(f.arch, precision)
	fill := newSourceFiller(src, f, 0)
	for _, r := range w.residents() {
		t, err := src.resident(r)
		if err == nil {
			err = r.load(ctx, t)
		}
		if err != nil {
			return nil, nil, Config{}, err
		}
	}
	bundles := make([][]byte, w.Shape.Layers)
	for l := range bundles {
		bundles[l] = make([]byte, 0, w.Shape.DFFN*f.stride)
		err := fill.bundles(ctx, l, func(p []byte) error {
			bundles[l] = append(bundles[l], p...)
			return nil
		})
		if err != nil {
			return nil, nil, Config{}, err
		}
	}
	return w, bundles, src.config, nil
}
