package sim

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Headroom compares the loads of a configuration's policy with Belady's bound at the same capacity,
// on the masks that the configuration needs. Only Policy, Predicted and MaxTokens matter.
// It streams the trace twice and keeps, per layer, the policy, 4 bytes per unit and 8 bytes per
// token of the longest sequence. Errors are those of the trace, or of kind ErrConfig.
//
// The capacity of a layer is measured: the most units that the policy keeps between two tokens. A
// window has no other limit than the trace, and the policy of whole tensors keeps a layer as a
// whole or not at all. A cyclic cache alone counts as its capacity: it is full and never hits.
func (cfg *Config) Headroom(src traces.Source) (traces.Headroom, error) {
	head, spec := src.Header(), cfg.Policy
	if cfg.Predicted && !head.HasPredicted {
		return traces.Headroom{}, configError{
			fmt.Errorf("sim: the trace of %s holds no predicted masks; compare on the true ones",
				head.Model)}
	}
	policies, err := cfg.Policies(src)
	if err != nil {
		return traces.Headroom{}, err
	}
	h := traces.Headroom{Policy: spec.String()}
	most, err := cfg.loads(src, policies, &h)
	if err != nil {
		return traces.Headroom{}, err
	}
	bounds := make([]*policy.Bound, head.Layers)
	for l, kept := range most {
		if spec.Kind == policy.KindCyclic {
			kept = spec.Kept(head.Units)
		}
		h.Kept += kept
		bounds[l] = policy.NewBound(head.Units, kept)
	}
	if err := bound(cfg, src, bounds); err != nil {
		return traces.Headroom{}, err
	}
	for _, b := range bounds {
		h.Least += b.Loads()
	}
	h.Bytes, h.LeastBytes = units.Bytes(h.Loads)*head.UnitBytes, units.Bytes(h.Least)*head.UnitBytes
	if h.Least > 0 {
		h.Ratio = float64(h.Loads) / float64(h.Least)
	}
	return h, nil
}

// loads counts the loads of the policies. It returns the most units that each policy keeps between
// two tokens.
func (cfg *Config) loads(src traces.Source, policies []policy.Policy,
	h *traces.Headroom) (most []int, err error) {
	most = make([]int, len(policies))
	kept := make([]int, len(policies))
	var dec policy.Decision
	err = cfg.each(src, func(masks []mask.Mask, fresh bool) {
		for l, p := range policies {
			if fresh {
				p.Reset()
				kept[l] = 0
			}
			p.Step(masks[l], &dec)
			kept[l] += len(dec.Load) - len(dec.Evict)
			most[l] = max(most[l], kept[l])
			h.Loads += int64(len(dec.Load))
			h.Needed += int64(masks[l].Count())
		}
	})
	return most, err
}

// bound runs the bounds of all layers.
func bound(cfg *Config, src traces.Source, bounds []*policy.Bound) error {
	return cfg.each(src, func(masks []mask.Mask, fresh bool) {
		for l, b := range bounds {
			if fresh {
				b.Reset()
			}
			b.Step(masks[l])
		}
	})
}

// each calls step for every simulated token. fresh is true for the first token of every sequence
// but the first.
func (cfg *Config) each(src traces.Source, step func(masks []mask.Mask, fresh bool)) error {
	var t traces.Token
	var sequences traces.Sequences
	for i := range cfg.tokens(src) {
		if err := src.Token(i, &t); err != nil {
			return err
		}
		step(cfg.needed(&t), sequences.Changes(t.Seq))
	}
	return nil
}
