package cli

import (
	"context"
	"fmt"
	"io"
	"time"
)

// endable is a writer whose writes return soon after its context ends, even to a full pipe. Before
// that it only passes writes on.
type endable struct {
	ctx context.Context
	w   io.Writer
}

// patience is how long a write may take when the context has ended: a verb that is interrupted may
// still say what it has.
const patience = 200 * time.Millisecond

// Write implements io.Writer. After an error of the context, b may still be read.
func (e *endable) Write(b []byte) (n int, err error) {
	return e.do(func() (int, error) { return e.w.Write(b) })
}

// Close closes the writer if it can be closed.
func (e *endable) Close() error {
	c, ok := e.w.(io.Closer)
	if !ok {
		return nil
	}
	_, err := e.do(func() (int, error) { return 0, c.Close() })
	return err
}

func (e *endable) do(do func() (int, error)) (int, error) {
	type answer struct {
		n   int
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		n, err := do()
		answers <- answer{n, err}
	}()
	select {
	case a := <-answers:
		return a.n, a.err
	case <-e.ctx.Done():
	}
	select {
	case a := <-answers:
		return a.n, a.err
	case <-time.After(patience):
		return 0, fmt.Errorf("nobody reads the output: %w", e.ctx.Err())
	}
}
