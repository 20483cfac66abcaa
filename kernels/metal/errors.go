package metal

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/refusal"
)

// ErrEnvironment is the kind of error for a machine without a usable device. Other kinds are those
// of kernels/cuda: cuda.ErrMemory, cuda.ErrLost and cuda.ErrShape.
var ErrEnvironment = refusal.Kind(refusal.ErrHost, "no usable Metal device")

const remedy = "use the CPU backend"

// environment is an error about this machine.
func environment(format string, args ...any) error {
	return fmt.Errorf("metal: %w: %s; %s", ErrEnvironment, fmt.Sprintf(format, args...), remedy)
}

// Error is a message to an object of Metal that failed.
type Error struct {
	Message string // the method's name: "newLibraryWithSource:options:error:"
	Text    string // the system's text
	Kind    error  // cuda.ErrMemory, cuda.ErrLost or nil
}

// Error implements error.
func (e *Error) Error() string {
	if e.Kind != nil {
		return fmt.Sprintf("metal: %s: %v: %s", e.Message, e.Kind, e.Text)
	}
	return fmt.Sprintf("metal: %s: %s", e.Message, e.Text)
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }
