package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// What the metadata of every image says first.
const (
	imageFormat  = "windrow flash image"
	imageVersion = "1"
)

// facts is what an image's metadata says:
//
//	format, format_version      constants
//	arch, activation, dtype     "opt", "relu", "F16"
//	model, origin               a name to show; "huggingface", or how the weights were synthesised
//	rows_per_unit (P), d_model, layers, d_ffn, heads, kv_heads, head_dim, vocab, max_positions, dtype_bytes
//	record_bytes, stride        of one neuron, in bytes; record_bytes = P·d_model·dtype_bytes ≤ stride
//	source_sha256               identity of the weights, whatever the image's layout
//	tokenizer, tokenizer_sha256 the tokenizer's own text and its SHA-256; absent when packed without one
type facts struct {
	name, origin string
	source       string // SHA-256, hex
	tokenizer    []byte
	shape        Shape
	stride       int
}

// dimensions pairs the names in the metadata with the fields of a Shape.
func dimensions(s *Shape) map[string]*int {
	return map[string]*int{
		"rows_per_unit": &s.Rows, "d_model": &s.DModel, "layers": &s.Layers, "d_ffn": &s.DFFN, "heads": &s.Heads,
		"kv_heads": &s.KVHeads, "head_dim": &s.HeadDim, "vocab": &s.Vocab, "max_positions": &s.MaxPos, "dtype_bytes": &s.DTypeSize,
	}
}

func digest(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

func (f facts) encode() map[string]string {
	meta := map[string]string{
		"format": imageFormat, "format_version": imageVersion,
		"arch": Arch, "activation": Activation, "dtype": string(checkpoint.F16),
		"model": f.name, "origin": f.origin, "source_sha256": f.source,
		"record_bytes": strconv.Itoa(int(f.shape.RecordBytes())), "stride": strconv.Itoa(f.stride),
	}
	for name, value := range dimensions(&f.shape) {
		meta[name] = strconv.Itoa(*value)
	}
	if len(f.tokenizer) > 0 {
		meta["tokenizer"] = string(f.tokenizer)
		meta["tokenizer_sha256"] = digest(f.tokenizer)
	}
	return meta
}

// decodeFacts checks everything that the metadata says against itself.
func decodeFacts(meta map[string]string) (facts, error) {
	f := facts{name: meta["model"], origin: meta["origin"], source: meta["source_sha256"], tokenizer: []byte(meta["tokenizer"])}
	if meta["format"] != imageFormat {
		return f, fmt.Errorf("%w: not a flash image; make one with windrow pack", checkpoint.ErrFormat)
	}
	for _, c := range [][2]string{
		{"format_version", imageVersion}, {"arch", Arch}, {"activation", Activation}, {"dtype", string(checkpoint.F16)},
	} {
		if got := meta[c[0]]; got != c[1] {
			return f, fmt.Errorf("%w: %s is %q; this program knows %q", checkpoint.ErrUnsupported, c[0], got, c[1])
		}
	}
	fields := dimensions(&f.shape)
	record := 0
	fields["record_bytes"], fields["stride"] = &record, &f.stride
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v, err := strconv.Atoi(meta[name])
		if err != nil {
			return f, fmt.Errorf("%w: metadata %s is %q, not a number", checkpoint.ErrFormat, name, meta[name])
		}
		*fields[name] = v
	}
	if err := f.shape.check(); err != nil {
		return f, err
	}
	if record != int(f.shape.RecordBytes()) {
		return f, fmt.Errorf("%w: record_bytes is %d, the shape makes %d", checkpoint.ErrFormat, record, int(f.shape.RecordBytes()))
	}
	if err := checkStride(f.shape, f.stride); err != nil {
		return f, err
	}
	if raw, err := hex.DecodeString(f.source); err != nil || len(raw) != sha256.Size {
		return f, fmt.Errorf("%w: source_sha256 is %q", checkpoint.ErrFormat, f.source)
	}
	if want := meta["tokenizer_sha256"]; len(f.tokenizer) > 0 && digest(f.tokenizer) != want {
		return f, fmt.Errorf("%w: the tokenizer is not the one that tokenizer_sha256 %q names", checkpoint.ErrFormat, want)
	}
	return f, nil
}

// maxStride bounds the padding of a record.
const maxStride = 64 << 20

func checkStride(s Shape, stride int) error {
	if stride < int(s.RecordBytes()) || stride%2 != 0 || stride > maxStride {
		return fmt.Errorf("%w: stride %d; an even number from the record's %d to %d is needed",
			checkpoint.ErrFormat, stride, int(s.RecordBytes()), maxStride)
	}
	return nil
}
