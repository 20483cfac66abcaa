package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/checkpoint"
	device "github.com/windrow-sim/windrow/engine/cuda"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// Exit codes, as the help of the program lists them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInput       = 3
	exitHost        = 4
	exitValidation  = 5
	exitInterrupted = 130
)

// errUsage marks a command line that cannot be understood.
var errUsage = errors.New("usage")

// errInput marks a file that is not what the verb needs.
var errInput = errors.New("input")

// errValidation marks a comparison that is outside its tolerance.
var errValidation = errors.New("outside tolerance")

// kinded is an error of one of the kinds above that prints as its text alone.
type kinded struct {
	kind error
	text string
}

func (k *kinded) Error() string        { return k.text }
func (k *kinded) Is(target error) bool { return target == k.kind }

func usageError(format string, args ...any) error {
	return &kinded{errUsage, fmt.Sprintf(format, args...)}
}

func inputError(format string, args ...any) error {
	return &kinded{errInput, fmt.Sprintf(format, args...)}
}

// classify maps an error to its exit code and to the line that is printed.
func classify(ctx context.Context, err error) (code int, text string) {
	switch text = err.Error(); {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		// The library's own words add nothing.
		text = strings.TrimSuffix(strings.TrimSuffix(text, context.Canceled.Error()), ": ")
		return exitInterrupted, strings.TrimSuffix("interrupted: "+text, ": ")
	case errors.Is(err, errUsage), errors.Is(err, replay.ErrMismatch), errors.Is(err,
		sim.ErrConfig), errors.Is(err, device.ErrBudget):
		return exitUsage, text
	case errors.Is(err, errValidation):
		return exitValidation, text
	case errors.Is(err, flashio.ErrEnvironment), noDevice(err):
		return exitHost, text
	case errors.Is(err, traces.ErrFormat), errors.Is(err, traces.ErrUnsupported),
		errors.Is(err, checkpoint.ErrFormat), errors.Is(err, checkpoint.ErrUnsupported),
		errors.Is(err, tokenizer.ErrFormat), errors.Is(err, tokenizer.ErrUnsupported),
		errors.Is(err, devicemodels.ErrFormat), errors.Is(err, errInput),
		errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return exitInput, text
	}
	return exitFailed, text
}
