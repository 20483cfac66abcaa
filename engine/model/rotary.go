package model

import (
	"math"
	"reflect"
	"slices"
)

// rope is one object of config.json about rotary positions.
type rope struct {
	theta, share float64 // NaN where the object does not say
	scaling      Rotary  // its factors alone
}

// rotary reads the rotary positions of a head, with the defaults of a family. Versions of
// transformers up to 4 save rope_theta, partial_rotary_factor and rope_scaling, version 5 all of it
// in rope_parameters. A file with both forms must mean the same by them.
func (f *fields) rotary(headDim int, theta, share float64) Rotary {
	outer := rope{theta: math.NaN(), share: math.NaN()}
	f.optional("rope_theta", &outer.theta)
	f.optional("partial_rotary_factor", &outer.share)
	var given bool
	if inner, ok := f.rope("rope_scaling"); ok {
		f.join("rope_scaling", &outer, inner)
		outer.scaling, given = inner.scaling, true
	}
	if inner, ok := f.rope("rope_parameters"); ok {
		f.join("rope_parameters", &outer, inner)
		if given && !reflect.DeepEqual(inner.scaling, outer.scaling) {
			f.fail("rope_scaling and rope_parameters differ; remove the one that is wrong")
		}
		outer.scaling = inner.scaling
		theta = defaultTheta
	}
	r := outer.scaling
	r.Theta = or(outer.theta, theta)
	share = or(outer.share, share)
	switch r.Dim = int(share * float64(headDim)); {
	case f.err != nil || len(f.missing) > 0:
	case !(share > 0 && share <= 1):
		f.fail("partial_rotary_factor is %v; above 0 and at most 1 is wanted", share)
	case r.Dim < 2 || r.Dim%2 != 0:
		f.fail("partial_rotary_factor %v of the %d elements of a head is %d; an even number "+
			"from 2 on is wanted", share, headDim, r.Dim)
	}
	return r
}

// rotaryWhole is rotary for families whose reference rotates whole heads only.
func (f *fields) rotaryWhole(headDim int) Rotary {
	r := f.rotary(headDim, defaultTheta, 1)
	if f.err == nil && r.Dim != headDim {
		f.refuse("partial_rotary_factor", "other than 1")
	}
	return r
}

// defaultTheta is the base of rotary positions that rope_parameters does not name, whatever the
// family, and that of most families without it.
const defaultTheta = 10000

// or returns x, or the default where x is not given.
func or(x, absent float64) float64 {
	if math.IsNaN(x) {
		return absent
	}
	return x
}

// join takes the base and the share of an object over, and demands that they are those beside it.
func (f *fields) join(name string, outer *rope, inner rope) {
	take := func(field string, out *float64, in float64) {
		switch {
		case math.IsNaN(*out):
			*out = in
		case !math.IsNaN(in) && in != *out:
			f.fail("%s is %v, and %v in %s; remove the one that is wrong", field, *out, in, name)
		}
	}
	take("rope_theta", &outer.theta, inner.theta)
	take("partial_rotary_factor", &outer.share, inner.share)
}

// rope reads an object about rotary positions. Its rope_type says which fields it may have.
func (f *fields) rope(name string) (rope, bool) {
	r := rope{theta: math.NaN(), share: math.NaN()}
	in, ok := f.inside(name)
	if !ok {
		return r, false
	}
	in.optional("rope_theta", &r.theta)
	in.optional("partial_rotary_factor", &r.share)
	kind, old := "", ""
	in.optional("rope_type", &kind)
	in.optional("type", &old) // its name until 2024
	switch {
	case kind == "":
		kind = old
	case old != "" && old != kind:
		in.fail("rope_type is %q and type is %q; remove the one that is wrong", kind, old)
	}
	if kind == "" && !in.unread() {
		kind = "default"
	}
	s := &r.scaling
	switch kind {
	case "":
		in.want("rope_type", &kind)
	case "default":
	case "linear":
		in.positive("factor", &s.Factor)
	case "llama3":
		in.positive("factor", &s.Factor)
		in.positive("low_freq_factor", &s.LowFactor)
		in.positive("high_freq_factor", &s.HighFactor)
		in.want("original_max_position_embeddings", &s.Original)
		if in.err == nil && len(in.missing) == 0 && (s.Original < 1 ||
			s.HighFactor <= s.LowFactor) {
			in.fail("low_freq_factor %v, high_freq_factor %v and original_max_position_embeddings "+
				"%d: a larger high_freq_factor and 1 position or more are wanted", s.LowFactor,
				s.HighFactor, s.Original)
		}
	case "longrope", "su":
		f.longRope(s, in)
	default:
		f.refuse(name, compact(f.object[name].JSON))
		return r, true
	}
	f.leave(in)
	return r, true
}

// positive reads a required number above 0.
func (f *fields) positive(name string, dst *float64) {
	f.want(name, dst)
	if !slices.Contains(f.missing, f.path+name) && !(*dst > 0) {
		f.fail("%s is %v; a number above 0 is wanted", name, *dst)
	}
}
