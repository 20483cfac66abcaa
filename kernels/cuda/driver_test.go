//go:build !cuda

package cuda_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

// openDriver opens a driver library as programs do.
func openDriver(library string) (cuda.Driver, error) { return cuda.OpenLibrary(library) }

// TestNoDevice: a machine without a device gets a sentence and a remedy.
func TestNoDevice(t *testing.T) {
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("this machine has a device")
	}
	_, missing := cuda.OpenDriver()
	_, nowhere := cuda.OpenLibrary("/nowhere/libcuda.so.1")
	for _, err := range []error{missing, nowhere} {
		if !errors.Is(err, cuda.ErrEnvironment) || !strings.Contains(err.Error(), "CPU backend") {
			t.Errorf("%v: want ErrEnvironment and a remedy", err)
		}
	}
}
