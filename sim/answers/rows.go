package answers

import (
	"context"
	"fmt"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/traces"
)

// WindowsOf measures all windows of a trace in one pass. The geometry of reads may be zero: then
// the units lie as layout.Uniform lays them.
func WindowsOf(ctx context.Context, src traces.Source, reads memory.Reads, predicted bool,
	progress func(done, total int)) (*memory.Windows, error) {
	head, total := src.Header(), src.Tokens()
	if predicted && !head.HasPredicted {
		return nil, fmt.Errorf("answers: the trace of %s holds no predicted masks; ask about "+
			"the true ones: %w", head.Model, ErrInput)
	}
	if total == 0 {
		return nil, fmt.Errorf("answers: the trace of %s holds no tokens: %w", head.Model, ErrInput)
	}
	if reads.Geometry.Units == 0 {
		reads.Geometry = layout.Uniform(head.Layers, head.Units, head.UnitBytes)
	}
	t := traces.MaskTrace(src, total, predicted)
	token := t.Token
	t.Token = func(i int) (memory.Token, error) {
		if err := ctx.Err(); err != nil {
			return memory.Token{}, err
		}
		return token(i)
	}
	w, err := memory.WindowsOf(t, reads, progress)
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	return w, nil
}
