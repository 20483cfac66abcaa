package cli

import (
	"context"
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

const (
	// calibrationTokens are replayed to learn what the host itself takes; calibrationLayers is how
	// many layers of tokens that has to be at least. A small model's tokens are cheap: then there
	// are more of them, over which attention grows.
	calibrationTokens = 8
	calibrationLayers = 48
	smallModel        = 256 * units.MiB
	smallTokens       = 64
)

// calibrateHost replays the first tokens of a trace and sets what the engine itself costs on this
// host: all that is not reads, and what a batch of reads takes beyond the reads as the device model
// has them.
func calibrateHost(ctx context.Context, device *devicemodels.Device, src traces.Source,
	image *model.Image, w *model.Weights, io flashio.Options, window int) error {
	reader, err := flashio.Open(image.Path, io)
	if err != nil {
		return err
	}
	mode := reader.Mode()
	tokens := max(calibrationTokens, 1+calibrationLayers/image.Shape.Layers)
	if image.BundleBytes() < smallModel {
		tokens = max(tokens, smallTokens)
	}
	tokens = min(tokens, src.Tokens())
	options := layout.Options{Coalesce: true, Align: max(mode.Align, 1)}
	result, err := replay.Run(ctx, src, w, image.Geometry(), reader, replay.Config{
		Policy: policy.SlidingWindow(window),
		Layout: options, MaxTokens: tokens})
	if err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	if err := replay.Calibrate(&device.Host, result.Run, src.Header()); err != nil {
		return err
	}
	if device.Flash.Limit != nil {
		return nil // the few tokens would show more of the limit's slices than of the host
	}
	simulated, err := sim.Run(src, sim.Config{
		Policy: policy.SlidingWindow(window), Engine: string(mode.Engine), Parallel: mode.Parallel,
		MaxTokens: tokens,
		Layout:    options, Device: device, Geometry: image.Geometry(),
	})
	if err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	return replay.CalibrateBatch(&device.Flash, string(mode.Engine), simulated, result.Run)
}

// chunksAbout returns the read sizes to probe for records of a size: about those that a replay asks
// for.
func chunksAbout(path string, record units.Bytes) ([]units.Bytes, error) {
	info, err := flashio.Describe(path)
	if err != nil {
		return nil, err
	}
	least := max(info.DirectOff, 512)
	if !info.DirectKnown {
		least = 4 * units.KiB
	}
	least = max(least, record/2/least*least)
	return []units.Bytes{least, 2 * least, 4 * least, 8 * least}, nil
}
