package cli

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a writer that takes its time, and notices a second call beside the first.
type slow struct {
	takes        atomic.Int64 // ns
	busy, beside atomic.Bool

	mu  sync.Mutex
	got []byte
}

func (s *slow) Write(b []byte) (int, error) {
	if s.busy.Swap(true) {
		s.beside.Store(true)
	}
	time.Sleep(time.Duration(s.takes.Load()))
	s.busy.Store(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, b...)
	return len(b), nil
}

// TestGivenUpWrites: a write that is given up does not run beside the next one, which waits for it,
// and does not see what its caller does to the buffer afterwards.
func TestGivenUpWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := new(slow)
		w.takes.Store(int64(3 * patience / 2))
		e := &endable{ctx: ctx, w: w}
		if n, err := e.Write([]byte("whole ")); n != 6 || err != nil {
			t.Errorf("before the end: %d, %v", n, err)
		}
		cancel()
		b := []byte("first ")
		if n, err := e.Write(b); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("the writer takes too long: %d, %v", n, err)
		}
		clear(b)
		w.takes.Store(0)
		if n, err := e.Write([]byte("second")); n != 6 || err != nil {
			t.Errorf("after one that was given up: %d, %v", n, err)
		}
		w.mu.Lock()
		if got := string(w.got); w.beside.Load() || got != "whole first second" {
			t.Errorf("two at once: %v; %q", w.beside.Load(), got)
		}
		w.mu.Unlock()
		w.takes.Store(int64(time.Hour))
		for range 2 { // the second one waits in vain for the first
			if n, err := e.Write(b); n != 0 || !errors.Is(err, context.Canceled) {
				t.Errorf("%d, %v", n, err)
			}
		}
		if time.Sleep(3 * time.Hour); w.beside.Load() {
			t.Error("two at once")
		}
	})
}
