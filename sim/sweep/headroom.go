package sweep

import (
	"context"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/traces"
)

// leastKey holds everything that the fewest loads depend on.
type leastKey struct {
	variant Variant
	set     setKey
}

// bounded computes the fewest loads for one policy, by layer; see sim.Config.Headroom.
type bounded struct {
	key    leastKey
	layers []*policy.Bound
}

// bound finds the fewest loads for some configurations of one variant, in one more pass over the
// trace.
func (s *sweeper) bound(ctx context.Context, configs []*Config, runs []*simulation) error {
	var list []*bounded
	predicted := false
	t := s.variants[configs[0].Variant]
	head := t.Header()
	for n, cfg := range configs {
		d := runs[n].decisions
		key := leastKey{cfg.Variant, setKey{cfg.Predicted, d.spec}}
		if _, known := s.least[key]; known {
			continue
		}
		s.least[key] = 0
		predicted = predicted || cfg.Predicted
		b := &bounded{key: key}
		for _, most := range d.most {
			if d.spec.Kind == policy.KindCyclic { // always full, and never hits
				most = d.spec.Kept(head.Units)
			}
			b.layers = append(b.layers, policy.NewBound(head.Units, most))
		}
		list = append(list, b)
	}
	if len(list) == 0 {
		return nil
	}
	var sequences traces.Sequences
	err := t.each(ctx, predicted, func(token *traces.Token) error {
		fresh := sequences.Changes(token.Seq)
		return parallel(ctx, s.opt.Workers, head.Layers, func(_, l int) error {
			for _, b := range list {
				if fresh {
					b.layers[l].Reset()
				}
				b.layers[l].Step(token.Masks(b.key.set.predicted)[l])
			}
			return nil
		})
	})
	for _, b := range list {
		for _, l := range b.layers {
			s.least[b.key] += l.Loads()
		}
	}
	return err
}

// keep counts the units that a policy keeps after a token of a layer.
func (d *decisions) keep(layer int, fresh bool, loads, evictions int) {
	if fresh {
		d.kept[layer] = 0
	}
	d.kept[layer] += loads - evictions
	d.most[layer] = max(d.most[layer], d.kept[layer])
}
