package traces

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/traces/internal/arrowfile"
)

// metaKey is the key in the schema metadata. Its value is the header of a trace or the RunMeta of a
// Run, as JSON.
const metaKey = "windrow"

// maxMeta bounds the size of the JSON in a file's metadata or a manifest.
const maxMeta = 16 << 20

// Buffers of the columns of a trace, by index.
const (
	colSeq = iota
	colPos
	colPhase
	colToken
	colLayer
	colActive
	colPredicted
	colMagOffsets
	colMagCodes
	colFeature
	numBuffers
)

// traceColumns returns the columns of a trace with header h.
func traceColumns(h *Header) []arrowfile.Column {
	mask := 8 * h.Words()
	cols := []arrowfile.Column{
		{Name: "seq", Type: arrowfile.Uint32},
		{Name: "pos", Type: arrowfile.Uint32},
		{Name: "phase", Type: arrowfile.Uint8},
		{Name: "token", Type: arrowfile.Uint32},
		{Name: "layer", Type: arrowfile.Uint16},
		{Name: "active", Type: arrowfile.Fixed, Size: mask},
	}
	if h.HasPredicted {
		cols = append(cols, arrowfile.Column{Name: "predicted", Type: arrowfile.Fixed, Size: mask})
	}
	if h.HasMagnitude {
		cols = append(cols, arrowfile.Column{Name: "magnitude", Type: arrowfile.Binary,
			Size: h.Units})
	}
	if h.FeatureKind != "" {
		cols = append(cols, arrowfile.Column{Name: "feature", Type: arrowfile.Fixed,
			Size: h.featureBytes()})
	}
	return cols
}

// traceBuffers returns the buffers of these columns, in order.
func traceBuffers(h *Header) []int {
	bufs := []int{colSeq, colPos, colPhase, colToken, colLayer, colActive}
	if h.HasPredicted {
		bufs = append(bufs, colPredicted)
	}
	if h.HasMagnitude {
		bufs = append(bufs, colMagOffsets, colMagCodes)
	}
	if h.FeatureKind != "" {
		bufs = append(bufs, colFeature)
	}
	return bufs
}

// headerMeta returns the schema metadata of a trace: the header as JSON, and its fields again as
// flat keys for tools that show metadata as text.
func headerMeta(h *Header) ([]arrowfile.Pair, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	host, err := json.Marshal(h.Host)
	if err != nil {
		return nil, fmt.Errorf("header: host: %w", err)
	}
	pairs := []arrowfile.Pair{
		{Key: metaKey, Value: string(text)},
		{Key: "schema_version", Value: h.SchemaVersion},
		{Key: "tool", Value: h.Tool},
		{Key: "unit_kind", Value: string(h.UnitKind)},
		{Key: "layers", Value: strconv.Itoa(h.Layers)},
		{Key: "units", Value: strconv.Itoa(h.Units)},
		{Key: "bytes_per_unit", Value: strconv.FormatInt(int64(h.UnitBytes), 10)},
		{Key: "model", Value: h.Model},
		{Key: "model_sha256", Value: h.ModelSHA256},
		{Key: "tokenizer_sha256", Value: h.Tokenizer},
		{Key: "activation", Value: h.Activation},
		{Key: "threshold", Value: strconv.FormatFloat(h.Threshold, 'g', -1, 64)},
		{Key: "dtype", Value: h.DType},
		{Key: "seed", Value: strconv.FormatUint(h.Seed, 10)},
		{Key: "sampling", Value: h.Sampling},
		{Key: "synthetic", Value: strconv.FormatBool(h.Synthetic)},
		{Key: "has_predicted", Value: strconv.FormatBool(h.HasPredicted)},
		{Key: "has_magnitude", Value: strconv.FormatBool(h.HasMagnitude)},
		{Key: "host", Value: string(host)},
	}
	if h.FeatureKind != "" {
		pairs = append(pairs, arrowfile.Pair{Key: "feature_kind", Value: h.FeatureKind},
			arrowfile.Pair{Key: "feature_width", Value: strconv.Itoa(h.FeatureWidth)})
	}
	if h.DerivedBy != "" {
		pairs = append(pairs, arrowfile.Pair{Key: "derived_from_sha256", Value: h.DerivedFrom},
			arrowfile.Pair{Key: "derived_by", Value: h.DerivedBy})
	}
	return pairs, nil
}

// readHeader reads and checks the header of a parsed file.
func readHeader(f *arrowfile.File) (Header, error) {
	var h Header
	if err := readMeta(f, &h); err != nil {
		return h, err
	}
	if err := checkVersion(h.SchemaVersion); err != nil {
		return h, err
	}
	if err := checkHeader(&h); err != nil {
		return h, fmt.Errorf("%w: %w", err, ErrFormat)
	}
	if !h.HasPredicted && f.Has("predicted") {
		return h, fmt.Errorf("there is a column \"predicted\" but the header says has_predicted "+
			"false: %w", ErrFormat)
	}
	return h, nil
}

// readMeta decodes the JSON in the file's metadata.
func readMeta(f *arrowfile.File, into any) error {
	text, ok := f.Meta(metaKey)
	if !ok {
		return fmt.Errorf("the schema metadata has no key %q, so this is not a file of windrow: %w",
			metaKey, ErrFormat)
	}
	if len(text) > maxMeta {
		return fmt.Errorf("%d bytes of metadata, more than %d: %w", len(text), maxMeta,
			ErrUnsupported)
	}
	if err := input.DecodeJSON(text, into); err != nil {
		return fmt.Errorf("schema metadata %q: %w: %w", metaKey, err, ErrFormat)
	}
	return nil
}

// checkVersion refuses a schema version with another major number.
func checkVersion(v string) error {
	major, _, _ := strings.Cut(v, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return fmt.Errorf("schema_version %q is not major.minor: %w", v, ErrFormat)
	}
	ours, _, _ := strings.Cut(SchemaVersion, ".")
	if major != ours {
		return fmt.Errorf("schema_version %s, this program reads %s.x; it needs a version of "+
			"windrow for schema %d: %w",
			v, ours, n, ErrUnsupported)
	}
	return nil
}

// The ranges of numbers in a header. The largest layer is 20 times that of any model; it takes a
// drive of 1 kB/s less time than the simulator's clock counts.
var (
	layerRange     = bounds.Range[int]{Least: 1, Most: NoLayer - 1, Why: "no model has more"}
	unitRange      = bounds.Range[int]{Least: 1, Most: 1 << 24, Why: "no layer has more"}
	unitBytesRange = bounds.Range[int64]{Least: 0, Most: 1 << 34,
		Why: "the largest experts are far below that"}
	layerBytesRange = bounds.Range[int64]{Least: 0, Most: 1 << 38, Why: "no layer is larger"}
	dimensionRange  = bounds.Range[int]{Least: 0, Most: 1 << 24, Why: "no model has larger ones"}
	widthRange      = bounds.Range[int]{Least: 1, Most: 1 << 24, Why: "no model is wider"}
	residentRange   = bounds.Range[int64]{Least: 0, Most: 1 << 50, Why: "no model is larger"}
	featureRange    = bounds.Range[int]{Least: 1, Most: maxFeatureWidth, Why: "no model is wider"}
)

// checkHeader checks the fields that the reader and the writer rely on.
func checkHeader(h *Header) error {
	if f := h.checkNumbers(); f.Path != "" {
		return fmt.Errorf("header: %s: %v %s", f.Path, f.Value, f.Why)
	}
	switch {
	case !layerBytesRange.Has(int64(h.Units) * int64(h.UnitBytes)):
		return fmt.Errorf("header: %d units of %d bytes, need at most %d bytes in a layer", h.Units,
			int64(h.UnitBytes), layerBytesRange.Most)
	case h.UnitKind != Neuron && h.UnitKind != Expert:
		return fmt.Errorf("header: unit kind %q, need %q or %q", h.UnitKind, Neuron, Expert)
	case !knownFeature(h):
		return fmt.Errorf("header: features of kind %q, need one of %s", h.FeatureKind,
			strings.Join(FeatureKinds(), ", "))
	case h.FeatureKind == "" && h.FeatureWidth != 0:
		return fmt.Errorf("header: feature_width %d, but feature_kind does not say what the "+
			"features are", h.FeatureWidth)
	}
	return nil
}

// checkNumbers compares the numbers with their ranges.
func (h *Header) checkNumbers() (f bounds.First) {
	bounds.Want(&f, "layers", h.Layers, layerRange)
	bounds.Want(&f, "units", h.Units, unitRange)
	bounds.Want(&f, "bytes_per_unit", int64(h.UnitBytes), unitBytesRange)
	s := &h.Shape
	bounds.Want(&f, "shape.d_model", s.DModel, dimensionRange)
	bounds.Want(&f, "shape.layers", s.Layers, dimensionRange)
	bounds.Want(&f, "shape.d_ffn", s.DFFN, dimensionRange)
	bounds.Want(&f, "shape.heads", s.Heads, dimensionRange)
	bounds.Want(&f, "shape.kv_heads", s.KVHeads, dimensionRange)
	bounds.Want(&f, "shape.head_dim", s.HeadDim, dimensionRange)
	bounds.Want(&f, "shape.vocab", s.Vocab, dimensionRange)
	bounds.Want(&f, "shape.max_positions", s.MaxPos, dimensionRange)
	bounds.Want(&f, "shape.rows_per_unit", s.Rows, dimensionRange)
	bounds.Want(&f, "shape.dtype_bytes", s.DTypeSize, dimensionRange)
	if h.FeatureKind != "" {
		bounds.Want(&f, "feature_width", h.FeatureWidth, featureRange)
	}
	r := h.Resident
	if r == nil {
		return f
	}
	bounds.Want(&f, "resident.embeddings_bytes", int64(r.Embeddings), residentRange)
	bounds.Want(&f, "resident.attention_bytes", int64(r.Attention), residentRange)
	bounds.Want(&f, "resident.other_bytes", int64(r.Other), residentRange)
	bounds.Want(&f, "resident.embed_width", r.EmbedWidth, widthRange)
	return f
}

// String returns the lower-case name used in text forms.
func (p Phase) String() string {
	switch p {
	case Prefill:
		return "prefill"
	case Decode:
		return "decode"
	default:
		return "phase " + strconv.Itoa(int(p))
	}
}
