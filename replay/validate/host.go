package validate

import (
	"context"
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

const (
	// CalibrationTokens are replayed to learn what the host itself takes; calibrationLayers is how
	// many layers of tokens that has to be at least. A small model's tokens are cheap: then there
	// are more of them, over which attention grows.
	CalibrationTokens = 8
	calibrationLayers = 48
	smallModel        = 256 * units.MiB
	smallTokens       = 64
)

// CalibrateDevice replays the first tokens of a trace and sets what the engine itself costs on this
// host: all that is not reads, and what a batch of reads takes beyond the reads as the device model
// has them.
func CalibrateDevice(ctx context.Context, device *devicemodels.Device, src traces.Source,
	image *model.Image, w *model.Weights, io flashio.Options, window int) error {
	reader, err := flashio.Open(image.Path, io)
	if err != nil {
		return err
	}
	mode := reader.Mode()
	tokens := max(CalibrationTokens, 1+calibrationLayers/image.Shape.Layers)
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
	simulated, err := sim.Run(ctx, src, sim.Config{
		Policy: policy.SlidingWindow(window), Engine: string(mode.Engine), Parallel: mode.Parallel,
		MaxTokens: tokens,
		Layout:    options, Device: device, Geometry: image.Geometry(),
	})
	if err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	return replay.CalibrateBatch(&device.Flash, string(mode.Engine), simulated, result.Run)
}

// CalibrateByTrace is CalibrateDevice by a recorded trace, with the device's preferred way to read
// and a short window. The device says where its numbers come from.
func CalibrateByTrace(ctx context.Context, device *devicemodels.Device, src traces.Source,
	image *model.Image) error {
	w, err := image.Weights(ctx)
	if err != nil {
		return err
	}
	engine, err := device.ReadEngine(ioengine.Auto)
	if err != nil {
		return err
	}
	const window = 3
	if err := CalibrateDevice(ctx, device, src, image, w, flashio.Options{
		Engine: flashio.Engine(engine)}, window); err != nil {
		return err
	}
	if device.Sources == nil {
		device.Sources = map[string]string{}
	}
	device.Sources["host"] = fmt.Sprintf("the start of a trace of %s replayed on %s; "+
		"memory_rate by a timed kernel", src.Header().Model, image.Name)
	device.Sources["flash.engines."+engine+".batch"] = "what reads of that replay took beyond " +
		"the fit, per batch"
	return nil
}
