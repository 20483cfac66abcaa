package metal

import "github.com/windrow-sim/windrow/kernels/cuda"

// Open takes the machine's GPU into use. The error is ErrEnvironment where there is no usable GPU.
// cuda.NewKernels compiles the kernels for it.
func Open() (*cuda.Device, error) {
	driver, err := OpenDriver()
	if err != nil {
		return nil, err
	}
	return cuda.Open(driver, 0)
}
