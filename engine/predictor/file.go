package predictor

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/input"
)

// A predictor's file is a safetensors file of, for each layer with a rank,
//
//	layers.N.fc1.weight  F16 [rank, width]     layers.N.fc1.bias  F32 [rank]   (if it has biases)
//	layers.N.fc2.weight  F16 [units, rank]     layers.N.fc2.bias  F32 [units]  (if it has biases)
//
// and this metadata:
//
//	format, format_version                  constants
//	kind, origin, feature, settings         as in Predictor and Facts
//	layers, width, units                    numbers
//	cuts                                    JSON, one number for each layer
//	model_sha256, trace_sha256              identities, possibly empty
const (
	// Format is the first fact in the metadata of a predictor's file.
	Format      = "windrow low-rank predictor"
	fileVersion = "1"
)

// part is a matrix or vector of a file.
type part struct {
	name  string
	dtype checkpoint.DType
	shape []int64
	half  []uint16
	full  []float32
}

func fc(layer, number int, what string) string {
	return fmt.Sprintf("layers.%d.fc%d.%s", layer, number, what)
}

// parts lists a layer's tensors in a file.
func (p *Predictor) parts(layer int) []part {
	l := &p.layers[layer]
	if l.Rank == 0 {
		return nil
	}
	r, d, u := int64(l.Rank), int64(p.width), int64(p.units)
	list := []part{{fc(layer, 1, "weight"), checkpoint.F16, []int64{r, d}, l.W1, nil}}
	if l.B1 != nil {
		list = append(list, part{fc(layer, 1, "bias"), checkpoint.F32, []int64{r}, nil, l.B1})
	}
	list = append(list, part{fc(layer, 2, "weight"), checkpoint.F16, []int64{u, r}, l.W2, nil})
	if l.B2 != nil {
		list = append(list, part{fc(layer, 2, "bias"), checkpoint.F32, []int64{u}, nil, l.B2})
	}
	return list
}

// bytes is the content of the part, little-endian.
func (t *part) bytes() []byte {
	out := make([]byte, 0, 2*len(t.half)+4*len(t.full))
	for _, v := range t.half {
		out = binary.LittleEndian.AppendUint16(out, v)
	}
	for _, v := range t.full {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// Save writes the predictor to a file, which appears whole or not at all. The same predictor gives
// the same bytes.
func (p *Predictor) Save(path string) error { return p.save(path, nil) }

// save adds more to the metadata.
func (p *Predictor) save(path string, more map[string]string) error {
	cuts := make([]float32, len(p.layers))
	var list []part
	for l := range p.layers {
		cuts[l] = p.layers[l].MinLogit
		list = append(list, p.parts(l)...)
	}
	text, err := json.Marshal(cuts)
	if err != nil {
		return fmt.Errorf("predictor: write %s: %w", path, err)
	}
	meta := map[string]string{
		"format": Format, "format_version": fileVersion, "kind": string(p.kind),
		"cuts":   string(text),
		"layers": strconv.Itoa(len(p.layers)), "width": strconv.Itoa(p.width),
		"units":  strconv.Itoa(p.units),
		"origin": p.facts.Origin, "feature": string(p.facts.Feature), "settings": p.facts.Settings,
		"model_sha256": p.facts.Model, "trace_sha256": p.facts.Trace,
	}
	for name, value := range more {
		meta[name] = value
	}
	tensors := make([]checkpoint.TensorInfo, len(list))
	for i, t := range list {
		tensors[i] = checkpoint.TensorInfo{Name: t.name, DType: t.dtype, Shape: t.shape}
	}
	w, err := checkpoint.NewWriter(path, tensors, meta, checkpoint.WriterOptions{})
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, t := range list {
		if err := w.Begin(t.name); err != nil {
			return err
		}
		if _, err := w.Write(t.bytes()); err != nil {
			return err
		}
	}
	return w.Commit()
}

// Load reads a predictor from a file of Save. A broken file is a checkpoint.ErrFormat; one of
// another kind or version is a checkpoint.ErrUnsupported. Use For to check that it suits a model.
func Load(ctx context.Context, path string) (*Predictor, error) {
	p, _, err := load(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("predictor: %w", err)
	}
	return p, nil
}

func load(ctx context.Context, path string) (*Predictor, map[string]string, error) {
	f, err := checkpoint.Open(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	p, err := decode(f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, f.Metadata(), nil
}

func decode(f *checkpoint.File) (*Predictor, error) {
	meta := f.Metadata()
	if meta["format"] != Format {
		return nil, fmt.Errorf("%w: not a low-rank predictor; make one with windrow train",
			checkpoint.ErrUnsupported)
	}
	if meta["format_version"] != fileVersion {
		return nil, fmt.Errorf("%w: format_version is %.100q; this program knows %q",
			checkpoint.ErrUnsupported, meta["format_version"], fileVersion)
	}
	var layers, width, unitsPerLayer int
	for name, v := range map[string]*int{"layers": &layers, "width": &width,
		"units": &unitsPerLayer} {
		n, err := strconv.Atoi(meta[name])
		if err != nil {
			return nil, fmt.Errorf("%w: metadata %s is %.100q, not a number", checkpoint.ErrFormat,
				name, meta[name])
		}
		*v = n
	}
	if err := checkShape(layers, width, unitsPerLayer); err != nil {
		return nil, fmt.Errorf("%w: %w", checkpoint.ErrFormat, err)
	}
	var cuts []float32
	if err := input.DecodeJSON([]byte(meta["cuts"]), &cuts); err != nil {
		return nil, fmt.Errorf("%w: metadata %w", checkpoint.ErrFormat, input.Within(err, "cuts",
			0))
	}
	if len(cuts) != layers {
		return nil, fmt.Errorf("%w: metadata cuts has %d numbers, not one for each of %d layers",
			checkpoint.ErrFormat, len(cuts), layers)
	}
	list, used := make([]Layer, layers), 0
	for l := range list {
		n, err := readLayer(f, &list[l], names{fc(l, 1, "weight"), fc(l, 1, "bias"),
			fc(l, 2, "weight"), fc(l, 2, "bias")}, width, unitsPerLayer)
		if errors.Is(err, ErrMismatch) { // with the shape in its metadata
			err = fmt.Errorf("%w: %w", checkpoint.ErrFormat, err)
		}
		if err != nil {
			return nil, err
		}
		list[l].MinLogit = cuts[l]
		used += n
	}
	if all := len(f.Tensors()); used != all {
		return nil, fmt.Errorf("%w: %d of %d tensors are not a predictor's", checkpoint.ErrFormat,
			all-used, all)
	}
	facts := Facts{Origin: meta["origin"], Feature: Feature(meta["feature"]),
		Model: meta["model_sha256"], Trace: meta["trace_sha256"], Settings: meta["settings"]}
	p, err := New(Kind(meta["kind"]), width, unitsPerLayer, list, facts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", checkpoint.ErrFormat, err)
	}
	return p, nil
}
