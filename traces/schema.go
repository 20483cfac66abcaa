package traces

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

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
	if err := json.Unmarshal(text, into); err != nil {
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

// checkHeader checks the fields that the reader and the writer rely on.
func checkHeader(h *Header) error {
	const (
		maxUnits     = 1 << 24
		maxUnitBytes = 1 << 34 // the largest experts are far below that
		maxDimension = 1 << 24
		// 20 times the largest layer of any model. It takes a drive of 1 kB/s less time than the
		// simulator's clock counts.
		maxLayerBytes = 1 << 38
	)
	switch {
	case h.Layers < 1 || h.Layers >= NoLayer:
		return fmt.Errorf("header: %d layers, need 1..%d", h.Layers, NoLayer-1)
	case h.Units < 1 || h.Units > maxUnits:
		return fmt.Errorf("header: %d units per layer, need 1..%d", h.Units, maxUnits)
	case h.UnitBytes < 0 || h.UnitBytes > maxUnitBytes:
		return fmt.Errorf("header: %d bytes per unit, need 0..%d", int64(h.UnitBytes),
			int64(maxUnitBytes))
	case int64(h.Units)*int64(h.UnitBytes) > maxLayerBytes:
		return fmt.Errorf("header: %d units of %d bytes, need at most %d bytes in a layer", h.Units,
			int64(h.UnitBytes), int64(maxLayerBytes))
	case h.UnitKind != Neuron && h.UnitKind != Expert:
		return fmt.Errorf("header: unit kind %q, need %q or %q", h.UnitKind, Neuron, Expert)
	case !knownFeature(h):
		return fmt.Errorf("header: features of kind %q, need one of %s", h.FeatureKind,
			strings.Join(FeatureKinds(), ", "))
	case h.FeatureKind == "" && h.FeatureWidth != 0:
		return fmt.Errorf("header: features of %d numbers, but feature_kind does not say what "+
			"they are", h.FeatureWidth)
	case h.FeatureKind != "" && (h.FeatureWidth < 1 || h.FeatureWidth > maxFeatureWidth):
		return fmt.Errorf("header: features of %d numbers, need 1..%d", h.FeatureWidth,
			maxFeatureWidth)
	}
	s := &h.Shape
	for _, v := range []int{s.DModel, s.Layers, s.DFFN, s.Heads, s.KVHeads, s.HeadDim, s.Vocab,
		s.MaxPos, s.Rows, s.DTypeSize} {
		if v < 0 || v > maxDimension {
			return fmt.Errorf("header: shape %+v: every dimension is 0..%d", *s, maxDimension)
		}
	}
	return h.Resident.check()
}

// check refuses sizes that no model has.
func (r *Resident) check() error {
	const most = 1 << 50 // bytes
	if r == nil {
		return nil
	}
	if min(r.Embeddings, r.Attention, r.Other) < 0 || max(r.Embeddings, r.Attention,
		r.Other) > most ||
		r.EmbedWidth < 1 || r.EmbedWidth > 1<<24 {
		return fmt.Errorf("header: resident weights %+v: sizes are 0..%d bytes, the width of an "+
			"embedding is 1..%d", *r, int64(most), 1<<24)
	}
	return nil
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
