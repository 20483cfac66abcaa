//go:build !linux && !darwin

package flashio

import (
	"errors"
	"fmt"
	"os"

	"github.com/windrow-sim/windrow/internal/units"
)

func describeFile(f *os.File) (FileInfo, error) { return describePlain(f) }

func setDirect(*os.File) (note string, err error) {
	return "", errors.New("direct reads are only written for Linux and macOS")
}

func memlockLimit() (units.Bytes, bool) { return 0, false }

// DropCache cannot drop the cache of one file on this system.
func DropCache(path string) error {
	return fmt.Errorf("flashio: drop cache: %w: no call drops the cache of %s alone; restart "+
		"the system for cold reads", ErrEnvironment, path)
}
