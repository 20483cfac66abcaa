//go:build !((linux || windows) && (amd64 || arm64))

package cuda

import "runtime"

// OpenLibrary returns ErrEnvironment: there is no CUDA for this system.
func OpenLibrary(string) (Driver, error) {
	return nil, environment("CUDA is for Linux and Windows on amd64 and arm64, not for %s/%s; "+
		"use another backend", runtime.GOOS, runtime.GOARCH)
}
