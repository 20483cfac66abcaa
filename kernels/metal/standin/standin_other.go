//go:build !(linux && (amd64 || arm64))

package standin

import (
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

// Runtime is the stand-in; here there is none.
type Runtime struct{}

// Open skips the test.
func Open(t testing.TB) *Runtime {
	t.Helper()
	Library(t)
	return nil
}

// Library skips the test.
func Library(t testing.TB) string {
	t.Helper()
	t.Skip("the stand-in for a Mac's GPU is for Linux on amd64 and arm64")
	return ""
}

// Driver implements nothing here, like all that follow.
func (r *Runtime) Driver() (cuda.Driver, error) { return nil, nil }

// Fail does nothing.
func (r *Runtime) Fail(string, int, string, bool) {}

// Calls is 0.
func (r *Runtime) Calls(string) int { return 0 }

// Alive is 0.
func (r *Runtime) Alive(string) int { return 0 }

// Left is "".
func (r *Runtime) Left() string { return "" }

// Forget does nothing.
func (r *Runtime) Forget() {}
