package synth

import (
	"context"
	"errors"
	"testing"

	"github.com/windrow-sim/windrow/traces"
)

// Generating ends with its context, also between two blocks of tokens.
func TestGenerateEndsWithItsContext(t *testing.T) {
	for _, like := range []string{"opt-6.7b", "mixtral-8x7b"} {
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		_, err := Generate(ctx, Options{Like: like, Layers: 1, Tokens: 1 << 20},
			func(*traces.Token) error {
				seen++
				cancel()
				return nil
			})
		if !errors.Is(err, context.Canceled) || seen > 1<<10 {
			t.Errorf("%s: %v after %d tokens", like, err, seen)
		}
	}
}
