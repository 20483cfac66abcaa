package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
)

// ropeFactors is the tensor with the divisors of the rotary frequencies, in files of Llama 3.1 and
// later.
const ropeFactors = "rope_freqs.weight"

// maxRopeFactors bounds their number. Known models have 64.
const maxRopeFactors = 1024

// rotary reads the rotary positions: how much of a head is rotated, the base of the frequencies,
// and what divides them.
func (o *Original) rotary() error {
	dims, err := o.count("rope.dimension_count")
	if err != nil {
		return err
	}
	if dims == 0 {
		dims = o.size
	}
	if dims > o.size || dims%2 != 0 || dims != o.size && !o.arch.partial {
		want := "all of them, an even number"
		if o.arch.partial {
			want = "an even number of them"
		}
		return fmt.Errorf("%w: %s.rope.dimension_count: %d elements of a head are rotated, but a "+
			"head has %d, and this architecture rotates %s; convert the model again", errFormat,
			o.arch.name, dims, o.size, want)
	}
	if o.arch.partial {
		o.config["partial_rotary_factor"] = share(dims, o.size)
	}
	theta, ok, err := o.number("rope.freq_base")
	if err != nil {
		return err
	}
	if !ok {
		theta = 10000 // llama.cpp's default and Hugging Face's
	}
	o.config["rope_theta"] = theta
	factor, err := o.ropeScale()
	if err != nil {
		return err
	}
	divisors, err := o.divisors(dims / 2)
	switch {
	case err != nil:
		return err
	case divisors != nil:
		for i := range divisors {
			divisors[i] *= factor
		}
		// The reference implementation's form of arbitrary divisors, with the same ones for texts
		// of any length.
		o.config["rope_scaling"] = map[string]any{"rope_type": "longrope", "factor": 1,
			"attention_factor": 1, "short_factor": divisors, "long_factor": divisors,
			"original_max_position_embeddings": o.config["max_position_embeddings"]}
	case factor != 1:
		o.config["rope_scaling"] = map[string]any{"rope_type": "linear", "factor": factor}
	}
	return nil
}

// share returns part/whole, such that int(share·whole) is part.
func share(part, whole int64) float64 {
	f := float64(part) / float64(whole)
	if int64(f*float64(whole)) < part {
		f = math.Nextafter(f, 1)
	}
	return f
}

// ropeScale reads what divides all frequencies. A factor without a type is linear, in llama.cpp
// too; type none ignores factors.
func (o *Original) ropeScale() (float64, error) {
	kind, given, err := Get[string](o.file, o.key("rope.scaling.type"))
	if err != nil {
		return 0, err
	}
	if given && kind != "none" && kind != "linear" {
		delete(o.known, "rope.scaling.type") // refused with the other keys
		return 1, nil
	}
	factor := 1.0
	// The older name counts only without the newer one.
	for _, name := range []string{"rope.scale_linear", "rope.scaling.factor"} {
		v, ok, err := Get[float32](o.file, o.key(name))
		switch {
		case err != nil:
			return 0, err
		case !ok || v == 0: // llama.cpp's "none"
		case !(v > 0 && v < 1e30):
			return 0, fmt.Errorf("%w: %s.%s is %v", errFormat, o.arch.name, name, v)
		default:
			factor = float64(v)
		}
	}
	o.key("rope.scaling.original_context_length") // counts for other types alone
	if given && kind == "none" {
		factor = 1
	}
	attn, ok, err := Get[float32](o.file, o.key("rope.scaling.attn_factor"))
	if err == nil && ok && attn != 1 {
		err = fmt.Errorf("%w: %s.rope.scaling.attn_factor is %v; 1 is", errUnsupported,
			o.arch.name, attn)
	}
	return factor, err
}

// divisors reads the divisors of the frequencies; nil if there are none, or only ones.
func (o *Original) divisors(n int64) ([]float64, error) {
	t, ok := o.file.find(ropeFactors)
	if !ok {
		return nil, nil
	}
	if len(t.Shape) != 1 || t.Shape[0] != n || t.DType != "F32" || n > maxRopeFactors {
		return nil, fmt.Errorf("%w: tensor %s of type %s and shape %v; F32 and one number for "+
			"each of %d frequencies are wanted, at most %d", errFormat, ropeFactors, t.DType,
			t.Shape, n, maxRopeFactors)
	}
	s, err := o.file.Section(ropeFactors)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, t.Size)
	if _, err := io.ReadFull(s, raw); err != nil {
		return nil, err
	}
	list := make([]float64, n)
	for i := range list {
		v := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		if !(v > 0 && v < 1e30) {
			return nil, fmt.Errorf("%w: tensor %s divides frequency %d by %v", errFormat,
				ropeFactors, i, v)
		}
		list[i] = float64(v)
	}
	if !slices.ContainsFunc(list, func(v float64) bool { return v != 1 }) {
		return nil, nil
	}
	if o.arch.unscaled {
		return nil, fmt.Errorf("%w: tensor %s in a file of architecture %s, for which llama.cpp "+
			"does not read it", errUnsupported, ropeFactors, o.arch.name)
	}
	return list, nil
}
