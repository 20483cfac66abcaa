//go:build !(darwin && arm64)

package metal

import (
	"runtime"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

// OpenDriver returns ErrEnvironment: there is no Metal for this system.
func OpenDriver() (cuda.Driver, error) {
	return nil, environment("Metal is for macOS on Apple silicon (darwin/arm64), not for %s/%s",
		runtime.GOOS, runtime.GOARCH)
}
