package demo

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/tell"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/traces"
)

// small packs and runs the shipped model, records its trace, and compares flash-resident with dense
// logits.
func (d *demo) small(ctx context.Context) error {
	if _, err := os.Stat(d.Source); errors.Is(err, fs.ErrNotExist) {
		return refusal.Input("demo: there is no model in %s; run the demo in the repository's "+
			"folder, or name a model with {Source}: %v", d.Source, fs.ErrNotExist)
	}
	if err := os.MkdirAll(d.Dir, 0o755); err != nil {
		return refusal.Config("{Dir}: %v", err)
	}
	image := filepath.Join(d.Dir, "tales.flash.safetensors")
	d.Tell.Notef("pack %s", d.Source)
	if _, err := session.Pack(ctx, session.PackConfig{Source: d.Source, Out: image,
		Tell: tell.Tell{Note: d.Tell.Note, Field: d.Tell.Field}}); err != nil {
		return err
	}
	m, err := session.Open(ctx, session.Config{Model: image})
	if err != nil {
		return err
	}
	defer m.Close()
	d.result.Model = m.Image.Name
	list, err := session.ReadPrompts(ctx, d.Prompts, d.MaxInput, 4)
	if err != nil {
		return err
	}
	out := filepath.Join(d.Dir, "tales.trace.arrow")
	d.Tell.Notef("record %d prompts", len(list))
	cfg := record.DefaultConfig()
	cfg.Prompts, cfg.N, cfg.Out, cfg.Tool, cfg.Progress = list, 48, out, d.Tool,
		d.Tell.Stage("record (prompts)")
	cfg.Sampling = engine.Sampling{Temperature: 0.7, TopP: 0.9, Seed: d.Seed}
	if _, err := record.Run(ctx, m, cfg); err != nil {
		return err
	}
	d.result.Trace = out
	return d.checkExact(ctx, m)
}

// checkExact runs the recorded tokens densely and from flash and compares every logit.
func (d *demo) checkExact(ctx context.Context, m *session.Session) error {
	tr, err := traces.Open(ctx, d.result.Trace)
	if err != nil {
		return err
	}
	defer tr.Close()
	dense, err := m.Resident()
	if err != nil {
		return err
	}
	reader, err := flashio.Open(m.Image.Path, flashio.Options{})
	if err != nil {
		return err
	}
	flash, _, err := replay.NewFlash(tr, tr.Tokens(), m.Weights, m.Image.Geometry(), reader,
		replay.Config{Policy: policy.SlidingWindow(d.Window), Layout: layout.Options{
			Coalesce: true}})
	if err != nil {
		reader.Close()
		return err
	}
	defer flash.Close()
	d.Tell.Notef("compare flash-resident with dense logits: %v", flash.Mode())
	a, err := engine.New(m.Weights, dense, engine.Config{})
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := engine.New(m.Weights, flash, engine.Config{})
	if err != nil {
		return err
	}
	defer b.Close()
	d.result.DenseEqual, d.result.Text, err = sameLogits(ctx, tr, a, b, m.Tokenizer)
	return err
}

// sameLogits runs a trace's tokens through both engines and reports whether all logits are
// bit-equal, and the text of the first sequence.
func sameLogits(ctx context.Context, tr *traces.Reader, a, b *engine.Engine,
	tok *tokenizer.Tokenizer) (bool, string, error) {
	var t traces.Token
	var ids []uint32
	for i := range tr.Tokens() {
		if err := errors.Join(ctx.Err(), tr.Token(i, &t)); err != nil {
			return false, "", err
		}
		if t.Pos == 0 {
			a.Reset()
			b.Reset()
		}
		if t.Seq == 0 {
			ids = append(ids, t.ID)
		}
		token := engine.Token{Seq: int(t.Seq), Pos: int(t.Pos), ID: t.ID, Masks: t.Active}
		x, err := a.Forward(token)
		if err != nil {
			return false, "", err
		}
		y, err := b.Forward(token)
		if err != nil {
			return false, "", err
		}
		for j := range x {
			if math.Float32bits(x[j]) != math.Float32bits(y[j]) {
				return false, "", nil
			}
		}
	}
	return true, tok.DecodeText(ids), nil
}
