package answers

import (
	"context"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
	"github.com/windrow-sim/windrow/traces/stats"
)

// BatchStudy is what several sequences at once need and cost.
type BatchStudy struct {
	Model  string        `json:"model"`
	Device string        `json:"device"`
	Unions *stats.Unions `json:"unions"`
	Times  *Batches      `json:"times"`
	Prompt []stats.Chunk `json:"prompt_chunks"`
}

// StudyBatches measures and simulates batches of the generated tokens of a trace, and measures its
// prompts. Errors about the configuration are of kind ErrInput, refusal.ErrConfig or sim.ErrConfig.
func StudyBatches(ctx context.Context, src traces.Source, cfg BatchConfig) (*BatchStudy, error) {
	stream, err := batch.NewStream(src)
	if err != nil {
		return nil, err
	}
	if err := cfg.chooseSizes(stream.Tokens()); err != nil {
		return nil, err
	}
	r := &BatchStudy{Model: src.Header().Model, Device: cfg.Sim.Device.Name}
	options := stats.UnionOptions{Sizes: cfg.Sizes, Predicted: cfg.Sim.Predicted, Group: cfg.Group,
		Progress: cfg.Tell.Stage("batch (steps)")}
	if r.Unions, err = stats.ComputeUnions(stream, options); err != nil {
		return nil, err
	}
	if r.Prompt, err = stats.ComputeChunks(src, cfg.Sim.Predicted); err != nil {
		return nil, err
	}
	r.Times, err = SimulateBatches(ctx, stream, cfg)
	return r, err
}

// chooseSizes checks the sizes against the tokens of a trace. Where there are none, they become the
// powers of two from AtLeast on that leave a step after the window has filled, and two steps for
// groups.
func (cfg *BatchConfig) chooseSizes(tokens int) error {
	if len(cfg.Sizes) == 0 {
		most := min(tokens/max(cfg.Sim.Policy.Window+1, 2), stats.MaxBatch)
		for b := 1; b <= most; b *= 2 {
			if b >= cfg.AtLeast {
				cfg.Sizes = append(cfg.Sizes, b)
			}
		}
		if len(cfg.Sizes) == 0 {
			return refusal.Config("answers: batch: %d tokens are too few for any batch; record "+
				"more, or name {Sizes}", tokens)
		}
		return nil
	}
	for _, b := range cfg.Sizes {
		switch {
		case b < 1:
			return refusal.Config("answers: batch: {Sizes} %d: 1 or more sequences are wanted", b)
		case b < cfg.AtLeast:
			return refusal.Config("answers: batch: {Sizes} %d: of %d sequences, no unit is "+
				"needed by {AtLeast} %d", b, b, cfg.AtLeast)
		case b > tokens || cfg.Group && 2*b > tokens:
			return refusal.Config("answers: batch: {Sizes} %d: the trace has %d tokens to form "+
				"batches of, too few for steps of %d", b, tokens, b)
		}
	}
	return nil
}
