package engine

import "github.com/windrow-sim/windrow/engine/model"

// positionOffset is OPT's: row 2 of the position table is position 0.
const positionOffset = 2

// Embed begins a step. It sets x to the embedding of each token, scaled (Gemma) or widened by
// OPT-350M's projection, plus OPT's learned position.
func (p *processor) Embed(s *Step) {
	p.entries = p.all[:len(s.Tokens)]
	for i := range p.entries {
		a, t := &p.entries[i], &s.Tokens[i]
		p.decode(a.wide, &p.w.Embed, int(t.ID))
		if scale := float32(p.arch.EmbedScale); scale != 0 {
			for j := range a.wide {
				a.wide[j] *= scale
			}
		}
		if p.arch.Embed == p.shape.DModel {
			copy(a.x, a.wide)
		} else {
			p.pool.MatVecFormat(p.w.Resident, p.w.In.Data, p.w.In.Rows, p.w.In.Cols, a.wide, a.x)
		}
		if p.arch.Positions {
			p.decode(a.h, &p.w.Pos, t.Pos+positionOffset)
			add(a.x, a.h)
		}
	}
}

// decode sets dst to a row of a matrix.
func (p *processor) decode(dst []float32, m *model.Matrix, row int) {
	size := p.w.Resident.Size(m.Cols)
	p.w.Resident.Decode(dst, m.Data[row*size:(row+1)*size])
}

// Head computes the logits: final norm, OPT-350M's projection back, and the output head, which is
// the embedding in models that tie them.
func (p *processor) Head(s *Step) {
	if p.arch.FinalNorm {
		p.Norm(s, FinalNorm)
	} else {
		p.CopyState(s)
	}
	of := func(a *activations) (x, y []float32) { return a.h, a.head }
	if p.arch.Embed != p.shape.DModel {
		p.linear(s, &model.Linear{W: p.w.Out}, func(a *activations) (x, y []float32) {
			return a.h,
				a.wide
		})
		of = func(a *activations) (x, y []float32) { return a.wide, a.head }
	}
	w := p.w.Head
	if p.arch.Tied {
		w.W = p.w.Embed
	}
	p.linear(s, &w, of)
	for i := range p.entries {
		softCap(p.entries[i].head, p.arch.LogitCap)
	}
}
