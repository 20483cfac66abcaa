package main

import (
	"testing"
	"testing/synctest"
	"time"
)

// A verb that does not return ends soon after an interrupt, but not while it saves what it has.
func TestEndLate(t *testing.T) {
	for name, c := range map[string]struct{ saves, least, most time.Duration }{
		"waits for a disk": {0, patience, time.Second},
		"saves for long":   {5 * time.Second, 5 * time.Second, 6 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			ended := time.Duration(-1)
			endLate(func() bool { return time.Since(start) < c.saves },
				func() { ended = time.Since(start) })
			if ended < c.least || ended > c.most {
				t.Errorf("%s: ends after %v, want %v to %v", name, ended, c.least, c.most)
			}
		})
	}
}
