package engine

import (
	"math"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// grainBytes is the work below which one thread is faster than several.
const grainBytes = 128 << 10

// FFN computes out = downBias + Σ value_i·down_i over the rows of each token, which ascend by unit,
// and sets the token's mask to the units with a value other than zero. Without a gate value_i =
// f(up_i·h + bias_i), with a gate f(gate_i·h)·(up_i·h). Every element of out is summed in neuron
// order, for any number of threads and tokens. That makes flash-resident and dense runs bit-equal,
// and batches and single runs.
//
// If a token has a mask, rows of value zero are added too, as the paper's engine does with every
// predicted row: the cost of a mask does not depend on the weights. With true masks there are no
// such rows.
func (p *processor) FFN(s *Step) {
	d, part := p.shape.DModel, p.w.Bundles.Size(p.shape.DModel)
	p.pool.Run(len(s.Rows), max(1, grainBytes/(part*(p.shape.Rows-1))), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			// rows lie scattered: prefetch the next one
			next := s.Rows[min(i+1, len(s.Rows)-1)].record
			for j := range p.entries {
				if s.entries[j].wants(s.Layer, s.Rows[i].Unit) {
					p.entries[j].act[i] = p.valueOf(s, j, &s.Rows[i], next)
				}
			}
		}
	})
	if p.check != nil {
		p.findTruth(s)
	}
	most := 1
	for j := range p.entries {
		s.Collect(j, p.entries[j].act)
		most = max(most, len(s.entries[j].active))
		if bias := p.w.Layers[s.Layer].DownBias; bias != nil {
			copy(p.entries[j].out, bias)
		} else {
			clear(p.entries[j].out)
		}
	}
	// A range of columns ends between groups, because a group shares a scale.
	group, from := p.w.Bundles.Group(), (p.shape.Rows-1)*part
	columns := max(64, grainBytes/(2*most))
	p.pool.Run(d/group, (columns+group-1)/group, func(lo, hi int) {
		lo, hi = lo*group, hi*group
		first, last := from+p.w.Bundles.Size(lo), from+p.w.Bundles.Size(hi)
		for j := range p.entries {
			a, out := &s.entries[j], p.entries[j].out
			for i, at := range a.active {
				next := s.Rows[a.active[min(i+1, len(a.active)-1)]].record
				cpu.AxpyFormat(p.w.Bundles, a.values[i], s.Rows[at].record[first:last], out[lo:hi],
					next[first:last])
			}
		}
	})
}

// valueOf returns the value of a row for a token: the factor of its down row. It is zero where the
// activation function or a threshold makes it so.
func (p *processor) valueOf(s *Step, j int, r *Row, next []byte) float32 {
	a, layer := &p.entries[j], &p.w.Layers[s.Layer]
	part := p.w.Bundles.Size(p.shape.DModel)
	if p.shape.Rows == 2 {
		return p.kept(s.Layer, activation(p.arch.Activation, cpu.DotFormat(p.w.Bundles,
			r.record[:part], a.h, next[:part])+r.bias))
	}
	gate := cpu.DotFormat(p.w.Bundles, r.record[:part], a.h, next[:part])
	if layer.GateBias != nil {
		gate += layer.GateBias[r.Unit]
	}
	if gate = activation(p.arch.Activation, gate); gate == 0 && s.Need(j) == nil {
		return 0
	}
	up := cpu.DotFormat(p.w.Bundles, r.record[part:2*part], a.h, next[part:2*part]) + r.bias
	if p.arch.Activation.Kind == model.DReLU {
		up = max(up, 0)
	}
	return p.kept(s.Layer, gate*up)
}

// findTruth sets each token's true mask: the active units over all rows.
func (p *processor) findTruth(s *Step) {
	rows := p.check[s.Layer]
	p.pool.Run(mask.Words(len(rows)), 1, func(lo, hi int) {
		for j := range p.entries {
			truth := s.entries[j].truth
			for w := lo; w < hi; w++ {
				truth[w] = 0
				for i := w * 64; i < min(len(rows), (w+1)*64); i++ {
					if p.valueOf(s, j, &rows[i], rows[i].record) != 0 {
						truth[w] |= 1 << (i % 64)
					}
				}
			}
		}
	})
}

// kept returns the value, or zero if the layer's threshold drops it.
func (p *processor) kept(l int, v float32) float32 {
	if p.thresholds != nil && !(float32(math.Abs(float64(v))) > p.thresholds[l]) {
		return 0
	}
	return v
}

func activation(f model.Activation, x float32) float32 {
	switch f.Kind {
	case model.ReLU2:
		x = max(x, 0)
		return x * x
	case model.FATReLU:
		if float64(x) > f.Threshold {
			return x
		}
		return 0
	case model.SiLU:
		return float32(float64(x) / (1 + math.Exp(-float64(x))))
	case model.GELU:
		return float32(float64(x) * 0.5 * (1 + math.Erf(float64(x)/math.Sqrt2)))
	case model.GELUNew:
		v := float64(x)
		return float32(0.5 * v * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v))))
	}
	return max(x, 0)
}
