package engine

import "github.com/windrow-sim/windrow/engine/model"

// positionOffset is OPT's: row 2 of the position table is position 0.
const positionOffset = 2

// embed sets x to the embedding of each token, widened by OPT-350M's projection, plus OPT's learned position.
func (e *Engine) embed(s *step) {
	for i := range s.lanes {
		a, t := &s.lanes[i], &s.tokens[i]
		e.decode(a.wide, &e.w.Embed, int(t.ID))
		if e.arch.Embed == e.shape.DModel {
			copy(a.x, a.wide)
		} else {
			e.pool.MatVecFormat(e.w.Resident, e.w.In.Data, e.w.In.Rows, e.w.In.Cols, a.wide, a.x)
		}
		if e.arch.Positions {
			e.decode(a.h, &e.w.Pos, t.Pos+positionOffset)
			add(a.x, a.h)
		}
	}
}

// decode sets dst to a row of a matrix.
func (e *Engine) decode(dst []float32, m *model.Matrix, row int) {
	size := e.w.Resident.Size(m.Cols)
	e.w.Resident.Decode(dst, m.Data[row*size:(row+1)*size])
}

// head computes the logits: final norm, OPT-350M's projection back, and the output head, which is the embedding where they are tied.
func (e *Engine) head(s *step) {
	if e.arch.FinalNorm {
		e.norm(s, &e.w.FinalNorm)
	} else {
		e.copyState(s)
	}
	of := func(a *lane) (x, y []float32) { return a.h, a.head }
	if e.arch.Embed != e.shape.DModel {
		e.linear(s, &model.Linear{W: e.w.Out}, func(a *lane) (x, y []float32) { return a.h, a.wide })
		of = func(a *lane) (x, y []float32) { return a.wide, a.head }
	}
	w := e.w.Head
	if e.arch.Tied {
		w.W = e.w.Embed
	}
	e.linear(s, &w, of)
}
