package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/traces"
)

// TestInterruptedBatch: what a batch held back when it was interrupted is passed on, in order.
func TestInterruptedBatch(t *testing.T) {
	m := openTales(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	head := m.head
	var got []string
	order := NewInOrder(appendFunc(func(tok *traces.Token) error {
		if got = append(got, fmt.Sprintf("%d.%d", tok.Seq, tok.Pos)); len(got) == 2 {
			cancel()
		}
		return nil
	}))
	recorder, err := NewFor(order, &head)
	if err != nil {
		t.Fatal(err)
	}
	eng, err := engine.New(m.weights, m.rows, engine.Config{Threads: 1, Context: 16, Sequences: 3,
		Observer: recorder})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	ids := [][]uint32{{5, 6, 7}, {8, 9, 10}, {11, 12, 13}, {14, 15, 16}}
	cfg := Config{Batch: 3}
	err = cfg.batches(ctx, eng, ids, engine.GenerateOptions{MaxTokens: 4}, order)
	if want := []string{"0.0", "0.1", "1.0", "1.1", "2.0", "2.1"}; !errors.Is(err,
		context.Canceled) || !slices.Equal(got, want) {
		t.Errorf("passed on %v, want %v; %v", got, want, err)
	}
}
