package engine

import (
	"math"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// row is one unit to compute: its record is the gate row (where there is one), the up row, then the down row, each d_model weights.
type row struct {
	unit   uint32
	record []byte
	bias   float32 // of the up row
}

// grainBytes: less work than this is faster on one thread.
const grainBytes = 128 << 10

// ffn computes out = downBias + Σ value_i·down_i over the rows of each token, which ascend by unit, and sets its mask to the
// units whose value is not zero. Without a gate value_i = f(up_i·h + bias_i), with one f(gate_i·h)·(up_i·h). The sum over rows is in neuron order for every
// element of out, whatever the number of threads and of tokens, which is what makes flash-resident and dense runs bit-equal, and batches and single runs.
//
// Where a token has a mask, rows of value zero are added like the others, as the paper's engine does with every predicted row: what a mask
// costs does not depend on the weights. With true masks there is no such row.
func (e *Engine) ffn(s *step) {
	d, part := e.shape.DModel, e.w.Bundles.Size(e.shape.DModel)
	e.pool.Run(len(s.rows), max(1, grainBytes/(part*(e.shape.Rows-1))), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			next := s.rows[min(i+1, len(s.rows)-1)].record // scattered rows: ask the cache for the next one early
			for j := range s.lanes {
				if a := &s.lanes[j]; a.wants(s.l, s.rows[i].unit) {
					e.value(s, a, i, next)
				}
			}
		}
	})
	if e.verify != nil {
		e.findTruth(s)
	}
	most := 1
	for j := range s.lanes {
		e.collect(s, j)
		most = max(most, len(s.lanes[j].active))
	}
	// Columns are cut between groups, which share a scale.
	group, from := e.w.Bundles.Group(), (e.shape.Rows-1)*part
	columns := max(64, grainBytes/(2*most))
	e.pool.Run(d/group, (columns+group-1)/group, func(lo, hi int) {
		lo, hi = lo*group, hi*group
		first, last := from+e.w.Bundles.Size(lo), from+e.w.Bundles.Size(hi)
		for j := range s.lanes {
			a := &s.lanes[j]
			for i, at := range a.active {
				next := s.rows[a.active[min(i+1, len(a.active)-1)]].record
				cpu.AxpyFormat(e.w.Bundles, a.values[i], s.rows[at].record[first:last], a.out[lo:hi], next[first:last])
			}
		}
	})
}

// value computes row i of a step for one token: act is what its down row is multiplied with, zero where the activation function (or a cut) makes it so.
func (e *Engine) value(s *step, a *lane, i int, next []byte) {
	a.act[i] = e.valueOf(s, a, &s.rows[i], next)
}

// valueOf is the value of a row for a token.
func (e *Engine) valueOf(s *step, a *lane, r *row, next []byte) float32 {
	part := e.w.Bundles.Size(e.shape.DModel)
	if e.shape.Rows == 2 {
		return e.kept(s.l, activation(e.arch.Activation, cpu.DotFormat(e.w.Bundles, r.record[:part], a.h, next[:part])+r.bias))
	}
	gate := cpu.DotFormat(e.w.Bundles, r.record[:part], a.h, next[:part])
	if s.layer.GateBias != nil {
		gate += s.layer.GateBias[r.unit]
	}
	if gate = activation(e.arch.Activation, gate); gate == 0 && a.need[s.l] == nil {
		return 0
	}
	up := cpu.DotFormat(e.w.Bundles, r.record[part:2*part], a.h, next[part:2*part]) + r.bias
	if e.arch.Activation.Kind == model.DReLU {
		up = max(up, 0)
	}
	return e.kept(s.l, gate*up)
}

// findTruth finds what would be active of all rows.
func (e *Engine) findTruth(s *step) {
	rows := e.verify.rows[s.l]
	words := (len(rows) + 63) / 64
	e.pool.Run(words, 1, func(lo, hi int) {
		for j := range s.lanes {
			a := &s.lanes[j]
			for w := lo; w < hi; w++ {
				a.truth[w] = 0
				for i := w * 64; i < min(len(rows), (w+1)*64); i++ {
					if e.valueOf(s, a, &rows[i], rows[i].record) != 0 {
						a.truth[w] |= 1 << (i % 64)
					}
				}
			}
		}
	})
}

// collect lists the rows to add up for a token and marks those that are active.
func (e *Engine) collect(s *step, j int) {
	a := &s.lanes[j]
	clear(a.mask)
	a.active, a.values = a.active[:0], a.values[:0]
	for i := range s.rows {
		unit := s.rows[i].unit
		if !a.wants(s.l, unit) {
			continue
		}
		v := a.act[i]
		if v != 0 {
			a.mask[unit/64] |= 1 << (unit % 64)
		}
		if v != 0 || a.need[s.l] != nil {
			a.active, a.values = append(a.active, int32(i)), append(a.values, v)
		}
	}
	if s.layer.DownBias != nil {
		copy(a.out, s.layer.DownBias)
	} else {
		clear(a.out)
	}
}

// kept is a value, or zero where the layer's cut drops it.
func (e *Engine) kept(l int, v float32) float32 {
	if e.cut != nil && !(float32(math.Abs(float64(v))) > e.cut[l]) {
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
