package replay

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/traces"
)

// long is a trace of more tokens than a replay keeps the rows of.
type long struct {
	traces.Source
	tokens int
}

func (l long) Tokens() int { return l.tokens }

// TestRowsAreBounded: a replay whose rows would take more memory than is stated is refused before
// it takes any.
func TestRowsAreBounded(t *testing.T) {
	src, image, w := syntheticTrace(t)
	most := traces.MostRows / (src.Header().Layers*(traces.Parts-1) + 1)
	for _, tokens := range []int{most + 1, 1 << 50} {
		reader, err := flashio.Open(image.Path, flashio.Options{Engine: flashio.EngineMem})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = Run(t.Context(), long{src, tokens}, w, image.Geometry(), reader,
			Config{Policy: policy.SlidingWindow(2)})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, refusal.ErrConfig) || !strings.Contains(err.Error(), "MaxTokens") {
			t.Errorf("a replay of %d tokens: %v, want a refusal of MaxTokens", tokens, err)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
			t.Errorf("a replay of %d tokens takes %d bytes before it is refused", tokens, taken)
		}
	}
}
