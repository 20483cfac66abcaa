package engine

// layer computes one layer for all tokens of a step. model.Arch says which of three arrangements
// the layer has, with x the residual stream:
//
//	sequential  x += Attention(Norm(x)); x += FFN(Norm(x))
//	            with OutNorms the outputs have norms too: x += Norm(Attention(Norm(x)))
//	PostNorm    x = Norm(x + Attention(x)); x = Norm(x + FFN(x))
//	Parallel    x += Attention(Norm(x)) + FFN(Norm(x)), with one norm for both if SharedNorm
//
// In the Backend's terms: X is the residual stream, Norm writes H, Attention and FFN read H and
// write Out, NormOut is in place. Features for predictors or observers are copied while X or Out
// holds them; FFNInput is H itself, until the rows are fetched.
func (e *Engine) layer(s *Step) error {
	switch {
	case e.arch.PostNorm:
		return e.postNorm(s)
	case e.arch.Parallel:
		return e.parallel(s)
	}
	return e.sequential(s)
}

// sequential is attention, then FFN, each behind a norm and added to the residual stream.
func (e *Engine) sequential(s *Step) error {
	b := e.backend
	b.Norm(s, AttnNorm)
	b.Attention(s)
	e.keep(s, AttentionOutput)
	if e.arch.OutNorms {
		b.NormOut(s, AttnOutNorm)
	}
	b.AddOut(s)
	e.keep(s, Residual)
	b.Norm(s, FFNNorm)
	if err := e.fetchRows(s); err != nil {
		return err
	}
	b.FFN(s)
	if e.arch.OutNorms {
		b.NormOut(s, FFNOutNorm)
	}
	b.AddOut(s)
	return nil
}

// postNorm is attention, then FFN, each followed by a norm of the sum.
func (e *Engine) postNorm(s *Step) error {
	b := e.backend
	b.CopyState(s)
	b.Attention(s)
	e.keep(s, AttentionOutput)
	b.AddOut(s)
	b.NormInPlace(s, AttnNorm)
	b.CopyState(s)
	if err := e.fetchRows(s); err != nil {
		return err
	}
	b.FFN(s)
	b.AddOut(s)
	b.NormInPlace(s, FFNNorm)
	return nil
}

// parallel is attention and FFN of the same residual stream.
func (e *Engine) parallel(s *Step) error {
	b := e.backend
	e.keep(s, Residual)
	b.Norm(s, AttnNorm)
	b.Attention(s)
	e.keep(s, AttentionOutput)
	if !e.arch.SharedNorm {
		b.Norm(s, FFNNorm)
	}
	b.AddOut(s)
	if err := e.fetchRows(s); err != nil {
		return err
	}
	b.FFN(s)
	b.AddOut(s)
	return nil
}
