package predictor

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
)

// Samples are the data of a training: for every token and layer the feature and the active units.
// Methods must be safe for concurrent use.
type Samples interface {
	// Len is the number of tokens.
	Len() int
	// Layers, Width and Units are the shape of the model: its layers, the length of a feature, the
	// units of a layer.
	Layers() int
	Width() int
	Units() int
	// Sequence returns the document that token i belongs to. Tokens of one document resemble each
	// other, so whole documents are held out.
	Sequence(i int) int
	// Feature fills dst, Width long.
	Feature(i, layer int, dst []float32) error
	// Active fills dst, a mask of the units.
	Active(i, layer int, dst mask.Mask) error
	// HasMagnitudes reports whether Magnitudes works.
	HasMagnitudes() bool
	// Magnitudes fills dst with the |activation| of the active units, ascending by unit; dst has
	// exactly their number.
	Magnitudes(i, layer int, dst []float32) error
}

// batch holds a few samples of one layer. Its size is fixed, its content changes.
type batch struct {
	s     Samples
	layer int
	n     int // samples in it

	x      []float32 // (size, width)
	active mask.Mask // (size, words)
	count  []int     // (size): active units
	// magnitudes of all active units, sample after sample; may be empty
	mags  []float32
	width int
	words int
	want  bool // magnitudes
}

func newBatch(s Samples, layer, size int, magnitudes bool) *batch {
	w := mask.Words(s.Units())
	return &batch{s: s, layer: layer, width: s.Width(), words: w, want: magnitudes,
		x: make([]float32, size*s.Width()), active: make(mask.Mask, size*w), count: make([]int,
			size)}
}

// load reads the samples of the given indices, at most as many as fit.
func (b *batch) load(index []int) error {
	b.n, b.mags = len(index), b.mags[:0]
	for at, i := range index {
		if err := b.s.Feature(i, b.layer, b.feature(at)); err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
		active := b.mask(at)
		if err := b.s.Active(i, b.layer, active); err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
		if !active.Padded(b.s.Units()) {
			return fmt.Errorf("sample %d: an active unit beyond the last of %d", i, b.s.Units())
		}
		b.count[at] = active.Count()
		if !b.want {
			continue
		}
		from := len(b.mags)
		b.mags = append(b.mags, make([]float32, b.count[at])...)
		if err := b.s.Magnitudes(i, b.layer, b.mags[from:]); err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
		for _, m := range b.mags[from:] {
			if !(m >= 0) || !finite(m) {
				return fmt.Errorf("sample %d: a magnitude of %g: it must be finite and not "+
					"negative", i, m)
			}
		}
	}
	for i, v := range b.x[:b.n*b.width] {
		if !finite(v) {
			return fmt.Errorf("sample %d: feature %d is %g: every feature must be finite",
				index[i/b.width], i%b.width, v)
		}
	}
	return nil
}

func (b *batch) feature(at int) []float32 { return b.x[at*b.width : (at+1)*b.width] }
func (b *batch) mask(at int) mask.Mask    { return b.active[at*b.words : (at+1)*b.words] }

// chunks calls f for consecutive pieces of index, each at most size long, until it fails.
func chunks(index []int, size int, f func(piece []int) error) error {
	for len(index) > 0 {
		n := min(size, len(index))
		if err := f(index[:n]); err != nil {
			return err
		}
		index = index[n:]
	}
	return nil
}

// split divides the samples into a training split and a held-out split, both ascending. Whole
// sequences, in an order drawn from the seed, are held out until they make up the share; of a
// single sequence its end is held out.
func split(s Samples, share float64, seed uint64) (train, held []int, err error) {
	n := s.Len()
	want := max(1, int(math.Round(share*float64(n))))
	if n < 2 || want >= n {
		return nil, nil, fmt.Errorf("predictor: %d samples: at least two are needed, one to "+
			"train on and one to hold out", n)
	}
	var order []int // of the sequences, by first occurrence
	length := map[int]int{}
	for i := range n {
		q := s.Sequence(i)
		if length[q] == 0 {
			order = append(order, q)
		}
		length[q]++
	}
	out, taken := map[int]bool{}, 0
	rng.Stream(seed, "predictor/holdout").Shuffle(len(order), func(i, j int) {
		order[i],
			order[j] = order[j], order[i]
	})
	for _, q := range order[1:] {
		if taken >= want {
			break
		}
		out[q] = true
		taken += length[q]
	}
	for i := range n {
		if out[s.Sequence(i)] || len(order) == 1 && i >= n-want {
			held = append(held, i)
		} else {
			train = append(train, i)
		}
	}
	return train, held, nil
}

// digest identifies samples by their shape and the content of a few of them, enough to distinguish
// traces.
func digest(s Samples) (string, error) {
	const probes = 64
	h := sha256.New()
	fmt.Fprintln(h, s.Len(), s.Layers(), s.Width(), s.Units())
	step := max(1, s.Len()/probes)
	for layer := range s.Layers() {
		b := newBatch(s, layer, 1, false)
		for i := 0; i < s.Len(); i += step {
			if err := b.load([]int{i}); err != nil {
				return "", fmt.Errorf("predictor: layer %d: %w", layer, err)
			}
			for _, v := range b.x {
				h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
			}
			for _, w := range b.active {
				h.Write(binary.LittleEndian.AppendUint64(nil, w))
			}
			fmt.Fprintln(h, s.Sequence(i))
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
