//go:build !(linux && (amd64 || arm64))

package standin

import (
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

// Library is the stand-in; here there is none.
type Library struct{}

// Open skips the test.
func Open(t testing.TB) *Library {
	t.Helper()
	t.Skip("the stand-in for a CUDA device is for Linux on amd64 and arm64")
	return nil
}

// Path implements nothing here, like all that follow.
func (l *Library) Path() string { return "" }

// Fail does nothing.
func (l *Library) Fail(string, int, cuda.Result, bool) {}

// Calls is 0.
func (l *Library) Calls(string) int { return 0 }

// Limit does nothing.
func (l *Library) Limit(uint64) {}

// Trouble is "".
func (l *Library) Trouble() string { return "" }

// Left is "".
func (l *Library) Left() string { return "" }

// Forget does nothing.
func (l *Library) Forget() {}
