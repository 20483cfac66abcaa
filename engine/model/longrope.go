package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// longRope reports whether the frequencies depend on the context.
func (r Rotary) longRope() bool { return len(r.Short) > 0 || len(r.Long) > 0 }

// checkLongRope demands factors for every frequency.
func (r Rotary) checkLongRope() error {
	wrong := func(list []float64) bool {
		return len(list) != r.Dim/2 || slices.ContainsFunc(list, func(v float64) bool {
			return !(v > 0 && v < math.Inf(1))
		})
	}
	if r.Factor != 0 || r.Original < 1 || wrong(r.Short) || wrong(r.Long) ||
		!(r.Size() > 0 && r.Size() < math.Inf(1)) {
		return fmt.Errorf("%w: longrope with %d short and %d long factors, beyond %d positions, "+
			"times %v: %d factors above 0 of each kind are wanted, and a number of positions",
			checkpoint.ErrFormat, len(r.Short), len(r.Long), r.Original, r.Size(), r.Dim/2)
	}
	return nil
}

// longRope reads the rotary factors of Phi-3 from an object in config.json. The ratio of the two
// numbers of positions beside the object wins over its factor, as in the reference implementation.
func (f *fields) longRope(r *Rotary, in *fields) {
	factor, original, positions := 0.0, 0, 0
	in.want("short_factor", &r.Short)
	in.want("long_factor", &r.Long)
	in.optional("attention_factor", &r.Scale)
	in.optional("factor", &factor)
	in.optional("original_max_position_embeddings", &original)
	f.optional("max_position_embeddings", &positions)
	if f.optional("original_max_position_embeddings", &original) && original > 0 {
		factor = float64(positions) / float64(original)
	}
	r.Original = original
	if r.Scale == 0 && factor > 1 && original > 1 {
		r.Scale = math.Sqrt(1 + math.Log(factor)/math.Log(float64(original)))
	}
}
