package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"github.com/windrow-sim/windrow/internal/refusal"
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
	exitPipe        = 141 // what shells show for a program that SIGPIPE ended
)

// Interrupted is the exit code of a verb that was interrupted.
const Interrupted = exitInterrupted

// errValidation marks a comparison that is outside its tolerance.
var errValidation = errors.New("outside tolerance")

// kinded is an error of a kind that prints as its text alone.
type kinded struct {
	kind error
	text string
}

func (k *kinded) Error() string        { return k.text }
func (k *kinded) Is(target error) bool { return target == k.kind }

// usageError is about the command line.
func usageError(format string, args ...any) error {
	return &kinded{refusal.ErrConfig, fmt.Sprintf(format, args...)}
}

// inputError is about a file that is not what the verb needs.
func inputError(format string, args ...any) error {
	return &kinded{refusal.ErrInput, fmt.Sprintf(format, args...)}
}

// classify maps an error to its exit code and to the line that is printed.
func classify(ctx context.Context, err error) (code int, text string) {
	switch text = refusal.Text(err, flagOf); {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted, strings.TrimSuffix("interrupted: "+withoutCanceled(text), ": ")
	case errors.Is(err, refusal.ErrConfig):
		return exitUsage, text
	case errors.Is(err, errValidation), errors.Is(err, errAnswer):
		return exitValidation, text
	case errors.Is(err, refusal.ErrHost):
		return exitHost, text
	case errors.Is(err, refusal.ErrInput), errors.Is(err, fs.ErrNotExist),
		errors.Is(err, fs.ErrPermission):
		return exitInput, text
	}
	return exitFailed, text
}

// withoutCanceled leaves out the library's own words for an interruption, which add nothing, from
// each of the joined errors.
func withoutCanceled(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		line = strings.TrimSuffix(strings.TrimSuffix(line, context.Canceled.Error()), ": ")
		if line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// flagOf writes a field of a library's configuration as the flag that sets it: KMax is --k-max.
func flagOf(field string) string {
	var b strings.Builder
	lower := func(i int) bool { return i < len(field) && unicode.IsLower(rune(field[i])) }
	for i, r := range field {
		if i > 0 && unicode.IsUpper(r) && (lower(i-1) || lower(i+1)) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return dashed(b.String())
}
