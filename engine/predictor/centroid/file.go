package centroid

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/input"
)

// The file is a safetensors file:
//
//	input.mean, input.scale   F32 (width)
//	network.N.weight, .bias   F16 (out, in), F32 (out): the trunk, then all heads as one, in the
//	                          order of Shape.head
//	layers.L.P.centroids      U64 (centroid, words): layer L, projection P
//	layers.L.hotness          U32 (units): how many training tokens had the unit active
//
// and metadata: format, version, and as JSON shape, hidden (widths of the trunk), clustering (its
// options) and facts.
const (
	// Format is the first fact in the metadata of a predictor's file.
	Format      = "windrow.centroid"
	fileVersion = "1"
)

// Save writes the predictor to a file, which becomes visible whole or not at all.
func (p *Predictor) Save(path string) error {
	meta, err := p.metadata()
	if err != nil {
		return fmt.Errorf("centroid: %s: %w", path, err)
	}
	parts := p.parts()
	infos := make([]checkpoint.TensorInfo, len(parts))
	for i, t := range parts {
		infos[i] = t.TensorInfo
	}
	w, err := checkpoint.NewWriter(path, infos, meta, checkpoint.WriterOptions{})
	if err != nil {
		return fmt.Errorf("centroid: %w", err)
	}
	defer w.Abort()
	for _, t := range parts {
		if err := w.Begin(t.Name); err != nil {
			return fmt.Errorf("centroid: %w", err)
		}
		if err := binary.Write(w, binary.LittleEndian, t.data); err != nil {
			return fmt.Errorf("centroid: %w", err)
		}
	}
	if err := w.Commit(); err != nil {
		return fmt.Errorf("centroid: %w", err)
	}
	return nil
}

func (p *Predictor) metadata() (map[string]string, error) {
	hidden := []int{}
	for _, d := range p.layers[:len(p.layers)-1] {
		hidden = append(hidden, d.out)
	}
	meta := map[string]string{"format": Format, "version": fileVersion}
	for name, v := range map[string]any{
		"shape": p.book.shape, "hidden": hidden, "facts": p.facts,
		"clustering": p.book.made,
	} {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		meta[name] = string(text)
	}
	return meta, nil
}

// tensor is a part of the file with its content.
type tensor struct {
	checkpoint.TensorInfo
	data any // a slice
}

const (
	u32 checkpoint.DType = "U32"
	u64 checkpoint.DType = "U64"
)

func centroidsName(layer, projection int) string {
	return fmt.Sprintf("layers.%d.%d.centroids", layer, projection)
}
func hotnessName(layer int) string { return fmt.Sprintf("layers.%d.hotness", layer) }
func weightName(l int) string      { return fmt.Sprintf("network.%d.weight", l) }
func biasName(l int) string        { return fmt.Sprintf("network.%d.bias", l) }

// parts lists the tensors in the order of the file.
func (p *Predictor) parts() (list []tensor) {
	put := func(name string, dtype checkpoint.DType, data any, shape ...int) {
		info := checkpoint.TensorInfo{Name: name, DType: dtype}
		for _, n := range shape {
			info.Shape = append(info.Shape, int64(n))
		}
		list = append(list, tensor{info, data})
	}
	shape := p.book.shape
	put("input.mean", checkpoint.F32, p.mean, shape.Width)
	put("input.scale", checkpoint.F32, p.scale, shape.Width)
	for l, d := range p.layers {
		put(weightName(l), checkpoint.F16, d.w, d.out, d.in)
		put(biasName(l), checkpoint.F32, d.b, d.out)
	}
	for layer := 1; layer < shape.Layers; layer++ {
		for projection := range shape.Projections {
			v := p.book.Vocabulary(layer, projection)
			put(centroidsName(layer, projection), u64, v.masks, v.Count(), shape.words())
		}
		put(hotnessName(layer), u32, p.book.hot[layer-1], shape.Units)
	}
	return list
}

// Load reads the file of a predictor. It checks the content, so that predictions cannot fail: a
// broken file is an ErrFormat, a file of another kind or a later version an ErrUnsupported.
func Load(ctx context.Context, path string) (*Predictor, error) {
	f, err := checkpoint.Open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("centroid: %w", err)
	}
	defer f.Close()
	p, err := load(f)
	if err != nil {
		return nil, fmt.Errorf("centroid: %s: %w", path, err)
	}
	return p, nil
}

func load(f *checkpoint.File) (*Predictor, error) {
	meta := f.Metadata()
	if got := meta["format"]; got != Format {
		return nil, fmt.Errorf("%w: format %.100q is not a centroid predictor (%q)", ErrUnsupported,
			got, Format)
	}
	if got := meta["version"]; got != fileVersion {
		return nil, fmt.Errorf("%w: version %.100q, this program reads %q; train the predictor "+
			"again",
			ErrUnsupported, got, fileVersion)
	}
	p := &Predictor{book: &Codebook{}}
	var hidden []int
	for _, part := range []struct {
		name string
		to   any
	}{{"shape", &p.book.shape}, {"hidden", &hidden}, {"clustering", &p.book.made},
		{"facts", &p.facts}} {
		dec := json.NewDecoder(bytes.NewReader([]byte(meta[part.name])))
		dec.DisallowUnknownFields()
		if err := dec.Decode(part.to); err != nil {
			if where := input.DecodeJSON([]byte(meta[part.name]), part.to); where != nil {
				return nil, fmt.Errorf("%w: metadata %w", ErrFormat, input.Within(where, part.name,
					0))
			}
			return nil, fmt.Errorf("%w: metadata %s: %w", ErrFormat, part.name, err)
		}
	}
	if f := p.checkFacts(); f.Path != "" {
		return nil, fmt.Errorf("%w: metadata %s: %v %s", ErrFormat, f.Path, f.Value, f.Why)
	}
	m, err := p.book.made.metric()
	if err == nil {
		err = p.book.shape.check()
	}
	if err == nil {
		err = checkHidden(hidden)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: metadata: %w", ErrFormat, err)
	}
	r := &reader{file: f}
	r.book(p.book, m)
	r.network(p, hidden)
	if r.err == nil && r.read != len(f.Tensors()) {
		r.err = fmt.Errorf("%w: %d tensors, want %d", ErrFormat, len(f.Tensors()), r.read)
	}
	return p, r.err
}

// The ranges of numbers that say how a predictor was made.
var (
	countRange = bounds.Range[int64]{Least: 0, Most: 1 << 40, Why: "no training has more"}
	speedRange = bounds.Range[float64]{Least: 0, Most: 1e6, Why: "no training is faster"}
)

// checkFacts finds numbers that no training has. Nothing is computed from them.
func (p *Predictor) checkFacts() (f bounds.First) {
	made, trained := &p.book.made, &p.facts.Training
	bounds.Want(&f, "clustering.tokens", int64(made.Tokens), countRange)
	bounds.Want(&f, "clustering.count", int64(made.Count), countRange)
	bounds.Want(&f, "clustering.iterations", int64(made.Iterations), countRange)
	bounds.Want(&f, "clustering.miss_cost", int64(made.MissCost), countRange)
	bounds.Want(&f, "clustering.extra_cost", int64(made.ExtraCost), countRange)
	bounds.Want(&f, "clustering.size", int64(made.Size), countRange)
	bounds.Want(&f, "clustering.memory", int64(made.Memory), countRange)
	bounds.Want(&f, "facts.training.tokens", int64(trained.Tokens), countRange)
	bounds.Want(&f, "facts.training.held", int64(trained.Held), countRange)
	bounds.Want(&f, "facts.training.epochs", int64(trained.Epochs), countRange)
	bounds.Want(&f, "facts.training.patience", int64(trained.Patience), countRange)
	bounds.Want(&f, "facts.training.batch", int64(trained.Batch), countRange)
	bounds.Want(&f, "facts.training.rate", trained.Rate, speedRange)
	return f
}

// metric is how masks are compared.
func (s Clustering) metric() (metric, error) {
	d, err := ParseDistance(s.Distance)
	if err != nil {
		return metric{}, err
	}
	m := metric{d, s.MissCost, s.ExtraCost}
	return m, m.check()
}

// reader reads tensors and keeps the first error.
type reader struct {
	file *checkpoint.File
	read int
	err  error
}

// readTensor reads a tensor, which must have the type and shape. It allocates after the check, so
// the file bounds its memory.
func readTensor[T uint16 | uint32 | uint64 | float32](r *reader, name string,
	dtype checkpoint.DType, shape ...int) []T {
	if r.err != nil {
		return nil
	}
	want := make([]int64, len(shape))
	n := 1
	for i, d := range shape {
		want[i] = int64(d)
		n *= d
	}
	info, ok := r.file.Tensor(name)
	if !ok || info.DType != dtype || !slices.Equal(info.Shape, want) {
		r.err = fmt.Errorf("%w: tensor %q is %s%v, want %s%v", ErrFormat, name, info.DType,
			info.Shape, dtype, want)
		return nil
	}
	section, err := r.file.Section(name)
	if err != nil {
		r.err = err
		return nil
	}
	data := make([]T, n)
	if err := binary.Read(section, binary.LittleEndian, data); err != nil {
		r.err = fmt.Errorf("tensor %q: %w", name, err)
	}
	r.read++
	return data
}

// floats reads float32 that must be finite.
func (r *reader) floats(name string, n int) []float32 {
	data := readTensor[float32](r, name, checkpoint.F32, n)
	for i, v := range data {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			r.fail("tensor %q: element %d is %v", name, i, v)
			break
		}
	}
	return data
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrFormat}, args...)...)
	}
}

func (r *reader) book(b *Codebook, m metric) {
	s := b.shape
	for layer := 1; layer < s.Layers && r.err == nil; layer++ {
		for projection := range s.Projections {
			name := centroidsName(layer, projection)
			info, _ := r.file.Tensor(name)
			if len(info.Shape) != 2 || info.Shape[0] < 1 || info.Shape[0] > maxCount {
				r.fail("tensor %q has shape %v, want 1 to %d masks", name, info.Shape, maxCount)
				return
			}
			masks := readTensor[uint64](r, name, u64, int(info.Shape[0]), s.words())
			if r.err != nil {
				return
			}
			v := newVocabulary(s.Units, m, masks)
			for id := range v.Count() {
				if !v.Mask(id).Padded(s.Units) {
					r.fail("tensor %q: mask %d has a bit beyond unit %d", name, id, s.Units-1)
				}
			}
			b.vocabs = append(b.vocabs, v)
		}
		b.hot = append(b.hot, readTensor[uint32](r, hotnessName(layer), u32, s.Units))
	}
	if r.err == nil {
		b.rank()
	}
}

func (r *reader) network(p *Predictor, hidden []int) {
	if r.err != nil {
		return
	}
	p.mean = r.floats("input.mean", p.book.shape.Width)
	p.scale = r.floats("input.scale", p.book.shape.Width)
	logits := 0
	for _, v := range p.book.vocabs {
		logits += v.Count()
	}
	in := p.book.shape.Width
	for l, out := range append(slices.Clone(hidden), logits) {
		d := dense{in: in, out: out}
		d.w = readTensor[uint16](r, weightName(l), checkpoint.F16, out, in)
		d.b = r.floats(biasName(l), out)
		for i, h := range d.w {
			if h&^signF16 >= infF16 {
				r.fail("tensor %q: element %d is not finite", weightName(l), i)
				break
			}
		}
		p.layers = append(p.layers, d)
		in = out
	}
}
