package cuda

import (
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/internal/refusal"
)

// Kinds of errors.
var (
	// ErrEnvironment: this machine has no device, or no driver that is new enough.
	ErrEnvironment = refusal.Kind(refusal.ErrHost, "no usable CUDA device")
	// ErrMemory: the device or the host has not as much memory.
	ErrMemory = errors.New("out of memory")
	// ErrLost: a kernel failed, or the device was removed. Nothing works on it until the program
	// ends.
	ErrLost = errors.New("device lost")
	// ErrShape: the buffers of an operation are too small, or its sizes are impossible.
	ErrShape = errors.New("shapes do not fit")
)

// Result is a CUresult, the driver's code.
type Result int32

// Error is a call of the driver that failed.
type Error struct {
	Call string // as in the driver library: "cuMemAlloc_v2"
	Code Result
	Note string // more about the cause; may be empty
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("cuda: %s: %v", e.Call, e.Code)
	if e.Note != "" {
		text += ": " + e.Note
	}
	if remedy := e.Code.fact().remedy; remedy != "" {
		text += "; " + remedy
	}
	return text
}

// Is reports whether an error is of one of the kinds above.
func (e *Error) Is(target error) bool { return target != nil && target == e.Code.fact().kind }

// String is "CUDA_ERROR_OUT_OF_MEMORY (2)".
func (r Result) String() string { return fmt.Sprintf("%s (%d)", r.fact().name, int32(r)) }

type fact struct {
	name   string
	kind   error
	remedy string
}

const (
	driverRemedy = "install an NVIDIA driver of version 525 or newer, or use the CPU backend"
	deviceRemedy = "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use the CPU backend"
	lostRemedy   = "start the program again; if it happens again, look for Xid messages in the " +
		"kernel log"
)

// fact names a code as cuda.h of CUDA 12 does (CUresult).
func (r Result) fact() fact {
	switch r {
	case 0:
		return fact{"CUDA_SUCCESS", nil, ""}
	case 1:
		return fact{"CUDA_ERROR_INVALID_VALUE", nil, ""}
	case 2:
		return fact{"CUDA_ERROR_OUT_OF_MEMORY", ErrMemory,
			"use a smaller budget, context or batch, or end what else runs on the device"}
	case 3:
		return fact{"CUDA_ERROR_NOT_INITIALIZED", nil, ""}
	case 4:
		return fact{"CUDA_ERROR_DEINITIALIZED", nil, ""}
	case 34:
		return fact{"CUDA_ERROR_STUB_LIBRARY", ErrEnvironment, driverRemedy}
	case 46:
		return fact{"CUDA_ERROR_DEVICE_UNAVAILABLE", ErrEnvironment, deviceRemedy}
	case 100:
		return fact{"CUDA_ERROR_NO_DEVICE", ErrEnvironment, deviceRemedy}
	case 101:
		return fact{"CUDA_ERROR_INVALID_DEVICE", ErrEnvironment, deviceRemedy}
	case 200:
		return fact{"CUDA_ERROR_INVALID_IMAGE", nil, ""}
	case 201:
		return fact{"CUDA_ERROR_INVALID_CONTEXT", nil, ""}
	case 209:
		return fact{"CUDA_ERROR_NO_BINARY_FOR_GPU", ErrEnvironment,
			"the kernels need compute capability 7.0 (Volta) or newer"}
	case 214:
		return fact{"CUDA_ERROR_ECC_UNCORRECTABLE", ErrLost, lostRemedy}
	case 218:
		return fact{"CUDA_ERROR_INVALID_PTX", nil, "the kernels need compute capability 7.0 " +
			"(Volta) or newer"}
	case 221:
		return fact{"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", ErrEnvironment, driverRemedy}
	case 222:
		return fact{"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", ErrEnvironment, driverRemedy}
	}
	return r.laterFact()
}

func (r Result) laterFact() fact {
	switch r {
	case 400:
		return fact{"CUDA_ERROR_INVALID_HANDLE", nil, ""}
	case 500:
		return fact{"CUDA_ERROR_NOT_FOUND", nil, ""}
	case 600:
		return fact{"CUDA_ERROR_NOT_READY", nil, ""}
	case 700:
		return fact{"CUDA_ERROR_ILLEGAL_ADDRESS", ErrLost, lostRemedy}
	case 701:
		return fact{"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", nil, ""}
	case 702:
		return fact{"CUDA_ERROR_LAUNCH_TIMEOUT", ErrLost, lostRemedy}
	case 709:
		return fact{"CUDA_ERROR_CONTEXT_IS_DESTROYED", ErrLost, lostRemedy}
	case 710:
		return fact{"CUDA_ERROR_ASSERT", ErrLost, lostRemedy}
	case 712:
		return fact{"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", nil, ""}
	case 713:
		return fact{"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", nil, ""}
	case 714:
		return fact{"CUDA_ERROR_HARDWARE_STACK_ERROR", ErrLost, lostRemedy}
	case 715:
		return fact{"CUDA_ERROR_ILLEGAL_INSTRUCTION", ErrLost, lostRemedy}
	case 716:
		return fact{"CUDA_ERROR_MISALIGNED_ADDRESS", ErrLost, lostRemedy}
	case 717:
		return fact{"CUDA_ERROR_INVALID_ADDRESS_SPACE", ErrLost, lostRemedy}
	case 718:
		return fact{"CUDA_ERROR_INVALID_PC", ErrLost, lostRemedy}
	case 719:
		return fact{"CUDA_ERROR_LAUNCH_FAILED", ErrLost, lostRemedy}
	case 801:
		return fact{"CUDA_ERROR_NOT_SUPPORTED", nil, ""}
	case 803:
		return fact{"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", ErrEnvironment, driverRemedy}
	case 804:
		return fact{"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", ErrEnvironment, driverRemedy}
	case 999:
		return fact{"CUDA_ERROR_UNKNOWN", ErrLost, lostRemedy}
	}
	return fact{"CUDA_ERROR", nil, ""}
}

// environment is an error about this machine.
func environment(format string, args ...any) error {
	return fmt.Errorf("cuda: %w: %s", ErrEnvironment, fmt.Sprintf(format, args...))
}
