package cuda

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/model"
	kernels "github.com/windrow-sim/windrow/kernels/cuda"
)

// matrix is a linear map on the device.
type matrix struct {
	w, bias    kernels.Mem
	rows, cols int
}

// norm is a norm's weight and bias.
type norm struct{ w, b kernels.Mem }

// layer is the resident part of a layer on the device.
type layer struct {
	norms                      [4]norm // by engine.NormOf
	q, k, v, o                 matrix
	qNorm, kNorm               norm
	gateBias, upBias, downBias kernels.Mem
}

// weights are a model's resident weights on the device.
type weights struct {
	embed, pos, in, out, head matrix
	finalNorm                 norm
	layers                    []layer
}

func (s *scope) matrix(m model.Matrix, bias []float32) matrix {
	return matrix{s.bytes(m.Data), s.bytes(kernels.AsBytes(bias)), m.Rows, m.Cols}
}

func (s *scope) linear(l *model.Linear) matrix { return s.matrix(l.W, l.B) }

func (s *scope) norm(n *model.Norm) norm {
	return norm{s.bytes(kernels.AsBytes(n.W)), s.bytes(kernels.AsBytes(n.B))}
}

// weights puts a model's weights on the device.
func (s *scope) weights(w *model.Weights) weights {
	to := weights{
		embed: s.matrix(w.Embed, nil), pos: s.matrix(w.Pos, nil), in: s.matrix(w.In, nil),
		out: s.matrix(w.Out, nil), head: s.linear(&w.Head),
		finalNorm: s.norm(&w.FinalNorm), layers: make([]layer, len(w.Layers)),
	}
	if w.Arch.Tied {
		to.head.w, to.head.rows, to.head.cols = to.embed.w, to.embed.rows, to.embed.cols
	}
	for i := range w.Layers {
		l := &w.Layers[i]
		to.layers[i] = layer{
			norms: [4]norm{engine.AttnNorm: s.norm(&l.AttnNorm),
				engine.FFNNorm:     s.norm(&l.FFNNorm),
				engine.AttnOutNorm: s.norm(&l.AttnOutNorm),
				engine.FFNOutNorm:  s.norm(&l.FFNOutNorm)},
			q: s.linear(&l.Q), k: s.linear(&l.K), v: s.linear(&l.V), o: s.linear(&l.O),
			qNorm: s.norm(&l.QNorm), kNorm: s.norm(&l.KNorm),
			gateBias: s.bytes(kernels.AsBytes(l.GateBias)),
			upBias:   s.bytes(kernels.AsBytes(l.UpBias)),
			downBias: s.bytes(kernels.AsBytes(l.DownBias)),
		}
	}
	return to
}

// activation is a model's activation function in the kernels' numbers.
func activation(a model.Activation) (kernels.Activation, error) {
	switch a.Kind {
	case model.ReLU:
		return kernels.ReLU, nil
	case model.ReLU2:
		return kernels.ReLU2, nil
	case model.FATReLU:
		return kernels.FATReLU, nil
	case model.DReLU:
		return kernels.DReLU, nil
	case model.SiLU:
		return kernels.SiLU, nil
	case model.GELU:
		return kernels.GELU, nil
	case model.GELUNew:
		return kernels.GELUNew, nil
	}
	return 0, fmt.Errorf("engine/cuda: no kernel for the activation function %s; use the CPU "+
		"backend", a)
}
