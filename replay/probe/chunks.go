package probe

import (
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// ChunksAbout returns the read sizes to probe for records of a size: about those that a replay asks
// for.
func ChunksAbout(path string, record units.Bytes) ([]units.Bytes, error) {
	info, err := flashio.Describe(path)
	if err != nil {
		return nil, err
	}
	least := max(info.DirectOff, 512)
	if !info.DirectKnown {
		least = 4 * units.KiB
	}
	least = max(least, record/2/least*least)
	return []units.Bytes{least, 2 * least, 4 * least, 8 * least}, nil
}

// FreeSpace is what an ordinary user may still write to the file system of a folder; ok is false
// where that is unknown.
func FreeSpace(dir string) (free units.Bytes, ok bool) { return freeSpace(dir) }
