//go:build !linux

package emulated

import "time"

// pause sleeps for about t, as well as the runtime can.
func pause(t time.Duration) { time.Sleep(t) }
