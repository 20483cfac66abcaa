package engine

// One layer of each family, top to bottom. s.x is the residual stream; norm writes s.h, attention and ffn read it and write s.out.

// opt is a layer of OPT: norms in front, or behind the residual additions (350M).
func (e *Engine) opt(s *step) error {
	if e.arch.PostNorm {
		e.copyState(s)
		e.attention(s)
		e.addOut(s)
		e.normInPlace(s, &s.layer.AttnNorm)
		e.copyState(s)
		if err := e.bring(s); err != nil {
			return err
		}
		e.ffn(s)
		e.addOut(s)
		e.normInPlace(s, &s.layer.FFNNorm)
		return nil
	}
	return e.serial(s)
}

// llama is a layer of Llama, Mistral and their sparse kin: RMS norms, rotary positions, grouped queries, a gated FFN.
func (e *Engine) llama(s *step) error { return e.serial(s) }

// persimmon is a layer of Persimmon: layer norms over each query and key, part of each head turned, squared ReLU.
func (e *Engine) persimmon(s *step) error { return e.serial(s) }

// serial is attention, then FFN, each behind a norm and added to the residual.
func (e *Engine) serial(s *step) error {
	e.norm(s, &s.layer.AttnNorm)
	e.attention(s)
	e.addOut(s)
	e.norm(s, &s.layer.FFNNorm)
	if err := e.bring(s); err != nil {
		return err
	}
	e.ffn(s)
	e.addOut(s)
	return nil
}

// falcon is a layer of Falcon: attention and FFN from the same residual, behind one norm (7B) or two (40B); or in sequence (RW).
func (e *Engine) falcon(s *step) error {
	if !e.arch.Parallel {
		return e.serial(s)
	}
	e.norm(s, &s.layer.AttnNorm)
	e.attention(s)
	if !e.arch.SharedNorm {
		e.norm(s, &s.layer.FFNNorm)
	}
	e.addOut(s)
	if err := e.bring(s); err != nil {
		return err
	}
	e.ffn(s)
	e.addOut(s)
	return nil
}

// phi is a layer of Phi: attention and FFN from the same normed residual.
func (e *Engine) phi(s *step) error {
	e.norm(s, &s.layer.AttnNorm)
	e.attention(s)
	e.addOut(s)
	if err := e.bring(s); err != nil {
		return err
	}
	e.ffn(s)
	e.addOut(s)
	return nil
}
