package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// The first facts in the metadata of every image.
const (
	imageFormat  = "windrow flash image"
	imageVersion = "2" // 1: OPT models in F16 only
)

// facts are the facts of an image, as in its metadata:
//
//	format, format_version      constants
//	arch, activation, dtype     "opt", "relu", "F16": the family, the activation function, and the
//	                            type of the resident matrices
//	architecture                all facts of the computation (Arch), as JSON; "model, shape" below
//	                            repeat some of it for people and other tools
//	bundle_format               "F16", "BF16", "F32", "Q8" or "Q4"
//	model, origin               a name to show; "huggingface", or how the weights were synthesised
//	rows_per_unit (P), d_model, layers, d_ffn, heads, kv_heads, head_dim, vocab, max_positions,
//	                            dtype_bytes
//	record_bytes, stride        of one neuron, in bytes; record_bytes = P·d_model·dtype_bytes ≤
//	                            stride
//	source_sha256               identity of the weights, whatever the image's layout
//	tokenizer, tokenizer_sha256 the tokenizer's own text and its SHA-256; absent when packed
//	                            without one
//	eos_token_ids               the ids that end a text, beside the tokenizer's own; may be absent
//	ignored_keys                fields of config.json that were ignored because the user said so,
//	                            as a JSON list; may be absent
//	chat_template, chat_template_from
//	                            the model's chat template and where it was; absent without one
//	hashes                      what the tensor of that name holds (hashes.go); absent in images
//	                            of windrow 0.1
type facts struct {
	name, origin string
	source       string // SHA-256, hex
	tokenizer    []byte
	ends         []uint32
	ignored      []string
	chat         ChatTemplate
	arch         Arch
	precision    Precision
	stride       int
	hashed       bool
}

// ChatTemplate is a chat template, not looked at, with the place that it came from. Both are empty
// where there is none.
type ChatTemplate struct{ Text, From string }

// record returns the size of one neuron's record without padding.
func (f facts) record() int { return int(f.arch.Shape.RecordBytes(f.precision.Bundles)) }

// dimensions pairs the names in the metadata with the fields of a Shape.
func dimensions(s *Shape) map[string]*int {
	return map[string]*int{
		"rows_per_unit": &s.Rows, "d_model": &s.DModel, "layers": &s.Layers, "d_ffn": &s.DFFN,
		"heads":    &s.Heads,
		"kv_heads": &s.KVHeads, "head_dim": &s.HeadDim, "vocab": &s.Vocab,
		"max_positions": &s.MaxPos, "dtype_bytes": &s.DTypeSize,
	}
}

func digest(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

func (f facts) encode() map[string]string {
	meta := map[string]string{
		"format": imageFormat, "format_version": imageVersion,
		"arch": f.arch.Family, "activation": f.arch.Activation.String(),
		"dtype":        f.precision.Resident.String(),
		"architecture": f.arch.encode(), "bundle_format": f.precision.Bundles.String(),
		"model": f.name, "origin": f.origin, "source_sha256": f.source,
		"record_bytes": strconv.Itoa(f.record()), "stride": strconv.Itoa(f.stride),
	}
	for name, value := range dimensions(&f.arch.Shape) {
		meta[name] = strconv.Itoa(*value)
	}
	if len(f.tokenizer) > 0 {
		meta["tokenizer"] = string(f.tokenizer)
		meta["tokenizer_sha256"] = digest(f.tokenizer)
	}
	if len(f.ends) > 0 {
		meta[endsKey] = encodeEnds(f.ends)
	}
	if len(f.ignored) > 0 {
		text, err := json.Marshal(f.ignored)
		if err != nil {
			panic(err) // texts
		}
		meta[ignoredKey] = string(text)
	}
	if f.chat.Text != "" {
		meta["chat_template"], meta["chat_template_from"] = f.chat.Text, f.chat.From
	}
	if f.hashed {
		meta[hashesName] = hashesKind
	}
	return meta
}

// ignoredKey names the ignored fields in the metadata of an image.
const ignoredKey = "ignored_keys"

// decodeFacts checks the facts of the metadata against each other.
func decodeFacts(meta map[string]string) (facts, error) {
	f := facts{name: meta["model"], origin: meta["origin"], source: meta["source_sha256"],
		tokenizer: []byte(meta["tokenizer"]), hashed: meta[hashesName] != "",
		chat: ChatTemplate{meta["chat_template"], meta["chat_template_from"]}}
	if meta["format"] != imageFormat {
		return f, fmt.Errorf("%w: not a flash image; make one with windrow pack",
			checkpoint.ErrFormat)
	}
	if err := f.decodeArch(meta); err != nil {
		return f, err
	}
	shape, record := f.arch.Shape, 0
	var stated Shape
	fields := dimensions(&stated)
	fields["record_bytes"], fields["stride"] = &record, &f.stride
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v, err := strconv.Atoi(meta[name])
		if err != nil {
			return f, fmt.Errorf("%w: metadata %s is %.100q, not a number", checkpoint.ErrFormat,
				name, meta[name])
		}
		*fields[name] = v
	}
	if meta["format_version"] == "1" {
		f.arch, shape = versionOne(stated), stated
		if err := f.arch.check(); err != nil {
			return f, err
		}
	}
	if stated != shape {
		return f, fmt.Errorf("%w: the metadata's dimensions %+v are not those of its architecture",
			checkpoint.ErrFormat, stated)
	}
	if err := f.precision.check(shape); err != nil {
		return f, err
	}
	if record != f.record() {
		return f, fmt.Errorf("%w: record_bytes is %d, the shape makes %d", checkpoint.ErrFormat,
			record, f.record())
	}
	if err := f.checkStride(); err != nil {
		return f, err
	}
	if raw, err := hex.DecodeString(f.source); err != nil || len(raw) != sha256.Size {
		return f, fmt.Errorf("%w: source_sha256 is %.100q", checkpoint.ErrFormat, f.source)
	}
	var err error
	if f.ends, err = decodeEnds(meta[endsKey], shape.Vocab); err != nil {
		return f, err
	}
	if text := meta[ignoredKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &f.ignored); err != nil {
			return f, fmt.Errorf("%w: metadata %s is %.100q, not a list of texts",
				checkpoint.ErrFormat, ignoredKey, text)
		}
	}
	if want := meta["tokenizer_sha256"]; len(f.tokenizer) > 0 && digest(f.tokenizer) != want {
		return f, fmt.Errorf("%w: the tokenizer is not the one that tokenizer_sha256 %.100q names",
			checkpoint.ErrFormat, want)
	}
	return f, nil
}

// versionOne returns the architecture of images without one (version 1).
func versionOne(s Shape) Arch {
	return Arch{
		Family: OPT, Shape: s, Activation: Activation{Kind: ReLU}, Epsilon: 1e-5, Positions: true,
		Tied: true, FinalNorm: true,
		AttnBias: true, OutBias: true, FFNBias: true, Embed: s.DModel,
	}
}

// decodeArch reads the architecture and the formats.
func (f *facts) decodeArch(meta map[string]string) (err error) {
	switch version := meta["format_version"]; version {
	case "1":
		f.precision = Precision{ref.F16, ref.F16}
		for _, c := range [][2]string{{"arch", OPT}, {"activation", string(ReLU)},
			{"dtype", ref.F16.String()}} {
			if got := meta[c[0]]; got != c[1] {
				return fmt.Errorf("%w: %s is %.100q in an image of version 1; this program "+
					"knows %q", checkpoint.ErrUnsupported, c[0], got, c[1])
			}
		}
		return nil
	case imageVersion:
	default:
		return fmt.Errorf("%w: format_version is %.100q; this program knows 1 and %s",
			checkpoint.ErrUnsupported, version, imageVersion)
	}
	if f.arch, err = decodeArch(meta["architecture"]); err != nil {
		return err
	}
	if meta["arch"] != f.arch.Family || meta["activation"] != f.arch.Activation.String() {
		return fmt.Errorf("%w: arch %.100q and activation %.100q are not those of the architecture",
			checkpoint.ErrFormat, meta["arch"], meta["activation"])
	}
	var known bool
	if f.precision.Resident, known = ref.ParseFormat(meta["dtype"]); !known {
		return fmt.Errorf("%w: dtype is %.100q", checkpoint.ErrUnsupported, meta["dtype"])
	}
	if f.precision.Bundles, known = ref.ParseFormat(meta["bundle_format"]); !known {
		return fmt.Errorf("%w: bundle_format is %.100q", checkpoint.ErrUnsupported,
			meta["bundle_format"])
	}
	return nil
}

// maxStride bounds the padding of a record.
const maxStride = 64 << 20

// strideAlign keeps elements and scales aligned.
func (f facts) strideAlign() int { return max(2, int(dtypeOf(f.precision.Bundles).Size())) }

func (f facts) checkStride() error {
	align := f.strideAlign()
	if f.stride < f.record() || f.stride%align != 0 || f.stride > maxStride {
		return fmt.Errorf("%w: stride %d; a multiple of %d from the record's %d to %d is needed",
			checkpoint.ErrFormat, f.stride, align, f.record(), maxStride)
	}
	return nil
}
