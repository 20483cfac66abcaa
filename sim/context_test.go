package sim

import (
	"context"
	"errors"
	"testing"

	"github.com/windrow-sim/windrow/traces"
)

// watched is a source that ends a context with its second token.
type watched struct {
	traces.Source
	cancel context.CancelFunc
	last   int
}

func (w *watched) Token(i int, t *traces.Token) error {
	if w.last = i; i == 1 {
		w.cancel()
	}
	return w.Source.Token(i, t)
}

// A simulation ends with its context, whatever its source does.
func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	src := &watched{Source: testTrace(2, 64, 8, 0.2), cancel: cancel}
	if _, err := Run(ctx, src, testConfig()); !errors.Is(err, context.Canceled) || src.last != 1 {
		t.Errorf("%v after token %d, want %v after token 1", err, src.last, context.Canceled)
	}
}
