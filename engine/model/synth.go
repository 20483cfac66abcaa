package model

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// SynthOptions configure the random model. With the zero value about half of the neurons are
// active.
type SynthOptions struct {
	// Tokenizer is the text form of a tokenizer to store in the image.
	Tokenizer []byte
	// Stride is the distance between records; 0 means the size of a record.
	Stride units.Bytes
	// ActiveShare is the mean share of active neurons, set by the FFN's biases: 0.03 for a model as
	// sparse as OPT-6.7B. 0 means 0.5. A gated model has no biases: half of its neurons are active,
	// whatever ActiveShare is.
	ActiveShare float64
	// Progress may be nil.
	Progress Progress
}

// Synth writes an image of the given shape with random weights. It has the size, the layout and the
// arithmetic of a trained model without being one. Each tensor has its own random stream, so its
// bytes depend on the seed, its name and its size only. Writing is atomic as in Pack.
func Synth(ctx context.Context, shape Shape, name string, seed uint64, out string,
	opt SynthOptions) error {
	arch := synthArch(shape)
	err := arch.check()
	if err == nil {
		err = Precision{ref.F16, ref.F16}.check(shape)
	}
	if err != nil {
		return fmt.Errorf("model: synth %s: %w", name, err)
	}
	if opt.ActiveShare == 0 {
		opt.ActiveShare = 0.5
	}
	if !(opt.ActiveShare > 0 && opt.ActiveShare < 1) {
		return fmt.Errorf("model: synth %s: active share %v is not between 0 and 1", name,
			opt.ActiveShare)
	}
	f := facts{name: name, tokenizer: opt.Tokenizer, arch: arch, precision: Precision{ref.F16,
		ref.F16}, stride: int(opt.Stride), hashed: true}
	if f.stride == 0 {
		f.stride = f.record()
	}
	if err := f.checkStride(); err != nil {
		return fmt.Errorf("model: synth %s: %w", name, err)
	}
	f.origin = fmt.Sprintf("synth seed=%d active=%v", seed, opt.ActiveShare)
	f.source = digest(fmt.Appendf(nil, "windrow synth 1 %s shape=%+v", f.origin, shape))
	fill := &synthFiller{shape: shape, stride: f.stride, seed: seed, buf: make([]byte, synthBlock)}
	// After a norm the input has length √d, so its product with a row is normal with deviation
	// weightDeviation·√d. On a grid of 2^-16, machines that fuse multiplications differently still
	// agree.
	bias := -quantile(opt.ActiveShare) * weightDeviation * math.Sqrt(float64(shape.DModel))
	fill.bias = math.Round(bias*(1<<16)) / (1 << 16)
	return writeImage(ctx, out, f, fill, meter(opt.Progress, f.dataSize()))
}

// synthArch is the architecture of a random model: OPT's, or with three rows per neuron Llama's
// with ReLU.
func synthArch(s Shape) Arch {
	if s.Rows != 3 {
		return versionOne(s)
	}
	return Arch{
		Family: Llama, Shape: s, Activation: Activation{Kind: ReLU}, Epsilon: 1e-5, RMSNorm: true,
		FinalNorm: true, Embed: s.DModel,
		Rotary: Rotary{Dim: s.HeadDim, Theta: 10000},
	}
}

// quantile is the z that a standard normal number exceeds with probability p.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(1-2*p) }

// synthBlock is the number of bytes generated before a write: they stay in the cache.
const synthBlock = 1 << 20

// synthFiller fills an image with random numbers.
type synthFiller struct {
	shape  Shape
	stride int
	seed   uint64
	bias   float64 // mean of the biases into the neurons
	buf    []byte
}

func (f *synthFiller) resident(_ context.Context, r resident, emit func([]byte) error) error {
	stream := rng.Stream(f.seed, "synth/"+r.name)
	if r.matrix != nil {
		return f.matrix(stream, 2*r.elements(), emit)
	}
	buf := make([]byte, 0, 4*r.elements())
	for range r.elements() {
		v := float64(0.1*stream.Float64()) - 0.05 // the conversion forbids fusing
		switch {
		case strings.HasSuffix(r.name, "norm.weight"):
			v = 1
		case strings.HasSuffix(r.name, "norm.bias"):
			v = 0
		case strings.HasSuffix(r.name, "up_bias"):
			v += f.bias
		}
		buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(float32(v)))
	}
	return emit(buf)
}

// matrix emits n bytes of random float16.
func (f *synthFiller) matrix(stream *rand.Rand, n int64, emit func([]byte) error) error {
	for n > 0 {
		p := f.buf[:min(n, int64(len(f.buf)))]
		fillWeights(stream, p)
		if err := emit(p); err != nil {
			return err
		}
		n -= int64(len(p))
	}
	return nil
}

// bundles generates record by record, so that the weights do not depend on the stride.
func (f *synthFiller) bundles(_ context.Context, layer int, emit func([]byte) error) error {
	stream := rng.Stream(f.seed, "synth/"+bundlesName(layer))
	record := int(f.shape.RecordBytes(ref.F16))
	buf := make([]byte, max(1, synthBlock/f.stride)*f.stride)
	for left := f.shape.DFFN; left > 0; {
		n := min(left, len(buf)/f.stride)
		for i := range n {
			fillWeights(stream, buf[i*f.stride:][:record])
		}
		if err := emit(buf[:n*f.stride]); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// weightDeviation is the standard deviation of fillWeights' numbers: √(E[m²]·E[2^2e]) with the
// mantissa m uniform in [1, 2) and the exponent e uniform in {−9, −8, −7, −6}, that is √(7/3 ·
// 85/2²⁰).
const weightDeviation = 0.013753014

// fillWeights fills p, an even number of bytes, with random float16, four from each random number.
// The sign, the ten bits of the mantissa and the two lowest bits of the exponent are random; the
// rest of the exponent is fixed so that 2^-9 ≤ |w| < 2^-5. All are normal numbers, small enough
// that activations stay finite through any number of layers with norms, and too random for a drive
// or a file system to compress.
func fillWeights(stream *rand.Rand, p []byte) {
	const random, exponent = 0x8FFF8FFF8FFF8FFF, 0x1800180018001800
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, stream.Uint64()&random+exponent)
		p = p[8:]
	}
	if len(p) > 0 {
		var tail [8]byte
		binary.LittleEndian.PutUint64(tail[:], stream.Uint64()&random+exponent)
		copy(p, tail[:])
	}
}
