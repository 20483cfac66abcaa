package model

import (
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// Matrix is a resident matrix, row by row, in the format of its Weights.
type Matrix struct {
	Rows, Cols int
	Data       []byte
}

// Linear is y = W·x + B; B is nil where there is no bias.
type Linear struct {
	W Matrix
	B []float32 // (rows)
}

// Norm is a norm's weight and bias; B is nil for RMS norms.
type Norm struct {
	W []float32
	B []float32
}

// Layer is the resident part of one decoder layer: all weights but the FFN's matrices. Weights that
// an architecture lacks are empty.
type Layer struct {
	AttnNorm     Norm
	Q, K, V, O   Linear
	QNorm, KNorm Norm // (head_dim), over each head
	FFNNorm      Norm // empty where AttnNorm serves both
	// over the outputs of attention and FFN
	AttnOutNorm, FFNOutNorm Norm
	GateBias                []float32
	// (d_ffn): decides with the up row whether a neuron without a gate is active
	UpBias   []float32
	DownBias []float32 // (d_model): added once per token
}

// Weights are the resident weights of a model. The slices are read only and shared by all users.
type Weights struct {
	Arch      Arch
	Shape     Shape      // Arch.Shape
	Resident  ref.Format // of all matrices here
	Bundles   ref.Format // of the rows on flash
	Embed     Matrix     // (vocab, embed_dim)
	Pos       Matrix     // OPT: (max_positions+2, d_model), position p is row p+2
	In, Out   Matrix     // OPT-350M: embed_dim to d_model and back, without bias
	Layers    []Layer
	FinalNorm Norm
	Head      Linear // empty where the embedding is the head
}

// newWeights returns Weights without any data.
func newWeights(a Arch, p Precision) *Weights {
	return &Weights{Arch: a, Shape: a.Shape, Resident: p.Resident, Bundles: p.Bundles,
		Layers: make([]Layer, a.Shape.Layers)}
}

// RecordBytes returns the size of one neuron's record without padding.
func (w *Weights) RecordBytes() int { return int(w.Shape.RecordBytes(w.Bundles)) }

// Memory is the size of the resident tensors, by kind.
func (w *Weights) Memory() (sizes memory.Weights) {
	for _, r := range newWeights(w.Arch, Precision{w.Resident, w.Bundles}).residents() {
		size := units.Bytes(r.elements() * r.dtype.Size())
		switch {
		case r.matrix == nil:
			sizes.Other += size
		case r.name == "embed" || r.name == "head.weight":
			sizes.Embeddings += size
		case strings.Contains(r.name, ".attn."):
			sizes.Attention += size
		default: // positions, and the projections around a narrower embedding
			sizes.Other += size
		}
	}
	return sizes
}

// Bytes is the size of the resident tensors.
func (w *Weights) Bytes() units.Bytes { return w.Memory().Total() }

// Precision is how an image stores weights. Vectors (norms, biases) are always F32.
type Precision struct {
	Resident ref.Format // F16, BF16 or F32
	Bundles  ref.Format // the same, or Q8 or Q4
}

func (p Precision) check(s Shape) error {
	switch {
	case p.Resident.Group() != 1 || p.Resident.Size(1) != s.DTypeSize:
		return fmt.Errorf("%w: resident weights in %s of %d bytes", checkpoint.ErrUnsupported,
			p.Resident, s.DTypeSize)
	case p.Bundles != p.Resident && p.Bundles.Group() == 1:
		return fmt.Errorf("%w: bundles in %s beside resident weights in %s",
			checkpoint.ErrUnsupported, p.Bundles, p.Resident)
	case s.DModel%p.Bundles.Group() != 0:
		return fmt.Errorf("%w: %s needs rows of a multiple of %d weights; d_model is %d",
			checkpoint.ErrUnsupported, p.Bundles, p.Bundles.Group(), s.DModel)
	}
	return nil
}

// naming holds the tensor names of a family's Hugging Face folders: paths without prefix and
// without ".weight" and ".bias". An empty path means that there is no such tensor.
type naming struct {
	prefixes []string // one of them is in front of all names but head's
	layer    string   // in front of the paths of a layer, "layers.%d."

	embed, pos, projIn, projOut, finalNorm, head string

	attnNorm, ffnNorm       string
	attnOutNorm, ffnOutNorm string
	onePlus                 bool // the norms' weights are stored less 1
	q, k, v, out            string
	fused                   string // q, k and v in one
	split                   func() (q, k, v []rowRange)
	qNorm, kNorm            string
	gate, up, down          string   // of the FFN: only their biases are resident
	gateUp                  string   // gate and up in one, in this order
	relics                  []string // tensors of a layer, or of the model, that mean nothing
}

// namesOf returns the names of a checked architecture's tensors.
func namesOf(a *Arch) naming { return familyOf(a).names(a) }

// groups splits a fused projection with rows for each key-value head: its queries, its key, its
// value.
func groups(a *Arch) func() (q, k, v []rowRange) {
	return func() (q, k, v []rowRange) {
		s := &a.Shape
		hd, per := int64(s.HeadDim), int64(s.Heads/s.KVHeads)
		for g := range int64(s.KVHeads) {
			at := g * (per + 2) * hd
			q = append(q, rowRange{at, per * hd})
			k = append(k, rowRange{at + per*hd, hd})
			v = append(v, rowRange{at + (per+1)*hd, hd})
		}
		return q, k, v
	}
}

// inOrder splits a fused projection with all queries first, then all keys, then all values.
func inOrder(a *Arch) func() (q, k, v []rowRange) {
	return func() (q, k, v []rowRange) {
		s := &a.Shape
		qDim, kvDim := int64(s.Heads*s.HeadDim), int64(s.KVHeads*s.HeadDim)
		return []rowRange{{0, qDim}}, []rowRange{{qDim, kvDim}}, []rowRange{{qDim + kvDim, kvDim}}
	}
}

// rowRange is a range of rows.
type rowRange struct{ first, count int64 }

// resident is one resident tensor: its names, its shape and its destination. Exactly one of matrix
// and vector is set.
type resident struct {
	name   string     // in an image
	source string     // in a Hugging Face folder, without prefix
	whole  []int64    // shape of the source; nil = shape
	rows   []rowRange // of the source that make up the tensor; nil = all
	shape  []int64
	dtype  checkpoint.DType
	plus   float32 // is added to the numbers of the folder
	matrix *Matrix
	vector *[]float32
}

func (r resident) elements() int64 {
	n := int64(1)
	for _, dim := range r.shape {
		n *= dim
	}
	return n
}

// sourceShape returns the shape of the tensor in the folder.
func (r resident) sourceShape() []int64 {
	if r.whole != nil {
		return r.whole
	}
	return r.shape
}

// residents lists the resident tensors in the order of an image. The float32 vectors come first, so
// that all tensors are aligned to their elements.
func (w *Weights) residents() []resident {
	a, s, n := &w.Arch, &w.Shape, namesOf(&w.Arch)
	d, ffn, hd := int64(s.DModel), int64(s.DFFN), int64(s.HeadDim)
	qDim, kvDim := int64(s.Heads)*hd, int64(s.KVHeads)*hd
	b := &tensorList{dtype: dtypeOf(w.Resident), onePlus: n.onePlus}
	for i := range w.Layers {
		l, name, source := &w.Layers[i], fmt.Sprintf("layers.%d.", i), fmt.Sprintf(n.layer, i)
		b.norm(name+"attn_norm", source+n.attnNorm, &l.AttnNorm, d, a.RMSNorm)
		for _, p := range l.projections(n, qDim, kvDim, d) {
			if p.bias(a) {
				b.vector(name+"attn."+p.name+".bias", source+p.source+".bias", &p.to.B, p.out,
					p.whole, p.rows)
			}
		}
		if a.QKNorm {
			b.norm(name+"attn.q_norm", source+n.qNorm, &l.QNorm, hd, a.RMSNorm)
			b.norm(name+"attn.k_norm", source+n.kNorm, &l.KNorm, hd, a.RMSNorm)
		}
		if n.ffnNorm != "" && !a.SharedNorm {
			b.norm(name+"ffn_norm", source+n.ffnNorm, &l.FFNNorm, d, a.RMSNorm)
		}
		if a.OutNorms {
			b.norm(name+"attn_out_norm", source+n.attnOutNorm, &l.AttnOutNorm, d, a.RMSNorm)
			b.norm(name+"ffn_out_norm", source+n.ffnOutNorm, &l.FFNOutNorm, d, a.RMSNorm)
		}
		if a.FFNBias {
			if a.gated() {
				b.vector(name+"ffn.gate_bias", source+n.gate+".bias", &l.GateBias, ffn, 0, nil)
			}
			b.vector(name+"ffn.up_bias", source+n.up+".bias", &l.UpBias, ffn, 0, nil)
			b.vector(name+"ffn.down_bias", source+n.down+".bias", &l.DownBias, d, 0, nil)
		}
	}
	if a.FinalNorm {
		b.norm("final_norm", n.finalNorm, &w.FinalNorm, d, a.RMSNorm)
	}
	if a.HeadBias {
		b.vector("head.bias", n.head+".bias", &w.Head.B, int64(s.Vocab), 0, nil)
	}
	b.matrix("embed", n.embed+".weight", &w.Embed, int64(s.Vocab), int64(a.Embed), 0, nil)
	if a.Positions {
		b.matrix("pos", n.pos+".weight", &w.Pos, int64(s.MaxPos+positionOffset), d, 0, nil)
	}
	if a.Embed != s.DModel {
		b.matrix("project_in", n.projIn+".weight", &w.In, d, int64(a.Embed), 0, nil)
		b.matrix("project_out", n.projOut+".weight", &w.Out, int64(a.Embed), d, 0, nil)
	}
	for i := range w.Layers {
		l, source := &w.Layers[i], fmt.Sprintf(n.layer, i)
		for _, p := range l.projections(n, qDim, kvDim, d) {
			b.matrix(fmt.Sprintf("layers.%d.attn.%s.weight", i, p.name), source+p.source+".weight",
				&p.to.W, p.out, p.in, p.whole, p.rows)
		}
	}
	if !a.Tied {
		b.matrix("head.weight", n.head+".weight", &w.Head.W, int64(s.Vocab), int64(a.Embed), 0, nil)
	}
	return b.list
}

// tensorList is a list of residents in the making.
type tensorList struct {
	list    []resident
	dtype   checkpoint.DType
	onePlus bool // norms
}

func (b *tensorList) vector(name, source string, to *[]float32, n, whole int64, rows []rowRange) {
	r := resident{name: name, source: source, rows: rows, shape: []int64{n}, dtype: checkpoint.F32,
		vector: to}
	if rows != nil {
		r.whole = []int64{whole}
	}
	b.list = append(b.list, r)
}

func (b *tensorList) matrix(name, source string, to *Matrix, out, in, whole int64,
	rows []rowRange) {
	to.Rows, to.Cols = int(out), int(in)
	r := resident{name: name, source: source, rows: rows, shape: []int64{out, in}, dtype: b.dtype,
		matrix: to}
	if rows != nil {
		r.whole = []int64{whole, in}
	}
	b.list = append(b.list, r)
}

func (b *tensorList) norm(name, source string, to *Norm, n int64, rms bool) {
	b.vector(name+".weight", source+".weight", &to.W, n, 0, nil)
	if b.onePlus {
		b.list[len(b.list)-1].plus = 1
	}
	if !rms {
		b.vector(name+".bias", source+".bias", &to.B, n, 0, nil)
	}
}

// projection is one of the four projections of attention.
type projection struct {
	name, source   string
	out, in, whole int64
	rows           []rowRange
	to             *Linear
}

func (p *projection) bias(a *Arch) bool {
	if p.name == "o" {
		return a.OutBias
	}
	return a.AttnBias
}

func (l *Layer) projections(n naming, qDim, kvDim, d int64) []projection {
	list := []projection{
		{"q", n.q, qDim, d, 0, nil, &l.Q}, {"k", n.k, kvDim, d, 0, nil, &l.K}, {"v", n.v, kvDim, d,
			0, nil, &l.V}, {"o", n.out, d, qDim, 0, nil, &l.O},
	}
	if n.fused != "" {
		q, k, v := n.split()
		for i, rows := range [][]rowRange{q, k, v} {
			list[i].source, list[i].rows, list[i].whole = n.fused, rows, qDim+2*kvDim
		}
	}
	return list
}

// ffnSource is a matrix of the FFN in a Hugging Face folder.
type ffnSource struct {
	name  string    // without prefix
	whole []int64   // shape of the tensor
	rows  *rowRange // of the tensor that make up the matrix; nil = all
}

// ffnSources are the FFN's matrices in the order of a record's rows; the last is stored by columns.
func (a *Arch) ffnSources(layer int) []ffnSource {
	n := namesOf(a)
	at := fmt.Sprintf(n.layer, layer)
	d, ffn := int64(a.Shape.DModel), int64(a.Shape.DFFN)
	down := ffnSource{at + n.down + ".weight", []int64{d, ffn}, nil}
	if n.gateUp != "" {
		both, whole := at+n.gateUp+".weight", []int64{2 * ffn, d}
		return []ffnSource{{both, whole, &rowRange{0, ffn}}, {both, whole, &rowRange{ffn, ffn}},
			down}
	}
	var list []ffnSource
	if a.gated() {
		list = append(list, ffnSource{at + n.gate + ".weight", []int64{ffn, d}, nil})
	}
	return append(list, ffnSource{at + n.up + ".weight", []int64{ffn, d}, nil}, down)
}

// dtypeOf is the element type of a tensor in a format; quantised rows are bytes.
func dtypeOf(f ref.Format) checkpoint.DType {
	switch f {
	case ref.F16:
		return checkpoint.F16
	case ref.BF16:
		return checkpoint.BF16
	case ref.F32:
		return checkpoint.F32
	}
	return checkpoint.U8
}

func formatOf(d checkpoint.DType) (ref.Format, bool) {
	switch d {
	case checkpoint.F16:
		return ref.F16, true
	case checkpoint.BF16:
		return ref.BF16, true
	case checkpoint.F32:
		return ref.F32, true
	}
	return 0, false
}
