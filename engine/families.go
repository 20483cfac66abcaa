package engine

// One layer of each family, top to bottom. X is the residual stream; Norm writes H, Attention and
// FFN read it and write Out (backend.go). Features that predictors or observers want are set aside
// where X or Out is theirs; FFNInput is H itself when the rows are brought.

// opt is a layer of OPT: norms in front, or behind the residual additions (350M).
func (e *Engine) opt(s *Step) error {
	if e.arch.PostNorm {
		b := e.backend
		b.CopyState(s)
		b.Attention(s)
		e.keep(s, AttentionOutput)
		b.AddOut(s)
		b.NormInPlace(s, AttnNorm)
		b.CopyState(s)
		if err := e.bring(s); err != nil {
			return err
		}
		b.FFN(s)
		b.AddOut(s)
		b.NormInPlace(s, FFNNorm)
		return nil
	}
	return e.serial(s)
}

// llama is a layer of Llama, Mistral and their sparse kin: RMS norms, rotary positions, grouped
// queries, a gated FFN.
func (e *Engine) llama(s *Step) error { return e.serial(s) }

// persimmon is a layer of Persimmon: layer norms over each query and key, part of each head turned,
// squared ReLU.
func (e *Engine) persimmon(s *Step) error { return e.serial(s) }

// serial is attention, then FFN, each behind a norm and added to the residual.
func (e *Engine) serial(s *Step) error {
	b := e.backend
	b.Norm(s, AttnNorm)
	b.Attention(s)
	e.keep(s, AttentionOutput)
	b.AddOut(s)
	e.keep(s, Residual)
	b.Norm(s, FFNNorm)
	if err := e.bring(s); err != nil {
		return err
	}
	b.FFN(s)
	b.AddOut(s)
	return nil
}

// falcon is a layer of Falcon: attention and FFN from the same residual, behind one norm (7B) or
// two (40B); or in sequence (RW).
func (e *Engine) falcon(s *Step) error {
	if !e.arch.Parallel {
		return e.serial(s)
	}
	b := e.backend
	e.keep(s, Residual)
	b.Norm(s, AttnNorm)
	b.Attention(s)
	e.keep(s, AttentionOutput)
	if !e.arch.SharedNorm {
		b.Norm(s, FFNNorm)
	}
	b.AddOut(s)
	if err := e.bring(s); err != nil {
		return err
	}
	b.FFN(s)
	b.AddOut(s)
	return nil
}

// phi is a layer of Phi: attention and FFN from the same normed residual.
func (e *Engine) phi(s *Step) error {
	b := e.backend
	e.keep(s, Residual)
	b.Norm(s, AttnNorm)
	b.Attention(s)
	e.keep(s, AttentionOutput)
	b.AddOut(s)
	if err := e.bring(s); err != nil {
		return err
	}
	b.FFN(s)
	b.AddOut(s)
	return nil
}
