package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/units"
)

// Image is an open flash image. Its fields are read only; its methods are safe for concurrent use.
type Image struct {
	Path          string
	Name          string
	Arch          Arch
	Shape         Shape // Arch.Shape
	Precision     Precision
	Activation    string
	DType         string // of the weights in the bundles: "F16", "Q4"
	Hash          string // source_sha256: identity of the weights
	Origin        string // "huggingface", or how the weights were synthesised
	TokenizerJSON []byte // text form of the tokenizer; empty when the image has none
	TokenizerHash string // SHA-256 in hex; empty for an image without a tokenizer
	// Ends are the ids that end a text, ascending, beside the tokenizer's own.
	Ends []uint32
	// Ignored are the fields of config.json that packing ignored because the user said so.
	Ignored []string
	Chat    ChatTemplate

	file   *checkpoint.File
	hashes *hashes // nil in an image without them
	stride int
	base   []int64
}

// OpenImage opens an image and checks its metadata, the place and shape of every tensor, and the
// alignment of the bundles. It compares the header and one block of every layer's bundles with
// their hashes; what Weights and Bundles read is compared wholly. An image of windrow 0.1 has no
// hashes and is opened without (Hashed). Of an image without hashes, unknown tensors are ignored.
func OpenImage(ctx context.Context, path string) (*Image, error) {
	file, err := checkpoint.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	img, err := newImage(path, file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("model: %s: %w", path, err)
	}
	return img, nil
}

func newImage(path string, file *checkpoint.File) (*Image, error) {
	meta := file.Metadata()
	hashes, err := openHashes(file, meta)
	if err == nil && hashes != nil {
		err = hashes.compareHeader()
	}
	if err != nil {
		return nil, err
	}
	f, err := decodeFacts(meta)
	if err != nil {
		return nil, err
	}
	if file.Size()%imageAlign != 0 {
		return nil, fmt.Errorf("%w: the length %d is not a multiple of %d", checkpoint.ErrFormat,
			file.Size(), imageAlign)
	}
	// Every layer has more than ten tensors: this bounds the list below by the file's size, not by
	// its header.
	if n := len(file.Tensors()); f.arch.Shape.Layers > n {
		return nil, fmt.Errorf("%w: %d layers, but only %d tensors", checkpoint.ErrFormat,
			f.arch.Shape.Layers, n)
	}
	for _, want := range f.tensors() {
		t, ok := file.Tensor(want.Name)
		if !ok {
			return nil, fmt.Errorf("%w: tensor %q is missing", checkpoint.ErrFormat, want.Name)
		}
		if t.DType != want.DType || !slices.Equal(t.Shape, want.Shape) {
			return nil, fmt.Errorf("%w: tensor %q is %s%v; the metadata means %s%v",
				checkpoint.ErrFormat, want.Name, t.DType, t.Shape, want.DType, want.Shape)
		}
	}
	img := &Image{
		Path: path, Name: f.name, Arch: f.arch, Shape: f.arch.Shape, Precision: f.precision,
		Activation: f.arch.Activation.String(), DType: f.precision.Bundles.String(), Hash: f.source,
		Origin: f.origin, Chat: f.chat, Ends: f.ends, Ignored: f.ignored,
		file: file, hashes: hashes, stride: f.stride, base: make([]int64, f.arch.Shape.Layers),
	}
	if len(f.tokenizer) > 0 {
		img.TokenizerJSON, img.TokenizerHash = f.tokenizer, digest(f.tokenizer)
	}
	for l := range img.base {
		t, _ := file.Tensor(bundlesName(l))
		if t.Offset%imageAlign != 0 {
			return nil, fmt.Errorf("%w: tensor %q starts at %d, not at a multiple of %d",
				checkpoint.ErrFormat, t.Name, t.Offset, imageAlign)
		}
		img.base[l] = t.Offset
	}
	if hashes != nil {
		err = hashes.sample(len(img.base))
	}
	return img, err
}

// Hashed reports whether the image has hashes. Without them damage goes unseen.
func (img *Image) Hashed() bool { return img.hashes != nil }

// Verify compares every byte of the image with its hashes. Its error for other bytes than were
// written is a *Damage; an image without hashes is ErrUnsupported. progress may be nil.
func (img *Image) Verify(ctx context.Context, progress Progress) error {
	if img.hashes == nil {
		return fmt.Errorf("model: %s: %w: the image has no hashes to be verified by; pack it again",
			img.Path, checkpoint.ErrUnsupported)
	}
	err := img.hashes.all(ctx, img.hashes.parts, meter(progress, img.file.Size()),
		func(err error) error { return err })
	if err != nil {
		return fmt.Errorf("model: %s: %w", img.Path, err)
	}
	return nil
}

// Geometry returns the place of every record.
func (img *Image) Geometry() layout.Geometry {
	return layout.Geometry{
		Base: slices.Clone(img.base), Units: img.Shape.DFFN, Record: img.RecordBytes(),
		Stride: units.Bytes(img.stride), Size: img.file.Size(),
	}
}

// RecordBytes returns the size of one neuron's record without padding.
func (img *Image) RecordBytes() units.Bytes { return img.Shape.RecordBytes(img.Precision.Bundles) }

// Resident is the memory of the Weights, by kind.
func (img *Image) Resident() memory.Weights { return newWeights(img.Arch, img.Precision).Memory() }

// ResidentBytes is the memory of the Weights.
func (img *Image) ResidentBytes() units.Bytes { return img.Resident().Total() }

// WeightBytes is the size of all weights, without the padding of records.
func (img *Image) WeightBytes() units.Bytes {
	return img.ResidentBytes() + units.Bytes(img.Shape.Layers)*units.Bytes(img.Shape.DFFN)*
		img.RecordBytes()
}

// LayerBytes returns the size of one layer's bundles with the padding of the records: the length of
// Bundles' dst.
func (img *Image) LayerBytes() units.Bytes {
	return units.Bytes(img.Shape.DFFN) * units.Bytes(img.stride)
}

// BundleBytes is the size of all layers' bundles as stored.
func (img *Image) BundleBytes() units.Bytes {
	return units.Bytes(img.Shape.Layers) *
		img.LayerBytes()
}

// Weights loads the resident tensors into memory and compares them with their hashes.
func (img *Image) Weights(ctx context.Context) (*Weights, error) {
	w, buf := newWeights(img.Arch, img.Precision), &scratch{}
	for _, r := range w.residents() {
		r.rows = nil // an image has one tensor for all rows
		if err := img.load(ctx, r, buf); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// load reads a resident tensor. Damage comes before what it may have caused, such as weights that
// are not finite.
func (img *Image) load(ctx context.Context, r resident, buf *scratch) error {
	info, _ := img.file.Tensor(r.name)
	section, err := img.file.Section(r.name)
	if err != nil {
		return err
	}
	if img.hashes == nil {
		return r.load(ctx, tensor{TensorInfo: info, r: section, s: buf})
	}
	reader := img.hashes.reader(r.name, section)
	if err = r.load(ctx, tensor{TensorInfo: info, r: reader, s: buf}); err == nil {
		err = reader.end()
	} else if damage := img.hashes.compareTensor(ctx, r.name); damage != nil {
		err = damage
	}
	if err != nil {
		return fmt.Errorf("model: %s: %w", img.Path, err)
	}
	return nil
}

// Bundles reads one layer's records into dst, which must be LayerBytes long, and checks that all
// weights are finite.
func (img *Image) Bundles(layer int, dst []byte) error {
	if layer < 0 || layer >= img.Shape.Layers {
		return fmt.Errorf("model: %s: there is no layer %d", img.Path, layer)
	}
	name := bundlesName(layer)
	if err := img.file.ReadTensor(name, dst); err != nil {
		return err
	}
	if img.hashes != nil {
		if err := img.hashes.compareBytes(name, dst); err != nil {
			return fmt.Errorf("model: %s: %w", img.Path, err)
		}
	}
	if i := firstNonFinite(dtypeOf(img.Precision.Bundles), dst); i >= 0 {
		return fmt.Errorf("model: %s: tensor %q: %w: the weight at index %d is not finite",
			img.Path, name, checkpoint.ErrFormat, i)
	}
	return nil
}

// Close closes the file.
func (img *Image) Close() error { return img.file.Close() }
