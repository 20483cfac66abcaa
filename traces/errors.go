package traces

import (
	"fmt"

	"github.com/windrow-sim/windrow/traces/internal/arrowfile"
)

// Kinds of errors, for errors.Is. Errors of the operating system keep their own kind.
var (
	// ErrFormat is wrapped by errors about a file that breaks the format or its checksum.
	ErrFormat = arrowfile.ErrFormat
	// ErrUnsupported is wrapped by errors about a file that this version cannot read, although it
	// may be valid.
	ErrUnsupported = arrowfile.ErrUnsupported
)

// formatError returns an ErrFormat that names the file.
func formatError(path, format string, args ...any) error {
	return fmt.Errorf("traces: %s: %s: %w", path, fmt.Sprintf(format, args...), ErrFormat)
}
