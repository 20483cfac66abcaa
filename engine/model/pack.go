package model

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/units"
)

// PackOptions say how to pack. The zero value packs F16 weights as they are, records without padding, no tokenizer.
type PackOptions struct {
	// Name of the model; empty means the folder's.
	Name string
	// Tokenizer is the text form of the model's tokenizer, to be stored in the image.
	Tokenizer []byte
	// Convert rounds F32 and BF16 matrices to F16. Without it they are refused.
	Convert bool
	// IgnoreIndex takes every safetensors file of the folder, whatever the index says.
	IgnoreIndex bool
	// Stride is the distance between records; 0 means the size of a record. 4096 makes the 3,072 B records of OPT-125M
	// readable one by one with direct I/O, for a third more flash.
	Stride units.Bytes
	// Progress may be nil.
	Progress Progress

	create createFunc
	memory int // of the bundler; 0 means bundleMemory
}

// PackReport says what Pack made.
type PackReport struct {
	Path         string
	Name         string
	Shape        Shape
	Bytes        units.Bytes // of the whole image
	Resident     units.Bytes // of the tensors that are always in memory
	Bundles      units.Bytes // of the records, padding included
	SourceSHA256 string
	Notes        []string // whole sentences about what was odd in the folder
}

// Pack writes the OPT model of a Hugging Face folder as a flash image. It reads the weights twice, first to hash and check
// them, and needs memory for a few blocks only. The image appears at out when it is complete; when packing fails or ctx
// ends, nothing is left and an older image at out stays.
func Pack(ctx context.Context, dir, out string, opt PackOptions) (*PackReport, error) {
	src, err := openSource(dir, checkpoint.FolderOptions{IgnoreIndex: opt.IgnoreIndex})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if err := src.checkTypes(opt.Convert); err != nil {
		return nil, err
	}
	s := src.config.Shape
	f := facts{name: opt.Name, origin: "huggingface", tokenizer: opt.Tokenizer, shape: s, stride: int(opt.Stride)}
	if f.name == "" {
		if f.name, err = folderName(dir); err != nil {
			return nil, err
		}
	}
	if f.stride == 0 {
		f.stride = int(s.RecordBytes())
	}
	if err := checkStride(s, f.stride); err != nil {
		return nil, fmt.Errorf("model: pack %s: %w", dir, err)
	}
	size := dataSize(s, f.stride)
	moved := meter(opt.Progress, src.bytes()+size)
	if f.source, err = src.hash(ctx, moved); err != nil {
		return nil, err
	}
	if err := writeImage(ctx, out, f, newSourceFiller(src, f.stride, opt.memory), opt.create, moved); err != nil {
		return nil, err
	}
	img, err := OpenImage(out)
	if err != nil {
		return nil, err
	}
	defer img.Close()
	return &PackReport{
		Path: out, Name: f.name, Shape: s, Bytes: units.Bytes(img.file.Size()), Resident: img.ResidentBytes(), Bundles: img.BundleBytes(),
		SourceSHA256: f.source, Notes: src.notes,
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

func newSourceFiller(src *source, stride, memory int) *sourceFiller {
	if memory == 0 {
		memory = bundleMemory
	}
	const widest = 4 // bytes of an F32
	return &sourceFiller{src, newBundler(src.config.Shape, stride, widest, memory)}
}

func (f *sourceFiller) resident(ctx context.Context, r resident, emit func([]byte) error) error {
	t, err := f.src.tensor(r.source)
	if err != nil {
		return err
	}
	return t.stream(ctx, r.dtype(), emit)
}

func (f *sourceFiller) bundles(ctx context.Context, layer int, emit func([]byte) error) error {
	up, err := f.src.tensor(upSource(layer))
	if err != nil {
		return err
	}
	down, err := f.src.tensor(downSource(layer))
	if err != nil {
		return err
	}
	return f.bundler.layer(ctx, up, down, emit)
}

// LoadFolder loads a whole OPT model into memory: the resident weights and, for each layer, the bytes of its records without
// padding. They are the same bits that Pack puts into an image, by the same code. Weights must be F16; pack a model
// of another type with Convert.
func LoadFolder(dir string) (*Weights, [][]byte, Config, error) {
	ctx := context.Background()
	src, err := openSource(dir, checkpoint.FolderOptions{})
	if err != nil {
		return nil, nil, Config{}, err
	}
	defer src.Close()
	if err := src.checkTypes(false); err != nil {
		return nil, nil, Config{}, err
	}
	if err := src.checkHead(ctx); err != nil {
		return nil, nil, Config{}, err
	}
	s := src.config.Shape
	w := newWeights(s)
	for _, r := range w.residents() {
		t, err := src.tensor(r.source)
		if err == nil {
			err = r.load(ctx, t)
		}
		if err != nil {
			return nil, nil, Config{}, err
		}
	}
	record := int(s.RecordBytes())
	fill := newSourceFiller(src, record, 0)
	bundles := make([][]byte, s.Layers)
	for l := range bundles {
		bundles[l] = make([]byte, 0, s.DFFN*record)
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
