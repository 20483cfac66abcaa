//go:build cuda

package cuda_test

import "github.com/windrow-sim/windrow/kernels/cuda"

// openDriver opens the driver that the test is linked to, so that one suite is for both.
// tools/cuda/linked.sh links it to the stand-in.
func openDriver(string) (cuda.Driver, error) { return cuda.OpenLinked() }
