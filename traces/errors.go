package traces

import (
	"fmt"

	"github.com/windrow-sim/windrow/traces/internal/arrowfile"
)

// Kinds of errors, for errors.Is. Errors of the operating system keep their own kind.
var (
	// ErrFormat is wrapped by errors about a file that breaks the format or its checksum.
	ErrFormat = arrowfile.ErrFormat
	// ErrUnsupported is wrapped by errors about a file that may be right but that this version
	// cannot read.
	ErrUnsupported = arrowfile.ErrUnsupported
)

// formatError is an ErrFormat with the file it is about.
func formatError(path, format string, args ...any) error {
	return fmt.Errorf("traces: %s: %s: %w", path, fmt.Sprintf(format, args...), ErrFormat)
}
