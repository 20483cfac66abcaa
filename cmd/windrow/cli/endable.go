package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// endable is a writer whose writes return soon after its context ends, even to a full pipe. Before
// that it only passes writes on. It is safe for concurrent use.
type endable struct {
	ctx context.Context
	w   io.Writer

	mu sync.Mutex
	// pending is a call that was given up and may still be under way; nil = none. The next call
	// waits for it, so that the writer sees one at a time, in order.
	pending chan answer
}

// answer is what a writer returned.
type answer struct {
	n   int
	err error
}

// patience is how long a write may take when the context has ended: a verb that is interrupted may
// still say what it has.
const patience = 200 * time.Millisecond

// Write implements io.Writer.
func (e *endable) Write(b []byte) (n int, err error) {
	b = bytes.Clone(b) // a write that is given up reads it after the caller has it back
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
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending != nil {
		if _, err := e.wait(e.pending); e.pending != nil {
			return 0, err
		}
	}
	answers := make(chan answer, 1)
	go func() {
		n, err := do()
		answers <- answer{n, err}
	}()
	a, err := e.wait(answers)
	if err != nil {
		return 0, err
	}
	return a.n, a.err
}

// wait returns what a call returns, or an error if the context has ended and patience too.
func (e *endable) wait(answers chan answer) (answer, error) {
	e.pending = nil
	select {
	case a := <-answers:
		return a, nil
	case <-e.ctx.Done():
	}
	select {
	case a := <-answers:
		return a, nil
	case <-time.After(patience):
		e.pending = answers
		return answer{}, fmt.Errorf("nobody reads the output: %w", e.ctx.Err())
	}
}
