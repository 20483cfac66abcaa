package synth

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/traces"
)

// blockTokens is the number of tokens generated at a time, one bit of a word each.
const blockTokens = 64

// Generate makes the trace that opt describes and passes it to emit token by token, in the order of
// (sequence, position). The Token is reused for the next call. The masks are not: emit may keep
// them and must not change them. An error of emit ends the generation and is returned. The same
// options give the same tokens. A trace of fewer tokens is a prefix of each sequence of a longer
// one.
//
// Memory does not depend on the number of tokens: masks of 64 tokens at a time.
func Generate(ctx context.Context, opt Options, emit func(*traces.Token) error) (traces.Header,
	error) {
	p, err := newPlan(opt)
	if err != nil {
		return traces.Header{}, err
	}
	if p.routed != nil {
		return p.header, p.route(ctx, emit)
	}
	gens := make([]layerGen, len(p.layers))
	for l := range gens {
		gens[l] = newLayerGen(&p.layers[l], p.header.Units, rng.Stream(p.opt.Seed,
			fmt.Sprintf("synth/layer/%d", l)))
	}
	for seq := p.opt.First; seq < p.opt.First+p.opt.Sequences; seq++ {
		for l := range gens {
			gens[l].start(rng.Stream(p.opt.Seed, fmt.Sprintf("synth/sequence/%d/layer/%d", seq, l)))
		}
		ids := rng.Stream(p.opt.Seed, fmt.Sprintf("synth/sequence/%d/ids", seq))
		for pos := 0; pos < p.opt.Tokens; pos += blockTokens {
			b := newBlock(&p.header)
			for l := range gens {
				if err := ctx.Err(); err != nil {
					return traces.Header{}, err
				}
				gens[l].fill(b, l)
			}
			if err := p.emitBlock(b, seq, pos, ids, emit); err != nil {
				return traces.Header{}, err
			}
		}
	}
	return p.header, nil
}

// Collect generates a trace into memory.
func Collect(ctx context.Context, opt Options) (*traces.Memory, error) {
	m := &traces.Memory{}
	var err error
	m.Head, err = Generate(ctx, opt, func(t *traces.Token) error {
		m.List = append(m.List, *t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// emitBlock passes the tokens of a block to emit, as many as the sequence still needs from position
// pos on.
func (p *plan) emitBlock(b *block, seq, pos int, ids *rand.Rand,
	emit func(*traces.Token) error) error {
	for i := range min(blockTokens, p.opt.Tokens-pos) {
		t := traces.Token{Seq: uint32(seq), Pos: uint32(pos + i), Phase: traces.Decode,
			Active: b.masks(b.active, i)}
		if vocab := p.header.Shape.Vocab; vocab > 0 {
			t.ID = uint32(ids.IntN(vocab))
		}
		if pos+i < p.opt.Prompt {
			t.Phase = traces.Prefill
		}
		if p.opt.Predicted {
			t.Predicted = b.masks(b.predicted, i)
		}
		if err := emit(&t); err != nil {
			return err
		}
	}
	return nil
}

// block holds the masks of 64 tokens, (token, layer, word).
type block struct {
	layers, words     int
	active, predicted mask.Mask // predicted is nil if not wanted
}

func newBlock(h *traces.Header) *block {
	b := &block{layers: h.Layers, words: h.Words()}
	size := blockTokens * b.layers * b.words
	b.active = make(mask.Mask, size)
	if h.HasPredicted {
		b.predicted = make(mask.Mask, size)
	}
	return b
}

// masks returns the masks of token i by layer.
func (b *block) masks(of mask.Mask, i int) []mask.Mask {
	list := make([]mask.Mask, b.layers)
	for l := range list {
		from := (i*b.layers + l) * b.words
		list[l] = of[from : from+b.words : from+b.words]
	}
	return list
}

// store writes the timelines of the units of a word to the masks: row u bit t becomes token t bit
// u.
func (b *block) store(of mask.Mask, layer, word int, timelines *[64]uint64) {
	transpose(timelines)
	at := layer*b.words + word
	for _, row := range timelines {
		of[at] = row
		at += b.layers * b.words
	}
}

// genClass is a class, with probabilities in units of 2⁻⁶⁴.
type genClass struct {
	rate, inTopic, enter, exit uint64
}

// layerGen generates the masks of one layer, 64 tokens at a time.
type layerGen struct {
	rand        *rand.Rand // of the current sequence
	classes     []genClass
	hit, missed uint64
	classOf     []uint8 // by unit: a property of the layer, the same in all sequences
	inTopic     []bool  // by unit: the state after the last block
}

// newLayerGen assigns a class to every unit: as many of each class as its share says, in random
// order.
func newLayerGen(l *layer, unitCount int, r *rand.Rand) layerGen {
	g := layerGen{hit: round32(l.hit), missed: round32(l.missed),
		classOf: make([]uint8, unitCount), inTopic: make([]bool, unitCount)}
	from, share := 0, 0.0
	for i, c := range l.classes {
		g.classes = append(g.classes, genClass{round32(c.rate), round32(c.inTopic),
			round32(c.enter), round32(c.exit)})
		share += c.share
		to := min(unitCount, int(share*float64(unitCount)+0.5))
		for ; from < to; from++ {
			g.classOf[from] = uint8(i)
		}
	}
	for ; from < unitCount; from++ { // the shares may add up to a little less than 1
		g.classOf[from] = uint8(len(l.classes) - 1)
	}
	r.Shuffle(unitCount, func(i, j int) { g.classOf[i], g.classOf[j] = g.classOf[j], g.classOf[i] })
	return g
}

// start begins a sequence. Topics are drawn anew from their stationary distribution.
func (g *layerGen) start(r *rand.Rand) {
	g.rand = r
	for u := range g.inTopic {
		g.inTopic[u] = bernoulli(r, g.classes[g.classOf[u]].inTopic, 1) != 0
	}
}

// fill generates the layer's masks of the next 64 tokens.
func (g *layerGen) fill(b *block, layer int) {
	var predicted, active [64]uint64
	for word := range b.words {
		first := word * 64
		predicted, active = [64]uint64{}, [64]uint64{}
		for u := first; u < min(first+64, len(g.classOf)); u++ {
			predicted[u-first], active[u-first] = g.timeline(u)
		}
		b.store(b.active, layer, word, &active)
		if b.predicted != nil {
			b.store(b.predicted, layer, word, &predicted)
		}
	}
}

// timeline generates the next 64 tokens of one unit: bit t is token t.
func (g *layerGen) timeline(u int) (predicted, active uint64) {
	c := &g.classes[g.classOf[u]]
	enter := bernoulli(g.rand, c.enter, ^uint64(0))
	exit := bernoulli(g.rand, c.exit, ^uint64(0))
	topic := walk(g.inTopic[u], enter, exit)
	g.inTopic[u] = topic>>63 == 1
	if topic == 0 {
		return 0, 0
	}
	predicted = bernoulli(g.rand, c.rate, topic)
	active = bernoulli(g.rand, g.hit, predicted) | bernoulli(g.rand, g.missed, topic&^predicted)
	return predicted, active
}
