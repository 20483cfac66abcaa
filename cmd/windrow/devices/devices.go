// Package devices opens the GPUs that this program has drivers for: CUDA's and Metal's. The engine
// and the command line know devices by name alone.
package devices

import (
	"os"
	"runtime"

	"github.com/windrow-sim/windrow/engine/cuda"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/units"
	kernels "github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/metal"
)

// LibraryVariable is the environment variable that names a driver library by file, in place of the
// system's own: one that lies elsewhere, or a stand-in.
const LibraryVariable = "WINDROW_CUDA_LIBRARY"

// Open takes a GPU into use for a model: "cuda", "metal", or "auto" for the one that this system
// can have. At most so much of its memory is used; 0 = all. It is a session.Config's Device. The
// error for a machine without the GPU is of kind refusal.ErrHost.
func Open(name string, w *model.Weights, memory units.Bytes) (session.Device, error) {
	b, err := open(name, w, cuda.Options{Library: os.Getenv(LibraryVariable), Memory: memory})
	if err != nil {
		return nil, err
	}
	return b, nil
}

func open(name string, w *model.Weights, opt cuda.Options) (*cuda.Backend, error) {
	if name == "cuda" || name == "auto" && runtime.GOOS != "darwin" {
		return cuda.Open(w, opt)
	}
	d, err := metal.Open()
	if err != nil {
		return nil, err
	}
	return cuda.New(d, w, opt)
}

// CUDA opens the first NVIDIA GPU of this machine, by the driver that LibraryVariable names or else
// the system's.
func CUDA() (*kernels.Device, error) {
	open := kernels.OpenDriver
	if library := os.Getenv(LibraryVariable); library != "" {
		open = func() (kernels.Driver, error) { return kernels.OpenLibrary(library) }
	}
	driver, err := open()
	if err != nil {
		return nil, err
	}
	return kernels.Open(driver, 0)
}
