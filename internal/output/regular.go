package output

import (
	"errors"
	"io/fs"
	"os"

	"github.com/windrow-sim/windrow/internal/refusal"
)

// OpenRegular opens a regular file to read. A pipe or a device is refused before it is opened:
// opening a pipe waits for its writer. Errors are of kind refusal.ErrInput, or those of the file
// system.
func OpenRegular(path string) (*os.File, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// regular refuses a file that is there and is not regular.
func regular(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return refusal.Input("output: %s is not a regular file (%v); name another", path,
			info.Mode().Type())
	}
	return nil
}
