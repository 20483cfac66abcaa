package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay/probe"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
	"github.com/windrow-sim/windrow/traces/synth"
)

// large makes the random model and its trace.
func (d *demo) large(ctx context.Context, like, path string) error {
	shape, info, err := shapes.Lookup(like)
	if err != nil {
		return err
	}
	layers, why, err := affordableLayers(d.Dir, shape)
	if err != nil {
		return err
	}
	if layers < 1 && info.Name != smallestShape {
		d.Tell.Notef("%s is too large here, since %s: taking %s", info.Name, why, smallestShape)
		return d.large(ctx, smallestShape, path)
	}
	if layers < 1 {
		return fmt.Errorf("demo: %w: there is no room for one layer of %s, since %s; name a "+
			"folder on another disk", flashio.ErrEnvironment, info.Name, why)
	}
	if layers < shape.Layers {
		d.Tell.Notef("%s: %d of %d layers, since %s", info.Name, layers, shape.Layers, why)
	}
	shape.Layers = layers
	if d.image, err = session.Synth(ctx, session.SynthConfig{Shape: model.Shape(shape),
		Like: info.Name,
		Seed: d.Seed, Out: path, Tell: d.Tell}); err != nil {
		return err
	}
	d.result.Large = fmt.Sprintf("%s, %d layers", d.image.Name, layers)
	d.Tell.Notef("%s: %s on flash", d.result.Large, d.image.BundleBytes())
	opt := synth.Options{Like: info.Name, Layers: layers, Tokens: d.MeasureTokens, Seed: d.Seed}
	if d.trace, err = synth.Collect(ctx, opt); err != nil {
		opt.ActiveShare = assumedShare
		d.Tell.Notef("note: no active share is published for %s; its trace has %.3g %%, as "+
			"OPT-6.7B",
			info.Name, 100*assumedShare)
		d.trace, err = synth.Collect(ctx, opt)
	}
	return err
}

// assumedShare is the active share of OPT-6.7B (LLM in a flash, Table 6, mean over the layers), for
// shapes without a published one.
const assumedShare = 0.033

// affordableLayers bounds the size of the large model by space and by what can be written in a few
// seconds; why says which of the two. Less than one means that not even a layer fits.
func affordableLayers(dir string, s traces.Shape) (layers int, why string, err error) {
	rate, err := writeRate(dir)
	if err != nil {
		return 0, "", err
	}
	const patience = 12 * units.Second
	limit, why := units.Bytes(float64(rate)*patience.Seconds()), fmt.Sprintf("the disk writes %v",
		rate)
	if free, ok := probe.FreeSpace(dir); ok && free/3 < limit {
		limit, why = free/3, fmt.Sprintf("%v are free", free)
	}
	perLayer := units.Bytes(s.DFFN)*s.RecordBytes() + s.AttentionBytes()
	fixed := s.HeadBytes() + units.Bytes(s.MaxPos*s.DModel*s.DTypeSize)
	return min(int((limit-fixed)/perLayer), s.Layers), why, nil
}

// smallestShape is taken when the disk has no room, or no patience, for the large one.
const smallestShape = "OPT-125M"

// writeRate writes and syncs a little to see how fast the disk takes it.
func writeRate(dir string) (units.Rate, error) {
	f, err := output.Scratch(dir, "windrow-demo")
	if err != nil {
		return 0, fmt.Errorf("demo: %w", err)
	}
	defer f.Abort()
	block := make([]byte, 32*units.MiB)
	begin := time.Now()
	if _, err := f.Write(block); err != nil {
		return 0, fmt.Errorf("demo: %w", err)
	}
	if err := f.Seal(); err != nil {
		return 0, fmt.Errorf("demo: %w", err)
	}
	return units.Bytes(len(block)).Over(units.Nanos(time.Since(begin))), nil
}
