//go:build !linux

package flashio

import (
	"fmt"
	"os"

	"github.com/windrow-sim/windrow/internal/units"
)

// describePlain returns the standard library's facts about a file.
func describePlain(f *os.File) (FileInfo, error) {
	info := FileInfo{Path: f.Name(), FileSystem: unknownFileSystem}
	st, err := f.Stat()
	if err != nil {
		return info, fmt.Errorf("flashio: describe: %w", err)
	}
	if !st.Mode().IsRegular() {
		return info, fmt.Errorf("flashio: describe: %s is not a file", info.Path)
	}
	info.Size = units.Bytes(st.Size())
	return info, nil
}
