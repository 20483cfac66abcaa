package cuda

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/internal/mask"
	kernels "github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// positionOffset is OPT's: row 2 of the position table is position 0.
const positionOffset = 2

// did notes the first error.
func (b *Backend) did(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Embed begins a step: it copies the tokens to the device.
func (b *Backend) Embed(s *engine.Step) {
	w, n := b.work, len(s.Tokens)
	w.haveLogits, w.longest = false, 0
	ids, positions, seqIDs := make([]int32, n), make([]int32, n), make([]int32, n)
	for i, t := range s.Tokens {
		ids[i], positions[i], seqIDs[i] = int32(t.ID), int32(t.Pos), int32(t.SeqID)
		w.longest = max(w.longest, t.Pos+1)
	}
	w.ids, w.positions, w.seqIDs = b.put(ids), b.put(positions), b.put(seqIDs)
	if b.err != nil {
		return
	}
	embed, m := &b.weights.embed, w.x
	if w.wide != (kernels.Mem{}) {
		m = w.wide
	}
	b.did(b.kernels.Embed(b.compute, &kernels.Embed{Format: b.w.Resident, Table: embed.w,
		IDs: w.ids, X: m, Rows: embed.rows, Dim: embed.cols, Tokens: n,
		Scale: float32(b.w.Arch.EmbedScale)}))
	if w.wide != (kernels.Mem{}) {
		b.linear(&b.weights.in, w.wide, w.x, n)
	}
	if pos := &b.weights.pos; b.w.Arch.Positions {
		b.did(b.kernels.Embed(b.compute, &kernels.Embed{Format: b.w.Resident, Table: pos.w,
			IDs: w.positions, X: w.x, Rows: pos.rows, Dim: pos.cols, Tokens: n,
			Offset: positionOffset, Onto: true}))
	}
}

// put takes a list to the device, for kernels of this step.
func (b *Backend) put(list []int32) kernels.Mem {
	if b.err != nil {
		return kernels.Mem{}
	}
	m, err := b.work.lists.put(kernels.AsBytes(list))
	b.did(err)
	return m
}

// linear launches y = W·x + bias for n tokens.
func (b *Backend) linear(m *matrix, x, y kernels.Mem, n int) {
	if b.err != nil {
		return
	}
	b.did(b.kernels.MatVec(b.compute, &kernels.MatVec{Format: b.w.Resident, W: m.w, X: x,
		Bias: m.bias, Y: y, Rows: m.rows, Cols: m.cols, Tokens: n}))
}

// normed launches y = norm(x) of so many rows.
func (b *Backend) normed(n *norm, x, y kernels.Mem, rows, dim int) {
	if b.err != nil {
		return
	}
	b.did(b.kernels.Norm(b.compute, &kernels.Norm{X: x, Y: y, W: n.w, B: n.b, Rows: rows, Dim: dim,
		Epsilon: float32(b.w.Arch.Epsilon), RMS: b.w.Arch.RMSNorm}))
}

// normOf is a norm of the layer of a step.
func (b *Backend) normOf(s *engine.Step, n engine.NormOf) *norm {
	if n == engine.FinalNorm {
		return &b.weights.finalNorm
	}
	return &b.weights.layers[s.Layer].norms[n]
}

// Norm sets H to a norm of X.
func (b *Backend) Norm(s *engine.Step, n engine.NormOf) {
	b.work.features[engine.FFNInput].have = false
	b.normed(b.normOf(s, n), b.work.x, b.work.h, len(s.Tokens), b.w.Shape.DModel)
}

// NormInPlace replaces X by its norm.
func (b *Backend) NormInPlace(s *engine.Step, n engine.NormOf) {
	b.normed(b.normOf(s, n), b.work.x, b.work.x, len(s.Tokens), b.w.Shape.DModel)
}

// NormOut replaces Out by its norm.
func (b *Backend) NormOut(s *engine.Step, n engine.NormOf) {
	b.normed(b.normOf(s, n), b.work.out, b.work.out, len(s.Tokens), b.w.Shape.DModel)
}

// CopyState sets H to X.
func (b *Backend) CopyState(s *engine.Step) {
	b.work.features[engine.FFNInput].have = false
	if b.err == nil {
		b.did(b.device.OnDevice(b.work.h.Ptr, b.work.x.Ptr, int64(4*len(s.Tokens)*b.w.Shape.DModel),
			b.compute))
	}
}

// AddOut adds Out to X.
func (b *Backend) AddOut(s *engine.Step) {
	if b.err == nil {
		b.did(b.kernels.Add(b.compute, b.work.x, b.work.out, len(s.Tokens)*b.w.Shape.DModel))
	}
}

// Attention stores the keys and values of all tokens, then computes each token's heads over the
// positions up to its own.
func (b *Backend) Attention(s *engine.Step) {
	w, shape, layer, n := b.work, b.w.Shape, &b.weights.layers[s.Layer], len(s.Tokens)
	b.did(b.clock.mark(attentionFrom, b.compute))
	b.linear(&layer.q, w.h, w.q, n)
	b.linear(&layer.k, w.h, w.k, n)
	b.linear(&layer.v, w.h, w.v, n)
	if b.w.Arch.QKNorm {
		b.normed(&layer.qNorm, w.q, w.q, n*shape.Heads, shape.HeadDim)
		b.normed(&layer.kNorm, w.k, w.k, n*shape.KVHeads, shape.HeadDim)
	}
	b.rotate(s, w.q, shape.Heads)
	b.rotate(s, w.k, shape.KVHeads)
	if b.err != nil {
		return
	}
	one := w.setup.Context * shape.KVHeads * shape.HeadDim
	size := int64(4 * w.setup.Sequences * one)
	a := &kernels.Attention{
		Cache: kernels.Cache{
			Format: ref.F32, Keys: w.keys.Slice(int64(s.Layer)*size, size),
			Vals:      w.vals.Slice(int64(s.Layer)*size, size),
			Sequences: w.setup.Sequences, Context: w.setup.Context, KVHeads: shape.KVHeads,
			Dim: shape.HeadDim, Stride: one,
		},
		Q: w.q, Out: w.att, Seqs: w.seqIDs, Positions: w.positions, Scratch: w.heads,
		Heads: shape.Heads, Tokens: n, Longest: w.longest,
		Window: b.w.Arch.WindowOf(s.Layer), Scale: float32(b.w.Arch.ScaleOfQueries()),
		Cap: float32(b.w.Arch.ScoreCap),
	}
	if b.did(b.kernels.StoreKV(b.compute, a, w.k, w.v)); b.err != nil {
		return
	}
	b.did(b.kernels.Attention(b.compute, a))
	b.linear(&layer.o, w.att, w.out, n)
	b.did(b.clock.mark(attentionTo, b.compute))
}

// rotate applies rotary positions (RoPE).
func (b *Backend) rotate(s *engine.Step, x kernels.Mem, heads int) {
	rotary, table := b.w.Arch.RotaryOf(s.Layer), b.work.rotary
	if rotary == &b.w.Arch.LocalRotary {
		table = b.work.local
	}
	half := rotary.Dim / 2
	if b.err != nil || half == 0 {
		return
	}
	b.did(b.kernels.Rotary(b.compute, &kernels.Rotary{X: x, Table: table,
		Positions: b.work.positions, Heads: heads, Dim: b.w.Shape.HeadDim, Half: half,
		Tokens: len(s.Tokens), Context: b.work.setup.Context}))
}

// FFN waits, on the device, until the layer's rows are in their slots.
func (b *Backend) FFN(s *engine.Step) {
	w, r := b.work, b.rows[s.Layer]
	if r == nil {
		b.did(fmt.Errorf("engine/cuda: layer %d has no rows on the device", s.Layer))
	}
	if b.err != nil {
		return
	}
	a := b.ffn(s, r)
	a.Act, a.Out = w.act, w.out
	a.Wanted, a.Every = b.wanted(s)
	if !w.keeps(s.Layer) {
		places, list := make([]int32, len(s.Rows)), make([]int32, len(s.Rows))
		for i := range s.Rows {
			places[i], list[i] = s.Rows[i].Slot, int32(s.Rows[i].Unit)
		}
		a.Rows, a.Slots, a.Units = len(s.Rows), b.put(places), b.put(list)
	}
	if b.err != nil {
		return
	}
	b.did(b.device.Wait(b.compute, r.arrived))
	b.did(b.clock.mark(ffnFrom, b.compute))
	b.did(b.kernels.FFN(b.compute, a))
	b.did(b.clock.mark(ffnTo, b.compute))
	b.did(b.device.Record(r.used, b.compute))
	if w.check != nil && b.err == nil {
		a := b.ffn(s, w.check[s.Layer])
		a.Act, a.Out = w.all, w.spare
		b.did(b.kernels.FFN(b.compute, a))
	}
}

// keeps reports whether a layer is resident: every unit in the slot of its number.
func (w *work) keeps(layer int) bool { return w.setup.Resident[layer] != nil }

// ffn returns the feed-forward part of a layer over all its units.
func (b *Backend) ffn(s *engine.Step, r *rows) *kernels.FFN {
	layer, shape := &b.weights.layers[s.Layer], b.w.Shape
	a := &kernels.FFN{
		Format: b.w.Bundles, Gate: r.Gate, Up: r.Up, Down: r.Down, GateBias: layer.gateBias,
		UpBias: layer.upBias, DownBias: layer.downBias,
		X: b.work.h, Scratch: b.work.sums, Rows: shape.DFFN, Dim: shape.DModel, Total: shape.DFFN,
		Tokens:     len(s.Tokens),
		Activation: b.f, Threshold: float32(b.w.Arch.Activation.Threshold),
	}
	if b.work.setup.Thresholds != nil {
		a.ValueThreshold = b.work.setup.Thresholds[s.Layer]
	}
	return a
}

// wanted returns the masks of the tokens, if a token needs only some rows of the step. masked
// reports whether a token has a mask at all: rows of value zero then cost as much as others, as on
// the CPU.
func (b *Backend) wanted(s *engine.Step) (m kernels.Mem, masked bool) {
	units := b.w.Shape.DFFN
	for i := range s.Tokens {
		masked = masked || s.Need(i) != nil
	}
	if !masked || len(s.Tokens) == 1 && !b.work.keeps(s.Layer) {
		return kernels.Mem{}, masked
	}
	var all mask.Mask // the masks of all tokens in a row
	for i := range s.Tokens {
		need := s.Need(i)
		if need == nil {
			need = mask.New(units)
			need.Fill(units)
		}
		all = append(all, need...)
	}
	m, err := b.work.lists.put(kernels.AsBytes(all))
	b.did(err)
	return m, true
}

// Head computes the logits.
func (b *Backend) Head(s *engine.Step) {
	w, n := b.work, len(s.Tokens)
	b.did(b.clock.mark(headFrom, b.compute))
	if b.w.Arch.FinalNorm {
		b.Norm(s, engine.FinalNorm)
	} else {
		b.CopyState(s)
	}
	from := w.h
	if w.wide != (kernels.Mem{}) {
		b.linear(&b.weights.out, w.h, w.wide, n)
		from = w.wide
	}
	b.linear(&b.weights.head, from, w.logits, n)
	if limit := float32(b.w.Arch.LogitCap); limit > 0 && b.err == nil {
		b.did(b.kernels.SoftCap(b.compute, w.logits, limit, n*b.w.Shape.Vocab))
	}
	b.did(b.clock.mark(headTo, b.compute))
}

// Wait waits for the stream that computes.
func (b *Backend) Wait() error {
	if b.err == nil {
		b.did(b.device.SyncStream(b.compute))
	}
	return b.err
}

// fetch copies the first bytes of m to the host and waits for them.
func (b *Backend) fetch(to []byte, m kernels.Mem) error {
	if b.err == nil && len(to) > 0 {
		b.did(b.device.ToHost(to, m.Ptr, b.compute))
	}
	return b.Wait()
}

// Keep copies Out or X on the device, in the order of the stream, without a wait.
func (b *Backend) Keep(s *engine.Step, k engine.FeatureKind) {
	f, from := &b.work.features[k], b.work.x
	if k == engine.AttentionOutput {
		from = b.work.out
	}
	f.have = false
	if b.err == nil {
		b.did(b.device.OnDevice(f.at.Ptr, from.Ptr, int64(4*len(s.Tokens)*b.w.Shape.DModel),
			b.compute))
	}
}

// Feature copies the feature of all tokens to the host on the first call for the layer.
func (b *Backend) Feature(s *engine.Step, i int, k engine.FeatureKind) ([]float32, error) {
	f, d := &b.work.features[k], b.w.Shape.DModel
	if !f.have {
		if err := b.fetch(f.host[:4*len(s.Tokens)*d], f.at); err != nil {
			return nil, err
		}
		f.have = true
	}
	return floats(f.host)[i*d : (i+1)*d], nil
}

// Collect copies the values of all tokens to the host.
func (b *Backend) Collect(s *engine.Step) error {
	w, n := b.work, len(s.Rows)
	if err := b.fetch(w.hostAct[:4*len(s.Tokens)*n], w.act); err != nil {
		return err
	}
	for i := range s.Tokens {
		s.Collect(i, floats(w.hostAct)[i*n:(i+1)*n])
	}
	if w.check == nil {
		return nil
	}
	size := int(kernels.MaskBytes(b.w.Shape.DFFN))
	b.did(b.kernels.MaskAtLeast(b.compute, &kernels.MaskAtLeast{Scores: w.all, Mask: w.truth,
		N: b.w.Shape.DFFN, Tokens: len(s.Tokens), NonZero: true}))
	if err := b.fetch(w.hostTruth[:size*len(s.Tokens)], w.truth); err != nil {
		return err
	}
	for i := range s.Tokens {
		s.SetTrue(i, words(w.hostTruth[i*size:(i+1)*size]))
	}
	return nil
}

// Logits copies the logits of all tokens to the host on the first call for the step.
func (b *Backend) Logits(s *engine.Step, i int) ([]float32, error) {
	w, n := b.work, b.w.Shape.Vocab
	if !w.haveLogits {
		if err := b.fetch(w.hostLogits[:4*len(s.Tokens)*n], w.logits); err != nil {
			return nil, err
		}
		w.haveLogits = true
	}
	return floats(w.hostLogits)[i*n : (i+1)*n], nil
}
